//! The initiator: reaches logical units over iSCSI from this process, without the kernel's
//! initiator.
//!
//! ```text
//! IscsiUri ─► Session (log in, look) ─┬─► LogicalUnit ─► Queue: a session on a ring ─► Ended
//!                                     └─► a path of crate::Disk
//! discover: which targets there are at an address
//! identify: what a logical unit says of itself
//! ```
//!
//! A queue is a session of its own, of one connection or several (RFC 7143 4.4.3): what NVMe/TCP
//! has a queue for. Connections of one session share its command numbers, so all are of one thread.

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
