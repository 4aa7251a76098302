//! Flags of `afar plan`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use measure::{BitsPerSec, Bytes, Duration};

use document::seed;

/// Say what to buy, where to put it, and when not to disaggregate
///
/// From demand, prices and what machines can do to a bill. Nothing is run or measured.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct PlanFlags {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    Cost(CostFlags),
    Latency(LatencyFlags),
    Place(PlaceFlags),
    Admit(AdmitFlags),
    Pool(PoolFlags),
    Fleet(FleetFlags),
}

const NOTES: &str = "\
Examples:
  afar plan cost
  afar plan latency --set sharing.load=50%
  afar plan place --synthetic 1000
  afar plan pool";

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
    #[arg(long, help_heading = MAP)]
    pub(crate) map: bool,

    /// Largest factor of the map
    #[arg(long, value_name = "NUMBER", default_value_t = 10, requires = "map")]
    #[arg(help_heading = MAP)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) axis: u32,

    /// Write the bill as bars, or the map, as a picture; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// Write the map, a row for each pair of factors; - is standard output
    #[arg(long, value_name = "FILE", requires = "map")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write everything as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Print the file that would be used, to begin one's own with
    #[arg(long, conflicts_with_all = ["set", "map", "json"])]
    #[arg(help_heading = OUTPUT)]
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
each period; or tenants = \"FILE.csv\" with columns tenant, period and keys. Files may be Parquet.

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

    /// A further target: the round trip that afar sweep --find has found, by the directory of the
    /// sweep or by what --json has written; may be given several times
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) sweep: Vec<PathBuf>,

    /// Write round trips as bars of their parts, as a picture; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// Write a row for each way to fetch a page; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write everything as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Print the file that would be used, to begin one's own with
    #[arg(long, conflicts_with_all = ["set", "sweep", "json", "csv", "svg"])]
    #[arg(help_heading = OUTPUT)]
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

/// Find servers for tenants, as few as can be
///
/// Says beside how many servers it needs how many every placement needs at least. Few tenants are
/// placed with the fewest servers there can be, proven by branch and bound. The same input gives
/// the same placement.
#[derive(Debug, Args)]
#[command(after_help = PLACE_NOTES)]
pub(crate) struct PlaceFlags {
    /// Servers and tenants, as TOML
    #[arg(value_name = "FILE", required_unless_present_any = ["synthetic", "print"])]
    pub(crate) experiment: Option<PathBuf>,

    /// Make up so many tenants, with published shapes, in place of a file
    #[arg(long, value_name = "NUMBER", conflicts_with = "experiment")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    #[arg(help_heading = TENANTS)]
    pub(crate) synthetic: Option<u32>,

    /// Seed of what is made up
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = seed)]
    #[arg(conflicts_with = "experiment", help_heading = TENANTS)]
    pub(crate) seed: u64,

    /// Where tenants are now, as --csv has written it: those who can stay do, and what moves is
    /// listed
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = MOVES)]
    pub(crate) now: Option<PathBuf>,

    /// What would be without a server, by its number; may be given several times
    #[arg(long, value_name = "SERVER", requires = "now")]
    #[arg(help_heading = MOVES)]
    pub(crate) lose_server: Vec<u32>,

    /// What would be with another tenant: name=x,capacity=1TB,iops=5k; may be given several times
    #[arg(long, value_name = "TENANT")]
    #[arg(help_heading = TENANTS)]
    pub(crate) add_tenant: Vec<String>,

    /// Have HiGHS look for fewer servers, or for the proof that there are none, for at most this
    /// long: for some hundreds of tenants, in an afar built with --features highs [default: up to
    /// 24 are proven anyway]
    #[arg(long, value_name = "TIME", conflicts_with = "now", help_heading = SEARCH)]
    pub(crate) exact: Option<Duration>,

    /// Bytes that may move so that servers are free
    #[arg(long, value_name = "SIZE", default_value = "0", requires = "now")]
    #[arg(help_heading = MOVES)]
    pub(crate) move_at_most: Bytes,

    /// Rate at which tenants move
    #[arg(long, value_name = "RATE", default_value = "1Gb/s", requires = "now")]
    #[arg(help_heading = MOVES)]
    pub(crate) move_rate: BitsPerSec,

    /// Write the placement, a row for each replica, as Parquet if the name ends in .parquet; - is
    /// standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write how full each server is as a picture; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// Write everything as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Print a file to begin one's own with
    #[arg(long, conflicts_with_all = ["experiment", "synthetic", "now", "csv", "json", "svg"])]
    #[arg(help_heading = OUTPUT)]
    pub(crate) print: bool,
}

const TENANTS: &str = "Tenants";
const MAP: &str = "Map";
const SEARCH: &str = "Search";
const MOVES: &str = "From one placement to another";
const OUTPUT: &str = "Output";

