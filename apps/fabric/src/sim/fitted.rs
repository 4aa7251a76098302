//! Traffic like that of recorded programs: for each pair of blades the distribution of what a flow
//! carries and of the time to the next one, from which every cluster draws flows of its own (Gao
//! et al. 2016, §4.2).
//!
//! ```text
//! flows of one cluster, as recorded ─► Pair (sizes, gaps) ─► per cluster: next flow ─► Flow
//! ```
//!
//! Gaps and sizes of a pair are drawn independently: what follows a large flow, and what other
//! pairs do at the time, is lost. A record repeats, so the time from its last flow to its first is
//! a gap, too, and the mean of gaps is that of the record.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use measure::{Duration, Instant};
use netsim::{Exchange, Flow};
use workload::Draw;

/// The most gaps of a pair that are stored; of more, each stored gap is the mean of neighbours.
const GAPS_MAX: usize = 1 << 14;

/// What one blade sends another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    /// Blades of a cluster.
    src: u32,
    dst: u32,
    exchange: Exchange,
    /// Sizes in bytes, each with the number of flows that carry at most as much.
    sizes: Vec<(u64, u64)>,
    /// In ascending order, each as likely as any other.
    gaps_ps: Vec<u64>,
}

/// The distributions of each pair of blades, from one cluster's flows in order of time, whose
/// record lasts `length`.
pub(super) fn pairs(flows: &[Flow], length: Duration) -> Vec<Pair> {
    let mut by_pair = BTreeMap::<(u32, u32, Exchange), Vec<&Flow>>::new();
    for flow in flows {
        by_pair.entry((flow.src, flow.dst, flow.exchange)).or_default().push(flow);
    }
    let pair = |((src, dst, exchange), flows): ((u32, u32, Exchange), Vec<&Flow>)| {
        let mut counts = BTreeMap::<u64, u64>::new();
        for flow in &flows {
            *counts.entry(flow.bytes).or_default() += 1;
        }
        let mut until = 0;
        let sum = |(bytes, count)| {
            until += count;
            (bytes, until)
        };
        Pair {
            src,
            dst,
            exchange,
            sizes: counts.into_iter().map(sum).collect(),
            gaps_ps: gaps(&flows, length),
        }
    };
    by_pair.into_iter().map(pair).collect()
}

/// Times between consecutive flows, and from the last to the first, in ascending order, ps.
fn gaps(flows: &[&Flow], length: Duration) -> Vec<u64> {
    let mut gaps: Vec<u64> =
        flows.windows(2).map(|two| two[1].start.saturating_since(two[0].start).as_ps()).collect();
    let lasted: u64 = gaps.iter().sum();
    gaps.push(length.as_ps().saturating_sub(lasted).max(1));
    gaps.sort_unstable();
    if gaps.len() <= GAPS_MAX {
        return gaps;
    }
    let count = gaps.len();
    let mean = |part: usize| {
        let within = &gaps[part * count / GAPS_MAX..(part + 1) * count / GAPS_MAX];
        let sum: u128 = within.iter().map(|gap| u128::from(*gap)).sum();
        u64::try_from(sum / within.len() as u128).unwrap_or(u64::MAX)
    };
    (0..GAPS_MAX).map(mean).collect()
}

impl Pair {
    /// A random gap, ps.
    fn gap(&self, draw: &mut Draw) -> u64 {
        self.gaps_ps[place(draw, self.gaps_ps.len())]
    }

    /// A random size.
    fn bytes(&self, draw: &mut Draw) -> u64 {
        let all = self.sizes.last().map_or(0, |(_, until)| *until);
        let rank = draw.below(all);
        let place = self.sizes.partition_point(|(_, until)| *until <= rank);
        self.sizes[place].0
    }

    /// The time until the next flow at a random time, ps: longer gaps are met more often.
    fn rest(&self, draw: &mut Draw) -> u64 {
        let all: u128 = self.gaps_ps.iter().map(|gap| u128::from(*gap)).sum();
        let mut at = draw.below(u64::try_from(all).unwrap_or(u64::MAX));
        for gap in &self.gaps_ps {
            if at < *gap {
                return at;
            }
            at -= gap;
        }
        at
    }
}

/// A random index below `count`.
fn place(draw: &mut Draw, count: usize) -> usize {
    usize::try_from(draw.below(count as u64)).unwrap_or(0)
}

/// How flows are drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawing {
    pub(super) seed: u64,
    /// How many times over each pair draws its flows.
    pub(super) copies: u32,
    /// Whether every pair begins with a whole gap; else within one.
    pub(super) is_together: bool,
}

