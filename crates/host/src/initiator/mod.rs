//! The initiator: reaches logical units over iSCSI from this process, without the kernel's
//! initiator.
//!
//! ```text
//! IscsiUri ─► Session (log in, look) ─┬─► LogicalUnit ─► Queue: a session on a ring ─► Ended
//!                                     └─► a path of crate::Disk
//! discover: the targets at an address
//! identify: the properties of a logical unit
//! ```
//!
//! A queue is a session of its own, of one connection or several (RFC 7143 4.4.3), like a queue of
//! NVMe/TCP. Connections of a session share its command numbers, so one thread has them all.

mod command;
mod config;
mod discovery;
mod fate;
mod keeper;
mod look;
mod queue;
mod session;
mod unit;
mod uri;
mod wire;

pub use config::InitiatorConfig;
pub use discovery::discover;
pub(crate) use keeper::keep;
pub use look::{IdentifiedUnit, identify};
pub use unit::LogicalUnit;
pub use uri::{IscsiUri, IscsiUriError};
