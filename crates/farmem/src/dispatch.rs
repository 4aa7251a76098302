//! Which process makes a call, what is known of that process, and which module handles the call.
//!
//! ```text
//! call -> process -> a new image? -> first call for memory: inject
//!                                 -> managed: the call's own module
//!                                 -> otherwise: the kernel
//! ```

use std::sync::atomic::Ordering;

use sys::seccomp::Notification;

use super::RunError;
use super::images::{Known, Reason};
use super::protocol;
use super::signal::SIGKILL;
use super::supervisor::Supervisor;
use sys::nr;

const EINVAL: i64 = 22;
const EPERM: i64 = 1;
const CLONE_VM: u64 = 0x100;
/// The longest list of ranges of a `process_madvise`, in bytes.
const RANGES_BYTES: u64 = 16 << 10;

impl Supervisor<'_> {
    /// Dispatches one system call.
    pub(crate) fn call(&mut self, call: Notification) -> Result<(), RunError> {
        let Some(tgid) = self.process_of(call.tid) else {
            return Ok(self.kernel.listener.proceed(call.id)?);
        };
        let number = i64::from(call.nr);
        if call.native && number == nr::PRCTL {
            return self.own_call(tgid, &call);
        }
        if self.is_helper(tgid, call.tid) {
            return Ok(self.kernel.listener.proceed(call.id)?);
        }
        if call.tid == tgid {
            self.settle(tgid);
        }
        let slot = self.owner(tgid, call.tid);
        if !call.native {
            return self.foreign_call(tgid, &call);
        }
        match number {
            nr::EXECVE | nr::EXECVEAT => {
                self.sample(tgid);
                self.programs.images.executes(tgid);
                return Ok(self.kernel.listener.proceed(call.id)?);
            }
            nr::EXIT_GROUP => {
                self.leaves(tgid);
                return self.leave(tgid, &call);
            }
            _ => {}
        }
        if let Some(slot) = slot {
            // New memory that another process maps among this one's is its own affair: it may be a
            // tracer that has stopped all threads there are, our helper among them.
            let is_lodger = !self.people.slots.contains_key(&tgid);
            if is_lodger && number == nr::MMAP && call.args[0] == 0 {
                return Ok(self.kernel.listener.proceed(call.id)?);
            }
            return self.act(slot, tgid, &call);
        }
        if number != nr::EXIT && self.programs.images.is_fresh(tgid) && self.inject(tgid, &call)? {
            return Ok(());
        }
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    // Decided by the kernel's number of the thread, which no program can choose.
    fn is_helper(&self, tgid: u32, tid: u32) -> bool {
        let slot = self.people.slots.get(&tgid).copied();
        slot.and_then(|slot| self.people.arenas[slot].as_ref())
            .is_some_and(|arena| arena.helper.thread == tid)
    }

    // Dispatches a call of a process whose memory is managed in `slot`.
    fn act(&mut self, slot: usize, tgid: u32, call: &Notification) -> Result<(), RunError> {
        if let Some(arena) = self.people.arenas[slot].as_mut() {
            // Whatever this thread unmapped before is unmapped by now.
            arena.recycle(|leaving| leaving == call.tid);
        }
        if self.must_wait(slot, call) {
            self.forking.postponed.push(*call);
            return Ok(());
        }
        if self.is_far() && !self.operands_are_here(slot, call) {
            self.forking.postponed.push(*call);
            return Ok(());
        }
        self.books.members.touch(slot);
        match i64::from(call.nr) {
            nr::MMAP => self.mmap(slot, call),
            nr::MUNMAP => self.munmap(slot, call),
            nr::MREMAP => self.mremap(slot, call),
            nr::MADVISE => self.madvise(slot, call),
            nr::PROCESS_MADVISE => self.process_madvise(slot, tgid, call),
            nr::BRK => {
                let end =
                    self.people.arenas[slot].as_ref().map_or(0, |arena| arena.space.program_break);
                Ok(self.kernel.listener.answer(call.id, end.cast_signed())?)
            }
            nr::MLOCK | nr::MLOCK2 | nr::MUNLOCK | nr::MLOCKALL | nr::MUNLOCKALL => {
                self.lock(slot, call)
            }
            nr::CLONE if call.args[0] & CLONE_VM != 0 => self.thread(slot, call),
            nr::CLONE | nr::FORK => self.fork(slot, call),
            nr::SET_TID_ADDRESS => self.names_word(slot, call),
            nr::EXIT => self.exit(slot, call),
            nr::IOCTL => self.registers(slot, call),
            nr::IO_URING_SETUP => self.sets_up_ring(call),
            nr::IO_URING_REGISTER => self.keeps_frames(slot, call),
            nr::UNSHARE => self.unshares_users(call),
            number if super::filter::RIGHTS.contains(&number) => self.follow(slot, tgid, call),
            _ => Ok(self.kernel.listener.proceed(call.id)?),
        }
    }

    // Whether the memory that the supervisor reads for this call is local; fetches it if not.
    fn operands_are_here(&mut self, slot: usize, call: &Notification) -> bool {
        const WORDS: u64 = 32;
        let [_, second, third, fourth, ..] = call.args;
        let (start, bytes) = match i64::from(call.nr) {
            nr::PROCESS_MADVISE => (second, third.saturating_mul(16).min(RANGES_BYTES)),
            nr::CAPSET => (second, WORDS),
            nr::IOCTL => (third, WORDS),
            nr::CLONE => (fourth, 4),
            _ => return true,
        };
        self.is_here(slot, start, bytes)
    }

    // Dispatches a call of our object in the program: a `prctl` with a number of `protocol`.
    fn own_call(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        match call.args[1] {
            protocol::INJECTED => self.fill(tgid, call),
            protocol::HELLO => self.greet(tgid, call),
            protocol::FORKED => self.greet_forked(tgid, call),
            protocol::DEVICE => self.give_device(tgid, call),
            protocol::PLACE => self.place(tgid, call),
            protocol::DETOUR => self.arrived(tgid, call),
            protocol::FORK_MADE => self.fork_made(tgid, call),
            protocol::BORN => self.child_waits(call),
            protocol::SETTLED => self.child_settled(call),
            _ => Ok(self.kernel.listener.answer(call.id, -EINVAL)?),
        }
    }

    // Handles a call of the 32-bit interface, whose programs cannot be managed.
    fn foreign_call(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        match call.nr.unsigned_abs() {
            nr::foreign::EXIT_GROUP => self.leaves(tgid),
            _ => self.programs.images.executes(tgid),
        }
        if self.programs.images.is_fresh(tgid) {
            self.programs.images.unmanaged(tgid, Reason::new("it is a 32-bit program"));
        }
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    // Samples a process that is about to end: its memory cannot be seen later.
    fn leaves(&mut self, tgid: u32) {
        self.sample(tgid);
        if self.people.slots.contains_key(&tgid) {
            // Its helper ends with it; then the arena is retired.
            return;
        }
        self.programs.images.end(tgid);
    }

    /// Samples the memory of a process. Returns false if it has none any more.
    pub(crate) fn sample(&mut self, tgid: u32) -> bool {
        let slot = self.people.slots.get(&tgid).copied();
        if let Some(slot) = slot {
            self.note_peak(slot);
        }
        let arena = slot.and_then(|slot| self.people.arenas[slot].as_ref());
        if arena.is_none() && self.programs.images.is_managed(tgid) {
            // The helper has ended and the process ends: its arena still counts as managed.
            return super::images::has_memory(tgid);
        }
        let mapped = arena.map(|arena| {
            let unlimited =
                self.kernel.tables.proc(arena.slot).unlimited().load(Ordering::Relaxed) != 0;
            arena.mapped_bytes(unlimited)
        });
        self.programs.images.sample(tgid, mapped)
    }

    /// The process that thread `tid` belongs to; `None` if the thread is gone.
    fn process_of(&mut self, tid: u32) -> Option<u32> {
        if let Some(&tgid) = self.people.processes.get(&tid)
            && sys::process::is_thread_of(tid, tgid)
        {
            return Some(tgid);
        }
        let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        let tgid =
            status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
        if let Some(before) = self.people.processes.insert(tid, tgid) {
            self.people.threads.remove(&(before, tid));
        }
        self.people.threads.insert((tgid, tid));
        Some(tgid)
    }

    // The slot of the memory that thread `tid` of `tgid` uses; `None` if it is not managed.
    fn owner(&mut self, tgid: u32, tid: u32) -> Option<usize> {
        if let Some(&slot) = self.people.slots.get(&tgid) {
            // The helper dies when its process executes another program, and its socket closes
            // before that program's first instruction.
            self.next_replies(slot);
        }
        let owner = match self.programs.images.notice(tgid) {
            Known::Same | Known::New => tgid,
            // A child of vfork that has not executed anything yet, or of a clone that shares
            // memory but is no thread, works on its parent's arena.
            Known::Lodger(other) => other,
        };
        let slot = self.people.slots.get(&owner).copied();
        // When a process is killed, any of its threads may end first.
        if slot.is_none() && self.programs.images.is_managed(owner) && !is_killed(tid) {
            self.programs.images.unmanaged(owner, Reason::new("its helper has ended"));
            self.books.totals.lost("a helper ended before its program", 1);
        }
        slot.filter(|&slot| {
            self.people.arenas[slot].as_ref().is_some_and(|arena| arena.helper.ready)
        })
    }

    /// Gives a helper the device by which it makes its userfaultfd.
    fn give_device(&self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        let given = self.programs.device.as_ref().filter(|_| self.is_helper(tgid, call.tid));
        let number = given.and_then(|device| self.kernel.listener.add_fd(call.id, device).ok());
        Ok(self.kernel.listener.answer(call.id, number.unwrap_or(-EPERM))?)
    }
}

// Whether a thread has ended, or ends before its next instruction: a fatal signal is pending until
// the thread takes it, and then the thread is exiting.
fn is_killed(tid: u32) -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{tid}/{file}"));
    let is_pending = || read("status").map_or(true, |status| is_kill_pending(&status));
    is_pending() || read("stat").map_or(true, |stat| is_exiting(&stat))
}

