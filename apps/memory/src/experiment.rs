//! From flags to an experiment: defaults filled in, presets applied, contradictions refused.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use console::{Class, Classed};
use farmem::{BudgetScope, RunConfig, TIERS_MAX, Tier, TrapKind};
use measure::{
    Bytes, Calibration, DelayProfile, Duration, EngineKind, Fraction, LinkConfig, LinkMode,
    LocalSize, Params, ProfileError, ShareOf, TierParams,
};
use paging::write_back::WriteBack;
use paging::{PolicyKind, Prefetch};
use swap::{SwapConfig, page_cluster};

use crate::calibrate::Known;
use crate::demand::budget;
use crate::far::Far;
use crate::keep;
use crate::mechanism::Mechanism;
use crate::run::flags::{Budget, Like, RunFlags, Trap, Wait};
use crate::setting::TierSetting;
use document::Bandwidth;
use sys::processors::Processors;

/// Longest spin of a thread for a page on a blade: interrupts are off meanwhile, and other delays
/// of a processor are about as long.
const SPIN_MAX: Duration = Duration::from_us(30);
// Name of the tier where memory goes by default.
const DEFAULT_TIER: &str = "far";

/// Everything that decides a run.
#[derive(Debug, Clone)]
pub(crate) struct Experiment {
    pub(crate) program: Vec<OsString>,
    /// At least one; the first is the default tier.
    pub(crate) tiers: Vec<Tier>,
    pub(crate) of: Option<Bytes>,
    pub(crate) scope: BudgetScope,
    pub(crate) policy: PolicyKind,
    pub(crate) prefetch: Prefetch,
    /// Most pages on their way to far memory at a time; `None` leaves it to the engine.
    pub(crate) in_flight: Option<u64>,
    pub(crate) write_back: WriteBack,
    pub(crate) seed: u64,
    pub(crate) engine: EngineKind,
    /// `vm.page-cluster` for the swap engine; `None` leaves it unchanged.
    pub(crate) page_cluster: Option<u64>,
    /// The requested trap; [`crate::trap`] decides.
    pub(crate) trap: Trap,
    /// The requested way to wait; `None` for that of the trap.
    pub(crate) wait: Option<Wait>,
    pub(crate) profile: Option<PathBuf>,
    pub(crate) calibrate: bool,
    /// A calibration of an earlier run, in place of a new one.
    pub(crate) known: Option<Known>,
    pub(crate) allow_below_floor: bool,
    /// The blades, and how long they may be unreachable.
    pub(crate) far: Option<Far>,
    /// Longest spin of a thread for a page on a blade; `None` for [`SPIN_MAX`].
    spin_max: Option<Duration>,
    /// The processor that the supervisor stays on; `None` leaves it to the kernel.
    processor: Option<usize>,
    /// The file of the order of first fetches.
    remember: Option<PathBuf>,
}

