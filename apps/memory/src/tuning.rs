//! The delays, bandwidths and budgets that a run may have, at its start and later.

use console::{Class, Classed};
use farmem::{Retune, Tier};
use measure::{Bytes, Duration};

use crate::demand::budget;
use crate::experiment::Experiment;
use crate::mechanism::Mechanism;
use crate::setting::{Change, SettingError};
use document::{Bandwidth, delay};

/// The settings of a run and what limits them.
#[derive(Debug, Clone)]
pub(crate) struct Tuning {
    tiers: Vec<Tier>,
    of: Option<Bytes>,
    mechanism: Mechanism,
    /// The shortest delay that is allowed, except 0.
    floor: Duration,
    changes: Vec<String>,
}

/// Why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TuningError {
    #[error(
        "a delay of {delay} for a page is less than the {floor} that a fault takes on this \
         machine; ask for at least that, for 0, or for --allow-below-floor"
    )]
    BelowFloor { delay: Duration, floor: Duration },
    #[error(
        "a delay of {delay} for a page is more than the {limit} that trap {trap} can wait; ask for \
         less, or run with --engine arena --trap userfaultfd"
    )]
    TooLong { delay: Duration, limit: Duration, trap: &'static str },
    #[error(
        "{local} of local memory is less than the {limit} that trap {trap} can hold; ask for more, \
         or run with --engine arena --trap userfaultfd"
    )]
    TooSmall { local: Bytes, limit: Bytes, trap: &'static str },
    #[error("there is no tier \"{name}\" in this run; use {known}")]
    NoTier { name: String, known: String },
    #[error("the tier draws its delays from a profile, so rtt has no effect; leave it out")]
    Profile,
    #[error(transparent)]
    Setting(#[from] SettingError),
}

impl Classed for TuningError {
    fn class(&self) -> Class {
        Class::Usage
    }
}

impl Tuning {
    /// The settings of a run with `mechanism`, where no delay but 0 may be shorter than `floor`.
    pub(crate) fn new(experiment: &Experiment, mechanism: Mechanism, floor: Duration) -> Self {
        Self {
            tiers: experiment.tiers.clone(),
            of: experiment.of,
            mechanism,
            floor,
            changes: Vec::new(),
        }
    }

    /// The current settings.
    pub(crate) fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// Every change so far, in words.
    pub(crate) fn into_changes(self) -> Vec<String> {
        self.changes
    }

    /// Checks all tiers.
    ///
    /// # Errors
    /// At the first setting that is out of its limits.
    pub(crate) fn check(&self) -> Result<(), TuningError> {
        self.tiers.iter().try_for_each(|tier| self.check_tier(tier))
    }

    /// Applies a change at `elapsed_ns` into the run, or nothing if it is refused. Returns the
    /// change for the engine.
    ///
    /// # Errors
    /// When there is no such tier, or a setting is out of its limits.
    pub(crate) fn apply(
        &mut self,
        change: &Change,
        elapsed_ns: u64,
    ) -> Result<Retune, TuningError> {
        let name = change.tier.as_ref().unwrap_or(&self.tiers[0].name);
        let index = self.tiers.iter().position(|tier| tier.name == *name);
        let Some(index) = index else {
            let known: Vec<&str> = self.tiers.iter().map(|tier| tier.name.as_str()).collect();
            return Err(TuningError::NoTier { name: name.clone(), known: known.join(", ") });
        };
        let mut tier = self.tiers[index].clone();
        let mut retune = Retune { tier: index, ..Retune::default() };
        if let Some(rtt) = &change.rtt {
            if tier.link.profile.is_some() {
                return Err(TuningError::Profile);
            }
            tier.link.rtt = delay(rtt).map_err(|error| SettingError::Value("rtt", error))?;
            retune.rtt = Some(tier.link.rtt);
        }
        if let Some(bandwidth) = &change.bandwidth {
            let Bandwidth(rate) =
                bandwidth.parse().map_err(|error| SettingError::Value("bandwidth", error))?;
            tier.link.bandwidth = rate;
            retune.bandwidth = Some(rate);
        }
        if let Some(local) = &change.local {
            let local = local.parse().map_err(|error| SettingError::Value("local", error))?;
            tier.local = Some(local);
            retune.local = Some(local);
        }
        self.check_tier(&tier)?;
        self.tiers[index] = tier;
        let at = Duration::from_ns(elapsed_ns);
        self.changes.push(format!("changed at {at}: {change}"));
        Ok(retune)
    }

    // Checks a tier's delay and local memory against floor and trap.
    fn check_tier(&self, tier: &Tier) -> Result<(), TuningError> {
        let delay = tier.link.page_delay();
        if !delay.is_zero() && delay < self.floor {
            let floor = self.floor;
            return Err(TuningError::BelowFloor { delay, floor });
        }
        let trap = self.mechanism.trap();
        let delay = tier.link.longest_page_delay();
        if let Some(limit) = self.mechanism.delay_max().filter(|&limit| delay > limit) {
            return Err(TuningError::TooLong { delay, limit, trap });
        }
        let local = budget(tier, self.of);
        match (local, self.mechanism.local_min()) {
            (Some(local), Some(limit)) if local < limit => {
                Err(TuningError::TooSmall { local, limit, trap })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farmem::TrapKind;

    use crate::experiment::tests::resolve;

    fn tuning(flags: &str, trap: TrapKind, floor_us: u64) -> Tuning {
        let mechanism = Mechanism::Arena(trap);
        Tuning::new(&resolve(flags).unwrap(), mechanism, Duration::from_us(floor_us))
    }

    fn change(words: &str) -> Change {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        Change::from_words(&words).unwrap()
    }

    #[test]
    fn check_holds_the_floor_but_not_for_no_delay() {
        let check = |flags, floor_us| tuning(flags, TrapKind::Bpf, floor_us).check();
        assert_eq!(check("--rtt 5us", 5), Ok(()));
        assert_eq!(check("--rtt 0", 5), Ok(()));
        let (delay, floor) = (Duration::from_us(5), Duration::from_us(6));
        assert_eq!(check("--rtt 5us", 6), Err(TuningError::BelowFloor { delay, floor }));
        // 4.19 µs for a page at 7.82 Gb/s: the transfer counts.
        assert_eq!(check("--rtt 2us --bandwidth 7.82Gbps", 6), Ok(()));
        assert!(check("--rtt 9us --tier name=b,rtt=2us", 6).is_err(), "every tier counts");
    }

    #[test]
    fn check_holds_the_limits_of_bpf_for_bpf_only() {
        let cases = [
            ("--rtt 1ms", true),
            ("--rtt 1001us", false),
            ("--local 1MiB", true),
            ("--local 1020KiB", false),
            ("--local 10% --of 10MiB", true),
            ("--local 10% --of 9MiB", false),
            ("--local 0.001%", true),
        ];
        for (flags, allowed) in cases {
            assert_eq!(tuning(flags, TrapKind::Bpf, 0).check().is_ok(), allowed, "{flags}");
            assert_eq!(tuning(flags, TrapKind::Userfault, 0).check(), Ok(()), "{flags}");
        }
    }

    #[test]
    fn apply_changes_one_tier_and_says_so() {
        let mut tuning = tuning("--rtt 5us --tier name=b,rtt=9us", TrapKind::Bpf, 1);
        let retune = tuning.apply(&change("tier=b rtt=7us bandwidth=none"), 1_500_000_000);
        let wanted =
            Retune { tier: 1, rtt: Some(Duration::from_us(7)), bandwidth: Some(None), local: None };
        assert_eq!(retune, Ok(wanted));
        assert_eq!(tuning.tiers()[0].link.rtt, Duration::from_us(5));
        assert_eq!(tuning.tiers()[1].link.rtt, Duration::from_us(7));
        assert_eq!(tuning.into_changes(), ["changed at 1.5 s: tier=b rtt=7us bandwidth=none"]);
    }

    #[test]
    fn apply_changes_nothing_that_is_not_allowed() {
        let mut tuning = tuning("--rtt 5us --local 4MiB", TrapKind::Bpf, 2);
        let before = format!("{:?}", tuning.tiers());
        for words in ["rtt=1us", "rtt=2ms", "rtt=9us local=8KiB", "tier=b rtt=9us"] {
            assert!(tuning.apply(&change(words), 0).is_err(), "{words}");
            assert_eq!(format!("{:?}", tuning.tiers()), before, "{words}");
        }
        assert!(tuning.into_changes().is_empty());
    }
}
