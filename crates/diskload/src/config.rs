//! The configuration of a load.

use measure::Duration;
use workload::Spacing;

/// The offset of the next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// Uniformly random.
    Random,
    /// Random with a Zipf distribution: the i-th most frequent place has a probability proportional
    /// to i to the power of minus this skew, which is above 0 and not 1.
    Zipf(f64),
    /// Directly after the request before.
    Sequential,
}

/// When the next request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A closed loop: when one has ended.
    Closed,
    /// An open loop: at its arrival; the latency of a late request counts from its arrival on.
    Open {
        /// Mean time between two requests of a job.
        mean: Duration,
        /// Whether arrivals are even or Poisson.
        spacing: Spacing,
    },
}

/// A pause of a job, each time after a number of requests and when none is outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Think {
    /// Length of the pause.
    pub time: Duration,
    /// Requests between two pauses.
    pub requests: u32,
}

/// The configuration of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadConfig {
    /// The offsets of requests.
    pub order: Order,
    /// How many of 100 requests read; the others write or trim.
    pub read_percent: u8,
    /// Whether the others trim.
    pub trims: bool,
    /// Bytes of a request: whole blocks of the device.
    pub request_bytes: u32,
    /// First byte and length of the part of the device that is used; whole requests.
    pub region: [u64; 2],
    /// Outstanding requests of each job: 1 to 4095.
    pub depth: u16,
    /// Threads: 1 to 64.
    pub jobs: u16,
    /// When requests are made.
    pub pace: Pace,
    /// Pauses of a job; `None` for none.
    pub think: Option<Think>,
    /// How long to wait before the first request.
    pub delay: Duration,
    /// How long requests are made before counting begins.
    pub ramp: Duration,
    /// How long requests are counted; without end if `None`.
    pub runtime: Option<Duration>,
    /// How many requests a job makes; without limit if `None`.
    pub request_count: Option<u64>,
    /// How long to try to reconnect after a lost connection; zero for not at all.
    pub reconnect: Duration,
    /// How long a job polls for answers before it sleeps.
    pub busy_poll: Duration,
    /// Whether a write ends only when it is on the medium (FUA).
    pub forced: bool,
    /// Each job flushes after this many writes have ended; never if `None`. A flush does not count
    /// as a request. A load that flushes and verifies expects of a reopened device only what a
    /// flush or forced write has made durable, otherwise every answered write.
    pub flush_every: Option<u32>,
    /// Whether blocks are stamped with their place and write, and verified when they are read.
    pub verifies: bool,
    /// Whether the load ends with a read of every place that it wrote, which is neither timed nor
    /// counted; not after a stop.
    pub reads_back: bool,
    /// Whether to fill in [`Tally::times`](super::Tally).
    pub traces: bool,
    /// Unique to this load: distinguishes its blocks from older ones on the device.
    pub nonce: u64,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl LoadConfig {
    /// A load of random 4 KiB reads in `device_bytes` bytes, one at a time, without end.
    #[must_use]
    pub fn reads(device_bytes: u64) -> Self {
        Self {
            order: Order::Random,
            read_percent: 100,
            trims: false,
            request_bytes: 4096,
            region: [0, device_bytes / 4096 * 4096],
            depth: 1,
            jobs: 1,
            pace: Pace::Closed,
            think: None,
            delay: Duration::ZERO,
            ramp: Duration::ZERO,
            runtime: None,
            request_count: None,
            reconnect: Duration::ZERO,
            busy_poll: Duration::ZERO,
            forced: false,
            flush_every: None,
            verifies: false,
            reads_back: false,
            traces: false,
            nonce: sys::clock::unix_ns(),
            seed: 1,
        }
    }
}
