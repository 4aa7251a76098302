//! How requests of a job reach the device.

use std::sync::Arc;

use sys::block::Block;
use sys::ring::{Completed, Ring};

use backend::{Backend, Request};
use backend::{Ended, Job, JobTimes, Jobs};
use host::Queue;

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
        /// Of the controller that the queue is of.
        generation: u64,
        queue: Box<dyn Queue<T>>,
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
                let (queue, generation) = connect(device, job, depth)?;
                Self::Remote { device: device.clone(), generation, queue, ended: Vec::new() }
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
            Self::Remote { queue, ended, .. } => (queue.submit(request, Some(block), tag), ended),
        };
        let is_over = over.is_some();
        ended.extend(over);
        is_over
    }

    pub(super) fn flush(&mut self, ring: &mut Ring) {
        if let Self::Remote { queue, .. } = self {
            queue.flush(ring);
        }
    }

    pub(super) fn complete(&mut self, ring: &mut Ring, completed: Completed, now_ns: u64) {
        match self {
            Self::Local { jobs, ended, .. } => ended.extend(jobs.complete(ring, completed, now_ns)),
            Self::Remote { queue, ended, .. } => queue.complete(completed, now_ns, ended),
        }
    }

    /// What has ended; jobs that waited for their time, too.
    pub(super) fn ended(&mut self, now_ns: u64) -> Option<Ended<T>> {
        match self {
            Self::Local { jobs, ended, .. } => ended.pop().or_else(|| jobs.next_due(now_ns)),
            Self::Remote { queue, ended, .. } => {
                queue.look(now_ns, ended);
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
            Self::Remote { queue, .. } => queue.deadline_ns(),
        }
    }

    /// Finds another way to a device whose connection was lost and has nothing under way.
    pub(super) fn renew(&mut self, job: u16, depth: u16) -> Result<(), LoadError> {
        let Self::Remote { device, generation, queue, .. } = self else { return Ok(()) };
        if let Device::Remote(controller) = &device {
            controller.renew(*generation)?;
        }
        match connect(device, job, depth) {
            Ok((again, of)) => (*queue, *generation) = (again, of),
            Err(error) => {
                if let Device::Remote(controller) = &device {
                    // That one is gone, too.
                    *generation = controller.generation();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether the kernel has nothing of it.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Self::Local { jobs, .. } => jobs.is_empty(),
            Self::Remote { queue, .. } => queue.is_idle(),
        }
    }

    /// Whether nothing more can be asked.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Local { .. } => false,
            Self::Remote { queue, .. } => queue.is_lost(),
        }
    }
}

type Connected<T> = (Box<dyn Queue<T>>, u64);

// A queue of its own for a job, and the generation of the controller that it is of.
fn connect<T: Send + 'static>(
    device: &Device,
    job: u16,
    depth: u16,
) -> Result<Connected<T>, LoadError> {
    match device {
        Device::Remote(controller) => {
            let (queue, generation) = controller.queue(job + 1, depth, QUEUE)?;
            Ok((Box::new(queue), generation))
        }
        Device::Iscsi(unit) => Ok((Box::new(unit.queue(job + 1, depth, QUEUE)?), 0)),
        Device::Local(_) => unreachable!("it has no queue"),
    }
}
