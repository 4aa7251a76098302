//! Every process image of a run: whether its memory is managed, why not, and its peaks.
//!
//! An image begins with an `exec`, or with the `fork` of another, and ends with the next `exec` of
//! its process or with the process. Whether it is managed is decided for each anew, at its first
//! call for memory; until then there is nothing to manage.

use std::collections::BTreeMap;

use measure::{ImageSummary, PAGE_BYTES};
use sys::remote::{Remote, share_memory};

use sys::file_pages::{self, Beyond, Look};
use sys::usage::name_of;

/// What to do about memory that cannot be managed by the arena.
const SWAP: &str = "run it with --engine swap";

/// Bytes below which a difference does not count as memory that no sample has seen: the kernel adds
/// up the counts of processors only now and then, and samples are moments.
const MISSED_FROM: u64 = 4 << 20;

/// Written to `clear_refs`, resets the kernel's peak of resident memory (`proc_pid_clear_refs(5)`).
const SET_PEAK_BACK: &str = "5";

/// Why an image is not managed, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) why: String,
    pub(crate) remedy: String,
}

impl Reason {
    /// A reason for which only the other engine helps.
    pub(crate) fn new(why: &str) -> Self {
        Self { why: why.to_owned(), remedy: SWAP.to_owned() }
    }

    /// The reason for a process that the supervisor may not read or write.
    pub(crate) fn out_of_reach(error: &sys::Error) -> Self {
        let remedy = "run afar as root, or grant it CAP_SYS_PTRACE, or run it with --engine swap";
        Self { why: error.to_string(), remedy: remedy.to_owned() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// The image has made no call for memory yet.
    Fresh,
    Managed,
    Unmanaged(Reason),
}

/// Memory of a process at one moment, in bytes, as `/proc/PID/status` has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sizes {
    anonymous: u64,
    file: u64,
    shared: u64,
    /// The kernel's peak of resident memory.
    peak: u64,
}

impl Sizes {
    // The sizes of process `pid`; `None` if it is gone or has given up its memory.
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
            Some(kib * 1024)
        };
        Some(Self {
            anonymous: field("RssAnon:")?,
            file: field("RssFile:")?,
            shared: field("RssShmem:")?,
            peak: field("VmHWM:")?,
        })
    }
}

/// One image, with the peak of each kind of memory, in bytes.
#[derive(Debug, Clone)]
struct Image {
    name: String,
    standing: Standing,
    managed_pages: u64,
    /// The most managed bytes that were found mapped before the log had them.
    unknown: u64,
    /// The kernel's peak when management of the memory began.
    peak_before: u64,
    anonymous: u64,
    shared: u64,
    file: u64,
    fetch_count: u64,
    look: Look,
}

impl Image {
    fn new(pid: u32) -> Self {
        Self {
            name: name_of(pid),
            standing: Standing::Fresh,
            managed_pages: 0,
            unknown: 0,
            peak_before: 0,
            anonymous: 0,
            shared: 0,
            file: 0,
            fetch_count: 0,
            look: Look::default(),
        }
    }

    // Raises the peaks by a sample; `arena_bytes` of it are managed, `None` without an arena.
    fn sampled(&mut self, sizes: Sizes, arena_bytes: Option<u64>) {
        self.file = self.file.max(sizes.file);
        let Some(arena_bytes) = arena_bytes else {
            // None of it is managed, so the kernel's own peak counts, too.
            let most = sizes.peak.saturating_sub(self.file + sizes.shared);
            self.anonymous = self.anonymous.max(sizes.anonymous).max(most);
            self.shared = self.shared.max(sizes.shared);
            return;
        };
        self.anonymous = self.anonymous.max(sizes.anonymous);
        self.shared = self.shared.max(sizes.shared.saturating_sub(arena_bytes));
        self.shared += self.missed(sizes.peak, arena_bytes);
    }

