//! `afar probe`: touches pages one after another and times each touch from inside.
//!
//! Runs like any other program, under afar or not. Memory comes from the allocator; one word of
//! each page is touched, in one order, over and over, so that with less local memory than pages
//! every touch is a fetch.

pub(crate) mod flags;
mod page;
mod spread;

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use console::{Class, Classed, Failure, OutputError, terminal};
use serde::{Deserialize, Serialize};
use sys::baseline::{Dropped, minor_fault_samples};
use sys::clock::{cycles, monotonic_ns};
use sys::usage::waited_ns;

use crate::probe::flags::ProbeFlags;
use crate::probe::page::{Page, WORDS_PER_PAGE};
use crate::probe::spread::{Parts, touch_first};

/// How many pairs of readings of the counter measure their own cost.
const EMPTY_COUNT: usize = 1001;

/// The results of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probed {
    /// Pages in the cycle.
    pub(crate) page_count: u64,
    /// How many touches were timed.
    pub(crate) touch_count: u64,
    /// Whether the touches were writes.
    pub(crate) write: bool,
    /// The cost of reading the counter, which is subtracted from every sample.
    pub(crate) timer_ns: u64,
    /// How long all touches took.
    pub(crate) elapsed_ns: u64,
    /// How long of that the probe waited for a processor; `None` where the kernel does not report
    /// it.
    pub(crate) waited_ns: Option<u64>,
    /// The shortest touch.
    pub(crate) min_ns: u64,
    /// Quantiles of the touches: the smallest sample that this share does not exceed.
    pub(crate) p50_ns: u64,
    pub(crate) p90_ns: u64,
    pub(crate) p95_ns: u64,
    pub(crate) p99_ns: u64,
    #[serde(default)]
    pub(crate) p995_ns: u64,
    pub(crate) p999_ns: u64,
    /// The longest touch.
    pub(crate) max_ns: u64,
    /// Every touch in order, on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) samples_ns: Vec<u64>,
}

/// Why a probe has no results.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("there is no tier \"{0}\" here; run the probe under afar run --tier name={0},...")]
    NoTier(String),
    #[error(transparent)]
    Minor(#[from] sys::Error),
}

impl Classed for ProbeError {
    fn class(&self) -> Class {
        Class::Failed
    }
}

