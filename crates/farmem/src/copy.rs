//! Copying a process's memory for its child, a slice at a time.
//!
//! ```text
//! loop: a slice -> events -> a slice -> ...      until nothing is left: the child goes on
//! parent touches or frees what is left -> that first
//! ```
//!
//! DESIGN NOTES
//!
//! * The supervisor copies between two looks at what else there is to do, so that nobody waits for
//!   it longer than a slice takes.
//! * What the parent is about to change is copied before it may: a page that it touches, a range
//!   that it frees. See `cut` for how it is kept from changing the rest.
//! * The copy has handles of its own on both memory files, so the parent may end meanwhile.

use std::sync::atomic::Ordering;

use paging::regions::PAGE;
use sys::memory::MemoryFile;

use super::RunError;
use super::arena::Arena;
use super::config::TrapKind;
use super::supervisor::Supervisor;
use super::todo::Todo;
use super::word::{State, Word};

/// Bytes copied in one go: some 100 µs.
const SLICE: u64 = 256 << 10;

/// A copy under way.
pub(crate) struct Copy {
    /// Slot of the process that is copied, while it is there.
    pub(crate) parent: Option<usize>,
    /// The process that gets the copy.
    pub(crate) child: u32,
    source: MemoryFile,
    target: MemoryFile,
    todo: Todo,
}

impl Copy {
    /// Begins to copy the managed memory of `parent` to what its child `child` has of it.
    pub(crate) fn new(parent: &Arena, child: &Arena) -> Result<Self, RunError> {
        let mut todo = Todo::default();
        for (start, end) in child.managed() {
            todo.add(start, end);
        }
        Ok(Self {
            parent: Some(parent.slot),
            child: child.tgid,
            source: parent.memory.share()?,
            target: child.memory.share()?,
            todo,
        })
    }

    /// Nothing of a range is to be copied any more.
    pub(crate) fn skip(&mut self, start: u64, end: u64) {
        self.todo.remove(start, end);
    }

    /// Copies what is left of a range, at once.
    pub(crate) fn preserve(&mut self, start: u64, end: u64) -> Result<(), RunError> {
        for (from, to) in self.todo.within(start, end) {
            self.source.copy_to(&self.target, from, from, to - from)?;
        }
        self.todo.remove(start, end);
        Ok(())
    }

    // Some of what is left; answers what that was.
    fn slice(&mut self) -> Result<Vec<(u64, u64)>, RunError> {
        let (mut left, mut done) = (SLICE, Vec::new());
        while let Some((start, end)) = self.todo.first().filter(|_| left > 0) {
            let next = self.source.next_populated(start, end)?;
            let Some((from, to)) = next else {
                self.todo.remove(start, end);
                continue;
            };
            let to = to.min(from + left);
            self.todo.remove(start, from);
            self.preserve(from, to)?;
            done.push((from, to));
            left -= to - from;
        }
        Ok(done)
    }
}

impl Supervisor<'_> {
    /// Copies a slice of each copy under way; children whose copies are complete go on.
    pub(crate) fn advance_copies(&mut self) {
        let children: Vec<u32> = self.copies.iter().map(|copy| copy.child).collect();
        for child in children {
            let Some(copy) = self.copies.iter_mut().find(|copy| copy.child == child) else {
                continue;
            };
            let parent = copy.parent;
            match copy.slice() {
                Ok(done) if done.is_empty() => {
                    self.end_copy(child);
                    if let Err(error) = self.enter_child(child) {
                        self.abandon(child, &error);
                    }
                }
                Ok(done) => parent.into_iter().for_each(|slot| self.map_back(slot, &done)),
                Err(error) => self.abandon(child, &error),
            }
        }
    }

    /// Ends the copy for `child`, complete or not.
    pub(crate) fn end_copy(&mut self, child: u32) {
        let ended = self.copies.iter().position(|copy| copy.child == child);
        let parent = ended.and_then(|at| self.copies.swap_remove(at).parent);
        if let Some(slot) = parent {
            self.thaw(slot);
        }
    }

    /// The memory in `slot` is given up; copies of it go on.
    pub(crate) fn outlive(&mut self, slot: usize) {
        for copy in self.copies.iter_mut().filter(|copy| copy.parent == Some(slot)) {
            copy.parent = None;
        }
    }

    /// Copies what is left of a range that the process in `slot` is about to change.
    pub(crate) fn preserve(&mut self, slot: usize, start: u64, end: u64) {
        let ours = |copy: &&mut Copy| copy.parent == Some(slot);
        let Some(copy) = self.copies.iter_mut().find(ours) else {
            return;
        };
        if let Err(error) = copy.preserve(start, end) {
            let child = copy.child;
            self.abandon(child, &error);
        }
    }

    /// Whether the memory of the process in `slot` is being copied.
    pub(crate) fn is_copied(&self, slot: usize) -> bool {
        self.copies.iter().any(|copy| copy.parent == Some(slot))
    }

    // Maps pages again that were mapped before the cut, so that the parent need not ask for them
    // one by one. A page to which writes are noticed is left out: mapped like this, they would not
    // be.
    fn map_back(&self, slot: usize, ranges: &[(u64, u64)]) {
        let Some(arena) = self.arenas[slot].as_ref().filter(|arena| arena.cut.is_some()) else {
            return;
        };
        let Some(fault) = &arena.fault else { return };
        let all = self.config.trap == TrapKind::Userfault;
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &(start, end) in ranges {
            self.tables.pages.each_word(slot, start, end, |address, cell| {
                let word = Word(cell.load(Ordering::Acquire));
                if word.state() != State::Local || !(all || word.dirty()) {
                    return;
                }
                match runs.last_mut() {
                    Some((_, end)) if *end == address => *end += PAGE,
                    _ => runs.push((address, address + PAGE)),
                }
            });
        }
        for (start, end) in runs {
            // A range that is gone meanwhile needs nothing.
            let _gone = fault.map_all(start, end - start);
        }
    }
}
