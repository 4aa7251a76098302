//! The commands of an I/O queue, from their capsule to their answer.
//!
//! ```text
//! command ─► plan ─┬─► (memory ─► R2T ─► data) ─► job ─► ended ─► (next step) ─► answer
//!                  └─► done at once ────────────────────────────────────────────► answer
//! ```

mod fused;
mod reservations;
mod waiting;

use std::sync::Arc;

use nvme::{Access, Command, ConnectRequest, Data, Fused, Io, Queue, Slot, Status, Submission};

use backend::Ended;
use backend::pool::Pool;

use super::admin::is_disconnect;
use super::counters::add;
use super::execution::{Execution, Progress};
use super::immediate::{Wire, read_at_once};
use super::ledger::Answered;
use super::meter::Kind;
use super::pairs::{self, Awaited, Pair, Paired};
use super::plan::{Plan, plan, status_of};
use super::portal::Portal;
use super::site::{Owner, Site, Tag};
use super::subsystem::{Namespace, Subsystem, find};
use super::views::Host;
use super::waiting::Waiting;
use super::work::{Deed, Finding};

/// Flush of every namespace (Base 7.2).
const ALL_NAMESPACES: u32 = u32::MAX;

/// A command that is under way.
struct Pending {
    execution: Execution,
    plan: Plan,
    /// The value of [`super::reserved::Reserved::epoch`] when the command came.
    epoch: u64,
    /// Set if the command is one of two fused commands.
    pair: Option<Pair>,
}

impl Pending {
    // Whether the host sends the command's data at an R2T.
    const fn is_asked_for(&self) -> bool {
        matches!(self.plan.data, Data::Transport { .. }) && !self.plan.answers
    }
}

/// See the module's description.
pub(crate) struct IoSession {
    /// The controller, and the number of its queue.
    pub(crate) controller: u16,
    pub(crate) queue: u16,
    /// The host that has connected the queue.
    host: Host,
    subsystem: Arc<Subsystem>,
    portal: Arc<Portal>,
    namespaces: Arc<[Arc<Namespace>]>,
    /// Commands under way, by slot.
    pending: Vec<Option<Pending>>,
    waiting: Waiting<Slot>,
    awaited: Awaited,
    has_left: bool,
}

impl IoSession {
    /// The session of an I/O queue that this Connect has made.
    pub(crate) fn new(
        controller: u16,
        request: &ConnectRequest,
        subsystem: Arc<Subsystem>,
        portal: Arc<Portal>,
    ) -> Self {
        let host = Host { nqn: request.data.host.clone(), id: request.data.host_id };
        Self {
            controller,
            queue: request.queue,
            namespaces: subsystem.seen_by(&host),
            host,
            subsystem,
            portal,
            pending: Vec::new(),
            waiting: Waiting::default(),
            awaited: Awaited::Any,
            has_left: false,
        }
    }

    /// Whether the host has ended the queue by Disconnect.
    pub(crate) const fn has_left(&self) -> bool {
        self.has_left
    }

    /// Looks up the host's namespaces again, after namespaces were replaced.
    pub(crate) fn refresh(&mut self) {
        self.namespaces = self.subsystem.seen_by(&self.host);
    }

    /// Takes a command. Returns how many jobs it has begun.
    pub(crate) fn command(
        &mut self,
        slot: Slot,
        submission: &Submission,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let mut wire = Wire { queue, out };
        if is_disconnect(submission) {
            self.has_left = true;
            wire.queue.complete(slot, Status::SUCCESS, 0, wire.out);
            return 0;
        }
        let before = std::mem::replace(&mut self.awaited, Awaited::Any);
        if submission.fused == Fused::Second {
            return self.second(before, slot, submission, &mut wire, site);
        }
        self.is_missing(before, &mut wire, site);
        let is_first = submission.fused == Fused::First;
        match self.prepare(submission) {
            Err(status) => {
                self.refuse(submission, site);
                if is_first {
                    self.awaited = Awaited::Aborted;
                }
                wire.queue.complete(slot, status, 0, wire.out);
                0
            }
            Ok((namespace, plan)) if is_first => {
                self.admit(slot, namespace, plan, Some(Pair::first()), site);
                self.begin_first(slot, &mut wire, site)
            }
            Ok((namespace, plan)) => {
                if let Some(work) = plan.work.as_ref().filter(|work| work.deed == Deed::Read)
                    && namespace.backend.is_immediate()
                {
                    read_at_once(slot, &namespace, work, &mut wire, site);
                    return 0;
                }
                self.admit(slot, namespace, plan, None, site);
                self.come_in(slot, &mut wire, site)
            }
        }
    }

