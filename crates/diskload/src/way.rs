//! How requests of a job reach the device.

use std::sync::Arc;

use sys::block::Block;
use sys::ring::{Completed, Ring};

use backend::{Backend, Request};
use backend::{Ended, Job, JobTimes, Jobs};
use host::{Queue, Reached};

use super::{Device, LoadError};

/// Tokens of the ring.
const QUEUE: u64 = 1 << 56;
const JOBS: u64 = 2 << 56;

/// See the module's description.
pub(super) enum Way<T> {
    Local {
        backend: Arc<dyn Backend>,
        jobs: Jobs<T>,
        ended: Vec<Ended<T>>,
    },
    Remote {
        device: Device,
        reached: Reached<Box<dyn Queue<T>>>,
        /// It was another opening of its medium when it was reached before.
        was_reopened: bool,
        ended: Vec<Ended<T>>,
    },
}

impl<T: Send + 'static> Way<T> {
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

    /// Keeps sums of where the time of jobs goes.
    pub(super) const fn trace(&mut self) {
        if let Self::Local { jobs, .. } = self {
            jobs.trace();
        }
    }

    pub(super) fn times(&self) -> JobTimes {
        match self {
            Self::Local { jobs, .. } => jobs.times().unwrap_or_default(),
            Self::Remote { .. } => JobTimes::default(),
        }
    }

    /// Asks for something; whether it has ended already.
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

    pub(super) fn flush(&mut self, ring: &mut Ring) {
        if let Self::Remote { reached, .. } = self {
            reached.queue.flush(ring);
        }
    }

    pub(super) fn complete(&mut self, ring: &mut Ring, completed: Completed, now_ns: u64) {
        match self {
            Self::Local { jobs, ended, .. } => ended.extend(jobs.complete(ring, completed, now_ns)),
            Self::Remote { reached, ended, .. } => {
                reached.queue.complete(completed, now_ns, ended);
            }
        }
    }

    /// What has ended; jobs that waited for their time, too.
    pub(super) fn ended(&mut self, now_ns: u64) -> Option<Ended<T>> {
        match self {
            Self::Local { jobs, ended, .. } => ended.pop().or_else(|| jobs.next_due(now_ns)),
            Self::Remote { reached, ended, .. } => {
                reached.queue.look(now_ns, ended);
                ended.pop()
            }
        }
    }

    /// Whether something has ended already.
    pub(super) fn has_ended(&self) -> bool {
        let (Self::Local { ended, .. } | Self::Remote { ended, .. }) = self;
        !ended.is_empty()
    }

    pub(super) fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Local { jobs, .. } => jobs.deadline_ns(),
            Self::Remote { reached, .. } => reached.queue.deadline_ns(),
        }
    }

    /// Finds another way to a device whose connection was lost and has nothing under way.
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
                    // That one is gone, too.
                    reached.generation = controller.generation();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether a device that was found again had been opened anew meanwhile: what it had not
    /// promised may be gone. Of a target that does not say so, this is not known.
    pub(super) const fn was_reopened(&self) -> bool {
        matches!(self, Self::Remote { was_reopened: true, .. })
    }

    /// Whether the kernel has nothing of it.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Self::Local { jobs, .. } => jobs.is_empty(),
            Self::Remote { reached, .. } => reached.queue.is_idle(),
        }
    }

    /// Whether nothing more can be asked.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Local { .. } => false,
            Self::Remote { reached, .. } => reached.queue.is_lost(),
        }
    }
}

// A queue of its own for a job.
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

fn boxed<T, Q: Queue<T> + 'static>(reached: Reached<Q>) -> Reached<Box<dyn Queue<T>>> {
    let Reached { queue, generation, opening } = reached;
    Reached { queue: Box::new(queue), generation, opening }
}
