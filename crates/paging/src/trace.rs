//! Runs an access trace through the engine, and the oracles to compare a policy with.
//!
//! A trace knows every access, so a policy that wants references gets all of them: what comes
//! out is the policy itself, not the approximation that soft faults allow a running program. Set
//! [`References::SoftFaults`](crate::engine::References::SoftFaults) to see the difference.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use measure::{Duration, Instant, Pages};

use crate::engine::{Action, Counters, Engine, EngineConfig, Event, Latencies, ResolveKind};
use crate::page::{PageIndex, PageMap};
use crate::policy::{Policy, PolicyKind};
use crate::reuse::Recency;

/// One access of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The page.
    pub page: PageIndex,
    /// Whether it is a write.
    pub write: bool,
}

/// What became of a trace.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Accesses of all threads.
    pub access_count: u64,
    /// From the start to the end of the last thread.
    pub elapsed: Duration,
    /// Faults and evictions.
    pub counters: Counters,
    /// How long faults took.
    pub latencies: Latencies,
    /// The most pages that were resident at once.
    pub peak: Pages,
}

/// One thread of a trace run.
struct Thread<I> {
    accesses: I,
    next: Option<Access>,
    // The page whose fault it waits for.
    blocked_on: Option<PageIndex>,
}

impl Outcome {
    /// Accesses to pages that were not accessible, of whatever kind.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        let counters = &self.counters;
        counters.first_touch_count
            + counters.fetch_count
            + counters.soft_count
            + counters.joined_count
    }
}

/// Runs one trace per thread through an engine, each thread with `think` before every access.
///
/// Threads share local memory and the link, and each waits for its own faults. An access that
/// faulted is done when its fault is resolved. Of two threads at the same instant, the first one
/// goes first.
pub fn run<T>(
    config: EngineConfig,
    think: Duration,
    threads: impl IntoIterator<Item = T>,
) -> Outcome
where
    T: IntoIterator<Item = Access>,
{
    let mut engine = Engine::new(config);
    let mut threads: Vec<_> = threads.into_iter().map(Thread::new).collect();
    // Which threads do their next access, and when.
    let mut due: BinaryHeap<_> = (0..threads.len())
        .map(|thread| Reverse((Instant::ZERO.saturating_add(think), thread)))
        .collect();
    let mut access_count = 0;
    let mut end = Instant::ZERO;
    loop {
        let next = due.peek().map(|&Reverse((time, _))| time);
        let tick = engine.poll_timeout().filter(|&tick| next.is_none_or(|next| tick <= next));
        if let Some(now) = tick {
            engine.handle(Event::Tick, now);
        } else if let Some(Reverse((now, index))) = due.pop() {
            let thread = &mut threads[index];
            let Some(Access { page, write }) = thread.next else {
                continue;
            };
            access_count += 1;
            thread.next = thread.accesses.next();
            if engine.reference(page, write, now) {
                end = end.max(now);
                due.push(Reverse((now.saturating_add(think), index)));
            } else {
                thread.blocked_on = Some(page);
                engine.handle(Event::Fault { page, write, at: now }, now);
            }
        } else {
            break;
        }
        while let Some(action) = engine.poll_action() {
            let Action::Resolve { page, ready_at, kind } = action else {
                continue;
            };
            if kind == ResolveKind::Prefetch {
                continue;
            }
            for (index, thread) in threads.iter_mut().enumerate() {
                if thread.blocked_on.take_if(|blocked_on| *blocked_on == page).is_some() {
                    end = end.max(ready_at);
                    due.push(Reverse((ready_at.saturating_add(think), index)));
                }
            }
        }
    }
    debug_assert!(threads.iter().all(|thread| thread.blocked_on.is_none()));
    Outcome {
        access_count,
        elapsed: end.saturating_since(Instant::ZERO),
        counters: *engine.counters(),
        latencies: engine.latencies().clone(),
        peak: engine.residency().peak(),
    }
}

impl<I: Iterator<Item = Access>> Thread<I> {
    fn new(accesses: impl IntoIterator<Item = Access, IntoIter = I>) -> Self {
        let mut accesses = accesses.into_iter();
        Self { next: accesses.next(), accesses, blocked_on: None }
    }
}

/// A policy alone, without time: at most so many local pages, given up when another has to come.
#[derive(Debug)]
pub struct Frames {
    policy: Box<dyn Policy>,
    capacity: usize,
    faults: u64,
}

impl Frames {
    /// No page is local. `capacity` is at least one.
    #[must_use]
    pub fn new(kind: PolicyKind, capacity: usize, seed: u64) -> Self {
        Self { policy: kind.build(capacity, seed), capacity, faults: 0 }
    }

    /// Accesses `page`, which is local then.
    pub fn access(&mut self, page: PageIndex) {
        if self.policy.contains(page) {
            self.policy.touch(page);
            return;
        }
        self.faults += 1;
        if self.policy.len() >= self.capacity {
            self.policy.victim();
        }
        self.policy.insert(page);
    }

    /// Accesses to pages that were not local, first touches included.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.faults
    }
}

/// Faults of a policy alone on a trace; see [`Frames`].
pub fn fault_count(
    kind: PolicyKind,
    capacity: usize,
    seed: u64,
    trace: impl IntoIterator<Item = PageIndex>,
) -> u64 {
    let mut frames = Frames::new(kind, capacity, seed);
    trace.into_iter().for_each(|page| frames.access(page));
    frames.fault_count()
}

/// Faults of the optimal policy, which gives up the page whose next access is farthest in the
/// future (Belady 1966, MIN), first touches included. `capacity` is at least one.
#[must_use]
pub fn optimal_fault_count(capacity: usize, trace: &[PageIndex]) -> u64 {
    let next = next_accesses(trace);
    // The local pages by their next access, which no two pages share unless it is "never".
    let mut local = BTreeSet::new();
    let mut faults = 0;
    for (position, &page) in trace.iter().enumerate() {
        if !local.remove(&(position, page)) {
            faults += 1;
            if local.len() >= capacity {
                local.pop_last();
            }
        }
        local.insert((next[position], page));
    }
    faults
}

/// For each access, the position of the next one to the same page; `usize::MAX` if there is none.
fn next_accesses(trace: &[PageIndex]) -> Vec<usize> {
    // Position plus one, so that zero is "not seen".
    let mut seen = PageMap::<usize>::default();
    let mut next = vec![usize::MAX; trace.len()];
    for (position, &page) in trace.iter().enumerate().rev() {
        let later = std::mem::replace(seen.slot(page), position + 1);
        if later != 0 {
            next[position] = later - 1;
        }
    }
    next
}

/// The LRU stack distance of every access (Mattson et al. 1970): how many different pages were
/// accessed since the last access to the same page, itself included; `None` for a first access.
///
/// LRU faults on exactly those accesses whose distance is greater than the number of frames.
#[must_use]
pub fn stack_distances(trace: &[PageIndex]) -> Vec<Option<usize>> {
    let mut recency = Recency::new();
    trace.iter().map(|page| recency.access(page.get().into())).collect()
}

/// Faults of LRU with `capacity` frames, from the [`stack_distances`] of a trace.
#[must_use]
pub fn lru_fault_count(distances: &[Option<usize>], capacity: usize) -> u64 {
    let fits = |distance: &Option<usize>| distance.is_some_and(|distance| distance <= capacity);
    distances.iter().filter(|distance| !fits(distance)).count() as u64
}
