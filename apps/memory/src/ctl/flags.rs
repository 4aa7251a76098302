//! Flags of `afar ctl`.

use std::path::PathBuf;

use clap::Args;

/// Look at running programs and change their delay, bandwidth and local memory
///
/// PID is that of afar itself; list shows it. Only the user who started a run, and root, may look
/// at it or change it.
#[derive(Debug, Args)]
#[command(override_usage = "afar ctl [--json FILE] [--csv FILE] [list]
       afar ctl [--json FILE] [--csv FILE] PID show
       afar ctl [--json FILE] [--csv FILE] PID set SETTING...")]
#[command(after_help = CTL_NOTES)]
pub struct CtlFlags {
    /// Write the answer as JSON; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each tier of each run, by the names of the record; - is standard output,
    /// which then has nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// What to do; without it, list
    #[arg(value_name = "WHAT")]
    pub(crate) words: Vec<String>,
}

const CTL_NOTES: &str = "\
Settings: rtt=TIME bandwidth=RATE|none local=SIZE, of the default tier unless tier=NAME says
otherwise.

Example: afar ctl 4711 set rtt=10us local=12.5%";
