//! Flags of `afar reproduce` that figures read.

use std::path::PathBuf;

use clap::Args;
use measure::{Duration, Fraction, ShareOf};

/// How a figure is measured, whichever it is.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Within two minutes: one short repetition of everything in place of three
    #[arg(long)]
    #[arg(help_heading = RUNS)]
    pub(crate) quick: bool,

    /// Directory of the picture and the record; created if missing
    #[arg(long, short, value_name = "DIR", default_value = "afar-reproduce")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) output: PathBuf,

    /// Write the record here, too; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write what was measured as rows, by the names that it has in the record; - is standard
    /// output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Share of the drive's throughput that is emulated [default: half of what this machine can
    /// serve, by a short run]
    #[arg(long, value_name = "SHARE")]
    #[arg(help_heading = RUNS)]
    pub(crate) scale: Option<Fraction>,

    /// For guz-fig6: a disk of this machine in place of the paper's drive, as afar serve takes it:
    /// file:/dev/nvme0n1, memory:SIZE or model:NAME:DISK. It is only read
    #[arg(long, value_name = "URI", conflicts_with = "scale")]
    #[arg(help_heading = RUNS)]
    pub(crate) disk: Option<String>,

    /// Host and target look for what has ended for this long before they sleep: nearer to the
    /// paper's machines, which save no power, if nothing else runs here
    #[arg(long, value_name = "TIME", default_value = "0us")]
    #[arg(help_heading = RUNS)]
    pub(crate) busy_poll: Duration,

    /// For figures of Gao et al.: a Python 3 that has the module duckdb, without which the SQL
    /// workload is left out
    #[arg(long, value_name = "PATH", default_value = "python3")]
    #[arg(help_heading = RUNS)]
    pub(crate) python: PathBuf,

    /// For programs with a share of their memory local: what it is a share of; peak, the most that
    /// a program uses, as in the papers; live, what is in use at each moment; or a size. Runs are
    /// kept apart
    #[arg(long, value_name = "WHAT", default_value = "peak")]
    #[arg(help_heading = RUNS)]
    pub(crate) of: ShareOf,

    /// Have runs of programs count of which much memory stayed local; they are told apart
    #[arg(long)]
    #[arg(help_heading = RUNS)]
    pub(crate) allow_unmanaged: bool,

    /// How long each load runs
    #[arg(long, value_name = "TIME", hide = true)]
    pub(crate) duration: Option<Duration>,
}

const RUNS: &str = "Runs";
const OUTPUT: &str = "Output";
