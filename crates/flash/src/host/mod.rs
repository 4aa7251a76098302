//! The host: reaches namespaces over NVMe/TCP from this process, without the kernel's initiator.
//!
//! ```text
//! NvmeUri ─► Controller (admin queue, keep-alive) ─► Queue ─► Ended
//! NvmeUri... ─► Disk (reconnects, several paths) ─► read, write, flush
//! discover: what can be connected to at an address
//! identify: what a controller and its namespaces say of themselves
//! ```
//!
//! A [`Controller`]'s queues are for one thread each, which hears of every loss; a [`Disk`] is for
//! any thread, and hides them.

mod admin;
mod association;
mod backoff;
mod controller;
mod discovery;
mod disk;
mod hazards;
mod identified;
mod keeper;
mod lane;
mod path;
mod piece;
mod pipe;
mod post;
mod queue;
mod reach;
mod uri;
mod wire;

pub use association::HostConfig;
pub(crate) use backoff::Backoff;
pub use backoff::patiently;
pub use controller::Controller;
pub use discovery::discover;
pub use disk::{Disk, DiskConfig, DiskEvent, Observer};
pub use identified::{Identified, IdentifiedNamespace, identify};
pub use piece::Done;
pub(crate) use piece::{Piece, Shape};
pub(crate) use pipe::{Moved, Pipe};
pub use reach::DiskPath;
pub(crate) use reach::{Found, Heard, Keeper, Pending, Queue};
pub(crate) use uri::address_of;
pub use uri::{NvmeUri, NvmeUriError};
pub(crate) use wire::dial;

use proto::nvme::Status;

/// Why a host cannot reach a namespace.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The network does not let it.
    #[error("{operation}: {source}")]
    Network {
        /// What was being done.
        operation: &'static str,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The controller does not do what was asked.
    #[error("{operation}: the controller answers {status:?}")]
    Refused {
        /// What was asked.
        operation: &'static str,
        /// Its answer.
        status: Status,
    },
    /// The target does not let it in, or does not know what it is asked for (RFC 7143 11.13.5).
    #[error("log in to the target: {}", crate::initiator::login_text(*status))]
    Login {
        /// Class and detail.
        status: u16,
    },
    /// What came is not of the protocol, or not what was asked for.
    #[error("{operation}: {reason}")]
    Protocol {
        /// What was being done.
        operation: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}
