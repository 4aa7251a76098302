//! How requests of a job reach the device.

use std::sync::Arc;

use sys::block::Block;
use sys::ring::{Completed, Ring};

use crate::backend::{Backend, Request};
use crate::host::IoQueue;
use crate::jobs::{Ended, Job, Jobs};

use super::{Device, LoadError};

/// Tokens of the ring.
const QUEUE: u64 = 1 << 56;
const JOBS: u64 = 2 << 56;

/// See the module's description.
pub(super) enum Way<T> {
    Local { backend: Arc<dyn Backend>, jobs: Jobs<T>, ended: Vec<Ended<T>> },
    Remote { queue: Box<IoQueue<T>>, ended: Vec<Ended<T>> },
}

impl<T> Way<T> {
    pub(super) fn open(device: &Device, job: u16, depth: u16) -> Result<Self, LoadError> {
        Ok(match device {
            Device::Local(backend) => Self::Local {
                backend: Arc::clone(backend),
                jobs: Jobs::new(JOBS),
                ended: Vec::new(),
            },
            Device::Remote(controller) => {
                let queue = Box::new(controller.queue(job + 1, depth, QUEUE)?);
                Self::Remote { queue, ended: Vec::new() }
            }
        })
    }

    pub(super) fn submit(
        &mut self,
        ring: &mut Ring,
        request: Request,
        block: Block,
        tag: T,
        now_ns: u64,
    ) {
        match self {
            Self::Local { backend, jobs, ended } => {
                let backend = Arc::clone(backend);
                let job = Job { backend, request, block: Some(block), tag };
                ended.extend(jobs.start(ring, job, now_ns));
            }
            Self::Remote { queue, ended } => ended.extend(queue.submit(request, Some(block), tag)),
        }
    }

    pub(super) fn flush(&mut self, ring: &mut Ring) {
        if let Self::Remote { queue, .. } = self {
            queue.flush(ring);
        }
    }

    pub(super) fn complete(&mut self, ring: &mut Ring, completed: Completed, now_ns: u64) {
        match self {
            Self::Local { jobs, ended, .. } => ended.extend(jobs.complete(ring, completed, now_ns)),
            Self::Remote { queue, ended } => queue.complete(completed, ended),
        }
    }

    /// What has ended; jobs that waited for their time, too.
    pub(super) fn ended(&mut self, now_ns: u64) -> Option<Ended<T>> {
        match self {
            Self::Local { jobs, ended, .. } => ended.pop().or_else(|| jobs.next_due(now_ns)),
            Self::Remote { ended, .. } => ended.pop(),
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
            Self::Remote { .. } => None,
        }
    }

    /// Whether nothing more can be asked.
    pub(super) const fn is_lost(&self) -> bool {
        match self {
            Self::Local { .. } => false,
            Self::Remote { queue, .. } => queue.is_lost(),
        }
    }
}
