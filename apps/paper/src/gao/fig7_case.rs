//! The cases of Figure 7, and the bars that come of them.

use experiment::stats;
use results::Estimate;

/// Transports of the figure, in its order, then those published later.
pub(super) const TRANSPORTS: [&str; 7] =
    ["pfabric", "phost", "fastpass", "dctcp", "tcp", "ndp", "homa"];
/// How many of [`TRANSPORTS`] the simulator of 2016 had.
pub(super) const PUBLISHED_COUNT: usize = 5;
/// Where the blades of a cluster are.
pub(super) const SCALES: [&str; 2] = ["rack", "datacenter"];
/// What a pair of blades moves within this time is one flow, as §4.1 sums what is swapped at once:
/// afar writes back some thirty pages at once, 0.1 µs apart, and programs wait for one page before
/// they ask for the next, 3.5 µs later or more.
pub(super) const BATCH: &str = "4us";
/// The transport that also carries every page by itself, to test what batches do.
pub(super) const PAGES_BY: usize = 0;

/// How much is simulated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Which of the sizes that workloads have.
    pub(super) size: usize,
    /// Rates of hosts' links.
    pub(super) rates: &'static [&'static str],
    /// Seeds from 1 on; each places the clusters and draws the flows anew.
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
    /// One of the workloads, by its place.
    pub(super) workload: usize,
    /// One of [`TRANSPORTS`].
    pub(super) transport: usize,
    pub(super) is_published: bool,
    pub(super) seed: u32,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// Mean slowdown of flows.
    pub(super) mean: f64,
    /// 99th percentile of slowdowns.
    pub(super) p99: f64,
    /// Share of the time that hosts' links were sending, while flows were measured.
    pub(super) load: f64,
    /// Mean completion time of 4 KiB, in microseconds; nothing if no flow carries that.
    pub(super) page_us: Option<f64>,
    /// Flows that never finished.
    pub(super) unfinished_count: usize,
    /// What may wait at a switch, as a setting.
    pub(super) buffer: String,
}

/// One network, and how pages become flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// One of the rates of an extent.
    pub(super) rate: usize,
    /// One of [`SCALES`].
    pub(super) scale: usize,
    /// Whether what a pair moves at once is one flow; else each page is one.
    pub(super) is_batched: bool,
}

/// One transport with one workload in one network, over all seeds.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    /// Of the first seed.
    pub(super) case: Case,
    /// Mean slowdowns, by seed.
    pub(super) means: Vec<f64>,
    /// Of those means.
    pub(super) slowdown: Estimate,
    /// Of 99th percentiles of slowdowns.
    pub(super) p99: Estimate,
    /// Share of the time that hosts' links were sending: the median over seeds.
    pub(super) load: f64,
    /// Of mean completion times of 4 KiB, in microseconds.
    pub(super) page_us: Option<Estimate>,
    /// Flows that never finished, with all seeds.
    pub(super) unfinished_count: usize,
    pub(super) buffer: String,
}

impl Place {
    /// Every one of an extent with batches, in the order of the table.
    pub(super) fn all(extent: &Extent) -> Vec<Self> {
        let is_batched = true;
        let of = |scale| (0..extent.rates.len()).map(move |rate| Self { rate, scale, is_batched });
        (0..SCALES.len()).flat_map(of).collect()
    }

    /// Every one of a rate.
    pub(super) fn once(rate: usize) -> Vec<Self> {
        let of = |scale| [true, false].map(|is_batched| Self { rate, scale, is_batched });
        (0..SCALES.len()).flat_map(of).collect()
    }

    /// As a caption has it.
    pub(super) fn name(self, extent: &Extent) -> String {
        format!("{} at {}", SCALES[self.scale], extent.rates[self.rate])
    }
}

impl Bar {
    /// Bars of which every seed was simulated.
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
    /// Whether only the seed may differ.
    fn is_like(&self, other: &Self) -> bool {
        let all = |case: &Self| (case.place, case.workload, case.transport, case.is_published);
        all(self) == all(other)
    }
}

/// Every seed of an extent.
pub(super) fn seeds(extent: &Extent) -> Vec<u32> {
    (1..=extent.seed_count).collect()
}

/// Every case of an extent with some of the workloads.
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
    // The longest last would leave processors idle; Fastpass with many small flows is that.
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
