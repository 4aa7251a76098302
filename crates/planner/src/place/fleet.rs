//! Made-up tenants with published distributions of their sizes.
//!
//! Capacity has a heavy tail (a bounded Pareto law, exponent 1.2: a tenth of the tenants has half
//! of it, as in public traces of block storage). Requests for each terabyte follow Klimovic et al.,
//! Table 1: reads between the lowest and highest rate of one of four workloads, with its sizes.

use workload::Draw;

use super::Guest;
use crate::cost::{Demand, Dimension, Server, WORKLOADS};

const GIGABYTE: f64 = 1e9;
const LEAST: f64 = 20.0;
const MOST: f64 = 1_500.0;
const EXPONENT: f64 = 1.2;

/// A server whose dimensions are all used to about the same share by tenants of [`fleet`].
#[must_use]
pub fn fleet_server() -> Server {
    Server::default()
        .with(Dimension::Capacity, 6_000_000_000_000)
        .with(Dimension::Iops, 28_000)
        .with(Dimension::Traffic, 25_000_000_000)
        .with(Dimension::Qps, 160_000)
        .with(Dimension::Memory, 56 << 30)
        .with(Dimension::Network, 1_250_000_000)
}

/// Draws `count` tenants; the same for the same seed.
#[must_use]
pub fn fleet(count: usize, seed: u64) -> Vec<Guest> {
    let mut draw = Draw::new(seed);
    (0..count).map(|index| guest(index, &mut draw)).collect()
}

/// Draws one tenant.
fn guest(index: usize, draw: &mut Draw) -> Guest {
    let workload = &WORKLOADS[usize::try_from(draw.below(4)).unwrap_or(0)];
    // The inverse of a bounded Pareto law.
    let tail = 1.0 - draw.unit() * (1.0 - (LEAST / MOST).powf(EXPONENT));
    let gigabytes = LEAST / tail.powf(1.0 / EXPONENT);
    let terabytes = gigabytes / 1000.0;
    let (low, high) = workload.read_iops;
    let reads = (low as f64 + draw.unit() * (high - low) as f64) * terabytes;
    let writes = workload.write_iops as f64 * terabytes;
    let bytes = reads * workload.read_bytes as f64 + writes * workload.write_bytes as f64;
    // Queries that hit memory come on top of those that read flash; a value has some hundred bytes.
    let queries = reads * (2.0 + 8.0 * draw.unit()) + 10.0;
    let memory = gigabytes * 1e9 * (0.005 + 0.01 * draw.unit());
    let network = queries * 8.0 * (200.0 + 800.0 * draw.unit());
    let wants = Demand::default()
        .with(Dimension::Capacity, whole(gigabytes * GIGABYTE))
        .with(Dimension::Iops, whole(reads + writes))
        .with(Dimension::Traffic, whole(bytes * 8.0))
        .with(Dimension::Qps, whole(queries))
        .with(Dimension::Memory, whole(memory))
        .with(Dimension::Network, whole(network));
    Guest { name: format!("tenant-{index}"), wants, replicas: 1, ..Guest::default() }
}

/// `amount` rounded up; 0 if negative.
fn whole(amount: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast stops at both ends"
    )]
    let whole = amount.ceil() as u64;
    whole
}
