//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Benchmarks of afar, against the binary that was built beside this one.
#[derive(Debug, Parser)]
#[command(name = "bench", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = NOTES)]
pub(crate) struct Cli {
    /// List the benchmarks and what is not among them
    #[arg(long)]
    pub(crate) list: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Requested against measured delay, 1 to 50 us, as in Fig. 3 of DiME
    Delay(DelayFlags),
    /// What a fetch takes in the program, mean and tail, and what afar says that it took
    Latency(CommonFlags),
    /// What afar costs where it delays nothing: faults, programs that fit, mmap
    Overhead(OverheadFlags),
    /// Redis: time per operation grows with the delay by the faults per operation
    Law(CommonFlags),
    /// Redis and memcached side by side fault as often as each alone
    Isolation(CommonFlags),
    /// Throughput of `afar load kv` against redis-benchmark and memcaslap
    Load(CommonFlags),
    /// Disks over the network against a bare echo, tgt, and the disk itself
    Flash(FlashFlags),
    /// How many packets of a simulated network a second of processor time moves
    Fabric(FabricFlags),
    /// Eviction policies: fetches against the true ones', faults and time of programs
    Policies(PoliciesFlags),
    /// Time of a program that writes more than its local memory, against its bytes over a link
    Writes(CommonFlags),
    /// Slowdowns that `afar predict` tells against measured ones
    Predict(CommonFlags),
    /// The swap engine: by how much a delay moves a swap-in
    Swap(CommonFlags),
    /// What a process costs beside 1 to 4,000 others under management
    Processes(CommonFlags),
    /// Whether sweeps find a slowdown of 10 %, and conclude nothing where the machine is loaded
    Verdicts(CommonFlags),
    /// A program of which half the memory is read again: prints a sum
    #[command(hide = true)]
    Tenth(TenthFlags),
    /// How long a fork of 384 MiB stops another thread, and another process
    Forks(CommonFlags),
    /// A program that forks: prints what others saw
    #[command(hide = true)]
    Forking(ForkingFlags),
    /// The process beside it: prints its gaps
    #[command(hide = true)]
    Neighbour(NeighbourFlags),
    /// A tenant of a target beside stalled, deaf, idle and greedy others
    Fair(CommonFlags),
    /// Those others: prints what they did
    #[command(hide = true)]
    Attackers(AttackersFlags),
    /// Idle processes, touches and exits: prints what they took
    #[command(hide = true)]
    Crowd(CrowdFlags),
    /// Time touches of ordinary memory: prints nanoseconds
    #[command(hide = true)]
    Touch(TouchFlags),
    /// Wait with the time-stamp counter: prints nanoseconds
    #[command(hide = true)]
    Waits(WaitsFlags),
    /// Access pages in a seeded order: prints nanoseconds
    #[command(hide = true)]
    Accesses(AccessesFlags),
    /// Write memory twice: prints nanoseconds
    #[command(hide = true)]
    Overwrite(OverwriteFlags),
    /// Make system calls: writes nanoseconds to a file
    #[command(hide = true)]
    Asks(AsksFlags),
    /// Time minor faults: prints nanoseconds
    #[command(hide = true)]
    Baseline(BaselineFlags),
}

/// What every benchmark takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct CommonFlags {
    /// Small sizes and 3 rounds: shows that the benchmark works; do not quote its figures
    #[arg(long)]
    pub(crate) quick: bool,

    /// Rounds, in each of which every variant runs once [default: 7; 3 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) runs: Option<u16>,

    /// Write settings, host, results and verdicts as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl CommonFlags {
    /// These flags with `runs` rounds, unless `--runs` or `--quick` was given.
    pub(crate) fn or_runs(&self, runs: u16) -> Self {
        let runs = self.runs.or_else(|| (!self.quick).then_some(runs));
        Self { runs, ..self.clone() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DelayFlags {
    #[command(flatten)]
    pub(crate) common: CommonFlags,

    /// Draw the figure as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OverheadFlags {
    #[command(flatten)]
    pub(crate) common: CommonFlags,

    /// Which parts [default: all]
    #[arg(value_name = "PART", value_enum)]
    pub(crate) parts: Vec<Part>,
}

/// A part of the benchmark `overhead`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// A remote fault at zero delay against a minor fault
    Fault,
    /// Programs whose memory is all local against the same programs without afar
    Local,
    /// Mapping and unmapping memory
    Mmap,
}

#[derive(Debug, Args)]
pub(crate) struct FlashFlags {
    #[command(flatten)]
    pub(crate) common: CommonFlags,

    /// Which parts [default: all]
    #[arg(value_name = "PART", value_enum)]
    pub(crate) parts: Vec<FlashPart>,
}

/// A part of the benchmark `flash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlashPart {
    /// One read at a time against an echo
    Latency,
    /// Many reads at a time, and what they cost; tgt beside
    Throughput,
    /// This machine's disk, remote against local
    Disk,
    /// iSCSI beside tgt, both loaded by iscsi-perf and by afar
    Iscsi,
    /// Every message size over a network of its own, MTU 1500 and 9000, with and without offload
    Network,
}

