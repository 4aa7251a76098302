//! The commands of a session, from their arrival to their answer.

use std::sync::Arc;

use scsi::iscsi::{Expectation, ScsiCommand, Task};
use scsi::{
    Operation as Asked, Outcome, Plan, Sense, Status, Step, UnitPort, UnmapRange, absent,
    read_write, report_luns,
};

use backend::Ended;

use super::super::counters::add;
use super::super::execution::Progress;
use super::super::keeper::Kept;
use super::super::site::{Order, Owner, Site, Tag};
use super::super::subsystem::Namespace;
use super::super::work::{Deed, Work};
use super::end::FIRST_BURST_BYTES;
use super::pending::{Doing, Pending, State};
use super::session::IscsiSession;
use super::unit;
use super::work;

impl IscsiSession {
    /// Takes a command that has arrived. Returns how many jobs of the backend it has begun, as all
    /// functions here do.
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
                Pending::new(namespace, &plan, (site.who.account, site.now_ns)),
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

    // The plan of a read or write that needs no lock: neither the unit nor the port bars it.
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

    // Answers a command to a logical unit that does not exist.
    pub(super) fn absent(&mut self, task: Task, command: &ScsiCommand, out: &mut Vec<u8>) -> u32 {
        let outcome = match absent(&command.cdb) {
            Step::Answer(outcome) => outcome,
            Step::ReportLuns { select, allocation } => self.luns(select, allocation),
            _ => Outcome::check(Sense::LOGICAL_UNIT_NOT_SUPPORTED),
        };
        self.answer(task, &outcome, false, out);
        0
    }

    // The outcome of REPORT LUNS.
    pub(super) fn luns(&self, select: u8, allocation: u32) -> Outcome {
        let luns = self.units.iter().filter_map(|unit| unit::lun_of(unit));
        match report_luns(luns, select, allocation) {
            Ok(data) => Outcome::data(data),
            Err(sense) => Outcome::check(sense),
        }
    }

