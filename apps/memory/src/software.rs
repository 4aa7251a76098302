//! Measures what far memory costs on this machine beyond the delays of its network.
//!
//! ```text
//! probe that reads whole pages, local and far in turn ─► their mean times ─► the difference
//!                                                       less the delay
//! ```
//!
//! A calibrated delay ends when the page can be touched. There are further costs: the program's
//! work evicts the fault handler's lines from the caches, and the handler evicts the program's, so
//! that a fetch costs more the longer the program computed since the last one; and evictions
//! interrupt the program and flush its TLB, once for all pages that leave together. A program that
//! reads its memory in order has its next lines prefetched, and loses less than one that jumps
//! about. So the costs are measured with more and less work between fetches, in order and not, and
//! with more and fewer pages that leave together.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};

use farmem::{RunConfig, Tier, TrapKind, batch};
use measure::{Calibration, Duration, Pages};
use paging::reuse::SamplerConfig;
use results::prediction::Software;

use crate::calibrate::{CalibrationError, ask, engine, far, tier_name};

/// One measurement: pages of the probe, how many are local, and words read between two touches.
#[derive(Debug, Clone, Copy)]
struct Case {
    pages: Pages,
    local: Pages,
    between: u64,
    in_order: bool,
    touches: u64,
}

/// Few pages are evicted together; then many, with ever more work between touches, and with as much
/// work in order. Some 100 ms each.
const CASES: [Case; 6] = [
    Case { touches: 8192, ..case(2048, 512, 2000) },
    Case { touches: 12_288, ..case(8192, 6144, 0) },
    Case { touches: 10_240, ..case(8192, 6144, 2000) },
    Case { touches: 1280, ..case(8192, 6144, 40_000) },
    Case { touches: 10_240, in_order: true, ..case(8192, 6144, 8000) },
    Case { touches: 1280, in_order: true, ..case(8192, 6144, 160_000) },
];
/// All pages local, and long enough for some thousand touches to be seen.
const WATCHED: Case = Case { touches: 49_152, ..case(16_384, 0, 2000) };
/// How often each case is measured; the median counts.
const ROUNDS: usize = 5;

// A case with accesses in random order; the caller sets its touches.
const fn case(pages: u64, local: u64, between: u64) -> Case {
    let (pages, local) = (Pages::new(pages), Pages::new(local));
    Case { pages, local, between, in_order: false, touches: 0 }
}

/// Measures the costs for a delay for which `calibration` was made. Calls `progress` before each
/// part with the number of parts done and of all.
///
/// # Errors
/// When the engine cannot run the probe.
pub(crate) fn measure(
    trap: TrapKind,
    delay: Duration,
    calibration: &Calibration,
    mut progress: impl FnMut(usize, usize),
) -> Result<Software, CalibrationError> {
    let mut parts = 0..ROUNDS * (CASES.len() + 1);
    let mut next = || progress(parts.next().unwrap_or(parts.end), parts.end);
    let mut measured = [const { Vec::new() }; CASES.len()];
    for _round in 0..ROUNDS {
        for (case, measured) in CASES.iter().zip(&mut measured) {
            next();
            let (near_ns, far_ns) = case.measure(trap, delay, calibration)?;
            measured.push((far_ns.saturating_sub(near_ns + delay.as_ns()), near_ns));
        }
    }
    let median = |mut measured: Vec<(u64, u64)>| {
        measured.sort_unstable();
        let (beyond_ns, near_ns) = measured[measured.len() / 2];
        (near_ns, beyond_ns)
    };
    let [few, at_once, some, much, some_in_order, much_in_order] = measured.map(median);
    let together = |case: usize| evicted(CASES[case].local);
    let software = between(
        (together(0), few.1),
        together(2),
        [at_once, some, much],
        [at_once, some_in_order, much_in_order],
    );
    let mut touch_ns = Vec::new();
    for _round in 0..ROUNDS {
        next();
        touch_ns.push(WATCHED.watch(trap)?);
    }
    touch_ns.sort_unstable();
    Ok(Software { touch_ns: touch_ns[ROUNDS / 2], ..software })
}

/// Solves for the costs of a fetch and of a batch. `few`: pages that were evicted together, and
/// nanoseconds of a fetch; `fetches` and `in_order`: work between fetches, and nanoseconds of a
/// fetch, when `many` were evicted together.
fn between(
    few: (u64, u64),
    many: u64,
    fetches: [(u64, u64); 3],
    in_order: [(u64, u64); 3],
) -> Software {
    // ns = fetch + batch / evicted, with the same work in between.
    let some_ns = fetches[1].1;
    let batch_ns = match few.1.checked_sub(some_ns) {
        Some(more_ns) if few.0 < many => more_ns * few.0 * many / (many - few.0),
        _ => 0,
    };
    let batch_ns = batch_ns.min(some_ns * many);
    let own = |(work_ns, ns): (u64, u64)| (work_ns, ns.saturating_sub(batch_ns / many));
    let sorted = |fetches: [(u64, u64); 3]| {
        let mut fetches = fetches.map(own).to_vec();
        fetches.sort_unstable();
        fetches
    };
    let (fetch_ns, fetch_in_order_ns) = (sorted(fetches), sorted(in_order));
    Software { fetch_ns, fetch_in_order_ns, batch_ns, touch_ns: 0 }
}

/// The nanoseconds of a fetch when the program computes for `work_ns` between two fetches, a share
/// of `in_order` of which are to pages in order.
pub(crate) fn fetch_ns(software: &Software, work_ns: f64, in_order: f64) -> f64 {
    let in_order = in_order.clamp(0.0, 1.0);
    at(&software.fetch_ns, work_ns) * (1.0 - in_order)
        + at(&software.fetch_in_order_ns, work_ns) * in_order
}

