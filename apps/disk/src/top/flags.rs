//! Flags of `afar top`.

use std::path::PathBuf;

use clap::Args;
use measure::Duration;

/// Watch what a target does, by its metrics
///
/// A row for each namespace: requests and megabytes per second, the times that requests took in the
/// last interval (from taking a command to answering it, in the target), and requests under way; a
/// row for each shard. The target is one that was started with afar serve --metrics.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct TopFlags {
    /// Where the target's metrics are
    #[arg(value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9420")]
    pub(crate) address: String,

    /// Time between two looks: 100ms or more
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: Duration,

    /// Print what has been done in one interval, and end
    #[arg(long)]
    pub(crate) once: bool,

    /// Write JSON, a line for each interval; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// With --once: write a row for each namespace, shard and host, by the names of the record; -
    /// is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", requires = "once")]
    pub(crate) csv: Option<PathBuf>,
}

const NOTES: &str = "\
Exit status: 0 it was told to end, or with --once has printed; 1 the target does not answer; 2 bad
usage.

Example: afar top 10.0.0.2:9420 --once --json -";
