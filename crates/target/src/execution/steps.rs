//! The steps of an execution on its shard.

use std::sync::Arc;

use backend::Job;

use super::{Execution, Progress};
use crate::site::{Order, Owner, Site, Tag};
use crate::work::{Act, Side};

impl Execution {
    /// Submits the next request, and further ones as long as each ends at once.
    pub(crate) fn advance(&mut self, owner: Owner, site: &mut Site<'_>) -> Progress {
        loop {
            let (request, side) = match self.next() {
                Act::End(finding) => return Progress::Ended(finding),
                Act::Ask(request, side) => (request, side),
            };
            let block = match side {
                Side::Own => self.memory.own.take(),
                Side::Scratch => self.memory.scratch.take(),
                Side::None => None,
            };
            let other = self.others.pop();
            self.is_elsewhere = other.is_some();
            let backend = other.unwrap_or_else(|| Arc::clone(&self.namespace.backend));
            let tag = Tag { connection: site.who.connection, owner };
            let job = Job { backend, request, block, tag };
            match site.jobs.start(site.ring, job, site.now_ns) {
                None => return Progress::Working,
                Some(ended) => {
                    if let Err(finding) = self.take(ended) {
                        return Progress::Ended(finding);
                    }
                }
            }
        }
    }

    /// Frees the memory and the range of a command that has ended, and wakes commands that wait.
    pub(crate) fn close(&mut self, site: &mut Site<'_>) {
        if self.leave(site.pool) {
            site.wishes.orders.push(Order::Released);
        }
    }
}
