//! The device of a target: slow at times, with a cache that is lost with its process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use backend::{Backend, Failure, Geometry, MemoryBackend, Request, Start, VolatileBackend};
use workload::Draw;

/// What outlives targets.
pub(crate) struct Medium {
    memory: Arc<dyn Backend>,
    /// How long requests take at most, in nanoseconds.
    pub(crate) slow_ns: Arc<AtomicU64>,
}

/// Bytes of the cache.
const CACHE: u64 = 256 << 10;

impl Medium {
    pub(crate) fn new(bytes: u64) -> Self {
        let memory = MemoryBackend::new(bytes, 9).expect("there is memory");
        Self { memory: Arc::new(memory), slow_ns: Arc::new(AtomicU64::new(100_000)) }
    }

    /// As a process opens it.
    pub(crate) fn open(&self, seed: u64) -> Arc<dyn Backend> {
        let cached = VolatileBackend::new(Arc::clone(&self.memory), CACHE, seed);
        let draw = Mutex::new(Draw::new(seed));
        Arc::new(Slow { inner: cached, slow_ns: Arc::clone(&self.slow_ns), draw })
    }
}

/// A device whose requests take a while.
struct Slow {
    inner: VolatileBackend,
    slow_ns: Arc<AtomicU64>,
    draw: Mutex<Draw>,
}

impl Backend for Slow {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn is_immediate(&self) -> bool {
        false
    }

    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
        let start = self.inner.start(request, data, now_ns);
        let most = self.slow_ns.load(Ordering::Relaxed);
        let ns = self.draw.lock().expect("nobody panics with it").below(most + 1);
        Start { not_before_ns: now_ns + ns, ..start }
    }

    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        self.inner.end(request, result, now_ns)
    }
}
