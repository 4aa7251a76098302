//! Fields at fixed offsets of structures on the wire: little-endian for NVMe, big-endian for SCSI
//! and iSCSI.
//!
//! They are inlined, since every PDU passes through them and the callers are other crates: calls
//! took 3 % of the time of a target that serves reads of 4 KiB.

mod field;
mod opening;

pub use field::{Be, Be24, Bit, Bits, Byte, Bytes, Le, Place, Text};
pub use opening::{OPENING_BYTES, Opening, read_opening, write_opening};
