//! A command that is under way.

use std::sync::Arc;

use scsi::{Command, Outcome, Plan, Sense, Status, Transfer, UnmapRange};
use sys::block::Block;

use backend::pool::{Account, Pool};

use super::super::stripes::Range;
use super::super::subsystem::Namespace;
use super::work::{self, Act};

/// Memory that a command has.
pub(super) struct Lent {
    /// Its data, and what is read besides.
    pub(super) block: Option<Block>,
    pub(super) scratch: Option<Block>,
    pub(super) own_bytes: usize,
    /// Whose memory it uses.
    pub(super) account: Account,
}

/// See the module's description.
pub(super) struct Pending {
    pub(super) namespace: Arc<Namespace>,
    pub(super) doing: Doing,
    /// Bytes of data that come for it.
    pub(super) wanted: u32,
    pub(super) has_descriptors: bool,
    pub(super) taken_ns: u64,
    /// Its data is coming.
    pub(super) owes: Option<usize>,
    pub(super) lent: Lent,
    /// Requests that have ended.
    pub(super) stage: u64,
    pub(super) range: Range,
    /// It is counted among those in flight.
    pub(super) was_begun: bool,
    pub(super) state: State,
    /// Who waits for it to end.
    pub(super) waits: Vec<u64>,
}

impl Lent {
    /// Gets memory for all of its data, with what has come of that; whether there is any.
    pub(super) fn fill_block(&mut self, pool: &mut Pool) -> bool {
        if self.block.as_ref().is_some_and(|block| block.len() >= self.own_bytes) {
            return true;
        }
        let Some(mut block) = pool.lend(self.account, self.own_bytes) else { return false };
        if let Some(first) = self.block.take() {
            block[..first.len()].copy_from_slice(&first);
            pool.give(self.account, first);
        }
        self.block = Some(block);
        true
    }
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
    Parameters(Command),
    Plan(Plan),
    Unmap(Vec<UnmapRange>),
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
            namespace,
            doing: Doing::Abort(Outcome::default()),
            wanted: 0,
            has_descriptors: false,
            taken_ns,
            owes: None,
            lent: Lent { block: None, scratch: None, own_bytes: 0, account },
            stage: 0,
            range: Range::None,
            was_begun: false,
            state: State::Starving,
            waits: Vec::new(),
        }
    }

    pub(super) fn new(namespace: Arc<Namespace>, plan: Plan, taken: (Account, u64)) -> Self {
        let mut pending = Self::idle(namespace, taken);
        pending.plan(plan);
        pending.doing = Doing::Plan(plan);
        pending
    }

    pub(super) fn plan(&mut self, plan: Plan) {
        self.lent.own_bytes = usize::try_from(work::memory_bytes(&plan)).unwrap_or(usize::MAX);
        if let Transfer::Out(bytes) = plan.transfer {
            self.wanted = u32::try_from(bytes).unwrap_or(u32::MAX);
        }
    }

    // What is to be done next, with what is there.
    pub(super) fn next(&mut self, pool: &mut Pool) -> Act {
        let Self { doing, lent, stage, .. } = self;
        let Lent { block, scratch, own_bytes, account } = lent;
        let own = block.as_deref_mut().and_then(|block| block.get_mut(..*own_bytes));
        let own = own.unwrap_or_default();
        match doing {
            Doing::Plan(plan) => {
                let needed = if *stage == 0 { work::first_scratch(plan, own) } else { 0 };
                if needed > 0 && scratch.is_none() {
                    *scratch = pool.lend(*account, needed);
                    if scratch.is_none() {
                        let status = Status::TaskSetFull;
                        return Act::End(Outcome { status, ..Outcome::default() });
                    }
                }
                work::next(plan, *stage, own, scratch.as_deref_mut().unwrap_or_default())
            }
            Doing::Unmap(ranges) => work::next_unmap(ranges, *stage, *own_bytes as u64),
            Doing::Abort(outcome) => Act::End(outcome.clone()),
            Doing::Parameters(_) => Act::End(Outcome::check(Sense::INTERNAL_TARGET_FAILURE)),
        }
    }
}
