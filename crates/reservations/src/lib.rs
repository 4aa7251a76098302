//! Registrations with a device and reservations of it, independent of the protocol (NVMe Base
//! 8.1.22, SPC-4 5.13).
//!
//! ```text
//! command ─► (codec of a protocol) ─► Action ─► Registry ─┬─► Changes: whom it concerns
//!                                                         └─► Refusal: nothing has changed
//! ```
//!
//! `I` identifies a host or an initiator. A protocol parses its commands into [`Action`]s, maps
//! [`Refusal`]s to its status codes, and notifies those whom a change concerns. The registry knows
//! no protocol, clock, file or socket.
//!
//! Invariants:
//! - Nobody is registered twice, and no more than [`REGISTRANTS_MAX`].
//! - Whoever holds a reservation is registered.
//! - What is refused has changed nothing.

mod registry;
mod text;

pub use registry::{
    Access, Action, Change, Changes, Kind, REGISTRANTS_MAX, Refusal, Registrant, Registry,
};
pub use text::Identity;