const PLACE_NOTES: &str = "\
Begin a file with: afar plan place --print > place.toml

Keys of a file: server.capacity, iops, traffic, qps, memory, network (what is not said is no limit);
pool.count (servers there are), racks (server i is in rack i mod racks), tenants_max (of a server);
[[tenant]] with name, the keys of server, workload (A to D), replicas (each in another rack), with
(the tenant on whose servers it must be), apart (no two with the same word on a server), bursty (it
writes in bursts), tail (it has been promised a tail of read latencies: at most one bursty writer on
its servers), latency (the round trip it needs) with rack (where its program is: if only that rack
is near enough it goes there); or tenants = \"FILE.csv\", which may be Parquet, with a column for
each of these. rtt.rack and rtt.datacenter are round trips to a server in the same rack and to any
[default: RDMA at 40 Gb/s by Gao et al. 2016, Table 4]; price.server and price.moved (of a terabyte)
say what a migration is worth.

Examples:
  afar plan place --synthetic 10000
  afar plan place place.toml --csv now.csv
  afar plan place place.toml --now now.csv --lose-server 2

Exit status: 0 there is a placement; 2 there is none, bad usage, or a file that cannot be.";

/// Say which tenants may share a flash device, and why others may not
///
/// A write costs as many reads as make the measured tails of all mixes lie on one curve (the model
/// of ReFlex); a promised tail is kept below the load at which that curve passes it. Tenants are
/// judged in their order, and nobody comes in at the cost of one who is in.
#[derive(Debug, Args)]
#[command(after_help = ADMIT_NOTES)]
pub(crate) struct AdmitFlags {
    /// The device and its tenants, as TOML
    #[arg(value_name = "FILE", required_unless_present = "print")]
    pub(crate) experiment: Option<PathBuf>,

    /// Write the curve and how far it is used as a picture; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// Write a row for each tenant; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write everything as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Print a file to begin one's own with
    #[arg(long, conflicts_with_all = ["experiment", "json", "csv", "svg"])]
    #[arg(help_heading = OUTPUT)]
    pub(crate) print: bool,
}

const ADMIT_NOTES: &str = "\
Begin a file with: afar plan admit --print > admit.toml

Keys of a file: device.points, a list of { reads, writes, p95 } that were measured, with requests
per second, or device.records, files of afar bench --sweep --json, of fio's JSON, or of CSV that
begins with reads,writes,p95; device.cores that serve it, each three tenants (Klimovic et al. 2016,
§4.2); device.read and write, how long one keeps it busy, to know how long requests wait for one
another (M/G/1); [[tenant]] with name, reads and writes per second, p95 (the tail it is promised, if
it is) and bursty (it writes in bursts; beside a promised tail there is at most one such).

Exit status: 0 there is an answer; 2 bad usage or a file that cannot be.";

/// Say how much memory servers need of their own, and how large a pool beside them
///
/// From how much programs are slowed down by the share of their memory that is local, as afar sweep
/// measures it, and from what they want over time. Every program stays under its bound; memory of
/// servers and pools is what is cheapest. Without a file it is an example.
#[derive(Debug, Args)]
#[command(after_help = POOL_NOTES)]
pub(crate) struct PoolFlags {
    /// Programs, demand and prices, as TOML [default: an example]
    #[arg(value_name = "FILE")]
    pub(crate) experiment: Option<PathBuf>,

    /// Set a value of server, pool or price to another, such as price.port=0; may be given several
    /// times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Add a program with the curve that afar predict --json has written here, and with the memory
    /// that it used; may be given several times. Without FILE there are no other programs
    #[arg(long, value_name = "FILE", help_heading = PREDICTED)]
    pub(crate) predict: Vec<PathBuf>,

    /// The network, where a prediction is of several: rtt=5us; may be given several times
    #[arg(long, value_name = "AXIS=VALUE", requires = "predict")]
    #[arg(help_heading = PREDICTED)]
    pub(crate) network: Vec<String>,

    /// How much slower each of these programs may be
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = slower)]
    #[arg(help_heading = PREDICTED, requires = "predict")]
    pub(crate) bound: f64,

    /// How many servers run each of these programs
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = PREDICTED)]
    #[arg(requires = "predict")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) servers: u32,

    /// Write the memory in all by the memory of a server as a picture; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// Write the same as rows; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write everything as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Print the file that would be used, to begin one's own with
    #[arg(long, conflicts_with_all = ["set", "json", "csv", "svg"])]
    #[arg(help_heading = OUTPUT)]
    pub(crate) print: bool,
}

const PREDICTED: &str = "Predicted programs";

/// A bound on a slowdown, as a share of the time without.
fn slower(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    let share = percent.filter(|percent| (0.0..=100_000.0).contains(percent));
    share.map(|percent| percent / 100.0).ok_or_else(|| "give a share, such as 5%".to_owned())
}

