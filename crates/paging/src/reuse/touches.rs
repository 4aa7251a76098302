//! How a running program uses a sample of its pages.
//!
//! ```text
//! first touch ─► window (mapped, the last to be touched) ─► watched ─► touched again ─► window
//! ```
//!
//! A page that is mapped can be touched unseen. So of the sampled pages (SHARDS: by hash) only the
//! last few that were touched are mapped (the window), and the others are watched: unmapped, so
//! that the next touch is a fault. Touches in the window are not seen: it is like a small memory in
//! front of the one that is modelled, and results hold for memories larger than it.
//!
//! Three things are bounded. Pages in the sample: beyond the bound half of them are no longer
//! watched, and their touches until then are a part of their own, in which each page of the sample
//! stands for fewer others. The rate of touches: beyond it the window grows, and half of the pages
//! go, too, as long as many are left. Touches in memory: beyond the bound half of the pages are
//! forgotten with all their touches.

use std::collections::{BTreeMap, VecDeque};

use super::sample::Sample;
use crate::page::PageIndex;

/// Bounds of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplerConfig {
    /// Most pages in the sample at a time.
    pub pages_max: usize,
    /// The sample is not halved below this to reduce the rate of touches.
    pub pages_min: usize,
    /// Most touches in memory.
    pub touches_max: usize,
    /// About how many touches are seen in a second.
    pub per_second: u64,
    /// One in so many pages of the sample is in the window.
    pub window: usize,
    /// Pages leave the window so many at a time, or fewer if it is small: unmapping costs an
    /// interrupt each time.
    pub batch: usize,
    /// Another seed samples other pages.
    pub seed: u64,
}

/// What happened to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TouchKind {
    /// The page was touched for the first time.
    First,
    /// The page was touched again after others had been.
    Again,
    /// The program freed the page.
    Freed,
}

/// One event in the life of a sampled page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Slot of the process.
    pub slot: usize,
    /// The page in its arena.
    pub page: PageIndex,
    /// The thread that touched it.
    pub tid: u32,
    /// What happened.
    pub kind: TouchKind,
    /// Whether the page was written to, then or while it was mapped.
    pub write: bool,
}

/// The touches of a sample, in order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Touches {
    /// The share of pages in the sample, at the end.
    pub rate: f64,
    /// The seed of the sample.
    pub seed: u64,
    /// Earlier parts of the run, with larger samples, in order.
    pub earlier: Vec<Part>,
    /// The average share of pages in use that are mapped at a time: results do not hold for less
    /// local memory than that.
    pub blind_share: f64,
    /// How many faults the sample cost, including pages that have left it.
    pub soft_count: u64,
    /// What happened.
    pub events: Vec<Touch>,
}

/// A stretch of events with one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The number of the first event behind this part.
    pub end: usize,
    /// The share of pages in the sample.
    pub rate: f64,
    /// How many pages each sampled page stands for: by the share of first touches that was in the
    /// sample, which is known exactly, and not by the share that was intended.
    pub scale: f64,
}

/// A page that is to be watched from now on, and the number of its last touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Slot of the process.
    pub slot: usize,
    /// The page.
    pub page: PageIndex,
    touch: usize,
}

/// Records touches of a running program and says which pages are to be watched.
#[derive(Debug)]
pub struct Sampler {
    config: SamplerConfig,
    sample: Sample,
    /// Pages in use, with their last touch.
    live: BTreeMap<(usize, PageIndex), usize>,
    window: VecDeque<Due>,
    events: Vec<Touch>,
    earlier: Vec<Part>,
    // First touches, and those of pages in the sample.
    first_count: u64,
    sampled_first_count: u64,
    soft_count: u64,
    // How many pages may be watched again now, and when that was computed.
    allowance: f64,
    reckoned_ns: u64,
    halved_ns: u64,
    // Sums over touches of the window's share, and their number.
    window_shares: f64,
    seen_count: u64,
}

/// The allowance is at most the touches of so many seconds.
const BURST: f64 = 0.02;
/// The sample is halved at most once in so many nanoseconds, because the effect takes a while to
/// show.
const PATIENCE_NS: u64 = 10_000_000;

impl SamplerConfig {
    /// Bounds that keep the cost to 20 to 40 % of a program's time, to less if it uses its memory a
    /// part at a time, and to a hundred megabytes. Memories of less than a tenth are not covered
    /// well.
    ///
    /// The window decides what that costs: most touches are of pages that were touched shortly
    /// before, and of those only the ones outside of it cost anything.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            pages_max: 4096,
            pages_min: 128,
            touches_max: 2_000_000,
            per_second: 20_000,
            window: 10,
            batch: 16,
            seed,
        }
    }
}