impl Drawing {
    /// The first `count` flows of all clusters; a cluster lists the host of each of its blades.
    pub(super) fn flows(self, pairs: &[Pair], clusters: &[Vec<u32>], count: usize) -> Vec<Flow> {
        let mut draw = Draw::new(self.seed);
        let mut next = BinaryHeap::new();
        for cluster in 0..clusters.len() {
            for (index, pair) in pairs.iter().enumerate() {
                for _copy in 0..self.copies {
                    let first =
                        if self.is_together { pair.gap(&mut draw) } else { pair.rest(&mut draw) };
                    next.push(Reverse((first, cluster, index)));
                }
            }
        }
        let mut flows = Vec::new();
        while flows.len() < count
            && let Some(Reverse((at_ps, cluster, index))) = next.pop()
        {
            let (pair, hosts) = (&pairs[index], &clusters[cluster]);
            let [src, dst] = [pair.src, pair.dst].map(|blade| hosts[blade as usize]);
            let bytes = pair.bytes(&mut draw);
            let (start, exchange) = (Instant::from_ps(at_ps), pair.exchange);
            flows.push(Flow { start, src, dst, bytes, exchange });
            next.push(Reverse((at_ps.saturating_add(pair.gap(&mut draw)), cluster, index)));
        }
        flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts of four flows from one pair, and another pair's flows far apart.
    fn recorded() -> (Vec<Flow>, Duration) {
        let mut flows = Vec::new();
        let mut draw = Draw::new(3);
        for burst in 0..2_000_u64 {
            for place in 0..4 {
                let start = Instant::from_ns(burst * 10_000 + place * 100 + draw.below(50));
                let bytes = 4096 * (1 + draw.below(20) / 19 * 9);
                flows.push(Flow { start, src: 2, dst: 0, bytes, ..Flow::default() });
            }
            if burst % 10 == 0 {
                let start = Instant::from_ns(burst * 10_000 + 5_000);
                flows.push(Flow { start, src: 1, dst: 3, bytes: 65_536, ..Flow::default() });
            }
        }
        flows.sort_by_key(|flow| flow.start);
        (flows, Duration::from_us(20_000))
    }

    fn drawing(seed: u64) -> Drawing {
        Drawing { seed, copies: 1, is_together: false }
    }

    #[test]
    fn copies_that_begin_together_are_as_many_and_begin_with_a_gap() {
        let flow = |ns| Flow { start: Instant::from_ns(ns), dst: 1, bytes: 5, ..Flow::default() };
        let pairs = pairs(&[flow(30), flow(130)], Duration::from_ns(200));
        assert_eq!(pairs[0].gaps_ps, [100_000; 2]);
        let drawing = Drawing { seed: 1, copies: 3, is_together: true };
        let drawn = drawing.flows(&pairs, &[vec![8, 9], vec![6, 7]], 12);
        let at = |ns| drawn.iter().filter(|flow| flow.start == Instant::from_ns(ns)).count();
        assert_eq!([at(100), at(200)], [6, 6], "three copies in each of two clusters");
    }

    fn quantiles(mut values: Vec<u64>) -> [u64; 4] {
        values.sort_unstable();
        [0.25, 0.5, 0.9, 0.99].map(|share| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place in the list"
            )]
            let place = (values.len() as f64 * share) as usize;
            values[place]
        })
    }

    #[test]
    fn drawn_flows_have_the_rate_the_sizes_and_the_gaps_of_the_record() {
        let (record, length) = recorded();
        let pairs = pairs(&record, length);
        let clusters: Vec<Vec<u32>> =
            (0..5).map(|one| (one * 10..one * 10 + 4).collect()).collect();
        let drawn = drawing(7).flows(&pairs, &clusters, 5 * 40_000);
        assert!(drawn.windows(2).all(|two| two[0].start <= two[1].start));
        let lasted = drawn.last().expect("flows").start.as_ps() as f64;
        let rate = |flows: &[Flow], ps: f64| flows.len() as f64 / ps;
        let wanted = rate(&record, length.as_ps() as f64) * clusters.len() as f64;
        assert!((rate(&drawn, lasted) / wanted - 1.0).abs() < 0.03, "flows per time");
        for (src, dst) in [(2, 0), (1, 3)] {
            let of = |flows: &[Flow], by: u32| -> Vec<Flow> {
                let is_it = |flow: &&Flow| (flow.src, flow.dst) == (src + by, dst + by);
                flows.iter().filter(is_it).copied().collect()
            };
            let sizes = |flows: &[Flow]| quantiles(flows.iter().map(|flow| flow.bytes).collect());
            let gaps = |flows: &[Flow]| {
                let gap = |two: &[Flow]| two[1].start.saturating_since(two[0].start).as_ns();
                quantiles(flows.windows(2).map(gap).collect())
            };
            let ours = of(&record, 0);
            for cluster in [0, 40] {
                let theirs = of(&drawn, cluster);
                let share = theirs.len() as f64 / drawn.len() as f64 * 5.0;
                assert!((share / (ours.len() as f64 / record.len() as f64) - 1.0).abs() < 0.1);
                assert_eq!(sizes(&theirs), sizes(&ours));
                for (one, other) in gaps(&theirs).into_iter().zip(gaps(&ours)) {
                    assert!(one.abs_diff(other) <= other / 10, "{one} ns, recorded {other} ns");
                }
            }
        }
    }

    #[test]
    fn a_pair_with_one_flow_has_one_in_the_time_of_the_record() {
        let flow = Flow { start: Instant::from_ns(30), dst: 1, bytes: 5, ..Flow::default() };
        let pairs = pairs(&[flow], Duration::from_ns(100));
        assert_eq!(pairs[0].gaps_ps, [100_000]);
        let drawn = drawing(1).flows(&pairs, &[vec![8, 9]], 3);
        let starts: Vec<u64> = drawn.iter().map(|flow| flow.start.as_ps()).collect();
        assert!(starts[0] < 100_000);
        assert_eq!([starts[1] - starts[0], starts[2] - starts[1]], [100_000; 2]);
        assert_eq!((drawn[0].src, drawn[0].dst, drawn[0].bytes), (8, 9, 5));
    }

    #[test]
    fn more_gaps_than_are_kept_have_the_same_mean() {
        let many: Vec<Flow> = (0..100_000_u64)
            .map(|number| {
                let start = Instant::from_ns(number * 100 + number % 7 * 10);
                Flow { start, dst: 1, bytes: 1, ..Flow::default() }
            })
            .collect();
        let pair = &pairs(&many, Duration::from_ns(10_000_000))[0];
        assert_eq!(pair.gaps_ps.len(), GAPS_MAX);
        let mean = pair.gaps_ps.iter().sum::<u64>() as f64 / GAPS_MAX as f64;
        assert!((mean / 100_000.0 - 1.0).abs() < 0.001, "{mean}");
    }
}
