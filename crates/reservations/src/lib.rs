//! Who has registered with a device and who holds it, whatever the protocol that says so (NVMe Base
//! 8.1.22, SPC-4 5.13).
//!
//! ```text
//! command ─► (codec of a protocol) ─► Action ─► Registry ─┬─► Changes: whom it concerns
//!                                                         └─► Refusal: nothing has changed
//! ```
//!
//! `I` is who a host or an initiator is. A protocol reads its commands into [`Action`]s, names the
//! [`Refusal`]s in its own terms, and tells those whom a change concerns. The registry knows no
//! protocol, clock, file or socket.
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
