//! The result records of afar: what a command writes with `--json`, and what others read.
//!
//! ```text
//! sweep, loop ─► Findings, Requirements, ClosedLoop ─┐
//! sim ─► Simulation, Simulations, Sensitivity ───────┤
//! predict ─► Prediction ─────────────────────────────┤
//! run --validate ─► Validation ──────────────────────┤
//! run --remember ─► PageOrder of `order` ────────────┤
//! reproduce ─► Reproduction ─────────────────────────┤
//! bench of several disks ─► DiskComparison ───────────┤
//! torture ─► Torture ────────────────────────────────┤
//! kv serve ─► KvServed of `served` ──────────────────┤
//! doctor ─► Checkup ─────────────────────────────────┤
//! version ─► About ──────────────────────────────────┤
//! ctl, top ─► RunState, TargetView of `live` ────────┤
//! watch ─► Watching ─────────────────────────────────┤
//! plan ─► Bill, Placement and others of `plan` ──────┴► JSON ─► report, plan
//! ```
//!
//! Invariants:
//! 1. A record is one type, written and read: what the writer renames, the reader cannot miss.
//! 2. A record states its schema and version; a reader refuses any other, and unknown fields.
//! 3. Where nothing may be concluded, a record has the reason in place of the numbers.

pub mod about;
pub mod disks;
pub mod doctor;
pub mod live;
pub mod order;
pub mod plan;
pub mod prediction;
pub mod report;
pub mod reproduced;
pub mod served;
pub mod sim;
pub mod torture;
pub mod validity;

mod closed_loop;
mod estimate;
mod findings;
mod record;
mod requirement;
mod simulated;
mod validation;

pub use closed_loop::{ClosedLoop, LoopRound};
pub use estimate::{Estimate, Interval, Verdict};
pub use findings::{CellKind, Finding, Findings, Native, Outlier, SWEEP_SCHEMA};
pub use record::{ReadError, Record, json_text, read, read_body, read_value, write};
pub use requirement::{REQUIREMENTS_FILE, Requirement, Requirements, Side, Standing};
pub use simulated::{BinFigures, Busiest, Deepest, Figures, Measured, Slowdowns, Spread, Steady};
pub use validation::{Agreement, Emulated, FetchTimes, SLOWDOWN_MIN, ValidatedSide, Validation};