    // Adds a command to those under way.
    fn admit(
        &mut self,
        slot: Slot,
        namespace: Arc<Namespace>,
        mut plan: Plan,
        pair: Option<Pair>,
        site: &Site<'_>,
    ) {
        namespace.meter.shard(site.rules.shard).begin();
        let epoch = namespace.reserved.epoch();
        let mut execution = Execution::new(namespace, site.who.account, site.now_ns);
        let bytes = plan.bytes as usize;
        match plan.work.take() {
            Some(work) => execution.set_work(work, bytes),
            None => execution.set_own_bytes(bytes),
        }
        let pending = Pending { execution, plan, epoch, pair };
        let place = usize::from(slot.number());
        if place >= self.pending.len() {
            self.pending.resize_with(place + 1, || None);
        }
        self.pending[place] = Some(pending);
    }

    // Begins a command, unless earlier commands still wait for their R2T.
    fn come_in(&mut self, slot: Slot, wire: &mut Wire<'_>, site: &mut Site<'_>) -> u32 {
        let place = self.pending.get(usize::from(slot.number()));
        let Some(Some(pending)) = place else { return 0 };
        if pending.is_asked_for() && !self.waiting.unasked.is_empty() {
            self.waiting.unasked.push_back(slot);
            return 0;
        }
        self.begin(slot, wire, site)
    }

    // Counts a refused command, for its namespace if it has one.
    fn refuse(&self, submission: &Submission, site: &mut Site<'_>) {
        add(&site.books.counters.failures, 1);
        let kind = match submission.command {
            Command::Io(Io::Read(_)) => Kind::Read,
            Command::Io(Io::Write(_)) => Kind::Write,
            _ => Kind::Other,
        };
        if let Some(namespace) = find(&self.namespaces, submission.nsid) {
            let namespace = Arc::clone(namespace);
            let (bytes, has_failed) = (0, true);
            let (taken_ns, was_begun) = (site.now_ns, false);
            site.answered(Answered { namespace, kind, bytes, has_failed, taken_ns, was_begun });
        }
    }

    // Checks a command. Returns its namespace and its plan.
    fn prepare(&self, submission: &Submission) -> Result<(Arc<Namespace>, Plan), Status> {
        let Command::Io(io) = submission.command else {
            return Err(Status::INVALID_OPCODE.do_not_retry());
        };
        let all = io == Io::Flush && submission.nsid == ALL_NAMESPACES;
        let namespace = match all {
            true => self.namespaces.first(),
            false => find(&self.namespaces, submission.nsid),
        };
        let namespace = namespace.ok_or(Status::INVALID_NAMESPACE.do_not_retry())?;
        let geometry = namespace.backend.geometry();
        let is_first = submission.fused == Fused::First;
        if submission.fused != Fused::No {
            pairs::check(io, is_first, geometry.atomic_bytes / geometry.block_bytes())?;
        }
        let mut plan = Plan { all, ..plan(io, submission.data, geometry)? };
        if is_first {
            // A fused Compare is followed by a Write to the same blocks.
            (plan.is_fused, plan.access) = (true, Access::Write);
        }
        self.check(namespace, &plan)?;
        Ok((Arc::clone(namespace), plan))
    }

    // Checks the portal's ANA state and the reservations of all namespaces that the command
    // affects.
    fn check(&self, namespace: &Namespace, plan: &Plan) -> Result<(), Status> {
        self.portal.check()?;
        if namespace.is_private && plan.reserves.is_some() {
            // RESCAP reports that private namespaces have no reservations.
            return Err(Status::INVALID_FIELD.do_not_retry());
        }
        let admits = |one: &Namespace| one.reserved.admits(&self.host.id, plan.access);
        let others = if plan.all { &self.namespaces[..] } else { &[] };
        if admits(namespace) && others.iter().all(|other| admits(other)) {
            Ok(())
        } else {
            Err(Status::RESERVATION_CONFLICT.do_not_retry())
        }
    }

