//! How much of a program's memory was managed, and whether its run says anything.
//!
//! ```text
//! images, losses ─► judge ──────► Coverage (for reports), reasons against the run
//! figures, images ─► nothing_far ─► another reason          (none at all: it is valid)
//! ```
//!
//! A run whose memory stayed local looks like one without a cost of far memory. So nothing is
//! taken from a run before it was judged.
//!
//! Code that concludes something takes the figures from `RunResults::figures`, which returns the
//! reasons if the run is invalid or has too little to conclude from (`InvalidKind`); `seen` only
//! shows what happened. The record of its faults is refused in the same way
//! (`records::FaultReader::new`). A row of a sweep whose run is invalid has a reason and no number,
//! and a section of a report has only the reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::conservation::LinkUse;
use crate::figures::Figures;
use crate::link::LinkMode;
use crate::quantity::Bytes;

/// The share of a program's memory that must be managed, 0 to 1, unless another is asked for.
pub const COVERAGE_BOUND: f64 = 0.9;

/// All memory of a program, managed or not, over all its images, up to which it is too small for a
/// verdict: a quarter of it is less than the smallest budget of local memory (1 MiB), and what
/// every process has local (its stack, the loader's lists, data of libraries; up to 1 MiB) may be
/// most of it. Such a run is reported as too small and not as a failure.
pub const MEMORY_SMALL: Bytes = Bytes::new(4 << 20);

/// The share of touches, 0 to 1, that may go unmanaged because management was lost.
const LOST_SHARE_MAX: f64 = 0.01;

/// A reason why nothing can be said from a run, and what the user can do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invalid {
    /// What is wrong with the run, with values and limits.
    pub reason: String,
    /// What the user can do about the reason.
    pub remedy: String,
    /// Kind of reason: memory unmanaged, management lost, too little memory, nothing far, or more
    /// bytes moved than the link can carry.
    #[serde(default)]
    pub kind: InvalidKind,
}

/// Kinds of reasons why nothing can be said from a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InvalidKind {
    /// Memory stayed local that should have been managed.
    #[default]
    Unmanaged,
    /// Management was lost.
    Lost,
    /// All memory is [`MEMORY_SMALL`] or less, and too little of it was managed.
    Small,
    /// A share of memory was to be far, and none ever was.
    NothingFar,
    /// More bytes moved than the link can carry.
    Overrun,
}

impl InvalidKind {
    /// Whether afar failed to do what was requested. If not, the program gave it too little to do.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Unmanaged | Self::Lost | Self::Overrun)
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

/// How much of a program's memory was managed: sums over process images of each one's peak over
/// its life.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Managed memory over managed and unmanaged, 0 to 1, file pages left out; `None` if no memory
    /// was seen.
    pub share: Option<f64>,
    /// Coverage that a valid run must reach, 0 to 1.
    pub bound: f64,
    /// Whether the user allowed unmanaged memory.
    pub allow_unmanaged: bool,
    /// Memory under management: the sum of the peaks of all process images.
    pub managed_bytes: u64,
    /// Anonymous memory that stayed local (stacks, static data, memory older than management), at
    /// the peaks of all process images.
    pub unmanaged_anon_bytes: u64,
    /// Shared memory that stayed local (System V, memfd, `MAP_SHARED`, `/dev/shm`), at the peaks of
    /// all process images.
    pub unmanaged_shared_bytes: u64,
    /// Mapped pages of files, which stay local and do not count for the coverage.
    pub file_bytes: u64,
    /// Events by which management was lost during the run.
    pub lost: Vec<Loss>,
}

/// Management that was lost during a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loss {
    /// What happened, such as "the page-state table was full".
    pub what: String,
    /// Number of unmanaged touches, or of events if touches were not counted.
    pub count: u64,
}

/// One process image: a program from its exec to the next one or its end, or a forked process up to
/// its own exec or end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImageSummary {
    /// Process id of the image.
    pub pid: u32,
    /// Command name of the image.
    pub name: String,
    /// Whether the memory of the image was managed.
    pub managed: bool,
    /// Why the memory of the image was not managed; `None` if it was.
    pub why_unmanaged: Option<String>,
    /// What would make the image managed; `None` if it was, or if no remedy is known.
    pub remedy: Option<String>,
    /// Peak of the image's managed memory.
    pub managed_peak_bytes: u64,
    /// Peak of the image's anonymous memory that stayed local.
    pub unmanaged_anon_bytes: u64,
    /// Peak of the image's shared memory that stayed local.
    pub unmanaged_shared_bytes: u64,
    /// Peak of the pages of files that the image mapped.
    pub file_bytes: u64,
    /// Faults of the image on pages in far memory.
    pub fetch_count: u64,
}

