//! A bare echo over TCP: the shortest time that an answer can take on this machine.

use sys::echo::{End, samples};

use crate::failure::Failure;

/// Median time of `count` requests and their answers between two processors, in microseconds. The
/// client spins; the server spins or sleeps.
///
/// # Errors
/// When there is no loopback.
pub(crate) fn median_us(server_spins: bool, count: u64) -> Result<f64, Failure> {
    let server = End { processor: Some(0), spins: server_spins };
    let client = End { processor: Some(1), spins: true };
    let failed = |error: sys::Error| Failure::file("echo over", "127.0.0.1")(error.source);
    let mut times = samples(server, client, count).map_err(failed)?;
    times.sort_unstable();
    Ok(times[times.len() / 2] as f64 / 1000.0)
}
