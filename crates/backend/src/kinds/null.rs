//! A device that stores nothing: writes are dropped, reads return zeros.

use std::any::Any;
use std::sync::Arc;

use measure::Bytes;
use sys::disk::Claim;

use crate::device::{Backend, Geometry, Operation, Request, Start};
use crate::named::{BackendUri, Device, Kind, Options, Parse, same, size};
use crate::open_error::OpenError;

/// A device that takes no time, to measure everything else.
#[derive(Debug, Clone, Copy)]
pub struct NullBackend {
    geometry: Geometry,
}

/// `null:[SIZE]`.
pub(crate) static KIND: Kind = Kind {
    scheme: "null",
    example: "null:",
    remedy: "write null: or null:SIZE, e.g. null:1TiB",
    parse: Parse::Medium(named),
};

/// The parsed device, not yet open.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    bytes: Bytes,
    block_shift: u8,
}

/// The default size.
const BYTES: u64 = 1 << 40;

// Parses the size and options of `null:[SIZE]`.
fn named(place: &str, options: Options<'_>) -> Result<BackendUri, String> {
    options.none_of_its_own("null")?;
    let bytes = if place.is_empty() { Bytes::new(BYTES) } else { size(place)? };
    Ok(BackendUri::new(Named { bytes, block_shift: options.block_shift() }))
}

impl Device for Named {
    fn open(&self, _claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        Ok(Arc::new(NullBackend::new(self.bytes.get(), self.block_shift)))
    }

    fn equals(&self, other: &dyn Any) -> bool {
        same(self, other)
    }
}

impl NullBackend {
    /// A device of `bytes`, rounded down to blocks of two to the power of `block_shift` bytes.
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
