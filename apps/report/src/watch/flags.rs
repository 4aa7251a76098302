//! Flags of `afar watch`.

use std::path::PathBuf;

use clap::Args;

/// Show what goes on as a live page, in a browser on this machine
///
/// WHAT is the directory of a sweep (of afar sweep, or of afar sim over many settings) or one into
/// which records are written, the process id of an afar run, or the address and port of the
/// metrics of an afar serve. Without it, the page shows all runs on this machine that you may look
/// at. The page is printed as a URL; whoever knows that may look, from this machine alone. It goes
/// on when what it shows is interrupted and started again. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct WatchFlags {
    /// A directory, a process id or HOST:PORT; without it, all runs on this machine
    #[arg(value_name = "DIR|PID|HOST:PORT")]
    pub(crate) what: Option<String>,

    /// Port of the page on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// The slowdown that is good enough, for sweeps
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    pub(crate) bound: String,

    /// Write the URL as JSON; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

const NOTES: &str = "\
Examples:
  afar sweep examples/redis.toml & afar watch examples/redis.sweep
  afar watch 4711
  afar watch 127.0.0.1:9420

Exit status: 0 it was told to end; 1 what is to be watched does not answer; 2 bad usage, or there is
nothing to watch.";
