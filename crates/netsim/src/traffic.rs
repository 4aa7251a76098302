//! Patterns of flows: who sends to whom, when, how much; a seed determines all of it.

use measure::{BitsPerSec, Bytes, Duration, Instant};
use workload::{Arrivals, Draw, Sizes, Spacing};

use crate::error::SimError;
use crate::flow::{Flow, Frame};

/// Flows with Poisson arrivals at a load of the hosts' links.
#[derive(Debug, Clone)]
pub struct Poisson<'a> {
    /// Hosts, each as likely to send, and each other as likely to receive.
    pub hosts: u32,
    /// Rate of their links.
    pub rate: BitsPerSec,
    /// Share of the links' time that data and its headers take, in percent.
    pub load_percent: u64,
    /// Distribution of sizes.
    pub sizes: &'a Sizes,
    /// How many flows.
    pub count: u32,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Sizes that are drawn to estimate a mean.
const OVERHEAD_DRAWS: u32 = 10_000;

impl Poisson<'_> {
    /// Draws the flows, in order of arrival.
    ///
    /// # Errors
    /// If there are fewer than two hosts, or the load is not from 1 to 99 %.
    pub fn flows(&self, frame: Frame) -> Result<Vec<Flow>, SimError> {
        if self.hosts < 2 {
            return Err(SimError::Hosts { count: self.hosts });
        }
        if !(1..100).contains(&self.load_percent) {
            return Err(SimError::Load { percent: self.load_percent });
        }
        let mut draw = Draw::new(self.seed);
        let gap = self.gap(frame);
        let mut arrivals = Arrivals::new(Spacing::Poisson, gap, Instant::ZERO, draw.bits());
        let flow = |_| {
            let src = below(&mut draw, self.hosts);
            let dst = (src + 1 + below(&mut draw, self.hosts - 1)) % self.hosts;
            let (start, bytes) = (arrivals.advance(), self.sizes.draw(&mut draw));
            Flow { start, src, dst, bytes, ..Flow::default() }
        };
        Ok((0..self.count).map(flow).collect())
    }

    /// How long a network that begins empty takes until its queues are within 3 % of their
    /// stationary mean.
    ///
    /// The work of a host's link is close to a reflected Brownian motion. With times of transfer S
    /// and load ρ the drift is -(1 - ρ) and the variance `ρE[S²]/E[S]` per second, and 2.5 % of the
    /// mean are missing after 3 times the variance over the squared drift (Abate and Whitt 1987,
    /// Transient behavior of regulated Brownian motion, I). The largest flow is under way for
    /// another S/(1 - ρ).
    #[must_use]
    pub fn filling(&self, frame: Frame) -> Duration {
        let load = self.load_percent as f64 / 100.0;
        let square = self.sizes.mean_square() / self.sizes.mean();
        let ps = load * square / (1.0 - load).powi(2) * self.byte_ps(frame);
        picoseconds(3.0 * ps) + self.clearing(frame)
    }

    /// How long the largest flow is under way if it gets all the rate that other flows leave.
    #[must_use]
    pub fn clearing(&self, frame: Frame) -> Duration {
        let left = 1.0 - self.load_percent as f64 / 100.0;
        picoseconds(self.sizes.largest() / left * self.byte_ps(frame))
    }

    /// Bytes of flows on the wire over those that [`Poisson::gap`] assumes, which has every packet
    /// full: above 1 where flows do not fill their packets, or have `also` bytes more on the wire.
    #[must_use]
    pub fn overhead(&self, frame: Frame, also: u32) -> f64 {
        let mut draw = Draw::new(self.seed);
        let (mut wire, mut payload) = (0.0, 0.0);
        for _ in 0..OVERHEAD_DRAWS {
            let bytes = self.sizes.draw(&mut draw);
            let last = frame.packets(bytes) - 1;
            let full = u64::from(last) * u64::from(frame.full());
            wire += (full + u64::from(frame.wire(bytes, last)) + u64::from(also)) as f64;
            payload += bytes as f64;
        }
        wire / payload * f64::from(frame.payload) / f64::from(frame.full())
    }

    /// How long a byte of payload and its share of headers occupy a host's link, in picoseconds.
    fn byte_ps(&self, frame: Frame) -> f64 {
        let inflation = f64::from(frame.full()) / f64::from(frame.payload);
        8e12 * inflation / self.rate.get() as f64
    }

    /// The mean time between the starts of flows, over all hosts together.
    #[must_use]
    pub fn gap(&self, frame: Frame) -> Duration {
        let inflation = f64::from(frame.full()) / f64::from(frame.payload);
        let second = self.rate.get() as f64 / 8.0 * f64::from(self.hosts);
        let flow = self.sizes.mean() * inflation / second * 1e12;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a mean gap is positive, and one that is too long is the longest"
        )]
        let ps = (flow * 100.0 / self.load_percent as f64) as u64;
        Duration::from_ps(ps.max(1))
    }
}

