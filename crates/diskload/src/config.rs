//! What a load consists of.

use measure::Duration;
use workload::Spacing;

/// Where the next request goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// Anywhere.
    Random,
    /// Anywhere, but to some places more often than to others: the i-th most often with a
    /// probability proportional to i to the power of minus this, which is above 0 and not 1.
    Zipf(f64),
    /// After the one before.
    Sequential,
}

/// When the next request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When one has ended.
    Closed,
    /// At its time, of so many on average; a request that is late began at its time.
    Open {
        /// Time between two of a job.
        mean: Duration,
        /// How they follow one another.
        spacing: Spacing,
    },
}

/// A pause of a job, after so many requests have ended and none is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Think {
    /// How long.
    pub time: Duration,
    /// After how many.
    pub requests: u32,
}

/// See the module's description.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadConfig {
    /// Where requests go.
    pub order: Order,
    /// How many of 100 read; the others write, or give room back.
    pub read_percent: u8,
    /// See `read_percent`.
    pub trims: bool,
    /// Bytes of a request: whole blocks of the device.
    pub request_bytes: u32,
    /// From where on, and how much of the device is used; whole requests.
    pub region: [u64; 2],
    /// Requests under way in each job: 1 to 4095.
    pub depth: u16,
    /// Threads: 1 to 64.
    pub jobs: u16,
    /// When requests are made.
    pub pace: Pace,
    /// When none are.
    pub think: Option<Think>,
    /// How long nothing is asked at the beginning.
    pub delay: Duration,
    /// How long requests are made before any is counted, and while they are.
    pub ramp: Duration,
    /// See `ramp`; for ever if `None`.
    pub runtime: Option<Duration>,
    /// How many requests a job makes; as many as fit in time if `None`.
    pub request_count: Option<u64>,
    /// How long to try to find a way again that was lost; not at all if zero.
    pub reconnect: Duration,
    /// How long a job looks for answers before it sleeps.
    pub busy_poll: Duration,
    /// Writes end when they are on the medium.
    pub forced: bool,
    /// Each job flushes after so many writes have ended; never if `None`. A flush is no request
    /// that is counted, and makes the next wait. A load that flushes and verifies expects of a
    /// device that was opened anew what it has promised, and else what it has answered.
    pub flush_every: Option<u32>,
    /// Blocks say where and when they were written, and are checked when they are read.
    pub verifies: bool,
    /// In the end every place that was written to is read, which is neither timed nor counted; not
    /// if it is told to stop.
    pub reads_back: bool,
    /// Keeps [`Tally::times`](super::Tally).
    pub traces: bool,
    /// Unlike that of any other load: tells its blocks from those that were there.
    pub nonce: u64,
    /// Of every draw.
    pub seed: u64,
}

impl LoadConfig {
    /// Reads of 4 KiB anywhere in so many bytes, one at a time, until it is stopped.
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
