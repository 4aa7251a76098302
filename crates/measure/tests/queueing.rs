//! A link under load against queueing theory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use measure::{BitsPerSec, Bytes, Direction, Duration, Instant, Link, LinkConfig, LinkMode};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A page at 40 Gb/s, in µs.
const SERVICE_US: f64 = 0.8192;

struct Exponential {
    generator: Pcg64,
    mean_us: f64,
}

impl Exponential {
    fn new(seed: u64, mean_us: f64) -> Self {
        Self { generator: Pcg64::seed_from_u64(seed), mean_us }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 37 means of some microseconds each"
    )]
    fn draw(&mut self) -> Duration {
        let uniform = ((self.generator.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        Duration::from_ps((-uniform.ln() * self.mean_us * 1e6) as u64)
    }
}

fn link(mode: LinkMode, rtt: Duration) -> Link {
    let bandwidth = Some(BitsPerSec::from_gbps(40));
    Link::new(LinkConfig { mode, rtt, bandwidth, profile: None })
}

/// Mean wait in µs of `count` pages that arrive at random and fill the share `load` of the link.
fn mean_wait_us(load: f64, count: u32) -> f64 {
    let mut link = link(LinkMode::HalfDuplex, Duration::from_us(5));
    let mut arrivals = Exponential::new(1, SERVICE_US / load);
    let mut now = Instant::ZERO;
    let mut wait_ps = 0.0;
    for _ in 0..count {
        now = now + arrivals.draw();
        let wait = link.reserve(now, Bytes::PAGE, Direction::Fetch).wait;
        wait_ps += wait.as_ps() as f64;
    }
    wait_ps / f64::from(count) / 1e6
}

/// M/D/1: Poisson arrivals, equal service times S. Mean wait = ρS / 2(1 − ρ).
///
/// Waits follow one another closely at high load, so that a mean needs more arrivals there: its
/// standard deviation over seeds is at most about 1 % with these counts.
#[test]
fn shared_link_is_an_m_d_1_queue() {
    let printed = [
        (0.1, 0.0455, 1_000_000),
        (0.3, 0.1755, 1_000_000),
        (0.5, 0.4096, 1_000_000),
        (0.7, 0.9557, 1_000_000),
        (0.8, 1.6384, 1_000_000),
        (0.9, 3.6864, 4_000_000),
        (0.95, 7.7824, 8_000_000),
    ];
    for (load, wait_us, arrivals) in printed {
        let closed_form = load * SERVICE_US / (2.0 * (1.0 - load));
        assert!((closed_form - wait_us).abs() < 0.000_05);
        let measured = mean_wait_us(load, arrivals);
        let error = measured / closed_form - 1.0;
        assert!(error.abs() < 0.03, "load {load}: {measured} µs for {closed_form} µs");
    }
}

/// Pages per µs when each of `clients` waits for its page, thinks, and asks for the next.
fn closed_throughput(clients: u64, mode: LinkMode) -> f64 {
    const FETCHES: u32 = 200_000;
    let mut link = link(mode, Duration::from_us(5));
    let mut think = Exponential::new(clients, 10.0);
    let mut asking: BinaryHeap<_> =
        (0..clients).map(|client| Reverse((Instant::ZERO + think.draw(), client))).collect();
    let mut now = Instant::ZERO;
    for _ in 0..FETCHES {
        let Reverse((at, client)) = asking.pop().expect("every client asks again");
        now = at;
        let fetch = link.reserve(now, Bytes::PAGE, Direction::Fetch);
        asking.push(Reverse((fetch.ready + think.draw(), client)));
    }
    f64::from(FETCHES) / (now.as_ps() as f64 / 1e6)
}

/// A closed system: exponential think times of mean 10 µs, a constant 5 µs of latency, a constant
/// 0.8192 µs on the link. The figures are those of a finite simulation; the long-run value for
/// 4 clients is 0.2518, 0.4 % below the figure.
#[test]
fn shared_link_bounds_a_closed_system() {
    let printed = [(1, 0.0632), (4, 0.2527), (8, 0.4993), (16, 0.9598), (32, 1.2207)];
    for (clients, per_us) in printed {
        let measured = closed_throughput(clients, LinkMode::HalfDuplex);
        let error = measured / per_us - 1.0;
        assert!(error.abs() < 0.01, "{clients} clients: {measured} for {per_us} per µs");
    }
}

/// Without a queue, throughput is clients / cycle time even beyond the link's bandwidth: what a
/// per-fault delay gets wrong, and by how much.
#[test]
fn per_fault_link_exceeds_its_bandwidth() {
    let measured = closed_throughput(32, LinkMode::PerFault);
    let expected = 32.0 / (10.0 + 5.0 + SERVICE_US);
    assert!((measured / expected - 1.0).abs() < 0.01, "{measured} for {expected} per µs");
    assert!(measured > 1.6 / SERVICE_US);
}
