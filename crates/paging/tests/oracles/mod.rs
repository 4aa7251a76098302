//! What a policy and the best of all policies fault on a trace.

#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::{BTreeSet, HashMap};

use paging::frames::Frames;
use paging::reuse::Recency;
use paging::{PageIndex, PolicyKind};

/// Faults of a policy alone on a trace; see [`Frames`].
pub(crate) fn fault_count(
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
pub(crate) fn optimal_fault_count(capacity: usize, trace: &[PageIndex]) -> u64 {
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
    let mut seen = HashMap::<PageIndex, usize>::new();
    let mut next = vec![usize::MAX; trace.len()];
    for (position, &page) in trace.iter().enumerate().rev() {
        if let Some(later) = seen.insert(page, position) {
            next[position] = later;
        }
    }
    next
}

/// The LRU stack distance of every access (Mattson et al. 1970): how many different pages were
/// accessed since the last access to the same page, itself included; `None` for a first access.
///
/// LRU faults on exactly those accesses whose distance is greater than the number of frames.
pub(crate) fn stack_distances(trace: &[PageIndex]) -> Vec<Option<usize>> {
    let mut recency = Recency::new();
    trace.iter().map(|page| recency.access(page.get().into())).collect()
}

/// Faults of LRU with `capacity` frames, from the [`stack_distances`] of a trace.
pub(crate) fn lru_fault_count(distances: &[Option<usize>], capacity: usize) -> u64 {
    let fits = |distance: &Option<usize>| distance.is_some_and(|distance| distance <= capacity);
    distances.iter().filter(|distance| !fits(distance)).count() as u64
}
