//! Flags of `afar bench`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use measure::{Bytes, Duration};

use crate::bench::Pattern;
use client::InitiatorFlags;
use document::seed;
use workload::Spacing;

/// Load a disk, here or over the network, and time its answers
///
/// The words are fio's or have those of fio beside them, and job files are fio's. In a closed loop
/// (the default) each job keeps --depth requests under way.
/// With --rate-iops requests arrive by themselves, and the time of each begins at its arrival, so
/// that a disk that pauses is late for all that arrived meanwhile.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct BenchFlags {
    /// nvme+tcp://HOST:PORT/NQN/NSID (port 4420 and the first namespace if they are left out),
    /// iscsi://USER@HOST:PORT/IQN/LUN?connections=NUMBER (nobody, port 3260, the first disk, 1),
    /// file:PATH, memory:SIZE or null:; or a job file, FILE.fio or FILE.ini. Several disks are
    /// compared with the first: the same load on each, in blocks of shuffled order
    #[arg(value_name = "URI", required_unless_present_any = ["job", "filename"])]
    pub(crate) targets: Vec<String>,

    /// Run the jobs that are written down here in fio's words; URI is the disk of those that name
    /// none
    #[arg(long, value_name = "FILE")]
    pub(crate) job: Option<PathBuf>,

    /// What requests do, and where
    #[arg(long, value_name = "PATTERN", value_enum, default_value = "randread")]
    #[arg(help_heading = REQUESTS)]
    pub(crate) rw: Pattern,

    /// Share of reads in rw and randrw, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, help_heading = REQUESTS)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) rwmixread: u8,

    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "4k", help_heading = REQUESTS)]
    #[arg(value_parser = size)]
    pub(crate) bs: Bytes,

    /// How much of the disk is used [default: all that is there after --offset]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = REQUESTS)]
    pub(crate) size: Option<Bytes>,

    /// Where on the disk that begins
    #[arg(long, value_name = "SIZE", default_value = "0", help_heading = REQUESTS)]
    #[arg(value_parser = size)]
    pub(crate) offset: Bytes,

    /// Writes end when they are on the medium (forced unit access)
    #[arg(long, help_heading = REQUESTS)]
    pub(crate) fua: bool,

    /// Each job flushes after this many writes have ended [default: never]. With --verify, what was
    /// written after the last flush may be gone when the target has been started again
    #[arg(long, value_name = "WRITES", help_heading = REQUESTS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) fsync: Option<u32>,

    /// Which places requests at random go to: random (all alike) or zipf:SKEW
    #[arg(long, visible_alias = "random_distribution", value_name = "HOW")]
    #[arg(default_value = "random", value_parser = skew, help_heading = REQUESTS)]
    pub(crate) random_distribution: Skew,

    /// Write blocks that say where and when they were written, and check every block that is read:
    /// what is lost, torn, old or elsewhere is counted. Jobs then have parts of the disk to
    /// themselves
    #[arg(long, help_heading = REQUESTS)]
    pub(crate) verify: bool,

    /// Whether what --verify has written is all read in the end, which is not timed: 0 or 1
    #[arg(long, visible_alias = "do_verify", value_name = "NUMBER", default_value_t = 1)]
    #[arg(requires = "verify")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=1), help_heading = REQUESTS)]
    pub(crate) do_verify: u8,

    /// Overwrite what is on a disk of this machine
    #[arg(long, help_heading = REQUESTS)]
    pub(crate) overwrite: bool,

    /// First write all that the load can read, once, in its order on the disk: what was never
    /// written is read without asking the medium. It is not timed
    #[arg(long, help_heading = REQUESTS)]
    pub(crate) layout: bool,

    /// Seed of every draw
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = REQUESTS)]
    #[arg(value_parser = seed)]
    pub(crate) seed: u64,

    /// Requests under way in each job [default: 1; 64 in a sweep]
    #[arg(long, visible_alias = "iodepth", value_name = "NUMBER", help_heading = PACE)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=4095))]
    pub(crate) depth: Option<u16>,

    /// Threads, each with a queue (over iSCSI, a session) of its own
    #[arg(long, short, visible_alias = "numjobs", value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64), help_heading = PACE)]
    pub(crate) threads: u16,

    /// Requests per second of all jobs, in an open loop: 5000, 5k, 1.5M
    #[arg(long, visible_alias = "rate_iops", value_name = "NUMBER")]
    #[arg(group = ARRIVALS, help_heading = PACE)]
    pub(crate) rate_iops: Option<String>,

    /// The same in bytes per second: 100m
    #[arg(long, value_name = "SIZE", group = ARRIVALS, help_heading = PACE)]
    #[arg(value_parser = size)]
    pub(crate) rate: Option<Bytes>,

    /// How the requests of an open loop follow one another: poisson, as if by many independent
    /// users, or even, at equal distances
    #[arg(long, value_name = "HOW", value_parser = spacing(), default_value = "poisson")]
    #[arg(help_heading = PACE, requires = ARRIVALS)]
    pub(crate) spacing: Spacing,

    /// How long to make requests, in seconds, or 250ms, 10m, 1h [default: 10s, or until
    /// --requests have been made; 3s for each point of a sweep and each run of a comparison]
    #[arg(long, short, visible_alias = "runtime", value_name = "TIME")]
    #[arg(value_parser = time, help_heading = PACE)]
    pub(crate) duration: Option<Duration>,

    /// Requests of this time at the beginning are not counted [default: 0ms; 300ms
    /// in a sweep or a comparison]
    #[arg(long, visible_alias = "ramp_time", value_name = "TIME")]
    #[arg(value_parser = time, help_heading = PACE)]
    pub(crate) warm_up: Option<Duration>,

    /// How many requests each job makes at most
    #[arg(long, short = 'n', visible_alias = "number_ios", value_name = "NUMBER")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..), help_heading = PACE)]
    pub(crate) requests: Option<u64>,

    /// Look for answers without sleeping for this long, where that has paid the last time
    #[arg(long, value_name = "TIME", default_value = "0us", help_heading = PACE)]
    pub(crate) busy_poll: Duration,

    /// Checks over headers of the protocol
    #[arg(long, help_heading = WIRE)]
    pub(crate) header_digest: bool,

    /// Checks over data
    #[arg(long, help_heading = WIRE)]
    pub(crate) data_digest: bool,

    /// How long to try to connect again when a connection was lost; requests that were under way
    /// are uncertain then, and counted apart
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = WIRE)]
    pub(crate) ctrl_loss_tmo: Duration,

    /// Who this host says it is over NVMe/TCP
    #[arg(long, value_name = "NQN", help_heading = WIRE)]
    #[arg(default_value = "nqn.2026-11.local.afar:bench")]
    pub(crate) host: String,

    #[command(flatten)]
    pub(crate) initiator: InitiatorFlags,

    /// The name of the job in the record
    #[arg(long, value_name = "NAME", default_value = "afar", help_heading = FIO)]
    pub(crate) name: String,

    /// The disk, in place of URI: a file, a block device, or a URI
    #[arg(long, value_name = "FILE", conflicts_with = "targets", help_heading = FIO)]
    pub(crate) filename: Option<String>,

    /// Files are always opened past the page cache, so this can only be 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = FIO)]
    #[arg(value_parser = direct)]
    pub(crate) direct: u8,

    /// Run until --duration has passed, which a load of flags always does
    #[arg(long, visible_alias = "time_based", requires = "duration", help_heading = FIO)]
    pub(crate) time_based: bool,

    /// Find the curve of latency against load: what a closed loop reaches, then requests that
    /// arrive by themselves, at 10 to 95 % of that and on until latency explodes; or at these
    /// rates: --sweep=10k,20k,40k
    #[arg(long, value_name = "RATES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", group = ARRIVALS, help_heading = SWEEP)]
    #[arg(conflicts_with_all = ["requests", "verify"])]
    pub(crate) sweep: Option<String>,

    /// Draw the curve, average and 95th percentile; - is standard output
    #[arg(long, value_name = "FILE", requires = "sweep", help_heading = SWEEP)]
    pub(crate) svg: Option<PathBuf>,

    /// Of several disks: blocks, in each of which every disk runs once [default: 5, the fewest
    /// with an interval]
    #[arg(long, value_name = "NUMBER", help_heading = DISKS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,

    /// Write everything that was measured as JSON, laid out as fio's, or of several disks as
    /// afar's; - is standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each job and operation, by the names of the record; of a sweep or of several
    /// disks for each point or figure, with units in names; - is standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,
}