/// Why flags are refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("--of {of} with --local {local}: a size is not a share of anything; leave out --of")]
    OfSize { of: ShareOf, local: LocalSize },
    #[error(
        "--of peak: a run knows the most that its program used only at its end; give what a run \
         with --local 100% had in use at most, or let afar sweep run both"
    )]
    OfPeak,
    #[error(
        "--like dime counts its latency one way, so --rtt contradicts it; \
         give half of it as --one-way"
    )]
    DimeRoundTrip,
    #[error(
        "--like gao counts its latency as a round trip, so --one-way contradicts it; \
         give twice of it as --rtt"
    )]
    GaoOneWay,
    #[error(
        "--like {preset} is --{flag} {wanted}, so --{flag} {given} contradicts it; leave one out"
    )]
    Like { preset: &'static str, flag: &'static str, wanted: &'static str, given: String },
    #[error(
        "read the delay profile {}: {source}; check the path and its permissions",
        path.display()
    )]
    ProfileFile { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Profile { path: PathBuf, source: ProfileError },
    #[error("{given} further tiers: there can be at most {}; leave some out", TIERS_MAX - 1)]
    TierCount { given: usize },
    #[error(
        "two tiers are named \"{0}\"; rename one (\"{DEFAULT_TIER}\" is the default tier's name)"
    )]
    TierTwice(String),
    #[error("--engine swap: {flag} is for --engine arena, because {why}; leave it out")]
    NotForSwap { flag: &'static str, why: &'static str },
    #[error(
        "--trap bpf --wait sleep: a BPF program cannot put a thread to sleep; use --trap \
         userfaultfd, or leave one of the two out"
    )]
    BpfSleeps,
    #[error(
        "--trap userfaultfd --wait spin: the kernel puts every thread to sleep whose fault goes \
         through userfaultfd; use --trap bpf, or leave one of the two out"
    )]
    UserfaultfdSpins,
    #[error("--far with {flag}: {why}; leave one of the two out")]
    NotFar { flag: &'static str, why: &'static str },
    #[error(
        "--replicas {copies} needs as many blades, and --far names {blades}; name more, as --far \
         URI,URI, or ask for fewer copies"
    )]
    Replicas { copies: usize, blades: usize },
    #[error(
        "--spin-max {0}: with --trap userfaultfd or --wait sleep no thread spins; leave one of the \
         two out"
    )]
    SpinsAsleep(Duration),
    #[error(
        "--supervisor-cpu {0}: afar may not use that processor, or there is none; taskset -p $$ \
         shows those that it may"
    )]
    Processor(usize),
    #[error("--page-cluster is for --engine swap; add that, or leave it out")]
    NotForArena,
    #[error("{flag} is for --validate; add that, or leave it out")]
    Useless { flag: &'static str },
    #[error("--one-way {0}: a round trip can be at most 213 days; give less")]
    OneWayTooLong(Duration),
}

impl Classed for UsageError {
    fn class(&self) -> Class {
        Class::Usage
    }
}

impl Experiment {
    /// Makes an experiment from flags and defaults. Reads the delay profile, if there is one.
    ///
    /// # Errors
    /// When two flags contradict one another, or the profile cannot be read.
    pub(crate) fn resolve(flags: &RunFlags) -> Result<Self, UsageError> {
        check_useless(flags)?;
        check_engine(flags)?;
        check_wait(flags)?;
        check_far(flags)?;
        let local = flags.local.unwrap_or(LocalSize::Fraction(Fraction::ONE));
        if let (Some(of), LocalSize::Bytes(_)) = (flags.of, local) {
            return Err(UsageError::OfSize { of, local });
        }
        let of = match flags.of {
            None | Some(ShareOf::Live) => None,
            Some(ShareOf::Peak) => return Err(UsageError::OfPeak),
            Some(ShareOf::Bytes(bytes)) => Some(bytes),
        };
        let (mode, policy, write_back) = preset(flags)?;
        let mut tiers = vec![Tier {
            name: DEFAULT_TIER.to_owned(),
            local: Some(local),
            link: LinkConfig {
                mode,
                rtt: rtt(flags)?,
                bandwidth: flags.bandwidth.and_then(|Bandwidth(rate)| rate),
                profile: flags.profile.as_deref().map(read_profile).transpose()?,
            },
        }];
        if flags.tiers.len() >= TIERS_MAX {
            let given = flags.tiers.len();
            return Err(UsageError::TierCount { given });
        }
        for setting in &flags.tiers {
            if tiers.iter().any(|tier| tier.name == setting.name) {
                return Err(UsageError::TierTwice(setting.name.clone()));
            }
            tiers.push(further(setting, &tiers[0]));
        }
        Ok(Self {
            program: flags.program.clone(),
            tiers,
            of,
            scope: match (flags.engine, flags.budget) {
                (EngineKind::Swap, _) | (_, Some(Budget::Tree)) => BudgetScope::Tree,
                (EngineKind::Arena, Some(Budget::Process) | None) => BudgetScope::Process,
            },
            policy,
            prefetch: flags.prefetch,
            in_flight: flags.in_flight,
            write_back,
            seed: flags.seed,
            engine: flags.engine,
            page_cluster: flags.page_cluster,
            trap: flags.trap,
            wait: flags.wait,
            profile: flags.profile.clone(),
            calibrate: !flags.no_calibrate,
            known: flags.calibrated.clone(),
            allow_below_floor: flags.allow_below_floor,
            far: far(flags)?,
            spin_max: flags.spin_max,
            processor: flags.supervisor_cpu,
            remember: flags.remember.clone(),
        })
    }

