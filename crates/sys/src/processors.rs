//! The use of processor time, from /proc/stat, and the processors that a thread may use.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Result;
use crate::error::During;

const TICK: Duration = Duration::from_millis(10);

/// Time of all processors since the machine started, in ticks (1/100 s on every architecture).
///
/// ```
/// let before = sys::processors::ProcessorTime::now();
/// let stolen = sys::processors::ProcessorTime::now().stolen_since(before);
/// assert!((0.0..=1.0).contains(&stolen));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorTime {
    /// Ticks in which something ran.
    busy: u64,
    /// Ticks in which something was ready and the hypervisor ran another guest.
    stolen: u64,
    /// Ticks of processes, in the kernel or outside, without interrupts.
    processes: u64,
    /// Ticks of kernel threads.
    kernel_threads: u64,
    /// How many processors there are.
    count: usize,
}

impl ProcessorTime {
    /// The time until now; zeros if /proc/stat cannot be read.
    #[must_use]
    pub fn now() -> Self {
        fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| parse(&text))
    }

    /// As [`Self::now`], with the time of kernel threads, which takes some milliseconds to sum up.
    #[must_use]
    pub fn with_kernel_threads() -> Self {
        Self { kernel_threads: kernel_threads(), ..Self::now() }
    }

    /// How many processors there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Processor time of programs since `earlier`, in steps of 10 ms. Kernel threads are left out
    /// if both were read by [`Self::with_kernel_threads`].
    #[must_use]
    pub fn programs_since(self, earlier: Self) -> Duration {
        let kernel = self.kernel_threads.saturating_sub(earlier.kernel_threads);
        let ticks = self.processes.saturating_sub(earlier.processes).saturating_sub(kernel);
        TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// The share of the time wanted since `earlier` that went to other guests: 0 to 1, and 0 on a
    /// physical machine.
    #[must_use]
    pub fn stolen_since(self, earlier: Self) -> f64 {
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        let wanted = self.busy.saturating_sub(earlier.busy) + stolen;
        if wanted == 0 { 0.0 } else { stolen as f64 / wanted as f64 }
    }
}

/// A set of processors that a thread may use.
#[derive(Debug, Clone, Copy)]
pub struct Processors(CpuSet);

impl Processors {
    /// The processors that thread `tid` may use.
    ///
    /// # Errors
    /// If there is no such thread.
    pub fn of(tid: u32) -> Result<Self> {
        let set = sched_getaffinity(thread(tid)).during("read a thread's processors")?;
        Ok(Self(set))
    }

    /// How many processors are in the set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.count()
    }

    /// The set of processor `number` alone; `None` if this set does not have it.
    #[must_use]
    pub fn only(&self, number: usize) -> Option<Self> {
        let mut set = CpuSet::new();
        (number < CpuSet::MAX_CPU && self.0.is_set(number)).then(|| {
            set.set(number);
            Self(set)
        })
    }

    /// Restricts thread `tid` to these processors.
    ///
    /// # Errors
    /// If there is no such thread, or none of these processors.
    pub fn give(&self, tid: u32) -> Result<()> {
        sched_setaffinity(thread(tid), &self.0).during("choose a thread's processors")
    }
}

/// A thread number as `rustix` takes it.
fn thread(tid: u32) -> Option<Pid> {
    Pid::from_raw(tid.cast_signed())
}

/// The processor that the calling thread runs on.
#[must_use]
pub fn current() -> usize {
    rustix::thread::sched_getcpu()
}

/// Moves the calling thread to another processor than `processor`. The kernel may move it back.
///
/// # Errors
/// If the thread may use no other processor.
pub fn leave(processor: usize) -> Result<()> {
    let allowed = sched_getaffinity(None).during("read a thread's processors")?;
    let mut others = allowed;
    others.unset(processor);
    sched_setaffinity(None, &others).during("move a thread to another processor")?;
    sched_setaffinity(None, &allowed).during("choose a thread's processors")
}

/// Restricts the calling thread to one processor.
///
/// # Errors
/// When there is no such processor, or this thread may not use it.
pub fn pin(processor: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).during("keep a thread on one processor")
}

