//! How to look at what other applications have.

use std::path::Path;

use results::live::{Progress, RunState, SweepState, TargetView};

/// Looks at a target: what it did in one interval after the other, or why that is unknown.
pub type TargetLooks = Box<dyn FnMut() -> Result<TargetView, String> + Send>;

/// How to look at what other applications have. Errors are sentences.
#[derive(Debug, Clone, Copy)]
pub struct Sources {
    /// Reads the directory of a sweep.
    pub sweep: fn(&Path) -> Result<SweepState, String>,
    /// Reads the directory of simulations over many settings.
    pub simulations: fn(&Path) -> Result<Progress, String>,
    /// Looks at the run with a process id.
    pub run: fn(u32) -> Result<RunState, String>,
    /// Looks at all runs.
    pub runs: fn() -> Vec<RunState>,
    /// Connects to the target whose metrics are at an address.
    pub target: fn(&str) -> Result<TargetLooks, String>,
}
