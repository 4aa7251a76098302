//! A backend on a file or block device. A flush or forced write ends when the kernel reports that
//! the data is on the medium.

use std::any::Any;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use measure::Bytes;
use sys::disk::{Claim, Disk, DiskError, Opening};
use sys::ring::Stretch;

use crate::device::{Action, Backend, Call, Failure, Geometry, Operation, Request, Start, Work};
use crate::named::{BackendUri, Device, Kind, Medium, Options, Parse, same, size, unknown};
use crate::open_error::OpenError;

/// A file or block device.
pub struct FileBackend {
    file: Arc<OwnedFd>,
    /// The same file if it is in memory (tmpfs), where plain system calls are faster than the ring.
    in_memory: Option<File>,
    block_shift: u8,
    optimal_bytes: u32,
    bytes: AtomicU64,
    clears: bool,
    is_read_only: bool,
}

/// `file:PATH`.
pub(crate) static KIND: Kind = Kind {
    scheme: "file",
    example: "file:/PATH",
    remedy: "write file:/PATH, e.g. file:/data/disk.img",
    parse: Parse::Medium(named),
};

/// The parsed file or block device, not yet open.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    path: PathBuf,
    block_shift: Option<u8>,
    create: Option<Bytes>,
    is_read_only: bool,
    fills: bool,
}

const OPTIONS: &str = "its options are size, fill, readonly and block";

// Parses `PATH` and the options of `file:PATH`.
fn named(path: &str, options: Options<'_>) -> Result<BackendUri, String> {
    let block_shift = options.block_shift;
    let path = PathBuf::from(path);
    let mut file = Named { path, block_shift, create: None, is_read_only: false, fills: false };
    for &(name, value) in options.own {
        match name {
            "size" => file.create = Some(size(value)?),
            "readonly" if value.is_empty() => file.is_read_only = true,
            "fill" if value.is_empty() => file.fills = true,
            _ => return Err(unknown("file", name, OPTIONS)),
        }
    }
    if file.path.as_os_str().is_empty() {
        return Err("no path".to_owned());
    }
    if file.fills && file.is_read_only {
        return Err("fill writes, and readonly does not let it".to_owned());
    }
    Ok(BackendUri::new(file))
}

impl Device for Named {
    fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        let Self { path, block_shift, create, is_read_only, fills } = self;
        if *fills && claim == Claim::Shared {
            let reason = "fill would write over what others write to it meanwhile";
            return Err(OpenError::Shape(format!("{reason}; fill it before it is shared")));
        }
        if let Some(bytes) = create
            && !path.exists()
        {
            Disk::create(path, bytes.get())?;
        }
        let opening = Opening { is_read_only: *is_read_only, claim };
        let backend = FileBackend::open(path, *block_shift, opening)?;
        if *fills {
            // The claim on the file is exclusive now.
            sys::holes::fill(path)?;
        }
        Ok(Arc::new(backend))
    }

    fn medium(&self) -> Option<Medium<'_>> {
        let Self { path, is_read_only, fills, .. } = self;
        Some(Medium { path, is_read_only: *is_read_only, fills: *fills })
    }

    fn equals(&self, other: &dyn Any) -> bool {
        same(self, other)
    }
}

impl FileBackend {
    /// Opens a file or block device with blocks of two to the power of `block_shift` bytes; `None`
    /// takes the smallest that the device supports. A partial block at the end is not used.
    ///
    /// # Errors
    /// When the file cannot be opened, another process has claimed it, it is shorter than a block,
    /// or the device does not support such blocks.
    pub fn open(path: &Path, block_shift: Option<u8>, opening: Opening) -> Result<Self, OpenError> {
        let disk = Disk::open(path, opening).map_err(|error| match error {
            DiskError::System(error) => OpenError::System(error),
            DiskError::Taken(taken) => OpenError::Taken(taken),
        })?;
        let smallest = if disk.alignment <= 512 { 9 } else { 12 };
        let block_shift = block_shift.unwrap_or(smallest);
        if disk.alignment > 1 << block_shift {
            let (alignment, bytes) = (disk.alignment, 1_u32 << block_shift);
            return Err(OpenError::Shape(format!(
                "its device takes multiples of {alignment} bytes, not blocks of {bytes}"
            )));
        }
        if disk.bytes >> block_shift == 0 {
            let (bytes, path) = (disk.bytes, path.display());
            return Err(OpenError::Shape(format!(
                "it has {bytes} bytes, which is less than a block of {}; give it a size, such as \
                 truncate -s 1GiB {path}, or have it made: file:PATH?size=1GiB",
                1_u32 << block_shift
            )));
        }
        let in_memory = if disk.is_in_memory {
            let again = disk.file.try_clone();
            Some(File::from(again.map_err(|e| sys::Error::new("open a disk again", e))?))
        } else {
            None
        };
        Ok(Self {
            file: Arc::new(disk.file),
            in_memory,
            block_shift,
            optimal_bytes: disk.alignment.max(4096),
            bytes: AtomicU64::new(disk.bytes),
            clears: disk.clears,
            is_read_only: opening.is_read_only,
        })
    }

    // The system call for `operation`.
    fn action(&self, operation: Operation) -> Action {
        let clear = |stretch, forced| match self.clears {
            true => Action::Clear { stretch, forced },
            false => Action::WriteZeros { forced },
        };
        match operation {
            Operation::Read => Action::Read,
            Operation::Write { forced } => Action::Write { forced },
            Operation::Flush => Action::Sync,
            Operation::Zero { deallocates: false, forced } => clear(Stretch::Zero, forced),
            Operation::Zero { deallocates: true, forced } => clear(Stretch::Punch, forced),
            Operation::Discard => clear(Stretch::Punch, false),
        }
    }
}

// Executes a request on a file in memory by a plain system call; `None` for zeros and discards,
// which are rare and use the ring.
fn at_once(file: &File, request: &Request, data: &mut [u8]) -> Option<io::Result<()>> {
    match request.operation {
        Operation::Read => Some(file.read_exact_at(data, request.offset)),
        Operation::Write { .. } => Some(file.write_all_at(data, request.offset)),
        Operation::Flush => Some(Ok(())),
        Operation::Zero { .. } | Operation::Discard => None,
    }
}

impl Backend for FileBackend {
    fn geometry(&self) -> Geometry {
        Geometry {
            block_shift: self.block_shift,
            block_count: self.bytes.load(Ordering::Relaxed) >> self.block_shift,
            optimal_bytes: self.optimal_bytes,
            // Files guarantee no more.
            atomic_bytes: 1 << self.block_shift,
            is_read_only: self.is_read_only,
        }
    }

    fn is_immediate(&self) -> bool {
        false
    }

    fn start(&self, request: &Request, data: &mut [u8], _now_ns: u64) -> Start {
        if self.is_read_only && request.operation != Operation::Read {
            // A flush of a read-only device has nothing to do.
            let is_flush = request.operation == Operation::Flush;
            return Start::done(if is_flush { Ok(()) } else { Err(Failure::WriteProtected) });
        }
        if let Some(file) = &self.in_memory
            && let Some(result) = at_once(file, request, data)
        {
            return Start::done(result.map_err(|error| Failure::of(&error)));
        }
        let call = Call { file: Arc::clone(&self.file), action: self.action(request.operation) };
        Start { work: Work::Kernel(call), not_before_ns: 0 }
    }

    fn refresh(&self) {
        if let Ok(bytes) = Disk::measure(&self.file.as_fd()) {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}
