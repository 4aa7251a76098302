//! The supervisor's steps of a fork, from the call to the child's first instruction.

use measure::Pages;
use paging::page::Ranges;
use paging::regions::PAGE;
use sys::memory::MemoryFile;
use sys::ptrace::{self, Context};
use sys::seccomp::Notification;
use sys::socket::Socket;

use super::{
    Borrowed, CLONE_CHILD_SETTID, Copying, EAGAIN, ESRCH, Fork, REFUSED, SIGKILL, SIGSTOP, SIGTRAP,
};
use crate::RunError;
use crate::arena::{Arena, Birth};
use crate::copy::Copy;
use crate::detour::Way;
use crate::events::TABLE_FULL;
use crate::inherit::{clip, send_mappings};
use crate::supervisor::Supervisor;
use sys::maps;
use sys::nr;
use tables::ADDRESS_TOP;

impl Supervisor<'_> {
    /// Acts on a call that forks: follows the thread, and takes a cut.
    pub(crate) fn fork(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        // A signal restarts the call; the thread is followed already.
        if self.forking.forks.iter().any(|fork| fork.thread == call.tid && fork.child.is_none()) {
            return self.cut_and_fork(slot, call);
        }
        let under_way = self.forking.forks.iter().filter(|fork| fork.has_no_slot()).count();
        if self.books.members.free_count() <= under_way {
            self.books.totals.lost(REFUSED, 1);
            return Ok(self.kernel.listener.answer(call.id, -EAGAIN)?);
        }
        let way = if self.is_inside(slot, call.return_to) {
            Way::Inside(None)
        } else if let Err(error) = ptrace::seize(call.tid) {
            return self.detour(slot, call, &error);
        } else {
            Way::Followed
        };
        let [flags, _, _, tid_address, ..] = call.args;
        let told = i64::from(call.nr) == nr::CLONE && flags & CLONE_CHILD_SETTID != 0;
        self.forking.forks.push(Fork {
            thread: call.tid,
            parent_slot: slot,
            way,
            tid_word: told.then_some((tid_address, [0; 4])),
            child: None,
            born: false,
            copying: None,
            borrowed: None,
        });
        self.cut_and_fork(slot, call)
    }

    /// Saves the word that the kernel overwrites with the number of the child of `thread`.
    pub(crate) fn note_tid_word(&mut self, slot: usize, thread: u32) {
        let Some(arena) = &self.people.arenas[slot] else { return };
        let ours = |fork: &&mut Fork| fork.thread == thread && fork.child.is_none();
        let Some(fork) = self.forking.forks.iter_mut().find(ours) else { return };
        fork.tid_word = fork.tid_word.and_then(|(address, mut word)| {
            let read = arena.space.regions.manages(address)
                && arena.memory.read_at(&mut word, address).is_ok();
            read.then_some((address, word))
        });
    }

    /// Whether `pid` is a thread that forks or its child, whose stops the supervisor handles.
    pub(crate) fn is_traced(&self, pid: u32) -> bool {
        self.forking.forks.iter().any(|fork| fork.thread == pid || fork.child == Some(pid))
    }

    /// Acts on a stop of a followed thread.
    pub(crate) fn traced_stop(&mut self, pid: u32, signal: i32, event: i32) {
        use ptrace::event::{CLONE, FORK, STOP, VFORK};
        let outcome = match event {
            FORK | VFORK | CLONE => self.forked(pid),
            STOP if self.is_newborn(pid) => self.born(pid),
            0 if signal == SIGTRAP && self.is_borrowed(pid) => self.give_back(pid),
            // The child must run our routine first.
            0 if signal == SIGSTOP && self.is_borrowed(pid) => self.stop_later(pid),
            0 => ptrace::resume(pid, signal).map_err(RunError::from),
            STOP if signal != SIGTRAP => ptrace::listen(pid).map_err(RunError::from),
            _ => ptrace::resume(pid, 0).map_err(RunError::from),
        };
        if let Err(error) = outcome {
            self.abandon(pid, &error);
        }
    }

    /// Acts on a stop of an unknown process: a child whose parent's report is still to come.
    pub(crate) fn unexpected_stop(&mut self, pid: u32, event: i32) {
        if event == ptrace::event::STOP {
            self.forking.newborns.push((pid, 0));
        } else {
            let _gone = ptrace::detach(pid, 0);
        }
    }

    /// Ends children whose parents died before they could report them: they must not run on in
    /// their parents' memory. Called at every tick.
    pub(crate) fn end_orphans(&mut self) {
        const TICKS_MAX: u32 = 5;
        self.forking.newborns.retain_mut(|(pid, ticks)| {
            *ticks += 1;
            if *ticks > TICKS_MAX {
                let _gone = sys::process::kill(*pid, SIGKILL);
            }
            *ticks <= TICKS_MAX
        });
    }

    // Acts on the kernel's report that `thread` has forked.
    fn forked(&mut self, thread: u32) -> Result<(), RunError> {
        let child = ptrace::message(thread)?;
        let born = self.forking.newborns.iter().position(|(pid, _)| *pid == child);
        if let Some(at) = born {
            self.forking.newborns.swap_remove(at);
        }
        let fork = self
            .forking
            .forks
            .iter_mut()
            .find(|fork| fork.thread == thread && fork.child.is_none());
        if let Some(fork) = fork {
            fork.child = Some(child);
            fork.born = born.is_some();
        }
        self.prepare_child(child)
    }

    // Notes that a child is to stop once it has its memory.
    fn stop_later(&mut self, child: u32) -> Result<(), RunError> {
        let fork = self.forking.forks.iter_mut().find(|fork| fork.child == Some(child));
        if let Some(borrowed) = fork.and_then(|fork| fork.borrowed.as_mut()) {
            borrowed.stop = true;
        }
        Ok(ptrace::resume(child, 0)?)
    }

    // Whether `pid` is a child without an arena.
    fn is_newborn(&self, pid: u32) -> bool {
        self.forking.forks.iter().any(|fork| fork.child == Some(pid) && fork.has_no_slot())
    }

    // Whether `pid` is a child that runs our routine.
    fn is_borrowed(&self, pid: u32) -> bool {
        self.forking.forks.iter().any(|fork| fork.child == Some(pid) && fork.borrowed.is_some())
    }

    // Notes that a child has stopped before its first instruction.
    fn born(&mut self, child: u32) -> Result<(), RunError> {
        if let Some(fork) = self.forking.forks.iter_mut().find(|fork| fork.child == Some(child)) {
            fork.born = true;
        }
        self.prepare_child(child)
    }

    /// Continues forks that waited for another fork of the same process.
    pub(crate) fn prepare_children(&mut self) {
        let waiting = self.forking.forks.iter().filter(|fork| fork.born && fork.has_no_slot());
        for child in waiting.filter_map(|fork| fork.child).collect::<Vec<_>>() {
            if let Err(error) = self.prepare_child(child) {
                self.abandon(child, &error);
            }
        }
    }

    // Begins to copy once both the child and the parent wait.
    fn prepare_child(&mut self, child: u32) -> Result<(), RunError> {
        let Some(at) = self.forking.forks.iter().position(|fork| fork.child == Some(child)) else {
            return Ok(());
        };
        let Fork { thread, parent_slot, way, .. } = self.forking.forks[at];
        if !self.forking.forks[at].born || !self.forking.forks[at].has_no_slot() {
            return Ok(());
        }
        // The parent stops at its report; if that is still to come, this is called again then.
        if !self.forking.forks[at].parent_waits() {
            return Ok(());
        }
        let frozen = self.is_frozen_for(parent_slot, thread);
        if !frozen {
            if self.is_cut(parent_slot) || self.is_copied(parent_slot) {
                // Another fork of this process comes first.
                return Ok(());
            }
            if !self.stands_still(parent_slot, thread) && self.begin_cut(parent_slot, thread, None)
            {
                return Ok(());
            }
        }
        self.drain_events();
        let slot = self.free_slot().ok_or(RunError::Lost("a free slot"))?;
        let Some(parent) = self.people.arenas[parent_slot].take() else {
            return Err(RunError::Lost("the forking process"));
        };
        let made = self.make_child(&parent, slot, child, self.forking.forks[at].tid_word);
        self.people.arenas[parent_slot] = Some(parent);
        let (arena, copy, copying) = made?;
        self.adopt(arena)?;
        self.forking.copies.push(copy);
        self.forking.forks[at].copying = Some(copying);
        self.books.totals.fork_count += 1;
        if frozen {
            self.forking.forks[at].thread = 0;
            self.release_held(parent_slot);
            self.let_go(way, thread)?;
        }
        Ok(())
    }

    fn make_child(
        &mut self,
        parent: &Arena,
        slot: usize,
        child: u32,
        tid_word: Option<(u64, [u8; 4])>,
    ) -> Result<(Arena, Copy, Copying), RunError> {
        let memory = MemoryFile::new("afar", ADDRESS_TOP)?;
        let (mut regions, mut tiers) = (parent.space.regions.clone(), Vec::new());
        let (mut emptied, mut absent) = (Vec::new(), Vec::new());
        for piece in parent.space.regions.all() {
            if piece.traits.not_on_fork {
                absent.push((piece.start, piece.bytes()));
                regions.unmap(piece.start, piece.end);
            }
            if piece.traits.not_on_fork || piece.traits.wipe_on_fork {
                emptied.push(piece);
            }
        }
        for tier in &parent.tiers {
            let mut tier = self.inherited(tier);
            for piece in &emptied {
                for span in parent.space.segments.spans(piece.start, piece.end) {
                    tier.discard(span.first, Pages::new(span.count));
                }
            }
            tiers.push(tier);
        }
        // The mappings that the kernel has copied for the child.
        let mappings = clip(&maps::read(child, 0, ADDRESS_TOP), &regions);
        if mappings.is_empty() && regions.next_managed(0).is_some() {
            return Err(RunError::Lost("the list of the forking process's mappings"));
        }
        let (near, far) = Socket::pair()?;
        let mut arena = Arena::new(Birth {
            slot,
            budget: self.budget_for(slot),
            tgid: child,
            memory,
            socket: near,
            regions,
            segments: parent.space.segments.clone(),
            // Locks are not inherited.
            pinned: Ranges::default(),
            tiers,
            program_break: parent.space.program_break,
            fork_entry: parent.image.fork_entry,
            helper: 0,
            loader: None,
        });
        arena.populated.clone_from(&parent.populated);
        arena.populated[0] += parent.unlogged_pages(self.unlogged(parent.slot));
        self.kernel.tables.pages.clear(slot);
        let unmanaged = self.copy_words(parent, &arena);
        self.share_far(parent.slot, &arena);
        self.books.totals.lost(TABLE_FULL, unmanaged);
        let mut copy = Copy::new(parent, &arena, self.books.totals.fork_count)?;
        for piece in emptied {
            copy.skip(piece.start, piece.end);
            arena.empty(&self.kernel.tables, piece.start, piece.bytes());
            self.forget_far(slot, piece.start, piece.end);
        }
        if let Some((address, word)) = tid_word {
            // The kernel has written the child's number into memory that was its parent's.
            let page = address / PAGE * PAGE;
            copy.preserve(page, page + PAGE)?;
            parent.memory.write_at(&word, address)?;
        }
        Ok((arena, copy, Copying { slot, far, mappings, absent }))
    }

    /// Has a child whose memory has been copied run our routine.
    pub(crate) fn enter_child(&mut self, child: u32) -> Result<(), RunError> {
        let Some(fork) = self.forking.forks.iter_mut().find(|fork| fork.child == Some(child))
        else {
            return Ok(());
        };
        let Some(Copying { slot, far, mappings, absent }) = fork.copying.take() else {
            return Ok(());
        };
        let Some(entry) = self.people.arenas[slot].as_ref().map(|arena| arena.image.fork_entry)
        else {
            return Err(RunError::Lost("the forked process"));
        };
        let (way, waiting) = (fork.way, std::mem::take(&mut fork.thread));
        let context = match way {
            Way::Followed => {
                // Our routine starts a thread in the child.
                ptrace::forget_children(child)?;
                let context = Context::save(child)?;
                context.divert(child, entry)?;
                Some(context)
            }
            Way::Inside(_) => None,
        };
        fork.borrowed =
            Some(Borrowed { slot, context, far: Some(far), mappings, absent, stop: false });
        if waiting != 0 {
            // The thread may have been killed.
            let _gone = self.let_go(way, waiting);
        }
        match way {
            Way::Followed => Ok(ptrace::resume(child, 0)?),
            Way::Inside(_) => self.let_in(child),
        }
    }

    /// Answers a forked child's call for its memory.
    pub(crate) fn greet_forked(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        let borrowed = self.forking.forks.iter_mut().find(|fork| fork.child == Some(tgid));
        let Some(borrowed) = borrowed.and_then(|fork| fork.borrowed.as_mut()) else {
            return Ok(self.kernel.listener.answer(call.id, -EAGAIN)?);
        };
        let Some(far) = borrowed.far.take() else {
            return Ok(self.kernel.listener.answer(call.id, -EAGAIN)?);
        };
        let slot = borrowed.slot;
        let mappings = std::mem::take(&mut borrowed.mappings);
        let absent = std::mem::take(&mut borrowed.absent);
        self.introduce(slot, call, far)?;
        let Some(arena) = &self.people.arenas[slot] else {
            return Ok(());
        };
        if let Err(error) = send_mappings(arena, &absent, &mappings) {
            // The child dies, or is killed: some of its memory may still be its parent's.
            let _gone = sys::process::kill(tgid, SIGKILL);
            self.books.totals.warn(&format!("a forked process was ended: {error}"));
        }
        Ok(())
    }

    // Restores the registers of a child that has its memory: it goes on as if nothing had happened.
    fn give_back(&mut self, child: u32) -> Result<(), RunError> {
        let Some(borrowed) = self.finish_fork(child) else {
            return Ok(());
        };
        let Some(context) = borrowed.context else {
            return Ok(());
        };
        context.restore(child)?;
        Ok(ptrace::detach(child, if borrowed.stop { SIGSTOP } else { 0 })?)
    }

    // Ends the fork of `child`. `None` if the child did not get its memory, and was killed.
    fn finish_fork(&mut self, child: u32) -> Option<Borrowed> {
        let at = self.forking.forks.iter().position(|fork| fork.child == Some(child))?;
        let borrowed = self.forking.forks.swap_remove(at).borrowed?;
        self.next_replies(borrowed.slot);
        if self.people.arenas[borrowed.slot].as_ref().is_some_and(|arena| arena.helper.ready) {
            return Some(borrowed);
        }
        // The child's mappings may still be its parent's.
        let _gone = sys::process::kill(child, SIGKILL);
        self.books.totals.warn_once("a forked process could not be given its memory: ended");
        None
    }

    /// Ends the fork of a child that forked inside our object. Returns whether it may go on.
    pub(crate) fn has_settled(&mut self, child: u32) -> bool {
        self.finish_fork(child).is_some()
    }

    /// Kills a child whose memory cannot be put in place: it must not run.
    pub(crate) fn abandon(&mut self, pid: u32, error: &RunError) {
        let Some(at) =
            self.forking.forks.iter().position(|f| f.thread == pid || f.child == Some(pid))
        else {
            return;
        };
        let fork = self.forking.forks.swap_remove(at);
        if let Some(child) = fork.child {
            let _gone = sys::process::kill(child, SIGKILL);
            self.end_copy(child);
        }
        self.thaw_for(fork.parent_slot, fork.thread);
        let _not_stopped = self.let_go(fork.way, fork.thread);
        // Something else may have ended it.
        if !matches!(error, RunError::System(error) if error.errno() == Some(ESRCH)) {
            self.books.totals.warn(&format!("a forked process was ended: {error}"));
        }
    }

    /// Acts on the end of a followed thread.
    pub(crate) fn traced_end(&mut self, pid: u32) {
        self.forking.newborns.retain(|(newborn, _)| *newborn != pid);
        self.end_copy(pid);
        let slots: Vec<usize> = self
            .forking
            .forks
            .iter()
            .filter(|fork| fork.thread == pid || fork.child == Some(pid))
            .map(|fork| fork.parent_slot)
            .collect();
        for slot in slots {
            self.thaw_for(slot, pid);
        }
        self.forking.forks.retain(|fork| {
            let orphaned = fork.thread == pid && fork.has_no_slot();
            if let Some(child) = fork.child.filter(|_| orphaned) {
                let _gone = sys::process::kill(child, SIGKILL);
            }
            // A child whose copy has begun no longer needs its parent.
            fork.child != Some(pid) && !orphaned
        });
    }
}
