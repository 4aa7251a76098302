//! What became of the processors' time, from /proc/stat, and which of them a thread uses.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Result;
use crate::error::During;

/// Time of all processors since the machine started, in ticks (1/100 s on every architecture).
///
/// ```
/// let before = sys::processors::ProcessorTime::now();
/// let stolen = sys::processors::ProcessorTime::now().stolen_since(before);
/// assert!((0.0..=1.0).contains(&stolen));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorTime {
    /// Something ran.
    busy: u64,
    /// Something would have run, and the hypervisor ran another guest.
    stolen: u64,
}

impl ProcessorTime {
    /// Until now; nothing where /proc/stat cannot be read.
    #[must_use]
    pub fn now() -> Self {
        std::fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| parse(&text))
    }

    /// The share of the time that programs wanted since `earlier` which went to other guests: 0 to
    /// 1, and 0 on a machine of one's own.
    #[must_use]
    pub fn stolen_since(self, earlier: Self) -> f64 {
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        let wanted = self.busy.saturating_sub(earlier.busy) + stolen;
        if wanted == 0 { 0.0 } else { stolen as f64 / wanted as f64 }
    }
}

/// Processors that a thread may use.
#[derive(Debug, Clone, Copy)]
pub struct Processors(CpuSet);

impl Processors {
    /// Those of the thread `tid`.
    ///
    /// # Errors
    /// When there is no such thread.
    pub fn of(tid: u32) -> Result<Self> {
        let set = sched_getaffinity(thread(tid)).during("read a thread's processors")?;
        Ok(Self(set))
    }

    /// The one processor `number`, if it is one of these.
    #[must_use]
    pub fn only(&self, number: usize) -> Option<Self> {
        let mut set = CpuSet::new();
        (number < CpuSet::MAX_CPU && self.0.is_set(number)).then(|| {
            set.set(number);
            Self(set)
        })
    }

    /// Has the thread `tid` use these and no others.
    ///
    /// # Errors
    /// When there is no such thread, or none of these processors.
    pub fn give(&self, tid: u32) -> Result<()> {
        sched_setaffinity(thread(tid), &self.0).during("choose a thread's processors")
    }
}

fn thread(tid: u32) -> Option<Pid> {
    Pid::from_raw(tid.cast_signed())
}

/// Keeps the calling thread on one processor.
///
/// # Errors
/// When there is no such processor, or this thread may not use it.
pub fn pin(processor: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).during("keep a thread on one processor")
}

// proc_stat(5): user nice system idle iowait irq softirq steal; guest time is part of user.
fn parse(stat: &str) -> ProcessorTime {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or("");
    let ticks: Vec<u64> = all.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let of = |index: usize| ticks.get(index).copied().unwrap_or(0);
    ProcessorTime { busy: of(0) + of(1) + of(2) + of(5) + of(6), stolen: of(7) }
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
        assert_eq!(earlier, ProcessorTime { busy: 20, stolen: 4 });
        let later = parse("cpu  70 1 20 5000 9 2 2 29 0 0\n");
        assert!((later.stolen_since(earlier) - 0.25).abs() < 1e-12);
        assert_eq!(earlier.stolen_since(earlier), 0.0);
        assert_eq!(parse(""), ProcessorTime::default());
        assert_eq!(parse("cpu  1 2 3"), ProcessorTime { busy: 6, stolen: 0 });
    }
}
