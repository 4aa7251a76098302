//! What a session does with a command, from its arrival to its answer.

use std::sync::Arc;

use scsi::iscsi::{Expectation, ScsiCommand, Task};
use scsi::{
    Operation as Asked, Outcome, Plan, Sense, Status, Step, Transfer, UnitPort, absent, read_write,
    report_luns,
};

use backend::{Ended, Job};

use super::super::counters::add;
use super::super::keeper::Kept;
use super::super::ledger::Answered;
use super::super::meter::Kind;
use super::super::site::{Order, Owner, Site, Tag};
use super::super::stripes::{Hold, Range};
use super::super::subsystem::Namespace;
use super::end::FIRST_BURST_BYTES;
use super::pending::{Doing, Lent, Pending, State};
use super::session::IscsiSession;
use super::unit;
use super::work::{self, Act, Side};

impl IscsiSession {
    /// Takes a command; how many jobs that has begun.
    pub(super) fn command(
        &mut self,
        task: Task,
        command: &ScsiCommand,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let sent_bytes = if command.writes { command.expected_bytes } else { 0 };
        let Some(namespace) = unit::namespace_of(&self.units, command.lun).map(Arc::clone) else {
            return self.absent(task, command, out);
        };
        if let Some(plan) = self.direct(&namespace, command, sent_bytes) {
            let is_read = plan.operation == Asked::Read;
            if is_read && namespace.backend.is_immediate() && self.takes_whole(command, &plan) {
                self.read_at_once(task, &namespace, &plan, out, site);
                return 0;
            }
            return self.accept(
                task,
                Pending::new(namespace, plan, (site.who.account, site.now_ns)),
                out,
                site,
            );
        }
        let (number, states) = (self.peer.port.number(), self.peer.port.states());
        let target = &self.peer.target;
        let port = UnitPort { target, group: number, relative: number, states: &states };
        let (step, has_descriptors) =
            namespace.reserved.begin(self.nexus, &command.cdb, sent_bytes, port);
        let pending = Pending {
            has_descriptors,
            ..Pending::idle(namespace, (site.who.account, site.now_ns))
        };
        self.step(task, pending, step, out, site)
    }

    // What a command takes that needs no more than to be looked at.
    pub(super) fn direct(
        &mut self,
        namespace: &Arc<Namespace>,
        command: &ScsiCommand,
        sent_bytes: u32,
    ) -> Option<Plan> {
        let index = self.units.iter().position(|unit| Arc::ptr_eq(unit, namespace))?;
        let clear = self.clear.get_mut(index)?;
        let epoch = namespace.reserved.epoch();
        if clear.as_ref().is_none_or(|(known, _)| *known != epoch) {
            *clear = namespace.reserved.clearance(self.nexus);
        }
        let (_, data) = clear.as_ref()?;
        self.peer.port.check().ok()?;
        read_write(&command.cdb, sent_bytes, data)
    }

    // A logical unit that is not there.
    pub(super) fn absent(&mut self, task: Task, command: &ScsiCommand, out: &mut Vec<u8>) -> u32 {
        let outcome = match absent(&command.cdb) {
            Step::Answer(outcome) => outcome,
            Step::ReportLuns { select, allocation } => self.luns(select, allocation),
            _ => Outcome::check(Sense::LOGICAL_UNIT_NOT_SUPPORTED),
        };
        self.answer(task, &outcome, false, out);
        0
    }

    pub(super) fn luns(&self, select: u8, allocation: u32) -> Outcome {
        let luns = self.units.iter().filter_map(|unit| unit::lun_of(unit));
        match report_luns(luns, select, allocation) {
            Ok(data) => Outcome::data(data),
            Err(sense) => Outcome::check(sense),
        }
    }

    // Goes on with what a logical unit has made of a command.
    pub(super) fn step(
        &mut self,
        task: Task,
        mut pending: Pending,
        step: Step,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        pending.doing = match step {
            Step::Answer(outcome) => {
                self.answer(task, &outcome, pending.has_descriptors, out);
                pending.note(&outcome, site);
                return 0;
            }
            Step::ReportLuns { select, allocation } => {
                let outcome = self.luns(select, allocation);
                self.answer(task, &outcome, pending.has_descriptors, out);
                return 0;
            }
            Step::Log { asked, allocation } => {
                let figures = unit::figures(&pending.namespace);
                let outcome = Outcome::log(asked, &figures, allocation);
                self.answer(task, &outcome, pending.has_descriptors, out);
                pending.note(&outcome, site);
                return 0;
            }
            Step::Parameters(command, bytes) => {
                (pending.wanted, pending.lent.own_bytes) = (bytes, bytes as usize);
                Doing::Parameters(command)
            }
            Step::Device(plan) => {
                pending.plan(plan);
                Doing::Plan(plan)
            }
            Step::Unmap(ranges) => Doing::Unmap(ranges),
            Step::Abort(_, outcome) => Doing::Abort(outcome),
        };
        self.accept(task, pending, out, site)
    }

