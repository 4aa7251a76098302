//! What a program would have fetched with less local memory, estimated from a sample of its pages.
//!
//! The sample is run through the engine's own residency and policy, with its probation, batches and
//! the way it tells dirty pages from clean ones, but with the sample's share of the frames
//! (Waldspurger et al., USENIX ATC'17): what holds for all pages holds for the sample. The share is
//! that of the first touches that were sampled, which is known exactly, and not the share that was
//! intended: the correction of SHARDS, for pages in place of accesses. Where the sample was halved,
//! so is the memory, and half of its pages leave it.
//!
//! Batches, probation and dirty pages are thus what they are in a run. Nothing is fitted to a
//! program.

use std::collections::BTreeMap;

use measure::{Bytes, LocalSize, Pages};

use super::hash::{ByPage, mixed};
use super::pattern::{self, Pattern};
use super::sample::Sample;
use super::touches::{Touch, TouchKind, Touches};
use crate::page::PageIndex;
use crate::policy::PolicyKind;
use crate::residency::{Admission, PageState, Residency, ResidencyConfig};

/// Local memory, as a run would have it.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Decides which page leaves next.
    pub policy: PolicyKind,
    /// Local memory of each process, or of all together.
    pub local: LocalSize,
    /// Whether all processes share the memory; the one with most of it then gives pages up.
    pub shared: bool,
    /// The memory that a fraction relates to; `None` for the memory in use at each moment.
    pub of: Option<Bytes>,
    /// The least number of pages for a fraction.
    pub least: Pages,
    /// How many pages are evicted at a time, from the pages of the budget.
    pub batch: fn(u64) -> u64,
    /// How many processors wait for fetches at a time.
    pub processors: u32,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Counts for the whole program, estimated from the sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Replayed {
    /// Touches of remote pages.
    pub fetches: f64,
    /// The standard deviation of `fetches`, from sampling.
    pub fetches_deviation: f64,
    /// Fetches that waited one after another: all of them, unless threads fetch at the same time.
    pub in_turn: f64,
    /// Fetches of a page whose neighbour in the sample was touched just before.
    pub in_order: f64,
    /// Touches of pages on probation.
    pub softs: f64,
    /// Pages that became remote.
    pub evictions: f64,
    /// Of those, the dirty ones.
    pub write_backs: f64,
    /// How many batches of pages became remote, each as large as the engine evicts together.
    pub batches: f64,
    /// Dirty pages that became remote while fetches waited for the link.
    pub contested: f64,
    /// Touches that were seen, without first ones.
    pub touches: f64,
    /// The most pages in use at once, all processes together.
    pub pages_peak: f64,
}

/// The run is cut into so many pieces of the same length, to see which threads fetch together.
const SLICES: u64 = 200;
/// Pages are split into so many groups, to estimate the sampling error.
const GROUPS: usize = 16;

/// Replays `touches`, whose first touches stand for `first_touches`, in `memory`.
#[must_use]
pub fn replay(touches: &Touches, first_touches: u64, memory: &Memory) -> Replayed {
    if !touches.events.iter().any(|touch| touch.kind == TouchKind::First) {
        return Replayed::default();
    }
    let end_ns = touches.events.last().map_or(0, |touch| touch.time_ns) + 1;
    let patterns = pattern::of(touches);
    let mut machine = Machine::new(*memory);
    let (mut slice, mut from) = (0, 0);
    for part in touches.parts(first_touches) {
        machine.enter(&touches.sample(part.rate), part.scale);
        for (touch, pattern) in touches.events[from..part.end].iter().zip(&patterns[from..]) {
            let own = u128::from(touch.time_ns) * u128::from(SLICES) / u128::from(end_ns);
            if own != slice {
                slice = own;
                machine.end_slice();
            }
            machine.take(touch, *pattern);
        }
        machine.end_part();
        from = part.end;
    }
    machine.end_slice();
    machine.counts
}

