//! Counters of each namespace, by shard; other threads read them while shards write.
//!
//! Invariants:
//! - Each shard's counters are written by that shard alone, with plain stores.
//! - A bucket of latencies is no wider than a quarter of its times.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::config::SHARDS_MAX;
use super::counters::{add, subtract};

/// Kinds of commands that are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Flush, Compare, Write Zeroes and the rest.
    Other,
}

/// Commands of one kind.
#[derive(Debug, Default)]
pub struct KindCounters {
    /// Commands that have been answered, failed ones included.
    pub commands: AtomicU64,
    /// Commands that have failed.
    pub failures: AtomicU64,
    /// Bytes that successful ones have read or written; 0 for [`Kind::Other`].
    pub bytes: AtomicU64,
    /// From the wake-up that took a command to the end of the one that answered it.
    pub latency: Latencies,
}

/// The counters of one shard for one namespace.
#[derive(Debug, Default)]
pub struct NamespaceCounters {
    kinds: [KindCounters; Kind::ALL.len()],
    /// Commands that have been taken and not answered.
    pub in_flight: AtomicU64,
}

/// A histogram of latencies with [`Latencies::BUCKETS`] buckets.
#[derive(Debug)]
pub struct Latencies {
    buckets: [AtomicU64; Self::BUCKETS],
    sum_ns: AtomicU64,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Meter {
    shards: [OnceLock<Box<NamespaceCounters>>; SHARDS_MAX],
}

/// Buckets for each power of two, as a power of two.
const STEP_SHIFT: u32 = 2;
const STEPS: usize = 1 << STEP_SHIFT;
/// Bounds the buckets: the last one has all latencies above 7 · 2^34 ns (120 s).
const POWERS: usize = 37;

impl Kind {
    /// All of them, in the order of their counters.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Other];
}

impl NamespaceCounters {
    /// The counters of one kind of commands.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> &KindCounters {
        &self.kinds[kind as usize]
    }

    /// Counts a command as in flight.
    pub(crate) fn begin(&self) {
        add(&self.in_flight, 1);
    }

    /// Counts a command as no longer in flight, whether it was answered or aborted.
    pub(crate) fn end(&self) {
        subtract(&self.in_flight, 1);
    }
}

impl Latencies {
    /// Four for each power of two, up to 137 s.
    pub const BUCKETS: usize = (POWERS - 1) * STEPS;

    /// The longest time of a bucket, in nanoseconds; `None` for the last bucket, which is
    /// unbounded.
    #[must_use]
    pub const fn end_ns(bucket: usize) -> Option<u64> {
        if bucket + 1 >= Self::BUCKETS {
            return None;
        }
        if bucket < STEPS {
            return Some(bucket as u64 + 1);
        }
        let power = bucket / STEPS - 1;
        Some((STEPS + bucket % STEPS + 1) as u64 * (1 << power))
    }

    /// How many latencies are in each bucket, the shortest first.
    #[must_use]
    pub fn counts(&self) -> [u64; Self::BUCKETS] {
        std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed))
    }

    /// The sum of all latencies, in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.load(Ordering::Relaxed)
    }

    /// Counts a latency.
    pub(crate) fn record(&self, ns: u64) {
        add(&self.buckets[bucket_of(ns)], 1);
        add(&self.sum_ns, ns);
    }
}

// The bucket of a latency. A bucket includes its upper end, so it is that of a nanosecond less.
fn bucket_of(ns: u64) -> usize {
    let before = ns.saturating_sub(1);
    let power = before.checked_ilog2().unwrap_or(0).saturating_sub(STEP_SHIFT);
    let step = usize::try_from(before >> power).unwrap_or(usize::MAX);
    (power as usize * STEPS).saturating_add(step).min(Latencies::BUCKETS - 1)
}

impl Default for Latencies {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; Self::BUCKETS], sum_ns: AtomicU64::new(0) }
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self { shards: [const { OnceLock::new() }; SHARDS_MAX] }
    }
}

impl Meter {
    /// The counters of the calling shard.
    pub(crate) fn shard(&self, index: u16) -> &NamespaceCounters {
        self.shards[usize::from(index) % SHARDS_MAX].get_or_init(Box::default)
    }

    /// The counters of every shard that has used them, with the shard's number.
    pub(crate) fn shards(&self) -> impl Iterator<Item = (u16, &NamespaceCounters)> {
        (0..).zip(&self.shards).filter_map(|(index, shard)| Some((index, &**shard.get()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another() {
        let mut last_ns = 0;
        for bucket in 0..Latencies::BUCKETS - 1 {
            let end_ns = Latencies::end_ns(bucket).expect("it is not the last");
            assert!(end_ns > last_ns, "{bucket}");
            // No bucket is wider than a quarter of what is in it, to the next nanosecond.
            assert!((end_ns - last_ns) * 4 <= last_ns.max(4), "{bucket}");
            assert_eq!((bucket_of(last_ns + 1), bucket_of(end_ns)), (bucket, bucket));
            last_ns = end_ns;
        }
        assert_eq!(Latencies::end_ns(Latencies::BUCKETS - 1), None);
        assert!(last_ns > 100_000_000_000, "{last_ns}");
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(u64::MAX), Latencies::BUCKETS - 1);
        let ends = [1024, 1280, 1536, 1792, 2048];
        let found = ends.map(|ns| Latencies::end_ns(bucket_of(ns)));
        assert_eq!(found, ends.map(Some), "powers of two end buckets");
    }

    #[test]
    fn what_is_recorded_is_counted_once() {
        let latencies = Latencies::default();
        for ns in [0, 1, 5, 1000, 1_000_000, u64::MAX / 2] {
            latencies.record(ns);
        }
        assert_eq!(latencies.counts().iter().sum::<u64>(), 6);
        assert_eq!((latencies.counts()[0], latencies.counts()[Latencies::BUCKETS - 1]), (2, 1));
        assert_eq!(latencies.sum_ns(), u64::MAX / 2 + 1_001_006);
    }

    #[test]
    fn shards_have_their_own() {
        let meter = Meter::default();
        assert_eq!(meter.shards().count(), 0);
        meter.shard(3).begin();
        add(&meter.shard(3).of(Kind::Write).commands, 2);
        meter.shard(0).begin();
        meter.shard(0).end();
        let found: Vec<_> = meter
            .shards()
            .map(|(index, shard)| {
                let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                (index, of(&shard.in_flight), of(&shard.of(Kind::Write).commands))
            })
            .collect();
        assert_eq!(found, [(0, 0, 0), (3, 1, 2)]);
    }
}