    // Bytes that must have come and gone between two samples, as the kernel's peak exceeds all that
    // samples have seen. Of which kind they were is unknown.
    fn missed(&self, peak: u64, arena_bytes: u64) -> u64 {
        if self.standing != Standing::Managed || peak <= self.peak_before {
            return 0;
        }
        // How much managed memory was local at once is uncertain: locked memory, and a device's
        // buffers, are local beyond the budget.
        let mapped = arena_bytes.max(self.managed_pages * PAGE_BYTES) + self.unknown;
        let missed = peak.saturating_sub(self.anonymous + self.shared + self.file + mapped);
        if missed > MISSED_FROM { missed } else { 0 }
    }

    // Whether the image has had no memory yet.
    fn is_nothing(&self) -> bool {
        self.standing == Standing::Fresh && self.anonymous == 0 && self.shared == 0
    }

    fn summary(self, pid: u32) -> ImageSummary {
        let reason = match &self.standing {
            Standing::Managed => None,
            Standing::Fresh => Some(Reason::new("it never asked for memory")),
            Standing::Unmanaged(reason) => Some(reason.clone()),
        };
        ImageSummary {
            pid,
            name: self.name,
            managed: self.standing == Standing::Managed,
            why_unmanaged: reason.as_ref().map(|reason| reason.why.clone()),
            remedy: reason.map(|reason| reason.remedy),
            managed_peak_bytes: self.managed_pages * PAGE_BYTES,
            unmanaged_anon_bytes: self.anonymous,
            unmanaged_shared_bytes: self.shared,
            file_bytes: self.file,
            fetch_count: self.fetch_count,
        }
    }
}

/// A process whose `exec` may or may not have happened.
#[derive(Debug)]
enum Executing {
    /// The process had this address space before; `None` if it could not be opened.
    Alone(Option<Remote>),
    /// The process used the address space of another one (`vfork`).
    With(u32),
}

impl Executing {
    // Whether the `exec` has replaced the address space.
    fn has_happened(&self, pid: u32) -> bool {
        match self {
            Self::Alone(before) => before.as_ref().is_none_or(Remote::is_gone),
            Self::With(other) => !share_memory(pid, *other).unwrap_or(false),
        }
    }
}

/// The images of a run.
#[derive(Debug, Default)]
pub(crate) struct Images {
    live: BTreeMap<u32, Image>,
    ended: Vec<ImageSummary>,
    executing: BTreeMap<u32, Executing>,
    /// The process that is to be sampled next.
    next: u32,
}

/// What a call shows of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// The image goes on as before.
    Same,
    /// The process has a new image.
    New,
    /// The process uses the memory of another one, until it executes a program of its own.
    Lodger(u32),
}

impl Images {
    /// Begins a new image of process `pid`.
    pub(crate) fn begin(&mut self, pid: u32) {
        self.end(pid);
        self.live.insert(pid, Image::new(pid));
    }

    /// Ends the image of `pid`, if there is one.
    pub(crate) fn end(&mut self, pid: u32) {
        // An image without memory was on its way to an exec, or to its end.
        if let Some(image) = self.live.remove(&pid).filter(|image| !image.is_nothing()) {
            self.ended.push(image.summary(pid));
        }
    }

    /// Notes that `pid` is about to execute a program. Whether it did shows at its next call.
    pub(crate) fn executes(&mut self, pid: u32) {
        let executing = match lodging(pid) {
            Some(other) => Executing::With(other),
            None => Executing::Alone(Remote::open(pid).ok()),
        };
        self.executing.insert(pid, executing);
    }

    /// Updates what is known of `pid`, which has made a call, or may have gone on unseen.
    pub(crate) fn notice(&mut self, pid: u32) -> Known {
        if let Some(executing) = self.executing.remove(&pid) {
            if executing.has_happened(pid) {
                self.begin(pid);
                return Known::New;
            }
            if let Executing::With(other) = executing {
                return Known::Lodger(other);
            }
        }
        if self.live.contains_key(&pid) {
            return Known::Same;
        }
        if let Some(other) = lodging(pid) {
            return Known::Lodger(other);
        }
        self.begin(pid);
        Known::New
    }