    // Takes memory for a command, and requests its data (R2T) or begins its work.
    fn begin(&mut self, slot: Slot, wire: &mut Wire<'_>, site: &mut Site<'_>) -> u32 {
        let Some(Some(pending)) = self.pending.get_mut(usize::from(slot.number())) else {
            return 0;
        };
        let bytes = pending.execution.own_bytes();
        let is_asked_for = pending.is_asked_for();
        let solicited = &mut self.waiting.solicited;
        if is_asked_for && !solicited.may_ask(bytes, site.pool.share(), site.now_ns) {
            self.waiting.unasked.push_back(slot);
            return 0;
        }
        let comes = matches!(pending.plan.data, Data::InCapsule { .. });
        if comes {
            // In-capsule data is already coming, and the queue depth bounds it.
            pending.execution.fill_anyway(bytes, site.pool);
        } else if !pending.execution.fill(site.pool) {
            self.waiting.starving.push_back(slot);
            return 0;
        }
        if comes {
            solicited.ask(0);
            return 0;
        }
        if is_asked_for {
            solicited.ask(bytes);
            wire.queue.request_data(slot, wire.out);
            return 0;
        }
        self.start(slot, wire, site)
    }

    /// Stores received data of a command.
    pub(crate) fn data(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        self.waiting.solicited.moved(bytes.len());
        let place = self.pending.get_mut(usize::from(slot.number()));
        if let Some(Some(pending)) = place {
            pending.execution.put(offset as usize, bytes);
        }
    }

    /// Starts a command whose data is complete, or fails it if a digest was wrong (`is_intact`),
    /// and requests data of others. Returns how many jobs that has begun.
    pub(crate) fn all_data(
        &mut self,
        slot: Slot,
        is_intact: bool,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let mut wire = Wire { queue, out };
        let bytes = match self.pending.get(usize::from(slot.number())) {
            Some(Some(pending)) if pending.is_asked_for() => pending.execution.own_bytes(),
            _ => 0,
        };
        self.waiting.solicited.end(bytes, site.now_ns);
        let jobs = if is_intact {
            self.start(slot, &mut wire, site)
        } else {
            self.answer(slot, Status::TRANSIENT_TRANSPORT_ERROR, &mut wire, site);
            0
        };
        jobs + self.ask_on(&mut wire, site)
    }

    // Starts a command whose memory and data are there. Returns how many jobs that has begun.
    fn start(&mut self, slot: Slot, wire: &mut Wire<'_>, site: &mut Site<'_>) -> u32 {
        let slot = match self.pair_up(slot) {
            Paired::Begins(slot) => slot,
            Paired::Waits => return 0,
            Paired::Failed => {
                self.answer(slot, Status::ABORTED_FAILED_FUSED.do_not_retry(), wire, site);
                return 0;
            }
        };
        let place = self.pending.get_mut(usize::from(slot.number()));
        let Some(Some(Pending { execution, plan, .. })) = place else { return 0 };
        match plan.ranges(execution.own()) {
            Ok(work) => {
                work.into_iter().for_each(|work| execution.set_work(work, plan.bytes as usize))
            }
            Err(status) => {
                self.answer(slot, status, wire, site);
                return 0;
            }
        }
        // Another host may have reserved the namespace while data was in transit.
        let (reserves, fences) = (plan.reserves, plan.fences);
        let may = match reserves {
            Some(io) if execution.namespace.reserved.keeps(io) => return self.keep(slot, site),
            Some(_) => self.reserve(slot).map(|()| true),
            // It has already reserved, and has waited for others' writes.
            None if fences => Ok(true),
            None => self.may_begin(slot).map(|()| false),
        };
        match may {
            Ok(is_done) if (!is_done || fences) && self.is_parked(slot) => 0,
            Ok(false) => self.step(slot, wire, site),
            Ok(true) => {
                self.answer(slot, Status::SUCCESS, wire, site);
                0
            }
            Err(status) => {
                self.answer(slot, status, wire, site);
                0
            }
        }
    }