#[derive(Debug, Args)]
pub(crate) struct PoliciesFlags {
    #[command(flatten)]
    pub(crate) common: CommonFlags,

    /// Which parts [default: all]
    #[arg(value_name = "PART", value_enum)]
    pub(crate) parts: Vec<PoliciesPart>,
}

/// A part of the benchmark `policies`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoliciesPart {
    /// Fetches of seeded accesses against those of the policies that know every access
    True,
    /// CPython and Redis with each policy, 25 % local
    Programs,
}

#[derive(Debug, Args)]
pub(crate) struct FabricFlags {
    #[command(flatten)]
    pub(crate) common: CommonFlags,

    /// What an event costs in runs of 100,000 to 100,000,000 events instead
    #[arg(long)]
    pub(crate) curve: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TouchFlags {
    /// Touched in turn
    #[arg(long)]
    pub(crate) pages: usize,
    /// How often all of them are touched
    #[arg(long)]
    pub(crate) rounds: usize,
    /// Write to them
    #[arg(long)]
    pub(crate) write: bool,
    /// Wait for each round's turn
    #[arg(long)]
    pub(crate) turns: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WaitsFlags {
    /// How often
    #[arg(long)]
    pub(crate) count: usize,
    /// For how long each time
    #[arg(long)]
    pub(crate) ns: u64,
}

#[derive(Debug, Args)]
pub(crate) struct AccessesFlags {
    /// Their order
    #[arg(long, value_enum)]
    pub(crate) pattern: Pattern,
    /// Each touched once before, in order
    #[arg(long, value_parser = clap::value_parser!(u64).range(8..=1 << 30))]
    pub(crate) pages: u64,
    /// How many accesses
    #[arg(long)]
    pub(crate) count: u64,
    /// What the order follows from
    #[arg(long)]
    pub(crate) seed: u64,
    /// Write to them
    #[arg(long)]
    pub(crate) write: bool,
}

/// Which pages are accessed in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// 80 % go to the first fifth of the pages, the rest anywhere
    Skewed,
    /// Popularity falls as the rank to the power of -1; ranks are scattered over the pages
    Zipf,
    /// Anywhere
    Uniform,
    /// One after another, round and round
    Sequential,
    /// Anywhere in a quarter of the pages, which moves once through all of them
    Window,
    /// Half go anywhere, half round and round through the first 30 % of the pages
    Loop,
}

impl Pattern {
    /// As on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Skewed => "skewed",
            Self::Zipf => "zipf",
            Self::Uniform => "uniform",
            Self::Sequential => "sequential",
            Self::Window => "window",
            Self::Loop => "loop",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OverwriteFlags {
    /// How much memory
    #[arg(long)]
    pub(crate) pages: usize,
}

#[derive(Debug, Args)]
pub(crate) struct TenthFlags {
    /// How much memory
    #[arg(long)]
    pub(crate) pages: u64,
    /// Random numbers that are drawn meanwhile
    #[arg(long)]
    pub(crate) work: u64,
}

#[derive(Debug, Args)]
pub(crate) struct AttackersFlags {
    /// Where the target listens for NVMe/TCP hosts
    #[arg(long)]
    pub(crate) nvme: SocketAddr,
    /// Where it listens for iSCSI initiators
    #[arg(long)]
    pub(crate) iscsi: SocketAddr,
    /// What hosts connect to
    #[arg(long)]
    pub(crate) nqn: String,
    /// What initiators log in to
    #[arg(long)]
    pub(crate) iqn: String,
    /// Is written when all are there; they go on until it is gone
    #[arg(long)]
    pub(crate) ready: PathBuf,
    /// Nobody but the idle ones
    #[arg(long)]
    pub(crate) idle_only: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CrowdFlags {
    /// All processes, this one included
    #[arg(long)]
    pub(crate) processes: u64,
    /// Touched in turn
    #[arg(long)]
    pub(crate) pages: u64,
    /// How often all of them are touched
    #[arg(long)]
    pub(crate) rounds: u64,
    /// Processes to start and end
    #[arg(long)]
    pub(crate) exits: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ForkingFlags {
    /// Memory that it has
    #[arg(long)]
    pub(crate) bytes: u64,
    /// How often it forks
    #[arg(long)]
    pub(crate) forks: u64,
}

#[derive(Debug, Args)]
pub(crate) struct NeighbourFlags {
    /// Memory that it touches
    #[arg(long)]
    pub(crate) bytes: u64,
    /// Runs when it is its turn: without real-time priority
    #[arg(long)]
    pub(crate) ordinary: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AsksFlags {
    /// How many
    #[arg(long)]
    pub(crate) count: u64,
    /// Where nanoseconds per call go
    #[arg(long)]
    pub(crate) answer: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct BaselineFlags {
    #[command(flatten)]
    pub(crate) touches: TouchFlags,
    /// Another thread drops the pages, behind the touching one
    #[arg(long)]
    pub(crate) meanwhile: bool,
}

const NOTES: &str = "\
Exit status: 0 every bound was kept; 1 one was not; 2 bad usage; 3 something is missing or failed.";

/// What `--list` says.
pub(crate) const LIST: &str = "\
delay      requested against measured delay inside the program, 1 to 50 us (DiME, Fig. 3)
           bound: median absolute error at most 68 ns from the floor to 20 us
latency    writes to far memory, 5, 20 and 100 us, 25 % local, by the program's own clock
           bounds, on a quiet machine: mean within 5 % and 0.3 us of the delay, p99 at most 1.5
           of it beside what a wait of that length is late by here, afar's own mean within 2 %
overhead   fault  zero-delay remote fault against this machine's minor fault (DiME, Table 1)
                  bound: a read costs at most 78 ns more
           local  redis-benchmark and CPython with all memory local, against no afar
                  bound: within 3 %
           mmap   mapping and unmapping 64 KiB and 1 MiB
                  bounds: 30 us, and 2.5 times two calls that a bare supervisor is asked about
                  and a pair without afar
law        Redis GET, delays 0 to 80 us: time per operation against faults per operation
           bounds: R2 at least 0.99, slope and predictions within 5 %
isolation  Redis and memcached side by side under budgets of their own (DiME, Fig. 5)
           bound: fetches within 2 % of running alone
policies   true      fetches of seeded accesses to 64 and 256 MiB, 10 to 80 % local, against
                     those of the policy that knows every access; other work does no harm
                     bounds: skewed: clock, fifo, random within 3 %, lru within 5 and 3 %, soft
                     faults a fetch 1.0 (clock) and 3.3 (lru); uniform and sequential: 1 %, all
                     policies; zipf, window, loop: 5 %; s3fifo is not judged there
           programs  faults and time of each policy, CPython sort and Redis with Zipf keys
writes     a program that writes four times its local memory, twice, 100 Mb/s to 40 Gb/s, both
           traps, full-duplex and half-duplex; 3 rounds
           bounds: where it waits for the link, the time of its bytes within 5 %; nowhere less
           than that of its bytes but 128 pages
predict    slowdowns told from one run with all memory local, against measured ones: twelve
           programs, local memories and networks that nothing was fitted to
           bounds, up to 2x: median error 0.05, 90th percentile 0.15, better than a line over
           the bandwidth of swapping (Gao et al., Fig. 6)
processes  fault, afar's own time and exit of a process beside 0, 63, 1,023 and 3,999 others
           bound: 3,999 others add at most 10 % to each
forks      how long 20 forks of 384 MiB stop another process, and another thread of the program
           bounds: 1 ms; twice as long as without afar and 1 ms
verdicts   50 sweeps of a program that far memory slows down by 10 %, and 50 while other programs
           keep 40 % of the processors busy
           bounds: 90 % of the first find it, 95 % of the second are disturbed or undecided
swap       by how much the swap engine's delay moves a swap-in, 0 to 40 us
           bound: 10 us moves the median by 10 us, +/- 0.5
fabric     the simulated network: IMC10 flows at 60 % of 40 Gb/s, 144 hosts
           bounds, pFabric: 1,200,000 data packets per second of processor time, 12 events
           for each and its ACK, 200 bytes kept of a flow
           --curve  what an event costs in runs of 100,000 to 100,000,000 events
                    bound: within 20 % of the mean
load       throughput of afar load kv against redis-benchmark and memcaslap, same server
           bound: at least theirs
flash      latency     4 KiB reads of afar serve one at a time against a bare echo
                       bounds: 1.15 of it asleep, 11/8 spinning
           throughput  random reads and what they cost, tgt beside
                       bounds: 420,000 and 880,000 I/O per second of the target's processor
                       time 32 and 128 deep, 900,000 with a null device; 2.9 us a read here;
                       64 connections within 15 % of one
           disk        this machine's disk, remote against local; bound: 0.85 of it 32 deep
           network     reads of 512 bytes to 1 MiB over virtual Ethernet, MTU 1500 and 9000
                       bound: none waits for a timer of TCP (20 ms) in the median

fair       a neighbour beside idle, stalled, deaf and greedy hosts of the same target, against
           the same attackers on another target
           bounds: 1 ms on its p99, 8 KiB for an idle connection, 256 MiB for the target, what
           it takes back within 10 %, six tenants within 15 %

Not available: a comparison with DiME itself (\"peer\"). Its kernel module needs Linux 4.9, which
runs neither here nor with afar; its published figures are printed beside ours instead.
";
