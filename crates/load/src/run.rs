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

/// Requests on their way on each connection while a store is filled.
const FILL_DEPTH: u32 = 32;

/// Why there was no load.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The server does not let anybody in.
    #[error("connect to {address}: {source}; check the address, and that a server listens there")]
    Connect {
        /// Where.
        address: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The kernel refused something else.
    #[error(transparent)]
    System(#[from] sys::Error),
}

/// Shows how far a load is, from another thread.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    shared: Arc<Shared>,
}

impl Progress {
    /// Requests answered until now.
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

/// Ends a load early; what was measured until then stays.
#[derive(Debug, Clone)]
pub struct Stop {
    shared: Arc<Shared>,
}

impl Stop {
    /// No further request is sent; answers are still waited for.
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

/// Asks for what the workload says, and times the answers.
///
/// # Errors
/// When the server cannot be reached.
pub fn run(config: &LoadConfig, progress: &Progress) -> Result<Tally, LoadError> {
    run_on(config, Values::of(config).as_ref(), progress)
}

/// The same, of values that earlier loads have left so.
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
        // The first threads take what does not divide; the client beside them has no number.
        let share = all / threads + u64::from(thread < all % threads);
        let left = if thread < threads { share } else { u64::MAX };
        Source::Mix { requests: Box::new(requests), left }
    })
}

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
            // Dealt out like cards.
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
        // There is nothing to be beside any more.
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

fn open(address: &Address) -> Result<Connection, LoadError> {
    Connection::open(address).map_err(|source| LoadError::Connect {
        address: match address {
            Address::Tcp(name) => name.clone(),
            Address::Unix(path) => path.display().to_string(),
        },
        source,
    })
}

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
