//! Clients of key-value stores; their requests are the same in every run.

use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::random::SplitMix64;

mod memcached;
mod redis;
mod wire;

pub(crate) use memcached::Memcached;
pub(crate) use redis::Redis;
pub(crate) use wire::{Store, VALUE_BYTES};

/// Reads `count` keys that `next` chooses, `depth` at a time. Returns how long that took.
///
/// # Errors
/// The error of the first failed request.
pub(crate) fn read(
    store: &mut dyn Store,
    count: u64,
    depth: u64,
    mut next: impl FnMut() -> u64,
) -> Result<Duration, Failure> {
    let start = Instant::now();
    let mut keys = Vec::new();
    for first in (0..count).step_by(usize::try_from(depth).unwrap_or(1)) {
        keys.clear();
        keys.extend((first..count.min(first + depth)).map(|_request| next()));
        store.get(&keys)?;
    }
    Ok(start.elapsed())
}

/// A generator of uniformly random keys below `keys`.
pub(crate) fn uniform(keys: u64, seed: u64) -> impl FnMut() -> u64 {
    let mut random = SplitMix64::new(seed);
    move || random.below(keys)
}
