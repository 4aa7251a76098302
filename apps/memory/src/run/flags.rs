//! Flags of `afar run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use measure::{Duration, EngineKind, LinkMode, LocalSize, Run, RunResults, ShareOf};
use paging::write_back::WriteBack;
use paging::{PolicyKind, Prefetch};

use crate::calibrate::Known;
use crate::far::{FarUri, far_uri};
use crate::setting::TierSetting;
use crate::validate::flags::ValidateFlags;
use document::{Bandwidth, delay, seed};

/// Run a program with part of its memory far away
///
/// The program runs unmodified. Pages beyond its local memory are taken away from it, and touching
/// one costs what fetching it over the given link would cost. Afterwards a summary says how often
/// that happened and how long it took; the exit status is the program's own, if the run is valid.
#[derive(Debug, Args)]
#[command(override_usage = "afar run [OPTIONS] [--] PROGRAM [ARGUMENTS]...")]
#[command(after_help = RUN_NOTES)]
pub struct RunFlags {
    /// Memory that is local: a share, of what --of says, or a size [default: 100%]
    #[arg(long, value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) local: Option<LocalSize>,

    /// What a share is a share of: live, the memory in use at each moment, so that a program that
    /// starts has little local memory; or a size, which gives it the same from start to end
    /// [default: live]
    #[arg(long, value_name = "WHAT", help_heading = MEMORY)]
    pub(crate) of: Option<ShareOf>,

    /// Who shares the local memory: each process has its own, or the whole tree one [default:
    /// process; with --engine swap always tree]
    #[arg(long, value_name = "SCOPE", value_enum, help_heading = MEMORY)]
    pub(crate) budget: Option<Budget>,

    /// Order in which pages become remote [default: clock]
    #[arg(long, value_name = "POLICY", value_parser = policy(), help_heading = MEMORY)]
    pub(crate) policy: Option<PolicyKind>,

    /// What is fetched ahead of use: none, next-N, stride or stride-N
    #[arg(long, value_name = "WHAT", default_value = "none", help_heading = MEMORY)]
    pub(crate) prefetch: Prefetch,

    /// Record in which order pages first come from --far, in FILE if it is not there and the
    /// program ends with status 0; else replay it: pages that followed one come ahead of use, as
    /// many as --prefetch says, or 8. The program then runs without address-space layout
    /// randomisation
    #[arg(long, value_name = "FILE", requires = "far", help_heading = MEMORY)]
    pub(crate) remember: Option<PathBuf>,

    /// A further kind of far memory, for what the program places there with afar_place:
    /// name=slow,rtt=20us,bandwidth=10Gbps,local=25%,link=half-duplex (all but the name may be left
    /// out; up to 7)
    #[arg(long = "tier", value_name = "SETTINGS", help_heading = MEMORY)]
    pub(crate) tiers: Vec<TierSetting>,

    /// Round trip of an empty request [default: 0, no delay]
    #[arg(long, value_name = "TIME", value_parser = delay, help_heading = LINK)]
    #[arg(conflicts_with_all = ["one_way", "profile"])]
    pub(crate) rtt: Option<Duration>,

    /// Half a round trip, in place of --rtt
    #[arg(long, value_name = "TIME", value_parser = delay, help_heading = LINK)]
    #[arg(conflicts_with = "profile")]
    pub(crate) one_way: Option<Duration>,

    /// Bits per second in one direction, or none [default: none, no limit]
    #[arg(long, value_name = "RATE", help_heading = LINK)]
    pub(crate) bandwidth: Option<Bandwidth>,

    /// What transfers share [default: full-duplex]
    #[arg(long, value_name = "MODE", value_parser = link(), help_heading = LINK)]
    pub(crate) link: Option<LinkMode>,

    /// Pages written back whose acknowledgement may be awaited at a time, at most 128
    /// [default: a thirty-second of local memory, 120 at most]
    #[arg(long, value_name = "PAGES", value_parser = in_flight(), help_heading = LINK)]
    pub(crate) in_flight: Option<u64>,

    /// Which pages use the link when they leave: written, those that the program wrote to, as a
    /// kernel does it; changed, those that hold something else than far memory has, as --far does
    /// it; free, none [default: written]
    #[arg(long, value_name = "WHICH", value_parser = write_back(), help_heading = LINK)]
    #[arg(conflicts_with = "far")]
    pub(crate) write_back: Option<WriteBack>,

    /// Completion times to draw from, in place of --rtt: lines of bytes,microseconds
    #[arg(long, value_name = "FILE", help_heading = LINK)]
    pub(crate) profile: Option<PathBuf>,

