//! `--layout`: writes the region of a load first, so that its reads reach the medium.

use diskload::{LoadConfig, Order, Pace};
use measure::Duration;

use super::error::BenchError;
use super::run::{Ready, run_together};
use client::Session;

/// Most bytes of a write; fewer if the region is no multiple of them.
const WRITE_BYTES: u64 = 1 << 20;
/// Queue depth.
const DEPTH: u16 = 8;

/// Writes the region of each load, each once, from its beginning to its end. An interrupt is no
/// error.
///
/// # Errors
/// When a load cannot begin, or a write failed or was not made.
pub(super) fn lay_out(session: &mut Session, loads: &[Ready]) -> Result<(), BenchError> {
    let mut written: Vec<(&str, [u64; 2])> = Vec::new();
    for load in loads {
        let region = (load.target.as_str(), load.config.region);
        if session.is_interrupted() || written.contains(&region) {
            continue;
        }
        written.push(region);
        let config = writes(&load.config, u64::from(load.device.request_bytes_max()));
        let wanted = config.request_count.unwrap_or(0);
        let ready = Ready { config, ..load.clone() };
        let phase = run_together(session, &[ready], &[0], "layout  ".to_owned())?;
        let tally = &phase.outcomes[0].tally;
        let done = tally.count();
        if done < wanted && !session.is_interrupted() {
            let first = tally.first_failure.clone().unwrap_or_else(|| "it ended early".to_owned());
            let name = load.target.clone();
            return Err(BenchError::Layout { name, done, wanted, first });
        }
    }
    Ok(())
}

// The load that writes the region of load `of`, in requests of up to `most` bytes.
fn writes(of: &LoadConfig, most: u64) -> LoadConfig {
    let bytes = write_bytes(of.region[1], u64::from(of.request_bytes), most.min(WRITE_BYTES));
    LoadConfig {
        order: Order::Sequential,
        read_percent: 0,
        trims: false,
        request_bytes: u32::try_from(bytes).unwrap_or(of.request_bytes),
        depth: DEPTH,
        jobs: 1,
        pace: Pace::Closed,
        think: None,
        delay: Duration::ZERO,
        ramp: Duration::ZERO,
        runtime: None,
        request_count: Some(of.region[1] / bytes),
        forced: false,
        flush_every: None,
        verifies: false,
        reads_back: false,
        ..*of
    }
}

// The largest multiple of `unit`, up to `most`, that divides the region, which is whole units.
fn write_bytes(region: u64, unit: u64, most: u64) -> u64 {
    let units = region / unit;
    let counts = (1..=(most / unit).max(1)).rev();
    counts
        .map(|count| count * unit)
        .find(|bytes| units.is_multiple_of(bytes / unit))
        .unwrap_or(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_large_and_cover_the_region() {
        assert_eq!(write_bytes(64 << 20, 4096, WRITE_BYTES), 1 << 20);
        assert_eq!(write_bytes(4096 * 7, 4096, WRITE_BYTES), 4096 * 7);
        assert_eq!(write_bytes(4096 * 521, 4096, WRITE_BYTES), 4096, "521 is a prime");
        assert_eq!(write_bytes(8 << 20, 2 << 20, WRITE_BYTES), 2 << 20, "no less than the load's");
        assert_eq!(write_bytes(1 << 20, 4096, 65536), 65536, "what the disk takes");
    }
}