/// Flags that make a loop an open one.
const ARRIVALS: &str = "arrivals";

const REQUESTS: &str = "Requests";
const PACE: &str = "Pace";
const WIRE: &str = "Network";
const SWEEP: &str = "Latency against load";
const DISKS: &str = "Several disks";
const FIO: &str = "Words of fio's command line";
const OUTPUT: &str = "Output";

const NOTES: &str = "\
What is written stays written. A disk of this machine is only written to with --overwrite.

A latency is from when a request was made (in an open loop: was due) until it had ended. Its
submission is until the kernel was given the request, its completion the rest. Processor time is
that of this process, and of the target's if it is on this machine.

Sizes and times are fio's: 4k, 4kB and 4096 are 4096 bytes, 5 is 5 s. In flags KiB is 1024, too.

The sections of a job file run together; one with stonewall begins when those above it have ended.
k is 1024 there and KiB 1000, as fio has it. What is fio's and would change what is measured, and is
not done here, is an error; draws are as with norandommap.

Of several disks every figure is a median of --repetitions runs, with an interval from five runs on
(at least 93 %), and its ratio to the first disk's in the same block. A disk is faster or slower by
a figure where the whole interval of the ratio says so; every interval is one by itself. A run that
other programs or guests disturbed (beyond 5 % of the processors) is repeated, at most twice.