    /// Keep pages beyond local memory on these blades, for real: nvme+tcp://HOST[:PORT]/NQN[/NSID],
    /// a namespace of afar serve or of any other NVMe/TCP target, which the run overwrites; or
    /// memory:SIZE[?delay=TIME], memory of afar itself, which answers so late. Pages are striped
    /// over several; a namespace at several addresses is one blade with as many paths. Times are
    /// measured; nothing else is delayed
    #[arg(long, value_name = "URI[,URI]...", value_parser = far_uri, value_delimiter = ',')]
    #[arg(conflicts_with_all = ["rtt", "one_way", "bandwidth", "link", "profile", "like", "tiers"])]
    #[arg(help_heading = LINK, group = "blade")]
    pub(crate) far: Vec<FarUri>,

    /// Keep each page on this many blades: the run goes on as long as one of them has it
    #[arg(long, value_name = "COPIES", value_parser = replicas(), default_value = "1")]
    #[arg(requires = "blade", help_heading = LINK)]
    pub(crate) replicas: u8,

    /// How long the program waits for a blade that is gone, before it is ended, or goes on without
    /// that blade [default: 30s, or 5s with --replicas]
    #[arg(long, value_name = "TIME", value_parser = delay)]
    #[arg(requires = "blade", help_heading = LINK)]
    pub(crate) far_timeout: Option<Duration>,

    /// Take the blade from the run that has it, one that was killed: should it still run, it ends
    #[arg(long, requires = "blade", help_heading = LINK)]
    pub(crate) far_take: bool,

    /// Have a thread spin for so long at most for a page of --far, with interrupts off, before it
    /// sleeps: 1us to 1ms; a page that takes longer in the median is not spun for; needs what
    /// --trap bpf needs [default: 30us]
    #[arg(long, value_name = "TIME", value_parser = spin_max)]
    #[arg(requires = "blade", help_heading = LINK)]
    pub(crate) spin_max: Option<Duration>,

    /// Keep the supervisor on this processor. Pages of --far come soonest where a blade on the same
    /// machine is on that processor, too, and the program is not [default: any]
    #[arg(long, value_name = "NUMBER", requires = "blade", help_heading = LINK)]
    pub(crate) supervisor_cpu: Option<usize>,

    /// Delay by the formula of an earlier emulator: dime is --link per-fault --policy fifo with
    /// --one-way, and writes back without a delay, as its code does with that policy; gao is --link
    /// full-duplex --policy clock with --rtt, and writes back over the link
    #[arg(long, value_name = "WHOM", value_enum, help_heading = LINK)]
    #[arg(conflicts_with = "profile")]
    pub(crate) like: Option<Like>,

    /// What holds the memory: arena, a memory file inside the program, for exact delays and
    /// budgets; or swap, the kernel's swap space, for whatever the kernel can swap, shared memory
    /// included, with one budget for the whole tree; swap needs root, and its delay comes on top of
    /// the kernel's own 4 to 9 us
    #[arg(long, value_name = "ENGINE", value_parser = engine(), default_value = "arena")]
    #[arg(help_heading = MECHANISM)]
    pub(crate) engine: EngineKind,

    /// With --engine swap: have the kernel read up to 2^N pages ahead (vm.page-cluster) while the
    /// program runs [default: as it is]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=10))]
    #[arg(help_heading = MECHANISM)]
    pub(crate) page_cluster: Option<u64>,

    /// How page faults are noticed; auto takes bpf where it can be used
    #[arg(long, value_name = "TRAP", value_enum, default_value = "auto")]
    #[arg(help_heading = MECHANISM)]
    pub(crate) trap: Trap,

    /// How a thread waits for a page: spin keeps its processor (the bpf trap and the swap engine do
    /// that); sleep gives the processor to other threads (userfaultfd does that) [default: what the
    /// trap does]
    #[arg(long, value_name = "HOW", value_enum, help_heading = MECHANISM)]
    pub(crate) wait: Option<Wait>,

    /// Seed of every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = MECHANISM)]
    #[arg(value_parser = seed)]
    pub(crate) seed: u64,

    /// Do not measure first what a fault costs on this machine: that cost then comes on top of
    /// every delay
    #[arg(long, help_heading = MECHANISM)]
    pub(crate) no_calibrate: bool,

    /// Take the cost of a fault from the record of another run (--json) with the same trap, instead
    /// of measuring it
    #[arg(long, value_name = "RECORD", value_parser = known, conflicts_with = "no_calibrate")]
    #[arg(help_heading = MECHANISM)]
    pub(crate) calibrated: Option<Known>,