impl ImageSummary {
    /// The memory that stayed local, pages of files left out.
    #[must_use]
    pub const fn unmanaged_bytes(&self) -> u64 {
        self.unmanaged_anon_bytes.saturating_add(self.unmanaged_shared_bytes)
    }

    /// Managed and unmanaged memory, pages of files left out.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.managed_peak_bytes.saturating_add(self.unmanaged_bytes())
    }

    /// Name and process id, for messages.
    fn describe(&self) -> String {
        let name = if self.name.is_empty() { "a process without a name" } else { &self.name };
        format!("{name} (pid {})", self.pid)
    }
}

/// Judges a run by its process images and by what management it lost.
///
/// `touch_count` is how many faults of all kinds were seen; `bound` is the share wanted, 0 to 1.
/// Returns what was covered and every reason against the run. There is none if
/// 1. the image that used most memory was managed;
/// 2. the managed share reaches `bound`;
/// 3. no loss concerned more than 1 % of all touches.
///
/// `allow_unmanaged` is only recorded: the caller decides what the reasons then mean.
#[must_use]
pub fn judge(
    images: &[ImageSummary],
    lost: &[Loss],
    touch_count: u64,
    bound: f64,
    allow_unmanaged: bool,
) -> (Coverage, Vec<Invalid>) {
    let coverage = Coverage { bound, allow_unmanaged, lost: lost.to_vec(), ..cover(images) };
    let mut invalid = Vec::new();
    invalid.extend(largest(images));
    // If one image is all of the program, one reason is enough.
    if invalid.is_empty() {
        invalid.extend(too_little(images, &coverage));
    }
    invalid.extend(lost.iter().filter_map(|loss| too_much(loss, touch_count)));
    (coverage, invalid)
}

/// The reason against a run that was to have a share of its memory far: no page was ever far.
/// `None` if a page was. `least` is the smallest budget of local memory.
pub(crate) fn nothing_far(
    images: &[ImageSummary],
    figures: &Figures,
    least: Bytes,
) -> Option<Invalid> {
    let faults = &figures.faults;
    let has_come = faults.fetch_count > 0 || faults.prefetch_count > 0;
    let has_gone = figures.dirty_share.is_some() || figures.written_back_bytes > 0;
    if has_come || has_gone {
        return None;
    }
    let largest = images.iter().map(|image| image.managed_peak_bytes).max().unwrap_or(0);
    let (why, remedy) = if largest <= least.get() {
        let most = Bytes::new(largest);
        let why = format!(
            "no process had more than {most} of managed memory, and the smallest budget of local \
             memory, {least}, holds that"
        );
        (why, "give it more data to work on")
    } else {
        ("no page has left local memory".to_owned(), "ask for less of it, see --local")
    };
    Some(Invalid {
        reason: format!("nothing was far: {why}"),
        remedy: remedy.to_owned(),
        kind: InvalidKind::NothingFar,
    })
}

/// The reason against a run in which more bytes moved than the link can carry; `None` otherwise.
pub(crate) fn overrun(link: &LinkUse) -> Option<Invalid> {
    let capacity = link.capacity_bytes.filter(|_| link.conserves)?;
    let (fetched, written) = (link.fetched_bytes, link.written_back_bytes);
    let moved = if link.link == LinkMode::HalfDuplex.to_string() {
        fetched.saturating_add(written)
    } else {
        fetched.max(written)
    };
    if moved <= capacity.saturating_add(link.window_bytes) {
        return None;
    }
    let (moved, capacity) = (Bytes::new(moved), Bytes::new(capacity));
    let of = if link.tier.is_empty() { String::new() } else { format!(" of {}", link.tier) };
    Some(Invalid {
        reason: format!(
            "the link{of} carried {moved} in a time in which it can carry {capacity}: pages \
             moved that nobody waited for"
        ),
        remedy: "use --trap userfaultfd, where every page is waited for".to_owned(),
        kind: InvalidKind::Overrun,
    })
}

