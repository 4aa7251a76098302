//! Constants of FUSE, and the limits that INIT agrees on.

/// The protocol's major number.
pub(in super::super) const MAJOR: u32 = 7;
/// The oldest minor version with these layouts (Linux 3.15), and the newest that is supported.
pub(in super::super) const MINOR_LEAST: u32 = 23;
pub(super) const MINOR: u32 = 40;

/// The node of the directory that is mounted.
pub(in super::super) const ROOT: u64 = 1;
/// Bytes that one request reads or writes at most.
pub(super) const REQUEST_BYTES: u32 = 1 << 20;
/// Bytes of a message at most: the data of a write, and room for its headers.
pub(in super::super) const MESSAGE_BYTES: usize = REQUEST_BYTES as usize + 4096;
/// Background requests of the kernel at once: asynchronous I/O of an application is not throttled
/// below this queue depth.
pub(super) const BACKGROUND: u16 = 128;
/// Bytes of a page of memory.
pub(super) const PAGE_BYTES: u32 = 4096;

/// Flags of INIT.
pub(super) mod flag {
    /// Several reads of a file at once.
    pub(in super::super) const ASYNC_READ: u64 = 1;
    /// Writes of more than a page.
    pub(in super::super) const BIG_WRITES: u64 = 1 << 5;
    /// Several requests for one direct read or write.
    pub(in super::super) const ASYNC_DIO: u64 = 1 << 15;
    /// The answer to INIT says how many pages a request has at most.
    pub(in super::super) const MAX_PAGES: u64 = 1 << 22;
    /// There are flags above bit 31.
    pub(in super::super) const INIT_EXT: u64 = 1 << 30;
    /// The flags that are accepted if the kernel offers them.
    pub(in super::super) const WANTED: u64 =
        ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES | INIT_EXT;
}
