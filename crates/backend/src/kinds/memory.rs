//! A device in the target's own memory, lost when the target ends.

use std::any::Any;
use std::sync::Arc;

use measure::Bytes;
use sys::disk::Claim;
use sys::shared::SharedMemory;

use crate::device::{Backend, Geometry, Operation, Request, Start};
use crate::named::{BackendUri, Device, Kind, Options, Parse, same, size};
use crate::open_error::OpenError;

/// A device in memory: zeros at first; blocks that were never written take no memory.
pub struct MemoryBackend {
    memory: SharedMemory,
    geometry: Geometry,
}

/// `memory:SIZE`.
pub(crate) static KIND: Kind = Kind {
    scheme: "memory",
    example: "memory:8GiB",
    remedy: "write memory:SIZE, e.g. memory:8GiB",
    parse: Parse::Medium(named),
};

/// The parsed device, not yet open.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    bytes: Bytes,
    block_shift: u8,
}

// Parses the size and options of `memory:SIZE`.
fn named(place: &str, options: Options<'_>) -> Result<BackendUri, String> {
    options.none_of_its_own("memory")?;
    Ok(BackendUri::new(Named { bytes: size(place)?, block_shift: options.block_shift() }))
}

impl Device for Named {
    fn open(&self, _claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        Ok(Arc::new(MemoryBackend::new(self.bytes.get(), self.block_shift)?))
    }

    fn memory(&self) -> Option<(Bytes, u8)> {
        Some((self.bytes, self.block_shift))
    }

    fn equals(&self, other: &dyn Any) -> bool {
        same(self, other)
    }
}

impl MemoryBackend {
    /// A device of `bytes`, rounded down to blocks of two to the power of `block_shift` bytes.
    ///
    /// # Errors
    /// When the kernel cannot reserve the memory.
    pub fn new(bytes: u64, block_shift: u8) -> sys::Result<Self> {
        let block_count = bytes >> block_shift;
        let geometry = Geometry {
            block_shift,
            block_count,
            optimal_bytes: 4096,
            atomic_bytes: 1 << block_shift,
            is_read_only: false,
        };
        let memory = SharedMemory::new(index(geometry.bytes()))?;
        Ok(Self { memory, geometry })
    }
}

// Never saturates: offsets and lengths are checked against a size that fits into `usize`.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Backend for MemoryBackend {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn start(&self, request: &Request, data: &mut [u8], _now_ns: u64) -> Start {
        let [offset, length] = [request.offset, request.length].map(index);
        match request.operation {
            Operation::Read => self.memory.read(offset, data),
            Operation::Write { .. } => self.memory.write(offset, data),
            // Memory has no medium to flush to.
            Operation::Flush => {}
            Operation::Zero { deallocates: false, .. } => self.memory.zero(offset, length),
            Operation::Zero { deallocates: true, .. } | Operation::Discard => {
                self.memory.discard(offset, length);
            }
        }
        Start::done(Ok(()))
    }

    fn append(&self, request: &Request, out: &mut Vec<u8>, _now_ns: u64) -> Start {
        self.memory.append(index(request.offset), index(request.length), out);
        Start::done(Ok(()))
    }
}
