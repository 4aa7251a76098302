//! Flags of `afar point`, which an engine runs on the machine that it has chosen.

use std::path::PathBuf;

use clap::Args;

/// Run points of a sweep whose directory is there
///
/// What --on has engines run: each point that is not there yet is run, and kept in the directory.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct PointFlags {
    /// The directory of the sweep
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Points, as the file points.jsonl names them
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
}
