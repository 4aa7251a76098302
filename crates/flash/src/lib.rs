//! Remote flash: what serves a disk over the network, what reaches it, and what loads it.
//!
//! ```text
//! socket ─► Connection ─► Queue (proto) ─► command ─► Jobs ─► Backend
//!    ▲                                                           │
//!    └────────── response ◄── status ◄── outcome ◄───────────────┘
//! ```
//!
//! Invariants:
//! - A connection, its commands and their memory belong to one shard; shards tell one another, and
//!   share nothing that has to be waited for.
//! - A command is answered once, and not before its backend says so.
//! - What a peer sends sizes no allocation beyond the configured bounds.

pub mod backend;
pub mod host;
mod idle;
pub mod initiator;
mod jobs;
pub mod load;
mod pool;
mod slab;
pub mod target;

pub use jobs::{Ended, Job, JobTimes, Jobs};
