//! Remote-flash protocols, both ends, without I/O: bytes become PDUs and PDUs session state. No
//! socket, no clock, no thread; what owns those hands bytes and times in.
//!
//! ```text
//! bytes ─► Decoder ─► Header, data ─► Command ─► (whoever stores things) ─► Completion ─► bytes
//! ```
//!
//! Invariants:
//! - Nothing is allocated for what the wire says: data is handed on in the pieces it came in, and
//!   every length is checked before the first of them.
//! - The same code runs over a socket and over a simulated network.
//! - What a peer sends can end its connection, never the process: no input panics.

mod reservation;
mod wire;

pub mod iscsi;
pub mod nvme;
pub mod scsi;