    /// Marks the memory of `pid` as managed from now on.
    pub(crate) fn managed(&mut self, pid: u32) {
        let image = self.live.entry(pid).or_insert_with(|| Image::new(pid));
        image.standing = Standing::Managed;
        // Its static data existed twice. Without the right to reset it, only a higher peak is seen.
        let _kept = std::fs::write(format!("/proc/{pid}/clear_refs"), SET_PEAK_BACK);
        image.peak_before = Sizes::of(pid).map_or(0, |sizes| sizes.peak);
    }

    /// Marks the memory of `pid` as not managed, unless the image ended before it had any.
    pub(crate) fn unmanaged(&mut self, pid: u32, reason: Reason) {
        let image = self.live.entry(pid).or_insert_with(|| Image::new(pid));
        if image.is_nothing() && !has_memory(pid) {
            return;
        }
        image.standing = Standing::Unmanaged(reason);
    }

    /// Whether it is undecided yet if the memory of `pid` is managed.
    pub(crate) fn is_fresh(&self, pid: u32) -> bool {
        self.live.get(&pid).is_some_and(|image| image.standing == Standing::Fresh)
    }

    /// Whether the memory of `pid` is managed, as far as is known.
    pub(crate) fn is_managed(&self, pid: u32) -> bool {
        self.live.get(&pid).is_some_and(|image| image.standing == Standing::Managed)
    }

    /// Notes that `pages` of `pid` were managed at once.
    pub(crate) fn had(&mut self, pid: u32, pages: u64) {
        if let Some(image) = self.live.get_mut(&pid) {
            image.managed_pages = image.managed_pages.max(pages);
        }
    }

    /// Adds `count` fetches to `pid`.
    pub(crate) fn fetched(&mut self, pid: u32, count: u64) {
        if let Some(image) = self.live.get_mut(&pid) {
            image.fetch_count += count;
        }
    }

    /// Samples the memory of `pid`, of which `arena_bytes` are managed and mapped; `None` if it has
    /// no arena. Returns whether the process is there.
    pub(crate) fn sample(&mut self, pid: u32, arena_bytes: Option<u64>) -> bool {
        let Some(image) = self.live.get_mut(&pid) else {
            return false;
        };
        let Some(mut sizes) = Sizes::of(pid) else {
            return false;
        };
        let seen = arena_bytes.unwrap_or(0);
        // Without an arena, all memory that is not shared counts as anonymous.
        let known = arena_bytes.map_or(0, |_| image.shared);
        let beyond = image.look.beyond(sizes.shared.saturating_sub(seen), known, || {
            let file_pages::Mapped { files, managed } = file_pages::mapped(pid);
            // Nothing of an image without an arena is managed.
            let unseen = arena_bytes.map_or(0, |seen| managed.saturating_sub(seen));
            Some(Beyond { bytes: Sizes::of(pid)?.shared.saturating_sub(seen), files, unseen })
        });
        let Some(beyond) = beyond else {
            return false;
        };
        image.unknown = image.unknown.max(beyond.unseen);
        sizes.shared = sizes.shared.min(seen) + beyond.own();
        sizes.file += beyond.files;
        // A name may change, and an exec changes it after it has begun.
        image.name = name_of(pid);
        image.sampled(sizes, arena_bytes);
        true
    }

    /// The process to sample next, each in turn; `None` if there are no images.
    pub(crate) fn next_due(&mut self) -> Option<u32> {
        let later = self.live.range(self.next..).next();
        let (&pid, _) = later.or_else(|| self.live.first_key_value())?;
        self.next = pid + 1;
        Some(pid)
    }

    /// How many images are live.
    pub(crate) fn live_count(&self) -> usize {
        self.live.len()
    }

    /// All images, in the order of their ends.
    pub(crate) fn finish(mut self) -> Vec<ImageSummary> {
        let left: Vec<u32> = self.live.keys().copied().collect();
        left.into_iter().for_each(|pid| self.end(pid));
        self.ended
    }
}