    // Finds memory for a command, and asks for its data or begins its work.
    pub(super) fn accept(
        &mut self,
        task: Task,
        pending: Pending,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        pending.namespace.meter.shard(site.rules.shard).begin();
        let index = usize::from(task.number());
        if index >= self.pending.len() {
            self.pending.resize_with(index + 1, || None);
        }
        let pending = self.pending[index].insert(pending);
        pending.was_begun = true;
        if pending.wanted == 0 {
            return self.lend(task, out, site);
        }
        let (own_bytes, wanted) = (pending.lent.own_bytes, pending.wanted);
        let first = own_bytes.min(FIRST_BURST_BYTES as usize);
        // What comes unasked cannot wait; the number of commands bounds it.
        if self.session.comes_unasked(task) {
            pending.lent.block = Some(site.pool.lend_anyway(pending.lent.account, first));
            if first == own_bytes {
                return self.expect(task, out, site);
            }
            self.session.expect_unasked(task, wanted);
        } else if self.waiting.unasked.is_empty() && self.may_ask(task, site) {
            return self.lend(task, out, site);
        }
        self.waiting.unasked.push_back(task);
        self.connection_of(task).map_or(0, |number| self.ask_on(number, out, site))
    }

    fn connection_of(&self, task: Task) -> Option<u16> {
        self.session.connection_of(task)
    }

    // Finds memory for a command that may ask for its data.
    pub(super) fn lend(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let Some(pending) = self.pending(task) else { return 0 };
        if pending.lent.own_bytes > 0 && !pending.lent.fill_block(site.pool) {
            self.waiting.starving.push_back(task);
            return 0;
        }
        self.expect(task, out, site)
    }

    pub(super) fn expect(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let Some(pending) = self.pending(task) else { return 0 };
        pending.state = State::Coming;
        let wanted = pending.wanted;
        match self.session.expect(task, wanted, out) {
            Expectation::Met => self.start(task, out, site),
            Expectation::Coming => {
                if let Some(pending) = self.pending(task) {
                    let bytes = pending.lent.own_bytes;
                    pending.owes = Some(bytes);
                    self.waiting.solicited.ask(bytes);
                }
                0
            }
            Expectation::Failed(sense) => self.end(task, &Outcome::check(sense), out, site),
        }
    }

    /// Data of a command has come.
    pub(super) fn data(&mut self, task: Task, offset: u32, bytes: &[u8]) {
        self.waiting.solicited.moved(bytes.len());
        if let Some(Lent { block: Some(block), own_bytes, .. }) =
            self.pending(task).map(|pending| &mut pending.lent)
        {
            let from = offset as usize;
            let end = (from + bytes.len()).min(*own_bytes);
            if let Some(room) = block.get_mut(from..end) {
                room.copy_from_slice(&bytes[..room.len()]);
            }
        }
    }

    /// All data of a command has come, or will not.
    pub(super) fn all_data(
        &mut self,
        task: Task,
        result: Result<(), Sense>,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        self.settle_data(task, site.now_ns);
        match result {
            // What it works on already, or waits to, did not need the data.
            Ok(()) if self.pending(task).is_some_and(|one| one.state == State::Coming) => {
                self.start(task, out, site)
            }
            Ok(()) => 0,
            Err(_) if self.pending(task).is_some_and(|one| one.state == State::Working) => 0,
            Err(sense) => self.end(task, &Outcome::check(sense), out, site),
        }
    }

