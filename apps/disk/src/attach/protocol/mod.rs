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
mod numbers;
#[cfg(test)]
mod tests;

pub(super) use answer::{
    Attributes, Entries, Kind, attributes, entry, head, opened, stale, started, statistics, written,
};
pub(super) use asked::{Asked, Message, Version, decode};
pub(super) use numbers::{MAJOR, MESSAGE_BYTES, MINOR_LEAST, ROOT};
