//! What the kernel asks of who serves files, and how it is answered: FUSE 7.23 and later, as
//! `linux/fuse.h` has it.
//!
//! ```text
//! bytes of one message ─► decode ─► Message: who waits (unique), which node, Asked
//! head + (entry | attributes | opened | … | data) ─► bytes of its answer
//! ```
//!
//! Numbers are those of the machine. Nothing here has a descriptor, a clock or a thread. The kernel
//! is trusted with its own requests; still, no bytes end the process.

mod answer;
mod asked;
#[cfg(test)]
mod tests;

pub(super) use answer::{
    Attributes, Entries, Kind, attributes, entry, head, opened, stale, started, statistics, written,
};
pub(super) use asked::{Asked, Message, Version, decode};

/// The protocol's major number.
pub(super) const MAJOR: u32 = 7;
/// The oldest minor number whose layouts these are (Linux 3.15), and the latest that is known.
pub(super) const MINOR_LEAST: u32 = 23;
const MINOR: u32 = 40;

/// The node of the directory that is mounted.
pub(super) const ROOT: u64 = 1;
/// Bytes in a request of the kernel at most.
pub(super) const REQUEST_BYTES: u32 = 1 << 20;
/// Bytes of a message at most: those, and room for what stands before them.
pub(super) const MESSAGE_BYTES: usize = REQUEST_BYTES as usize + 4096;
/// Requests of the kernel that nobody waits for, at once: a queue of an application is not held up
/// before it is as long.
const BACKGROUND: u16 = 128;
/// Bytes of a page of memory.
const PAGE_BYTES: u32 = 4096;

/// What may be agreed on when something is mounted.
mod flag {
    /// Several reads of a file at once.
    pub(super) const ASYNC_READ: u64 = 1;
    /// Writes of more than a page.
    pub(super) const BIG_WRITES: u64 = 1 << 5;
    /// Several requests for one direct read or write.
    pub(super) const ASYNC_DIO: u64 = 1 << 15;
    /// The answer says how many pages a request has at most.
    pub(super) const MAX_PAGES: u64 = 1 << 22;
    /// There are flags above bit 31.
    pub(super) const INIT_EXT: u64 = 1 << 30;
    /// What is wanted of what is offered.
    pub(super) const WANTED: u64 = ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES | INIT_EXT;
}
