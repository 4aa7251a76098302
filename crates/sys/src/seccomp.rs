//! System-call filters that let another process decide (seccomp user notification, Linux 5.9 and
//! later).
//!
//! A filter is a table of [`Block`]s, one per system call; what no block names is allowed without
//! delay (the kernel caches such calls). A block looks at the arguments and ends in [`Verdict`]s.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::error::check;
use crate::{Error, Result};

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const VALID: libc::c_ulong = 0x4008_2102;
const ADD_FD: libc::c_ulong = 0x4018_2103;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
// A flag by value where other requests take an address.
const SYNC_WAKE_UP: *mut libc::c_void = std::ptr::without_provenance_mut(1);

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const X32_BIT: u32 = 0x4000_0000;
const OFFSET_NR: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;

/// What a filter does with a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel performs it.
    Allow,
    /// The supervisor decides.
    Notify,
    /// It fails with this `errno` at once.
    Fail(u16),
}

/// A condition on one half of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// `low 32 bits & mask != 0`.
    AnyBit(u32),
    /// The low 32 bits equal this.
    LowEquals(u32),
    /// The high 32 bits equal this.
    HighEquals(u32),
    /// All 64 bits are not zero, and the high 32 bits are below this.
    NonZeroBelow(u32),
    /// The low 32 bits are not zero.
    LowNonZero,
}

/// If the test holds for the argument, the verdict is final; else the next rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Number of the argument, 0 to 5.
    pub argument: u8,
    /// What it is tested for.
    pub test: Test,
    /// The verdict if the test holds.
    pub verdict: Verdict,
}

/// Rules of one system call, in order, and the verdict if none holds.
#[derive(Debug, Clone)]
pub struct Block {
    /// Number of the system call (x86-64).
    pub nr: libc::c_long,
    /// Rules in order.
    pub rules: Vec<Rule>,
    /// Verdict if no rule holds.
    pub otherwise: Verdict,
}

/// A filter ready to be installed.
#[derive(Debug, Clone)]
pub struct Filter {
    code: Vec<libc::sock_filter>,
}

impl Filter {
    /// Translates the table to the kernel's filter machine. Of calls of other architectures the
    /// supervisor decides on those in `foreign` (numbers of the 32-bit interface); the others are
    /// allowed.
    #[must_use]
    pub fn new(blocks: &[Block], foreign: &[u32]) -> Self {
        let mut asked = vec![load(OFFSET_NR)];
        for &number in foreign {
            asked.extend([jump(libc::BPF_JEQ, number, 0, 1), verdict(Verdict::Notify)]);
        }
        asked.push(verdict(Verdict::Allow));
        let skip = u8::try_from(asked.len()).unwrap_or(u8::MAX);
        let mut code = vec![load(OFFSET_ARCH), jump(libc::BPF_JEQ, AUDIT_ARCH_X86_64, skip, 0)];
        code.append(&mut asked);
        code.extend([load(OFFSET_NR), jump(libc::BPF_JGE, X32_BIT, 0, 1), verdict(Verdict::Allow)]);
        for block in blocks {
            let mut body: Vec<libc::sock_filter> = Vec::new();
            for rule in &block.rules {
                emit(rule, &mut body);
            }
            body.push(verdict(block.otherwise));
            let skip = u8::try_from(body.len()).unwrap_or(u8::MAX);
            let number = u32::try_from(block.nr).unwrap_or(u32::MAX);
            code.push(jump(libc::BPF_JEQ, number, 0, skip));
            code.append(&mut body);
        }
        code.push(verdict(Verdict::Allow));
        Self { code }
    }

