//! The operations of userfaultfd(2) that afar needs, on a descriptor that belongs to another
//! process.
//!
//! All of them act on the address space of the process that created the descriptor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::mm::UserfaultfdFlags;

use crate::Result;
use crate::error::{During, check};

const API_VERSION: u64 = 0xaa;
const API: libc::c_ulong = 0xc018_aa3f;
const NEW: libc::c_ulong = 0xaa00;
const REGISTER: libc::c_ulong = 0xc020_aa00;
const UNREGISTER: libc::c_ulong = 0x8010_aa01;
const WAKE: libc::c_ulong = 0x8010_aa02;
const COPY: libc::c_ulong = 0xc028_aa03;
const ZEROPAGE: libc::c_ulong = 0xc020_aa04;
const WRITEPROTECT: libc::c_ulong = 0xc018_aa06;
const CONTINUE: libc::c_ulong = 0xc020_aa07;

const EVENT_PAGEFAULT: u8 = 0x12;
const FLAG_WRITE: u64 = 1;
const FLAG_MINOR: u64 = 4;

/// Write-protection, the faulting thread's number, minor faults of memory files, and
/// write-protection of those (since Linux 5.19): what [`Watch::Faults`] needs.
pub const FEATURES_FAULTS: u64 = 1 | 1 << 8 | 1 << 10 | 1 << 12;
/// Write-protection of memory files, also where no page is mapped, lifted by the kernel itself
/// (since Linux 6.7): what [`Watch::Writes`] needs.
pub const FEATURES_WRITES: u64 = 1 | 1 << 12 | 1 << 13 | WP_ASYNC;

/// Which accesses a registered range reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// No access; the kernel only records writes (write-protect, asynchronous).
    Writes,
    /// Faults on pages that are missing, and on pages that exist but are not mapped; writes are
    /// recorded, too.
    Faults,
}

/// A page fault that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The address that was touched.
    pub address: u64,
    /// Whether it was a write.
    pub write: bool,
    /// Whether the page exists and only needs to be mapped.
    pub minor: bool,
    /// The thread that waits.
    pub tid: u32,
}

/// The kernel records a write to a protected page and lets it proceed (since Linux 6.7).
const WP_ASYNC: u64 = 1 << 15;

/// A userfaultfd of another process.
#[derive(Debug)]
pub struct Userfault {
    fd: OwnedFd,
    features: u64,
}

impl Userfault {
    /// Wraps a descriptor whose `features` (as of `UFFDIO_API`) its creator has agreed on.
    #[must_use]
    pub const fn new(fd: OwnedFd, features: u64) -> Self {
        Self { fd, features }
    }

    /// Opens a userfaultfd for this process's own memory: by the device, whose permissions an
    /// administrator can set, or else by the system call.
    ///
    /// # Errors
    /// If this process may do neither (`EPERM`, `EACCES`), or the kernel does not have all of
    /// `features` (`EINVAL`).
    #[expect(unsafe_code, reason = "userfaultfd has no safe wrapper")]
    pub fn open(features: u64) -> Result<Self> {
        const CREATE: &str = "create a userfaultfd";
        let device = std::fs::File::options().read(true).write(true).open("/dev/userfaultfd");
        let fd = match device {
            Ok(device) => {
                let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
                // SAFETY: the request takes flags by value.
                let fd = unsafe { libc::ioctl(device.as_raw_fd(), NEW, flags) };
                check(CREATE, fd.into())?;
                // SAFETY: a descriptor the kernel has just given us.
                unsafe { OwnedFd::from_raw_fd(fd) }
            }
            Err(_) => {
                let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
                // SAFETY: it only watches memory that is registered with it, and callers here
                // register memory files of their own.
                unsafe { rustix::mm::userfaultfd(flags) }.during(CREATE)?
            }
        };
        let mut api = [API_VERSION, features, 0];
        // SAFETY: `api` is the structure that the request names.
        let agreed = unsafe { libc::ioctl(fd.as_raw_fd(), API, api.as_mut_ptr()) };
        check("agree on the features of userfaultfd", agreed.into())?;
        Ok(Self { fd, features })
    }

    /// Whether a write to a page of [`Userfault::write_protect`] proceeds by itself. If not (before
    /// Linux 6.7), the writing thread waits for an answer, so nothing may be protected.
    #[must_use]
    pub const fn tracks_writes(&self) -> bool {
        self.features & WP_ASYNC != 0
    }

    /// Registers `bytes` bytes from `address` on to be watched.
    ///
    /// # Errors
    /// When the range is not mapped from a memory file, or the process is gone.
    pub fn register(&self, address: u64, bytes: u64, watch: Watch) -> Result<()> {
        let mode = match watch {
            Watch::Writes => 2,
            Watch::Faults => 1 | 2 | 4,
        };
        let mut request = [address, bytes, mode, 0];
        self.ioctl("watch a range of the program", REGISTER, &mut request)
    }

    /// Stops watching `bytes` bytes from `address` on, lifts their write-protection, and wakes the
    /// threads that wait there.
    ///
    /// The kernel wakes before it changes the range (seen on Linux 6.18). A thread that faults at
    /// that moment would wait for ever, so waiters are woken again.
    ///
    /// # Errors
    /// If nothing of the range is mapped, or the process is gone.
    pub fn unregister(&self, address: u64, bytes: u64) -> Result<()> {
        let mut range = [address, bytes];
        self.ioctl("stop watching a range of the program", UNREGISTER, &mut range)?;
        self.wake(address, bytes)
    }