    // Executes the step that the logical unit returned for a command.
    pub(super) fn step(
        &mut self,
        task: Task,
        mut pending: Pending,
        step: Step,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        match step {
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
                let figures = unit::figures(&pending.execution.namespace);
                let outcome = Outcome::log(asked, &figures, allocation);
                self.answer(task, &outcome, pending.has_descriptors, out);
                pending.note(&outcome, site);
                return 0;
            }
            Step::Parameters(command, bytes) => {
                pending.wanted = bytes;
                pending.execution.set_own_bytes(bytes as usize);
                pending.doing = Doing::Parameters(command);
            }
            Step::Device(plan) => pending.plan(&plan),
            Step::Unmap(ranges) => pending.unmap(&ranges),
            Step::Abort(_, outcome) => pending.doing = Doing::Abort(outcome),
        }
        self.accept(task, pending, out, site)
    }

    // Adds a command to those under way. Takes its memory, then requests its data, or begins its
    // work if it needs none.
    pub(super) fn accept(
        &mut self,
        task: Task,
        pending: Pending,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        pending.execution.namespace.meter.shard(site.rules.shard).begin();
        let index = usize::from(task.number());
        if index >= self.pending.len() {
            self.pending.resize_with(index + 1, || None);
        }
        let pending = self.pending[index].insert(pending);
        pending.was_begun = true;
        if pending.wanted == 0 {
            return self.lend(task, out, site);
        }
        let (own_bytes, wanted) = (pending.execution.own_bytes(), pending.wanted);
        let first = own_bytes.min(FIRST_BURST_BYTES as usize);
        // Unsolicited data cannot wait for memory; the number of commands bounds it.
        if self.session.comes_unasked(task) {
            pending.execution.fill_anyway(first, site.pool);
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

    // The number of the connection that a command belongs to.
    fn connection_of(&self, task: Task) -> Option<u16> {
        self.session.connection_of(task)
    }

    // Takes memory for a command whose turn it is; without memory the command waits in line.
    pub(super) fn lend(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let Some(pending) = self.pending(task) else { return 0 };
        if !pending.execution.fill(site.pool) {
            self.waiting.starving.push_back(task);
            return 0;
        }
        self.expect(task, out, site)
    }

    // Requests the data of a command that has its memory, or starts it if the data is complete.
    pub(super) fn expect(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let Some(pending) = self.pending(task) else { return 0 };
        pending.state = State::Coming;
        let wanted = pending.wanted;
        match self.session.expect(task, wanted, out) {
            Expectation::Met => self.start(task, out, site),
            Expectation::Coming => {
                if let Some(pending) = self.pending(task) {
                    let bytes = pending.execution.own_bytes();
                    pending.owes = Some(bytes);
                    self.waiting.solicited.ask(bytes);
                }
                0
            }
            Expectation::Failed(sense) => self.end(task, &Outcome::check(sense), out, site),
        }
    }

    /// Stores received data of a command.
    pub(super) fn data(&mut self, task: Task, offset: u32, bytes: &[u8]) {
        self.waiting.solicited.moved(bytes.len());
        if let Some(pending) = self.pending(task) {
            pending.execution.put(offset as usize, bytes);
        }
    }

    /// Starts a command whose data is complete, or ends it with the sense of `result` if the data
    /// will not come.
    pub(super) fn all_data(
        &mut self,
        task: Task,
        result: Result<(), Sense>,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        self.settle_data(task, site.now_ns);
        match result {
            // A command that works already, or waits to, did not need the data.
            Ok(()) if self.pending(task).is_some_and(|one| one.state == State::Coming) => {
                self.start(task, out, site)
            }
            Ok(()) => 0,
            Err(_) if self.pending(task).is_some_and(|one| one.state == State::Working) => 0,
            Err(sense) => self.end(task, &Outcome::check(sense), out, site),
        }
    }

    // Starts the work of a command that has its memory and all of its data.
    pub(super) fn start(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let nexus = self.nexus;
        let Some(pending) = self.pending(task) else { return 0 };
        if let Doing::Parameters(command) = &pending.doing {
            let reserved = &pending.execution.namespace.reserved;
            if reserved.keeps_command(command) {
                let (command, data) = (*command, pending.execution.own().to_vec());
                pending.state = State::Working;
                let namespace = Arc::clone(&pending.execution.namespace);
                let change =
                    move || Kept::Scsi(namespace.reserved.parameters(nexus, &command, &data));
                let tag = Tag { connection: site.who.connection, owner: Owner::Task(task) };
                site.wishes.orders.push(Order::Keep(tag, Box::new(change)));
                return 1;
            }
            let step = reserved.parameters(nexus, command, pending.execution.own());
            return self.go_on(task, step, out, site);
        }
        self.begin(task, out, site)
    }

    /// Executes the step that the logical unit returned for a command's parameter list.
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
                pending.unmap(&ranges);
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

    // Begins the work on the backend, unless the port, a reservation, or a range that another
    // command holds bars it. A command that waited for a range comes here again.
    pub(super) fn begin(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let (nexus, reach) = (self.nexus, self.peer.port.check());
        let Some(pending) = self.pending(task) else { return 0 };
        // The port may have changed its state since the command came.
        if let (Err(sense), Doing::Work(_)) = (reach, &pending.doing) {
            return self.end(task, &Outcome::check(sense), out, site);
        }
        // Another initiator may have reserved the unit while data was in transit.
        let writes = pending.wanted > 0 && pending.execution.work().is_some_and(Work::writes);
        if writes && pending.execution.namespace.reserved.bars_writing(nexus) {
            return self.end(task, &Outcome::conflict(), out, site);
        }
        self.hold(task, out, site)
    }

    // Takes the command's range and begins, or parks the command until the range is free.
    fn hold(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let Some(pending) = self.pending(task) else { return 0 };
        let device_bytes = pending.execution.namespace.backend.geometry().bytes();
        let hold = pending.execution.work().and_then(|work| work.hold(device_bytes));
        if !pending.execution.takes(hold) {
            pending.state = State::Parked;
            self.waiting.parked.push(task);
            return 0;
        }
        pending.state = State::Working;
        self.advance(task, out, site)
    }

    // Submits the next request of a command, or ends it.
    pub(super) fn advance(&mut self, task: Task, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let Some(pending) = self.pending(task) else { return 0 };
        let outcome = match &pending.doing {
            Doing::Abort(outcome) => outcome.clone(),
            Doing::Parameters(_) => Outcome::check(Sense::INTERNAL_TARGET_FAILURE),
            &Doing::Work(about_bytes) => match pending.execution.advance(Owner::Task(task), site) {
                Progress::Working => return 1,
                Progress::Ended(finding) => work::outcome_of(finding, about_bytes),
            },
        };
        self.end(task, &outcome, out, site)
    }

    /// Takes an ended job of a command and continues.
    pub(super) fn ended(
        &mut self,
        task: Task,
        ended: Ended<Tag>,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let Some(pending) = self.pending(task) else {
            ended.block.into_iter().for_each(|block| site.pool.give(site.who.account, block));
            return 0;
        };
        match pending.execution.take(ended) {
            Ok(()) => self.advance(task, out, site),
            Err(finding) => self.end(task, &work::outcome_of(finding, 0), out, site),
        }
    }

    /// Sends the answer of a command, frees what it holds, and wakes those that wait for its end.
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
            self.waiting.forget(task);
        }
        let is_good = outcome.status == Status::Good;
        let reads = pending.execution.work().is_some_and(|work| work.deed == Deed::Read);
        let data = pending.execution.own();
        if is_good && reads && !data.is_empty() {
            self.session.send_data(task, data, outcome.about_bytes, out);
        } else {
            self.answer(task, outcome, pending.has_descriptors, out);
        }
        pending.execution.close(site);
        let waits = std::mem::take(&mut pending.waits);
        pending.note(outcome, site);
        for wait in waits {
            let then = site.sessions.ended(wait);
            site.wishes.orders.extend(then.map(Order::Follow));
        }
        if self.ways.logout.is_some() {
            site.wishes.orders.extend(self.wake_for_logout());
        }
        0
    }

    // Sends data or a SCSI response.
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
    // Sets the work to deallocating `ranges`; the command's data is its parameter list.
    fn unmap(&mut self, ranges: &[UnmapRange]) {
        let own_bytes = self.execution.own_bytes();
        self.execution.set_work(work::unmap(ranges), own_bytes);
        self.doing = Doing::Work(own_bytes as u64);
    }

    // Notes the command for the ledger.
    fn note(self, outcome: &Outcome, site: &mut Site<'_>) {
        let has_failed = outcome.status != Status::Good;
        if has_failed {
            add(&site.books.counters.failures, 1);
        }
        site.answered(self.execution.answered(has_failed, self.was_begun));
    }
}
