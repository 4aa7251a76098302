//! The interface of a device: its geometry, requests, failures, and the trait `Backend`.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use sys::ring::Stretch;

use crate::lease::Lease;

/// The size of a device and of its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Log2 of the bytes of a block: 9 or 12.
    pub block_shift: u8,
    /// Number of blocks.
    pub block_count: u64,
    /// Preferred bytes of a write; a multiple of a block.
    pub optimal_bytes: u32,
    /// Largest aligned write that other readers see whole or not at all; a multiple of a block.
    pub atomic_bytes: u32,
    /// Whether requests that would change the device fail with [`Failure::WriteProtected`].
    pub is_read_only: bool,
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Read.
    Read,
    /// Write.
    Write {
        /// Whether the write completes only when the data is on the medium.
        forced: bool,
    },
    /// Put all written data on the medium.
    Flush,
    /// Write zeros.
    Zero {
        /// Whether the space of the zeros may be deallocated.
        deallocates: bool,
        /// As for a write.
        forced: bool,
    },
    /// Deallocate; later reads return zeros.
    Discard,
}

/// A request to a device: whole blocks, all inside the device; no bytes for a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// The first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// ENOSPC, EDQUOT.
    #[error("no space left for what was written")]
    NoSpace,
    /// EROFS, EPERM, EACCES.
    #[error("the medium is not to be written")]
    WriteProtected,
    /// The device is shorter than it was.
    #[error("beyond the end of the device")]
    OutOfRange,
    /// Any other error of the device.
    #[error("the medium failed")]
    Medium,
    /// The connection to the device was lost: the request may or may not have been executed.
    #[error("the connection was lost")]
    Lost,
    /// A controller failed the request with this NVMe status.
    #[error("refused with status {0:#06x}")]
    Refused(u16),
}

/// A system call on a file.
#[derive(Debug, Clone)]
pub struct Call {
    /// The file.
    pub file: Arc<OwnedFd>,
    /// The call.
    pub action: Action,
}

/// The kind of a [`Call`]; offset and length are the request's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read into the request's block.
    Read,
    /// Write from the request's block.
    Write {
        /// Whether the write completes only when the data is on the medium.
        forced: bool,
    },
    /// Put all written data on the medium.
    Sync,
    /// Zero the range by fallocate; sync afterwards if forced.
    Clear {
        /// Whether the space stays allocated.
        stretch: Stretch,
        /// As for a write.
        forced: bool,
    },
    /// Write zeros in pieces, where the file system cannot zero a range.
    WriteZeros {
        /// As for a write.
        forced: bool,
    },
}

/// The work left for a request.
#[derive(Debug)]
pub enum Work {
    /// None: the request has this result.
    Done(Result<(), Failure>),
    /// A system call.
    Kernel(Call),
}

/// How a backend starts a request.
#[derive(Debug)]
pub struct Start {
    /// The work left.
    pub work: Work,
    /// The earliest time at which the request may end, in nanoseconds on the clock of `start`.
    pub not_before_ns: u64,
}

/// A device that stores the bytes of a namespace; all shards use it at once.
pub trait Backend: Send + Sync {
    /// The current size and block size.
    fn geometry(&self) -> Geometry;

    /// Whether `start` always completes the request at once.
    fn is_immediate(&self) -> bool;

    /// Starts a request that has been checked against the geometry. `data` has the request's length
    /// for a read or write, and is empty otherwise; a read that is done has filled it.
    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start;

    /// Starts a read whose bytes are appended to `out`, as [`start`](Self::start) does. Devices in
    /// memory override it to save zeroing `out` first.
    fn append(&self, request: &Request, out: &mut Vec<u8>, now_ns: u64) -> Start {
        let from = out.len();
        let bytes = usize::try_from(request.length).unwrap_or(usize::MAX);
        out.resize(from.saturating_add(bytes), 0);
        self.start(request, &mut out[from..], now_ns)
    }

    /// Called when a started request has ended with `result`. Returns the result for its sender.
    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let _ = (request, now_ns);
        result
    }

    /// Updates the geometry if the device's size has changed.
    fn refresh(&self) {}

    /// The lease from which each host gets its own disk; `None` for other devices.
    fn lease(&self) -> Option<&Lease> {
        None
    }

    /// Bytes of memory in use, if the device allocates on write and may run out; else `None`.
    fn used_bytes(&self) -> Option<u64> {
        None
    }

    /// The failure after which flushes fail for good, since written data may have been lost; `None`
    /// if there was none.
    fn lost(&self) -> Option<Failure> {
        None
    }
}

impl Geometry {
    /// Bytes of a block.
    #[must_use]
    pub const fn block_bytes(&self) -> u32 {
        1 << self.block_shift
    }

    /// Bytes of the device.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.block_count << self.block_shift
    }

    /// Offset and length in bytes of `count` blocks from `first`; `None` if they exceed the device.
    #[must_use]
    pub fn range(&self, first: u64, count: u64) -> Option<[u64; 2]> {
        let end = first.checked_add(count)?;
        (end <= self.block_count).then(|| [first << self.block_shift, count << self.block_shift])
    }
}

impl Failure {
    /// The failure that an error of the operating system stands for.
    #[must_use]
    pub fn of(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{
            PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
        };
        match error.kind() {
            StorageFull | QuotaExceeded => Self::NoSpace,
            PermissionDenied | ReadOnlyFilesystem => Self::WriteProtected,
            _ => Self::Medium,
        }
    }
}

impl Start {
    /// A request that is done already, with `result`.
    #[must_use]
    pub const fn done(result: Result<(), Failure>) -> Self {
        Self { work: Work::Done(result), not_before_ns: 0 }
    }
}