    /// The configuration for the arena engine.
    pub(crate) fn config(&self, trap: TrapKind, cost: Calibration, record: bool) -> RunConfig {
        RunConfig {
            program: self.program.clone(),
            trap,
            spin_max: None,
            processor: self.processor,
            tiers: self.tiers.clone(),
            of: self.of,
            scope: self.scope,
            policy: self.policy,
            prefetch: self.prefetch,
            in_flight: self.in_flight,
            write_back: self.write_back,
            probation: None,
            seed: self.seed,
            record,
            watch: None,
            constant_ns: cost.constant_ns,
            reference: cost.reference,
        }
    }

    /// The configuration for the swap engine.
    pub(crate) fn swap_config(&self, record: bool) -> SwapConfig {
        let default = &self.tiers[0];
        SwapConfig {
            program: self.program.clone(),
            local: default.local,
            of: self.of,
            link: default.link.clone(),
            seed: self.seed,
            record,
            page_cluster: self.page_cluster,
            keeper: keep::COMMAND.map(OsString::from).to_vec(),
        }
    }

    /// Whether the flags demand that threads spin.
    pub(crate) fn wants_spin(&self) -> bool {
        let is_named = self.trap == Trap::Bpf || self.wait == Some(Wait::Spin);
        is_named || self.spin_max.is_some()
    }

    /// Longest spin of a thread for a page on a blade.
    pub(crate) fn spin_max(&self) -> Duration {
        self.spin_max.unwrap_or(SPIN_MAX)
    }

    /// The parameters for the record of the run.
    pub(crate) fn params(&self, mechanism: Mechanism) -> Params {
        let default = &self.tiers[0];
        let local = default.local.unwrap_or(LocalSize::Fraction(Fraction::ONE));
        let of = self.of.map_or(ShareOf::Live, ShareOf::Bytes);
        Params {
            engine: mechanism.engine().to_owned(),
            trap: mechanism.trap().to_owned(),
            wait: mechanism.wait().name().to_owned(),
            local: local.to_string(),
            local_bytes: budget(default, self.of).map(Bytes::get),
            of: local.is_share().then(|| of.name().to_owned()),
            of_bytes: self.of.filter(|_| local.is_share()).map(Bytes::get),
            rtt_ns: default.link.rtt.as_ns(),
            bandwidth_bps: default.link.bandwidth.map(measure::BitsPerSec::get),
            link: default.link.mode.to_string(),
            profile: self.profile.as_deref().map(|path| path.display().to_string()),
            policy: match mechanism {
                Mechanism::Arena(_) | Mechanism::Spinning => self.policy.to_string(),
                Mechanism::Swap => "kernel".to_owned(),
            },
            prefetch: match mechanism {
                Mechanism::Arena(_) | Mechanism::Spinning => self.prefetch.to_string(),
                Mechanism::Swap => "kernel".to_owned(),
            },
            in_flight_pages: self.in_flight,
            write_back: match mechanism {
                Mechanism::Swap => WriteBack::Free,
                Mechanism::Arena(_) | Mechanism::Spinning => self.write_back,
            }
            .name()
            .to_owned(),
            page_cluster: match mechanism {
                Mechanism::Arena(_) | Mechanism::Spinning => None,
                Mechanism::Swap => self.page_cluster.or_else(page_cluster),
            },
            budget_scope: match self.scope {
                BudgetScope::Process => "process".to_owned(),
                BudgetScope::Tree => "tree".to_owned(),
            },
            tiers: self.tiers[1..].iter().map(tier_params).collect(),
            far: self.far.as_ref().map(Far::told),
            replicas: self.far.as_ref().map(|far| far.copies as u64).filter(|&copies| copies > 1),
            spin_max_ns: (mechanism == Mechanism::Spinning).then(|| self.spin_max().as_ns()),
            remember: self.remember.as_deref().map(|path| path.display().to_string()),
        }
    }

