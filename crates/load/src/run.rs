use std::sync::Arc;
use std::sync::atomic::Ordering;

use measure::{Duration, Instant};
use sys::clock::monotonic_ns;
use workload::{Arrivals, Requests};

use crate::config::{Address, LoadConfig, Pacing};
use crate::connection::Connection;
use crate::growth::Values;
use crate::source::Source;
use crate::tally::Tally;
use crate::worker::{Pacer, Shared, Window, Worker};

/// Fewest outstanding requests of each connection while a store is filled.
const FILL_DEPTH: u32 = 32;

/// Why a load could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A connection to the server failed.
    #[error("connect to {address}: {source}; check the address, and that a server listens there")]
    Connect {
        /// The server's address.
        address: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// Another system call failed.
    #[error(transparent)]
    System(#[from] sys::Error),
}

/// The progress of a load, for another thread.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    shared: Arc<Shared>,
}

impl Progress {
    /// How many requests have been answered so far.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// A handle that ends the load.
    #[must_use]
    pub fn stop(&self) -> Stop {
        Stop { shared: Arc::clone(&self.shared) }
    }
}

/// A handle that ends a load early; its results until then are kept.
#[derive(Debug, Clone)]
pub struct Stop {
    shared: Arc<Shared>,
}

impl Stop {
    /// Has the load send no further requests; it still waits for outstanding answers.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// Stores every record of the workload once.
///
/// # Errors
/// When the server cannot be reached.
pub fn fill(config: &LoadConfig, progress: &Progress) -> Result<Tally, LoadError> {
    let config = LoadConfig {
        pacing: Pacing::Closed,
        depth: config.depth.max(FILL_DEPTH),
        duration: None,
        warmup: Duration::from_ps(0),
        probe: false,
        ..config.clone()
    };
    let (step, end) = (u64::from(config.threads), config.workload.record_count);
    start(&config, None, progress, |thread| Source::Fill { next: thread, step, end })
}

/// Sends the requests of the workload and times the answers.
///
/// # Errors
/// When the server cannot be reached.
pub fn run(config: &LoadConfig, progress: &Progress) -> Result<Tally, LoadError> {
    run_on(config, Values::of(config).as_ref(), progress)
}

/// Runs a load as [`run`], with the lengths of `values` that earlier loads left.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    config: &LoadConfig,
    values: Option<&Values>,
    progress: &Progress,
) -> Result<Tally, LoadError> {
    let threads = u64::from(config.threads);
    let streams = threads + u64::from(config.probe);
    let all = config.workload.operation_count.unwrap_or(u64::MAX);
    start(config, values, progress, |thread| {
        let requests = Requests::new(&config.workload, config.seed, thread, streams);
        // The first threads take the remainder; the probe sends without a limit.
        let share = all / threads + u64::from(thread < all % threads);
        let left = if thread < threads { share } else { u64::MAX };
        Source::Mix { requests: Box::new(requests), left }
    })
}

/// Runs a load: one worker for each thread with the requests of `source`, and perhaps a probe.
fn start(
    config: &LoadConfig,
    values: Option<&Values>,
    progress: &Progress,
    source: impl Fn(u64) -> Source,
) -> Result<Tally, LoadError> {
    let mut sockets = Vec::new();
    for _ in 0..config.connections {
        sockets.push(open(&config.target.address)?);
    }
    let beside = LoadConfig {
        pacing: Pacing::Closed,
        threads: 1,
        connections: 1,
        depth: 1,
        ..config.clone()
    };
    let beside_socket = config.probe.then(|| open(&config.target.address)).transpose()?;
    let now = monotonic_ns();
    let counted_from_ns = now + config.warmup.as_ns();
    let until_ns =
        config.duration.map_or(u64::MAX, |time| counted_from_ns.saturating_add(time.as_ns()));
    let window = Window { counted_from_ns, until_ns };
    let threads = u64::from(config.threads);
    let beside_shared = Shared::default();
    let (results, probe) = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        let probe = beside_socket.map(|socket| {
            let (source, sockets) = (source(threads), vec![socket]);
            let of = (&beside, &beside_shared, values);
            let worker = Worker::new(of, source, Pacer::Closed, sockets, window);
            scope.spawn(move || worker.run())
        });
        for thread in 0..threads {
            // An equal part of the connections that are left.
            let left = usize::try_from(threads - thread).unwrap_or(1);
            let mine = sockets.split_off(sockets.len() - sockets.len() / left);
            let pacer = pacer(config, thread, now);
            let of = (config, &*progress.shared, values);
            let worker = Worker::new(of, source(thread), pacer, mine, window);
            workers.push(scope.spawn(move || worker.run()));
        }
        let joined = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let joined = joined.collect::<Vec<_>>();
        // The probe ends with the workers.
        beside_shared.stop.store(true, Ordering::Relaxed);
        let probe = probe
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (joined, probe)
    });
    let mut all = Tally::new();
    for tally in results {
        all.merge(&tally?);
    }
    all.probe = probe.transpose()?.map(Box::new);
    Ok(all)
}

/// Opens a connection; an error says the address.
fn open(address: &Address) -> Result<Connection, LoadError> {
    Connection::open(address).map_err(|source| LoadError::Connect {
        address: match address {
            Address::Tcp(name) => name.clone(),
            Address::Unix(path) => path.display().to_string(),
        },
        source,
    })
}

/// When thread number `thread` may send its requests, from `now` on.
fn pacer(config: &LoadConfig, thread: u64, now: u64) -> Pacer {
    match config.pacing {
        Pacing::Closed => Pacer::Closed,
        Pacing::Open { per_second, spacing } => {
            let threads = f64::from(config.threads);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive, and a rate that makes it longer than the clock sends nothing"
            )]
            let mean_ps = (threads * 1e12 / per_second) as u64;
            let mean = Duration::from_ps(mean_ps.max(1));
            // Evenly spaced arrivals of several threads take turns.
            let offset = Duration::from_ps(mean_ps / u64::from(config.threads) * thread);
            let start = Instant::from_ns(now).saturating_add(offset);
            let seed = config.seed ^ (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Pacer::Open(Arrivals::new(spacing, mean, start, seed))
        }
    }
}