/// Sums the memory of all images up.
fn cover(images: &[ImageSummary]) -> Coverage {
    let sum = |of: fn(&ImageSummary) -> u64| images.iter().map(of).fold(0, u64::saturating_add);
    let managed = sum(|image| image.managed_peak_bytes);
    let memory = sum(ImageSummary::memory_bytes);
    Coverage {
        share: (memory > 0).then(|| ratio(managed, memory)),
        managed_bytes: managed,
        unmanaged_anon_bytes: sum(|image| image.unmanaged_anon_bytes),
        unmanaged_shared_bytes: sum(|image| image.unmanaged_shared_bytes),
        file_bytes: sum(|image| image.file_bytes),
        ..Coverage::default()
    }
}

/// The reason against a run whose largest image was not managed; `None` if it was.
fn largest(images: &[ImageSummary]) -> Option<Invalid> {
    // Of equals a managed image: one whose memory was not seen did not use the most.
    let Some(image) = images.iter().max_by_key(|image| (image.memory_bytes(), image.managed))
    else {
        return Some(Invalid {
            reason: "no process of the program was seen".to_owned(),
            remedy: INSTEAD.to_owned(),
            kind: InvalidKind::Unmanaged,
        });
    };
    (!image.managed).then(|| {
        let why = image.why_unmanaged.as_deref().unwrap_or("for a reason that is not known");
        let local = Bytes::new(image.unmanaged_bytes());
        let image_name = image.describe();
        Invalid {
            reason: match images.len() {
                1 => format!("{image_name} was not managed, its {local} stayed local: {why}"),
                _ => format!(
                    "{image_name}, the process that used most memory, was not managed, its \
                     {local} stayed local: {why}"
                ),
            },
            remedy: image.remedy.clone().unwrap_or_else(|| INSTEAD.to_owned()),
            kind: InvalidKind::Unmanaged,
        }
    })
}

/// The remedy where no better one is known.
const INSTEAD: &str =
    "--engine swap manages every process, --allow-unmanaged accepts the run as it is";

/// The reason against a run whose managed share is below the bound; `None` otherwise.
fn too_little(images: &[ImageSummary], coverage: &Coverage) -> Option<Invalid> {
    let share = coverage.share.filter(|share| *share < coverage.bound)?;
    let memory = images.iter().map(ImageSummary::memory_bytes).fold(0, u64::saturating_add);
    if memory <= MEMORY_SMALL.get() {
        return Some(Invalid {
            reason: format!(
                "all its memory is {}, too little to tell anything from: {} of it was managed, \
                 and {} must be of more than {MEMORY_SMALL}",
                Bytes::new(memory),
                percent(share),
                percent(coverage.bound),
            ),
            remedy: "give it more data to work on".to_owned(),
            kind: InvalidKind::Small,
        });
    }
    let most = images.iter().max_by_key(|image| image.unmanaged_bytes())?;
    Some(Invalid {
        reason: format!(
            "{} of the program's memory was managed, and {} must be: {} of anonymous memory \
             (stacks, data of libraries) and {} of shared memory (System V, memfd, MAP_SHARED, \
             /dev/shm) stayed local, most of it, {}, in {}",
            percent(share),
            percent(coverage.bound),
            Bytes::new(coverage.unmanaged_anon_bytes),
            Bytes::new(coverage.unmanaged_shared_bytes),
            Bytes::new(most.unmanaged_bytes()),
            most.describe(),
        ),
        remedy: most.remedy.clone().unwrap_or_else(|| INSTEAD.to_owned()),
        kind: InvalidKind::Unmanaged,
    })
}

/// The reason against a run in which `loss` concerned more than 1 % of touches; `None` otherwise.
fn too_much(loss: &Loss, touch_count: u64) -> Option<Invalid> {
    let all = touch_count.saturating_add(loss.count);
    let share = ratio(loss.count, all.max(1));
    (share > LOST_SHARE_MAX).then(|| Invalid {
        reason: format!(
            "{}: {} touches in {all} went unmanaged, and 1 in 100 may",
            loss.what, loss.count
        ),
        remedy: INSTEAD.to_owned(),
        kind: InvalidKind::Lost,
    })
}

