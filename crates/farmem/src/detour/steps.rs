//! The supervisor's steps of a detour, from the parent's call to the child's.

use sys::ptrace;
use sys::remote::Remote;
use sys::seccomp::Notification;
use sys::told::children;

use super::{Detour, EAGAIN, EPERM, JUMP, TICKS_MAX, Way, numbers};
use crate::RunError;
use crate::inject::{PLACE_STEP, SYSCALL};
use crate::signal::SIGKILL;
use crate::supervisor::Supervisor;

impl Supervisor<'_> {
    /// Whether code at `address` is that of our object in the process of `slot`.
    pub(crate) fn is_inside(&self, slot: usize, address: u64) -> bool {
        let base = self.object_base(slot);
        base.is_some_and(|base| (base..base + self.programs.object.bytes()).contains(&address))
    }

    fn object_base(&self, slot: usize) -> Option<u64> {
        let routine = self.people.arenas[slot].as_ref()?.image.fork_entry.routine;
        Some(routine / PLACE_STEP * PLACE_STEP)
    }

    /// Sends a thread that cannot be followed, for `reason`, to our object to fork there.
    pub(crate) fn detour(
        &mut self,
        slot: usize,
        call: &Notification,
        reason: &sys::Error,
    ) -> Result<(), RunError> {
        if self.forking.detours.get(&slot).is_some_and(|detour| detour.replaced.is_some()) {
            self.forking.postponed.push(*call);
            return Ok(());
        }
        let Some(detour) = self.divert_fork(slot, call) else {
            self.books.totals.lost("a fork was refused, because its thread is traced", 1);
            self.books.totals.warn_once(&format!(
                "a fork was refused: {reason}; if the program is being debugged, run it with \
                 --engine swap"
            ));
            return Ok(self.kernel.listener.answer(call.id, -EAGAIN)?);
        };
        self.forking.detours.insert(slot, detour);
        // Our object makes the call of this number.
        Ok(self.kernel.listener.answer(call.id, i64::from(call.nr))?)
    }

    // Writes a jump to our object behind a thread's call. `None` if that fails.
    fn divert_fork(&self, slot: usize, call: &Notification) -> Option<Detour> {
        let remote = Remote::open(call.tid).ok()?;
        let behind = call.return_to;
        let mut instruction = [0; SYSCALL.len()];
        remote.read(&mut instruction, behind.wrapping_sub(2)).ok()?;
        if instruction != SYSCALL {
            return None;
        }
        let mut replaced = [0; JUMP.len()];
        remote.read(&mut replaced, behind).ok()?;
        let mut jump = JUMP;
        let target = self.object_base(slot)? + self.programs.object.fork_entry();
        jump[6..].copy_from_slice(&target.to_le_bytes());
        remote.write(&jump, behind).ok()?;
        Some(Detour { remote, thread: call.tid, replaced: Some(replaced), behind })
    }

    /// Acts on a thread that has come to our object: restores the program's instructions.
    pub(crate) fn arrived(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        let slot = self.people.slots.get(&tgid);
        let Some(detour) = slot.and_then(|slot| self.forking.detours.get_mut(slot)) else {
            return Ok(self.kernel.listener.answer(call.id, -EPERM)?);
        };
        let behind = detour.behind.cast_signed();
        if detour.thread != call.tid {
            return Ok(self.kernel.listener.answer(call.id, -behind)?);
        }
        let Some(replaced) = detour.replaced.take() else {
            return Ok(self.kernel.listener.answer(call.id, -behind)?);
        };
        if let Err(error) = detour.remote.write(&replaced, detour.behind) {
            // The process must not go on among instructions that are not its own.
            let _gone = sys::process::kill(tgid, SIGKILL);
            self.books.totals.warn(&format!("process {tgid} was ended: {error}"));
        }
        Ok(self.kernel.listener.answer(call.id, behind)?)
    }

    /// Acts on a thread's report that it has forked in our object, or that it could not.
    pub(crate) fn fork_made(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        let ours = |fork: &crate::fork::Fork| fork.thread == call.tid && fork.child.is_none();
        let Some(at) = self.forking.forks.iter().position(ours) else {
            return Ok(self.kernel.listener.answer(call.id, 0)?);
        };
        let result = u32::try_from(call.args[2]).unwrap_or(0);
        let Some(child) = self.child_of(tgid, call.tid, result) else {
            // The kernel refused the fork, or the child has ended.
            let slot = self.forking.forks.swap_remove(at).parent_slot;
            self.thaw_for(slot, call.tid);
            return Ok(self.kernel.listener.answer(call.id, 0)?);
        };
        let fork = &mut self.forking.forks[at];
        (fork.child, fork.born, fork.way) = (Some(child), true, Way::Inside(Some(call.id)));
        self.prepare_children();
        Ok(())
    }

    // Our number of the child that its parent knows by `number`; `None` if there is none.
    fn child_of(&self, tgid: u32, thread: u32, number: u32) -> Option<u32> {
        if number == 0 {
            return None;
        }
        let level = numbers(thread).len().checked_sub(1)?;
        // A child of CLONE_PARENT waits already, or is not listed as a child of this process.
        let candidates = children(tgid).into_iter().chain(self.forking.born.keys().copied());
        candidates.into_iter().find(|&child| numbers(child).get(level) == Some(&number))
    }

    /// Holds the call of a child that was forked in our object, until its memory has been copied.
    pub(crate) fn child_waits(&mut self, call: &Notification) -> Result<(), RunError> {
        self.forking.born.insert(call.tid, (call.id, 0));
        if self.forking.forks.iter().any(|fork| fork.child == Some(call.tid) && fork.is_copied()) {
            return self.let_in(call.tid);
        }
        Ok(())
    }

    /// Lets a child greet the supervisor once its memory has been copied, if it has called already.
    pub(crate) fn let_in(&mut self, child: u32) -> Result<(), RunError> {
        match self.forking.born.remove(&child) {
            Some((call, _)) => Ok(self.kernel.listener.answer(call, 0)?),
            None => Ok(()),
        }
    }

    /// Acts on a child's report that it has its memory.
    pub(crate) fn child_settled(&mut self, call: &Notification) -> Result<(), RunError> {
        if self.has_settled(call.tid) {
            self.kernel.listener.answer(call.id, 0)?;
        }
        Ok(())
    }

    /// Lets a thread that has forked go on.
    pub(crate) fn let_go(&self, way: Way, thread: u32) -> Result<(), sys::Error> {
        match way {
            Way::Followed => ptrace::detach(thread, 0),
            Way::Inside(Some(call)) => self.kernel.listener.answer(call, 0),
            Way::Inside(None) => Ok(()),
        }
    }

    /// Ends forks in our object whose threads have died without a report. Called at every tick.
    pub(crate) fn look_for_dead_forks(&mut self) {
        let mut ended = Vec::new();
        for fork in self.forking.forks.iter().filter(|fork| matches!(fork.way, Way::Inside(_))) {
            let parent =
                self.people.arenas[fork.parent_slot].as_ref().map_or(0, |arena| arena.tgid);
            if fork.thread != 0 && !sys::process::is_thread_of(fork.thread, parent) {
                ended.push(fork.thread);
            }
            ended.extend(fork.child.filter(|&pid| !sys::process::is_thread_of(pid, pid)));
        }
        ended.into_iter().for_each(|pid| self.traced_end(pid));
        let known: Vec<u32> = self.forking.forks.iter().filter_map(|fork| fork.child).collect();
        let any_to_come = self.forking.forks.iter().any(|fork| fork.child.is_none());
        self.forking.born.retain(|pid, (_, ticks)| {
            *ticks = if any_to_come || known.contains(pid) { 0 } else { *ticks + 1 };
            if *ticks > TICKS_MAX {
                // It must not go on in the memory of its dead parent.
                let _gone = sys::process::kill(*pid, SIGKILL);
            }
            *ticks <= TICKS_MAX
        });
        self.forking.detours.retain(|_, detour| !detour.remote.is_gone());
    }
}