/// Every host sends `bytes` to one other, and receives from one other, at once.
///
/// # Errors
/// If there are fewer than two hosts.
pub fn permutation(hosts: u32, bytes: u64, seed: u64) -> Result<Vec<Flow>, SimError> {
    if hosts < 2 {
        return Err(SimError::Hosts { count: hosts });
    }
    // Sattolo's algorithm: a random cycle through all hosts, so none sends to itself.
    let mut draw = Draw::new(seed);
    let mut order: Vec<u32> = (0..hosts).collect();
    for last in (1..hosts).rev() {
        order.swap(last as usize, below(&mut draw, last) as usize);
    }
    let flow = |(src, dst)| Flow { src, dst, bytes, ..Flow::default() };
    Ok((0..hosts).zip(order).map(flow).collect())
}

/// `senders` hosts send `bytes` each to `receiver` at once.
///
/// # Errors
/// If `senders` is not below `hosts`.
pub fn incast(hosts: u32, receiver: u32, senders: u32, bytes: u64) -> Result<Vec<Flow>, SimError> {
    if senders >= hosts {
        return Err(SimError::NoHost { flow: hosts - 1, host: hosts, count: hosts });
    }
    let others = (0..hosts).filter(|&src| src != receiver).take(senders as usize);
    let flow = |src| Flow { src, dst: receiver, bytes, ..Flow::default() };
    Ok(others.map(flow).collect())
}

/// Each host sends `bytes` to every other at once.
///
/// # Errors
/// If there are fewer than two hosts.
pub fn all_to_all(hosts: u32, bytes: u64) -> Result<Vec<Flow>, SimError> {
    if hosts < 2 {
        return Err(SimError::Hosts { count: hosts });
    }
    let flow = |src: u32, step: u32| {
        let dst = (src + step) % hosts;
        Flow { src, dst, bytes, ..Flow::default() }
    };
    Ok((0..hosts).flat_map(|src| (1..hosts).map(move |step| flow(src, step))).collect())
}

/// Bursts of `flows` flows like `each`, `repeats` times, that occupy the link for `on_percent` of
/// the time.
///
/// # Errors
/// If `on_percent` is not from 1 to 100.
pub fn bursts(
    flows: u32,
    each: &Flow,
    rate: BitsPerSec,
    on_percent: u64,
    repeats: u32,
) -> Result<Vec<Flow>, SimError> {
    if !(1..=100).contains(&on_percent) {
        return Err(SimError::Load { percent: on_percent });
    }
    let on = rate.transfer_time(Bytes::new(each.bytes)).saturating_mul(u64::from(flows));
    let period = Duration::from_ps(on.as_ps() / on_percent * 100);
    let start = |repeat| each.start + period.saturating_mul(u64::from(repeat));
    let burst = |repeat| (0..flows).map(move |_| Flow { start: start(repeat), ..*each });
    Ok((0..repeats).flat_map(burst).collect())
}

/// A duration of `ps` picoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time is positive, and one that is too long is the longest"
)]
const fn picoseconds(ps: f64) -> Duration {
    Duration::from_ps(ps as u64)
}

