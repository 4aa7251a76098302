//! The quantities that all of afar uses, and the records its parts exchange.
//!
//! ```text
//! text ─► Bytes, Pages, BitsPerSec, Duration, Fraction ─► Link ─► Transfer ─► Histogram ─► Run
//!                                   DelayProfile ─► Sampler ─┘
//! ```
//!
//! Invariants, mostly absences:
//! 1. Nothing here reads a file, a clock or a thread: text and numbers in, numbers and text out.
//! 2. Time is a whole number of picoseconds; sizes, rates and times are different types.
//! 3. A delay is never a private sleep: it is a reservation on a [`Link`] shared by its users.
//! 4. Every draw comes from a seed that the caller gave.

mod error;
mod number;
mod share;

mod figures;
mod fraction;
mod money;
mod quantity;
mod rate;
mod time;

mod link;
mod profile;

mod carried;
mod conservation;
mod coverage;
mod engine;
mod fault_times;
mod histogram;
mod load;
mod run;
mod workload;

pub use carried::Carried;
pub use conservation::LinkUse;
pub use coverage::{
    COVERAGE_BOUND, Coverage, ImageSummary, Invalid, InvalidKind, Loss, MEMORY_SMALL, judge,
};
pub use engine::{EngineKind, ParseEngineError};
pub use error::{ParseError, Quantity};
pub use fault_times::FaultTimes;
pub use figures::{
    BudgetHeld, FaultCounts, FaultLatency, Figures, MechanismTime, Remembered, Spins, StallCounts,
};
pub use fraction::{Fraction, LocalSize, ShareOf};
pub use histogram::{Histogram, LatencySummary};
pub use link::{Direction, Link, LinkConfig, LinkMode, Transfer};
pub use load::{LoadOperation, LoadParams, LoadProbe, LoadResults, LoadSearch, LoadShare, LoadTry};
pub use money::{Count, Money};
pub use profile::{DelayProfile, ProfileError, Sampler};
pub use quantity::{Bytes, PAGE_BYTES, Pages};
pub use rate::BitsPerSec;
pub use run::{
    Calibration, Host, InvalidRun, Params, Results, Run, RunError, RunResults, TierParams,
};
pub use time::{Duration, Instant};
pub use workload::{WorkloadInput, WorkloadOutcome, WorkloadParams, WorkloadResults};
