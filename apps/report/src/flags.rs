//! Flags of `afar report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How answers are printed where no page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Md,
}

use super::error::ReportError;

/// Say what records come to, in words and pictures
///
/// Takes what other commands have written: the directory of a sweep, what it prints with --json or
/// --find, afar run --json and --record, afar load, bench, sim, loop, plan and reproduce. Each
/// becomes a section: first the answer in words, then pictures with the table behind each. The page
/// is one file that works without a network. Without a file to write, the answers are printed.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct ReportFlags {
    /// Records, or directories of afar sweep and of afar sim --output
    #[arg(value_name = "RECORD", required = true)]
    pub(crate) records: Vec<PathBuf>,

    /// Write a page (HTML); - is standard output
    #[arg(long, short, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,

    /// Write each picture as SVG into a directory; created if missing
    #[arg(long, value_name = "DIR")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// Write each picture as PNG into a directory; created if missing
    #[arg(long, value_name = "DIR")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) png: Option<PathBuf>,

    /// Write answers, figures and tables as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// How answers are printed: text, or Markdown for a pull request
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) format: Format,

    /// Compare records of the same kind with the first of them, figure by figure
    #[arg(long)]
    #[arg(help_heading = ANSWER)]
    pub(crate) compare: bool,

    /// The slowdown that is good enough; what --find has found has its own
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    #[arg(help_heading = ANSWER)]
    pub(crate) bound: String,

    /// Title of the page
    #[arg(long, value_name = "TEXT")]
    #[arg(help_heading = ANSWER)]
    pub(crate) title: Option<String>,
}

const ANSWER: &str = "Answer";
const OUTPUT: &str = "Output";

const NOTES: &str = "\
Examples:
  afar sweep examples/redis.toml && afar report examples/redis.sweep -o redis.html
  afar sweep examples/redis.toml --find 5% --json need.json && afar report need.json
  afar report run.json faults.parquet -o run.html
  afar report --compare before.json after.json -o both.html --png pictures
  afar report --format md redis.json > summary.md

Exit status: 0 written; 1 a picture could not be drawn; 2 bad usage, or no record.";

/// The bound that a user gives as a share: `5%` is a ratio of 1.05.
///
/// # Errors
/// If `text` is no share above 0.
pub(super) fn bound(text: &str) -> Result<f64, ReportError> {
    let share: Option<f64> = text.strip_suffix('%').and_then(|share| share.trim().parse().ok());
    let share = share.filter(|share| share.is_finite() && *share > 0.0);
    share.map(|share| 1.0 + share / 100.0).ok_or_else(|| ReportError::Bound(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_shares() {
        assert_eq!(bound("5%").ok(), Some(1.05));
        for wrong in ["5", "0%", "-1%", "x%", "%", "inf%"] {
            assert!(bound(wrong).is_err(), "{wrong}");
        }
    }
}
