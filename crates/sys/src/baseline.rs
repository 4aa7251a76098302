//! The cost of a page fault without any emulation: the yardstick for the cost of a remote one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::mm::Advice;

use crate::clock::cycles;
use crate::error::During;
use crate::memory::{MemoryFile, SharedView};
use crate::userfault::{FEATURES_WRITES, Userfault, Watch};
use crate::{Error, Result};

const PAGE: usize = 4096;
const WORDS_PER_PAGE: usize = PAGE / 8;

/// When pages are dropped, so that their next touch is a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// All pages, by the touching thread, before each round.
    Before,
    /// By another thread, `chunk` pages at a time, once `local` further pages have been touched: as
    /// every implementation of far memory must.
    Meanwhile {
        /// Pages that stay mapped.
        local: usize,
        /// Pages dropped at a time.
        chunk: usize,
    },
}

/// Times minor faults on a mapping of the kind that an arena is: a memory file, mapped shared,
/// watched for writes by userfaultfd (which switches fault-around off), its pages dropped with
/// `MADV_DONTNEED`. Each of `rounds` touches all `pages` once, in order, by a read or by a write.
///
/// One sample is the processor's time-stamp counter across one touch, in ticks; `pages × rounds` of
/// them, in the order in which they were taken. A first round, in which the pages come into being,
/// is not among them. `before_round` is called at the beginning of each of `rounds`.
///
/// # Errors
/// When the kernel refuses the memory or the userfaultfd (which needs access to `/dev/userfaultfd`,
/// or root).
pub fn minor_fault_samples(
    pages: usize,
    rounds: usize,
    write: bool,
    dropped: Dropped,
    before_round: &mut dyn FnMut(),
) -> Result<Vec<u64>> {
    let bytes = pages * PAGE;
    let memory = MemoryFile::new("afar-baseline", bytes as u64)?;
    let view = SharedView::map(&memory, bytes)?;
    let fault = Userfault::open(FEATURES_WRITES)?;
    fault.register(view.address(), bytes as u64, Watch::Writes)?;
    advise(&view, 0, bytes, Advice::LinuxNoHugepage)?;
    let words = view.words64();
    for word in words.iter().step_by(WORDS_PER_PAGE) {
        word.store(1, Ordering::Relaxed);
    }
    let mut samples = Vec::with_capacity(pages * rounds);
    match dropped {
        Dropped::Before => {
            for _ in 0..rounds {
                before_round();
                advise(&view, 0, bytes, Advice::LinuxDontNeed)?;
                for word in words.iter().step_by(WORDS_PER_PAGE) {
                    samples.push(touch(word, write));
                }
            }
        }
        Dropped::Meanwhile { local, chunk } => {
            let dropper = Dropper { view: &view, fault: &fault, pages, local, chunk };
            samples = dropper.sample(rounds, write, before_round)?;
        }
    }
    Ok(samples)
}

/// Forks a child that ends at once, and waits for its end.
///
/// # Errors
/// When the kernel is out of processes or memory.
#[expect(unsafe_code, reason = "fork, and the end of a process without its handlers")]
pub fn fork_and_wait() -> Result<()> {
    // SAFETY: the child makes one system call, which allocates nothing and takes no lock.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(0);
        }
        child
    };
    if child < 0 {
        return Err(Error::new("fork", std::io::Error::last_os_error()));
    }
    let child = rustix::process::Pid::from_raw(child);
    rustix::process::waitpid(child, rustix::process::WaitOptions::empty())
        .map(drop)
        .during("wait for a child")
}

/// Touches a word and returns the ticks that the touch took.
fn touch(word: &AtomicU64, write: bool) -> u64 {
    let before = cycles();
    if write {
        word.store(2, Ordering::Relaxed);
    } else {
        std::hint::black_box(word.load(Ordering::Relaxed));
    }
    cycles() - before
}

/// Drops pages while another thread touches them.
struct Dropper<'a> {
    view: &'a SharedView,
    fault: &'a Userfault,
    pages: usize,
    local: usize,
    chunk: usize,
}

