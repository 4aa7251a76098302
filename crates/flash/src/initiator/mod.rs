//! The initiator: reaches logical units over iSCSI from this process, without the kernel's
//! initiator.
//!
//! ```text
//! IscsiUri ─► Session (log in, look) ─┬─► LogicalUnit ─► Queue: a session on a ring ─► Ended
//!                                     └─► a path of crate::host::Disk
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

/// How a login has ended, in words (RFC 7143 11.13.5).
pub(crate) fn login_text(status: u16) -> String {
    let what = match status {
        0x0101 | 0x0102 => "it is at another address",
        0x0201 => "who this is was not proved; check user and secret",
        0x0202 => "this initiator may not",
        0x0203 => "there is no such target",
        0x0204 => "the target is there no longer",
        0x0206 => "it lets a session have no more connections",
        0x0301 => "the target cannot do that now",
        0x0302 => "the target has no room",
        0x0300 | 0x0303..=0x03ff => "something inside the target has failed",
        _ => "it does not take what was said",
    };
    format!("{what} (status {status:#06x})")
}