    /// Installs the filter on the calling process. Returns the descriptor at which its
    /// notifications arrive.
    ///
    /// Only async-signal-safe calls are made, so this may run between fork and exec.
    ///
    /// # Errors
    /// When the kernel lacks user notification, or a filter of this kind is installed already
    /// (`EBUSY`).
    #[expect(unsafe_code, reason = "seccomp(2) has no safe wrapper")]
    pub fn install(&self) -> Result<OwnedFd> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.code.len()).unwrap_or(u16::MAX),
            filter: self.code.as_ptr().cast_mut(),
        };
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let seccomp = |flags: libc::c_ulong| {
            // SAFETY: `program` points at `code`, which outlives the call; the kernel copies it.
            unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) }
        };
        // Linux 5.19: a signal does not restart a call that the supervisor is working on.
        let install = || match seccomp(flags | WAIT_KILLABLE) {
            -1 if Error::last("").errno() == Some(libc::EINVAL) => seccomp(flags),
            answer => answer,
        };
        let mut fd = install();
        if fd < 0 && Error::last("").errno() == Some(libc::EACCES) {
            // Without CAP_SYS_ADMIN the program must give up set-user-id first.
            // SAFETY: no pointers.
            let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            check("give up new privileges", done.into())?;
            fd = install();
        }
        let fd = check("install the system-call filter", fd)?;
        let fd = RawFd::try_from(fd).unwrap_or(-1);
        // SAFETY: a descriptor the kernel has just given us.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// Appends the code of a rule.
fn emit(rule: &Rule, body: &mut Vec<libc::sock_filter>) {
    let low = OFFSET_ARGS + 8 * u32::from(rule.argument);
    let high = low + 4;
    let action = verdict(rule.verdict);
    match rule.test {
        Test::AnyBit(mask) => body.extend([load(low), jump(libc::BPF_JSET, mask, 0, 1), action]),
        Test::LowEquals(k) => body.extend([load(low), jump(libc::BPF_JEQ, k, 0, 1), action]),
        Test::LowNonZero => body.extend([load(low), jump(libc::BPF_JEQ, 0, 1, 0), action]),
        Test::HighEquals(k) => body.extend([load(high), jump(libc::BPF_JEQ, k, 0, 1), action]),
        Test::NonZeroBelow(to) => body.extend([
            load(high),
            jump(libc::BPF_JGE, to, 4, 0),
            jump(libc::BPF_JEQ, 0, 0, 2),
            load(low),
            jump(libc::BPF_JEQ, 0, 1, 0),
            action,
        ]),
    }
}

/// An instruction that loads the 32-bit word at `offset` of the call's data.
#[expect(clippy::cast_possible_truncation, reason = "opcodes of the filter machine fit 16 bits")]
fn load(offset: u32) -> libc::sock_filter {
    let code = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    libc::sock_filter { code, jt: 0, jf: 0, k: offset }
}

/// An instruction that compares with `k` and skips `jt` or `jf` instructions.
#[expect(clippy::cast_possible_truncation, reason = "opcodes of the filter machine fit 16 bits")]
fn jump(test: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | test | libc::BPF_K) as u16, jt, jf, k }
}

/// An instruction that returns a verdict.
#[expect(clippy::cast_possible_truncation, reason = "opcodes of the filter machine fit 16 bits")]
fn verdict(verdict: Verdict) -> libc::sock_filter {
    let k = match verdict {
        Verdict::Allow => libc::SECCOMP_RET_ALLOW,
        Verdict::Notify => libc::SECCOMP_RET_USER_NOTIF,
        Verdict::Fail(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
    };
    libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k }
}

/// A system call that waits for the supervisor's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notification {
    /// The kernel's number of this notification.
    pub id: u64,
    /// Thread that made the call.
    pub tid: u32,
    /// Number of the call.
    pub nr: i32,
    /// Its arguments.
    pub args: [u64; 6],
    /// Address of the instruction after the call's.
    pub return_to: u64,
    /// Whether it is a call of the 64-bit interface.
    pub native: bool,
}

/// Receives the notifications of a filter.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
}