const POOL_NOTES: &str = "\
Begin a file with: afar plan pool --print > pool.toml

Keys of a file: currency; server.step (memory of a server is a multiple of it); pool.step, servers
(that share a pool; all if it is not said); price.local, pool (of a gibibyte), port (of a server);
[[program]] with name, bound (the slowdown it may have), and its curve, a list of { local,
slowdown }, or sweep = \"FILE\", what afar sweep has written with --json or --csv, or afar predict
with --json, with where = [\"rtt=5us\"] if it has more axes than local. What programs want: memory
on servers of their own, with low (the share of it that the quietest hour has) and peak (an hour);
or demand = \"FILE.csv\" with the columns server, period, program, memory, where [[program]] named *
stands for all others.

Where a slowdown was measured with an interval, its upper end counts. Between two points it is taken
to be on the line between them, and below the least share that was measured nothing is promised.
Without prices a byte in a pool costs as much as one in a server.

Examples:
  afar sweep redis.toml --json redis.json
  afar plan pool pool.toml --svg pool.svg
  afar predict sort.reuse --json sort.json
  afar plan pool --predict sort.json --network rtt=5us --bound 10% --servers 8

Exit status: 0 there is an answer; 2 bad usage or a file that cannot be.";

/// Turn a trace of a cluster, or a seed, into files that the other plans read
///
/// Hour by hour what tenants want: for afar plan place everybody who is there in the busiest hour,
/// for afar plan cost what each tenant wants over time, for afar plan pool the memory of each
/// server. Made-up tenants have sizes with a heavy tail and days of their own, as published.
#[derive(Debug, Args)]
#[command(after_help = FLEET_NOTES)]
#[command(group = ArgGroup::new("source"))]
pub(crate) struct FleetFlags {
    /// Make up so many tenants
    #[arg(long, value_name = "NUMBER", group = "source")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    #[arg(help_heading = TENANTS)]
    pub(crate) synthetic: Option<u32>,

    /// Azure's trace for packing of 2020: packing_trace_zone_a_v1.sqlite
    #[arg(long, value_name = "FILE", group = "source")]
    #[arg(help_heading = TENANTS)]
    pub(crate) azure: Option<PathBuf>,

    /// Task events of Google's trace of 2011, unpacked CSV; several in their order
    #[arg(long, value_name = "FILE", group = "source", num_args = 1..)]
    #[arg(help_heading = TENANTS)]
    pub(crate) google: Vec<PathBuf>,

    /// Containers of Alibaba's trace of 2018: container_meta.csv
    #[arg(long, value_name = "FILE", group = "source")]
    #[arg(help_heading = TENANTS)]
    pub(crate) alibaba: Option<PathBuf>,

    /// Seed of what is made up
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = seed)]
    #[arg(help_heading = DAYS)]
    pub(crate) seed: u64,

    /// Hours that are made up
    #[arg(long, value_name = "NUMBER", default_value_t = 24, requires = "synthetic")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=8_760))]
    #[arg(help_heading = DAYS)]
    pub(crate) hours: u32,

    /// Kind of machine of Azure's trace [default: that with most requests]
    #[arg(long, value_name = "NUMBER", requires = "azure")]
    #[arg(help_heading = DAYS)]
    pub(crate) machine: Option<u64>,

    /// What a machine has, such as memory=256GiB,capacity=4TB: traces say shares of it
    #[arg(long, value_name = "AMOUNTS")]
    #[arg(help_heading = DAYS)]
    pub(crate) server: Option<String>,

    /// Write who is there in the busiest hour; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) tenants: Option<PathBuf>,

    /// Write what each tenant wants by hour; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) series: Option<PathBuf>,

    /// Write what each tenant wants of each server's memory by hour; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) memory: Option<PathBuf>,

    /// Write what all want by hour as a picture; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// Write a summary as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,
}

const DAYS: &str = "Hours and machines";

const FLEET_NOTES: &str = "\
Tables are CSV, or Parquet if their name ends in .parquet. In traces processors become qps, in
millionths of a machine's; disks become capacity. Hours are looked at as they begin: who comes and
goes between two is only counted. Azure's trace does not say which machine somebody is on; there
everybody takes the next machine with room, as do tenants that are made up. It is read by sqlite3,
which has to be installed.

Made-up tenants: capacity by a bounded Pareto law, requests by Table 1 of Klimovic et al. 2016, days
by the hourly fits of Atikoglu et al. 2012 (ETC); half of the memory follows the day.

Examples:
  afar plan fleet --synthetic 500 --memory memory.parquet --series series.csv
  afar plan fleet --azure packing_trace_zone_a_v1.sqlite --tenants vms.csv

Exit status: 0 files are written; 2 bad usage, or a trace that cannot be.";
