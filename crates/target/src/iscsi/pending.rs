//! A command that is under way.

use std::sync::Arc;

use scsi::{Command, Outcome, Plan, Transfer};

use backend::pool::Account;

use super::super::execution::Execution;
use super::super::subsystem::Namespace;
use super::work;

/// See the module's description.
pub(super) struct Pending {
    pub(super) execution: Execution,
    pub(super) doing: Doing,
    /// Bytes of data that the initiator sends.
    pub(super) wanted: u32,
    /// Whether sense data has descriptor format.
    pub(super) has_descriptors: bool,
    /// Bytes of solicited data that are owed; `None` if none are.
    pub(super) owes: Option<usize>,
    /// Whether the command is counted as in flight.
    pub(super) was_begun: bool,
    pub(super) state: State,
    /// Waits ([`super::sessions::Sessions::wait`]) that wait for the command to end.
    pub(super) waits: Vec<u64>,
}

/// What a command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// For memory.
    Starving,
    /// For data.
    Coming,
    /// For other commands to release its range.
    Parked,
    /// For a request, or for aborted commands of others to end.
    Working,
}

/// What a command does.
pub(super) enum Doing {
    /// Its parameter list says what to do.
    Parameters(Command),
    /// Its execution has work for a device; the value is the bytes that residuals refer to.
    Work(u64),
    /// Commands of others are being aborted; this outcome is sent when they have ended.
    Abort(Outcome),
}

impl Pending {
    /// Whether it only waits for commands of others to end.
    pub(super) const fn is_aborting(&self) -> bool {
        matches!(self.doing, Doing::Abort(_))
    }

    /// A command without work, with its account and the time when it was taken.
    pub(super) fn idle(namespace: Arc<Namespace>, (account, taken_ns): (Account, u64)) -> Self {
        Self {
            execution: Execution::new(namespace, account, taken_ns),
            doing: Doing::Abort(Outcome::default()),
            wanted: 0,
            has_descriptors: false,
            owes: None,
            was_begun: false,
            state: State::Starving,
            waits: Vec::new(),
        }
    }

    /// A command with a plan.
    pub(super) fn new(namespace: Arc<Namespace>, plan: &Plan, taken: (Account, u64)) -> Self {
        let mut pending = Self::idle(namespace, taken);
        pending.plan(plan);
        pending
    }

    /// Sets the work of the command.
    pub(super) fn plan(&mut self, plan: &Plan) {
        self.execution.set_work(work::work_of(plan), work::own_bytes(plan));
        if let Transfer::Out(bytes) = plan.transfer {
            self.wanted = u32::try_from(bytes).unwrap_or(u32::MAX);
        }
        self.doing = Doing::Work(plan.about_bytes);
    }
}
