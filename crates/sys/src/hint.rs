//! The hints of `madvise`, as the kernel numbers them.

/// The hints after which memory reads as zeros, at once or later.
pub const EMPTYING: [u64; 3] = [DONTNEED, FREE, DONTNEED_LOCKED];

/// `MADV_WILLNEED`
pub const WILLNEED: u64 = 3;
/// `MADV_DONTNEED`
pub const DONTNEED: u64 = 4;
/// `MADV_FREE`
pub const FREE: u64 = 8;
/// `MADV_REMOVE`
pub const REMOVE: u64 = 9;
/// `MADV_DONTFORK`
pub const DONTFORK: u64 = 10;
/// `MADV_DOFORK`
pub const DOFORK: u64 = 11;
/// `MADV_MERGEABLE`
pub const MERGEABLE: u64 = 12;
/// `MADV_UNMERGEABLE`
pub const UNMERGEABLE: u64 = 13;
/// `MADV_HUGEPAGE`
pub const HUGEPAGE: u64 = 14;
/// `MADV_NOHUGEPAGE`
pub const NOHUGEPAGE: u64 = 15;
/// `MADV_WIPEONFORK`
pub const WIPEONFORK: u64 = 18;
/// `MADV_KEEPONFORK`
pub const KEEPONFORK: u64 = 19;
/// `MADV_COLD`
pub const COLD: u64 = 20;
/// `MADV_PAGEOUT`
pub const PAGEOUT: u64 = 21;
/// `MADV_POPULATE_READ`
pub const POPULATE_READ: u64 = 22;
/// `MADV_POPULATE_WRITE`
pub const POPULATE_WRITE: u64 = 23;
/// `MADV_DONTNEED_LOCKED`
pub const DONTNEED_LOCKED: u64 = 24;
/// `MADV_COLLAPSE`
pub const COLLAPSE: u64 = 25;