impl Sampler {
    /// A sampler without touches; every page is in the sample.
    #[must_use]
    pub fn new(config: SamplerConfig) -> Self {
        Self {
            sample: Sample::new(1.0, config.seed),
            live: BTreeMap::new(),
            window: VecDeque::new(),
            events: Vec::new(),
            earlier: Vec::new(),
            first_count: 0,
            sampled_first_count: 0,
            soft_count: 0,
            allowance: 0.0,
            reckoned_ns: 0,
            halved_ns: 0,
            window_shares: 0.0,
            seen_count: 0,
            config,
        }
    }

    /// Records a touch: a page's first, or one while it was watched.
    pub fn touched(&mut self, touch: Touch) {
        let [first, again] = [TouchKind::First, TouchKind::Again].map(|kind| touch.kind == kind);
        self.soft_count += u64::from(again);
        self.first_count += u64::from(first);
        if !self.sample.has(touch.slot, touch.page) {
            return;
        }
        self.sampled_first_count += u64::from(first);
        if again {
            self.seen_count += 1;
            self.window_shares += self.window.len() as f64 / self.live.len().max(1) as f64;
        }
        let number = self.events.len();
        self.events.push(touch);
        self.live.insert((touch.slot, touch.page), number);
        self.window.push_back(Due { slot: touch.slot, page: touch.page, touch: number });
        if number >= self.config.touches_max {
            self.forget();
        } else if self.live.len() > self.config.pages_max {
            self.halve();
        }
    }

    /// Records that the program has freed `count` pages.
    pub fn freed(&mut self, slot: usize, first: PageIndex, count: u64, time_ns: u64) {
        let end = u64::from(first.get()).saturating_add(count);
        let end = PageIndex::try_from(end).unwrap_or(PageIndex::MAX);
        let gone: Vec<_> =
            self.live.range((slot, first)..(slot, end)).map(|(&key, _)| key).collect();
        for (slot, page) in gone {
            self.live.remove(&(slot, page));
            let kind = TouchKind::Freed;
            self.events.push(Touch { time_ns, slot, page, tid: 0, kind, write: false });
        }
    }

    /// Takes up to `most` pages that have left the window. The caller must watch each, and report
    /// writes by [`written`](Self::written).
    pub fn due(&mut self, now_ns: u64, most: usize) -> Vec<Due> {
        let elapsed_ns = now_ns.saturating_sub(self.reckoned_ns);
        self.reckoned_ns = now_ns;
        let rate = self.config.per_second as f64;
        self.allowance = (self.allowance + elapsed_ns as f64 * 1e-9 * rate).min(rate * BURST);
        let mut due = Vec::new();
        if self.window.len() < self.wanted() + self.batch() {
            return due;
        }
        while self.window.len() > self.wanted() && due.len() < most {
            let Some(&next) = self.window.front() else { break };
            let last = self.live.get(&(next.slot, next.page)) == Some(&next.touch);
            if last {
                // Seen touches are what costs; a page that is watched for the first time is free,
                // because that happens once.
                let first = self.events[next.touch].kind == TouchKind::First;
                if !first && self.allowance < 1.0 {
                    break;
                }
                self.allowance -= if first { 0.0 } else { 1.0 };
                due.push(next);
            }
            self.window.pop_front();
        }
        let too_fast =
            self.window.len() > self.wanted() * 3 / 2 + self.batch() && self.allowance < 1.0;
        let patient = now_ns.saturating_sub(self.halved_ns) >= PATIENCE_NS;
        if too_fast && patient && self.live.len() >= 2 * self.config.pages_min {
            self.halved_ns = now_ns;
            self.halve();
        }
        due
    }

    /// Marks a page's last touch as a write: the page was written to then or since.
    pub fn written(&mut self, due: &Due) {
        if let Some(touch) = self.events.get_mut(due.touch) {
            touch.write |= (touch.slot, touch.page) == (due.slot, due.page);
        }
    }

    /// Ends the sample and returns its touches.
    #[must_use]
    pub fn finish(self) -> Touches {
        let blind_share = match self.seen_count {
            0 => self.wanted() as f64 / self.live.len().max(1) as f64,
            count => self.window_shares / count as f64,
        };
        Touches {
            rate: self.sample.rate(),
            seed: self.config.seed,
            earlier: self.earlier,
            blind_share,
            soft_count: self.soft_count,
            events: self.events,
        }
    }

    /// How many pages leave the window together: in a small sample no more than are mapped anyway.
    fn batch(&self) -> usize {
        self.config.batch.min(self.wanted())
    }

