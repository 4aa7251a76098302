//! What a run reports: while it goes on, and at its end.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use measure::{
    BitsPerSec, BudgetHeld, Bytes, Carried, Duration, FaultCounts, FaultTimes, Figures,
    ImageSummary, LinkUse, LocalSize, Loss, MechanismTime, PAGE_BYTES, RunResults, Spins,
    StallCounts,
};
use paging::order::Ended;
use paging::reuse::Touches;
use sys::process::Change;

use super::config::Tier;
use paging::outgoing::OUTGOING_MAX;
use tables::Lane;
use tables::{FaultEvent, FaultKind};

/// The state of a run at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Processes under management.
    pub processes: u64,
    /// Pages with contents, local or remote.
    pub populated_pages: u64,
    /// Of those, local ones.
    pub resident_pages: u64,
    /// Fetches since the start.
    pub fetch_count: u64,
    /// Faults of every kind since the start.
    pub fault_count: u64,
    /// Faults that found no free frame, since the start.
    pub stall_count: u64,
    /// 99th percentile of a fetch so far, in nanoseconds.
    pub fetch_p99_ns: u64,
    /// Time since the start, in nanoseconds.
    pub elapsed_ns: u64,
}

/// A change to a running program; a value of `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retune {
    /// Index of the tier.
    pub tier: usize,
    /// New round trip.
    pub rtt: Option<Duration>,
    /// New bandwidth; the inner `None` is no limit.
    pub bandwidth: Option<Option<BitsPerSec>>,
    /// New amount of local memory.
    pub local: Option<LocalSize>,
}

/// An observer of a run.
pub trait Observer {
    /// Called every 100 ms; the changes that it returns are applied at once.
    fn tick(&mut self, snapshot: &Snapshot) -> Vec<Retune> {
        let _ = snapshot;
        Vec::new()
    }

    /// Called with batches of faults, if the run records them.
    fn faults(&mut self, faults: &[FaultEvent]) {
        let _ = faults;
    }

    /// Called with news for the user; they are among the warnings of the run, too.
    fn news(&mut self, text: &str) {
        let _ = text;
    }
}

/// An observer that ignores everything.
#[derive(Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How the program ended.
    pub change: Change,
    /// Everything that was measured.
    pub results: RunResults,
    /// How long a turn of the trap's wait loop took lately, in 1024ths of a nanosecond; 0 if no
    /// fault was delayed. It measures how fast the processor is.
    pub pace: u64,
    /// How a sample of pages was used; `None` if the run did not watch pages.
    pub touches: Option<Touches>,
    /// The order of first fetches; `None` if it was neither recorded nor replayed.
    pub order: Option<Ended>,
}

/// Counts and histograms of a run.
pub(crate) struct Totals {
    start_ns: u64,
    /// Processor time of the supervisor at the start.
    thread_start_ns: u64,
    constant_ns: u64,
    page_ns: u64,
    /// Fetches take real time, which afar does not add: none of it counts as late.
    pub(crate) only_measures: bool,
    pub(crate) first_touch_count: u64,
    fetch_count: u64,
    soft_count: u64,
    prefetch_count: u64,
    arrived_count: u64,
    pub(crate) unseen_count: u64,
    pub(crate) joined_count: u64,
    /// How long a processor had interrupts off at most, and how often for longer than 20 µs.
    pub(crate) interrupts_off: (u64, u64),
    /// How many spins were answered and how many expired; `None` if faults do not spin.
    spins: Option<Spins>,
    pub(crate) lost_count: u64,
    /// Reported losses, and how often each happened.
    losses: BTreeMap<&'static str, u64>,
    pub(crate) fork_count: u64,
    pub(crate) stall_count: u64,
    pub(crate) stall_ns: u64,
    stall_max_ns: u64,
    /// Frames were short, and no page could be evicted.
    pub(crate) unrelieved: bool,
    /// A helper was stopped when it had pages to drop.
    pub(crate) stopped: bool,
    evict_count: u64,
    /// By tier.
    carried: Vec<Carried>,
    latencies: FaultTimes,
    budget: BudgetHeld,
    excess_pages: u64,
    /// At the end.
    pub(crate) images: Vec<ImageSummary>,
    populated_peak: u64,
    warnings: Vec<String>,
}

impl Totals {
    /// Raises the peak to `pages`, which are managed now in all processes.
    pub(crate) fn populated(&mut self, pages: u64) {
        self.populated_peak = self.populated_peak.max(pages);
    }