/// All processes.
struct Machine {
    memory: Memory,
    // How many pages each sampled page stands for.
    scale: f64,
    processes: BTreeMap<usize, Process>,
    // Of all pages.
    counts: Replayed,
    // Fetches in this part so far, of the sample.
    groups: [f64; GROUPS],
    // In this slice so far, of all pages.
    by_thread: BTreeMap<u32, f64>,
    firsts: f64,
    write_backs_before: f64,
    // Of the sample.
    live: u64,
    resident: u64,
}

/// One process: its sampled pages, numbered as they come.
struct Process {
    residency: Residency,
    numbers: ByPage<u32>,
    pages: Vec<Page>,
    live: u64,
    target: u64,
    // Pages that leave together.
    together: u64,
}

/// The engine's state of a page.
#[derive(Debug, Clone, Copy, Default)]
struct Page {
    live: bool,
    dirty: bool,
    // As in the engine's words: the page counts as dirty when it comes back; a write fetched it.
    untracked: bool,
    write_fetched: bool,
    // Used all the time until its next touch.
    hot: bool,
    group: usize,
}

impl Machine {
    fn new(memory: Memory) -> Self {
        Self {
            memory,
            scale: 1.0,
            processes: BTreeMap::new(),
            counts: Replayed::default(),
            groups: [0.0; GROUPS],
            by_thread: BTreeMap::new(),
            firsts: 0.0,
            write_backs_before: 0.0,
            live: 0,
            resident: 0,
        }
    }

    /// How many pages of a shared memory the other processes have.
    fn others(&self, slot: usize) -> u64 {
        if !self.memory.shared {
            return 0;
        }
        self.resident - self.processes.get(&slot).map_or(0, Process::resident)
    }

    /// The process with most local memory, if it is shared; else `slot`.
    fn fullest(&self, slot: usize) -> usize {
        if !self.memory.shared {
            return slot;
        }
        let by_resident = |(_, process): &(&usize, &Process)| process.resident();
        self.processes.iter().max_by_key(by_resident).map_or(slot, |(&slot, _)| slot)
    }

    /// Makes room after a touch in `slot`, which had `before` resident pages. Returns the groups of
    /// the pages that are fetched again at once.
    fn make_room(&mut self, slot: usize, before: u64) -> Vec<usize> {
        let now = self.processes.get(&slot).map_or(0, Process::resident);
        self.resident = self.resident - before + now;
        let slot = self.fullest(slot);
        let others = self.others(slot);
        let Some(process) = self.processes.get_mut(&slot) else { return Vec::new() };
        if self.memory.shared {
            process.resize(&self.memory, self.scale, others);
        }
        let before = process.resident();
        let back = process.restore(self.scale, &mut self.counts);
        self.resident = self.resident - before + process.resident();
        back
    }

    /// Changes to a smaller sample, each of whose pages stands for `scale` pages.
    fn enter(&mut self, sample: &Sample, scale: f64) {
        self.scale = scale;
        for (&slot, process) in &mut self.processes {
            self.live -= process.leave(|page| sample.has(slot, page));
        }
        self.resident = self.processes.values().map(Process::resident).sum();
        let slots: Vec<usize> = self.processes.keys().copied().collect();
        for slot in slots {
            let others = self.others(slot);
            if let Some(process) = self.processes.get_mut(&slot) {
                process.resize(&self.memory, scale, others);
            }
        }
    }