    // Everything is there that the command needs.
    pub(super) fn start(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let nexus = self.nexus;
        let Some(pending) = self.pending(task) else { return 0 };
        if let Doing::Parameters(command) = &pending.doing {
            let own_bytes = pending.lent.own_bytes;
            let data = pending.lent.block.as_deref().and_then(|block| block.get(..own_bytes));
            let data = data.unwrap_or_default();
            if pending.namespace.reserved.keeps_command(command) {
                let (command, data) = (*command, data.to_vec());
                pending.state = State::Working;
                let namespace = Arc::clone(&pending.namespace);
                let change =
                    move || Kept::Scsi(namespace.reserved.parameters(nexus, &command, &data));
                let tag = Tag { connection: site.who.connection, owner: Owner::Task(task) };
                site.wishes.orders.push(Order::Keep(tag, Box::new(change)));
                return 1;
            }
            let step = pending.namespace.reserved.parameters(nexus, command, data);
            return self.go_on(task, step, out, site);
        }
        self.begin(task, out, site)
    }

    /// Goes on with what a logical unit has made of a command's parameters.
    pub(super) fn go_on(
        &mut self,
        task: Task,
        step: Step,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let Some(pending) = self.pending(task) else { return 0 };
        match step {
            Step::Unmap(ranges) => {
                pending.doing = Doing::Unmap(ranges);
                self.begin(task, out, site)
            }
            Step::Abort(others, outcome) => {
                pending.doing = Doing::Abort(outcome);
                self.abort_others(task, others, site);
                0
            }
            Step::Answer(outcome) => self.end(task, &outcome, out, site),
            _ => {
                let outcome = Outcome::check(Sense::INTERNAL_TARGET_FAILURE);
                self.end(task, &outcome, out, site)
            }
        }
    }

    // Begins what nothing bars, or what waited for a range.
    pub(super) fn begin(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let (nexus, reach) = (self.nexus, self.peer.port.check());
        let Some(pending) = self.pending(task) else { return 0 };
        // The port may be in another state since it came.
        if let (Err(sense), Doing::Plan(_) | Doing::Unmap(_)) = (reach, &pending.doing) {
            return self.end(task, &Outcome::check(sense), out, site);
        }
        // Somebody else may have reserved it while data was on its way.
        let writes = match &pending.doing {
            Doing::Plan(plan) => plan.operation.writes() && pending.wanted > 0,
            Doing::Unmap(_) => true,
            Doing::Parameters(_) | Doing::Abort(_) => false,
        };
        if writes && pending.namespace.reserved.bars_writing(nexus) {
            return self.end(task, &Outcome::conflict(), out, site);
        }
        self.hold(task, out, site)
    }

    // Takes what nobody else may write meanwhile, and begins.
    fn hold(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let Some(pending) = self.pending(task) else { return 0 };
        let hold = match (&pending.doing, pending.range) {
            (_, Range::Waits(hold)) => Some(hold),
            (Doing::Plan(plan), _) => work::hold(plan),
            (Doing::Unmap(_), _) => {
                let length = pending.namespace.backend.geometry().bytes();
                Some(Hold { offset: 0, length, is_alone: false })
            }
            (Doing::Parameters(_) | Doing::Abort(_), _) => None,
        };
        if let Some(hold) = hold {
            pending.range = pending.namespace.stripes.take_or_wait(hold, pending.range);
            if matches!(pending.range, Range::Waits(_)) {
                pending.state = State::Parked;
                self.waiting.parked.push(task);
                return 0;
            }
        }
        pending.state = State::Working;
        self.advance(task, out, site)
    }

    // The next request of a command, and the next after one that ends at once.
    pub(super) fn advance(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        loop {
            let Some(pending) = self.pending(task) else { return 0 };
            let (request, side) = match pending.next(site.pool) {
                Act::End(outcome) => return self.end(task, &outcome, out, site),
                Act::Ask(request, side) => (request, side),
            };
            let block = match side {
                Side::Own => pending.lent.block.take(),
                Side::Scratch(bytes) => {
                    let scratch = pending.lent.scratch.take();
                    let scratch = scratch.or_else(|| site.pool.lend(pending.lent.account, bytes));
                    if scratch.is_none() {
                        return self.end(task, &full(), out, site);
                    }
                    scratch
                }
                Side::None => None,
            };
            let backend = Arc::clone(&pending.namespace.backend);
            let tag = Tag { connection: site.who.connection, owner: Owner::Task(task) };
            let job = Job { backend, request, block, tag };
            match site.jobs.start(site.ring, job, site.now_ns) {
                None => return 1,
                Some(ended) => {
                    if let Err(outcome) = self.take(task, ended, site) {
                        return self.end(task, &outcome, out, site);
                    }
                }
            }
        }
    }