    pub(crate) fn new(start_ns: u64) -> Self {
        Self {
            start_ns,
            thread_start_ns: sys::clock::thread_ns(),
            constant_ns: 0,
            only_measures: false,
            page_ns: 0,
            first_touch_count: 0,
            fetch_count: 0,
            soft_count: 0,
            prefetch_count: 0,
            arrived_count: 0,
            unseen_count: 0,
            joined_count: 0,
            interrupts_off: (0, 0),
            spins: None,
            lost_count: 0,
            losses: BTreeMap::new(),
            fork_count: 0,
            stall_count: 0,
            stall_ns: 0,
            stall_max_ns: 0,
            unrelieved: false,
            stopped: false,
            evict_count: 0,
            carried: Vec::new(),
            latencies: FaultTimes::default(),
            budget: BudgetHeld { held: true, ..BudgetHeld::default() },
            excess_pages: 0,
            images: Vec::new(),
            populated_peak: 0,
            warnings: Vec::new(),
        }
    }

    /// Sets what the kernel adds to a fault, and what a page occupies the link for; nanoseconds.
    pub(crate) fn set_costs(&mut self, constant_ns: u64, page_ns: u64) {
        self.constant_ns = constant_ns;
        self.page_ns = page_ns;
    }

    /// Begins to count what the links of `tiers` carry.
    pub(crate) fn open_accounts(&mut self, tiers: &[Tier]) {
        let now = sys::clock::monotonic_ns();
        let open = |(place, tier): (usize, &Tier)| {
            let name = if place == 0 { "" } else { &tier.name };
            Carried::new(name, &tier.link, true, now)
        };
        self.carried = tiers.iter().enumerate().map(open).collect();
    }

    /// Notes the new bandwidth of the link of `tier`; `None` for no limit.
    pub(crate) fn retuned(&mut self, tier: usize, rate: Option<BitsPerSec>) {
        self.carried[tier].retuned(rate, sys::clock::monotonic_ns());
    }

    /// Counts one event, which concerned a page of `tier`.
    pub(crate) fn note(&mut self, event: &FaultEvent, tier: usize) {
        if matches!(event.kind, FaultKind::Fetch | FaultKind::Prefetch) {
            self.carried[tier].fetched(1);
        }
        match event.kind {
            FaultKind::FirstTouch => self.first_touch_count += 1,
            FaultKind::Soft => self.soft_count += 1,
            FaultKind::Prefetch => self.prefetch_count += 1,
            FaultKind::Arrived => self.arrived_count += 1,
            FaultKind::Fetch => self.fetch_count += 1,
            FaultKind::WriteBack => {}
        }
    }

    /// Records the time of a fetch that has ended; 0 if it was not measured.
    pub(crate) fn ended(&mut self, event: &FaultEvent, measured_ns: u64) {
        if event.kind == FaultKind::Fetch && measured_ns > 0 {
            let total_ns = measured_ns + self.constant_ns;
            let (wait, requested) = (event.wait_ns, event.requested_ns);
            self.latencies.record(Some(total_ns), wait, requested);
        }
    }

    /// Adds a lane's stalls in the trap: how many, and how long processors were held.
    pub(crate) fn held(&mut self, lane: &Lane<'_>) {
        self.stall_count += lane.stall_count().load(Ordering::Relaxed);
        self.stall_ns += lane.stall_ns().load(Ordering::Relaxed);
        let longest = lane.stall_max_ns().load(Ordering::Relaxed);
        self.stall_max_ns = self.stall_max_ns.max(longest);
    }

    /// Sets how often threads spun for pages on a blade.
    pub(crate) const fn spun(&mut self, spins: Spins) {
        self.spins = Some(spins);
    }

    /// Counts a fault that waited `ns` for a frame in user space.
    pub(crate) fn stalled(&mut self, ns: u64) {
        self.stall_count += 1;
        self.stall_ns += ns;
        self.stall_max_ns = self.stall_max_ns.max(ns);
    }

    /// Counts an eviction.
    pub(crate) const fn evicted(&mut self) {
        self.evict_count += 1;
    }

    /// Counts pages of `tier` that were written back.
    pub(crate) fn written_back(&mut self, pages: u64, tier: usize) {
        self.carried[tier].written(pages);
    }

    /// Compares a budget's resident pages with what is `allowed` while it shrinks.
    pub(crate) fn peak(&mut self, resident: u64, limit: u64, allowed: u64, batch: u64) {
        let excess = resident.saturating_sub(allowed);
        self.excess_pages = self.excess_pages.max(excess);
        let budget = &mut self.budget;
        budget.held &= excess <= batch;
        if resident * PAGE_BYTES >= budget.peak_resident_bytes {
            budget.peak_resident_bytes = resident * PAGE_BYTES;
            budget.budget_bytes = limit * PAGE_BYTES;
            budget.batch_bytes = batch * PAGE_BYTES;
        }
    }

