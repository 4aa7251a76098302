//! A device in the target's own memory, gone when the target ends.

use sys::shared::SharedMemory;

use crate::{Backend, Geometry, Operation, Request, Start};

/// Zeros at first; what was never written takes no memory.
pub struct MemoryBackend {
    memory: SharedMemory,
    geometry: Geometry,
}

impl MemoryBackend {
    /// As large as is asked for, cut off to whole blocks of two to the power of `block_shift`.
    ///
    /// # Errors
    /// When so much cannot be reserved.
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

// Checked against a size that is one.
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
            // There is no medium beyond it.
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