    /// Wakes the threads that wait for pages of a range: they touch the pages again.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn wake(&self, address: u64, bytes: u64) -> Result<()> {
        let mut range = [address, bytes];
        self.ioctl("wake the program", WAKE, &mut range)
    }

    /// Write-protects a range, so that the next write to each page is recorded. Only where
    /// [`Userfault::tracks_writes`].
    ///
    /// # Errors
    /// When part of the range is no longer mapped.
    pub fn write_protect(&self, address: u64, bytes: u64) -> Result<()> {
        let mut request = [address, bytes, 1, 0];
        self.ioctl("write-protect a range of the program", WRITEPROTECT, &mut request)
    }

    /// Maps existing pages and wakes the threads that wait for them. A page that is mapped already
    /// is no error.
    ///
    /// # Errors
    /// When the page does not exist (`EFAULT`) or the process is gone (`ESRCH`).
    pub fn map(&self, address: u64, bytes: u64) -> Result<()> {
        let mut request = [address, bytes, 0, 0];
        self.resolve("map a page of the program", CONTINUE, &mut request)
    }

    /// As [`map`](Self::map), write-protected: the next write is recorded. Only where
    /// [`Userfault::tracks_writes`].
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn map_protected(&self, address: u64, bytes: u64) -> Result<()> {
        const MODE_WP: u64 = 1 << 1;
        let mut request = [address, bytes, MODE_WP, 0];
        self.resolve("map a page of the program", CONTINUE, &mut request)
    }

    /// As [`map`](Self::map) for many pages; skips those that are mapped already or do not exist.
    ///
    /// # Errors
    /// When the range is not watched, or the process is gone.
    pub fn map_all(&self, address: u64, bytes: u64) -> Result<()> {
        const PAGE: u64 = 4096;
        let end = address + bytes;
        let mut at = address;
        while at < end {
            let mut request = [at, end - at, 0, 0];
            match self.ioctl("map pages of the program", CONTINUE, &mut request) {
                Ok(()) => at = end,
                Err(error) => match error.errno() {
                    // The kernel has mapped so many bytes before the first page that it could not
                    // map.
                    Some(libc::EAGAIN) if request[3].cast_signed() > 0 => at += request[3],
                    Some(libc::EAGAIN | libc::EEXIST | libc::EFAULT) => at += PAGE,
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Creates pages of zeros and wakes the threads that wait for them. A page that exists already
    /// is no error.
    ///
    /// # Errors
    /// When memory runs out or the process is gone (`ESRCH`).
    pub fn zero(&self, address: u64, bytes: u64) -> Result<()> {
        let mut request = [address, bytes, 0, 0];
        self.resolve("create a page of the program", ZEROPAGE, &mut request)
    }

    /// Creates a page with `contents`, maps it, and wakes the threads that wait for it, atomically:
    /// no thread sees a part of it.
    ///
    /// # Errors
    /// When there is a page already (`EEXIST`), which stays as it is; when nothing is watched
    /// there, memory runs out, or the process is gone (`ESRCH`).
    pub fn create(&self, address: u64, contents: &[u8; 4096]) -> Result<()> {
        let source = contents.as_ptr() as u64;
        let mut request = [address, source, contents.len() as u64, 0, 0];
        self.ioctl("create a page of the program", COPY, &mut request)
    }

    /// As [`create`](Self::create), neighbours from `address` on. Returns how many pages were
    /// created before the first that could not be.
    #[must_use]
    pub fn create_run(&self, address: u64, contents: &[[u8; 4096]]) -> usize {
        let bytes = contents.as_flattened();
        let mut request = [address, bytes.as_ptr() as u64, bytes.len() as u64, 0, 0];
        match self.ioctl("create pages of the program", COPY, &mut request) {
            Ok(()) => contents.len(),
            // The kernel says how many bytes it has copied, or a negative error.
            Err(_) => usize::try_from(request[4].cast_signed()).unwrap_or(0) / 4096,
        }
    }

    /// Reads the next fault; `None` if none waits.
    #[must_use]
    pub fn next(&self) -> Option<Fault> {
        let mut message = [0_u8; 32];
        if rustix::io::read(&self.fd, &mut message).ok()? != 32 || message[0] != EVENT_PAGEFAULT {
            return None;
        }
        let word =
            |at: usize| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| message[at + i]));
        let flags = word(8);
        Some(Fault {
            address: word(16),
            write: flags & FLAG_WRITE != 0,
            minor: flags & FLAG_MINOR != 0,
            tid: u32::try_from(word(24) & 0xffff_ffff).unwrap_or(0),
        })
    }

    /// Makes a request that resolves faults. If the page exists already, the waiters are woken.
    fn resolve(
        &self,
        operation: &'static str,
        request: libc::c_ulong,
        data: &mut [u64; 4],
    ) -> Result<()> {
        match self.ioctl(operation, request, data) {
            Err(error) if error.errno() == Some(libc::EEXIST) => self.wake(data[0], data[1]),
            other => other,
        }
    }

    /// Makes a request to the descriptor; `operation` names it in errors.
    #[expect(unsafe_code, reason = "the userfaultfd ioctls have no safe wrapper")]
    fn ioctl(
        &self,
        operation: &'static str,
        request: libc::c_ulong,
        data: &mut [u64],
    ) -> Result<()> {
        // SAFETY: each request reads and writes at most as many words as its caller's array has.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), request, data.as_mut_ptr()) };
        check(operation, result.into()).map(|_zero| ())
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
