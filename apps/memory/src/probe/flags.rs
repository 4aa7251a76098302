//! Flags of `afar probe`.

use std::path::PathBuf;

use clap::Args;

/// Touch pages one after another and time each touch
///
/// What afar measures the cost of a fault with; under afar run it sees the delays from inside.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct ProbeFlags {
    /// Pages of 4096 bytes
    #[arg(long, value_name = "NUMBER", default_value_t = 2048)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    pub(crate) pages: u64,

    /// Touches that are timed, after every page has been touched once
    #[arg(long, value_name = "NUMBER", default_value_t = 2048)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    pub(crate) touches: u64,

    /// Write to the pages, in place of reading
    #[arg(long)]
    pub(crate) write: bool,

    /// Read all of a page at each touch, and write to half of the pages, 16 neighbours at a time;
    /// tiers in turn
    #[arg(long, conflicts_with_all = ["write", "first"], requires = "tiers")]
    pub(crate) whole: bool,

    /// Read so many words here and there in 8 MiB of other memory before each touch, as a program
    /// that computes does; part of the touch's time
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "whole")]
    pub(crate) between: u64,

    /// Read those words one after another
    #[arg(long, requires = "between")]
    pub(crate) in_order: bool,

    /// Time the first touch of each page, which writes, and nothing else
    #[arg(long, conflicts_with_all = ["touches", "tiers"])]
    pub(crate) first: bool,

    /// Time minor faults: pages of a memory file of which another thread drops all but the last
    /// quarter that was touched, as far memory must; what a page's return costs without afar
    #[arg(long, conflicts_with_all = ["first", "write", "tiers"])]
    pub(crate) minor: bool,

    /// Touch the pages in a random order, the same again and again, in place of one after another
    #[arg(long, conflicts_with_all = ["first", "minor", "whole"])]
    pub(crate) shuffled: bool,

    /// Touch them by so many threads, each a part of the pages and touches, all at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(conflicts_with_all = ["minor", "whole"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) threads: u64,

    /// Print every sample, too
    #[arg(long)]
    pub(crate) raw: bool,

    /// Touch as many pages of each of these tiers, one tier after another
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) tiers: Vec<String>,

    /// Where to write the answer, in place of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
