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
    /// Bytes of data that come for it.
    pub(super) wanted: u32,
    pub(super) has_descriptors: bool,
    /// Its data is coming.
    pub(super) owes: Option<usize>,
    /// It is counted among those in flight.
    pub(super) was_begun: bool,
    pub(super) state: State,
    /// Who waits for it to end.
    pub(super) waits: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// For memory.
    Starving,
    /// For data.
    Coming,
    /// For others to give back what it is to have.
    Parked,
    /// For a request, or for commands of others to end.
    Working,
}

pub(super) enum Doing {
    /// What it does, its data says.
    Parameters(Command),
    /// Its execution has work for a device; it is about so many bytes.
    Work(u64),
    /// Others' commands are being aborted; then this is answered.
    Abort(Outcome),
}

impl Pending {
    /// Whether it only waits for commands of others to end.
    pub(super) const fn is_aborting(&self) -> bool {
        matches!(self.doing, Doing::Abort(_))
    }

    /// With nothing to do yet, whose memory it uses and when it was taken.
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

    pub(super) fn new(namespace: Arc<Namespace>, plan: &Plan, taken: (Account, u64)) -> Self {
        let mut pending = Self::idle(namespace, taken);
        pending.plan(plan);
        pending
    }

    /// This is to be done.
    pub(super) fn plan(&mut self, plan: &Plan) {
        self.execution.set_work(work::work_of(plan), work::own_bytes(plan));
        if let Transfer::Out(bytes) = plan.transfer {
            self.wanted = u32::try_from(bytes).unwrap_or(u32::MAX);
        }
        self.doing = Doing::Work(plan.about_bytes);
    }
}
