//! Experiments: cells that run again and again in shuffled blocks, and what their runs say.
//!
//! ```text
//! cells ─► order of a block ─► run ─► noise ─► attempts ─► journal ─► ratios ─► stats ─►
//!     results::Estimate                                            looks ─────┘
//! ```
//!
//! Invariants:
//! 1. An interval is given only where it holds the true median in at least 93 % of experiments,
//!    whatever the distribution, and however often the runs were looked at.
//! 2. A verdict follows from a whole interval, never from a median.
//! 3. A run during which the machine had other work is known as such.
//! 4. A run in the journal is on the disk, whole, and is not run again.
//! 5. One run at a time is measured on a machine; runs on unequal machines are not compared.

mod attempts;
pub mod fit;
pub mod journal;
mod log;
mod looks;
pub mod machine;
pub mod noise;
mod order;
mod ratios;
pub mod stats;

pub use attempts::{Measured, least_disturbed};
pub use log::Log;
pub use looks::{COVERAGE_MIN, Looks};
pub use order::order;
pub use ratios::Ratios;
