//! The host: reaches namespaces over NVMe/TCP, and logical units over iSCSI (`initiator`), from
//! this process, without the kernel's initiator.
//!
//! ```text
//! NvmeUri ─► Controller (admin queue, keep-alive) ─► Queue ─► Ended
//! NvmeUri... ─► Disk (reconnects, several paths) ─► read, write, flush
//! Guest ─► Disk: requests from a descriptor, served by the threads of the disk
//! Reservation ─► a namespace for one host alone
//! discover: the subsystems at an address
//! identify: the properties of a controller and its namespaces
//! ```
//!
//! A [`Controller`]'s queues are for one thread each, which learns of every loss; a [`Disk`] is for
//! any thread, and hides losses. Both protocols implement the same two traits (`reach`): `Queue`
//! for requests, and `Keeper` for keeping a path alive. A request whose connection was lost has
//! neither succeeded nor failed: a queue ends it as `backend::Failure::Lost`.

mod admin;
mod association;
mod backoff;
mod config;
mod controller;
mod discovery;
mod disk;
mod disk_path;
mod driven;
mod error;
mod fabrics;
mod fence;
mod ghosts;
mod guest;
mod hazards;
mod identified;
pub mod initiator;
mod keeper;
mod lane;
mod local;
mod mail;
mod path;
mod piece;
mod pipe;
mod post;
mod queue;
mod reach;
mod reserve;
mod shared;
mod uri;
mod ways;
mod wire;

pub use backoff::{Backoff, patiently};
pub use config::{DiskConfig, DiskEvent, Observer};
pub use controller::Controller;
pub use discovery::discover;
pub use disk::Disk;
pub use disk_path::DiskPath;
pub use driven::DrivenDisk;
pub use error::HostError;
pub use fabrics::HostConfig;
pub use guest::{Desk, Guest};
pub use identified::{Identified, IdentifiedNamespace, identify};
pub use local::LocalDevice;
pub use piece::Done;
pub(crate) use piece::{Piece, Shape};
pub(crate) use pipe::{Moved, Pipe};
pub(crate) use reach::{Found, Heard, Keeper, Pending};
pub use reach::{Queue, Reached};
pub use reserve::{Reservation, Taken};
pub(crate) use uri::address_of;
pub use uri::{NvmeUri, NvmeUriError};