impl Dropper<'_> {
    /// Touches all pages `rounds` times and returns the ticks of each touch.
    fn sample(
        &self,
        rounds: usize,
        write: bool,
        before_round: &mut dyn FnMut(),
    ) -> Result<Vec<u64>> {
        let total = self.pages * rounds;
        let (touched, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
        self.drop_chunks(0, self.pages)?;
        std::thread::scope(|scope| {
            let dropping = scope.spawn(|| self.follow(&touched, &gone, total));
            let mut samples = Vec::with_capacity(total);
            let words = self.view.words64();
            for (count, word) in
                words.iter().step_by(WORDS_PER_PAGE).cycle().take(total).enumerate()
            {
                if count % self.pages == 0 {
                    before_round();
                }
                // A page that is touched again must have been dropped since its last touch.
                while count >= gone.load(Ordering::Acquire) + self.pages && !dropping.is_finished()
                {
                    std::hint::spin_loop();
                }
                samples.push(touch(word, write));
                touched.store(count + 1, Ordering::Release);
                if count % self.chunk == 0 {
                    dropping.thread().unpark();
                }
            }
            dropping.thread().unpark();
            dropping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(samples)
        })
    }

    // Drops the pages that the other thread has touched, `local` pages behind it.
    fn follow(&self, touched: &AtomicUsize, gone: &AtomicUsize, total: usize) -> Result<()> {
        let mut next = 0;
        while next + self.local + self.chunk <= total {
            if touched.load(Ordering::Acquire) < next + self.local + self.chunk {
                std::thread::park();
                continue;
            }
            self.drop_chunks(next % self.pages, self.chunk)?;
            next += self.chunk;
            gone.store(next, Ordering::Release);
        }
        gone.store(total, Ordering::Release);
        Ok(())
    }

    /// Drops `count` pages from page `first` on, and protects them against writes.
    fn drop_chunks(&self, first: usize, count: usize) -> Result<()> {
        let (from, bytes) = (first * PAGE, count * PAGE);
        advise(self.view, from, bytes, Advice::LinuxDontNeed)?;
        self.fault.write_protect(self.view.address() + from as u64, bytes as u64)
    }
}

/// Advises the kernel on a range of the view (madvise(2)).
#[expect(unsafe_code, reason = "madvise")]
fn advise(view: &SharedView, from: usize, bytes: usize, advice: Advice) -> Result<()> {
    let address = usize::try_from(view.address() + from as u64)
        .map_err(|_wide| Error::new("advise the kernel", rustix::io::Errno::FAULT))?;
    // SAFETY: the range lies in the view's mapping. Neither advice changes contents: the pages
    // belong to a memory file, which keeps them when they are unmapped.
    unsafe { rustix::mm::madvise(std::ptr::with_exposed_provenance_mut(address), bytes, advice) }
        .during("advise the kernel on memory")
}

#[cfg(test)]
mod tests {
    use test_support::skip;

    use super::*;

    /// Minor faults of the calling thread so far: the tenth field of its stat file.
    fn minor_faults() -> usize {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        rest.split(' ').nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn every_sample_is_a_fault_of_its_own() {
        let meanwhile = Dropped::Meanwhile { local: 16, chunk: 8 };
        let cases = [false, true].map(|write| [(write, Dropped::Before), (write, meanwhile)]);
        for (write, dropped) in cases.into_iter().flatten() {
            let (before, mut rounds) = (minor_faults(), 0);
            match minor_fault_samples(64, 3, write, dropped, &mut || rounds += 1) {
                Ok(samples) => {
                    assert_eq!((samples.len(), rounds), (192, 3));
                    // With fault-around, a round would take four faults.
                    assert!(minor_faults() - before >= 64 * 4);
                }
                Err(error) => {
                    assert!(matches!(error.errno(), Some(libc::EPERM | libc::ENOSYS)));
                    skip("every_sample_is_a_fault_of_its_own", &error.to_string());
                }
            }
        }
    }
}
