//! Fields at fixed places of what a wire carries: little-endian as NVMe has them, big-endian as
//! SCSI and iSCSI do.
//!
//! Inlined, since every PDU passes through them and callers are other crates: calls took 3 % of a
//! target that answers reads of 4 KiB.

mod field;
mod opening;

pub use field::{Be, Be24, Bit, Bits, Byte, Bytes, Le, Place, Text};
pub use opening::{OPENING_BYTES, Opening, read_opening, write_opening};
