//! The delay profile of emulated runs: how long the fetches of a real run took.

use std::fs::File;
use std::path::Path;

use measure::{Bytes, DelayProfile, Duration};
use records::{FaultKind, FaultReader};
use results::FetchTimes;

use super::error::ValidateError;

/// Fewer fetches are no measure of how long one takes.
const FETCHES_MIN: u64 = 20;
/// The factor of the ablation `scaled`: 5/4.
const SCALE: (u64, u64) = (5, 4);

/// Times of fetches in nanoseconds, ascending, as the trap has seen them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times(Vec<u64>);

/// How the times of an emulated run differ from those of the real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The times of the real run.
    AsMeasured,
    /// Every fetch takes the mean time.
    Mean,
    /// Every fetch takes 5/4 of its time.
    Scaled,
}

impl Times {
    /// The times of the fetches in a record of faults.
    pub(super) fn read(path: &Path) -> Result<Self, ValidateError> {
        let file = File::open(path).map_err(|error| ValidateError::Read {
            kind: "real".to_owned(),
            why: error.to_string(),
        })?;
        let mut reader = FaultReader::new(file)?;
        let mut times = Vec::new();
        while let Some(faults) = reader.next_group()? {
            let fetches = faults.iter().filter(|fault| fault.kind == FaultKind::Fetch);
            times.extend(fetches.map(|fault| u64::from(fault.measured_ns)));
        }
        let count = times.len() as u64;
        if count < FETCHES_MIN {
            return Err(ValidateError::TooFew { count });
        }
        times.sort_unstable();
        Ok(Self(times))
    }

    /// The median of the times.
    pub(super) fn median_ns(&self) -> u64 {
        self.0[(self.0.len() - 1) / 2]
    }

    /// The profile of an emulated run, if the trap of the real one has not seen `unseen_ns` of each
    /// fetch: requested delays are all that the program sees.
    pub(super) fn profile(&self, shape: Shape, unseen_ns: u64) -> DelayProfile {
        let mean = self.0.iter().sum::<u64>() / self.0.len() as u64;
        let times = self.0.iter().map(|&time| match shape {
            Shape::AsMeasured => time + unseen_ns,
            Shape::Mean => mean + unseen_ns,
            Shape::Scaled => (time + unseen_ns) * SCALE.0 / SCALE.1,
        });
        let samples = times.map(|ns| (Bytes::PAGE, Duration::from_ns(ns)));
        DelayProfile::from_samples(samples).expect("there are enough times")
    }

    /// The times for the record, with `unseen_ns` added to each.
    pub(super) fn told(&self, unseen_ns: u64) -> FetchTimes {
        let us = |ns: u64| (ns + unseen_ns) as f64 / 1e3;
        let at = |percent: usize| us(self.0[(self.0.len() - 1) * percent / 100]);
        let mean = self.0.iter().sum::<u64>() as f64 / self.0.len() as f64;
        FetchTimes {
            count: self.0.len() as u64,
            mean_us: (mean + unseen_ns as f64) / 1e3,
            p50_us: at(50),
            p99_us: at(99),
        }
    }
}

/// The times of fetches by a given profile.
pub(super) fn told(profile: &DelayProfile) -> FetchTimes {
    const ENTRIES: usize = 1000;
    let us = |time: Duration| time.as_ns_f64() / 1e3;
    let all = profile.table(Bytes::PAGE, ENTRIES);
    FetchTimes {
        count: 0,
        mean_us: all.iter().map(|&time| us(time)).sum::<f64>() / ENTRIES as f64,
        p50_us: us(profile.quantile(Bytes::PAGE, 0.5)),
        p99_us: us(profile.quantile(Bytes::PAGE, 0.99)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(profile: &DelayProfile, q: f64) -> u64 {
        profile.quantile(Bytes::PAGE, q).as_ns()
    }

    #[test]
    fn an_emulated_run_is_asked_for_what_the_real_trap_has_not_seen_as_well() {
        let times = Times(vec![10_000, 20_000, 60_000]);
        let plain = times.profile(Shape::AsMeasured, 1_000);
        assert_eq!([0.0, 0.5, 1.0].map(|q| page(&plain, q)), [11_000, 21_000, 61_000]);
        assert_eq!(times.told(1_000).p50_us, 21.0);
        assert_eq!(times.told(1_000).mean_us, 31.0);
    }

    #[test]
    fn a_profile_that_was_given_is_told_as_it_is() {
        let times = told(&"4096,10\n4096,30\n".parse().expect("it is a profile"));
        assert_eq!((times.mean_us, times.p50_us, times.p99_us), (20.0, 10.0, 30.0));
    }

    #[test]
    fn ablations_change_what_they_say() {
        let times = Times(vec![10_000, 20_000, 60_000]);
        let mean = times.profile(Shape::Mean, 1_000);
        assert_eq!([0.0, 1.0].map(|q| page(&mean, q)), [31_000, 31_000]);
        let scaled = times.profile(Shape::Scaled, 2_000);
        assert_eq!([0.0, 1.0].map(|q| page(&scaled, q)), [15_000, 77_500]);
    }
}
