//! Frames by budget and tier, in a table that the trap, the supervisor and the throttle share;
//! `struct lane` of `bpf/shared.h` is the same in C.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use sys::memory::SharedView;

/// Words of one lane.
pub(crate) const LANE_WORDS: usize = 8;

/// The lanes of all budgets, by budget and tier.
#[derive(Debug, Clone)]
pub struct Lanes {
    view: Arc<SharedView>,
    first: usize,
}

impl Lanes {
    /// The lanes that begin at word `first` of `view`.
    pub const fn of(view: Arc<SharedView>, first: usize) -> Self {
        Self { view, first }
    }

    /// The lane with this number in the table.
    pub fn lane(&self, number: usize) -> Lane<'_> {
        Lane::of(&self.view, self.first, number)
    }
}

/// The frames of one budget in one tier.
pub struct Lane<'a> {
    words: &'a [AtomicU64],
    halves: &'a [AtomicU32],
}

impl<'a> Lane<'a> {
    /// Lane `number` of those that begin at word `first` of `view`.
    pub fn of(view: &'a SharedView, first: usize, number: usize) -> Self {
        let first = first + number * LANE_WORDS;
        let words = &view.words64()[first..][..LANE_WORDS];
        Self { words, halves: &view.words32()[first * 2..][..LANE_WORDS * 2] }
    }

    /// Frames without a page; below zero while the supervisor is late.
    pub fn free(&self) -> i64 {
        self.words[0].load(Ordering::Acquire).cast_signed()
    }

    /// Whether faults went on without a frame, and pages can be evicted.
    pub fn is_short(&self) -> bool {
        self.free() < 0 && !self.is_unrelieved()
    }

    /// Adds frames (or takes them, if negative).
    pub fn credit(&self, frames: i64) {
        self.words[0].fetch_add(frames.cast_unsigned(), Ordering::AcqRel);
    }

    /// The doorbell rings when fewer frames than this can be had.
    pub fn set_low(&self, low: i64) {
        self.words[1].store(low.cast_unsigned(), Ordering::Release);
    }

    /// Sets how many frames are free; below zero when more are in use than there are.
    pub fn set_free(&self, free: i64) {
        self.words[0].store(free.cast_unsigned(), Ordering::Release);
    }

    /// How many faults found no frame.
    pub fn stall_count(&self) -> &'a AtomicU64 {
        &self.words[2]
    }

    /// How long faults have waited for a frame in all, in nanoseconds.
    pub fn stall_ns(&self) -> &'a AtomicU64 {
        &self.words[3]
    }

    /// The longest that a fault has waited for a frame, in nanoseconds.
    pub fn stall_max_ns(&self) -> &'a AtomicU64 {
        &self.words[4]
    }

    /// Whether no page can be evicted.
    pub fn is_unrelieved(&self) -> bool {
        self.words[5].load(Ordering::Acquire) != 0
    }

    /// Sets whether no page can be evicted: then no fault waits for a frame.
    pub fn set_unrelieved(&self, unrelieved: bool) {
        self.words[5].store(u64::from(unrelieved), Ordering::Release);
    }

    /// How many entries of the ring of outgoing pages were taken since the start, modulo 2³².
    pub fn taken(&self) -> &'a AtomicU32 {
        &self.halves[12]
    }

    /// How many entries were placed, modulo 2³².
    pub fn placed(&self) -> &'a AtomicU32 {
        &self.halves[13]
    }

    /// The node that is the ring of outgoing pages; 0 for none.
    pub fn outgoing(&self) -> &'a AtomicU32 {
        &self.halves[14]
    }
}