/// Runs the probe and prints its results as JSON: one object, or with `--tiers` a list of them.
///
/// # Errors
/// When there is no such tier, or the results cannot be written.
pub fn probe(flags: &ProbeFlags) -> Result<ExitCode, Failure> {
    let json = if flags.first {
        serde_json::to_string(&measure_first(flags))
    } else if flags.minor {
        serde_json::to_string(&measure_minor(flags)?)
    } else if flags.tiers.is_empty() {
        serde_json::to_string(&measure(flags, &pages(flags)))
    } else {
        let groups: Result<Vec<Vec<Page>>, ProbeError> =
            flags.tiers.iter().map(|tier| placed(flags, tier)).collect();
        let groups = groups?;
        let probed = if flags.whole {
            measure_whole(flags, &groups)
        } else {
            groups.iter().map(|group| measure(flags, group)).collect()
        };
        serde_json::to_string(&probed)
    };
    let json = json.expect("numbers have a JSON form") + "\n";
    match flags.output.as_deref() {
        None => terminal::answer(&json)?,
        Some(path) => write(path, &json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| OutputError::open(path, source).into())
}

/// Pages that have been touched once.
fn pages(flags: &ProbeFlags) -> Vec<Page> {
    let mut pages = room(flags);
    fill(&mut pages, flags);
    pages
}

/// As [`pages`], in a tier. The pages are placed before they are touched, so that those beyond its
/// local memory are remote when the last one has been touched.
fn placed(flags: &ProbeFlags, tier: &str) -> Result<Vec<Page>, ProbeError> {
    let mut pages = room(flags);
    if !afar_place::place(pages.spare_capacity_mut(), tier) {
        return Err(ProbeError::NoTier(tier.to_owned()));
    }
    fill(&mut pages, flags);
    Ok(pages)
}

// Memory for the pages, not touched yet.
fn room(flags: &ProbeFlags) -> Vec<Page> {
    Vec::with_capacity(usize::try_from(flags.pages).expect("an address space holds the pages"))
}

// Touches all pages for the first time.
fn fill(pages: &mut Vec<Page>, flags: &ProbeFlags) {
    let page = |number| Page(std::array::from_fn(|_word| AtomicU64::new(number)));
    pages.extend((0..flags.pages).map(page));
}

// Times touches of one group of pages.
fn measure(flags: &ProbeFlags, pages: &[Page]) -> Probed {
    let touches = usize::try_from(flags.touches).expect("an address space holds the samples");
    // Filled beforehand, so that storing a sample touches no new page.
    let mut samples = vec![1_u64; touches];
    if flags.threads > 1 || flags.shuffled {
        let parts = Parts::new(pages, threads(flags), flags.shuffled);
        let timer = Timer::start();
        parts.touch(flags.write, &mut samples);
        return timer.probed(flags, samples);
    }
    let timer = Timer::start();
    touch(pages, flags.write, &mut samples);
    timer.probed(flags, samples)
}

fn threads(flags: &ProbeFlags) -> usize {
    usize::try_from(flags.threads).expect("a process has so many threads at most")
}

/// Times touches of all groups in turn, so that disturbances of the machine affect all of them.
fn measure_whole(flags: &ProbeFlags, groups: &[Vec<Page>]) -> Vec<Probed> {
    let touches = usize::try_from(flags.touches).expect("an address space holds the samples");
    let mut samples = vec![vec![1_u64; touches]; groups.len()];
    let timer = Timer::start();
    touch_whole(groups, others(flags), &mut samples);
    samples.into_iter().map(|samples| timer.probed(flags, samples)).collect()
}

const WORDS_PER_LINE: usize = 8;
/// The number of words of other memory is 2 to this power.
const OTHERS_LOG2: u32 = 20;
/// So many neighbouring pages are all written to, or none.
const BLOCK: usize = 16;

// Times the first touch of each page.
fn measure_first(flags: &ProbeFlags) -> Probed {
    let pages = usize::try_from(flags.pages).expect("an address space holds the pages");
    // Zeros that were never written: the kernel makes each page when it is touched.
    let mut memory = vec![0_u64; pages * WORDS_PER_PAGE];
    let mut samples = vec![1_u64; pages];
    let timer = Timer::start();
    if flags.threads > 1 {
        touch_first(&mut memory, threads(flags), &mut samples);
    } else {
        for (sample, page) in samples.iter_mut().zip(memory.chunks_exact_mut(WORDS_PER_PAGE)) {
            let before = cycles();
            *black_box(&mut page[0]) = before;
            *sample = cycles() - before;
        }
    }
    black_box(&memory);
    timer.probed(flags, samples)
}

/// One in so many pages stays, and so many are dropped at a time.
const LOCAL: usize = 4;
const CHUNK: usize = 32;

// Times minor faults of pages that another thread drops meanwhile.
fn measure_minor(flags: &ProbeFlags) -> Result<Probed, ProbeError> {
    let number = |count| usize::try_from(count).expect("an address space holds the pages");
    let (pages, rounds) = (number(flags.pages), number(flags.touches.div_ceil(flags.pages)));
    let dropped = Dropped::Meanwhile { local: pages / LOCAL, chunk: CHUNK };
    let timer = Timer::start();
    let samples = minor_fault_samples(pages, rounds, false, dropped, &mut || ())?;
    Ok(timer.probed(flags, samples))
}

/// Converts ticks of the counter to nanoseconds.
struct Timer {
    ticks: u64,
    ns: u64,
    /// Ticks that reading the counter takes.
    empty: u64,
    waited_ns: Option<u64>,
}

impl Timer {
    fn start() -> Self {
        let (empty, waited_ns) = (empty_pairs(), waited_ns());
        Self { ticks: cycles(), ns: monotonic_ns(), empty, waited_ns }
    }

    /// The results of `samples` in ticks, once all have been taken.
    fn probed(&self, flags: &ProbeFlags, mut samples: Vec<u64>) -> Probed {
        let (ticks, ns) = (cycles() - self.ticks, monotonic_ns() - self.ns);
        let waited_ns = waited_ns().zip(self.waited_ns).map(|(now, then)| now.saturating_sub(then));
        let to_ns = |sample: u64| {
            let scaled = u128::from(sample) * u128::from(ns) / u128::from(ticks.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        for sample in &mut samples {
            *sample = to_ns(sample.saturating_sub(self.empty));
        }
        let mut sorted = samples.clone();
        sorted.sort_unstable();
        let quantile = |per_mille| quantile(&sorted, per_mille);
        Probed {
            page_count: flags.pages,
            touch_count: samples.len() as u64,
            write: flags.write || flags.first,
            timer_ns: to_ns(self.empty),
            elapsed_ns: ns,
            waited_ns,
            min_ns: quantile(0),
            p50_ns: quantile(500),
            p90_ns: quantile(900),
            p95_ns: quantile(950),
            p99_ns: quantile(990),
            p995_ns: quantile(995),
            p999_ns: quantile(999),
            max_ns: quantile(1000),
            samples_ns: if flags.raw { samples } else { Vec::new() },
        }
    }
}

/// The smallest of the sorted samples that `per_mille` of them do not exceed.
fn quantile(sorted: &[u64], per_mille: usize) -> u64 {
    sorted[(sorted.len() * per_mille).div_ceil(1000).max(1) - 1]
}

/// Touches one page after another and stores the ticks of each touch.
fn touch(pages: &[Page], write: bool, samples: &mut [u64]) {
    for (sample, page) in samples.iter_mut().zip(pages.iter().cycle()) {
        let before = cycles();
        if write {
            page.0[0].store(before, Ordering::Relaxed);
        } else {
            black_box(page.0[0].load(Ordering::Relaxed));
        }
        *sample = cycles() - before;
    }
}

/// Memory that is read between two touches.
struct Others {
    words: Vec<u64>,
    between: u64,
    in_order: bool,
    // The last draw.
    state: u64,
    // The next word in order.
    next: usize,
}

// The memory that is read between touches; none without --between.
fn others(flags: &ProbeFlags) -> Others {
    let (between, in_order) = (flags.between, flags.in_order);
    let count = if between > 0 { 1 << OTHERS_LOG2 } else { 0 };
    Others { words: (0..count).collect(), between, in_order, state: 1, next: 0 }
}

impl Others {
    /// Reads the words that lie between two touches.
    fn read(&mut self) {
        for _ in 0..self.between {
            let at = if self.in_order {
                self.next = (self.next + 1) % (1 << OTHERS_LOG2);
                self.next
            } else {
                // Knuth's MMIX: each address is there before the one before it has been read.
                let draw = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                self.state = draw;
                (draw >> (u64::BITS - OTHERS_LOG2)) as usize
            };
            black_box(self.words[at]);
        }
    }
}

/// Reads pages of all groups in turn, writes to every other block of them, and stores the ticks of
/// each page, including the reads of other memory before it.
fn touch_whole(groups: &[Vec<Page>], mut others: Others, samples: &mut [Vec<u64>]) {
    let mut before = cycles();
    for touch in 0..samples.first().map_or(0, Vec::len) {
        for (group, samples) in groups.iter().zip(&mut *samples) {
            others.read();
            let number = touch % group.len();
            let words = &group[number].0;
            if number / BLOCK % 2 == 1 {
                words[0].store(before, Ordering::Relaxed);
            }
            let line = |word: &AtomicU64| word.load(Ordering::Relaxed);
            black_box(words.iter().step_by(WORDS_PER_LINE).map(line).fold(0, u64::wrapping_add));
            let now = cycles();
            samples[touch] = now - before;
            before = now;
        }
    }
}

/// The median number of ticks between two readings with nothing in between.
fn empty_pairs() -> u64 {
    let mut pairs = [0_u64; EMPTY_COUNT];
    for pair in &mut pairs {
        let before = cycles();
        *pair = cycles() - before;
    }
    pairs.sort_unstable();
    pairs[EMPTY_COUNT / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(pages: u64, touches: u64, raw: bool) -> ProbeFlags {
        let first = false;
        let (write, whole, in_order, minor) = (false, false, false, false);
        let (shuffled, threads) = (false, 1);
        let (between, tiers, output) = (0, Vec::new(), None);
        ProbeFlags {
            pages,
            touches,
            write,
            whole,
            between,
            in_order,
            first,
            minor,
            shuffled,
            threads,
            raw,
            tiers,
            output,
        }
    }

    fn run(flags: &ProbeFlags) -> Probed {
        measure(flags, &pages(flags))
    }

    #[test]
    fn quantiles_are_samples_in_order() {
        let probed = run(&flags(3, 10, true));
        assert_eq!(probed.samples_ns.len(), 10);
        let mut sorted = probed.samples_ns.clone();
        sorted.sort_unstable();
        assert_eq!(probed.min_ns, sorted[0]);
        assert_eq!(probed.p50_ns, sorted[4]);
        assert_eq!(probed.p90_ns, sorted[8]);
        assert_eq!(probed.max_ns, sorted[9]);
    }

    #[test]
    fn samples_only_when_asked_for() {
        assert!(run(&flags(1, 5, false)).samples_ns.is_empty());
        let json = serde_json::to_string(&run(&flags(1, 5, false))).unwrap();
        assert!(!json.contains("samples_ns"), "{json}");
        assert_eq!(serde_json::from_str::<Probed>(&json).unwrap().touch_count, 5);
    }

    #[test]
    fn whole_pages_are_read_and_every_other_block_written() {
        for in_order in [false, true] {
            let flags = ProbeFlags { whole: true, between: 7, in_order, ..flags(40, 40, false) };
            let groups = [pages(&flags), pages(&flags)];
            let probed = measure_whole(&flags, &groups);
            assert_eq!((probed.len(), probed[1].touch_count), (2, 40));
            let first = |page: usize| groups[1][page].0[0].load(Ordering::Relaxed);
            assert_eq!((first(3), first(15), first(32)), (3, 15, 32));
            assert!(first(16) > 40 && first(31) > 40, "stamps of the counter");
        }
    }

    #[test]
    fn first_touches_are_as_many_as_pages() {
        let probed = measure_first(&ProbeFlags { first: true, ..flags(300, 1, true) });
        assert_eq!((probed.touch_count, probed.samples_ns.len()), (300, 300));
        assert!(probed.write && probed.max_ns > 0);
    }
}
