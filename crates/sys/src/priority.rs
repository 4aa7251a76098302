//! Scheduling priorities of threads.

use crate::Result;
use crate::error::check;

/// Makes thread `tid` (0: the caller) run before other ordinary threads: the highest weight, and
/// the shortest slice, which makes its deadline the earliest when it wakes. Threads that it starts
/// are ordinary again.
///
/// Not real-time priority: at that, a thread that waits in the kernel for an ordinary one on its
/// own processor (to reap a process whose directory in `/proc` another one reads, for one) waits
/// for ever; and it does not move to an idle processor when it wakes where the program runs.
///
/// # Errors
/// Without `CAP_SYS_NICE`.
#[expect(unsafe_code, reason = "sched_setattr has no wrapper")]
pub fn make_urgent(tid: u32) -> Result<()> {
    /// `struct sched_attr`, in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    const RESET_ON_FORK: u64 = 1;
    let attributes = Attributes {
        size: 48,
        flags: RESET_ON_FORK,
        nice: -20,
        // The slice; kernels before 6.12 have one for all threads.
        runtime_ns: 100_000,
        ..Attributes::default()
    };
    // SAFETY: `attributes` is a local of the size it says.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) };
    check("raise a thread's priority", result).map(|_zero| ())
}

/// Lets other threads run before the calling one (nice 10).
pub fn be_nice() {
    const NICE: i32 = 10;
    // Linux applies this to one thread, and always permits a lower priority.
    let _nicer = rustix::process::setpriority_process(None, NICE);
}

/// Makes thread `tid` (0: the caller) real-time, so that it runs before all ordinary threads, with
/// `priority` (1 to 99) among real-time ones. [`make_urgent`] undoes this. Threads that it starts
/// are ordinary.
///
/// # Errors
/// Without `CAP_SYS_NICE`, or if the thread has ended.
#[expect(unsafe_code, reason = "sched_setscheduler has no wrapper for a thread")]
pub fn make_realtime(tid: u32, priority: u32) -> Result<()> {
    let parameters =
        libc::sched_param { sched_priority: libc::c_int::try_from(priority).unwrap_or(1) };
    let thread = libc::pid_t::try_from(tid).unwrap_or(libc::pid_t::MAX);
    // SAFETY: `parameters` is a local.
    let result = unsafe {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        libc::sched_setscheduler(thread, policy, &raw const parameters)
    };
    check("make a thread real-time", result.into()).map(|_zero| ())
}
