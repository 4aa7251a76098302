//! The ladder of far memory: pages one at a time, merged with their neighbours, and asynchronous.
//!
//! ```text
//! Cell ─► Bench (a target of its own) ─► afar run ─► times of touches, record ─► Turn ─► Runs
//!                                   └─► a bare echo, or the kernel's minor faults, beside them
//! ```
//!
//! What a run moved is checked against its record: without the proof that its pages were far, it
//! has no figure. Figures of several cells are compared within blocks.

mod bench;
mod runs;
mod step;

pub use bench::{Bench, Lack, Moved, Seen, StartError, TimeOf, Turn, on, places};
pub use runs::{Runs, cell, fetch, p50_us, rate};
pub use step::{Cell, Direction, PAGE, Rung, SPIN_MAX, Size, Step, THREADS, Way};
