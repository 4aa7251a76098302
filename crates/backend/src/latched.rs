//! A device that reports lost writes until it is opened again.
//!
//! When the kernel cannot put written data on the medium, it reports that to one flush and marks
//! the pages clean (fsync(2)): the next flush would succeed although data is lost. So the first
//! failure is latched, and every later flush and forced write of any host fails with it. Reads and
//! other writes go on.
//!
//! Limitation: of two concurrent flushes, the kernel reports the loss to one, and the other may
//! succeed before that failure is latched.

use std::sync::{Arc, OnceLock};

use crate::device::{Backend, Failure, Geometry, Operation, Request, Start};
use crate::lease::Lease;

/// A device that latches the first failed flush.
pub struct LatchedBackend {
    inner: Arc<dyn Backend>,
    lost: OnceLock<Failure>,
}

impl LatchedBackend {
    /// Wraps `inner`, with no failure yet.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner, lost: OnceLock::new() }
    }
}

impl Operation {
    /// Returns whether the operation ends only when data is on the medium.
    const fn promises(self) -> bool {
        matches!(self, Self::Flush | Self::Write { forced: true } | Self::Zero { forced: true, .. })
    }

    // Returns whether data of other writes may be lost if the operation fails with `failure`. A
    // forced write without space, or to a read-only medium, loses only its own data.
    fn loses(self, failure: Failure) -> bool {
        self == Self::Flush || self.promises() && failure == Failure::Medium
    }
}

impl Backend for LatchedBackend {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn is_immediate(&self) -> bool {
        self.inner.is_immediate()
    }

    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
        self.inner.start(request, data, now_ns)
    }

    fn append(&self, request: &Request, out: &mut Vec<u8>, now_ns: u64) -> Start {
        self.inner.append(request, out, now_ns)
    }

    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let result = self.inner.end(request, result, now_ns);
        if !request.operation.promises() {
            return result;
        }
        if let Err(failure) = result
            && request.operation.loses(failure)
        {
            // Only the first failure is stored.
            let _later = self.lost.set(failure);
        }
        self.lost.get().map_or(result, |failure| Err(*failure))
    }

    fn lease(&self) -> Option<&Lease> {
        self.inner.lease()
    }

    fn used_bytes(&self) -> Option<u64> {
        self.inner.used_bytes()
    }

    fn refresh(&self) {
        self.inner.refresh();
    }

    fn lost(&self) -> Option<Failure> {
        self.lost.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NullBackend;

    const FORCED: Operation = Operation::Write { forced: true };
    const PLAIN: Operation = Operation::Write { forced: false };

    fn latched() -> LatchedBackend {
        LatchedBackend::new(Arc::new(NullBackend::new(1 << 20, 9)))
    }

    fn ends(device: &LatchedBackend, operation: Operation, result: Result<(), Failure>) -> bool {
        let length = if operation == Operation::Flush { 0 } else { 512 };
        device.end(&Request { operation, offset: 0, length }, result, 0).is_ok()
    }

    #[test]
    fn what_is_lost_stays_lost() {
        let cleared = Operation::Zero { deallocates: true, forced: true };
        for (operation, failure) in [
            (Operation::Flush, Failure::Medium),
            (Operation::Flush, Failure::NoSpace),
            (FORCED, Failure::Medium),
            (cleared, Failure::Medium),
        ] {
            let device = latched();
            assert!(ends(&device, Operation::Flush, Ok(())));
            assert!(!ends(&device, operation, Err(failure)));
            assert_eq!(device.lost(), Some(failure), "{operation:?}");
            for promise in [Operation::Flush, FORCED, cleared] {
                assert!(!ends(&device, promise, Ok(())), "{promise:?} after {operation:?}");
            }
            assert!(ends(&device, Operation::Read, Ok(())) && ends(&device, PLAIN, Ok(())));
            assert!(!ends(&device, Operation::Flush, Err(Failure::WriteProtected)));
            assert_eq!(device.lost(), Some(failure), "the first is kept");
        }
    }

    #[test]
    fn what_fails_by_itself_loses_nothing() {
        for (operation, failure) in [
            (Operation::Read, Failure::Medium),
            (PLAIN, Failure::Medium),
            (FORCED, Failure::NoSpace),
            (FORCED, Failure::OutOfRange),
            (FORCED, Failure::WriteProtected),
        ] {
            let device = latched();
            assert!(!ends(&device, operation, Err(failure)));
            assert_eq!(device.lost(), None, "{operation:?}, {failure}");
            assert!(ends(&device, Operation::Flush, Ok(())));
        }
    }
}