impl Listener {
    /// Wraps the descriptor that [`Filter::install`] has returned.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        let listener = Self { fd };
        // Linux 6.6: hand the processor over at each question and answer. Older kernels refuse,
        // which costs only time.
        let _older = listener.ioctl("prefer synchronous wake-ups", SET_FLAGS, SYNC_WAKE_UP);
        listener
    }

    /// Receives the next notification; `None` if the calling thread has died meanwhile.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[expect(unsafe_code, reason = "plain data filled by the kernel")]
    pub fn receive(&self) -> Result<Option<Notification>> {
        // SAFETY: all-zero is a valid value, and the one the kernel asks for.
        let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        match self.ioctl("receive a system call", RECEIVE, (&raw mut raw).cast()) {
            Ok(_) => Ok(Some(Notification {
                id: raw.id,
                tid: raw.pid,
                nr: raw.data.nr,
                args: raw.data.args,
                return_to: raw.data.instruction_pointer,
                native: raw.data.arch == AUDIT_ARCH_X86_64,
            })),
            Err(error) if matches!(error.errno(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets the kernel perform the call as it stands.
    ///
    /// # Errors
    /// See [`Listener::answer`].
    pub fn proceed(&self, id: u64) -> Result<()> {
        let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1);
        self.respond(libc::seccomp_notif_resp { id, val: 0, error: 0, flags })
    }

    /// Makes the call return `value`, or fail with `-value` if that is a negative `errno`.
    ///
    /// A maker that has died or was interrupted meanwhile is no error.
    ///
    /// # Errors
    /// When the kernel refuses the answer.
    pub fn answer(&self, id: u64, value: i64) -> Result<()> {
        let failed = (-4095..0).contains(&value);
        let (val, error) = if failed { (0, i32::try_from(value).unwrap_or(0)) } else { (value, 0) };
        self.respond(libc::seccomp_notif_resp { id, val, error, flags: 0 })
    }

    /// Adds a copy of `fd` to the descriptor table of the process that made the call. Returns its
    /// number there.
    ///
    /// # Errors
    /// When the caller has died or has no room.
    pub fn add_fd(&self, id: u64, fd: &impl AsFd) -> Result<i64> {
        let mut request = libc::seccomp_notif_addfd {
            id,
            flags: 0,
            srcfd: u32::try_from(fd.as_fd().as_raw_fd()).unwrap_or(u32::MAX),
            newfd: 0,
            newfd_flags: u32::try_from(libc::O_CLOEXEC).unwrap_or(0),
        };
        let operation = "give the program a descriptor";
        self.ioctl(operation, ADD_FD, (&raw mut request).cast()).map(i64::from)
    }

    /// Whether the call still waits for an answer.
    #[must_use]
    pub fn waiting(&self, id: u64) -> bool {
        let mut id = id;
        self.ioctl("check a waiting system call", VALID, (&raw mut id).cast()).is_ok()
    }

    /// Sends an answer. A call that no longer waits is no error.
    fn respond(&self, mut response: libc::seccomp_notif_resp) -> Result<()> {
        match self.ioctl("answer a system call", SEND, (&raw mut response).cast()) {
            Ok(_) => Ok(()),
            Err(error) if error.errno() == Some(libc::ENOENT) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes a request to the descriptor; `operation` names it in errors.
    #[expect(unsafe_code, reason = "the notification ioctls have no safe wrapper")]
    fn ioctl(
        &self,
        operation: &'static str,
        request: libc::c_ulong,
        argument: *mut libc::c_void,
    ) -> Result<i32> {
        // SAFETY: every caller passes the structure that `request` names, alive for the call.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), request, argument) };
        check(operation, result.into())?;
        Ok(result)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A model of the kernel's filter machine, enough for the instructions above.
    fn decide(filter: &Filter, nr: u32, args: [u64; 6]) -> u32 {
        decide_as(filter, AUDIT_ARCH_X86_64, nr, args)
    }

    fn decide_as(filter: &Filter, arch: u32, nr: u32, args: [u64; 6]) -> u32 {
        let mut data = vec![nr, arch, 0, 0];
        for arg in args {
            data.push(u32::try_from(arg & 0xffff_ffff).unwrap());
            data.push(u32::try_from(arg >> 32).unwrap());
        }
        let (mut at, mut accumulator) = (0_usize, 0_u32);
        loop {
            let op = filter.code[at];
            at += 1;
            match u32::from(op.code) {
                c if c == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    accumulator = data[op.k as usize / 4];
                }
                c if c & 7 == libc::BPF_RET => return op.k,
                c => {
                    let holds = match c & 0xf0 {
                        libc::BPF_JEQ => accumulator == op.k,
                        libc::BPF_JGE => accumulator >= op.k,
                        libc::BPF_JSET => accumulator & op.k != 0,
                        other => panic!("unknown jump {other:#x}"),
                    };
                    at += usize::from(if holds { op.jt } else { op.jf });
                }
            }
        }
    }

    fn filter() -> Filter {
        let rule = |argument, test, verdict| Rule { argument, test, verdict };
        Filter::new(
            &[
                Block {
                    nr: libc::SYS_mmap,
                    rules: vec![
                        rule(4, Test::HighEquals(0xfeed), Verdict::Allow),
                        rule(0, Test::NonZeroBelow(0x20), Verdict::Notify),
                        rule(3, Test::AnyBit(0x20), Verdict::Notify),
                    ],
                    otherwise: Verdict::Allow,
                },
                Block {
                    nr: libc::SYS_brk,
                    rules: vec![rule(0, Test::LowNonZero, Verdict::Notify)],
                    otherwise: Verdict::Allow,
                },
                Block { nr: libc::SYS_clone3, rules: vec![], otherwise: Verdict::Fail(38) },
            ],
            &[11],
        )
    }

    #[test]
    fn filter_decides_by_argument_halves_and_order() {
        let filter = filter();
        let mmap = u32::try_from(libc::SYS_mmap).unwrap();
        let notify = libc::SECCOMP_RET_USER_NOTIF;
        let allow = libc::SECCOMP_RET_ALLOW;
        assert_eq!(decide(&filter, mmap, [0, 0, 0, 0x22, u64::MAX, 0]), notify);
        assert_eq!(decide(&filter, mmap, [0, 0, 0, 2, 3, 0]), allow);
        assert_eq!(decide(&filter, mmap, [0x10 << 32, 0, 0, 2, 3, 0]), notify);
        assert_eq!(decide(&filter, mmap, [0x1f_ffff_ffff, 0, 0, 2, 3, 0]), notify);
        assert_eq!(decide(&filter, mmap, [0x20 << 32, 0, 0, 2, 3, 0]), allow);
        for low in [1, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000] {
            assert_eq!(decide(&filter, mmap, [low, 0, 0, 2, 3, 0]), notify);
        }
        assert_eq!(decide(&filter, mmap, [u64::MAX, 0, 0, 2, 3, 0]), allow);
        assert_eq!(decide(&filter, mmap, [0, 0, 0, 0x22, 0xfeed << 32 | 3, 0]), allow);
    }

    #[test]
    fn filter_other_calls_pass_and_refused_calls_carry_errno() {
        let filter = filter();
        let nr = |n: libc::c_long| u32::try_from(n).unwrap();
        assert_eq!(decide(&filter, nr(libc::SYS_read), [1; 6]), libc::SECCOMP_RET_ALLOW);
        assert_eq!(decide(&filter, nr(libc::SYS_clone3), [0; 6]), libc::SECCOMP_RET_ERRNO | 38);
        assert_eq!(decide(&filter, nr(libc::SYS_brk), [0; 6]), libc::SECCOMP_RET_ALLOW);
        let grown = decide(&filter, nr(libc::SYS_brk), [0x1000, 0, 0, 0, 0, 0]);
        assert_eq!(grown, libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(decide(&filter, X32_BIT + 9, [0; 6]), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn filter_asks_about_named_calls_of_the_32_bit_interface() {
        const AUDIT_ARCH_I386: u32 = 0x4000_0003;
        let filter = filter();
        let decide = |nr| decide_as(&filter, AUDIT_ARCH_I386, nr, [0; 6]);
        assert_eq!(decide(11), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(decide(12), libc::SECCOMP_RET_ALLOW);
        assert_eq!(decide(45), libc::SECCOMP_RET_ALLOW, "a number of a 64-bit block");
    }
}
