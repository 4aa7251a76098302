//! The answer to one request of the kernel.

use backend::Failure;
use sys::fuse::FuseDevice;

use super::protocol::head;

pub(super) use rustix::io::Errno;

/// An answer that the kernel waits for. Dropping it answers EIO.
pub(super) struct Reply {
    device: FuseDevice,
    unique: u64,
    is_owed: bool,
}

impl Reply {
    /// The answer to request `unique`, which was taken from `device`.
    pub(super) fn new(device: &FuseDevice, unique: u64) -> Self {
        Self { device: device.clone(), unique, is_owed: true }
    }

    // Sends the answer: an error of errno(3) or 0, and data.
    fn write(&mut self, error: i32, data: &[u8]) {
        self.is_owed = false;
        let answered = self.device.answer(&head(self.unique, error, data.len()), data);
        // If the kernel refuses the answer, EIO goes instead: nobody is to wait for ever.
        if answered.is_err() {
            let _gone = self.device.answer(&head(self.unique, Errno::IO.raw_os_error(), 0), &[]);
        }
    }

    /// Answers success, with `data`.
    pub(super) fn data(mut self, data: &[u8]) {
        self.write(0, data);
    }

    /// Answers an error.
    pub(super) fn fail(mut self, error: Errno) {
        self.write(error.raw_os_error(), &[]);
    }

    /// Answers success with data, or an error.
    pub(super) fn with(self, result: Result<Vec<u8>, Errno>) {
        match result {
            Ok(data) => self.data(&data),
            Err(error) => self.fail(error),
        }
    }

    /// Answers success without data, or the error for a failure of the disk.
    pub(super) fn end(self, result: Result<(), Failure>) {
        match result {
            Ok(()) => self.data(&[]),
            Err(failure) => self.fail(errno(failure)),
        }
    }

    /// Drops the reply of a request that has no answer.
    pub(super) fn drop_silently(mut self) {
        self.is_owed = false;
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.is_owed {
            self.write(Errno::IO.raw_os_error(), &[]);
        }
    }
}

// The error of errno(3) for a failure of the disk.
const fn errno(failure: Failure) -> Errno {
    match failure {
        Failure::NoSpace => Errno::NOSPC,
        Failure::WriteProtected => Errno::ROFS,
        Failure::OutOfRange | Failure::Medium | Failure::Lost | Failure::Refused(_) => Errno::IO,
    }
}