    /// The program as the user named it.
    pub(crate) fn program_name(&self) -> String {
        let name = self.program.first();
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// The shortest page delay above 0 of all tiers; `None` if no tier has a delay.
    pub(crate) fn shortest_delay(&self) -> Option<Duration> {
        let delays = self.tiers.iter().map(|tier| tier.link.page_delay());
        delays.filter(|delay| !delay.is_zero()).min()
    }
}

/// Refuses flags that need --validate. clap cannot demand a flag that a third one excludes, as
/// --rtt does.
fn check_useless(flags: &RunFlags) -> Result<(), UsageError> {
    let given = flags.validation.given().into_iter().find(|(_, is_given)| *is_given);
    match given.filter(|_| flags.validation.uris.is_empty()) {
        None => Ok(()),
        Some((flag, _)) => Err(UsageError::Useless { flag }),
    }
}

/// Refuses flags that the chosen engine does not have.
fn check_engine(flags: &RunFlags) -> Result<(), UsageError> {
    if flags.engine == EngineKind::Arena {
        return if flags.page_cluster.is_some() { Err(UsageError::NotForArena) } else { Ok(()) };
    }
    const KERNEL: &str = "the kernel chooses which pages leave";
    let given = [
        ("--policy", flags.policy.is_some(), KERNEL),
        ("--like dime", flags.like == Some(Like::Dime), KERNEL),
        ("--prefetch", flags.prefetch != Prefetch::None, "the kernel reads ahead: --page-cluster"),
        ("--in-flight", flags.in_flight.is_some(), "the kernel writes pages when it likes"),
        ("--write-back", flags.write_back.is_some(), "the kernel writes pages when it likes"),
        ("--tier", !flags.tiers.is_empty(), "all swap space lies behind one link"),
        ("--trap", flags.trap != Trap::Auto, "the kernel handles the faults"),
        (
            "--wait sleep",
            flags.wait == Some(Wait::Sleep),
            "a request is delayed in a BPF program, which cannot sleep",
        ),
        (
            "--budget process",
            flags.budget == Some(Budget::Process),
            "a control group is one budget for all of its processes",
        ),
    ];
    match given.into_iter().find(|(_, given, _)| *given) {
        Some((flag, _, why)) => Err(UsageError::NotForSwap { flag, why }),
        None => Ok(()),
    }
}

/// Refuses a way to wait that the requested trap does not have.
fn check_wait(flags: &RunFlags) -> Result<(), UsageError> {
    match (flags.trap, flags.wait) {
        (Trap::Bpf, Some(Wait::Sleep)) => Err(UsageError::BpfSleeps),
        (Trap::Userfaultfd, Some(Wait::Spin)) => Err(UsageError::UserfaultfdSpins),
        _ => Ok(()),
    }
}

/// Refuses flags that contradict --far.
fn check_far(flags: &RunFlags) -> Result<(), UsageError> {
    if flags.far.is_empty() {
        return Ok(());
    }
    let given = [(
        "--engine swap",
        flags.engine == EngineKind::Swap,
        "the kernel swaps to block devices only",
    )];
    if let Some((flag, _, why)) = given.into_iter().find(|(_, given, _)| *given) {
        return Err(UsageError::NotFar { flag, why });
    }
    let allowed = Processors::of(0).ok();
    let is_allowed = |number: &usize| allowed.is_none_or(|all| all.only(*number).is_some());
    if let Some(number) = flags.supervisor_cpu.filter(|number| !is_allowed(number)) {
        return Err(UsageError::Processor(number));
    }
    let sleeps = flags.trap == Trap::Userfaultfd || flags.wait == Some(Wait::Sleep);
    match flags.spin_max.filter(|_| sleeps) {
        Some(time) => Err(UsageError::SpinsAsleep(time)),
        None => Ok(()),
    }
}

/// The blades of --far; `None` without it.
fn far(flags: &RunFlags) -> Result<Option<Far>, UsageError> {
    if flags.far.is_empty() {
        return Ok(None);
    }
    let far = Far::new(flags.far.clone(), usize::from(flags.replicas), flags.far_timeout);
    let blades = far.blade_count();
    match far.copies <= blades {
        true => Ok(Some(far)),
        false => Err(UsageError::Replicas { copies: far.copies, blades }),
    }
}

/// The link mode, policy and write-back of `--like`, or of the single flags without it.
fn preset(flags: &RunFlags) -> Result<(LinkMode, PolicyKind, WriteBack), UsageError> {
    let (preset, mode, policy, write_back) = match flags.like {
        None => {
            let mode = flags.link.unwrap_or_default();
            let write_back = match flags.far.is_empty() {
                true => flags.write_back.unwrap_or_default(),
                // A blade gets only pages that it does not have.
                false => WriteBack::Changed,
            };
            return Ok((mode, flags.policy.unwrap_or(PolicyKind::CLOCK), write_back));
        }
        Some(Like::Dime) if flags.rtt.is_some() => return Err(UsageError::DimeRoundTrip),
        Some(Like::Gao) if flags.one_way.is_some() => return Err(UsageError::GaoOneWay),
        // It frees a dirty page's frame without a delay.
        Some(Like::Dime) => ("dime", LinkMode::PerFault, PolicyKind::FIFO, WriteBack::Free),
        Some(Like::Gao) => ("gao", LinkMode::FullDuplex, PolicyKind::CLOCK, WriteBack::Written),
    };
    let contradicts = |flag, wanted, given| UsageError::Like { preset, flag, wanted, given };
    if let Some(given) = flags.link.filter(|&given| given != mode) {
        let wanted = if mode == LinkMode::PerFault { "per-fault" } else { "full-duplex" };
        return Err(contradicts("link", wanted, given.to_string()));
    }
    if let Some(given) = flags.policy.filter(|&given| given != policy) {
        return Err(contradicts("policy", policy.name(), given.to_string()));
    }
    if let Some(given) = flags.write_back.filter(|&given| given != write_back) {
        return Err(contradicts("write-back", write_back.name(), given.name().to_owned()));
    }
    Ok((mode, policy, write_back))
}

// The round trip of --rtt, or twice --one-way.
fn rtt(flags: &RunFlags) -> Result<Duration, UsageError> {
    match flags.one_way {
        None => Ok(flags.rtt.unwrap_or_default()),
        Some(one_way) => one_way.checked_mul(2).ok_or(UsageError::OneWayTooLong(one_way)),
    }
}

fn read_profile(path: &Path) -> Result<DelayProfile, UsageError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| UsageError::ProfileFile { path: path.to_owned(), source })?;
    DelayProfile::parse(&text)
        .map_err(|source| UsageError::Profile { path: path.to_owned(), source })
}