    // What a request has brought.
    pub(super) fn take(
        &mut self,
        task: Task,
        ended: Ended<Tag>,
        site: &mut Site<'_>,
    ) -> Result<(), Outcome> {
        let Some(pending) = self.pending(task) else {
            ended.block.into_iter().for_each(|block| site.pool.give(site.who.account, block));
            return Ok(());
        };
        if let Some(block) = ended.block {
            match pending.lent.block {
                None if pending.lent.own_bytes > 0 => pending.lent.block = Some(block),
                _ => pending.lent.scratch = Some(block),
            }
        }
        pending.stage += 1;
        let operation = ended.request.operation;
        ended.result.map_err(|failure| Outcome::check(work::failed(failure, operation)))
    }

    /// A job has ended; how many it has been followed by.
    pub(super) fn ended(
        &mut self,
        task: Task,
        ended: Ended<Tag>,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        match self.take(task, ended, site) {
            Ok(()) => self.advance(task, out, site),
            Err(outcome) => self.end(task, &outcome, out, site),
        }
    }

    /// Ends a command.
    pub(super) fn end(
        &mut self,
        task: Task,
        outcome: &Outcome,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        self.settle_data(task, site.now_ns);
        let place = self.pending.get_mut(usize::from(task.number()));
        let Some(mut pending) = place.and_then(Option::take) else { return 0 };
        if matches!(pending.state, State::Parked | State::Starving) {
            self.forget(task);
        }
        let is_good = outcome.status == Status::Good;
        let reads = matches!(&pending.doing, Doing::Plan(plan) if plan.operation == Asked::Read);
        match pending.lent.block.as_deref().and_then(|block| block.get(..pending.lent.own_bytes)) {
            Some(data) if is_good && reads => {
                self.session.send_data(task, data, outcome.about_bytes, out);
            }
            _ => self.answer(task, outcome, pending.has_descriptors, out),
        }
        pending.release(site);
        pending.note(outcome, site);
        for wait in std::mem::take(&mut pending.waits) {
            let then = site.sessions.ended(wait);
            site.wishes.orders.extend(then.map(Order::Follow));
        }
        if self.ways.logout.is_some() {
            site.wishes.orders.extend(self.wake_for_logout());
        }
        0
    }

    pub(super) fn answer(
        &mut self,
        task: Task,
        outcome: &Outcome,
        descriptors: bool,
        out: &mut Vec<u8>,
    ) {
        let Outcome { status, sense, data, about_bytes } = outcome;
        if !data.is_empty() && *status == Status::Good {
            return self.session.send_data(task, data, *about_bytes, out);
        }
        let sense = sense.map(|sense| sense.write(descriptors)).unwrap_or_default();
        self.session.respond(task, *status, &sense, *about_bytes, out);
    }
}

impl Pending {
    // Gives back all that it has.
    pub(super) fn release(&mut self, site: &mut Site<'_>) {
        if self.namespace.stripes.leave(&mut self.range) {
            site.wishes.orders.push(Order::Released);
        }
        let blocks = [self.lent.block.take(), self.lent.scratch.take()];
        blocks.into_iter().flatten().for_each(|block| site.pool.give(self.lent.account, block));
    }

    // Counts it.
    pub(super) fn note(&self, outcome: &Outcome, site: &mut Site<'_>) {
        let (kind, bytes) = match &self.doing {
            Doing::Plan(plan) => match (plan.operation, plan.transfer) {
                (Asked::Read, Transfer::In(bytes)) => (Kind::Read, bytes),
                (Asked::Write { .. } | Asked::Patch { .. }, Transfer::Out(bytes)) => {
                    (Kind::Write, bytes)
                }
                _ => (Kind::Other, 0),
            },
            _ => (Kind::Other, 0),
        };
        let has_failed = outcome.status != Status::Good;
        if has_failed {
            add(&site.books.counters.failures, 1);
        }
        let (namespace, taken_ns) = (Arc::clone(&self.namespace), self.taken_ns);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let was_begun = self.was_begun;
        site.answered(Answered { namespace, kind, bytes, has_failed, taken_ns, was_begun });
    }
}

// There is no memory for it now (SAM-5 5.3.1).
fn full() -> Outcome {
    Outcome { status: Status::TaskSetFull, ..Outcome::default() }
}
