//! Flags of `afar workload`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use measure::Bytes;

use document::seed;

/// Do what applications of data centres do with memory, on generated data
///
/// Each is a program for afar run and afar sweep: an ordinary process that makes its data first,
/// without being timed, and then prints how long the job took. The same seed and size come to the
/// same checksum, with far memory or without. See afar workload list for what each stands in for.
#[derive(Debug, Args)]
#[command(after_help = WORKLOAD_NOTES)]
pub struct WorkloadFlags {
    #[command(subcommand)]
    pub(crate) command: WorkloadCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Count the words of a text, as MapReduce does
    Wordcount(JobFlags),
    /// Sort records of 100 bytes by their keys, as TeraSort does
    Sort(JobFlags),
    Als(AlsFlags),
    Pagerank(PagerankFlags),
    Sql(SqlFlags),
    Kv(ServerFlags),
    /// Say which application each stands in for, and what it does not do
    List,
}

const WORKLOAD_NOTES: &str = "\
Example: afar run --local 25% --rtt 5us -- afar workload wordcount --size 128MiB";

/// What all jobs have.
#[derive(Debug, Args)]
pub(crate) struct JobFlags {
    /// Memory of the data, approximately
    #[arg(long, value_name = "SIZE", default_value = "256MiB", help_heading = DATA)]
    pub(crate) size: Bytes,

    /// Seed of every draw
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = DATA)]
    #[arg(value_parser = seed)]
    pub(crate) seed: u64,

    /// Do the job so many times, each timed; the time printed is the median
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = JOB)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) repetitions: u32,

    /// Write everything that was measured as JSON; - is standard output, in place of the line
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each repetition; - is standard output, in place of the line
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,
}

const DATA: &str = "Data";
const JOB: &str = "Job";
const OUTPUT: &str = "Output";

/// Fit factors to ratings by alternating least squares
///
/// The ratings are products of planted factors with noise of a tenth of their standard deviation,
/// so the error must fall to about 0.1.
#[derive(Debug, Args)]
pub(crate) struct AlsFlags {
    #[command(flatten)]
    pub(crate) job: JobFlags,

    /// Length of the factors
    #[arg(long, value_name = "NUMBER", default_value_t = 8, help_heading = JOB)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) rank: u32,

    /// Fits of all users and all items
    #[arg(long, value_name = "NUMBER", default_value_t = 10, help_heading = JOB)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) iterations: u32,
}

/// Rank the vertices of an R-MAT graph
#[derive(Debug, Args)]
pub(crate) struct PagerankFlags {
    #[command(flatten)]
    pub(crate) job: JobFlags,

    /// How: both come to the same ranks
    #[arg(long, value_name = "NAME", value_enum, default_value = "single", help_heading = JOB)]
    pub(crate) variant: Variant,

    /// Iterations
    #[arg(long, value_name = "NUMBER", default_value_t = 20, help_heading = JOB)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) iterations: u32,

    /// Workers of the timely variant, each on a thread [default: 1]
    #[arg(long, value_name = "NUMBER", help_heading = JOB)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) threads: Option<u32>,
}

/// How ranks are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Variant {
    /// One thread over compressed sparse rows
    Single,
    /// A timely dataflow; takes a quarter more memory
    Timely,
}

/// Run a query of the Big Data Benchmark in DuckDB
///
/// Python with the module duckdb takes the place of this process.
#[derive(Debug, Args)]
pub(crate) struct SqlFlags {
    /// Memory of the tables and the answer, approximately
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub(crate) size: Bytes,

    /// Seed of every draw
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = seed)]
    pub(crate) seed: u64,

    /// Run the query so many times, each timed; the time printed is the median
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) repetitions: u32,

    /// Which query
    #[arg(long, value_name = "NAME", value_enum, default_value = "2a")]
    pub(crate) query: Query,

    /// A Python 3 that has the module duckdb
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(crate) python: PathBuf,
}

/// A query of the Big Data Benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Query {
    /// Aggregation: revenue by the first eight characters of the source address
    #[value(name = "2a")]
    Aggregation,
    /// Join: the source address of the highest revenue in three months
    #[value(name = "3a")]
    Join,
}

/// Run a key-value server fit for a load by afar load kv
///
/// The server takes the place of this process. It keeps nothing on disk, listens on 127.0.0.1
/// only, and refuses what does not fit in place of forgetting something else.
#[derive(Debug, Args)]
pub(crate) struct ServerFlags {
    /// Which server
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) server: ServerKind,

    /// Where it listens [default: 6379 for redis, 11211 for memcached]
    #[arg(long, value_name = "NUMBER")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// Room for values, keys included; what the server needs besides comes on top
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub(crate) size: Bytes,
}

/// A key-value server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerKind {
    /// redis-server
    Redis,
    /// memcached, with one worker thread
    Memcached,
}
