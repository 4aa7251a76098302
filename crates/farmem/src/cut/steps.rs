//! The supervisor's steps of a cut: freezing, holding faults, giving up.

use std::sync::atomic::Ordering;

use paging::word::{State, Word};
use sys::seccomp::Notification;
use sys::userfault::Watch;

use super::{
    CLONE_VM, Cut, PAGES_FEW, Phase, Purpose, TICKS_LOOK, TICKS_MAX, freed, is_forking,
    take_portion,
};
use crate::RunError;
use crate::arena::Arena;
use crate::config::TrapKind;
use crate::moves::Move;
use crate::pending::Pending;
use crate::protocol::command;
use crate::supervisor::Supervisor;
use crate::userfault_trap::Touch;
use sys::nr;

impl Supervisor<'_> {
    /// Lets the kernel fork for `call`, after a cut if other threads could write meanwhile.
    pub(crate) fn cut_and_fork(
        &mut self,
        slot: usize,
        call: &Notification,
    ) -> Result<(), RunError> {
        let same = |cut: &&mut Cut| cut.thread == call.tid && cut.phase != Phase::Copying;
        let cut = self.people.arenas[slot].as_mut().and_then(|arena| arena.cut.as_mut());
        if let Some(cut) = cut.filter(same) {
            // A signal interrupted the call, which begins anew; no thread has written meanwhile.
            match cut.phase {
                Phase::Freezing => cut.call = Some(call.id),
                _ => self.kernel.listener.proceed(call.id)?,
            }
            return Ok(());
        }
        if self.stands_still(slot, call.tid) || !self.begin_cut(slot, call.tid, Some(call.id)) {
            self.note_tid_word(slot, call.tid);
            self.kernel.listener.proceed(call.id)?;
        }
        Ok(())
    }

    /// Whether the memory in `slot` is small and no thread but `thread` can touch it.
    pub(crate) fn stands_still(&self, slot: usize, thread: u32) -> bool {
        let Some(arena) = &self.people.arenas[slot] else {
            return true;
        };
        // The thread and the helper.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", arena.tgid)).map(Iterator::count);
        let others = tasks.map_or(true, |count| count > 2);
        !others
            && arena.pages(self.unlogged(slot)) <= PAGES_FEW
            && !sys::told::children(arena.tgid).into_iter().any(|child| {
                // A clone that shares memory but is no thread.
                sys::remote::share_memory(thread, child).unwrap_or(false)
            })
    }

    /// Whether `call` has to wait until a fork or copy is over, or a thread has started or ended.
    pub(crate) fn must_wait(&mut self, slot: usize, call: &Notification) -> bool {
        let number = i64::from(call.nr);
        let forks = number == nr::FORK || number == nr::CLONE && call.args[0] & CLONE_VM == 0;
        // A thread that makes this call has returned from the one that started another thread.
        self.forking.starting.retain(|&(tid, ..)| tid != call.tid);
        if forks && (self.any_starts(slot) || self.any_ends(slot)) {
            return true;
        }
        if freed(call).into_iter().any(|(start, bytes)| self.awaits_copy(slot, start, bytes)) {
            return true;
        }
        let Some(arena) = &self.people.arenas[slot] else {
            return false;
        };
        // Memory that the helper has yet to map must be mapped before it can be frozen.
        let unmapped =
            || arena.helper.awaited.any(|pending| !matches!(pending, Pending::Drop { .. }));
        match &arena.cut {
            Some(cut) if cut.thread == call.tid && cut.phase != Phase::Copying => false,
            Some(cut) => forks || cut.phase != Phase::Copying,
            None => forks && (self.is_copied(slot) || unmapped()),
        }
    }

    /// Begins to freeze the memory in `slot` for a fork. Returns false without a userfaultfd.
    pub(crate) fn begin_cut(&mut self, slot: usize, thread: u32, call: Option<u64>) -> bool {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return false;
        };
        if arena.fault.is_none() {
            self.books.totals.warn_once(
                "no userfaultfd: a forked process may see what other threads wrote while its \
                 memory was copied",
            );
            return false;
        }
        let ranges = arena.managed();
        self.freeze(slot, Purpose::Fork, (thread, call), ranges);
        true
    }

    /// Begins to freeze the old place of a region that is to move and leave it empty. Returns false
    /// if the kernel reports no faults there.
    pub(crate) fn begin_move(&mut self, slot: usize, moving: Move) -> bool {
        let reports = |arena: &Arena| arena.fault.is_some() && arena.cut.is_none();
        if !self.people.arenas[slot].as_ref().is_some_and(reports) {
            return false;
        }
        let ranges = vec![moving.old_range()];
        self.freeze(slot, Purpose::Move(moving), (moving.thread, None), ranges);
        true
    }

    // Begins a cut of `ranges`: from here on their faults are reported and held.
    fn freeze(
        &mut self,
        slot: usize,
        purpose: Purpose,
        (thread, call): (u32, Option<u64>),
        ranges: Vec<(u64, u64)>,
    ) {
        if self.config.trap == TrapKind::Bpf {
            self.note_mortals(slot);
        }
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return;
        };
        if let Some(fault) = arena.fault.as_ref().filter(|_| self.config.trap == TrapKind::Bpf) {
            for &(start, end) in &ranges {
                // A range that is gone meanwhile needs no watching.
                let _gone = fault.register(start, end - start, Watch::Faults);
            }
        }
        arena.cut = Some(Cut {
            purpose,
            thread,
            call,
            phase: Phase::Freezing,
            thaws: false,
            untold: ranges.iter().copied().collect(),
            ranges: ranges.into(),
            is_told: false,
            held: Vec::new(),
            ticks: 0,
        });
        if self.config.trap == TrapKind::Bpf {
            self.watch_faults(slot);
        }
        self.go_on_freezing(slot);
    }

    /// Goes on after the helper has frozen a portion.
    pub(crate) fn froze(&mut self, slot: usize) {
        if let Some(cut) = self.people.arenas[slot].as_mut().and_then(|arena| arena.cut.as_mut()) {
            cut.is_told = false;
            self.go_on_freezing(slot);
        }
    }

    // Has the helper freeze portions until it is busy; once all are frozen, the cut goes on.
    fn go_on_freezing(&mut self, slot: usize) {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return;
        };
        let Some(mut cut) = arena.cut.take() else {
            return;
        };
        while !cut.is_told && !cut.untold.is_empty() {
            let portion = take_portion(&mut cut.untold, |at, end| arena.next_data(at, end));
            let operands: Vec<u64> =
                portion.into_iter().flat_map(|(start, end)| [start, end - start]).collect();
            // Without its helper the process is about to end.
            cut.is_told = arena.command(command::FREEZE, &operands, Pending::Freeze).is_ok();
        }
        let frozen = cut.phase == Phase::Freezing && !cut.is_told;
        if frozen {
            cut.phase = Phase::Frozen;
        }
        arena.cut = Some(cut);
        if frozen && let Err(error) = self.frozen(slot) {
            self.books.totals.warn(&error.to_string());
        }
    }

    // Once all is frozen: lets the kernel fork, or moves the region.
    fn frozen(&mut self, slot: usize) -> Result<(), RunError> {
        let Some(cut) = self.people.arenas[slot].as_mut().and_then(|arena| arena.cut.as_mut())
        else {
            return Ok(());
        };
        if let Purpose::Move(moving) = cut.purpose {
            let moved = self.move_now(slot, moving);
            self.thaw(slot);
            return moved;
        }
        let (thread, call) = (cut.thread, cut.call.take());
        if call.is_some() && cut.held.iter().any(|touch| touch.tid == thread) {
            // The thread is in a signal handler, and will fork later.
            self.thaw(slot);
        }
        match call {
            Some(call) => {
                self.note_tid_word(slot, thread);
                Ok(self.kernel.listener.proceed(call)?)
            }
            None => {
                self.prepare_children();
                Ok(())
            }
        }
    }

    /// Whether the memory is frozen for a fork of `thread`, so that its child sees one cut.
    pub(crate) fn is_frozen_for(&self, slot: usize, thread: u32) -> bool {
        let cut = self.people.arenas[slot].as_ref().and_then(|arena| arena.cut.as_ref());
        cut.is_some_and(|cut| cut.thread == thread && cut.phase == Phase::Frozen)
    }

    /// Whether there is a cut of the memory in `slot`.
    pub(crate) fn is_cut(&self, slot: usize) -> bool {
        self.people.arenas[slot].as_ref().is_some_and(|arena| arena.cut.is_some())
    }

    /// Answers the held faults now that the child exists, each when its page has been copied.
    pub(crate) fn release_held(&mut self, slot: usize) {
        let Some(cut) = self.people.arenas[slot].as_mut().and_then(|arena| arena.cut.as_mut())
        else {
            return;
        };
        cut.phase = Phase::Copying;
        for touch in std::mem::take(&mut cut.held) {
            self.resolve(&touch);
        }
    }

    /// Holds a fault that must not be answered yet. Returns whether it is held.
    pub(crate) fn detains(&mut self, touch: &Touch) -> bool {
        let cut = self.people.arenas[touch.slot].as_mut().and_then(|arena| arena.cut.as_mut());
        let Some(cut) = cut.filter(|cut| cut.phase != Phase::Copying) else {
            return false;
        };
        cut.held.push(*touch);
        if cut.phase == Phase::Frozen && touch.tid == cut.thread {
            // Not in its fork, or the kernel writes for it. A later cut serves its fork.
            self.thaw(touch.slot);
        }
        true
    }

    /// Serves a fault of a frozen page that the BPF trap has seen already.
    pub(crate) fn touch_frozen(&mut self, touch: &Touch) {
        if let Some(cell) = self.kernel.tables.pages.word(touch.slot, touch.address) {
            // Writes to it will not be noticed.
            let dirty = |word: u32| {
                let word = Word(word);
                (word.state() == State::Local).then(|| word.with_dirty(true).0)
            };
            let _elsewhere = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, dirty);
        }
        self.resolve(touch);
    }

    /// Thaws memory whose fork the kernel does not report: it has failed. Called at every tick.
    pub(crate) fn end_stale_cuts(&mut self) {
        let slots: Vec<usize> = self.forking.forks.iter().map(|fork| fork.parent_slot).collect();
        for slot in slots {
            let Some(arena) = self.people.arenas[slot].as_mut() else {
                continue;
            };
            let Some(cut) = arena.cut.as_mut().filter(|cut| cut.phase == Phase::Frozen) else {
                continue;
            };
            cut.ticks += 1;
            if cut.ticks > TICKS_MAX || cut.ticks > TICKS_LOOK && !is_forking(cut.thread) {
                self.thaw(slot);
            }
        }
    }
}
