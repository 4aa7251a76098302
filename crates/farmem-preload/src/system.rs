//! System calls, made by hand (x86-64).

use core::arch::asm;

pub(crate) const CLOSE: u64 = 3;
pub(crate) const MMAP: u64 = 9;
pub(crate) const MUNMAP: u64 = 11;
pub(crate) const BRK: u64 = 12;
pub(crate) const RT_SIGPROCMASK: u64 = 14;
pub(crate) const IOCTL: u64 = 16;
pub(crate) const MADVISE: u64 = 28;
pub(crate) const GETPID: u64 = 39;
pub(crate) const CAPGET: u64 = 125;
pub(crate) const CAPSET: u64 = 126;
pub(crate) const RECVFROM: u64 = 45;
pub(crate) const SENDTO: u64 = 44;
pub(crate) const SENDMSG: u64 = 46;
pub(crate) const KILL: u64 = 62;
pub(crate) const EXIT: u64 = 60;
pub(crate) const PRCTL: u64 = 157;
pub(crate) const FUTEX: u64 = 202;
pub(crate) const OPENAT: u64 = 257;
pub(crate) const USERFAULTFD: u64 = 323;
pub(crate) const PIDFD_OPEN: u64 = 434;
pub(crate) const CLOSE_RANGE: u64 = 436;
pub(crate) const PROCESS_MADVISE: u64 = 440;
const CLONE: u64 = 56;
const SIGKILL: u64 = 9;

/// Makes a system call; a negative answer is `-errno`.
///
/// # Safety
/// The arguments must be valid for the call.
pub(crate) unsafe fn call(nr: u64, args: [u64; 6]) -> i64 {
    let result: i64;
    // SAFETY: the kernel's calling convention; validity of the arguments is the caller's.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") nr => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Starts a thread of this process with its own descriptor table, running `entry(argument)` on a
/// stack that ends at `stack_top`. Returns its thread id or `-errno`.
///
/// # Safety
/// The stack must be unused, writable and large enough; `entry` must never return.
pub(crate) unsafe fn spawn_thread(
    stack_top: u64,
    entry: extern "C" fn(u64) -> !,
    argument: u64,
) -> i64 {
    // CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM: memory and signals are shared,
    // descriptors are not.
    const FLAGS: u64 = 0x100 | 0x800 | 0x10000 | 0x40000;
    let result: i64;
    // SAFETY: the child starts on its own stack and goes straight into `entry`; the parent only
    // sees the answer.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") CLONE => result,
            in("rdi") FLAGS,
            in("rsi") stack_top & !15,
            in("rdx") 0_u64,
            in("r10") 0_u64,
            in("r8") 0_u64,
            in("r12") argument,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Ends this thread with `status`, which is the process's if it is the last.
pub(crate) fn exit(status: u64) -> ! {
    // SAFETY: ends this thread alone.
    unsafe { call(EXIT, [status, 0, 0, 0, 0, 0]) };
    die()
}

/// Kills the whole process, also when the supervisor is gone: its filter then answers ENOSYS to the
/// calls that end a thread or a process. The first process of a namespace cannot send itself
/// SIGKILL, but an invalid instruction ends it, too, because this thread blocks every signal.
pub(crate) fn die() -> ! {
    // SAFETY: no pointers; the last instruction does not return.
    unsafe {
        let own = call(GETPID, [0; 6]).cast_unsigned();
        call(KILL, [own, SIGKILL, 0, 0, 0, 0]);
        asm!("ud2", options(noreturn, nomem, nostack))
    }
}
