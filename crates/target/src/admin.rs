//! The admin queue of a controller: commands that need more than the controller (Abort, reset of
//! other controllers, shutdown).

use std::collections::VecDeque;
use std::sync::Arc;

use nvme::{Change, Command, Direction, Fabrics, Instance, Queue, Reply, Slot, Status, Submission};

use backend::Job;
use backend::{Failure, Operation, Request};

use super::aborts::Aborts;
use super::resets::Resets;
use super::site::{Abort, Order, Owner, Site, Tag};
use super::subsystem::Namespace;

/// See the module's description.
pub(crate) struct Admin {
    /// The controller's CNTLID.
    pub(crate) controller: u16,
    /// Namespaces still to be flushed before the shutdown is complete.
    flushes: VecDeque<Arc<Namespace>>,
    /// The namespace that is being flushed.
    flushing: Option<Arc<Namespace>>,
    /// Whether a flush of this shutdown has failed.
    has_failed: bool,
    aborts: Aborts<Slot>,
    resets: Resets,
}

impl Admin {
    pub(crate) fn new(controller: u16) -> Self {
        Self {
            controller,
            flushes: VecDeque::new(),
            flushing: None,
            has_failed: false,
            aborts: Aborts::default(),
            resets: Resets::default(),
        }
    }

    /// Records a shard's report on Abort `serial`: `was` says whether it ended the command. After
    /// the last report returns the Abort and whether any shard ended the command.
    pub(crate) fn aborted(&mut self, serial: u64, was: bool) -> Option<(Slot, bool)> {
        self.aborts.looked(serial, was)
    }

    /// Executes an admin command. Returns how many jobs it has begun.
    pub(crate) fn command(
        &mut self,
        slot: Slot,
        submission: &Submission,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let now_ms = site.now_ns / 1_000_000;
        let control = site.control.as_deref_mut();
        let Some((controller, look)) = control.and_then(|all| all.with_view(self.controller))
        else {
            queue.complete(slot, Status::INTERNAL_ERROR, 0, out);
            return 0;
        };
        match controller.handle(slot, submission, &look, now_ms) {
            Reply::Done(status, result) => queue.complete(slot, status, result, out),
            Reply::Data(data) => {
                queue.send_data(slot, &data, out);
                queue.complete(slot, Status::SUCCESS, 0, out);
            }
            Reply::Held => {}
            Reply::Abort { queue: 0, cid } => {
                let of = queue.find(cid).filter(|of| controller.abort(*of));
                of.inspect(|of| queue.complete(*of, Status::ABORTED_BY_REQUEST, 0, out));
                queue.complete(slot, Status::SUCCESS, u64::from(of.is_none()), out);
            }
            Reply::Abort { queue: of, cid } => match self.aborts.begin(slot, site.rules.shards) {
                None => queue.complete(slot, Status::ABORT_LIMIT.do_not_retry(), 0, out),
                Some(serial) => {
                    let controller = self.controller;
                    let abort = Abort { controller, queue: of, cid, serial };
                    site.wishes.orders.push(Order::Abort(abort));
                }
            },
            Reply::ResetOther(of) => self.reset_other(slot, of, queue, out, site),
            Reply::Changed(Change::ShutDown) => return self.shut_down(slot, queue, out, site),
            Reply::Changed(_) => queue.complete(slot, Status::SUCCESS, 0, out),
            Reply::Reset(unanswered) => {
                let waiting = self.aborts.forget().chain(self.resets.forget());
                unanswered.into_iter().chain(waiting).for_each(|of| queue.forget(of));
                site.control.iter_mut().for_each(|all| all.reset(self.controller));
                site.wishes.orders.push(Order::EndQueues(self.controller));
                queue.complete(slot, Status::SUCCESS, 0, out);
            }
        }
        0
    }

    // Ends controller `of`, to which the host has lost its connections (Cross-Controller Reset).
    fn reset_other(
        &mut self,
        slot: Slot,
        of: Instance,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) {
        let Some(control) = site.control.as_deref_mut() else { return };
        match self.resets.begin(slot, (self.controller, of), control, site.now_ns) {
            Ok(connection) => site.wishes.orders.extend(connection.map(Order::Fence)),
            Err(status) => queue.complete(slot, status, 0, out),
        }
        self.feed(queue, out, site);
    }

    /// Completes resets of other controllers that have come to rest or have waited too long.
    pub(crate) fn feed(&mut self, queue: &mut Queue, out: &mut Vec<u8>, site: &mut Site<'_>) {
        let Some(control) = site.control.as_deref_mut() else { return };
        while let Some((slot, status)) = self.resets.next(control, site.now_ns) {
            // Bit 0: the reset is complete.
            queue.complete(slot, status, u64::from(status == Status::SUCCESS), out);
        }
        if self.resets.until_ns().is_some() {
            control.wait_for_queue(site.who.connection);
        }
    }

    /// When the first waiting reset of another controller times out; `None` if none waits.
    pub(crate) fn waits_until_ns(&self) -> Option<u64> {
        self.resets.until_ns()
    }

    // Base 3.6.1: what was written is on the medium when the shutdown is complete.
    fn shut_down(
        &mut self,
        slot: Slot,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let control = site.control.as_deref_mut();
        let association = control.and_then(|all| all.get(self.controller));
        self.flushes = association.iter().flat_map(|one| one.namespaces()).cloned().collect();
        self.flush_next(slot, queue, out, site)
    }

    // Flushes the namespaces in turn. Returns 1 while a flush runs in the background; otherwise
    // completes the shutdown.
    fn flush_next(
        &mut self,
        slot: Slot,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        while let Some(namespace) = self.flushes.pop_front() {
            let backend = Arc::clone(&namespace.backend);
            self.flushing = Some(namespace);
            let request = Request { operation: Operation::Flush, offset: 0, length: 0 };
            let tag = Tag { connection: site.who.connection, owner: Owner::Slot(slot) };
            let job = Job { backend, request, block: None, tag };
            match site.jobs.start(site.ring, job, site.now_ns) {
                None => return 1,
                Some(ended) => self.flushed(ended.result, site),
            }
        }
        if std::mem::take(&mut self.has_failed) {
            let control = site.control.as_deref_mut();
            if let Some(association) = control.and_then(|all| all.get(self.controller)) {
                association.controller.fail_shutdown();
            }
            queue.complete(slot, Status::INTERNAL_ERROR.do_not_retry(), 0, out);
        } else {
            queue.complete(slot, Status::SUCCESS, 0, out);
        }
        0
    }

    /// Takes the end of a flush and begins the next one. Returns how many jobs that has begun.
    pub(crate) fn ended(
        &mut self,
        slot: Slot,
        result: Result<(), Failure>,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        self.flushed(result, site);
        self.flush_next(slot, queue, out, site)
    }

    // Notes the outcome of a flush, and reports a device that has lost data.
    fn flushed(&mut self, result: Result<(), Failure>, site: &mut Site<'_>) {
        let namespace = self.flushing.take();
        if result.is_err() {
            self.has_failed = true;
            namespace.inspect(|namespace| site.tell_of_loss(namespace));
        }
    }
}

/// Whether a command is Disconnect, which ends the I/O queue that carries it.
pub(crate) fn is_disconnect(submission: &Submission) -> bool {
    submission.command == Command::Fabrics(Fabrics::Disconnect)
        && submission.direction == Direction::None
}
