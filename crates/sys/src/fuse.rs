//! The device through which a process serves files (FUSE): requests of the kernel, and answers.
//!
//! The contents of messages are up to the caller. A message is answered through the handle that it
//! was read from, by any thread.

use std::fs::File;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::Result;
use crate::error::{During, check};

/// Path of the device.
pub const FUSE_DEVICE: &str = "/dev/fuse";

/// `FUSE_DEV_IOC_CLONE` of `linux/fuse.h`.
const CLONE: libc::c_ulong = 0x8004_e500;

/// A handle on the device.
#[derive(Debug, Clone)]
pub struct FuseDevice {
    fd: Arc<OwnedFd>,
}

/// The result of [`FuseDevice::take`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A message of so many bytes.
    Message(usize),
    /// No message, for now.
    Nothing,
    /// The file system is unmounted, and there will be no more messages.
    Ended,
}

impl FuseDevice {
    /// Opens a handle for a file system that is to be mounted. Reads of it wait.
    ///
    /// # Errors
    /// If this user may not open the device, or the kernel has no FUSE.
    pub fn open() -> Result<Self> {
        let device = File::options().read(true).write(true).open(FUSE_DEVICE);
        Ok(Self { fd: Arc::new(device.during("open /dev/fuse")?.into()) })
    }

    /// Opens another handle for the file system that is mounted with this one. Each message goes to
    /// one of the handles.
    ///
    /// # Errors
    /// If this handle is not mounted, or the process has no descriptor left.
    #[expect(unsafe_code, reason = "the request has no safe wrapper")]
    pub fn another(&self) -> Result<Self> {
        let other = Self::open()?;
        let number = u32::try_from(self.fd.as_raw_fd()).unwrap_or(u32::MAX);
        // SAFETY: the kernel reads four bytes, which are there.
        let done = unsafe { libc::ioctl(other.fd.as_raw_fd(), CLONE, &raw const number) };
        check("open /dev/fuse once more for a mount", done.into())?;
        Ok(other)
    }

    /// Makes [`FuseDevice::take`] return [`Taken::Nothing`] instead of waiting.
    ///
    /// # Errors
    /// Never in practice.
    pub fn set_nonblocking(&self) -> Result<()> {
        let flags = rustix::fs::fcntl_getfl(&*self.fd).during("ask for flags of /dev/fuse")?;
        rustix::fs::fcntl_setfl(&*self.fd, flags | OFlags::NONBLOCK)
            .during("set flags of /dev/fuse")
    }

    /// Reads the next message into `room`, which must hold the largest.
    ///
    /// # Errors
    /// If `room` is too small.
    pub fn take(&self, room: &mut [u8]) -> Result<Taken> {
        loop {
            match rustix::io::read(&*self.fd, &mut *room) {
                Ok(count) => return Ok(Taken::Message(count)),
                // The next message was withdrawn while it was being read.
                Err(Errno::INTR | Errno::NOENT) => {}
                Err(Errno::AGAIN) => return Ok(Taken::Nothing),
                Err(Errno::NODEV | Errno::CONNABORTED) => return Ok(Taken::Ended),
                Err(error) => return Err(error).during("read from /dev/fuse"),
            }
        }
    }

    /// Answers a message, or notifies the kernel: a head and what follows it. An answer that the
    /// kernel no longer waits for is no error.
    ///
    /// # Errors
    /// If the kernel refuses the answer as malformed.
    pub fn answer(&self, head: &[u8], rest: &[u8]) -> Result<()> {
        let parts = [IoSlice::new(head), IoSlice::new(rest)];
        let parts = if rest.is_empty() { &parts[..1] } else { &parts[..] };
        match rustix::io::writev(&*self.fd, parts) {
            Ok(_) | Err(Errno::NOENT | Errno::NODEV | Errno::PERM | Errno::CONNABORTED) => Ok(()),
            Err(error) => Err(error).during("write to /dev/fuse"),
        }
    }

    /// The descriptor to wait on for messages.
    #[must_use]
    pub const fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
}