    /// Run even if the delay asked for is shorter than a fault on this machine
    #[arg(long, conflicts_with = "no_calibrate", help_heading = MECHANISM)]
    pub(crate) allow_below_floor: bool,

    /// Accept memory that is not managed: a run of which much stayed local is not invalid, but
    /// told and labelled as what it is
    #[arg(long, help_heading = MECHANISM)]
    pub(crate) allow_unmanaged: bool,

    /// Write everything that was measured as JSON, of --validate the comparison; - is standard
    /// output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write every fault as Parquet
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) record: Option<PathBuf>,

    /// Print the resolved experiment as JSON and run nothing
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) validation: ValidateFlags,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, num_args = 1..)]
    #[arg(trailing_var_arg = true)]
    #[arg(value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

const MEMORY: &str = "Memory";
const LINK: &str = "Link to far memory";
const MECHANISM: &str = "Mechanism";
const OUTPUT: &str = "Output";

const RUN_NOTES: &str = "\
Units: 4k, 4KiB = 4096 bytes, 4kB = 4000 (4096 in fio); 40Gbps, 40Gb/s = 40 x 10^9 bits per second;
times in ns, us, ms, s.

Exit status: that of the program; 128+N if signal N ended it; 126 not executable; 127 not found;
125 afar failed; 4 the program ended by itself and the run is invalid, because less than 90 % of its
memory was managed or nothing of the process that used most; 3 this machine lacks something; 2 bad
usage. The program's own status is in --json, too. Of --validate: 0 the emulation surely agrees, 5
it surely does not, 6 the runs do not tell, 1 a run failed, 4 one is invalid, 130 interrupted.

Example: afar run --local 25% --rtt 5us --bandwidth 40Gbps -- redis-server --port 7000";

/// Who shares a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Budget {
    /// Each process has its own
    Process,
    /// One for the program and all its descendants; one policy orders the pages of all
    Tree,
}

/// An emulator whose delay is reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Like {
    /// Every fault waits by itself for two one-way latencies and its page's transfer
    Dime,
    /// A round trip, and transfers one after another in each direction
    Gao,
}

/// How faults are noticed, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Trap {
    /// bpf where it can be used, else userfaultfd
    Auto,
    /// A BPF program in the kernel: about 1 us a fault; needs CAP_BPF, CAP_PERFMON,
    /// CAP_SYS_NICE and CAP_SYS_PTRACE
    Bpf,
    /// userfaultfd: about 10 us a fault; needs access to /dev/userfaultfd
    Userfaultfd,
}

/// What a thread does while it waits for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wait {
    /// It keeps its processor
    Spin,
    /// It gives its processor away
    Sleep,
}

impl Wait {
    /// The name users know it by.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Sleep => "sleep",
        }
    }
}

fn engine() -> impl TypedValueParser<Value = EngineKind> {
    let names = EngineKind::ALL.map(EngineKind::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<EngineKind>())
}

fn policy() -> impl TypedValueParser<Value = PolicyKind> {
    let names = PolicyKind::ALL.map(PolicyKind::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<PolicyKind>())
}

/// The calibration in a record.
fn known(path: &str) -> Result<Known, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("read the record {path}: {error}; check the path"))?;
    let run: Run<RunResults> = Run::from_json(&text).map_err(|error| format!("{path}: {error}"))?;
    let none =
        || format!("{path}: its run was not calibrated; give the record of one with a delay");
    let calibration = run.results.calibration.ok_or_else(none)?;
    Ok(Known { calibration, trap: run.params.trap })
}

fn spin_max(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|error: measure::ParseError| error.to_string())?;
    match (1_000..=1_000_000).contains(&time.as_ns()) {
        true => Ok(time),
        false => Err(format!("{time} is not from 1us to 1ms")),
    }
}

fn replicas() -> impl TypedValueParser<Value = u8> {
    clap::value_parser!(u8).range(1..=8)
}

fn write_back() -> impl TypedValueParser<Value = WriteBack> {
    PossibleValuesParser::new(WriteBack::ALL.map(WriteBack::name)).map(|name| {
        let named = WriteBack::ALL.into_iter().find(|one| one.name() == name);
        named.expect("it is one of them")
    })
}

fn in_flight() -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(1..=128)
}

fn link() -> impl TypedValueParser<Value = LinkMode> {
    PossibleValuesParser::new(["full-duplex", "half-duplex", "per-fault"])
        .try_map(|name| name.parse::<LinkMode>())
}