    // Checks reservations once more before the work begins; a Flush of all gets its other devices.
    fn may_begin(&mut self, slot: Slot) -> Result<(), Status> {
        let others = self.namespaces.iter().skip(1);
        let others = others.map(|namespace| Arc::clone(&namespace.backend));
        let place = self.pending.get_mut(usize::from(slot.number()));
        if let Some(Some(Pending { execution, plan, .. })) = place
            && plan.all
        {
            execution.set_others(others.collect());
        }
        let place = self.pending.get(usize::from(slot.number()));
        let Some(Some(Pending { execution, plan, epoch, .. })) = place else { return Ok(()) };
        // A write from before its host was preempted is refused even if the host has registered
        // again.
        if plan.access == Access::Write
            && execution.namespace.reserved.has_ceased(&self.host.id, *epoch)
        {
            return Err(Status::RESERVATION_CONFLICT.do_not_retry());
        }
        self.check(&execution.namespace, plan)
    }

    // Submits the next request of a command, or ends it. Returns how many jobs that has begun.
    fn step(&mut self, slot: Slot, wire: &mut Wire<'_>, site: &mut Site<'_>) -> u32 {
        let place = self.pending.get_mut(usize::from(slot.number()));
        let Some(Some(pending)) = place else { return 0 };
        match pending.execution.advance(Owner::Slot(slot), site) {
            Progress::Working => 1,
            Progress::Ended(finding) => self.found(slot, finding, wire, site),
        }
    }

    // Ends a command whose requests have ended; a fused Compare that succeeds starts its Write.
    fn found(
        &mut self,
        slot: Slot,
        finding: Finding,
        wire: &mut Wire<'_>,
        site: &mut Site<'_>,
    ) -> u32 {
        let place = self.pending.get(usize::from(slot.number()));
        let is_first = matches!(place, Some(Some(pending)) if pending.plan.is_fused);
        if is_first && finding == Finding::Done {
            return self.go_on(slot, wire, site);
        }
        self.answer(slot, status_of(finding), wire, site);
        0
    }

    /// Takes an ended job of a command and continues. Returns how many jobs that has begun.
    pub(crate) fn ended(
        &mut self,
        slot: Slot,
        ended: Ended<Tag>,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let mut wire = Wire { queue, out };
        let place = self.pending.get_mut(usize::from(slot.number()));
        let Some(Some(pending)) = place else {
            ended.block.into_iter().for_each(|block| site.pool.give(site.who.account, block));
            return 0;
        };
        match pending.execution.take(ended) {
            Ok(()) => self.step(slot, &mut wire, site),
            Err(finding) => self.found(slot, finding, &mut wire, site),
        }
    }

    // Sends the answer of a command, frees what it holds, and counts it.
    fn answer(&mut self, slot: Slot, status: Status, wire: &mut Wire<'_>, site: &mut Site<'_>) {
        let place = self.pending.get_mut(usize::from(slot.number()));
        let Some(mut pending) = place.and_then(Option::take) else { return };
        let has_failed = !status.is_success();
        if has_failed {
            add(&site.books.counters.failures, 1);
        } else if pending.plan.answers {
            wire.queue.send_data(slot, pending.execution.own(), wire.out);
        }
        wire.queue.complete(slot, status, 0, wire.out);
        pending.execution.close(site);
        site.answered(pending.execution.answered(has_failed, true));
        if has_failed {
            self.fail_other(slot, pending.pair, wire, site);
        }
    }

    /// Drops all commands: frees their memory into the shard's pool and counts them out of flight.
    pub(crate) fn release(&mut self, shard: u16, pool: &mut Pool) {
        for mut pending in self.pending.drain(..).flatten() {
            pending.execution.namespace.meter.shard(shard).end();
            // A connection is freed only after its jobs have ended, so no device uses this memory.
            pending.execution.leave(pool);
        }
    }
}
