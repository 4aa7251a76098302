//! A simulated world: threads, connections and time that follow from a seed, for the same code that
//! runs on a machine.
//!
//! ```text
//! thread ─► waits by its World, Ring or Stream ─► who can go on? ─┬─► one of them, drawn
//!                                                  └ nobody: the time of the next event
//! links: latency, bandwidth, drops, cuts ─► what is on its way ─► ends of connections
//! ```
//!
//! The threads are threads of the machine, but one of them runs at a time, from one wait to the
//! next, and simulated time stands still meanwhile. A process is a number of threads with what they
//! have opened; it can be killed, and its peers see what they see when a machine's process is.
//!
//! What a target has done over sockets of this machine can be recorded, and replayed without any:
//! see [`Taped`].
//!
//! Invariants:
//! - The same seed and the same code give the same events at the same times ([`World::digest`]).
//! - Bytes of a connection arrive in order, once, or not at all; its end arrives after them.
//! - Threads wait only by this world: one that waits otherwise stops it, and all threads.

mod net;
mod process;
mod ring;
mod schedule;
mod state;
mod stream;
mod tape;

pub use net::Link;
pub use process::{Process, World};
pub use tape::{Record, Taped};
