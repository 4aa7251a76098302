//! The cases of Figure 7, and its bars.

use experiment::stats;
use results::Estimate;

/// Transports of the figure, in its order, then later ones.
pub(super) const TRANSPORTS: [&str; 7] =
    ["pfabric", "phost", "fastpass", "dctcp", "tcp", "ndp", "homa"];
/// How many of [`TRANSPORTS`] the simulator of 2016 had.
pub(super) const PUBLISHED_COUNT: usize = 5;
/// Scales of a cluster: the blades are in one rack, or across the datacenter.
pub(super) const SCALES: [&str; 2] = ["rack", "datacenter"];
/// All pages between two blades within this time are one flow, as in §4.1: afar writes back some
/// thirty pages at once, 0.1 µs apart, and programs wait for one page before they request the next,
/// 3.5 µs later or more.
pub(super) const BATCH: &str = "4us";
/// The transport that also carries every page as a flow of its own, to test the effect of batches.
pub(super) const PAGES_BY: usize = 0;

/// The amount of simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// The index of the size of workloads.
    pub(super) size: usize,
    /// The rates of hosts' links.
    pub(super) rates: &'static [&'static str],
    /// The number of seeds, from 1 on; each places clusters and draws flows differently.
    pub(super) seed_count: u32,
    pub(super) flow_count: u32,
}

/// Without `--quick`.
pub(super) const FULL: Extent =
    Extent { size: 1, rates: &["40Gbps", "100Gbps"], seed_count: 5, flow_count: 20_000 };
/// With `--quick`.
pub(super) const QUICK: Extent =
    Extent { size: 0, rates: &["40Gbps"], seed_count: 5, flow_count: 1_000 };

/// One simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) place: Place,
    /// The index of the workload.
    pub(super) workload: usize,
    /// The index in [`TRANSPORTS`].
    pub(super) transport: usize,
    pub(super) is_published: bool,
    pub(super) seed: u32,
}

/// The results of one simulation.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// Mean slowdown of flows.
    pub(super) mean: f64,
    /// 99th percentile of slowdowns.
    pub(super) p99: f64,
    /// Share of the time that hosts' links were sending, while flows were measured.
    pub(super) load: f64,
    /// Mean completion time of 4 KiB, in microseconds; `None` if there is no such flow.
    pub(super) page_us: Option<f64>,
    /// Flows that never finished.
    pub(super) unfinished_count: usize,
    /// The buffer of a switch, as a setting.
    pub(super) buffer: String,
}

/// A network, and how pages become flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The index of the rate in an extent.
    pub(super) rate: usize,
    /// The index in [`SCALES`].
    pub(super) scale: usize,
    /// Whether a batch of pages is one flow; otherwise each page is one.
    pub(super) is_batched: bool,
}

/// One transport with one workload in one network, over all seeds.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    /// The case of the first seed.
    pub(super) case: Case,
    /// Mean slowdowns, by seed.
    pub(super) means: Vec<f64>,
    /// The estimate from those means.
    pub(super) slowdown: Estimate,
    /// The estimate of the 99th percentile of slowdowns.
    pub(super) p99: Estimate,
    /// Share of the time that hosts' links were sending: the median over seeds.
    pub(super) load: f64,
    /// The estimate of mean completion times of 4 KiB, in microseconds.
    pub(super) page_us: Option<Estimate>,
    /// Flows that never finished, over all seeds.
    pub(super) unfinished_count: usize,
    pub(super) buffer: String,
}

impl Place {
    /// All networks of an extent with batches, in the order of the table.
    pub(super) fn all(extent: &Extent) -> Vec<Self> {
        let is_batched = true;
        let of = |scale| (0..extent.rates.len()).map(move |rate| Self { rate, scale, is_batched });
        (0..SCALES.len()).flat_map(of).collect()
    }

