//! A command of either protocol under way, from its memory to its outcome.
//!
//! ```text
//! memory ─► (data of the host) ─► range ─► request, request ... ─► Finding
//! ```
//!
//! Invariants:
//! - A command holds its range until its last request has ended.
//! - A command that waits for memory holds none: unsolicited data gets its memory at once,
//!   solicited data all or nothing. So no two commands wait for each other's memory.

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

/// The memory of a command.
struct Memory {
    /// The account that is charged.
    account: Account,
    /// Blocks for the command's own data and for what is read besides, and the bytes that each
    /// needs.
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
    /// Further devices that get the same request before the command's own, and whether the current
    /// request is at one of them.
    others: Vec<Arc<dyn Backend>>,
    is_elsewhere: bool,
    /// How many requests to the command's own device have ended.
    stage: u64,
    range: Range,
}

/// Whether an execution goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A request is under way.
    Working,
    /// All requests have ended, with this outcome.
    Ended(Finding),
}

impl Memory {
    // Whether both blocks are as large as the command needs.
    fn is_there(&self) -> bool {
        let has = |block: &Option<Block>, bytes| block.as_ref().map_or(0, |one| one.len()) >= bytes;
        has(&self.own, self.own_bytes) && has(&self.scratch, self.scratch_bytes)
    }

    // Replaces the own block by a larger one, and copies the data that has come.
    fn replace(&mut self, mut own: Block, pool: &mut Pool) {
        if let Some(first) = self.own.take() {
            own[..first.len()].copy_from_slice(&first);
            pool.give(self.account, first);
        }
        self.own = Some(own);
    }

    // Bytes of scratch memory still to be lent.
    fn scratch_wanted(&self) -> usize {
        if self.scratch.is_some() { 0 } else { self.scratch_bytes }
    }
}

impl Execution {
    /// An execution without work, of a command taken at `taken_ns`, that charges `account`.
    pub(crate) fn new(namespace: Arc<Namespace>, account: Account, taken_ns: u64) -> Self {
        let (own, scratch) = (None, None);
        let memory = Memory { account, own, scratch, own_bytes: 0, scratch_bytes: 0 };
        let (work, others, is_elsewhere) = (None, Vec::new(), false);
        let (stage, range) = (0, Range::None);
        Self { namespace, taken_ns, memory, work, others, is_elsewhere, stage, range }
    }

    /// Sets the work, with `own_bytes` bytes of data of the command.
    pub(crate) fn set_work(&mut self, work: Work, own_bytes: usize) {
        self.memory.own_bytes = own_bytes;
        self.memory.scratch_bytes = work.scratch_bytes(own_bytes);
        self.work = Some(work);
    }

    /// Sets the bytes of the command's own data before its work is known.
    pub(crate) const fn set_own_bytes(&mut self, bytes: usize) {
        self.memory.own_bytes = bytes;
    }

    /// Sets further devices, which get the same request first (Flush of all namespaces).
    pub(crate) fn set_others(&mut self, others: Vec<Arc<dyn Backend>>) {
        self.others = others;
    }

    /// The work; `None` until it is known.
    pub(crate) const fn work(&self) -> Option<&Work> {
        self.work.as_ref()
    }

    /// Bytes of the command's own data.
    pub(crate) const fn own_bytes(&self) -> usize {
        self.memory.own_bytes
    }

    /// The command's own data; empty without memory for all of it.
    pub(crate) fn own(&self) -> &[u8] {
        let own = self.memory.own.as_deref().and_then(|own| own.get(..self.memory.own_bytes));
        own.unwrap_or_default()
    }

    /// As [`Execution::own`], mutable.
    pub(crate) fn own_mut(&mut self) -> &mut [u8] {
        let bytes = self.memory.own_bytes;
        let own = self.memory.own.as_deref_mut().and_then(|own| own.get_mut(..bytes));
        own.unwrap_or_default()
    }

    /// Copies received data to `offset` of the command's own data.
    pub(crate) fn put(&mut self, offset: usize, bytes: &[u8]) {
        let length = self.memory.own.as_ref().map_or(0, |own| own.len().min(self.memory.own_bytes));
        let end = length.min(offset.saturating_add(bytes.len()));
        let own = self.memory.own.as_deref_mut().and_then(|own| own.get_mut(offset..end));
        if let Some(room) = own {
            room.copy_from_slice(&bytes[..room.len()]);
        }
    }

    /// Takes memory for the `first` bytes of data, which come unsolicited, even beyond the
    /// account's limit; and scratch memory too if these are all bytes.
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

    /// Takes all memory that the command needs, or none. Returns whether the command has all of it.
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

    /// Takes a range or begins to wait for it; a second call tries again. Returns whether the
    /// command holds it, or needs none.
    pub(crate) fn takes(&mut self, hold: Option<Hold>) -> bool {
        let hold = match (self.range, hold) {
            (Range::Waits(hold), _) | (Range::None, Some(hold)) => hold,
            (Range::Has(_), _) | (Range::None, None) => return true,
        };
        self.range = self.namespace.stripes.take_or_wait(hold, self.range);
        matches!(self.range, Range::Has(_))
    }

    /// Takes the range out, for another command to hold.
    pub(crate) const fn pass_range(&mut self) -> Range {
        std::mem::replace(&mut self.range, Range::None)
    }

    /// Sets the range that another command has held; see [`Execution::pass_range`].
    pub(crate) const fn set_range(&mut self, range: Range) {
        self.range = range;
    }

    // The next request, or the outcome.
    fn next(&mut self) -> Act {
        let Some(work) = &self.work else { return Act::End(Finding::Done) };
        let Memory { own, scratch, own_bytes, .. } = &mut self.memory;
        let own = own.as_deref_mut().and_then(|own| own.get_mut(..*own_bytes));
        let scratch = scratch.as_deref_mut().unwrap_or_default();
        work.next(self.stage, own.unwrap_or_default(), scratch)
    }

    /// Takes back the memory of a request that has ended. Fails with the outcome if the request has
    /// failed.
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

    /// What the ledger counts of the command.
    pub(crate) fn answered(self, has_failed: bool, was_begun: bool) -> Answered {
        let (kind, bytes) = self.work.as_ref().map_or((Kind::Other, 0), Work::counted);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (namespace, taken_ns) = (self.namespace, self.taken_ns);
        Answered { namespace, kind, bytes, has_failed, taken_ns, was_begun }
    }

    /// Frees the memory and the range. Returns whether a command waits for a range.
    pub(crate) fn leave(&mut self, pool: &mut Pool) -> bool {
        let blocks = [self.memory.own.take(), self.memory.scratch.take()];
        blocks.into_iter().flatten().for_each(|block| pool.give(self.memory.account, block));
        self.namespace.stripes.leave(&mut self.range)
    }
}
