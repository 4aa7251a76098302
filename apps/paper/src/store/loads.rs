//! Runs loads on a store: `afar load kv` as a child process, one after another.

use std::net::SocketAddr;
use std::process::Stdio;

use launch::{LoadPace, LoadSpec};
use measure::{Duration, LatencySummary, LoadResults, Run};
use serde::{Deserialize, Serialize};

use super::place::start;
use crate::ReproduceError;
use crate::session::Session;

/// Runs loads of a session.
pub(crate) struct Loads<'a> {
    pub(crate) session: &'a mut Session,
    /// The seed of the last load.
    seed: u64,
}

/// The settings of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) read_percent: u8,
    pub(crate) time: Duration,
    pub(crate) warm_up: Duration,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Stores every record once.
    Fill,
    /// A closed loop of this many clients.
    Closed(u32),
    /// An open loop of this many requests per second.
    Open(f64),
}

/// The results of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reads {
    /// Answered requests of all kinds,
    pub(crate) count: u64,
    /// and their rate per second.
    pub(crate) per_s: f64,
    /// Times of reads, in microseconds.
    pub(crate) mean_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p95_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
}

/// Records of the store; they grow to some 200 MB, a hundredth of the paper's 24 GB.
pub(crate) const RECORDS: u64 = 40_000;
/// Bytes of a key; the paper's have 17 to 21.
pub(crate) const KEY_BYTES: u64 = 20;
/// Bytes of a value when it is set: the middle between 0 and the longest, 10 kB.
pub(crate) const SET_BYTES: u64 = 5_000;
/// Klimovic et al., Section 4.1: an update appends 100 bytes, up to 10 kB.
const APPEND: [u64; 2] = [100, 10_000];

impl Asked {
    /// One client that reads, without a duration yet.
    pub(crate) const fn reads() -> Self {
        let (time, warm_up) = (Duration::ZERO, Duration::ZERO);
        Self { kind: Kind::Closed(1), read_percent: 100, time, warm_up }
    }
}

impl<'a> Loads<'a> {
    pub(crate) const fn new(session: &'a mut Session) -> Self {
        Self { session, seed: 1 }
    }

    /// Runs a load; `None` if the session has been interrupted.
    ///
    /// # Errors
    /// When the load cannot begin, or a request fails.
    pub(crate) fn run(
        &mut self,
        what: &str,
        address: SocketAddr,
        asked: &Asked,
    ) -> Result<Option<Reads>, ReproduceError> {
        if self.session.is_interrupted() {
            return Ok(None);
        }
        self.seed += 1;
        let mut command = spec(address, asked, self.seed).command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(command)?;
        let output = child.output().expect("it has a pipe");
        let reader = std::thread::spawn(move || std::io::read_to_string(output));
        if !self.session.wait(what, || reader.is_finished())? {
            return Ok(None);
        }
        let text = reader.join().ok().and_then(Result::ok).unwrap_or_default();
        let run: Option<Run<LoadResults>> = serde_json::from_str(&text).ok();
        let is_good = child.finish().is_ok_and(|status| status.success());
        match run.filter(|_| is_good) {
            Some(run) => Ok(Some(Reads::of(&run.results))),
            None => {
                let (what, first) = (what.to_owned(), child.errors());
                Err(ReproduceError::Failed { what, count: 1, first })
            }
        }
    }
}

/// The command of a load.
fn spec(address: SocketAddr, asked: &Asked, seed: u64) -> LoadSpec {
    LoadSpec {
        address,
        keys: RECORDS,
        sizes: [KEY_BYTES, SET_BYTES],
        append: Some(APPEND),
        read_percent: asked.read_percent,
        pace: match asked.kind {
            Kind::Fill => LoadPace::Fill,
            Kind::Closed(clients) => LoadPace::Closed(clients),
            Kind::Open(rate) => LoadPace::Open(rate),
        },
        duration: asked.time,
        warm_up: asked.warm_up,
        seed,
    }
}

impl Reads {
    /// The results in the record of a load.
    fn of(results: &LoadResults) -> Self {
        let reads = results.operations.iter().find(|of| of.operation == "read");
        let latency = reads.map_or_else(LatencySummary::default, |of| of.latency);
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            count: results.request_count,
            per_s: results.requests_per_s,
            mean_us: us(latency.mean_ns),
            p50_us: us(latency.p50_ns),
            p90_us: us(latency.p90_ns),
            p95_us: us(latency.p95_ns),
            p99_us: us(latency.p99_ns),
            p999_us: us(latency.p999_ns),
        }
    }
}
