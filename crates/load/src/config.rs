//! The configuration of a load.

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

/// A server and its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The protocol that it speaks.
    pub protocol: Protocol,
    /// Where it listens.
    pub address: Address,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// A closed loop: as soon as a connection has fewer requests outstanding than its depth.
    Closed,
    /// An open loop: at a fixed rate, however fast the server answers.
    Open {
        /// Requests per second of all threads together, above 0.
        per_second: f64,
        /// Whether arrivals are even or Poisson.
        spacing: Spacing,
    },
}

/// How values grow: an update appends to a value until that would be too long, then replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Bytes that an update appends, at least 1.
    pub append_bytes: usize,
    /// Most bytes of a value; concurrent updates of one record may exceed it.
    pub limit_bytes: usize,
}

/// The configuration of a load.
#[derive(Debug, Clone)]
pub struct LoadConfig {
    /// The server.
    pub target: Target,
    /// Which requests are sent.
    pub workload: Ycsb,
    /// Bytes of every key, at least [`workload::padded_key_bytes_min`]; `None` for YCSB's keys.
    pub key_bytes: Option<usize>,
    /// When requests are sent.
    pub pacing: Pacing,
    /// Threads, at least 1.
    pub threads: u32,
    /// Connections of all threads together, at least as many as threads.
    pub connections: u32,
    /// Most outstanding requests of one connection, at least 1.
    pub depth: u32,
    /// Requests are sent for this long after the warm-up; `None`: until they run out.
    pub duration: Option<Duration>,
    /// Requests meant to be sent in this time from the start are not counted.
    pub warmup: Duration,
    /// A request without an answer after this time fails, and its connection with it.
    pub timeout: Duration,
    /// A thread polls for answers until none has come for this long, and sleeps only then: a
    /// server that need not wake its client answers more. Takes a processor for each thread.
    pub busy_poll: Duration,
    /// Whether values that are read are checked.
    pub verify: bool,
    /// How values grow; `None`: an update replaces its value.
    pub growth: Option<Growth>,
    /// Whether one more thread and connection sends one request at a time, timed separately.
    pub probe: bool,
    /// Seed of all random numbers.
    pub seed: u64,
}
