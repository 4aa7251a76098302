//! How to look at what other applications have.

use std::path::Path;

use results::live::{Progress, RunState, SweepState, TargetView};

/// What a target does, one interval after the other; or why that is not known.
pub type TargetLooks = Box<dyn FnMut() -> Result<TargetView, String> + Send>;

/// How to look at what other applications have. Errors are sentences.
#[derive(Debug, Clone, Copy)]
pub struct Sources {
    /// The directory of a sweep.
    pub sweep: fn(&Path) -> Result<SweepState, String>,
    /// The directory of simulations over many settings.
    pub simulations: fn(&Path) -> Result<Progress, String>,
    /// The run with a process id.
    pub run: fn(u32) -> Result<RunState, String>,
    /// All runs.
    pub runs: fn() -> Vec<RunState>,
    /// The target whose metrics are at an address.
    pub target: fn(&str) -> Result<TargetLooks, String>,
}
