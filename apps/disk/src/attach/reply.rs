//! The answer that somebody waits for.

use backend::Failure;
use sys::fuse::FuseDevice;

use super::protocol::head;

pub(super) use rustix::io::Errno;

/// An answer that is owed. Whoever drops it has answered that it failed.
pub(super) struct Reply {
    device: FuseDevice,
    unique: u64,
    is_owed: bool,
}

impl Reply {
    /// What is owed for a request that was taken by this handle.
    pub(super) fn new(device: &FuseDevice, unique: u64) -> Self {
        Self { device: device.clone(), unique, is_owed: true }
    }

    fn write(&mut self, error: i32, data: &[u8]) {
        self.is_owed = false;
        let answered = self.device.answer(&head(self.unique, error, data.len()), data);
        // Whoever waits is not to wait for ever for what the kernel does not take.
        if answered.is_err() {
            let _gone = self.device.answer(&head(self.unique, Errno::IO.raw_os_error(), 0), &[]);
        }
    }

    /// It went well, and this is the answer.
    pub(super) fn data(mut self, data: &[u8]) {
        self.write(0, data);
    }

    /// It could not be done.
    pub(super) fn fail(mut self, error: Errno) {
        self.write(error.raw_os_error(), &[]);
    }

    /// It has ended with an answer or an error.
    pub(super) fn with(self, result: Result<Vec<u8>, Errno>) {
        match result {
            Ok(data) => self.data(&data),
            Err(error) => self.fail(error),
        }
    }

    /// It has ended, and there is nothing more to say.
    pub(super) fn end(self, result: Result<(), Failure>) {
        match result {
            Ok(()) => self.data(&[]),
            Err(failure) => self.fail(errno(failure)),
        }
    }

    /// Nobody waits.
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

const fn errno(failure: Failure) -> Errno {
    match failure {
        Failure::NoSpace => Errno::NOSPC,
        Failure::WriteProtected => Errno::ROFS,
        Failure::OutOfRange | Failure::Medium | Failure::Lost | Failure::Refused(_) => Errno::IO,
    }
}
