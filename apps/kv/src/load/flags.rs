//! Flags of `afar load`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use measure::{Bytes, Duration};

use document::seed;
use workload::Spacing;

use crate::load::slo::{Bound, Limits};

/// Ask a server for things and time its answers
#[derive(Debug, Args)]
pub struct LoadFlags {
    #[command(subcommand)]
    pub(crate) command: LoadCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    Kv(Box<KvFlags>),
}

/// Load a key-value store that speaks RESP (Redis) or the memcached text protocol
///
/// Requests are those of YCSB's core workloads. In a closed loop (the default) a connection sends
/// its next request when it has an answer. With --rate requests arrive by themselves, and the time
/// of each begins at its arrival, so that a server that pauses is late for all that arrived
/// meanwhile. A failed connection is not opened again.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct KvFlags {
    /// redis://HOST:PORT, memcached://HOST:PORT, redis+unix:PATH or memcached+unix:PATH
    #[arg(value_name = "URI")]
    pub(crate) target: String,

    /// a to f, or a YCSB property file
    #[arg(long, short, value_name = "NAME", default_value = "c", help_heading = REQUESTS)]
    pub(crate) workload: String,

    /// Records in the store before the first request [default: the workload's, 1000]
    #[arg(long, value_name = "NUMBER", help_heading = REQUESTS)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 44))]
    pub(crate) keys: Option<u64>,

    /// Size of a key, in place of YCSB's (up to 24 bytes): user, zeros and a number
    #[arg(long, value_name = "SIZE", help_heading = REQUESTS)]
    pub(crate) key_size: Option<Bytes>,

    /// Size of a value [default: the workload's, 1000 bytes]
    #[arg(long, value_name = "SIZE", help_heading = REQUESTS)]
    pub(crate) value_size: Option<Bytes>,

    /// Share of reads, the rest being updates, in place of the workload's mix: 80%, 0%
    #[arg(long, value_name = "SHARE", help_heading = REQUESTS)]
    pub(crate) reads: Option<String>,

    /// Have an update append so many bytes to a value, instead of replacing it
    #[arg(long, value_name = "SIZE", help_heading = REQUESTS)]
    pub(crate) append: Option<Bytes>,

    /// Have an update replace a value that would be longer than this
    #[arg(long, value_name = "SIZE", default_value = "10kB", help_heading = REQUESTS)]
    #[arg(requires = "append")]
    pub(crate) append_limit: Bytes,

    /// Which records are asked for [default: the workload's]
    #[arg(long, value_name = "NAME", value_enum, help_heading = REQUESTS)]
    pub(crate) distribution: Option<Distribution>,

    /// Skew of zipfian and latest, between 0 and 1 [default: 0.99]
    #[arg(long, value_name = "NUMBER", help_heading = REQUESTS)]
    pub(crate) theta: Option<f64>,

    /// Store every record first; that is not timed
    #[arg(long, help_heading = REQUESTS)]
    pub(crate) fill: bool,

    /// Check that what is read was stored: every value says which record it belongs to
    #[arg(long, help_heading = REQUESTS)]
    pub(crate) verify: bool,

    /// Seed of every draw
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = REQUESTS)]
    #[arg(value_parser = seed)]
    pub(crate) seed: u64,

    /// Requests per second, in an open loop: 5000, 5k, 1.5M
    #[arg(long, value_name = "NUMBER", help_heading = PACE, group = OPEN)]
    pub(crate) rate: Option<String>,

    /// Look for the highest rate of an open loop whose latency stays within a bound, of all
    /// requests: p95=1ms, mean=1.5ms, p99.9=10ms
    #[arg(long, value_name = "BOUND", help_heading = PACE, group = OPEN)]
    #[arg(conflicts_with = "requests")]
    pub(crate) slo: Option<Bound>,

    /// The least and the most that --slo asks for per second
    #[arg(long, value_name = "FROM..TO", default_value = "100..1M", help_heading = PACE)]
    #[arg(requires = "slo")]
    pub(crate) slo_rates: Limits,

    /// How the requests of an open loop follow one another: poisson, as if by many independent
    /// users, or even, at equal distances
    #[arg(long, value_name = "HOW", value_parser = spacing(), default_value = "poisson")]
    #[arg(help_heading = PACE, requires = OPEN)]
    pub(crate) spacing: Spacing,

    /// How long to send requests [default: 10s, or until --requests have been sent; 3s for each
    /// try of --slo]
    #[arg(long, short, value_name = "TIME", help_heading = PACE)]
    pub(crate) duration: Option<Duration>,

    /// How many requests to send at most [default: the workload's, or no limit]
    #[arg(long, short = 'n', value_name = "NUMBER", help_heading = PACE)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,

    /// Requests of this time at the beginning are not counted [default: 0ms; 500ms for each try of
    /// --slo]
    #[arg(long, value_name = "TIME", help_heading = PACE)]
    pub(crate) warm_up: Option<Duration>,

    /// Give a connection up whose answer takes longer
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = PACE)]
    pub(crate) timeout: Duration,

    /// Threads
    #[arg(long, short, value_name = "NUMBER", default_value_t = 1, help_heading = CONNECTIONS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,

    /// Connections of all threads together
    #[arg(long, short, value_name = "NUMBER", default_value_t = 50)]
    #[arg(help_heading = CONNECTIONS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) connections: u32,

    /// Requests on their way on one connection at most
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = CONNECTIONS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) depth: u32,

    /// Look for answers without sleeping until none has come for this long, which spares the server
    /// waking the client [default: 50us if there are fewer threads than processors, else 0us]
    #[arg(long, value_name = "TIME", help_heading = CONNECTIONS)]
    pub(crate) busy_poll: Option<Duration>,

    /// Beside the load, have one more thread and connection send one request at a time, and print
    /// its times apart: what a client feels that asks little
    #[arg(long, help_heading = CONNECTIONS)]
    pub(crate) probe: bool,

    /// Write everything that was measured as JSON; - is standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each operation, or for each try of --slo; - is standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,
}

/// Flags that make the loop an open one.
const OPEN: &str = "open";

const REQUESTS: &str = "Requests";
const PACE: &str = "Pace";
const CONNECTIONS: &str = "Connections";
const OUTPUT: &str = "Output";

const NOTES: &str = "\
A record is one value. With --append a value is taken to be as --fill has left it, so fill a store
again whose values have grown before. A scan reads records whose numbers follow one another, with
one MGET or get.

--slo doubles the rate until one fails, then halves the distance. Every rate is tried two or three
times, the last ones up to five times. A try fails, too, if the server does not keep up.

Exit status: 0 every request was answered; 1 some were refused, lost or wrong, or the server cannot
be reached; 2 bad usage; 4 --slo has found no rate.

Example: afar load kv redis://127.0.0.1:6379 --fill --keys 1000000 --workload b --rate 50k";

/// Which records are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Distribution {
    /// All alike
    Uniform,
    /// A few much more than the rest
    Zipfian,
    /// The newest most
    Latest,
}

fn spacing() -> impl TypedValueParser<Value = Spacing> {
    let names = Spacing::ALL.map(Spacing::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Spacing>())
}
