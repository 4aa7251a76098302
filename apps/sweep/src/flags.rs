//! Flags of `afar sweep`.

use std::path::PathBuf;

use clap::Args;
use dispatch::Place;

/// Run a program under many kinds of far memory and say what each costs
///
/// The experiment file names a workload, how its performance is read, and values of local memory,
/// round trip, bandwidth and so on. Every combination runs once in each block, in shuffled order,
/// beside the program without afar and under afar with all memory local. Each run is written down
/// when it has ended; the same command goes on after an interruption.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct SweepFlags {
    /// The experiment, as TOML
    #[arg(value_name = "FILE")]
    pub(crate) experiment: PathBuf,

    /// Directory of the results [default: FILE with the ending .sweep]
    #[arg(long, short, value_name = "DIR")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,

    /// Find the largest round trip, the smallest bandwidth and the smallest local memory that slow
    /// the program down by at most this share
    #[arg(long, value_name = "SHARE")]
    #[arg(help_heading = ANSWER)]
    pub(crate) find: Option<String>,

    /// Have runs count of which much memory stayed local; they are told apart
    #[arg(long)]
    #[arg(help_heading = ANSWER)]
    pub(crate) allow_unmanaged: bool,

    /// Write the table as CSV; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "find")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write the table, or the requirements that were found, as JSON; - is standard output, which
    /// then has nothing else
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Print slowdown against each axis with its interval: the default
    #[arg(long, conflicts_with = "find")]
    #[arg(help_heading = ANSWER)]
    pub(crate) table: bool,

    /// Exit with a status of its own unless every cell is slowed down by at most this share: 5 if
    /// one is slower for sure, 6 if one is not decided. For continuous integration
    #[arg(long, value_name = "SHARE", conflicts_with = "find")]
    #[arg(help_heading = ANSWER)]
    pub(crate) fail_above: Option<String>,

    /// Where it is run: local, dask, dask:ADDRESS, dask:SCHEDULER-FILE, slurm, slurm:PARTITION, ray
    /// or ray:ADDRESS; what has run is not run again, wherever that was
    #[arg(long, value_name = "ENGINE", default_value_t)]
    #[arg(help_heading = RUNS)]
    pub(crate) on: Place,

    /// Print what would be run, with every setting, and how long that may take; run nothing
    #[arg(long)]
    #[arg(help_heading = RUNS)]
    pub(crate) dry_run: bool,
}

const ANSWER: &str = "Answer";
const RUNS: &str = "Runs";
const OUTPUT: &str = "Output";

const NOTES: &str = r#"Example of a file:
  repetitions = 5
  [workload]
  command = ["redis-server", "--port", "{port}", "--save", ""]
  ready_tcp = "127.0.0.1:{port}"
  load = ["afar", "load", "kv", "redis://127.0.0.1:{port}", "--fill", "-n", "100000", "--json", "-"]
  [metric]
  json = "/results/requests_per_s"
  better = "higher"
  [matrix]
  local = ["25%", "50%"]
  rtt = ["2us", "5us", "10us"]

{port} is a free port, {dir} a directory of the run's own and {afar} the path of this afar. Without
load the command is the whole workload. Without metric it is the wall time, afar's own start left
out; metric.pattern is a regular expression with one group; metric.further keeps numbers beside it,
by pointers into JSON. allow_below_floor = true runs delays shorter than a fault here, too. [matrix]
may have engine, local, of, rtt, bandwidth, policy, prefetch, link and profile. [find] sets engine,
local, of, rtt and bandwidth where --find holds them, and local_steps, rtt_steps and
bandwidth_steps, from the most to the least generous.

A share of local memory is a share of a fixed amount: of = ["peak"], the default, is the most memory
that the program had at a time in its first run with all memory local under the same engine, which
comes before all that need it and is kept; its processes share the local memory. of = ["live"] is
what is in use at each moment (the live footprint): a program that starts has little of it local,
and nearly all of it is local where it grows. of = ["2GiB"] is that size, for each process.
A run is disturbed if other programs of this machine kept more than others_max (default "5%") of its
processors busy, or if other guests took more than stolen_max ("5%") of the processor time that it
wanted. It is
repeated until it has had attempts (default 3) runs, and the least disturbed is kept. A cell with
fewer than five undisturbed runs is "disturbed": no verdict follows from it. A process that a
program leaves behind counts as another program.

Intervals hold the true median in at least 93 % of experiments and need five repetitions. A cell is
"slower" if its whole interval is above 1, "undecided" if it holds 1, and "implausible" if all of it
is below 1, because far memory makes no program faster.

One run at a time is measured on a machine; a second sweep is refused. With --on, blocks go to
machines as a whole. Runs on machines that are not equal are not compared: each class of machines
has its own native run and its own table.

A run that is invalid (see afar run) has no figure: tables and JSON have the reason in its place.

Exit status: 0 every run has a figure; 1 some failed; 2 bad usage; 4 some are invalid; with
--fail-above, 5 a cell is slower than that with its whole interval, 6 a cell is undecided, disturbed
or implausible; 130 interrupted. What is slower for sure comes before 1 and 4, those before 6."#;