Exit status: 0 every request was answered, with the right bytes; 1 some were not, or the disk cannot
be reached; 2 bad usage; 3 somebody else measures on this machine, and several disks are not
compared beside that; 130 a sweep or a comparison was interrupted, and its points or whole blocks
until then are written.

Examples: afar bench nvme+tcp://10.0.0.2/nqn.2026-11.local.afar:0923dd2db942:disk \\
            --depth 32 --duration 30s
          afar bench file:/dev/nvme0n1?readonly nvme+tcp://10.0.0.2/NQN iscsi://10.0.0.2/IQN/0";

// Parses a size as fio does, but KiB is 1024 as in every command of afar, not fio's 1000.
fn size(text: &str) -> Result<Bytes, String> {
    match text.to_ascii_lowercase().ends_with("ib") {
        true => text.parse::<Bytes>().map_err(|error| error.to_string()),
        false => crate::bench::fio_size(text).map(Bytes::new),
    }
}

// Parses a time as fio does; allows fractions, too.
fn time(text: &str) -> Result<Duration, String> {
    crate::bench::fio_time(text).or_else(|error| text.parse().map_err(|_| error))
}

// Parses `--direct`: 1 only.
fn direct(text: &str) -> Result<u8, String> {
    match text {
        "1" => Ok(1),
        "0" => Err("0: files are opened past the page cache; leave it out, or use fio for what \
                    the page cache does"
            .to_owned()),
        _ => Err(format!("{text}: write 1")),
    }
}

/// How much more often some places are asked for than others; all alike if `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Skew(pub(crate) Option<f64>);

fn skew(text: &str) -> Result<Skew, String> {
    crate::bench::skew(text).map(Skew)
}

fn spacing() -> impl TypedValueParser<Value = Spacing> {
    let names = Spacing::ALL.map(Spacing::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Spacing>())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: BenchFlags,
    }

    fn flags(words: &[&str]) -> Result<BenchFlags, String> {
        let words = [&["bench", "null:"], words].concat();
        Line::try_parse_from(words).map(|line| line.flags).map_err(|error| error.to_string())
    }

    // Each as fio 3.33 has read it on its command line.
    #[test]
    fn words_mean_what_they_mean_to_fio() {
        for (text, bytes) in [("4k", 4096), ("4kB", 4096), ("4K", 4096), ("1M", 1 << 20)] {
            let given = flags(&["--bs", text, "--size", text, "--offset", text, "--rate", text]);
            let given = given.expect(text);
            let all = [Some(given.bs), given.size, Some(given.offset), given.rate];
            assert_eq!(all, [Some(Bytes::new(bytes)); 4], "{text}");
        }
        for (text, ms) in [("5", 5_000), ("10m", 600_000), ("1h", 3_600_000), ("250ms", 250)] {
            let given = flags(&["--runtime", text, "--ramp_time", text]).expect(text);
            let wanted = Some(Duration::from_ms(ms));
            assert_eq!((given.duration, given.warm_up), (wanted, wanted), "{text}");
        }
        let half = flags(&["--runtime", "1.5s"]).expect("parts of a unit");
        assert_eq!(half.duration, Some(Duration::from_ms(1_500)));
        let words = ["--direct=1", "--time_based", "--runtime=5", "--name=job1"];
        assert_eq!(flags(&words).expect("fio's").name, "job1");
    }

    #[test]
    fn what_would_mean_something_else_is_refused() {
        for (words, wanted) in [
            (&["--direct=0"][..], "files are opened past the page cache"),
            (&["--direct=yes"], "yes: write 1"),
            (&["--runtime", "5 parsecs"], "use us, ms, s, m, h or d"),
            (&["--runtime", "soon"], "write a whole one, e.g. 10s"),
            (&["--random_distribution", "pareto"], "\"pareto\" is no distribution; write"),
            (&["--filename", "/dev/x"], "cannot be used with"),
            (&["--time_based"], "--duration"),
        ] {
            let error = flags(words).expect_err("it cannot be");
            assert!(error.contains(wanted), "{words:?}: {error}");
        }
        let words = ["bench", "--filename", "/dev/x"];
        let line = Line::try_parse_from(words).expect("it names the disk");
        assert_eq!(line.flags.filename.as_deref(), Some("/dev/x"));
    }
}