/// A further tier. Defaults: no delay, no limit and the default tier's link mode.
fn further(setting: &TierSetting, default: &Tier) -> Tier {
    Tier {
        name: setting.name.clone(),
        local: setting.local,
        link: LinkConfig {
            mode: setting.link.unwrap_or(default.link.mode),
            rtt: setting.rtt.unwrap_or_default(),
            bandwidth: setting.bandwidth.and_then(|Bandwidth(rate)| rate),
            profile: None,
        },
    }
}

fn tier_params(tier: &Tier) -> TierParams {
    TierParams {
        name: tier.name.clone(),
        capacity_bytes: None,
        rtt_ns: tier.link.rtt.as_ns(),
        bandwidth_bps: tier.link.bandwidth.map(measure::BitsPerSec::get),
        link: tier.link.mode.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    /// What `afar run FLAGS -- true` resolves to.
    pub(crate) fn resolve(flags: &str) -> Result<Experiment, UsageError> {
        let command = RunFlags::augment_args(clap::Command::new("run").no_binary_name(true));
        let words = flags.split_whitespace().chain(["--", "true"]);
        let matches = command.try_get_matches_from(words).unwrap();
        Experiment::resolve(&RunFlags::from_arg_matches(&matches).unwrap())
    }

    fn link(flags: &str) -> LinkConfig {
        resolve(flags).unwrap().tiers[0].link.clone()
    }

    #[test]
    fn presets_are_the_published_formulas() {
        let rate: measure::BitsPerSec = "40Gbps".parse().unwrap();
        let (us2, us5) = (Duration::from_us(2), Duration::from_us(5));
        let dime = link("--like dime --one-way 2us --bandwidth 40Gbps");
        assert_eq!(dime, LinkConfig::like_dime(us2, rate));
        let gao = link("--like gao --rtt 5us --bandwidth 40Gbps");
        assert_eq!(gao, LinkConfig::like_gao(us5, rate));
        assert_eq!(resolve("--like dime").unwrap().policy, PolicyKind::FIFO);
        let writes = ["--like dime", "--like gao", ""].map(|flags| resolve(flags).unwrap());
        let writes = writes.map(|experiment| experiment.write_back);
        assert_eq!(writes, [WriteBack::Free, WriteBack::Written, WriteBack::Written]);
        let far = resolve("--far memory:1MiB").unwrap();
        assert_eq!(far.write_back, WriteBack::Changed);
        assert!(resolve("--like dime --write-back written").is_err());
        assert!(resolve("--like dime --write-back free").is_ok());
        assert_eq!(resolve("--like gao").unwrap().policy, PolicyKind::CLOCK);
    }

    #[test]
    fn flags_that_mean_nothing_without_another_are_refused_beside_any_third() {
        for flags in ["--output x", "--repetitions 9", "--within 1%", "--ablate mean"] {
            let error = resolve(&format!("{flags} --rtt 5us")).unwrap_err().to_string();
            let flag = flags.split(' ').next().unwrap();
            assert_eq!(error, format!("{flag} is for --validate; add that, or leave it out"));
        }
    }

    #[test]
    fn presets_agree_with_flags_that_say_the_same() {
        let experiment = resolve("--like dime --link per-fault --policy fifo").unwrap();
        assert_eq!(experiment.tiers[0].link.mode, LinkMode::PerFault);
        assert!(resolve("--like dime --link half-duplex").is_err());
        assert!(resolve("--like gao --policy fifo").is_err());
    }

    #[test]
    fn defaults() {
        let experiment = resolve("").unwrap();
        assert_eq!(experiment.policy, PolicyKind::CLOCK);
        assert_eq!(experiment.seed, 1);
        assert_eq!(experiment.shortest_delay(), None, "no delay, so nothing to calibrate");
        let tier = &experiment.tiers[0];
        assert_eq!(tier.local, Some(LocalSize::Fraction(Fraction::ONE)));
        assert_eq!(tier.link.mode, LinkMode::FullDuplex);
    }

    #[test]
    fn engines_refuse_what_they_do_not_have() {
        for flags in [
            "--policy lru",
            "--like dime",
            "--prefetch next-4",
            "--tier name=a",
            "--trap bpf",
            "--budget process",
        ] {
            let refused = resolve(&format!("--engine swap {flags}"));
            assert!(matches!(refused, Err(UsageError::NotForSwap { .. })), "{flags}");
        }
        assert!(matches!(resolve("--page-cluster 0"), Err(UsageError::NotForArena)));
        let swap = resolve("--engine swap --like gao --rtt 5us --page-cluster 0").unwrap();
        assert_eq!(swap.scope, BudgetScope::Tree);
        let params = swap.params(Mechanism::Swap);
        assert_eq!((params.policy.as_str(), params.page_cluster), ("kernel", Some(0)));
        assert_eq!(swap.swap_config(false).link.mode, LinkMode::FullDuplex);
    }

    #[test]
    fn one_way_is_half_a_round_trip() {
        assert_eq!(link("--one-way 2us").rtt, Duration::from_us(4));
        assert!(matches!(resolve("--one-way 18000000s"), Err(UsageError::OneWayTooLong(_))));
    }

    #[test]
    fn further_tiers_share_as_the_first_unless_they_say_so() {
        let flags =
            "--link full-duplex --tier name=a,rtt=9us --tier name=b,link=half-duplex,local=1MiB";
        let tiers = resolve(flags).unwrap().tiers;
        assert_eq!(tiers.len(), 3);
        assert_eq!(tiers[1].link.mode, LinkMode::FullDuplex);
        assert_eq!((tiers[1].link.rtt, tiers[1].local), (Duration::from_us(9), None));
        assert_eq!(tiers[2].link.mode, LinkMode::HalfDuplex);
        let seven = "--tier name=t1 --tier name=t2 --tier name=t3 --tier name=t4 --tier name=t5 \
                     --tier name=t6 --tier name=t7";
        assert_eq!(resolve(seven).unwrap().tiers.len(), TIERS_MAX);
        let eight = format!("{seven} --tier name=t8");
        assert!(matches!(resolve(&eight), Err(UsageError::TierCount { given: 8 })));
    }

    #[test]
    fn the_shortest_delay_counts_the_transfer_and_skips_none() {
        // A page takes 819.2 ns at 40 Gb/s.
        let flags = "--rtt 5us --bandwidth 40Gbps --tier name=none --tier name=slow,rtt=9us";
        let shortest = resolve(flags).unwrap().shortest_delay();
        assert_eq!(shortest, Some(Duration::from_ps(5_819_200)));
    }

    #[test]
    fn a_share_is_recorded_with_what_it_is_a_share_of() {
        let of = |flags| {
            let params = resolve(flags).unwrap().params(Mechanism::Arena(TrapKind::Bpf));
            (params.of.clone(), params.of_bytes, params.share_told())
        };
        let live = of("--local 25%");
        let told = "25 % of what is in use at each moment (live footprint)".to_owned();
        assert_eq!(live, (Some("live".to_owned()), None, Some(told)));
        assert_eq!(of("--local 25% --of live"), live);
        let told = Some("25 % of 2.0 GiB".to_owned());
        assert_eq!(of("--local 25% --of 2GiB"), (Some("fixed".to_owned()), Some(2 << 30), told));
        for no_share in ["", "--local 512MiB", "--local 100% --of live"] {
            assert_eq!(of(no_share), (None, None, None), "{no_share}");
        }
        assert!(matches!(resolve("--local 25% --of peak"), Err(UsageError::OfPeak)));
        assert!(matches!(resolve("--local 1MiB --of live"), Err(UsageError::OfSize { .. })));
    }

    #[test]
    fn params_resolve_a_share_of_a_size_only() {
        let bytes =
            |flags| resolve(flags).unwrap().params(Mechanism::Arena(TrapKind::Bpf)).local_bytes;
        assert_eq!(bytes("--local 25%"), None);
        assert_eq!(bytes("--local 25% --of 2GiB"), Some(512 << 20));
        assert_eq!(bytes("--local 512MiB"), Some(512 << 20));
    }
}