    /// All networks of one rate, with batches and without.
    pub(super) fn once(rate: usize) -> Vec<Self> {
        let of = |scale| [true, false].map(|is_batched| Self { rate, scale, is_batched });
        (0..SCALES.len()).flat_map(of).collect()
    }

    /// Its name in captions.
    pub(super) fn name(self, extent: &Extent) -> String {
        format!("{} at {}", SCALES[self.scale], extent.rates[self.rate])
    }
}

impl Bar {
    /// All bars whose seeds were all simulated.
    pub(super) fn all(cases: &[Case], points: &[Option<Point>]) -> Vec<Self> {
        let mut groups: Vec<(Case, Vec<Option<&Point>>)> = Vec::new();
        for (case, point) in cases.iter().zip(points) {
            match groups.iter_mut().find(|(first, _)| first.is_like(case)) {
                Some((_, group)) => group.push(point.as_ref()),
                None => groups.push((*case, vec![point.as_ref()])),
            }
        }
        let bar = |(case, points): (Case, Vec<Option<&Point>>)| {
            let points: Vec<&Point> = points.into_iter().collect::<Option<_>>()?;
            let of = |value: fn(&Point) -> f64| -> Vec<f64> {
                points.iter().map(|point| value(point)).collect()
            };
            let pages: Option<Vec<f64>> = points.iter().map(|point| point.page_us).collect();
            Some(Self {
                case,
                means: of(|point| point.mean),
                slowdown: stats::estimate(&of(|point| point.mean))?,
                p99: stats::estimate(&of(|point| point.p99))?,
                load: stats::median(&mut of(|point| point.load))?,
                page_us: pages.and_then(|pages| stats::estimate(&pages)),
                unfinished_count: points.iter().map(|point| point.unfinished_count).sum(),
                buffer: points.first()?.buffer.clone(),
            })
        };
        groups.into_iter().filter_map(bar).collect()
    }
}

impl Case {
    /// Whether two cases differ at most in their seeds.
    fn is_like(&self, other: &Self) -> bool {
        let all = |case: &Self| (case.place, case.workload, case.transport, case.is_published);
        all(self) == all(other)
    }
}

/// All seeds of an extent.
pub(super) fn seeds(extent: &Extent) -> Vec<u32> {
    (1..=extent.seed_count).collect()
}

/// All cases of an extent with `workloads`.
pub(super) fn cases(extent: &Extent, workloads: &[usize]) -> Vec<Case> {
    let mut cases = Vec::new();
    for place in (0..extent.rates.len()).flat_map(Place::once) {
        for &workload in workloads {
            for transport in 0..TRANSPORTS.len() {
                for is_published in [true, false] {
                    let of = |seed| Case { place, workload, transport, is_published, seed };
                    let is_known = transport < PUBLISHED_COUNT || !is_published;
                    if is_known && (place.is_batched || transport == PAGES_BY) {
                        cases.extend(seeds(extent).into_iter().map(of));
                    }
                }
            }
        }
    }
    // The longest cases, those of Fastpass, come first, so that no processor idles at the end.
    cases.sort_by_key(|case| TRANSPORTS[case.transport] != "fastpass");
    cases
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::workloads::WORKLOADS;
    use super::*;

    pub(in super::super) const EXTENT: Extent = Extent { seed_count: 5, ..QUICK };

    /// Every case of one rate with a mean slowdown by a rule.
    pub(in super::super) fn bars(rule: impl Fn(&Case) -> f64) -> Vec<Bar> {
        let cases = cases(&EXTENT, &(0..WORKLOADS.len()).collect::<Vec<_>>());
        let point = |case: &Case| {
            let mean = rule(case) + f64::from(case.seed) * 1e-4;
            let page_us = Some(mean);
            let buffer = "36864B".to_owned();
            Some(Point { mean, p99: 2.0 * mean, load: 0.1, page_us, unfinished_count: 0, buffer })
        };
        let points: Vec<Option<Point>> = cases.iter().map(point).collect();
        Bar::all(&cases, &points)
    }
}
