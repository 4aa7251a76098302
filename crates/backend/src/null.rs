//! Nothing: what is written is lost, what is read is zeros.

use crate::{Backend, Geometry, Operation, Request, Start};

/// A device that costs nothing, to measure everything else.
#[derive(Debug, Clone, Copy)]
pub struct NullBackend {
    geometry: Geometry,
}

impl NullBackend {
    /// As large as it is said to be, with blocks of two to the power of `block_shift` bytes.
    #[must_use]
    pub const fn new(bytes: u64, block_shift: u8) -> Self {
        let block_count = bytes >> block_shift;
        let geometry = Geometry {
            block_shift,
            block_count,
            optimal_bytes: 4096,
            atomic_bytes: 1 << block_shift,
            is_read_only: false,
        };
        Self { geometry }
    }
}

impl Backend for NullBackend {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn start(&self, request: &Request, data: &mut [u8], _now_ns: u64) -> Start {
        if request.operation == Operation::Read {
            data.fill(0);
        }
        Start::done(Ok(()))
    }
}