// Whether the thread of this `stat` is exiting: flags are the ninth field (proc_pid_stat(5)).
fn is_exiting(stat: &str) -> bool {
    // include/linux/sched.h.
    const PF_EXITING: u64 = 0x4;
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let flags = fields.split_whitespace().nth(9 - 3).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_none_or(|flags| flags & PF_EXITING != 0)
}

fn is_kill_pending(status: &str) -> bool {
    const KILL: u64 = 1 << (SIGKILL - 1);
    let pending = |line: &str| {
        let signals = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(signals.trim(), 16).ok()
    };
    status.lines().filter_map(pending).any(|signals| signals & KILL != 0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn who_is_killed_has_the_signal_pending() {
        let status = |own: u64, shared: u64| {
            format!("Name:\tbusy\nSigPnd:\t{own:016x}\nShdPnd:\t{shared:016x}\nSigBlk:\t0100\n")
        };
        assert!(is_kill_pending(&status(0x100, 0)) && is_kill_pending(&status(1, 0x4100)));
        assert!(!is_kill_pending(&status(0x4200, 0x80)));
        assert!(is_killed(0) && !is_killed(std::process::id()));
        // A process that nobody has waited for is on its way out, with no signal.
        let mut ended = std::process::Command::new("true").spawn().expect("it is installed");
        let end = sys::process::watch(ended.id()).expect("it is ours");
        while sys::event::wait_for([end.as_fd()], None).is_ok_and(|ready| ready == [false]) {}
        assert!(is_killed(ended.id()));
        ended.wait().expect("it is ours");
        let stat = |flags: u64| format!("9 (a) b) R 1 2 3 0 -1 {flags} 0 0 0 0");
        assert!(is_exiting(&stat(0x40_4044)) && !is_exiting(&stat(0x40_4040)));
    }
}
