//! The supervisor's steps: it sends the helper away, and lets the process end.

use sys::seccomp::Notification;

use super::{Leaver, THREADS, WAIT_NS};
use crate::RunError;
use crate::protocol::command;
use crate::supervisor::Supervisor;

impl Supervisor<'_> {
    /// Acts on `exit_group`. If only the helper would outlive the calling thread, it ends first.
    pub(crate) fn leave(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        let slot = self.people.slots.get(&tgid).copied().filter(|&slot| self.may_wait(slot, tgid));
        let Some(slot) = slot.filter(|_| call.tid == tgid) else {
            return Ok(self.kernel.listener.proceed(call.id)?);
        };
        let arena = self.people.arenas[slot].as_ref();
        if arena.is_none_or(|arena| arena.send(command::LEAVE, 0, &[0]).is_err()) {
            return Ok(self.kernel.listener.proceed(call.id)?);
        }
        let until_ns = self.now_ns() + WAIT_NS;
        self.people.leavers.push(Leaver { slot, call: call.id, until_ns });
        Ok(())
    }

    // Whether the helper is idle, and the only other thread.
    fn may_wait(&self, slot: usize, tgid: u32) -> bool {
        let is_forking = self.forking.detours.contains_key(&slot);
        let arena = self.people.arenas[slot].as_ref();
        let is_idle = arena.is_some_and(|arena| arena.helper.ready && arena.cut.is_none());
        is_idle && !is_forking && sys::process::thread_count(tgid) == Some(THREADS)
    }

    /// Lets the process in `slot` end, whose helper has ended.
    pub(crate) fn let_leave(&mut self, slot: usize) -> Result<(), RunError> {
        self.go_on_where(|leaver| leaver.slot == slot)
    }

    /// Lets processes end whose helpers take too long.
    pub(crate) fn let_late_leave(&mut self) -> Result<(), RunError> {
        if self.people.leavers.is_empty() {
            return Ok(());
        }
        let now = self.now_ns();
        self.go_on_where(|leaver| leaver.until_ns <= now)
    }

    fn go_on_where(&mut self, may_go: impl Fn(&Leaver) -> bool) -> Result<(), RunError> {
        let (go, stay) = std::mem::take(&mut self.people.leavers).into_iter().partition(may_go);
        self.people.leavers = stay;
        let go: Vec<Leaver> = go;
        go.iter().try_for_each(|leaver| Ok(self.kernel.listener.proceed(leaver.call)?))
    }
}
