use measure::{BitsPerSec, Bytes, Duration};

use crate::queue::closed_rate;

/// A number with a lower and an upper bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The lower bound.
    pub low: f64,
    /// The best guess.
    pub value: f64,
    /// The upper bound.
    pub high: f64,
}

/// What a program fetches from far memory at one local size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Its run time with all memory local.
    pub alone: Duration,
    /// How often a thread waits for a round trip.
    pub batches: Estimate,
    /// The pages that all batches have together.
    pub pages: Estimate,
    /// The software's part of a fetch's latency, in picoseconds.
    pub software_ps: Estimate,
    /// Threads that fetch independently; at least one.
    pub threads: u32,
}

/// A network to far memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// The time of a round trip without bytes, in picoseconds.
    pub rtt_ps: Estimate,
    /// The bandwidth of the link that all threads share.
    pub bandwidth: BitsPerSec,
}

/// One value for each uncertain number.
#[derive(Debug, Clone, Copy)]
struct Point {
    batches: f64,
    pages: f64,
    latency_ps: f64,
}

impl Estimate {
    /// A number without uncertainty.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { low: value, value, high: value }
    }

    /// A number that may differ by `margin` of itself, with a lower bound of at least 0.
    #[must_use]
    pub fn within(value: f64, margin: f64) -> Self {
        Self { low: (value * (1.0 - margin)).max(0.0), value, high: value * (1.0 + margin) }
    }
}

impl Network {
    /// A network whose round trip is known exactly.
    #[must_use]
    pub const fn exact(rtt: Duration, bandwidth: BitsPerSec) -> Self {
        Self { rtt_ps: Estimate::exact(rtt.as_ps() as f64), bandwidth }
    }

    /// P/B: how long the link takes for a page, in picoseconds.
    #[must_use]
    pub fn page_ps(&self) -> f64 {
        self.bandwidth.transfer_time(Bytes::PAGE).as_ps() as f64
    }
}

impl Demand {
    /// The slowdown of the program over `network`. Its bounds are the extremes over all
    /// combinations of the bounds of uncertain numbers.
    #[must_use]
    pub fn slowdown(&self, network: &Network) -> Estimate {
        let (rtt, software) = (network.rtt_ps, self.software_ps);
        let at = |batches, pages, latency_ps| {
            self.at(&Point { batches, pages, latency_ps }, network.page_ps())
        };
        let value = at(self.batches.value, self.pages.value, rtt.value + software.value);
        let mut found = Estimate::exact(value);
        for batches in [self.batches.low, self.batches.high] {
            for pages in [self.pages.low, self.pages.high] {
                for latency in [rtt.low + software.low, rtt.high + software.high] {
                    let end = at(batches, pages, latency);
                    found.low = found.low.min(end);
                    found.high = found.high.max(end);
                }
            }
        }
        found
    }

    /// The slowdown at `point`: threads compute, wait for a round trip and queue for their pages on
    /// the link (a closed system). With one thread there is no queue: the two terms remain.
    fn at(&self, point: &Point, page_ps: f64) -> f64 {
        let alone = self.alone.as_ps() as f64;
        if point.batches <= 0.0 || alone <= 0.0 {
            return 1.0;
        }
        let threads = self.threads.max(1);
        let think = alone * f64::from(threads) / point.batches + point.latency_ps;
        let service = page_ps * point.pages / point.batches;
        point.batches / closed_rate(threads, think, service) / alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS_40: BitsPerSec = BitsPerSec::from_gbps(40);

    fn demand(threads: u32) -> Demand {
        Demand {
            alone: Duration::from_ms(1000),
            batches: Estimate::exact(20_000.0),
            pages: Estimate::exact(50_000.0),
            software_ps: Estimate::exact(0.0),
            threads,
        }
    }

    fn network(us: u64) -> Network {
        Network::exact(Duration::from_us(us), GBPS_40)
    }

    /// By hand: 20,000 · 5 µs + 50,000 · 0.8192 µs = 0.14096 s of 1 s; 2 µs of software each add
    /// 0.04 s.
    #[test]
    fn one_thread_waits_for_both_terms() {
        let mut demand = demand(1);
        assert!((demand.slowdown(&network(5)).value - 1.140_96).abs() < 1e-12);
        demand.software_ps = Estimate::exact(2e6);
        assert!((demand.slowdown(&network(5)).value - 1.180_96).abs() < 1e-12);
        demand.batches = Estimate::exact(0.0);
        assert_eq!(demand.slowdown(&network(5)), Estimate::exact(1.0));
    }

    /// Threads wait at the same time, so they are slowed down less until the link is full; then
    /// the link's time is the program's, however many they are.
    #[test]
    fn threads_share_waits_until_the_link_is_full() {
        // Alone on the link: (50 µs · threads + 5 µs + 2.048 µs) · 20,000 / threads.
        let apart = |threads: f64| 1.0 + 20_000.0 * 7.048e-6 / threads;
        let mut before = f64::INFINITY;
        for threads in [1, 2, 4, 8] {
            let found = demand(threads).slowdown(&network(5)).value;
            let least = apart(f64::from(threads));
            assert!(found >= least - 1e-12 && found < least + 0.001, "{threads}: {found}");
            assert!(found < before);
            before = found;
        }
        let full = Demand { pages: Estimate::exact(5e6), ..demand(64) };
        // 5 million pages of 0.8192 µs.
        let found = full.slowdown(&network(5)).value;
        assert!((found - 4.096).abs() < 1e-6, "{found}");
    }

    #[test]
    fn ends_are_the_worst_and_the_best_together() {
        let uncertain = Demand {
            batches: Estimate::within(20_000.0, 0.1),
            pages: Estimate::within(50_000.0, 0.2),
            software_ps: Estimate { low: 0.0, value: 1e6, high: 2e6 },
            ..demand(1)
        };
        let network =
            Network { rtt_ps: Estimate { low: 4e6, value: 5e6, high: 7e6 }, bandwidth: GBPS_40 };
        let found = uncertain.slowdown(&network);
        let by_hand = [
            1.0 + 18e3 * 4e-6 + 40e3 * 0.8192e-6,
            1.0 + 20e3 * 6e-6 + 50e3 * 0.8192e-6,
            1.0 + 22e3 * 9e-6 + 60e3 * 0.8192e-6,
        ];
        for (one, other) in [found.low, found.value, found.high].iter().zip(by_hand) {
            assert!((one - other).abs() < 1e-12, "{found:?} {by_hand:?}");
        }
    }
}
