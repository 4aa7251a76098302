//! Waiting times of queues, by closed forms and, where there is none, by seeded simulation.
//!
//! A queue has one server that serves in the order of arrival: a link, a flash device.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use measure::Duration;
use workload::Draw;

/// Why a queue has no mean wait.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum QueueError {
    /// The load, in percent, is 100 or more.
    #[error("a load of {0:.1} % never ends: waits grow without end from 100 % on; give less")]
    Overload(f64),
}

/// Kinds of requests: service time, and share of all requests (normalised by their sum).
pub type Mix = [(Duration, f64)];

/// The mean wait before service of Poisson arrivals that keep the server busy for a share `load`
/// of the time, each for the same `service`: M/D/1, W = ρS/(2(1−ρ)).
///
/// # Errors
/// When the load is not below 1.
pub fn md1_wait(service: Duration, load: f64) -> Result<Duration, QueueError> {
    batch_wait(service, load, 1)
}

/// The mean wait as [`md1_wait`] if requests arrive in batches of `batch`, and so wait for those
/// before them in their own batch, too: W = (ρ + B − 1)S/(2(1−ρ)).
///
/// # Errors
/// When the load is not below 1.
pub fn batch_wait(service: Duration, load: f64, batch: u32) -> Result<Duration, QueueError> {
    let idle = idle(load)?;
    let before = load + f64::from(batch.max(1) - 1);
    Ok(scaled(service, before / (2.0 * idle)))
}

/// The mean wait if service times differ: M/G/1, W = λ·mean(S²)/(2(1−ρ)) (Pollaczek and Khinchine),
/// for `per_second` requests per second. Returns the load, too.
///
/// # Errors
/// When the load is not below 1.
pub fn mg1_wait(mix: &Mix, per_second: f64) -> Result<(Duration, f64), QueueError> {
    let whole: f64 = mix.iter().map(|(_, share)| share).sum();
    let moment = |power: i32| -> f64 {
        mix.iter().map(|(time, share)| share / whole * seconds(*time).powi(power)).sum()
    };
    let load = per_second * moment(1);
    let idle = idle(load)?;
    let wait = per_second * moment(2) / (2.0 * idle);
    Ok((scaled(Duration::from_ms(1000), wait), load))
}

/// The throughput, in requests per second, of a closed system: each of `clients` thinks (for an
/// exponentially distributed time), waits for its turn of `service`, and gets its answer `latency`
/// after that.
///
/// By simulation of a million requests from a fixed seed; within half a per cent.
#[must_use]
pub fn closed_throughput(
    clients: u32,
    think: Duration,
    latency: Duration,
    service: Duration,
) -> f64 {
    const REQUESTS: u64 = 1_000_000;
    let mut draw = Draw::new(1);
    let mut thought = || {
        // Never the logarithm of 0.
        let time = -(1.0 - draw.unit()).ln();
        scaled(think, time).as_ps()
    };
    let mut due: BinaryHeap<_> = (0..clients).map(|client| Reverse((thought(), client))).collect();
    let mut free = 0_u64;
    let mut done = 0_u64;
    while done < REQUESTS {
        let Some(Reverse((at, client))) = due.pop() else { break };
        free = at.max(free).saturating_add(service.as_ps());
        done += 1;
        let next = free.saturating_add(latency.as_ps()).saturating_add(thought());
        due.push(Reverse((next, client)));
    }
    if free == 0 { 0.0 } else { done as f64 / (free as f64 / 1e12) }
}

/// The throughput of a closed system, in requests per unit of time, by a closed form: each of
/// `clients` thinks for an exponentially distributed time, waits for its turn, and is served for
/// `service` (Takács 1962, M/D/1 with finitely many customers).
///
/// A constant part of `think`, such as a round trip, counts as exponential, too: a third of it
/// changes the result by less than 1 % from [`closed_throughput`].
#[must_use]
pub fn closed_rate(clients: u32, think: f64, service: f64) -> f64 {
    // A busy period of this many requests counts as endless.
    const ENDLESS: f64 = 1e18;
    if clients == 0 {
        return 0.0;
    }
    let all = f64::from(clients);
    // The mean number of requests served before the server is idle again.
    let (mut served, mut term) = (1.0, 1.0);
    for ahead in 1..clients {
        let ahead = f64::from(ahead);
        term *= (all - ahead) / ahead * (ahead * service / think).exp_m1();
        served += term;
        if term == 0.0 || served > ENDLESS {
            break;
        }
    }
    1.0 / (service + think / (all * served))
}

/// 1 − ρ; an error if the load ρ is not below 1.
fn idle(load: f64) -> Result<f64, QueueError> {
    if load < 1.0 { Ok(1.0 - load) } else { Err(QueueError::Overload(load * 100.0)) }
}

/// `time` in seconds.
fn seconds(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e12
}