/// Whether process `pid` exists and has memory.
pub(crate) fn has_memory(pid: u32) -> bool {
    Sizes::of(pid).is_some()
}

// The parent whose memory `pid` uses (`vfork`); `None` if `pid` has its own.
fn lodging(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    share_memory(pid, parent).ok()?.then_some(parent)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use sys::memory::{MemoryFile, SharedView};

    use super::*;

    const STATUS: &str =
        "Name:\tx\nVmHWM:\t  900 kB\nRssAnon:\t 100 kB\nRssFile:\t  20 kB\nRssShmem:\t 400 kB\n";

    #[test]
    fn sizes_are_read_in_bytes_or_not_at_all() {
        let sizes = Sizes::parse(STATUS).unwrap();
        let kib = [sizes.anonymous, sizes.file, sizes.shared, sizes.peak].map(|b| b / 1024);
        assert_eq!(kib, [100, 20, 400, 900]);
        assert_eq!(Sizes::parse("Name:\tzombie\n"), None);
    }

    #[test]
    fn an_image_keeps_the_most_of_each_kind() {
        let mut image = Image::new(0);
        image.standing = Standing::Managed;
        let mut sizes = Sizes::parse(STATUS).unwrap();
        image.sampled(sizes, Some(300 * 1024));
        sizes.anonymous = 0;
        image.sampled(sizes, Some(500 * 1024));
        assert_eq!(image.anonymous, 100 * 1024);
        assert_eq!(image.shared, 100 * 1024, "the arena is shared memory, too");
        // What the kernel's mark of the peak has beyond the most of each kind was there between two
        // looks, if it is no page of the arena.
        sizes.peak = 20 << 20;
        let before = image.shared;
        image.managed_pages = (20 << 20) / PAGE_BYTES;
        image.sampled(sizes, Some(500 * 1024));
        assert_eq!(image.shared, before);
        image.managed_pages = 0;
        image.sampled(sizes, Some(500 * 1024));
        assert_eq!(image.shared, (20 << 20) - (100 + 20 + 500) * 1024);
        image.sampled(sizes, Some(500 * 1024));
        assert_eq!(image.shared, (20 << 20) - (100 + 20 + 500) * 1024, "it is counted once");
        (sizes.peak, image.shared) = (900 * 1024, before);
        // Without an arena that mark is all that is needed.
        image.sampled(sizes, None);
        assert_eq!(image.anonymous, (900 - 20 - 400) * 1024);
    }

    // Managed pages of which the supervisor knows nothing yet, in this process.
    #[test]
    fn a_sample_takes_managed_pages_for_what_they_are() {
        const BYTES: usize = 8 << 20;
        let file = MemoryFile::new("afar", BYTES as u64).expect("there is memory");
        let view = SharedView::map(&file, BYTES).expect("there is memory");
        view.words64().iter().for_each(|word| word.store(1, Ordering::Relaxed));
        let mut images = Images::default();
        let pid = std::process::id();
        images.begin(pid);
        images.managed(pid);
        assert!(images.sample(pid, Some(0)));
        let shared = images.finish()[0].unmanaged_shared_bytes;
        assert!(shared < BYTES as u64 / 2, "{shared}");
    }

    #[test]
    fn an_image_that_was_ended_while_it_was_entered_is_none() {
        let finished = |pid: u32| {
            let mut images = Images::default();
            images.begin(pid);
            images.unmanaged(pid, Reason::new("it is not"));
            images.finish()
        };
        let mut child = std::process::Command::new("true").spawn().expect("it is installed");
        let pid = child.id();
        child.wait().expect("it ends");
        assert!(finished(pid).is_empty());
        assert_eq!(finished(std::process::id()).len(), 1, "this one is there");
    }

    #[test]
    fn all_images_are_due_in_turn() {
        let mut images = Images::default();
        [4, 9, 12].into_iter().for_each(|pid| images.begin(pid));
        let mut due = || images.next_due();
        assert_eq!([due(), due(), due(), due()], [4, 9, 12, 4].map(Some));
        assert_eq!(Images::default().next_due(), None);
    }
}