    /// Adds `count` to the loss `what`.
    pub(crate) fn lost(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.losses.entry(what).or_default() += count;
        }
    }

    /// Adds a warning, unless there are 32.
    pub(crate) fn warn(&mut self, text: &str) {
        if self.warnings.len() < 32 {
            self.warn_once(text);
        }
    }

    pub(crate) fn warn_once(&mut self, text: &str) {
        if !self.warnings.iter().any(|warning| warning == text) {
            self.warnings.push(text.to_owned());
        }
    }

    /// Fills in the counts and times of a snapshot.
    pub(crate) fn fill(&self, snapshot: &mut Snapshot) {
        snapshot.fetch_count = self.fetch_count;
        snapshot.fault_count = self.fetch_count + self.first_touch_count + self.soft_count;
        snapshot.stall_count = self.stall_count;
        snapshot.fetch_p99_ns = self.latencies.p99_ns();
        snapshot.elapsed_ns = sys::clock::monotonic_ns().saturating_sub(self.start_ns);
    }

    /// Judges the run. `least` is the smallest budget, if a share of the memory was to be far.
    pub(crate) fn finish(mut self, change: Change, pace: u64, least: Option<Bytes>) -> Outcome {
        let elapsed_ns = sys::clock::monotonic_ns().saturating_sub(self.start_ns);
        if self.lost_count > 0 {
            let lost = self.lost_count;
            self.warn(&format!("{lost} faults were not logged one by one: the log was full"));
        }
        let touches = self.first_touch_count + self.fetch_count + self.soft_count;
        if self.unseen_count * 100 > touches {
            let unseen = self.unseen_count;
            self.warn(&format!(
                "{unseen} pages came without a fault (direct I/O, pinned buffers, another \
                 process): nobody waited for them, and they were within the budget only when they \
                 were found"
            ));
        }
        if !self.budget.held {
            let excess = Bytes::new(self.excess_pages * PAGE_BYTES);
            let why = if self.stopped {
                "all threads of a process were stopped, as debuggers and leak checkers do, and it \
                 had pages to evict"
            } else if self.unrelieved {
                "there was nothing to evict: is more memory locked than may be local?"
            } else {
                "evictions came late"
            };
            self.warn(&format!("the budget was exceeded by up to {excess}: {why}"));
        }
        let (exit_status, signal) = match change {
            Change::Exited(status) => (Some(status), None),
            Change::Killed(signal) => (None, Some(signal)),
            Change::Stopped { .. } => (None, None),
        };
        let now = sys::clock::monotonic_ns();
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let window = u64::from(OUTGOING_MAX) + processors;
        let links: Vec<LinkUse> =
            self.carried.drain(..).map(|one| one.finish(now, window)).collect();
        let written_back = links.iter().map(|one| one.written_back_bytes).sum::<u64>();
        let figures = Figures {
            elapsed_ns,
            faults: self.counts(),
            fetched_bytes: (self.fetch_count + self.prefetch_count) * PAGE_BYTES,
            written_back_bytes: written_back,
            dirty_share: (self.evict_count > 0)
                .then(|| share(written_back / PAGE_BYTES, self.evict_count).min(1.0)),
            links,
            fault_latency: self.latencies.summary(Duration::from_ns(self.page_ns)),
            mechanism: self.mechanism(),
            stall: StallCounts {
                stall_count: self.stall_count,
                stall_ns_total: self.stall_ns,
                stall_ns_max: self.stall_max_ns,
            },
            budget: self.budget,
            managed_peak_bytes: self.populated_peak * PAGE_BYTES,
        };
        let lost: Vec<Loss> = self
            .losses
            .iter()
            .map(|(&what, &count)| Loss { what: what.to_owned(), count })
            .collect();
        let mut results = RunResults::judged(figures, self.images, &lost, least);
        (results.exit_status, results.signal) = (exit_status, signal);
        results.warnings = self.warnings;
        Outcome { change, results, pace, touches: None, order: None }
    }

    fn mechanism(&self) -> MechanismTime {
        MechanismTime {
            late_ns: if self.only_measures { 0 } else { self.latencies.late_ns() },
            soft_ns: self.soft_count.saturating_mul(self.constant_ns),
            supervisor_ns: sys::clock::thread_ns().saturating_sub(self.thread_start_ns),
            interrupts_off_max_ns: self.interrupts_off.0,
            interrupts_off_long_count: self.interrupts_off.1,
            spins: self.spins,
        }
    }

    fn counts(&self) -> FaultCounts {
        FaultCounts {
            first_touch_count: self.first_touch_count,
            fetch_count: self.fetch_count,
            soft_count: self.soft_count,
            prefetch_count: self.prefetch_count,
            prefetch_used_count: self.arrived_count,
            silent_count: self.unseen_count,
            duplicate_count: self.joined_count,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
