//! The connection of a job to its device.

use std::sync::Arc;

use sys::block::Block;
use sys::ring::{Completed, Ring};

use backend::{Backend, Request};
use backend::{Ended, Job, JobTimes, Jobs};
use host::{Queue, Reached};

use super::{Device, LoadError};

/// Token bases on the ring: for a queue over the network,
const QUEUE: u64 = 1 << 56;
/// and for a backend of this process.
const JOBS: u64 = 2 << 56;

/// A backend of this process, or a queue of an NVMe/TCP host or iSCSI initiator.
pub(super) enum Way<T> {
    Local {
        backend: Arc<dyn Backend>,
        jobs: Jobs<T>,
        ended: Vec<Ended<T>>,
    },
    Remote {
        device: Device,
        reached: Reached<Box<dyn Queue<T>>>,
        /// Whether the target had reopened the medium at the last reconnection.
        was_reopened: bool,
        ended: Vec<Ended<T>>,
    },
}

impl<T: Send + 'static> Way<T> {
    /// Connects job `job` to `device`, with a queue of `depth` if it is remote.
    pub(super) fn open(device: &Device, job: u16, depth: u16) -> Result<Self, LoadError> {
        Ok(match device {
            Device::Local(backend) => Self::Local {
                backend: Arc::clone(backend),
                jobs: Jobs::new(JOBS),
                ended: Vec::new(),
            },
            Device::Remote(_) | Device::Iscsi(_) => {
                let reached = connect(device, job, depth)?;
                let (device, was_reopened) = (device.clone(), false);
                Self::Remote { device, reached, was_reopened, ended: Vec::new() }
            }
        })
    }

    /// Begins to sum up how a local backend spends the time of requests.
    pub(super) const fn trace(&mut self) {
        if let Self::Local { jobs, .. } = self {
            jobs.trace();
        }
    }

    /// How a local backend spent the time of requests; all zero if it is not traced.
    pub(super) fn times(&self) -> JobTimes {
        match self {
            Self::Local { jobs, .. } => jobs.times().unwrap_or_default(),
            Self::Remote { .. } => JobTimes::default(),
        }
    }

    /// Submits a request. Returns whether it has ended already.
    pub(super) fn submit(
        &mut self,
        ring: &mut Ring,
        request: Request,
        block: Block,
        tag: T,
        now_ns: u64,
    ) -> bool {
        let (over, ended) = match self {
            Self::Local { backend, jobs, ended } => {
                let backend = Arc::clone(backend);
                let job = Job { backend, request, block: Some(block), tag };
                (jobs.start(ring, job, now_ns), ended)
            }
            Self::Remote { reached, ended, .. } => {
                (reached.queue.submit(request, Some(block), tag), ended)
            }
        };
        let is_over = over.is_some();
        ended.extend(over);
        is_over
    }

    /// Sends all requests that were submitted to a remote queue.
    pub(super) fn flush(&mut self, ring: &mut Ring) {
        if let Self::Remote { reached, .. } = self {
            reached.queue.flush(ring);
        }
    }

    /// Processes a completion of the ring.
    pub(super) fn complete(&mut self, ring: &mut Ring, completed: Completed, now_ns: u64) {
        match self {
            Self::Local { jobs, ended, .. } => ended.extend(jobs.complete(ring, completed, now_ns)),
            Self::Remote { reached, ended, .. } => {
                reached.queue.complete(completed, now_ns, ended);
            }
        }
    }

    /// Takes a request that has ended or whose delay is over; `None` if there is none.
    pub(super) fn ended(&mut self, now_ns: u64) -> Option<Ended<T>> {
        match self {
            Self::Local { jobs, ended, .. } => ended.pop().or_else(|| jobs.next_due(now_ns)),
            Self::Remote { reached, ended, .. } => {
                reached.queue.look(now_ns, ended);
                ended.pop()
            }
        }
    }

    /// Whether a request that has ended waits to be taken.
    pub(super) fn has_ended(&self) -> bool {
        let (Self::Local { ended, .. } | Self::Remote { ended, .. }) = self;
        !ended.is_empty()
    }

    /// When [`Way::ended`] must be called at the latest; `None` if only completions matter.
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Local { jobs, .. } => jobs.deadline_ns(),
            Self::Remote { reached, .. } => reached.queue.deadline_ns(),
        }
    }

    /// Reconnects to a device after its connection was lost and no request is outstanding.
    pub(super) fn renew(&mut self, job: u16, depth: u16) -> Result<(), LoadError> {
        let Self::Remote { device, reached, was_reopened, .. } = self else { return Ok(()) };
        if let Device::Remote(controller) = &device {
            controller.renew(reached.generation)?;
        }
        match connect(device, job, depth) {
            Ok(again) => {
                *was_reopened = again.opening != reached.opening;
                *reached = again;
            }
            Err(error) => {
                if let Device::Remote(controller) = &device {
                    // The new connection is lost, too.
                    reached.generation = controller.generation();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether the target reopened the device before the last reconnection, so that writes that
    /// were not promised may be lost. False if the target does not report that.
    pub(super) const fn was_reopened(&self) -> bool {
        matches!(self, Self::Remote { was_reopened: true, .. })
    }

    /// Whether the ring has no operation of this connection.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Self::Local { jobs, .. } => jobs.is_empty(),
            Self::Remote { reached, .. } => reached.queue.is_idle(),
        }
    }

    /// Whether the connection is lost.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Local { .. } => false,
            Self::Remote { reached, .. } => reached.queue.is_lost(),
        }
    }
}

// Opens a queue for a job.
fn connect<T: Send + 'static>(
    device: &Device,
    job: u16,
    depth: u16,
) -> Result<Reached<Box<dyn Queue<T>>>, LoadError> {
    match device {
        Device::Remote(controller) => Ok(boxed(controller.queue(job + 1, depth, QUEUE)?)),
        Device::Iscsi(unit) => Ok(boxed(unit.queue(job + 1, depth, QUEUE)?)),
        Device::Local(_) => unreachable!("it has no queue"),
    }
}

// Turns a queue into one behind the trait.
fn boxed<T, Q: Queue<T> + 'static>(reached: Reached<Q>) -> Reached<Box<dyn Queue<T>>> {
    let Reached { queue, generation, opening } = reached;
    Reached { queue: Box::new(queue), generation, opening }
}
