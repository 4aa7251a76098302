//! `afar plan`: from a file with demand, prices and machines to an answer. Runs nothing.
//!
//! ```text
//! FILE, --set ─► Source ─► values with units ─► crate planner ─► table, JSON, CSV, picture
//! ```

mod amounts;
pub(crate) mod csv;
mod grid;
mod picture;
pub(crate) mod source;

mod admit;
mod cost;
mod fleet;
mod latency;
mod place;
mod pool;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::failure::{Class, Classed, Failure};
use crate::flags::{PlanCommand, PlanFlags};
use crate::output::Output;
use crate::terminal;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("{}: {source}; give a file that can be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{place}: {source}")]
    Table { place: String, source: records::RecordError },
    /// With file, line and column.
    #[error("{place}: {message}")]
    At { place: String, message: String },
    #[error("{place}: {source}")]
    Cost { place: String, source: planner::cost::CostError },
    #[error("{place}: {source}")]
    Latency { place: String, source: planner::latency::LatencyError },
    #[error("{place}: {source}")]
    Place { place: String, source: planner::place::PlaceError },
    #[error("{place}: {source}")]
    Pool { place: String, source: planner::pool::PoolError },
    #[error("{place}: {source}; install sqlite3, which reads it, e.g. apt-get install sqlite3")]
    Sqlite { place: String, source: std::io::Error },
    #[error("there is nobody; give --synthetic NUMBER or a trace: --azure, --google or --alibaba")]
    Nobody,
    #[error("--lose-server {0}: nobody is on server {0}; give one of the file of --now")]
    NoServer(u32),
    #[cfg(not(feature = "highs"))]
    #[error(
        "--exact needs HiGHS, without which this afar was built; build it with --features highs, \
         or leave it out: up to 24 tenants are proven without"
    )]
    NoSolver,
    #[error("--set {0:?}: write KEY=VALUE, such as price.tax=100")]
    Set(String),
}

impl Classed for PlanError {
    fn class(&self) -> Class {
        Class::Usage
    }
}

/// Runs `afar plan`.
///
/// # Errors
/// When a file cannot be what was meant, or a result cannot be written.
pub(crate) fn plan(flags: &PlanFlags) -> Result<ExitCode, Failure> {
    match &flags.command {
        PlanCommand::Cost(flags) => cost::cost(flags),
        PlanCommand::Latency(flags) => latency::latency(flags),
        PlanCommand::Admit(flags) => admit::admit(flags),
        PlanCommand::Place(flags) => place::place(flags),
        PlanCommand::Fleet(flags) => fleet::fleet(flags),
        PlanCommand::Pool(flags) => pool::pool(flags),
    }
}

/// An answer in several forms.
struct Written<'a> {
    /// For standard output, unless a file is written there.
    table: String,
    /// Where they were asked to go, if they were, and what is in them.
    files: Vec<(&'a Option<PathBuf>, Vec<u8>)>,
}

/// What a file is to contain, if it was asked for.
fn when(path: &Option<PathBuf>, text: impl FnOnce() -> String) -> (&Option<PathBuf>, Vec<u8>) {
    (path, if path.is_some() { text().into_bytes() } else { Vec::new() })
}

/// Opens every file before the first is written.
fn write(written: Written<'_>) -> Result<ExitCode, Failure> {
    let is_stdout = |path: &Path| path.as_os_str() == "-";
    let mut outputs = Vec::new();
    let mut is_answered = false;
    for (path, bytes) in written.files {
        let Some(path) = path else { continue };
        is_answered |= is_stdout(path);
        outputs.push((Output::open(path)?, bytes));
    }
    for (output, bytes) in outputs {
        output.write_bytes(&bytes)?;
    }
    if !is_answered {
        terminal::answer(&written.table)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A record as a file.
pub(crate) fn json_text(value: &serde_json::Value) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("plain data has a JSON form") + "\n"
}