    // Replays one touch.
    fn take(&mut self, touch: &Touch, pattern: Pattern) {
        let others = self.others(touch.slot);
        let (memory, scale) = (&self.memory, self.scale);
        let process = self.processes.entry(touch.slot).or_insert_with(|| Process::new(memory));
        let before = process.resident();
        let number = process.number(touch.page);
        let page = PageIndex::new(number);
        if touch.kind == TouchKind::Freed {
            process.residency.discard(page, Pages::new(1));
            let was = std::mem::take(&mut process.pages[number as usize].live);
            process.live -= u64::from(was);
            self.live -= u64::from(was);
            process.resize(memory, scale, others);
            self.resident = self.resident - before + process.resident();
            return;
        }
        let known = &mut process.pages[number as usize];
        if touch.kind == TouchKind::First || !known.live {
            let was = std::mem::replace(&mut known.live, true);
            (known.dirty, known.untracked, known.write_fetched) = (true, false, false);
            process.live += u64::from(!was);
            self.live += u64::from(!was);
            self.counts.pages_peak = self.counts.pages_peak.max(self.live as f64 * scale);
            self.firsts += scale;
            process.residency.admit(page, Admission::FirstTouch);
            process.resize(memory, scale, others);
        } else {
            self.counts.touches += scale;
            match process.residency.state(page) {
                PageState::Absent => {
                    known.dirty = touch.write || known.untracked;
                    (known.untracked, known.write_fetched) = (false, touch.write);
                    self.groups[known.group] += 1.0;
                    process.residency.admit(page, Admission::Fetch);
                    self.counts.fetches += scale;
                    self.counts.in_order += if pattern.in_order { scale } else { 0.0 };
                    *self.by_thread.entry(touch.tid).or_default() += scale;
                }
                state => {
                    known.dirty |= touch.write;
                    if state == PageState::Probation {
                        self.counts.softs += scale;
                        process.residency.soft_fault(page);
                    }
                }
            }
        }
        process.pages[number as usize].hot = pattern.hot;
        for group in self.make_room(touch.slot, before) {
            self.counts.touches += scale;
            self.counts.fetches += scale;
            self.groups[group] += 1.0;
            *self.by_thread.entry(touch.tid).or_default() += scale;
        }
    }

    // Adds up the fetches and write-backs of one slice of time.
    fn end_slice(&mut self) {
        let all: f64 = self.by_thread.values().sum();
        let most = self.by_thread.values().copied().fold(0.0, f64::max);
        let at_once = f64::from(self.memory.processors.max(1));
        self.counts.in_turn += most.max(all / at_once);
        self.by_thread.clear();
        // Where new pages make room for themselves nobody waits for the link.
        let write_backs = self.counts.write_backs - self.write_backs_before;
        let fetched = all / (all + self.firsts).max(1.0);
        self.counts.contested += write_backs * fetched;
        self.write_backs_before = self.counts.write_backs;
        self.firsts = 0.0;
    }

    /// Adds the deviation of one part. Errors of parts are not independent, so they add up.
    fn end_part(&mut self) {
        let groups = std::mem::replace(&mut self.groups, [0.0; GROUPS]);
        let mean = groups.iter().sum::<f64>() / GROUPS as f64;
        let squares: f64 = groups.iter().map(|group| (group - mean).powi(2)).sum();
        // Variance of the whole sum; a sample of all pages has none.
        let variance = squares * GROUPS as f64 / (GROUPS - 1) as f64 * (1.0 - 1.0 / self.scale);
        self.counts.fetches_deviation += variance.sqrt() * self.scale;
    }
}

impl Process {
    fn new(memory: &Memory) -> Self {
        let residency = Residency::new(ResidencyConfig {
            policy: memory.policy,
            budget: Pages::new(u64::from(u32::MAX)),
            headroom: Pages::new(0),
            ready: Pages::ZERO,
            probation: None,
            seed: memory.seed,
        });
        let (numbers, pages) = (ByPage::default(), Vec::new());
        Self { residency, numbers, pages, live: 0, target: u64::MAX, together: 1 }
    }

    // The number of a sampled page, in order of appearance.
    fn number(&mut self, page: PageIndex) -> u32 {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(page.get().into()).or_insert(next);
        if number == next {
            let group = usize::try_from(mixed(page.get().into()) >> 32).unwrap_or(0) % GROUPS;
            self.pages.push(Page { group, ..Page::default() });
        }
        number
    }

    /// Removes pages that are no longer in the sample. Returns how many.
    fn leave(&mut self, stays: impl Fn(PageIndex) -> bool) -> u64 {
        let gone = |(&page, &number): (&u64, &u32)| {
            let stays = PageIndex::try_from(page).is_ok_and(&stays);
            (self.pages[number as usize].live && !stays).then_some(number)
        };
        let mut gone: Vec<u32> = self.numbers.iter().filter_map(gone).collect();
        gone.sort_unstable();
        for &number in &gone {
            self.residency.discard(PageIndex::new(number), Pages::new(1));
            self.pages[number as usize].live = false;
        }
        self.live -= gone.len() as u64;
        gone.len() as u64
    }

