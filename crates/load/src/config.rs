//! What a load is to be, as plain data.

use std::path::PathBuf;

use measure::Duration;
use workload::{Spacing, Ycsb};

use crate::protocol::Protocol;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `host:port`.
    Tcp(String),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// A server and what it understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What it understands.
    pub protocol: Protocol,
    /// Where it listens.
    pub address: Address,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// As soon as a connection has less than its depth of requests on their way.
    Closed,
    /// At a rate of their own, whatever the server does.
    Open {
        /// Requests per second of all threads together, above 0.
        per_second: f64,
        /// How they follow one another.
        spacing: Spacing,
    },
}

/// How values grow: an update appends to one until it would be too long, and then replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Bytes that an update appends, at least 1.
    pub append_bytes: usize,
    /// Bytes of a value at most, but for updates of one record that are under way at once.
    pub limit_bytes: usize,
}

/// A load.
#[derive(Debug, Clone)]
pub struct LoadConfig {
    /// The server.
    pub target: Target,
    /// Who asks for what.
    pub workload: Ycsb,
    /// Bytes of every key, at least [`workload::padded_key_bytes_min`]; as YCSB's if `None`.
    pub key_bytes: Option<usize>,
    /// When.
    pub pacing: Pacing,
    /// Threads, at least 1.
    pub threads: u32,
    /// Connections of all threads together, at least as many as threads.
    pub connections: u32,
    /// Requests that may be on their way on one connection, at least 1.
    pub depth: u32,
    /// Requests are sent for this long, beyond the warm-up; `None` for until they run out.
    pub duration: Option<Duration>,
    /// Requests answered before this are not counted.
    pub warmup: Duration,
    /// A request that takes longer has failed, and its connection with it.
    pub timeout: Duration,
    /// Answers are looked for without sleeping until none has come for this long: a server that
    /// need not wake its client answers more of them. Takes a processor for each thread.
    pub busy_poll: Duration,
    /// Check what is read.
    pub verify: bool,
    /// How values grow; `None` for updates that replace them.
    pub growth: Option<Growth>,
    /// Have one more thread and connection send one request at a time, which is timed apart.
    pub probe: bool,
    /// Seed of every draw.
    pub seed: u64,
}
