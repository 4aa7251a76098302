//! Flags of `afar predict`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use measure::{Duration, LinkMode, LocalSize, ParseError, ShareOf};
use paging::PolicyKind;

use document::{Bandwidth, delay};

/// Predict how much slower a program gets with part of its memory far away
///
/// One run with all memory local is enough: a sample of the pages is watched, and what was seen of
/// it says how many pages would have been fetched with any local memory under any policy, and how
/// long the program would have waited for them over any network.
#[derive(Debug, Args)]
#[command(override_usage = "afar predict [OPTIONS] FILE
       afar predict [OPTIONS] [--record FILE] -- PROGRAM [ARGUMENTS]...")]
#[command(after_help = NOTES)]
#[command(group = ArgGroup::new("source").required(true).multiple(false))]
pub struct PredictFlags {
    /// What an earlier run recorded
    #[arg(value_name = "FILE", group = "source")]
    pub(crate) file: Option<PathBuf>,

    /// Record how the program uses its memory, as Parquet, to predict from it again
    #[arg(long, value_name = "FILE", requires = "program")]
    #[arg(help_heading = PROGRAM)]
    pub(crate) record: Option<PathBuf>,

    /// Memory that is local: shares, of what --of says, or sizes [default: 10%,20%,...,90%]
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    #[arg(help_heading = MEMORY)]
    pub(crate) local: Vec<LocalSize>,

    /// What a share is a share of: peak, the most that the program used, as in afar sweep; live,
    /// what is in use at each moment; or a size [default: peak]
    #[arg(long, value_name = "WHAT")]
    #[arg(help_heading = MEMORY)]
    pub(crate) of: Option<ShareOf>,

    /// How long the program takes with all memory local, where that is known better than from the
    /// run that was watched
    #[arg(long, value_name = "TIME", value_parser = above_zero)]
    #[arg(help_heading = PROGRAM)]
    pub(crate) alone: Option<Duration>,

    /// Round trips of an empty request [default: 1us,3us,5us,10us]
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = delay)]
    #[arg(help_heading = NETWORK)]
    pub(crate) rtt: Vec<Duration>,

    /// Bits per second in one direction, or none [default: 40Gbps]
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    #[arg(help_heading = NETWORK)]
    pub(crate) bandwidth: Vec<Bandwidth>,

    /// Order in which pages become remote, for the slowdown
    #[arg(long, value_name = "POLICY", value_parser = policy(), default_value = "clock")]
    #[arg(help_heading = MEMORY)]
    pub(crate) policy: PolicyKind,

    /// What transfers share
    #[arg(long, value_name = "MODE", value_parser = link(), default_value = "full-duplex")]
    #[arg(help_heading = NETWORK)]
    pub(crate) link: LinkMode,

    /// Predict although much of the program's memory stayed local and was not watched; it is said
    #[arg(long, requires = "program")]
    #[arg(help_heading = PROGRAM)]
    pub(crate) allow_unmanaged: bool,

    /// Write every point as JSON; - is standard output, in place of the tables
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each slowdown, with units in the names of columns; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Draw fetches and slowdown over local memory as SVG
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// The program to watch and its arguments
    #[arg(value_name = "PROGRAM", last = true, group = "source")]
    #[arg(value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

const MEMORY: &str = "Memory";
const NETWORK: &str = "Link to far memory";
const PROGRAM: &str = "Program";
const OUTPUT: &str = "Output";

const NOTES: &str = "\
Not seen are touches of pages among the last few that were touched, accesses of devices and of the
kernel to memory it has pinned, and what a program does otherwise because it is slower. Pages that
forked processes share with their parent are not watched in the child.

Exit status: 0 predicted; 125 afar failed; 126, 127, 3 and 4 as of afar run; 1 the program failed;
2 bad usage.

Example: afar predict --record sort.reuse -- afar workload sort --size 64MiB
         afar predict sort.reuse --local 20%,40% --rtt 2us,8us --bandwidth 25Gbps,100Gbps";

fn policy() -> impl TypedValueParser<Value = PolicyKind> {
    let names = PolicyKind::ALL.map(PolicyKind::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<PolicyKind>())
}

/// Reads how transfers share the link.
fn link() -> impl TypedValueParser<Value = LinkMode> {
    PossibleValuesParser::new(["full-duplex", "half-duplex", "per-fault"])
        .try_map(|name| name.parse::<LinkMode>())
}

/// Reads a time that is not 0.
fn above_zero(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|error: ParseError| error.to_string())?;
    if time == Duration::ZERO {
        return Err("a program takes some time: more than 0".to_owned());
    }
    Ok(time)
}