// Parses /proc/stat (proc_stat(5): user nice system idle iowait irq softirq steal; guest time is
// part of user).
fn parse(stat: &str) -> ProcessorTime {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or("");
    let ticks: Vec<u64> = all.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let of = |index: usize| ticks.get(index).copied().unwrap_or(0);
    let is_one = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let processes = of(0) + of(1) + of(2);
    ProcessorTime {
        busy: processes + of(5) + of(6),
        stolen: of(7),
        processes,
        kernel_threads: 0,
        count: stat.lines().filter(is_one).count(),
    }
}

/// How long something was ready without a processor since the machine started (pressure stall
/// information, `some`); 0 if the kernel does not report it.
#[must_use]
pub fn pressure() -> Duration {
    let text = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    Duration::from_micros(some_us(&text))
}

/// The total of the line `some`, in microseconds.
fn some_us(pressure: &str) -> u64 {
    let some = pressure.lines().find(|line| line.starts_with("some ")).unwrap_or("");
    let total = some.split_whitespace().find_map(|word| word.strip_prefix("total="));
    total.and_then(|total| total.parse().ok()).unwrap_or(0)
}

// Ticks of all kernel threads that exist.
fn kernel_threads() -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_process));
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| kernel_thread_ticks(&stat)).sum()
}

// Ticks of a kernel thread (proc_pid_stat(5)); `None` for a process.
fn kernel_thread_ticks(stat: &str) -> Option<u64> {
    // include/linux/sched.h.
    const PF_KTHREAD: u64 = 0x0020_0000;
    // The name may hold anything; the fields after it begin with the third.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    (field(9)? & PF_KTHREAD != 0).then(|| field(15)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_kept_on_one_of_its_processors_and_let_go() {
        // In a thread of its own, whose processors are nobody else's.
        let thread = std::thread::spawn(|| {
            let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            let all = Processors::of(tid).unwrap();
            let number = (0..CpuSet::MAX_CPU).find(|&number| all.only(number).is_some()).unwrap();
            all.only(number).unwrap().give(tid).unwrap();
            let kept = Processors::of(tid).unwrap();
            assert!(kept.only(number).is_some() && kept.only(number + 1).is_none());
            all.give(tid).unwrap();
            assert_eq!(Processors::of(tid).unwrap().0, all.0);
            assert!(all.only(CpuSet::MAX_CPU).is_none());
        });
        thread.join().unwrap();
    }

    #[test]
    fn stolen_is_a_share_of_what_was_wanted() {
        let earlier = parse("cpu  10 1 5 1000 7 2 2 4 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
        let expected =
            ProcessorTime { busy: 20, stolen: 4, processes: 16, kernel_threads: 0, count: 1 };
        assert_eq!(earlier, expected);
        let later = parse("cpu  70 1 20 5000 9 2 2 29 0 0\n");
        assert!((later.stolen_since(earlier) - 0.25).abs() < 1e-12);
        assert_eq!(earlier.stolen_since(earlier), 0.0);
        assert_eq!(parse(""), ProcessorTime::default());
        assert_eq!(later.programs_since(earlier), Duration::from_millis(750));
        let kernel = ProcessorTime { kernel_threads: 5, ..later };
        assert_eq!(kernel.programs_since(earlier), Duration::from_millis(700));
        let short = parse("cpu  1 2 3");
        assert_eq!((short.busy, short.stolen, short.count), (6, 0, 0));
    }

    #[test]
    fn pressure_is_that_of_some() {
        let text = "some avg10=1.00 avg60=0 avg300=0 total=42\nfull avg10=0 total=7\n";
        assert_eq!((some_us(text), some_us("")), (42, 0));
    }

    #[test]
    fn kernel_threads_are_told_from_programs() {
        let stat = |flags: u64| format!("9 (a) b) S 2 0 0 0 -1 {flags} 0 0 0 0 3 4 0 0 20 0 1");
        assert_eq!(kernel_thread_ticks(&stat(0x0020_8040)), Some(4));
        assert_eq!(kernel_thread_ticks(&stat(0x0040_0100)), None);
        assert_eq!(kernel_thread_ticks("9 (cut"), None);
    }
}
