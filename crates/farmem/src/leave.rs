//! Processes that end: the helper goes first.
//!
//! ```text
//! exit_group -> LEAVE -> the helper ends -> exit_group goes on
//! ```
//!
//! When the first thread of a process ends before another of its threads, the kernel looks for a
//! process that the memory could belong to: among all children of its parent, then among all
//! processes (`mm_update_next_owner` of kernel/exit.c). A program of one thread does not pay for
//! that natively, and would because of the helper: 60 µs beside 4,000 processes.
//!
//! A process that is killed ends without a system call; its threads end in any order.

use super::RunError;
use super::protocol::command;
use super::supervisor::Supervisor;
use sys::seccomp::Notification;

/// How long an exit waits for the helper, which may be stopped or not get a processor.
const WAIT_NS: u64 = 2_000_000;
/// The first thread and the helper.
const THREADS: u64 = 2;

/// A process that has asked to end.
#[derive(Debug)]
pub(crate) struct Leaver {
    slot: usize,
    /// Its call, which waits.
    call: u64,
    /// When it has waited long enough, on the monotonic clock.
    until_ns: u64,
}

impl Supervisor<'_> {
    /// A process ends. If nobody but its helper would outlive the calling thread, the helper ends
    /// first.
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

    // Whether the helper is idle enough to be sent away, and the only other thread.
    fn may_wait(&self, slot: usize, tgid: u32) -> bool {
        let is_forking = self.forking.detours.contains_key(&slot);
        let arena = self.people.arenas[slot].as_ref();
        let is_idle = arena.is_some_and(|arena| arena.helper.ready && arena.cut.is_none());
        is_idle && !is_forking && sys::process::thread_count(tgid) == Some(THREADS)
    }

    /// The helper in `slot` has ended: its process may.
    pub(crate) fn let_leave(&mut self, slot: usize) -> Result<(), RunError> {
        self.go_on_where(|leaver| leaver.slot == slot)
    }

    /// Lets those end whose helpers take too long.
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
