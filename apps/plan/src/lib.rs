//! `afar plan`: from a file with demand, prices and machines to an answer. Runs nothing.
//!
//! ```text
//! FILE, --set ─► Source ─► values with units ─► crate planner ─► table, JSON, CSV, picture
//! ```

mod amounts;
mod error;
mod flags;
mod grid;
mod picture;
mod written;

mod admit;
mod cost;
mod fleet;
mod latency;
mod place;
mod pool;

use std::process::ExitCode;

use console::Failure;

use flags::PlanCommand;
pub use flags::PlanFlags;

use written::{Written, when, write};

pub(crate) use error::PlanError;

/// Runs `afar plan`.
///
/// # Errors
/// If a file is invalid, or a result cannot be written.
pub fn plan(flags: &PlanFlags) -> Result<ExitCode, Failure> {
    match &flags.command {
        PlanCommand::Cost(flags) => cost::cost(flags),
        PlanCommand::Latency(flags) => latency::latency(flags),
        PlanCommand::Admit(flags) => admit::admit(flags),
        PlanCommand::Place(flags) => place::place(flags),
        PlanCommand::Fleet(flags) => fleet::fleet(flags),
        PlanCommand::Pool(flags) => pool::pool(flags),
    }
}
