//! What a page fault costs without any emulation: the yardstick for the cost of a remote one.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::mm::{Advice, UserfaultfdFlags};

use crate::clock::cycles;
use crate::error::{During, check};
use crate::memory::{MemoryFile, SharedView};
use crate::userfault::{Userfault, Watch};
use crate::{Error, Result};

const PAGE: usize = 4096;
const WORDS_PER_PAGE: usize = PAGE / 8;

const API: u64 = 0xaa;
const IOCTL_API: libc::c_ulong = 0xc018_aa3f;
const IOCTL_NEW: libc::c_ulong = 0xaa00;
/// Write-protection, of file pages, of pages not mapped yet, lifted by the kernel itself.
const FEATURES: u64 = 1 | 1 << 12 | 1 << 13 | 1 << 15;

/// Times minor faults on a mapping of the kind that an arena is: a memory file, mapped shared,
/// watched for writes by userfaultfd (which switches fault-around off), its pages dropped with
/// `MADV_DONTNEED` before each round. Each of `rounds` touches all `pages` once, in order, by a
/// read or by a write.
///
/// One sample is the processor's time-stamp counter across one touch, in ticks; `pages × rounds` of
/// them, in the order in which they were taken. A first round, in which the pages come into being,
/// is not among them.
///
/// # Errors
/// When the kernel refuses the memory or the userfaultfd (which needs access to `/dev/userfaultfd`,
/// or root).
pub fn minor_fault_samples(pages: usize, rounds: usize, write: bool) -> Result<Vec<u64>> {
    let bytes = pages * PAGE;
    let memory = MemoryFile::new("afar-baseline", bytes as u64)?;
    let view = SharedView::map(&memory, bytes)?;
    let fault = open_userfaultfd()?;
    fault.register(view.address(), bytes as u64, Watch::Writes)?;
    advise(&view, bytes, Advice::LinuxNoHugepage)?;
    let words = view.words64();
    for word in words.iter().step_by(WORDS_PER_PAGE) {
        word.store(1, Ordering::Relaxed);
    }
    let mut samples = Vec::with_capacity(pages * rounds);
    for _ in 0..rounds {
        advise(&view, bytes, Advice::LinuxDontNeed)?;
        for word in words.iter().step_by(WORDS_PER_PAGE) {
            let before = cycles();
            if write {
                word.store(2, Ordering::Relaxed);
            } else {
                std::hint::black_box(word.load(Ordering::Relaxed));
            }
            samples.push(cycles() - before);
        }
    }
    Ok(samples)
}

// The device, whose permissions an administrator can set, comes first; then the system call.
#[expect(unsafe_code, reason = "userfaultfd has no safe wrapper")]
fn open_userfaultfd() -> Result<Userfault> {
    const CREATE: &str = "create a userfaultfd";
    let device = std::fs::File::options().read(true).write(true).open("/dev/userfaultfd");
    let fd = match device {
        Ok(device) => {
            let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
            // SAFETY: the request takes flags by value.
            let fd = unsafe { libc::ioctl(device.as_raw_fd(), IOCTL_NEW, flags) };
            check(CREATE, fd.into())?;
            // SAFETY: a descriptor the kernel has just given us.
            unsafe { OwnedFd::from_raw_fd(fd) }
        }
        Err(_) => {
            let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
            // SAFETY: it only watches memory that is registered with it, which this module alone
            // does.
            unsafe { rustix::mm::userfaultfd(flags) }.during(CREATE)?
        }
    };
    let mut api = [API, FEATURES, 0];
    // SAFETY: `api` is the structure that the request names.
    let agreed = unsafe { libc::ioctl(fd.as_raw_fd(), IOCTL_API, api.as_mut_ptr()) };
    check("agree on the features of userfaultfd", agreed.into())?;
    Ok(Userfault::new(fd))
}

#[expect(unsafe_code, reason = "madvise")]
fn advise(view: &SharedView, bytes: usize, advice: Advice) -> Result<()> {
    let address = usize::try_from(view.address())
        .map_err(|_wide| Error::new("advise the kernel", rustix::io::Errno::FAULT))?;
    // SAFETY: the range is exactly the view's mapping. Neither advice changes contents: the pages
    // belong to a memory file, which keeps them when they are unmapped.
    unsafe { rustix::mm::madvise(std::ptr::with_exposed_provenance_mut(address), bytes, advice) }
        .during("advise the kernel on memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minor faults of the calling thread so far: the tenth field of its stat file.
    fn minor_faults() -> usize {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        rest.split(' ').nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn every_sample_is_a_fault_of_its_own() {
        for write in [false, true] {
            let before = minor_faults();
            match minor_fault_samples(64, 3, write) {
                Ok(samples) => {
                    assert_eq!(samples.len(), 192);
                    // With fault-around, a round would take four faults.
                    assert!(minor_faults() - before >= 64 * 4);
                }
                Err(error) => {
                    assert!(matches!(error.errno(), Some(libc::EPERM | libc::ENOSYS)));
                    skip(&format!("every_sample_is_a_fault_of_its_own: {error}"));
                }
            }
        }
    }

    fn skip(why: &str) {
        use std::io::Write;
        println!("SKIPPED {why}");
        if let Some(log) = std::env::var_os("AFAR_SKIP_LOG") {
            let mut log = std::fs::File::options().append(true).open(log).unwrap();
            writeln!(log, "SKIPPED {why}").unwrap();
        }
    }
}