/// Interpolates measured nanoseconds at `work_ns`, on a logarithmic scale, within the measured
/// range.
fn at(measured: &[(u64, u64)], work_ns: f64) -> f64 {
    let points = || measured.iter().map(|&(work, ns)| (work as f64, ns as f64));
    let Some((_, first)) = points().next() else { return 0.0 };
    let mut above = points().zip(points().skip(1)).filter(|(low, _)| work_ns > low.0);
    above.next_back().map_or(first, |(low, high)| {
        let part = (work_ns / low.0.max(1.0)).ln() / (high.0 / low.0.max(1.0)).ln();
        low.1 + (high.1 - low.1) * part.clamp(0.0, 1.0)
    })
}

/// How many pages are evicted together, with so many local ones.
pub(crate) fn evicted(local: Pages) -> u64 {
    batch(local.get()).div_ceil(2)
}

impl Case {
    /// The mean nanoseconds of a page that is local, and of one with a delay, touched in turn.
    fn measure(
        self,
        trap: TrapKind,
        delay: Duration,
        calibration: &Calibration,
    ) -> Result<(u64, u64), CalibrationError> {
        let tiers = vec![near(), far(1, Some(self.local), delay)];
        let known = (calibration.constant_ns, calibration.reference);
        let configure =
            |output: &OwnedFd| engine(trap, self.command(output.as_raw_fd(), 2), tiers, known);
        let (probed, _outcome) = ask(configure)?;
        match probed.as_slice() {
            [near, far] if near.touch_count > 0 && far.touch_count > 0 => {
                Ok((mean_ns(&near.samples_ns), mean_ns(&far.samples_ns)))
            }
            _ => Err(CalibrationError::Incomplete),
        }
    }

    /// The cost in nanoseconds of each seen touch of a watched page.
    fn watch(self, trap: TrapKind) -> Result<u64, CalibrationError> {
        let run = |watch: Option<SamplerConfig>| {
            let configure = |output: &OwnedFd| RunConfig {
                record: watch.is_some(),
                watch,
                ..engine(trap, self.command(output.as_raw_fd(), 1), vec![near()], (0, 0))
            };
            ask(configure).map(|(_probed, outcome)| outcome)
        };
        let plain = run(None)?;
        let watched = run(Some(SamplerConfig::new(1)))?;
        let [watched_ns, plain_ns] = [&watched, &plain].map(|run| run.results.seen().elapsed_ns);
        let more_ns = watched_ns.saturating_sub(plain_ns);
        let seen_count = watched.touches.map_or(0, |touches| touches.soft_count);
        more_ns.checked_div(seen_count).ok_or(CalibrationError::Incomplete)
    }

    // The probe's command line.
    fn command(self, output: i32, tiers: usize) -> Vec<OsString> {
        let names: Vec<String> = (0..tiers).map(tier_name).collect();
        let mut words = vec![
            launch::SELF.to_owned(),
            "probe".to_owned(),
            "--raw".to_owned(),
            "--whole".to_owned(),
            format!("--pages={}", self.pages.get()),
            format!("--touches={}", self.touches),
            format!("--between={}", self.between),
            format!("--tiers={}", names.join(",")),
            format!("--output=/proc/self/fd/{output}"),
        ];
        if self.in_order {
            words.push("--in-order".to_owned());
        }
        words.into_iter().map(OsString::from).collect()
    }
}

/// A tier that is all local.
fn near() -> Tier {
    far(0, None, Duration::ZERO)
}

/// The mean of all samples without the longest thousandth, which are due to other programs.
fn mean_ns(samples: &[u64]) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.truncate((sorted.len() * 999).div_ceil(1000));
    sorted.iter().sum::<u64>().checked_div(sorted.len() as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_tell_the_fetch_from_the_batch() {
        let fetches = [(300, 1700), (8000, 2000), (100_000, 6000)];
        let in_order = [(300, 1700), (9000, 1800), (90_000, 2500)];
        let between = |few, many| between(few, many, fetches, in_order);
        let software = between((32, 3000), 96);
        assert_eq!(software.batch_ns, 48_000);
        assert_eq!(software.fetch_ns, [(300, 1200), (8000, 1500), (100_000, 5500)]);
        assert_eq!(software.fetch_in_order_ns, [(300, 1200), (9000, 1300), (90_000, 2000)]);
        // Never more of it than there was, and none if there is no telling.
        assert_eq!(between((32, 20_000), 96).batch_ns, 2000 * 96);
        assert_eq!(between((32, 1900), 96).batch_ns, 0);
        assert_eq!(between((1, 9000), 1).batch_ns, 0);
    }

    #[test]
    fn a_fetch_costs_more_after_more_work() {
        let fetches = [(100, 1000), (10_000, 2000), (100_000, 6000)];
        let in_order = [(100, 1000), (10_000, 1000), (100_000, 2000)];
        let software = between((1, 0), 1, fetches, in_order);
        let of = |work_ns| fetch_ns(&software, work_ns, 0.0);
        assert_eq!((of(0.0), of(100.0), of(1e4), of(1e5), of(1e9)), (1e3, 1e3, 2e3, 6e3, 6e3));
        assert!((of(1000.0) - 1500.0).abs() < 1e-6, "half-way by the logarithm");
        assert_eq!((fetch_ns(&software, 1e5, 1.0), fetch_ns(&software, 1e5, 0.5)), (2e3, 4e3));
    }

    #[test]
    fn mean_leaves_the_longest_thousandth_out() {
        let mut samples = vec![10; 1998];
        samples.extend([1_000_000, 2_000_000]);
        assert_eq!(mean_ns(&samples), 10);
        assert_eq!((mean_ns(&[7, 9]), mean_ns(&[])), (8, 0));
    }
}
