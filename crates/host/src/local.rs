//! A device of this process as a disk, without a network.

use std::fmt;
use std::sync::Arc;

use backend::{Backend, Ended, Failure, Job, Jobs, Request};
use nvme::NamespaceIds;
use nvme::log::AnaState;
use sys::block::Block;
use sys::event::Waker;
use sys::ring::{Completed, Ring};
use sys::stream::Stream;
use sys::world::World;

use super::HostError;
use super::fence::{Fenced, Lost};
use super::piece::{Piece, Shape};
use super::reach::{Found, Heard, Keeper, Queue};

/// An open device.
#[derive(Clone)]
pub struct LocalDevice {
    /// Its name, as the user wrote it.
    pub name: String,
    /// The device.
    pub backend: Arc<dyn Backend>,
}

impl fmt::Debug for LocalDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalDevice").field(&self.name).finish()
    }
}

/// Two are equal if they are the same opened device.
impl PartialEq for LocalDevice {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

impl Eq for LocalDevice {}

/// Bytes that a request transfers at most, as many as with afar's target.
const TRANSFER_BYTES: u32 = 1 << 20;
/// Queues at most.
const QUEUES: u16 = 16;
/// The bit of ring tokens that marks a job; tokens of network queues are smaller.
const JOBS: u64 = 1 << 56;

/// The keeper of a local device: there is no connection to keep.
pub(super) struct LocalKeeper {
    world: Arc<dyn World>,
    backend: Arc<dyn Backend>,
    found: Found,
    waker: Option<Waker>,
}

impl LocalKeeper {
    pub(super) fn new(world: &Arc<dyn World>, device: &LocalDevice, queues: u16) -> Self {
        let geometry = device.backend.geometry();
        let found = Found {
            owner: device.name.clone(),
            name: device.name.clone(),
            geometry,
            ids: NamespaceIds { nguid: [0; 16], eui64: [0; 8], uuid: [0; 16] },
            opening: None,
            shape: Shape {
                block_shift: geometry.block_shift,
                transfer_bytes: TRANSFER_BYTES,
                has_write_zeroes: true,
                zeroes_deallocate: true,
                has_dataset_management: true,
                reads_zeros: true,
            },
            queues: queues.min(QUEUES),
            quiet_ms: 0,
            state: AnaState::Optimized,
        };
        let backend = Arc::clone(&device.backend);
        Self { world: Arc::clone(world), backend, found, waker: None }
    }
}

impl Keeper for LocalKeeper {
    fn found(&self) -> &Found {
        &self.found
    }

    fn begin(&mut self, waker: &Waker) -> Result<(), HostError> {
        self.waker = Some(waker.clone());
        Ok(())
    }

    fn queue(&self, _: u16, _: u16, _: u64) -> Result<Box<dyn Queue<Piece>>, HostError> {
        Ok(Box::new(LocalQueue::new(Arc::clone(&self.backend))))
    }

    fn wait(&mut self, until_ns: Option<u64>) -> Result<Heard, HostError> {
        let Some(waker) = &self.waker else { return Ok(Heard::Time) };
        let waited = self.world.wait(waker, until_ns);
        let is_called = waited
            .map_err(|sys::Error { operation, source }| HostError::Network { operation, source })?;
        if is_called {
            waker.acknowledge();
        }
        Ok(if is_called { Heard::Called } else { Heard::Time })
    }

    fn look(&mut self) -> Result<(), HostError> {
        self.backend.refresh();
        self.found.geometry = self.backend.geometry();
        Ok(())
    }

    fn lost(&self) -> Option<Lost> {
        None
    }

    fn fence(&mut self, _: &Lost) -> Result<Fenced, HostError> {
        Ok(Fenced::Never)
    }

    fn socket(&self) -> Option<&Stream> {
        None
    }

    fn shut_down(self: Box<Self>) {}
}

/// Requests to a device, on the ring of one lane.
struct LocalQueue<T> {
    backend: Arc<dyn Backend>,
    jobs: Jobs<T>,
    /// Requests that the next [`Queue::flush`] begins, and completions since the last one.
    asked: Vec<(Request, Option<Block>, T)>,
    completed: Vec<Completed>,
    ended: Vec<Ended<T>>,
    is_lost: bool,
}

impl<T> LocalQueue<T> {
    fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            jobs: Jobs::new(JOBS),
            asked: Vec::new(),
            completed: Vec::new(),
            ended: Vec::new(),
            is_lost: false,
        }
    }
}

impl<T: Send> Queue<T> for LocalQueue<T> {
    fn submit(&mut self, request: Request, block: Option<Block>, tag: T) -> Option<Ended<T>> {
        if self.is_lost {
            return Some(Ended { request, result: Err(Failure::Lost), block, tag });
        }
        self.asked.push((request, block, tag));
        None
    }

    fn flush(&mut self, ring: &mut Ring) {
        if self.asked.is_empty() && self.completed.is_empty() {
            return;
        }
        let now_ns = ring.now_ns();
        for completed in self.completed.drain(..) {
            self.ended.extend(self.jobs.complete(ring, completed, now_ns));
        }
        for (request, block, tag) in self.asked.drain(..) {
            let job = Job { backend: Arc::clone(&self.backend), request, block, tag };
            self.ended.extend(self.jobs.start(ring, job, now_ns));
        }
    }

    fn has(&self, token: u64) -> bool {
        token & JOBS != 0
    }

    fn complete(&mut self, completed: Completed, _now_ns: u64, _ended: &mut Vec<Ended<T>>) {
        self.completed.push(completed);
    }

    fn has_ended(&self) -> bool {
        !(self.ended.is_empty() && self.completed.is_empty())
    }

    fn outstanding(&self) -> usize {
        self.asked.len() + self.jobs.len() + self.ended.len()
    }

    // A slow device is not lost, so its requests never time out.
    fn any(&self, _: &dyn Fn(&T) -> bool) -> bool {
        false
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.jobs.deadline_ns()
    }

    fn look(&mut self, now_ns: u64, ended: &mut Vec<Ended<T>>) {
        ended.append(&mut self.ended);
        while let Some(due) = self.jobs.next_due(now_ns) {
            ended.push(due);
        }
    }

    fn lose(&mut self, ended: &mut Vec<Ended<T>>) {
        self.is_lost = true;
        ended.append(&mut self.ended);
        let asked = self.asked.drain(..);
        ended.extend(asked.map(|(request, block, tag)| {
            let result = Err(Failure::Lost);
            Ended { request, result, block, tag }
        }));
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }
}
