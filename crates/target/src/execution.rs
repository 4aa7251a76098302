//! A command under way, from its memory to what became of it, whatever protocol it came by.
//!
//! ```text
//! memory ─► (data of the host) ─► range ─► request, request ... ─► Finding
//! ```
//!
//! Invariants:
//! - It has its range until its last request has ended.
//! - It waits for memory with none: what comes unasked has all of it at once, and what is asked for
//!   has all or nothing. So nobody waits for what others hold who wait themselves.

mod steps;

use std::sync::Arc;

use backend::pool::{Account, Pool};
use backend::{Backend, Ended};
use sys::block::Block;

use super::ledger::Answered;
use super::meter::Kind;
use super::stripes::{Hold, Range};
use super::subsystem::Namespace;
use super::work::{Act, Finding, Work};

/// Memory that a command has.
struct Memory {
    /// Whose it is.
    account: Account,
    /// For its own data, and for what is read besides, with how many bytes each is to have.
    own: Option<Block>,
    scratch: Option<Block>,
    own_bytes: usize,
    scratch_bytes: usize,
}

/// See the module's description.
pub(crate) struct Execution {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) taken_ns: u64,
    memory: Memory,
    work: Option<Work>,
    /// Devices that are asked for the same before its own, and whether one is.
    others: Vec<Arc<dyn Backend>>,
    is_elsewhere: bool,
    /// Requests that have ended.
    stage: u64,
    range: Range,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A request is under way.
    Working,
    /// It has ended so.
    Ended(Finding),
}

impl Memory {
    // Whether all of it is there.
    fn is_there(&self) -> bool {
        let has = |block: &Option<Block>, bytes| block.as_ref().map_or(0, |one| one.len()) >= bytes;
        has(&self.own, self.own_bytes) && has(&self.scratch, self.scratch_bytes)
    }

    // In the stead of a block that is too short, with what has come of the data.
    fn replace(&mut self, mut own: Block, pool: &mut Pool) {
        if let Some(first) = self.own.take() {
            own[..first.len()].copy_from_slice(&first);
            pool.give(self.account, first);
        }
        self.own = Some(own);
    }

    fn scratch_wanted(&self) -> usize {
        if self.scratch.is_some() { 0 } else { self.scratch_bytes }
    }
}

impl Execution {
    /// With nothing to do yet, taken at that time, with the memory of an account.
    pub(crate) fn new(namespace: Arc<Namespace>, account: Account, taken_ns: u64) -> Self {
        let (own, scratch) = (None, None);
        let memory = Memory { account, own, scratch, own_bytes: 0, scratch_bytes: 0 };
        let (work, others, is_elsewhere) = (None, Vec::new(), false);
        let (stage, range) = (0, Range::None);
        Self { namespace, taken_ns, memory, work, others, is_elsewhere, stage, range }
    }

    /// This is to be done, with so many bytes of data.
    pub(crate) fn set_work(&mut self, work: Work, own_bytes: usize) {
        self.memory.own_bytes = own_bytes;
        self.memory.scratch_bytes = work.scratch_bytes(own_bytes);
        self.work = Some(work);
    }

    /// So many bytes of data come, or are to be made, of which it is said later what they are for.
    pub(crate) const fn set_own_bytes(&mut self, bytes: usize) {
        self.memory.own_bytes = bytes;
    }

    /// These devices are asked for the same first.
    pub(crate) fn set_others(&mut self, others: Vec<Arc<dyn Backend>>) {
        self.others = others;
    }

    /// What is to be done, if that is known.
    pub(crate) const fn work(&self) -> Option<&Work> {
        self.work.as_ref()
    }

    /// Bytes of its data.
    pub(crate) const fn own_bytes(&self) -> usize {
        self.memory.own_bytes
    }

    /// Its data, when it has memory for it.
    pub(crate) fn own(&self) -> &[u8] {
        let own = self.memory.own.as_deref().and_then(|own| own.get(..self.memory.own_bytes));
        own.unwrap_or_default()
    }

    /// As [`Execution::own`], to be changed.
    pub(crate) fn own_mut(&mut self) -> &mut [u8] {
        let bytes = self.memory.own_bytes;
        let own = self.memory.own.as_deref_mut().and_then(|own| own.get_mut(..bytes));
        own.unwrap_or_default()
    }

