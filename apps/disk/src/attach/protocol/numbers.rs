//! Numbers of the protocol, and bounds of what is agreed on.

/// The protocol's major number.
pub(in super::super) const MAJOR: u32 = 7;
/// The oldest minor number whose layouts these are (Linux 3.15), and the latest that is known.
pub(in super::super) const MINOR_LEAST: u32 = 23;
pub(super) const MINOR: u32 = 40;

/// The node of the directory that is mounted.
pub(in super::super) const ROOT: u64 = 1;
/// Bytes in a request of the kernel at most.
pub(super) const REQUEST_BYTES: u32 = 1 << 20;
/// Bytes of a message at most: those, and room for what stands before them.
pub(in super::super) const MESSAGE_BYTES: usize = REQUEST_BYTES as usize + 4096;
/// Requests of the kernel that nobody waits for, at once: a queue of an application is not held up
/// before it is as long.
pub(super) const BACKGROUND: u16 = 128;
/// Bytes of a page of memory.
pub(super) const PAGE_BYTES: u32 = 4096;

/// What may be agreed on when something is mounted.
pub(super) mod flag {
    /// Several reads of a file at once.
    pub(in super::super) const ASYNC_READ: u64 = 1;
    /// Writes of more than a page.
    pub(in super::super) const BIG_WRITES: u64 = 1 << 5;
    /// Several requests for one direct read or write.
    pub(in super::super) const ASYNC_DIO: u64 = 1 << 15;
    /// The answer says how many pages a request has at most.
    pub(in super::super) const MAX_PAGES: u64 = 1 << 22;
    /// There are flags above bit 31.
    pub(in super::super) const INIT_EXT: u64 = 1 << 30;
    /// What is wanted of what is offered.
    pub(in super::super) const WANTED: u64 =
        ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES | INIT_EXT;
}
