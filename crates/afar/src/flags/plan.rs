//! Flags of `afar plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Say what to buy, where to put it, and when not to disaggregate
///
/// From demand, prices and what machines can do to a bill. Nothing is run or measured.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct PlanFlags {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    Cost(CostFlags),
    Latency(LatencyFlags),
}

const NOTES: &str = "\
Examples:
  afar plan cost
  afar plan latency --set sharing.load=50%";

/// Compare servers that have flash of their own with pools of flash and of servers
///
/// By Eq. 1 and 2 of Klimovic et al. (EuroSys 2016, §4.3). Without a file it is their example.
/// Says what each of the two has to be bought for, and what would change the verdict.
#[derive(Debug, Args)]
#[command(after_help = COST_NOTES)]
pub(crate) struct CostFlags {
    /// Servers, prices and demand, as TOML [default: the example of the paper]
    #[arg(value_name = "FILE")]
    pub(crate) experiment: Option<PathBuf>,

    /// Set a value of the file to another, such as price.tax=100 or remote.drop=guz-nvmeof; may be
    /// given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Show the savings when storage and compute grow by other factors (Fig. 8 of the paper),
    /// from a deployment in balance; demand does not matter then
    #[arg(long)]
    pub(crate) map: bool,

    /// Largest factor of the map
    #[arg(long, value_name = "NUMBER", default_value_t = 10, requires = "map")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) axis: u32,

    /// Write the map as a picture; - is standard output
    #[arg(long, value_name = "FILE", requires = "map")]
    pub(crate) svg: Option<PathBuf>,

    /// Write the map, a row for each pair of factors; - is standard output
    #[arg(long, value_name = "FILE", requires = "map")]
    pub(crate) csv: Option<PathBuf>,

    /// Write everything as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Print the file that would be used, to begin one's own with
    #[arg(long, conflicts_with_all = ["set", "map", "json"])]
    pub(crate) print: bool,
}

const COST_NOTES: &str = "\
Begin a file with: afar plan cost --print > cost.toml

Keys of a file: currency; server.capacity, iops, traffic, qps, memory, network (what a server has;
what is not said is no limit); price, power (watts) and space (rack units) .flash, .compute, .tax;
facility.per_watt, per_unit; remote.drop (a share, or klimovic-iscsi, guz-nvmeof, guz-iscsi);
buy.whole, spares; and what is wanted: [demand], or a [[tenant]] each, with name, the keys of
server, workload (A to D of the paper's Table 1: requests and traffic by capacity), growth =
{ qps = \"5%\" } with periods, or series = \"FILE.csv\" with a column for each key and a row for
each period.

Servers with flash of their own are bought for each tenant's peak, pools for the peak of all
together.

Examples:
  afar plan cost --set demand.qps=20M
  afar plan cost --map --svg map.svg

Exit status: 0 there is an answer; 2 bad usage or a file that cannot be.";

/// Add up what a remote page costs by parts, and say which targets that meets
///
/// Without a file it is Table 4 of Gao et al. (OSDI 2016): software, NIC, switches, distance and
/// transmission, in a rack and between racks. Waiting on the slowest link comes on top (sharing).
#[derive(Debug, Args)]
#[command(after_help = LATENCY_NOTES)]
pub(crate) struct LatencyFlags {
    /// Designs, scopes, rates and targets, as TOML [default: the table of the paper]
    #[arg(value_name = "FILE")]
    pub(crate) experiment: Option<PathBuf>,

    /// Set page or a value of sharing to another, such as sharing.load=50%; may be given several
    /// times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// A further target: what a program needs by afar sweep --find --json; may be given several
    /// times
    #[arg(long, value_name = "FILE")]
    pub(crate) requirement: Vec<PathBuf>,

    /// Write everything as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Print the file that would be used, to begin one's own with
    #[arg(long, conflicts_with_all = ["set", "requirement", "json"])]
    pub(crate) print: bool,
}

const LATENCY_NOTES: &str = "\
Begin a file with: afar plan latency --print > latency.toml

Keys of a file: page; rates of the slowest link; [[design]] and [[scope]] with name and parts, each
{ name, time, count }; [[target]] with name and rtt. [sharing] says how that link is shared: load, a
share of its time (M/D/1), with batch, pages that come together, or with sizes = [{ size, share }],
transfers that differ (M/G/1); or clients that think for a mean time of think and then fetch a page,
one at a time each (simulated, within half a per cent). Waits are means.

Exit status: 0 there is an answer; 2 bad usage or a file that cannot be.";
