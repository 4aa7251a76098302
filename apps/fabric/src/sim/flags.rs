//! Flags of `afar sim`.

use std::path::{Path, PathBuf};

use clap::Args;
use dispatch::Place;

use crate::sim::knobs::KnobFlags;

/// Simulate a datacenter network, packet by packet
///
/// Flows between hosts over switches, by one transport or another: how much longer each takes than
/// it would alone, by size, with what was dropped and how deep queues were. The same settings and
/// seed give the same result everywhere. Without flags it is the network of Gao et al. (OSDI 2016,
/// §4): 144 hosts in 9 racks, full bisection, at 60 % load.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct SimFlags {
    /// Settings, as TOML: a key for each knob, with one value or a list; flags take the place of
    /// what it says
    #[arg(value_name = "FILE")]
    pub(crate) experiment: Option<PathBuf>,

    /// Say what can be set, with units, defaults and where those come from
    #[arg(long)]
    pub(crate) list: bool,

    /// Run once more with half and with twice of each parameter of the network and the transport,
    /// and say what that does to the mean and 99th percentile of slowdown, the largest first; other
    /// words of choices, and another seed, too
    #[arg(long)]
    #[arg(help_heading = RUNS)]
    pub(crate) sensitivity: bool,

    #[command(flatten)]
    pub(crate) knobs: KnobFlags,

    /// Directory for everything: result.json, flows.csv, flows.parquet, ports.csv, ports.parquet,
    /// shares.csv, run.svg; created if missing. Of many runs table.csv, slowdown.svg and the runs
    /// [default: FILE with the ending .sim]; of --sensitivity the runs
    #[arg(long, short, value_name = "DIR")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,

    /// Write the result as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each flow, or for each size of flows of many runs; - is standard output, in
    /// place of the table
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write the same as Parquet
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) parquet: Option<PathBuf>,

    /// Write completion times by size, for afar run --profile; - is standard output
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) delay_profile: Option<PathBuf>,

    /// Write what each port did in each interval (knob every): queue at its end, deepest queue,
    /// bytes sent, packets dropped; Parquet if the name ends so, else CSV; intervals in which
    /// nothing was are left out
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) ports: Option<PathBuf>,

    /// Write quantiles of completion time and slowdown by size, as CSV
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) cdf: Option<PathBuf>,

    /// Draw queues over time by port, drops over time, and distributions of slowdown and
    /// completion time by size
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,

    /// Write packets as they leave and reach hosts for Wireshark (pcapng, the network's time to the
    /// nanosecond); headers are made up from flows, as the comment of the file says
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) pcap: Option<PathBuf>,

    /// The most packets of --pcap, the first that are sent; one takes 250 bytes of memory and of
    /// the file
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=PCAP_PACKETS_MAX), requires = "pcap")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) pcap_packets: u32,

    /// Write a page to step through a small run packet by packet, for any browser, without network
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) steps: Option<PathBuf>,

    /// Runs at once, where there are several [default: as many as there are processors]
    #[arg(long, short, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(help_heading = RUNS)]
    pub(crate) threads: Option<u32>,

    /// Where the runs of a sweep are done: local, dask, dask:ADDRESS, dask:SCHEDULER-FILE, slurm,
    /// slurm:PARTITION, ray or ray:ADDRESS; those that are there are not done again
    #[arg(long, value_name = "ENGINE", default_value_t)]
    #[arg(help_heading = RUNS)]
    pub(crate) on: Place,
}

const RUNS: &str = "Runs";
const OUTPUT: &str = "Output";

/// Packets of a capture of 2.5 GB.
const PCAP_PACKETS_MAX: i64 = 10_000_000;

impl SimFlags {
    /// The flags that only a single run can have, each with its value.
    pub(crate) fn of_one_run(&self) -> [(Option<&Path>, &'static str); 7] {
        [
            (self.parquet.as_deref(), "--parquet"),
            (self.delay_profile.as_deref(), "--delay-profile"),
            (self.ports.as_deref(), "--ports"),
            (self.cdf.as_deref(), "--cdf"),
            (self.svg.as_deref(), "--svg"),
            (self.pcap.as_deref(), "--pcap"),
            (self.steps.as_deref(), "--steps"),
        ]
    }
}

const NOTES: &str = "\
A list of flows is CSV with the columns start_ps (or start_ns, start_us), src, dst and bytes, or
Parquet with start_ps, src, dst and bytes; what --csv and --parquet write can be read again.

Where a file has lists, every combination is run, on all processors:
  transport = [\"pfabric\", \"dctcp\", \"tcp\"]
  load = [\"20%\", \"60%\"]
  seed = [1, 2]
Each run is written down when it has ended; the same command goes on after an interruption. Keys are
knobs with _ for -.

Means of one run are of one run: with --repetitions 6 or more, runs with seeds from --seed on
measure --flows flows each, in a network that has filled before and stays loaded until they have
ended, and figures have intervals. A load that is not carried has no result.

A topology file has a [[cable]] for each cable or group of them:
  [[cable]]
  from = \"host 0-15\"
  to = \"switch 0\"
  rate = \"40Gbps\"
  delay = \"200ns\"
From each host or switch of from there is one to each of to. Each host has one cable.

Examples:
  afar sim --transport dctcp --load 80% --sizes web-search
  afar sim --topology fat-tree --arity 16 --traffic permutation
  afar sim --transport dctcp --load 80% --repetitions 6
  afar sim --traffic incast --senders 40 --size 64KiB --csv flows.csv
  afar sim --transport dctcp --sensitivity

Exit status: 0 every flow has finished; 1 one has not, or the network made no progress; 2 bad usage;
4 the load is not carried, so that nothing steady can be measured; 130 interrupted.";