    fn resident(&self) -> u64 {
        self.residency.resident().get()
    }

    /// Sets the budget to the sample's share of the limit, which follows the memory in use, without
    /// the pages that `others` have of it.
    fn resize(&mut self, memory: &Memory, scale: f64, others: u64) {
        let limit = match (memory.local, memory.of) {
            (LocalSize::Bytes(bytes), _) => Pages::from_bytes_floor(bytes),
            (LocalSize::Fraction(share), Some(of)) => Pages::from_bytes_floor(share.of(of)),
            (LocalSize::Fraction(measure::Fraction::ONE), None) => return,
            (LocalSize::Fraction(share), None) => {
                share.of_pages(Pages::new(rounded(self.live as f64 * scale))).max(memory.least)
            }
        };
        let limit = limit.get().max(1);
        let batch = (memory.batch)(limit);
        self.together = batch.div_ceil(2).max(1);
        self.target = rounded(limit as f64 / scale).saturating_sub(others).max(1);
        let budget = Pages::new(self.target);
        if self.residency.budget() != budget {
            self.residency.set_budget(budget);
        }
    }

    /// Makes room, as the engine does after a fault.
    ///
    /// Pages that are used all the time are fetched again at once. Returns their groups.
    fn restore(&mut self, scale: f64, counts: &mut Replayed) -> Vec<usize> {
        let resident = self.resident();
        let (mut victims, mut back) = (Vec::new(), Vec::new());
        let over = resident.saturating_sub(self.target);
        if over == 0 {
            return back;
        }
        self.residency.evict_batch(&mut victims, Pages::new(over));
        counts.batches += scale * victims.len() as f64 / self.together as f64;
        for victim in victims {
            let page = &mut self.pages[victim.page.get() as usize];
            counts.evictions += scale;
            counts.write_backs += scale * f64::from(u8::from(page.dirty));
            // Write-protected again, unless a write had fetched it.
            page.untracked = (page.dirty || page.untracked) && page.write_fetched;
            page.dirty = false;
            if page.hot {
                page.dirty = page.untracked;
                back.push(page.group);
                self.residency.admit(victim.page, Admission::Fetch);
            }
        }
        let mut probed = Vec::new();
        self.residency.probe_batch(&mut probed, Pages::new(u64::MAX));
        for page in probed {
            if self.pages[page.get() as usize].hot {
                self.residency.soft_fault(page);
                counts.softs += scale;
            }
        }
        back
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast stops")]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use measure::Fraction;
    use proptest::prelude::*;

    use super::*;
    use crate::frames::Frames;
    use crate::reuse::Part;

    const FRAMES: Memory = Memory {
        policy: PolicyKind::FIFO,
        local: LocalSize::Fraction(Fraction::ONE),
        shared: false,
        of: None,
        least: Pages::new(1),
        batch: |_| 0,
        processors: 2,
        seed: 1,
    };

    fn fault_count(
        policy: PolicyKind,
        frames: usize,
        seed: u64,
        trace: impl IntoIterator<Item = PageIndex>,
    ) -> u64 {
        let mut frames = Frames::new(policy, frames, seed);
        trace.into_iter().for_each(|page| frames.access(page));
        frames.fault_count()
    }

    fn memory(policy: PolicyKind, pages: u64) -> Memory {
        Memory { policy, local: LocalSize::Bytes(Pages::new(pages).bytes()), ..FRAMES }
    }

    /// Everything a program did, one touch a microsecond; odd pages are written to.
    fn touches(pages: impl IntoIterator<Item = u32>) -> Touches {
        let mut seen = std::collections::BTreeSet::new();
        let touch = |(at, page): (usize, u32)| Touch {
            time_ns: at as u64 * 1000,
            slot: 0,
            page: PageIndex::new(page),
            tid: 1,
            kind: if seen.insert(page) { TouchKind::First } else { TouchKind::Again },
            write: page % 2 == 1,
        };
        let events = pages.into_iter().enumerate().map(touch).collect();
        Touches { rate: 1.0, events, ..Touches::default() }
    }

    /// Page 0 at every tenth touch, between 99 others in turn.
    fn one_hot() -> Touches {
        let others = (0..3000).map(|at| if at % 10 == 0 { 0 } else { 1 + at * 7 % 99 });
        Touches { blind_share: 0.1, ..touches((0..100).chain(others)) }
    }

    #[test]
    fn what_is_used_all_the_time_is_noticed_on_probation() {
        let hot = one_hot();
        let cold = Touches { blind_share: 0.0, ..hot.clone() };
        let at = |touches| replay(touches, 100, &memory(PolicyKind::CLOCK, 50));
        assert!(at(&hot).softs > at(&cold).softs, "{:?} {:?}", at(&hot), at(&cold));
        assert!(at(&hot).fetches <= at(&cold).fetches, "{:?} {:?}", at(&hot), at(&cold));
        // FIFO asks nobody, and it comes back before its next touch that was seen.
        let at = |touches| replay(touches, 100, &memory(PolicyKind::FIFO, 50)).fetches;
        assert!((at(&hot) / at(&cold) - 1.0).abs() < 0.02, "{} {}", at(&hot), at(&cold));
    }

    /// Two processes, each with a cycle of its own, in turns.
    #[test]
    fn memory_that_is_shared_is_that_of_all_processes() {
        let both = |touches: &Touches| {
            let beside = touches.events.iter().map(|touch| Touch { slot: 1, ..*touch });
            let events = touches.events.iter().copied().zip(beside);
            let events = events.flat_map(|(one, other)| [one, other]).collect();
            Touches { events, ..touches.clone() }
        };
        let one = touches((0..10).flat_map(|_| 0..100));
        let two = both(&one);
        for policy in PolicyKind::ALL {
            let at = |touches: &Touches, firsts, pages, shared| {
                replay(touches, firsts, &Memory { shared, ..memory(policy, pages) })
            };
            // Alone it does not matter.
            assert_eq!(at(&one, 100, 60, true), at(&one, 100, 60, false), "{policy}");
            // A hundred pages are enough for each, and not for both; two hundred are.
            assert_eq!(at(&two, 200, 100, false).fetches, 0.0, "{policy}");
            assert!(at(&two, 200, 100, true).fetches > 500.0, "{policy}");
            assert_eq!(at(&two, 200, 200, true).fetches, 0.0, "{policy}");
        }
    }

    #[test]
    fn a_cycle_misses_always_or_never() {
        let cycle = touches((0..10).flat_map(|_| 0..100));
        for policy in PolicyKind::ALL {
            let at = |pages| replay(&cycle, 100, &memory(policy, pages));
            assert_eq!(at(100).fetches, 0.0, "{policy}");
            let short = at(60);
            if [PolicyKind::FIFO, PolicyKind::LRU].contains(&policy) {
                assert_eq!((short.fetches, short.touches), (900.0, 900.0), "{policy}");
                assert_eq!(short.fetches_deviation, 0.0, "nothing was left out");
            }
            assert!(short.evictions >= short.fetches, "{policy}");
        }
    }

    /// The sample is every fourth page, and stands for all.
    #[test]
    fn a_sample_counts_for_what_it_is_a_sample_of() {
        let sample = touches((0..10).flat_map(|_| (0..100).map(|page| page * 4)));
        let found = replay(&sample, 400, &memory(PolicyKind::FIFO, 200));
        assert_eq!((found.fetches, found.pages_peak), (3600.0, 400.0));
        assert_eq!(replay(&sample, 400, &memory(PolicyKind::FIFO, 400)).fetches, 0.0);
    }

    /// The sample is halved at the end of the first half: what was seen before counts as it did.
    #[test]
    fn a_sample_that_was_halved_counts_for_the_same() {
        let all = touches((0..10).flat_map(|_| 0..400));
        let sample = all.sample(0.5);
        let (before, after) = all.events.split_at(2000);
        let kept = after.iter().filter(|touch| sample.has(touch.slot, touch.page));
        let events: Vec<Touch> = before.iter().chain(kept).copied().collect();
        let earlier = vec![Part { end: 2000, rate: 1.0, scale: 1.0 }];
        let halved = Touches { rate: 0.5, earlier, events, ..Touches::default() };
        let at = |touches: &Touches| replay(touches, 400, &memory(PolicyKind::FIFO, 200));
        let (wanted, found) = (at(&all), at(&halved));
        assert_eq!((wanted.fetches, wanted.fetches_deviation), (3600.0, 0.0));
        assert!((found.fetches / wanted.fetches - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.evictions / wanted.evictions - 1.0).abs() < 0.05, "{found:?}");
        assert!((found.in_order / found.fetches - 1.0).abs() < 0.05, "{found:?}");
        assert_eq!(found.pages_peak, wanted.pages_peak);
    }

    /// Pages are dirty from birth; then only those that were written to.
    #[test]
    fn clean_pages_are_not_written_back() {
        let cycle = touches((0..10).flat_map(|_| 0..100));
        let found = replay(&cycle, 100, &memory(PolicyKind::FIFO, 50));
        assert_eq!(found.evictions, 950.0);
        // All 100 once; of the 850 evictions after that, each second.
        assert!((found.write_backs - 525.0).abs() <= 50.0, "{found:?}");
        assert!(found.contested <= found.write_backs && found.contested > 400.0, "{found:?}");
    }

    #[test]
    fn freed_pages_take_no_frames_and_are_new_again() {
        let mut touches = touches((0..10).chain(0..10));
        let freed = |touch: &Touch| Touch { kind: TouchKind::Freed, ..*touch };
        let gone: Vec<Touch> = touches.events[..10].iter().map(freed).collect();
        touches.events.splice(10..10, gone);
        let found = replay(&touches, 10, &memory(PolicyKind::FIFO, 10));
        assert_eq!((found.fetches, found.evictions, found.pages_peak), (0.0, 0.0, 10.0));
    }

    #[test]
    fn a_share_follows_the_memory_in_use() {
        let cycle = touches((0..10).flat_map(|_| 0..100));
        let half = LocalSize::Fraction(Fraction::from_percent(50).expect("a share"));
        let found = replay(&cycle, 100, &Memory { local: half, ..FRAMES });
        assert_eq!(found.fetches, 900.0);
        let of = Some(Pages::new(200).bytes());
        assert_eq!(replay(&cycle, 100, &Memory { local: half, of, ..FRAMES }).fetches, 0.0);
    }

    #[test]
    fn threads_that_fetch_together_wait_together() {
        let mut cycle = touches((0..100).flat_map(|_| 0..100));
        for touch in &mut cycle.events {
            touch.tid = touch.page.get() % 2;
        }
        let found = replay(&cycle, 100, &memory(PolicyKind::FIFO, 60));
        assert!((found.in_turn / found.fetches - 0.5).abs() < 0.05, "{found:?}");
        let one = Memory { processors: 1, ..memory(PolicyKind::FIFO, 60) };
        assert_eq!(replay(&cycle, 100, &one).in_turn, 9900.0);
    }

    proptest! {
        /// With every page in the sample and nothing but the policy in between, this is the policy.
        #[test]
        fn fifo_of_everything_is_fifo(
            pages in prop::collection::vec(0_u32..40, 1..600), frames in 1_u64..50,
        ) {
            let trace = touches(pages.iter().copied());
            let firsts = trace.events.iter().filter(|t| t.kind == TouchKind::First).count() as u64;
            let found = replay(&trace, firsts, &memory(PolicyKind::FIFO, frames));
            let index = pages.iter().map(|&page| PageIndex::new(page));
            let capacity = usize::try_from(frames).expect("few");
            let wanted = fault_count(PolicyKind::FIFO, capacity, 1, index) - firsts;
            prop_assert_eq!(found.fetches, wanted as f64);
        }
    }
}
