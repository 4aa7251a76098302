//! Task management and aborts (RFC 7143 11.5, SAM-5 7, SPC-4 5.13.11.2.6).
//!
//! ```text
//! wish ─► scope ─► sessions of this shard ─► aborted ─► (requests under way end) ─┐
//!           └────► other shards ─► the same there ────────────────────────────────┴─► answer
//! ```

use std::sync::Arc;

use scsi::iscsi::{Logout, Management, Task, TaskRequest};
use scsi::{Nexus, Outcome, ResetKind};

use super::super::next::Next;
use super::super::site::{Order, Site};
use super::super::subsystem::Namespace;
use super::ending::{Scope, Then};
use super::pending::State;
use super::session::IscsiSession;
use super::unit;

// Functions (RFC 7143 11.5.1) and responses (11.6.1).
const ABORT_TASK: u8 = 1;
const ABORT_TASK_SET: u8 = 2;
const CLEAR_TASK_SET: u8 = 4;
const UNIT_RESET: u8 = 5;
const WARM_RESET: u8 = 6;
const COLD_RESET: u8 = 7;
const REASSIGN: u8 = 8;
const COMPLETE: u8 = 0;
const NO_TASK: u8 = 1;
const NO_UNIT: u8 = 2;
const NO_REASSIGNMENT: u8 = 4;
const NOT_SUPPORTED: u8 = 5;

impl IscsiSession {
    /// Executes a task management request, or begins to: its answer may wait for commands to end.
    pub(super) fn manage(
        &mut self,
        management: Management,
        request: &TaskRequest,
        site: &mut Site<'_>,
    ) {
        let namespace = unit::namespace_of(&self.units, request.lun).map(Arc::clone);
        let needs_unit = matches!(request.function, ABORT_TASK_SET | CLEAR_TASK_SET | UNIT_RESET);
        let response = match request.function {
            _ if needs_unit && namespace.is_none() => NO_UNIT,
            ABORT_TASK if self.session.affected(request).is_empty() => {
                if self.session.forestall(request) { COMPLETE } else { NO_TASK }
            }
            ABORT_TASK..=ABORT_TASK_SET | CLEAR_TASK_SET..=COLD_RESET => {
                self.begin_ending(management, request, namespace, site);
                return;
            }
            REASSIGN => NO_REASSIGNMENT,
            _ => NOT_SUPPORTED,
        };
        self.due.managed.push((management, response));
    }

    // Aborts the commands that a request affects, here and on other shards.
    fn begin_ending(
        &mut self,
        management: Management,
        request: &TaskRequest,
        namespace: Option<Arc<Namespace>>,
        site: &mut Site<'_>,
    ) {
        let then = Then::Answer { slot: self.slot, serial: self.serial, management };
        let scope = match (request.function, namespace, &self.peer.subsystem) {
            (CLEAR_TASK_SET | UNIT_RESET, Some(namespace), _) => Some(Scope::Unit(namespace)),
            (WARM_RESET | COLD_RESET, _, Some(subsystem)) => {
                Some(Scope::Target(Arc::clone(subsystem)))
            }
            _ => None,
        };
        let others = if scope.is_some() { usize::from(site.rules.shards) } else { 0 };
        let wait = site.sessions.wait(then, others);
        let own = self.session.affected(request);
        self.quell(own, wait, site);
        if let Some(scope) = scope {
            quell_others(&scope, wait, site);
            for unit in &*self.units {
                unit.reserved.with_unit(|one| match (&scope, request.function) {
                    (Scope::Unit(of), CLEAR_TASK_SET) if Arc::ptr_eq(of, unit) => {
                        one.commands_cleared(self.nexus);
                    }
                    (Scope::Unit(of), _) if !Arc::ptr_eq(of, unit) => {}
                    _ => one.reset(ResetKind::Wish),
                });
            }
            site.wishes.orders.push(Order::Quell(scope, wait));
        }
        let then = site.sessions.ended(wait);
        site.wishes.orders.extend(then.map(Order::Follow));
    }

    /// Aborts what other initiators have sent to a command's logical unit, and then ends the
    /// command.
    pub(super) fn abort_others(&mut self, task: Task, others: Vec<Nexus>, site: &mut Site<'_>) {
        let Some(pending) = self.pending(task) else { return };
        pending.state = State::Working;
        let scope = Scope::Of(Arc::clone(&pending.execution.namespace), others);
        let then = Then::Complete { slot: self.slot, serial: self.serial, task };
        let wait = site.sessions.wait(then, usize::from(site.rules.shards));
        quell_others(&scope, wait, site);
        site.wishes.orders.push(Order::Quell(scope, wait));
        let then = site.sessions.ended(wait);
        site.wishes.orders.extend(then.map(Order::Follow));
    }