    /// Data has come.
    pub(crate) fn put(&mut self, offset: usize, bytes: &[u8]) {
        let length = self.memory.own.as_ref().map_or(0, |own| own.len().min(self.memory.own_bytes));
        let end = length.min(offset.saturating_add(bytes.len()));
        let own = self.memory.own.as_deref_mut().and_then(|own| own.get_mut(offset..end));
        if let Some(room) = own {
            room.copy_from_slice(&bytes[..room.len()]);
        }
    }

    /// Gets memory for `first` bytes of its data, which come unasked, and all other memory if these
    /// are all.
    pub(crate) fn fill_anyway(&mut self, first: usize, pool: &mut Pool) {
        let memory = &mut self.memory;
        if memory.own.is_none() && first > 0 {
            memory.own = Some(pool.lend_anyway(memory.account, first));
        }
        let wanted = memory.scratch_wanted();
        if first >= memory.own_bytes && wanted > 0 {
            memory.scratch = Some(pool.lend_anyway(memory.account, wanted));
        }
    }

    /// Gets all memory that it takes, or none beyond what it has; whether it is there.
    pub(crate) fn fill(&mut self, pool: &mut Pool) -> bool {
        let memory = &mut self.memory;
        if memory.is_there() {
            return true;
        }
        let is_short = memory.own.as_ref().map_or(0, |own| own.len()) < memory.own_bytes;
        let own = if is_short { pool.lend(memory.account, memory.own_bytes) } else { None };
        if is_short && own.is_none() {
            return false;
        }
        let wanted = memory.scratch_wanted();
        if wanted > 0 {
            memory.scratch = pool.lend(memory.account, wanted);
            if memory.scratch.is_none() {
                own.into_iter().for_each(|own| pool.give(memory.account, own));
                return false;
            }
        }
        if let Some(own) = own {
            memory.replace(own, pool);
        }
        true
    }

    /// Takes a range, or waits for it from now on; whether it has it. Asked again, it tries again.
    pub(crate) fn takes(&mut self, hold: Option<Hold>) -> bool {
        let hold = match (self.range, hold) {
            (Range::Waits(hold), _) | (Range::None, Some(hold)) => hold,
            (Range::Has(_), _) | (Range::None, None) => return true,
        };
        self.range = self.namespace.stripes.take_or_wait(hold, self.range);
        matches!(self.range, Range::Has(_))
    }

    /// Another command goes on with the range that this one has.
    pub(crate) const fn pass_range(&mut self) -> Range {
        std::mem::replace(&mut self.range, Range::None)
    }

    /// See [`Execution::pass_range`].
    pub(crate) const fn set_range(&mut self, range: Range) {
        self.range = range;
    }

    fn next(&mut self) -> Act {
        let Some(work) = &self.work else { return Act::End(Finding::Done) };
        let Memory { own, scratch, own_bytes, .. } = &mut self.memory;
        let own = own.as_deref_mut().and_then(|own| own.get_mut(..*own_bytes));
        let scratch = scratch.as_deref_mut().unwrap_or_default();
        work.next(self.stage, own.unwrap_or_default(), scratch)
    }

    /// A request has ended; what became of all if that is over with it.
    pub(crate) fn take<T>(&mut self, ended: Ended<T>) -> Result<(), Finding> {
        if let Some(block) = ended.block {
            match self.memory.own {
                None if self.memory.own_bytes > 0 => self.memory.own = Some(block),
                _ => self.memory.scratch = Some(block),
            }
        }
        self.stage += u64::from(!self.is_elsewhere);
        let operation = ended.request.operation;
        ended.result.map_err(|failure| Finding::Failed(failure, operation))
    }

    /// What is to be counted of it.
    pub(crate) fn answered(self, has_failed: bool, was_begun: bool) -> Answered {
        let (kind, bytes) = self.work.as_ref().map_or((Kind::Other, 0), Work::counted);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (namespace, taken_ns) = (self.namespace, self.taken_ns);
        Answered { namespace, kind, bytes, has_failed, taken_ns, was_begun }
    }

    /// Gives back what it has; whether somebody waits for its range.
    pub(crate) fn leave(&mut self, pool: &mut Pool) -> bool {
        let blocks = [self.memory.own.take(), self.memory.scratch.take()];
        blocks.into_iter().flatten().for_each(|block| pool.give(self.memory.account, block));
        self.namespace.stripes.leave(&mut self.range)
    }
}