/// A time times a factor, to the nearest picosecond and at most the longest.
fn scaled(time: Duration, factor: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast stops at both ends"
    )]
    let ps = (time.as_ps() as f64 * factor).round() as u64;
    Duration::from_ps(ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page at 40 Gb/s.
    const PAGE: Duration = Duration::from_ps(819_200);

    fn us(time: Duration) -> f64 {
        time.as_ns_f64() / 1e3
    }

    #[test]
    fn md1_of_a_page_at_40_gigabits() {
        let expected = [
            (0.1, "0.0455", "1.056"),
            (0.3, "0.1755", "1.214"),
            (0.5, "0.4096", "1.500"),
            (0.7, "0.9557", "2.167"),
            (0.8, "1.6384", "3.000"),
            (0.9, "3.6864", "5.500"),
            (0.95, "7.7824", "10.500"),
        ];
        for (load, wait, in_system) in expected {
            let found = md1_wait(PAGE, load).expect("it ends");
            assert_eq!(format!("{:.4}", us(found)), wait, "{load}");
            assert_eq!(format!("{:.3}", us(found + PAGE) / us(PAGE)), in_system, "{load}");
        }
        assert_eq!(md1_wait(PAGE, 1.0), Err(QueueError::Overload(100.0)));
    }

    #[test]
    fn mg1_of_flash_with_writes_among_reads() {
        let (read, write) = (Duration::from_us(10), Duration::from_us(100));
        let expected = [
            (0.0, "1.250"),
            (0.01, "2.545"),
            (0.05, "8.380"),
            (0.1, "17.581"),
            (0.2, "47.273"),
            (0.3, "118.077"),
        ];
        for (writes, wait) in expected {
            let mix = [(read, 1.0 - writes), (write, writes)];
            let (found, load) = mg1_wait(&mix, 20_000.0).expect("it ends");
            assert_eq!(format!("{:.3}", us(found)), wait, "{writes}");
            assert!((load - 0.2 * (1.0 + 9.0 * writes)).abs() < 1e-12);
        }
        assert!(mg1_wait(&[(write, 1.0)], 10_000.0).is_err());
    }

    #[test]
    fn one_kind_of_service_is_md1() {
        let (wait, load) = mg1_wait(&[(PAGE, 7.0)], 610_351.562_5).expect("it ends");
        assert!((load - 0.5).abs() < 1e-12);
        assert_eq!(Ok(wait), md1_wait(PAGE, 0.5));
    }

    /// By hand: half empty, batches of four: (0.5 + 3) · S / 1.
    #[test]
    fn batches_wait_for_themselves() {
        assert_eq!(batch_wait(PAGE, 0.5, 4), Ok(Duration::from_ps(2_867_200)));
        assert_eq!(batch_wait(PAGE, 0.0, 2), Ok(Duration::from_ps(409_600)));
        assert_eq!(batch_wait(PAGE, 0.3, 1), md1_wait(PAGE, 0.3));
    }

    #[test]
    fn closed_systems_saturate() {
        let (think, latency) = (Duration::from_us(10), Duration::from_us(5));
        let expected = [(1, 0.0632), (4, 0.2527), (8, 0.4993), (16, 0.9598), (32, 1.2207)];
        for (clients, throughput) in expected {
            let found = closed_throughput(clients, think, latency, PAGE) / 1e6;
            assert!((found / throughput - 1.0).abs() < 0.005, "{clients}: {found}");
            // Neither more than without waiting nor more than the server can do.
            let bound = (f64::from(clients) / 15.8192_f64).min(1.0 / 0.8192);
            assert!(found <= bound * 1.003, "{clients}: {found}");
        }
        assert_eq!(closed_throughput(0, think, latency, PAGE), 0.0);
    }

    /// By hand for two: while one is served the other comes with probability 1 − e^(−S/Z), so
    /// e^(S/Z) are served in a row.
    #[test]
    fn closed_form_of_one_and_two_clients_is_exact() {
        assert_eq!(closed_rate(0, 10.0, 1.0), 0.0);
        assert!((closed_rate(1, 10.0, 2.5) - 0.08).abs() < 1e-15);
        let in_row = 0.25_f64.exp();
        let by_hand = in_row / (in_row * 2.5 + 10.0 / 2.0);
        assert!((closed_rate(2, 10.0, 2.5) - by_hand).abs() < 1e-15);
    }

    /// Thinking 10 µs, a round trip of 5 µs and a page at 40 Gb/s, and far beyond what a link can
    /// carry.
    #[test]
    fn closed_form_is_near_the_simulation() {
        let expected = [(1, 0.0632), (4, 0.2527), (8, 0.4993), (16, 0.9598), (32, 1.2207)];
        for (clients, throughput) in expected {
            let found = closed_rate(clients, 15.0, 0.8192);
            assert!((found / throughput - 1.0).abs() < 0.01, "{clients}: {found}");
            assert!(found <= (f64::from(clients) / 15.8192).min(1.0 / 0.8192) + 1e-12);
        }
        for clients in [1000, u32::MAX] {
            assert!((closed_rate(clients, 15.0, 0.8192) * 0.8192 - 1.0).abs() < 1e-9);
        }
    }
}