/// A random number below `bound`.
fn below(draw: &mut Draw, bound: u32) -> u32 {
    u32::try_from(draw.below(u64::from(bound))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use workload::SizesName;

    use super::*;

    #[test]
    fn poisson_flows_have_their_load() {
        let sizes = Sizes::named(SizesName::Imc10);
        let rate = BitsPerSec::from_gbps(40);
        let poisson =
            Poisson { hosts: 144, rate, load_percent: 60, sizes: &sizes, count: 100_000, seed: 3 };
        let flows = poisson.flows(Frame::default()).unwrap();
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let span = flows.last().unwrap().start.as_ps() as f64;
        let load = bytes as f64 * 8.0 * 1500.0 / 1460.0 / (span / 1e12) / (144.0 * 40e9);
        assert!((load - 0.6).abs() < 0.02, "{load}");
        assert!(flows.iter().all(|flow| flow.src != flow.dst && flow.dst < 144));
        assert_eq!(poisson.flows(Frame::default()), Ok(flows));
        let more = Poisson { load_percent: 120, ..poisson };
        assert_eq!(
            more.flows(Frame::default()).unwrap_err().to_string(),
            "a load of 120 % is not one that hosts' links carry; use 1 to 99 %"
        );
    }

    #[test]
    fn headers_of_short_flows_are_overhead() {
        let rate = BitsPerSec::from_gbps(40);
        let overhead = |bytes, also| {
            let sizes = Sizes::fixed(bytes);
            let poisson =
                Poisson { hosts: 4, rate, load_percent: 60, sizes: &sizes, count: 1, seed: 1 };
            (poisson.overhead(Frame::default(), also) * 1e3).round() / 1e3
        };
        assert_eq!([overhead(1_460, 0), overhead(14_600, 0)], [1.0; 2]);
        // 100 B for 60, where 61.6 are reckoned; a request of 40 more.
        assert_eq!([overhead(60, 0), overhead(60, 40)], [1.622, 2.271]);
    }

    /// By hand: 4 KiB with 40 B of header for each 1460 take 841.64 ns at 40 Gb/s.
    #[test]
    fn a_network_fills_as_long_as_its_queues_need() {
        let (sizes, rate) = (Sizes::fixed(4096), BitsPerSec::from_gbps(40));
        let at = |load_percent| {
            let poisson =
                Poisson { hosts: 4, rate, load_percent, sizes: &sizes, count: 1, seed: 1 };
            (poisson.filling(Frame::default()), poisson.clearing(Frame::default()))
        };
        let ns = |time: Duration| (time.as_ps() as f64 / 1e3 * 10.0).round() / 10.0;
        let (filling, clearing) = at(50);
        // 3 · 0.5 / 0.25 = 6 times that, and as long as one takes at half of the rate.
        assert_eq!((ns(filling), ns(clearing)), (6733.2, 1683.3));
        assert!(at(90).0 > at(80).0 && at(80).0 > at(50).0);
    }

    #[test]
    fn patterns_are_what_they_say() {
        let flows = permutation(50, 1, 9).unwrap();
        let mut receivers: Vec<u32> = flows.iter().map(|flow| flow.dst).collect();
        receivers.sort_unstable();
        assert_eq!(receivers, (0..50).collect::<Vec<_>>());
        assert!(flows.iter().all(|flow| flow.src != flow.dst));
        let senders: Vec<u32> = incast(5, 1, 3, 7).unwrap().iter().map(|flow| flow.src).collect();
        assert_eq!(senders, [0, 2, 3]);
        assert_eq!(all_to_all(4, 1).unwrap().len(), 12);
        let each = Flow { dst: 1, bytes: 500, ..Flow::default() };
        let bursts = bursts(2, &each, BitsPerSec::from_gbps(8), 25, 3).unwrap();
        let starts: Vec<u64> = bursts.iter().map(|flow| flow.start.as_ps() / 1000).collect();
        assert_eq!(starts, [0, 0, 4000, 4000, 8000, 8000]);
    }
}
