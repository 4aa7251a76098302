//! The device of a target: slow at times, with a cache that is lost with its process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend::{
    Backend, Failure, Geometry, MemoryBackend, Operation, Request, Start, VolatileBackend, Work,
};
use workload::Draw;

/// What outlives targets.
pub(crate) struct Medium {
    memory: Arc<dyn Backend>,
    /// How long requests take at most, in nanoseconds.
    pub(crate) slow_ns: Arc<AtomicU64>,
    lies: bool,
}

/// Bytes of the cache.
const CACHE: u64 = 256 << 10;

impl Medium {
    /// One that lies says that it has flushed, and has not.
    pub(crate) fn new(bytes: u64, lies: bool) -> Self {
        let memory = MemoryBackend::new(bytes, 9).expect("there is memory");
        Self { memory: Arc::new(memory), slow_ns: Arc::new(AtomicU64::new(100_000)), lies }
    }

    /// As a process opens it.
    pub(crate) fn open(&self, seed: u64) -> Arc<dyn Backend> {
        let cached = VolatileBackend::new(Arc::clone(&self.memory), CACHE, seed);
        let state = Mutex::new(State { draw: Draw::new(seed), later: Vec::new() });
        let (slow_ns, lies) = (Arc::clone(&self.slow_ns), self.lies);
        Arc::new(Slow { inner: cached, slow_ns, lies, state })
    }
}

/// A device whose requests take a while; what changes it does so when it is asked, or when that
/// ends.
struct Slow {
    inner: VolatileBackend,
    slow_ns: Arc<AtomicU64>,
    lies: bool,
    state: Mutex<State>,
}

struct State {
    draw: Draw,
    /// Changes that are made when they end.
    later: Vec<(Request, Vec<u8>)>,
}

impl Slow {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Slow {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn is_immediate(&self) -> bool {
        false
    }

    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
        let mut state = self.lock();
        let most = self.slow_ns.load(Ordering::Relaxed);
        let not_before_ns = now_ns + state.draw.below(most + 1);
        let is_change = !matches!(request.operation, Operation::Read | Operation::Flush);
        // Requests are told apart by what they are, when they end.
        let is_like = |(later, _): &(Request, Vec<u8>)| later == request;
        if is_change && state.draw.below(2) == 0 && !state.later.iter().any(is_like) {
            state.later.push((*request, data.to_vec()));
            return Start { not_before_ns, ..Start::done(Ok(())) };
        }
        drop(state);
        if self.lies && request.operation == Operation::Flush {
            return Start { not_before_ns, ..Start::done(Ok(())) };
        }
        Start { not_before_ns, ..self.inner.start(request, data, now_ns) }
    }

    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let mut state = self.lock();
        let place = state.later.iter().position(|(later, _)| later == request);
        let later = place.map(|place| state.later.remove(place));
        drop(state);
        let result = match later {
            Some((request, mut data)) => match self.inner.start(&request, &mut data, now_ns).work {
                Work::Done(done) => result.and(done),
                Work::Kernel(_) => unreachable!("memory asks the kernel for nothing"),
            },
            None => result,
        };
        self.inner.end(request, result, now_ns)
    }
}