    // The size of the window.
    fn wanted(&self) -> usize {
        (self.live.len() / self.config.window).max(1)
    }

    /// Halves the sample, and begins a new part.
    fn halve(&mut self) {
        self.earlier.push(Part {
            end: self.events.len(),
            rate: self.sample.rate(),
            scale: scale(self.first_count, self.sampled_first_count),
        });
        self.sample.halve();
        let sample = self.sample;
        self.live.retain(|&(slot, page), _touch| sample.has(slot, page));
        self.window.retain(|due| sample.has(due.slot, due.page));
        self.sampled_first_count = sample.first_count(&self.events);
    }

    /// Forgets half of the pages with all their touches, and all earlier parts.
    fn forget(&mut self) {
        self.sample.halve();
        let (sample, events) = (self.sample, &self.events);
        let kept = |at: usize| sample.has(events[at].slot, events[at].page);
        // The new number of each touch that stays.
        let mut number = 0;
        let numbers: Vec<usize> = (0..events.len())
            .map(|at| {
                let own = number;
                number += usize::from(kept(at));
                own
            })
            .collect();
        self.live.retain(|_, touch| kept(*touch));
        self.window.retain(|due| kept(due.touch));
        self.live.values_mut().for_each(|touch| *touch = numbers[*touch]);
        self.window.iter_mut().for_each(|due| due.touch = numbers[due.touch]);
        self.events.retain(|touch| sample.has(touch.slot, touch.page));
        self.earlier.clear();
        self.sampled_first_count = sample.first_count(&self.events);
    }
}

impl Touches {
    /// All parts; the program had `first_touches` in all. The last part has the remaining events.
    pub(super) fn parts(&self, first_touches: u64) -> Vec<Part> {
        let sampled = self.sample(self.rate).first_count(&self.events);
        let scale = scale(first_touches, sampled);
        let last = Part { end: self.events.len(), rate: self.rate, scale };
        self.earlier.iter().copied().chain([last]).collect()
    }

    /// The sample of a part.
    pub(super) fn sample(&self, rate: f64) -> Sample {
        Sample::new(rate, self.seed)
    }
}

impl Sample {
    /// Whether a page of a process is in the sample.
    pub(super) fn has(&self, slot: usize, page: PageIndex) -> bool {
        self.hash(key(slot, page)).is_some()
    }

    // How many first touches of sampled pages are among `events`.
    fn first_count(&self, events: &[Touch]) -> u64 {
        let is_first = |touch: &&Touch| touch.kind == TouchKind::First;
        let firsts = events.iter().filter(is_first);
        firsts.filter(|touch| self.has(touch.slot, touch.page)).count() as u64
    }
}

// How many first touches each sampled one stands for.
fn scale(all: u64, sampled: u64) -> f64 {
    (all as f64 / sampled.max(1) as f64).max(1.0)
}

