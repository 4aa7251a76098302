//! Messages between the kernel and a file system in user space: FUSE 7.23 and later, as defined in
//! `linux/fuse.h`.
//!
//! ```text
//! bytes of one message ─► decode ─► Message: who waits (unique), which node, Asked
//! head + (entry | attributes | opened | … | data) ─► bytes of its answer
//! ```
//!
//! Numbers are in the byte order of the machine. Nothing here has a descriptor, a clock or a
//! thread. Requests come from the kernel, which is trusted; still, no bytes make this panic.

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
