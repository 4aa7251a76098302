//! A device, and what is asked of it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use sys::ring::Stretch;

use crate::lease::Lease;

/// How large a device is, and in what pieces it is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// A block has two to the power of this many bytes: 9 or 12.
    pub block_shift: u8,
    /// Its blocks.
    pub block_count: u64,
    /// Bytes that are best written at once; a multiple of a block.
    pub optimal_bytes: u32,
    /// Aligned bytes that are written all or not at all, as others see it; a multiple of a block.
    pub atomic_bytes: u32,
    /// Whatever changes it ends with [`Failure::WriteProtected`].
    pub is_read_only: bool,
}

/// What is asked of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// To read.
    Read,
    /// To write.
    Write {
        /// It ends when the data is on the medium.
        forced: bool,
    },
    /// To put all that has been written on the medium.
    Flush,
    /// To write zeros.
    Zero {
        /// They need take no room.
        deallocates: bool,
        /// As for a write.
        forced: bool,
    },
    /// To give room back; zeros are read then.
    Discard,
}

/// Something asked of a device: bytes in whole blocks, all inside it; none for a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What.
    pub operation: Operation,
    /// From here on.
    pub offset: u64,
    /// So many bytes.
    pub length: u64,
}

/// Why something could not be done.
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
    /// The way to the device was lost: what was asked may or may not have been done.
    #[error("the connection was lost")]
    Lost,
    /// A controller gave a reason of its own: a status of NVMe, as its bits.
    #[error("refused with status {0:#06x}")]
    Refused(u16),
}

/// What the kernel is asked to do with a file.
#[derive(Debug, Clone)]
pub struct Call {
    /// The file.
    pub file: Arc<OwnedFd>,
    /// What.
    pub action: Action,
}

/// See [`Call`]; where and how much is the request's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Into the request's block.
    Read,
    /// From the request's block.
    Write {
        /// Ends when it is on the medium.
        forced: bool,
    },
    /// Everything written before is on the medium.
    Sync,
    /// Zeros; then on the medium if forced.
    Clear {
        /// With room kept or without.
        stretch: Stretch,
        /// As for a write.
        forced: bool,
    },
    /// Zeros where a stretch cannot be cleared: written piece by piece.
    WriteZeros {
        /// As for a write.
        forced: bool,
    },
}

/// What is to be done for a request.
#[derive(Debug)]
pub enum Work {
    /// Nothing more.
    Done(Result<(), Failure>),
    /// This.
    Kernel(Call),
}

/// What a backend makes of a request.
#[derive(Debug)]
pub struct Start {
    /// What is to be done.
    pub work: Work,
    /// The request does not end before this time, in nanoseconds of the clock that `start` is told.
    pub not_before_ns: u64,
}

/// What holds the bytes of a namespace; used by all shards at once.
pub trait Backend: Send + Sync {
    /// How large it is now.
    fn geometry(&self) -> Geometry;

    /// Whether `start` always does all there is to do, at once.
    fn is_immediate(&self) -> bool;

    /// Begins a request that has been checked against the geometry. `data` has the request's length
    /// for a read or write, and is empty otherwise; a read that is done has filled it.
    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start;

    /// As [`start`](Self::start) of a read whose bytes are appended to `out`. A device that fills
    /// them at once does without zeros there first.
    fn append(&self, request: &Request, out: &mut Vec<u8>, now_ns: u64) -> Start {
        let from = out.len();
        let bytes = usize::try_from(request.length).unwrap_or(usize::MAX);
        out.resize(from.saturating_add(bytes), 0);
        self.start(request, &mut out[from..], now_ns)
    }

    /// A request that was started has ended; what its sender is told.
    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let _ = (request, now_ns);
        result
    }

    /// Looks whether it has another size now; the geometry says which.
    fn refresh(&self) {}

    /// The terms on which each host gets a disk of its own, if that is what it is for.
    fn lease(&self) -> Option<&Lease> {
        None
    }

    /// Bytes of it that take memory, where it takes that as it is written to and may find none.
    fn used_bytes(&self) -> Option<u64> {
        None
    }

    /// Why it can promise nothing any more: some of what it took may not be on the medium.
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

    /// Where blocks lie, if they are all inside.
    #[must_use]
    pub fn range(&self, first: u64, count: u64) -> Option<[u64; 2]> {
        let end = first.checked_add(count)?;
        (end <= self.block_count).then(|| [first << self.block_shift, count << self.block_shift])
    }
}

impl Failure {
    /// What an error of the operating system means for whoever wrote or read.
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
    /// Something that is done already.
    #[must_use]
    pub const fn done(result: Result<(), Failure>) -> Self {
        Self { work: Work::Done(result), not_before_ns: 0 }
    }
}