/// The number that names a page of any process.
fn key(slot: usize, page: PageIndex) -> u64 {
    (slot as u64) << 32 | u64::from(page.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: SamplerConfig = SamplerConfig {
        pages_max: 100,
        pages_min: 20,
        touches_max: 10_000,
        per_second: 1_000_000,
        window: 10,
        batch: 1,
        seed: 1,
    };

    fn touch(page: u32, kind: TouchKind, time_ns: u64) -> Touch {
        Touch { time_ns, slot: 3, page: PageIndex::new(page), tid: 7, kind, write: false }
    }

    /// Touches `pages` in turn, `rounds` times, with everything watched that is due; answers how
    /// many touches were seen.
    fn cycle(sampler: &mut Sampler, pages: u32, rounds: u64) -> u64 {
        let mut watched = vec![false; pages as usize];
        let mut seen = 0;
        for step in 0..rounds * u64::from(pages) {
            let page = u32::try_from(step % u64::from(pages)).expect("small");
            let first = step < u64::from(pages);
            if first || std::mem::take(&mut watched[page as usize]) {
                seen += u64::from(!first);
                let kind = if first { TouchKind::First } else { TouchKind::Again };
                sampler.touched(touch(page, kind, step * 1000));
            }
            for due in sampler.due(step * 1000, usize::MAX) {
                watched[due.page.get() as usize] = true;
            }
        }
        seen
    }

    #[test]
    fn a_cycle_beyond_the_window_is_seen_whole() {
        let mut sampler = Sampler::new(CONFIG);
        assert_eq!(cycle(&mut sampler, 50, 4), 150);
        let touches = sampler.finish();
        assert_eq!((touches.rate, touches.events.len(), touches.soft_count), (1.0, 200, 150));
        assert!((0.08..0.15).contains(&touches.blind_share), "{touches:?}");
    }

    #[test]
    fn pages_leave_the_window_together() {
        let mut sampler = Sampler::new(SamplerConfig { batch: 8, ..CONFIG });
        let mut sizes = std::collections::BTreeSet::new();
        for page in 0..100 {
            let now_ns = u64::from(page) * 1000;
            sampler.touched(touch(page, TouchKind::First, now_ns));
            sizes.insert(sampler.due(now_ns, usize::MAX).len());
        }
        // At first there are not as many.
        assert_eq!((sizes.first(), sizes.last()), (Some(&0), Some(&8)));
        assert!(sizes.contains(&1), "{sizes:?}");
    }

    #[test]
    fn what_fits_the_window_is_not_seen() {
        let mut sampler = Sampler::new(SamplerConfig { window: 1, ..CONFIG });
        assert_eq!(cycle(&mut sampler, 50, 4), 0);
    }

    #[test]
    fn a_sample_that_is_too_large_is_halved_and_keeps_its_past() {
        let mut sampler = Sampler::new(CONFIG);
        cycle(&mut sampler, 400, 3);
        let touches = sampler.finish();
        assert!(touches.rate < 0.3, "{}", touches.rate);
        let parts = touches.parts(400);
        assert_eq!((parts[0].end, parts[0].rate, parts[0].scale), (101, 1.0, 1.0));
        let mut from = 0;
        for part in &parts {
            let sample = touches.sample(part.rate);
            let events = &touches.events[from..part.end];
            assert!(events.iter().all(|touch| sample.has(touch.slot, touch.page)), "{part:?}");
            assert!((part.scale * part.rate - 1.0).abs() < 0.3, "{part:?}");
            from = part.end;
        }
        // Every page that stayed has all of its touches.
        let sample = touches.sample(touches.rate);
        let stayed = touches.events.iter().filter(|touch| sample.has(touch.slot, touch.page));
        assert_eq!(stayed.count() as u64, sample.first_count(&touches.events) * 3);
    }

    #[test]
    fn too_many_touches_are_forgotten_with_their_pages() {
        let mut sampler = Sampler::new(SamplerConfig { touches_max: 500, ..CONFIG });
        cycle(&mut sampler, 90, 9);
        let touches = sampler.finish();
        assert!(touches.events.len() <= 500 && touches.rate < 1.0, "{}", touches.rate);
        let parts = touches.parts(90);
        assert_eq!(parts.len(), 1);
        assert!((parts[0].scale * touches.rate - 1.0).abs() < 0.3, "{parts:?}");
        let sample = touches.sample(touches.rate);
        assert!(touches.events.iter().all(|touch| sample.has(touch.slot, touch.page)));
        assert_eq!(touches.events.len() as u64, sample.first_count(&touches.events) * 9);
    }

    #[test]
    fn beyond_the_rate_the_window_grows() {
        let slow = SamplerConfig { per_second: 1000, pages_min: 100, ..CONFIG };
        let mut sampler = Sampler::new(slow);
        let seen = cycle(&mut sampler, 50, 1000);
        // 50 ms at one touch a microsecond.
        assert!((30..130).contains(&seen), "{seen}");
        assert!(sampler.finish().blind_share > 0.5);
    }

    #[test]
    fn freed_pages_are_told_once_and_not_watched() {
        let mut sampler = Sampler::new(CONFIG);
        cycle(&mut sampler, 20, 1);
        sampler.freed(3, PageIndex::new(5), 100, 9);
        sampler.freed(3, PageIndex::new(5), 100, 10);
        sampler.freed(4, PageIndex::new(0), 100, 11);
        assert!(sampler.due(1_000_000_000, usize::MAX).iter().all(|due| due.page.get() < 5));
        let freed = sampler.finish().events.into_iter().filter(|t| t.kind == TouchKind::Freed);
        let freed: Vec<u32> = freed.map(|touch| touch.page.get()).collect();
        assert_eq!(freed, (5..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_write_belongs_to_the_touch_before_it() {
        let mut sampler = Sampler::new(SamplerConfig { window: 50, ..CONFIG });
        sampler.touched(touch(1, TouchKind::First, 0));
        sampler.touched(touch(2, TouchKind::First, 1));
        assert_eq!(sampler.due(2, 0), []);
        let due = sampler.due(2, 5);
        assert_eq!(due.len(), 1);
        sampler.written(&due[0]);
        let writes: Vec<bool> = sampler.finish().events.iter().map(|touch| touch.write).collect();
        assert_eq!(writes, [true, false]);
    }
}
