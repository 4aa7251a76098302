//! Resource usage of threads and processes.

use std::fs;

use rustix::io::Errno;

use crate::error::During;
use crate::{Error, Result};

/// Usage of a thread or process since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Processor time outside the kernel.
    pub user_ns: u64,
    /// Processor time in the kernel.
    pub system_ns: u64,
    /// Times that it gave a processor up, to wait.
    pub voluntary_switches: u64,
    /// Times that it was preempted.
    pub involuntary_switches: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
}

impl Usage {
    /// Processor time in and outside the kernel, in nanoseconds.
    #[must_use]
    pub const fn processor_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Voluntary and involuntary switches.
    #[must_use]
    pub const fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    /// The usage since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
        }
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
        }
    }
}

/// The usage of the calling thread.
#[must_use]
pub fn of_thread() -> Usage {
    own(libc::RUSAGE_THREAD)
}

/// The usage of the calling process, including the kernel's threads for it (those of io_uring).
#[must_use]
pub fn of_this_process() -> Usage {
    own(libc::RUSAGE_SELF)
}

/// The usage of the calling process and of its children that have ended and were waited for, with
/// theirs.
#[must_use]
pub fn of_this_process_and_children() -> Usage {
    own(libc::RUSAGE_SELF).plus(&own(libc::RUSAGE_CHILDREN))
}

/// The usage of any process. The sum of its processor times is exact; the parts are the kernel's,
/// in steps of 10 ms; switches are those of threads that still run.
///
/// # Errors
/// If the process is gone.
pub fn of_process(pid: u32) -> Result<Usage> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
    let stat = read("stat").map_err(|source| Error::new("look at a process", source))?;
    let stat = Stat::parse(&stat).ok_or(Errno::IO).during("look at a process")?;
    let processor_ns = processor_ns(pid)?;
    let user_ns = (stat.user_ticks * TICK_NS).min(processor_ns);
    let (voluntary_switches, involuntary_switches) = switches(pid);
    Ok(Usage {
        user_ns,
        system_ns: processor_ns - user_ns,
        voluntary_switches,
        involuntary_switches,
        minor_faults: stat.minor_faults,
        major_faults: stat.major_faults,
    })
}

/// How long the calling thread has been ready without a processor, in nanoseconds; `None` if the
/// kernel does not record that (`CONFIG_SCHED_INFO`).
#[must_use]
pub fn waited_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// The name of a process, as the kernel has it: at most 15 bytes; empty if it is gone.
#[must_use]
pub fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// A tick, the unit of processor time in /proc (USER_HZ is 100 wherever Linux runs programs).
const TICK_NS: u64 = 10_000_000;

/// The fields of /proc/PID/stat that are used.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    minor_faults: u64,
    major_faults: u64,
    user_ticks: u64,
}

impl Stat {
    /// Parses the text of /proc/PID/stat; `None` if it has another form.
    fn parse(text: &str) -> Option<Self> {
        // A name may have spaces and brackets in it. What follows it begins with field 3
        // (proc_pid_stat(5)): minflt is 10, majflt 12, utime 14.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Some(Self { minor_faults: field(10)?, major_faults: field(12)?, user_ticks: field(14)? })
    }
}

// Voluntary and involuntary switches of the threads that still run.
fn switches(pid: u32) -> (u64, u64) {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut sums = (0, 0);
    for task in tasks {
        // A thread may have ended meanwhile.
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        sums.0 += field(&status, "voluntary_ctxt_switches:");
        sums.1 += field(&status, "nonvoluntary_ctxt_switches:");
    }
    sums
}

/// The number in a field of /proc/PID/status; 0 if there is none.
fn field(status: &str, name: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// Processor time of a process, in nanoseconds.
#[expect(unsafe_code, reason = "clocks of other processes have no safe wrapper")]
fn processor_ns(pid: u32) -> Result<u64> {
    let pid = libc::pid_t::try_from(pid).unwrap_or(libc::pid_t::MAX);
    let mut clock = 0;
    // SAFETY: `clock` is a local.
    let result = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if result != 0 {
        return Err(Error::new("find a process's clock", Errno::from_raw_os_error(result)));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } < 0 {
        return Err(Error::new("read a process's clock", std::io::Error::last_os_error()));
    }
    let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(unsigned(time.tv_sec) * 1_000_000_000 + unsigned(time.tv_nsec))
}

/// The usage that getrusage(2) reports for `who`.
#[expect(unsafe_code, reason = "getrusage has no safe wrapper")]
fn own(who: libc::c_int) -> Usage {
    // SAFETY: all-zero is a valid value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a local. It cannot fail: `who` is one of the kernel's.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
    let ns =
        |time: libc::timeval| unsigned(time.tv_sec) * 1_000_000_000 + unsigned(time.tv_usec) * 1000;
    Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        voluntary_switches: unsigned(usage.ru_nvcsw),
        involuntary_switches: unsigned(usage.ru_nivcsw),
        minor_faults: unsigned(usage.ru_minflt),
        major_faults: unsigned(usage.ru_majflt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_the_name_is() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 3 0 25 17 3 4 20 0 1 0 99 0 0";
        let expected = Stat { minor_faults: 100, major_faults: 3, user_ticks: 25 };
        assert_eq!(Stat::parse(stat), Some(expected));
        for text in ["", "7 (a", "7 (a) S 1 7"] {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
        let status = "voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:"), 12);
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:"), 3);
    }

    #[test]
    fn work_shows_wherever_it_is_looked_for() {
        let looks = || (of_thread(), of_this_process(), of_process(std::process::id()));
        let (thread, process, other) = looks();
        let other = other.expect("it is this one");
        let until_ns = crate::clock::thread_ns() + 50_000_000;
        while crate::clock::thread_ns() < until_ns {
            std::hint::spin_loop();
        }
        let (thread_then, process_then, other_then) = looks();
        let other_then = other_then.expect("it is this one");
        for (then, before) in [(thread_then, thread), (process_then, process), (other_then, other)]
        {
            let used = then.since(&before);
            assert!(used.processor_ns() >= 49_000_000, "{used:?}");
        }
        assert!(process_then.processor_ns() >= thread_then.processor_ns());
        let twice = thread.plus(&thread);
        assert_eq!(twice.since(&thread), thread);
    }

    #[test]
    fn a_thread_that_shares_its_processor_waits() {
        if waited_ns().is_none() {
            return;
        }
        let spin = || {
            let until_ns = crate::clock::thread_ns() + 50_000_000;
            while crate::clock::thread_ns() < until_ns {
                std::hint::spin_loop();
            }
            waited_ns()
        };
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) * 2;
        let threads: Vec<_> = (0..count).map(|_| std::thread::spawn(spin)).collect();
        let waited = threads.into_iter().filter_map(|thread| thread.join().unwrap());
        assert!(waited.sum::<u64>() > 10_000_000, "two threads for each processor");
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(of_process(u32::MAX).is_err());
        assert_eq!(name_of(u32::MAX), "");
    }
}