    /// The commands of this session in `scope`.
    fn meant(&self, scope: &Scope) -> Vec<Task> {
        let is_unit = |task: &Task, unit: &Arc<Namespace>| {
            let pending = self.pending.get(usize::from(task.number())).and_then(Option::as_ref);
            pending.is_some_and(|pending| Arc::ptr_eq(&pending.execution.namespace, unit))
        };
        let all = self.session.tasks();
        match scope {
            Scope::Unit(unit) => all.filter(|task| is_unit(task, unit)).collect(),
            Scope::Of(unit, whose) if whose.contains(&self.nexus) => {
                all.filter(|task| is_unit(task, unit)).collect()
            }
            Scope::Of(..) => Vec::new(),
            Scope::Target(subsystem) => {
                let is_own =
                    self.peer.subsystem.as_ref().is_some_and(|own| Arc::ptr_eq(own, subsystem));
                all.filter(|_| is_own).collect()
            }
        }
    }

    // Aborts commands; `wait` waits for those whose requests are under way.
    fn quell(&mut self, tasks: Vec<Task>, wait: u64, site: &mut Site<'_>) {
        for task in tasks {
            self.session.abort(task);
            match self.pending(task) {
                Some(pending) if pending.state == State::Working => {
                    pending.waits.push(wait);
                    site.sessions.wait_more(wait, 1);
                }
                // An aborted command gets no answer.
                Some(_) => {
                    self.end(task, &Outcome::default(), &mut Vec::new(), site);
                }
                None => {}
            }
        }
    }

    /// Removes a connection and ends its commands, none of which has requests under way any more.
    pub(super) fn cut(&mut self, number: u16, site: &mut Site<'_>) {
        let tasks = self.session.tasks();
        let own: Vec<Task> =
            tasks.filter(|task| self.session.connection_of(*task) == Some(number)).collect();
        self.session.cut(number);
        for task in own {
            self.end(task, &Outcome::default(), &mut Vec::new(), site);
        }
        if let Some(link) = self.ways.links.get_mut(usize::from(number)) {
            *link = None;
        }
    }

    /// Begins a logout: ends the commands in question without requests under way; the logout waits
    /// for the others.
    pub(super) fn begin_logout(&mut self, number: u16, logout: Logout, site: &mut Site<'_>) {
        let is_meant = |session: &Self, task: Task| match logout {
            Logout::Session => true,
            Logout::Connection(of) => session.session.connection_of(task) == Some(of),
        };
        let tasks = self.session.tasks();
        let own: Vec<Task> = tasks.filter(|task| is_meant(self, *task)).collect();
        for task in own {
            if self.pending(task).is_some_and(|pending| pending.state != State::Working) {
                self.end(task, &Outcome::default(), &mut Vec::new(), site);
            }
        }
        self.ways.logout = Some(number);
    }

    /// After a command has ended: the order that wakes the connection of a waiting logout.
    pub(super) fn wake_for_logout(&self) -> Option<Order> {
        let link = self.ways.links.get(usize::from(self.ways.logout?))?.as_ref()?;
        Some(Order::Wake(link.0))
    }

    /// Sends on a connection the due answers to task management, aborting commands and logouts.
    /// Returns how the connection goes on, if that changes.
    pub(super) fn settle(
        &mut self,
        number: u16,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> Option<Next> {
        for (management, response) in std::mem::take(&mut self.due.managed) {
            match self.session.connection_of_management(management) {
                Some(of) if of == number => {
                    self.session.answer_management(management, response, out);
                }
                Some(of) => {
                    self.due.managed.push((management, response));
                    let link = self.ways.links.get(usize::from(of)).copied().flatten();
                    site.wishes.orders.extend(link.map(|(connection, _)| Order::Wake(connection)));
                }
                None => {}
            }
        }
        for task in std::mem::take(&mut self.due.completed) {
            if self.session.connection_of(task) == Some(number) {
                self.advance(task, out, site);
            } else {
                self.due.completed.push(task);
                let connection = self.link_of(task);
                site.wishes.orders.extend(connection.map(Order::Wake));
            }
        }
        if self.ways.logout != Some(number) {
            return None;
        }
        let logout = self.session.finish_logout(number, out)?;
        self.ways.logout = None;
        for (other, link) in (0..).zip(&self.ways.links) {
            let is_meant = logout == Logout::Session || logout == Logout::Connection(other);
            if let (true, Some((connection, _))) = (is_meant, link) {
                self.ways.leaving.insert(other);
                if other != number {
                    site.wishes.orders.push(Order::Close(*connection));
                }
            }
        }
        self.ways.leaving.contains(&number).then_some(Next::Drain)
    }
}

/// Aborts the commands in `scope` of all sessions of this shard that are not taken out.
pub(crate) fn quell_others(scope: &Scope, wait: u64, site: &mut Site<'_>) {
    for slot in site.sessions.slots() {
        let Some(mut session) = site.sessions.take(slot) else { continue };
        let tasks = session.meant(scope);
        session.quell(tasks, wait, site);
        site.sessions.put(slot, session);
    }
}
