//! The trap of user space: faults as messages, answered at their own deadlines.
//!
//! What `bpf/fault.bpf.c` does inside the fault, done by the supervisor. Ten times slower, but it
//! needs no privilege beyond `/dev/userfaultfd`, and a fault without a free frame simply waits: the
//! budget holds to the page.

mod steps;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use paging::prefetch::Prefetcher;

// Deadlines nearer than this are awaited without sleeping: a timer would be late by as much.
const SPIN_NS: u64 = 60_000;

/// Faults that wait, for a frame or for their deadline.
#[derive(Default)]
pub(crate) struct Waiting {
    stalled: VecDeque<Touch>,
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    sequence: u64,
    /// Frames that become free later: nanoseconds of the run, budget, tier, sequence number.
    owed: BTreeSet<(u64, usize, usize, u64)>,
    /// When pages fetched ahead arrive, in nanoseconds of the run.
    arrivals: BTreeMap<(usize, u64), u64>,
    prefetchers: BTreeMap<usize, Prefetcher>,
}

/// A fault that waits for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Touch {
    pub(crate) slot: usize,
    pub(crate) budget: usize,
    pub(crate) tier: usize,
    /// Address of the page.
    pub(crate) address: u64,
    pub(crate) write: bool,
    /// The page has contents, and is to be mapped, not created.
    pub(crate) minor: bool,
    pub(crate) tid: u32,
    pub(crate) since_ns: u64,
}

/// The outcome of fetching a page ahead of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    Comes,
    /// The page is local, on its way, or has never been used.
    NotFar,
    /// No frame is free for the page.
    NoFrame,
}

impl Touch {
    /// A need for a page that no thread has touched.
    pub(crate) const fn of_nobody(
        (slot, budget, tier): (usize, usize, usize),
        address: u64,
        since_ns: u64,
    ) -> Self {
        Self { slot, budget, tier, address, write: true, minor: true, tid: 0, since_ns }
    }
}

// A fault with a deadline: its `kind` says what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    touch: Touch,
    kind: u8,
    wait_ns: u64,
    requested_ns: u64,
}

const FETCH: u8 = 0;
const ARRIVED: u8 = 1;
/// The frame of a new page is free.
const NEW_FRAME: u8 = 2;
/// The frame of a page to be fetched is free.
const FETCH_FRAME: u8 = 3;

impl Waiting {
    /// How many faults wait for a frame of one budget and tier.
    pub(crate) fn frames(&self, budget: usize, tier: usize) -> i64 {
        let waits = |touch: &&Touch| (touch.budget, touch.tier) == (budget, tier);
        i64::try_from(self.stalled.iter().filter(waits).count()).unwrap_or(i64::MAX)
    }

    /// Whether no fault has a deadline and no frame becomes free later.
    pub(crate) fn is_nothing_due(&self) -> bool {
        self.due.is_empty() && self.owed.is_empty()
    }

    /// Whether any fault waits for a frame.
    pub(crate) fn any(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// Takes out the fault of one budget and tier that has waited longest for a frame.
    pub(crate) fn take(&mut self, budget: usize, tier: usize) -> Option<Touch> {
        let waits = |touch: &Touch| (touch.budget, touch.tier) == (budget, tier);
        let at = self.stalled.iter().position(waits)?;
        self.stalled.remove(at)
    }

    /// Notes that an unclaimed frame of a budget becomes free at `free_ns`.
    pub(crate) fn owe(&mut self, free_ns: u64, budget: usize, tier: usize) {
        self.sequence += 1;
        self.owed.insert((free_ns, budget, tier, self.sequence));
    }

    /// How many unclaimed frames of a budget become free later.
    pub(crate) fn owed(&self, budget: usize, tier: usize) -> u64 {
        self.owed.iter().filter(|one| (one.1, one.2) == (budget, tier)).count() as u64
    }

    /// Forgets the frames of a budget that no process uses any more.
    pub(crate) fn forget_budget(&mut self, budget: usize) {
        self.owed.retain(|one| one.1 != budget);
    }

    /// Forgets the faults of a process that is gone.
    pub(crate) fn forget(&mut self, slot: usize) {
        self.stalled.retain(|touch| touch.slot != slot);
        self.due.retain(|Reverse((_, _, due))| due.touch.slot != slot);
        self.arrivals.retain(|(owner, _), _| *owner != slot);
        self.prefetchers.remove(&slot);
    }
}