/// A share in percent, rounded down, so that a value below a bound does not look equal to it.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1000.0 + 1e-6).floor() / 10.0)
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn image(managed_mib: u64, anon_mib: u64, shared_mib: u64) -> ImageSummary {
        ImageSummary {
            pid: 7,
            name: "server".to_owned(),
            managed: true,
            managed_peak_bytes: managed_mib * MIB,
            unmanaged_anon_bytes: anon_mib * MIB,
            unmanaged_shared_bytes: shared_mib * MIB,
            file_bytes: 50 * MIB,
            ..ImageSummary::default()
        }
    }

    fn unmanaged(anon_mib: u64) -> ImageSummary {
        ImageSummary {
            pid: 9,
            name: "tool".to_owned(),
            managed: false,
            why_unmanaged: Some("it is static".to_owned()),
            remedy: Some("use --engine swap".to_owned()),
            ..image(0, anon_mib, 0)
        }
    }

    fn judged(images: &[ImageSummary]) -> (Coverage, Vec<Invalid>) {
        judge(images, &[], 1000, COVERAGE_BOUND, false)
    }

    #[test]
    fn share_is_managed_memory_of_all_images_without_files() {
        let (coverage, invalid) = judged(&[image(60, 1, 0), image(30, 3, 6)]);
        assert_eq!(coverage.share, Some(0.9));
        assert_eq!(coverage.managed_bytes, 90 * MIB);
        assert_eq!(coverage.unmanaged_anon_bytes, 4 * MIB);
        assert_eq!(coverage.unmanaged_shared_bytes, 6 * MIB);
        assert_eq!(coverage.file_bytes, 100 * MIB);
        assert_eq!((coverage.bound, coverage.allow_unmanaged), (0.9, false));
        assert_eq!(invalid, []);
    }

    #[test]
    fn a_share_below_the_bound_is_a_reason_with_kinds_and_the_image_that_has_most() {
        let (coverage, invalid) =
            judged(&[image(89, 2, 0), ImageSummary { pid: 8, ..image(0, 1, 8) }]);
        assert_eq!(coverage.share, Some(0.89));
        let [invalid] = &invalid[..] else { panic!("{invalid:?}") };
        assert_eq!(
            invalid.reason,
            "89 % of the program's memory was managed, and 90 % must be: 3.0 MiB of anonymous \
             memory (stacks, data of libraries) and 8.0 MiB of shared memory (System V, \
             memfd, MAP_SHARED, /dev/shm) stayed local, most of it, 9.0 MiB, in server (pid 8)"
        );
        assert!(invalid.remedy.contains("--engine swap"), "{}", invalid.remedy);
        let (_, shared_only) = judged(&[image(35, 0, 5)]);
        assert_eq!(shared_only.len(), 1, "shared memory counts as anonymous does");
    }

    #[test]
    fn nothing_is_told_from_a_program_that_is_too_small_and_that_is_no_failure() {
        let kinds = |images: &[ImageSummary]| -> Vec<InvalidKind> {
            judged(images).1.iter().map(|invalid| invalid.kind).collect()
        };
        let mut small = image(1, 3, 0);
        assert_eq!(kinds(&[small.clone()]), [InvalidKind::Small]);
        assert_eq!(
            judged(&[small.clone()]).1[0].reason,
            "all its memory is 4.0 MiB, too little to tell anything from: 25 % of it was managed, \
             and 90 % must be of more than 4.0 MiB"
        );
        assert_eq!(kinds(&[image(0, 2, 0), image(0, 2, 0)]), [InvalidKind::Small]);
        // No image may have any more because it is one of many.
        assert_eq!(kinds(&vec![image(0, 1, 0); 5]), [InvalidKind::Unmanaged]);
        small.managed_peak_bytes += 1;
        assert_eq!(kinds(&[small]), [InvalidKind::Unmanaged]);
        assert_eq!(kinds(&[image(2, 0, 0)]), [], "small, and all of it managed");
        assert!(!InvalidKind::Small.is_failure() && !InvalidKind::NothingFar.is_failure());
        assert!(InvalidKind::Unmanaged.is_failure() && InvalidKind::Lost.is_failure());
    }

    #[test]
    fn nothing_is_told_from_a_run_in_which_nothing_was_far() {
        let least = Bytes::new(MIB);
        let reason = |images: &[ImageSummary], figures: &Figures| {
            let invalid = nothing_far(images, figures, least);
            invalid.map(|invalid| (invalid.kind, invalid.reason))
        };
        let (none, image) = (Figures::default(), image(1, 0, 0));
        let (kind, why) = reason(&[image.clone(), image.clone()], &none).unwrap();
        assert_eq!(kind, InvalidKind::NothingFar);
        assert_eq!(
            why,
            "nothing was far: no process had more than 1.0 MiB of managed memory, and the \
             smallest budget of local memory, 1.0 MiB, holds that"
        );
        let larger = ImageSummary { managed_peak_bytes: MIB + 1, ..image.clone() };
        let (_, why) = reason(&[image.clone(), larger], &none).unwrap();
        assert_eq!(why, "nothing was far: no page has left local memory");
        let mut fetched = none.clone();
        fetched.faults.fetch_count = 1;
        let gone = Figures { dirty_share: Some(0.0), ..none.clone() };
        let written = Figures { written_back_bytes: 4096, ..none };
        for far in [fetched, gone, written] {
            assert_eq!(reason(std::slice::from_ref(&image), &far), None);
        }
    }

    #[test]
    fn the_image_that_used_most_memory_must_be_managed() {
        let (_, invalid) = judged(&[image(39, 0, 0), unmanaged(40)]);
        let [invalid] = &invalid[..] else { panic!("{invalid:?}") };
        assert_eq!(
            invalid.reason,
            "tool (pid 9), the process that used most memory, was not managed, its 40.0 MiB \
             stayed local: it is static"
        );
        assert_eq!(invalid.remedy, "use --engine swap");
        // However little that is, and even if all its memory came and went unseen.
        assert_eq!(judged(&[unmanaged(1)]).1.len(), 1);
        assert_eq!(judged(&[unmanaged(0)]).1.len(), 1);
        assert_eq!(judged(&[]).1.len(), 1);
        // A small one beside it does no harm, and a large one does.
        assert_eq!(judged(&[image(40, 0, 0), unmanaged(1)]).1, []);
        assert_eq!(judged(&[image(40, 0, 0), unmanaged(39)]).1.len(), 1);
        assert_eq!(judged(&[unmanaged(0), image(0, 0, 0)]).1, []);
    }

    #[test]
    fn a_loss_is_always_told_and_a_reason_beyond_one_touch_in_a_hundred() {
        let lost = |count| [Loss { what: "the table was full".to_owned(), count }];
        let judged = |count| judge(&[image(10, 0, 0)], &lost(count), 990, COVERAGE_BOUND, false);
        let (coverage, invalid) = judged(10);
        assert_eq!((coverage.lost, invalid), (lost(10).to_vec(), vec![]));
        let (coverage, invalid) = judged(11);
        assert_eq!(coverage.lost, lost(11));
        assert_eq!(
            invalid[0].reason,
            "the table was full: 11 touches in 1001 went unmanaged, and 1 in 100 may"
        );
    }

    #[test]
    fn no_memory_is_no_share_and_bounds_are_what_is_asked_for() {
        assert_eq!(judged(&[image(0, 0, 0)]).0.share, None);
        let images = [image(16, 4, 0)];
        let (coverage, invalid) = judge(&images, &[], 0, 0.8, true);
        assert_eq!((coverage.bound, coverage.allow_unmanaged, invalid), (0.8, true, vec![]));
        assert_eq!(
            judge(&images, &[], 0, 0.81, true).1.len(),
            1,
            "who allows it is told the reason"
        );
    }

    #[test]
    fn percents_are_rounded_down() {
        assert_eq!([0.9, 0.8999, 0.0, 1.0].map(percent), ["90 %", "89.9 %", "0 %", "100 %"]);
    }

    fn used(link: &str, fetched_bytes: u64, written_back_bytes: u64) -> LinkUse {
        LinkUse {
            link: link.to_owned(),
            fetched_bytes,
            written_back_bytes,
            capacity_bytes: Some(1000),
            window_bytes: 10,
            conserves: true,
            ..LinkUse::default()
        }
    }

    #[test]
    fn each_direction_has_the_bandwidth_or_both_share_it() {
        assert_eq!(overrun(&used("full-duplex", 1010, 1010)), None);
        assert!(overrun(&used("full-duplex", 1011, 0)).is_some());
        assert!(overrun(&used("full-duplex", 0, 1011)).is_some());
        assert_eq!(overrun(&used("half-duplex", 510, 500)), None);
        assert!(overrun(&used("half-duplex", 511, 500)).is_some());
    }

    #[test]
    fn without_a_bound_there_is_nothing_to_break() {
        let unbound = LinkUse { capacity_bytes: None, ..used("full-duplex", 9999, 9999) };
        assert_eq!(overrun(&unbound), None);
        let free = LinkUse { conserves: false, ..used("per-fault", 9999, 9999) };
        assert_eq!(overrun(&free), None);
    }
}
