//! The command line, as clap sees it: help, man pages and completions all come from here.

mod attach;
mod bench;
mod discover;
mod initiator;
mod load;
mod loops;
mod plan;
mod predict;
mod report;
mod reproduce;
mod run;
mod serve;
mod sim;
mod sweep;
mod top;
mod torture;
mod workload;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use attach::AttachFlags;
pub(crate) use bench::BenchFlags;
pub(crate) use discover::DiscoverFlags;
pub(crate) use initiator::{AlgorithmFlag, InitiatorFlags};
pub(crate) use load::{Distribution, KvFlags, LoadCommand, LoadFlags, SpacingFlag};
pub(crate) use loops::LoopFlags;
pub(crate) use plan::{
    AdmitFlags, CostFlags, FleetFlags, LatencyFlags, PlaceFlags, PlanCommand, PlanFlags, PoolFlags,
};
pub(crate) use predict::PredictFlags;
pub(crate) use report::ReportFlags;
pub(crate) use reproduce::{FigureName, ReproduceFlags};
pub(crate) use run::{Budget, Engine, Like, RunFlags, Trap};
#[cfg(test)]
pub(crate) use serve::NOTES as SERVE_NOTES;
pub(crate) use serve::ServeFlags;
pub(crate) use sim::SimFlags;
pub(crate) use sweep::SweepFlags;
pub(crate) use top::TopFlags;
pub(crate) use torture::TortureFlags;
pub(crate) use workload::{
    AlsFlags, JobFlags, PagerankFlags, Query, ServerFlags, ServerKind, SqlFlags, Variant,
    WorkloadCommand, WorkloadFlags,
};

/// Run programs with part of their memory far away, and serve and load flash over the network.
#[derive(Debug, Parser)]
#[command(name = "afar", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Each command explains itself: afar run --help")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunFlags>),
    Sweep(SweepFlags),
    Load(LoadFlags),
    Serve(ServeFlags),
    Top(TopFlags),
    Discover(DiscoverFlags),
    Attach(Box<AttachFlags>),
    Bench(Box<BenchFlags>),
    Torture(Box<TortureFlags>),
    Report(ReportFlags),
    Reproduce(ReproduceFlags),
    Sim(Box<SimFlags>),
    Loop(LoopFlags),
    Predict(Box<PredictFlags>),
    Plan(PlanFlags),
    Workload(WorkloadFlags),
    Ctl(CtlFlags),
    Doctor(DoctorFlags),
    Probe(ProbeFlags),
    Keep(KeepFlags),
    Man(ManFlags),
    Completions(CompletionsFlags),
}

/// Look at running programs and change their delay, bandwidth and local memory; look at controllers
///
/// PID is that of afar itself; list shows it. Only the user who started a run, and root, may look
/// at it or change it. identify asks a controller over NVMe/TCP what it and its namespaces are, or
/// a target over iSCSI what its logical units are.
#[derive(Debug, Args)]
#[command(override_usage = "afar ctl [--json] [list]
       afar ctl [--json] PID show
       afar ctl [--json] PID set SETTING...
       afar ctl [--json] identify URI [--host NQN] [--initiator IQN]")]
#[command(after_help = CTL_NOTES)]
pub(crate) struct CtlFlags {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Who this host says it is to a controller
    #[arg(long, value_name = "NQN", default_value = "nqn.2026-11.local.afar:ctl")]
    pub(crate) host: String,

    #[command(flatten)]
    pub(crate) initiator: InitiatorFlags,

    /// What to do; without it, list
    #[arg(value_name = "WHAT")]
    pub(crate) words: Vec<String>,
}

const CTL_NOTES: &str = "\
Settings: rtt=TIME bandwidth=RATE|none local=SIZE, of the default tier unless tier=NAME says
otherwise.

Names of what identify shows are those of nvme(1) or of SCSI, as the specifications have them.

Example: afar ctl 4711 set rtt=10us local=12.5%
         afar ctl identify nvme+tcp://10.0.0.2/nqn.2026-11.local.afar:disk
         afar ctl identify iscsi://10.0.0.2/iqn.2026-11.local.afar:disk/0";

/// Say what this machine can do, and what would make it do more
///
/// Checks everything that afar uses, measures the shortest delay of each trap, and looks for what
/// runs that were killed have left behind. Exit status: 0 if afar run works here, 3 if not.
#[derive(Debug, Args)]
pub(crate) struct DoctorFlags {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Remove what runs that were killed have left behind
    #[arg(long)]
    pub(crate) repair: bool,
}

/// Touch pages one after another and time each touch
///
/// What afar measures the cost of a fault with; under afar run it sees the delays from inside.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct ProbeFlags {
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

/// Set up swap space for a run and put the host back when its input ends
///
/// What --engine swap starts beside the program, in a session of its own, so that what ends the run
/// does not end it.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct KeepFlags {}

/// Write the man pages
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct ManFlags {
    /// Directory to write them to; created if missing
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct CompletionsFlags {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}
