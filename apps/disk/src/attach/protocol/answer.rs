//! Encodes answers to the kernel.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::asked::Version;
use super::numbers::{BACKGROUND, MAJOR, MINOR, PAGE_BYTES, REQUEST_BYTES, flag};

const HEAD_BYTES: usize = 16;
/// The code of a notification that a node is stale: FUSE_NOTIFY_INVAL_INODE.
const STALE: i32 = 2;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Kind {
    Directory,
    File,
}

impl Kind {
    // The file type in a mode: S_IFDIR or S_IFREG, without permission bits.
    const fn bits(self) -> u32 {
        match self {
            Self::Directory => 0o040_000,
            Self::File => 0o100_000,
        }
    }
}

/// Attributes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Attributes {
    pub(in super::super) node: u64,
    pub(in super::super) kind: Kind,
    /// Permission bits, as in chmod(1).
    pub(in super::super) rights: u32,
    pub(in super::super) bytes: u64,
    /// All times of the node: of access, modification and change.
    pub(in super::super) since: SystemTime,
    pub(in super::super) user: u32,
    pub(in super::super) group: u32,
}

/// Encodes a structure field by field, in the byte order of this machine.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    // Appends `struct fuse_attr`.
    fn attributes(self, of: &Attributes) -> Self {
        let since = of.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, rest) = (since.as_secs(), since.subsec_nanos());
        let size = self.u64(of.node).u64(of.bytes).u64(of.bytes / 512);
        let times = size.u64(seconds).u64(seconds).u64(seconds).u32(rest).u32(rest).u32(rest);
        let owner = times.u32(of.kind.bits() | of.rights).u32(1).u32(of.user).u32(of.group);
        owner.u32(0).u32(PAGE_BYTES).u32(0)
    }
}

/// The header of an answer (`struct fuse_out_header`): 0 or an error of errno(3), and the length,
/// with `follow` bytes behind the header.
pub(in super::super) fn head(unique: u64, error: i32, follow: usize) -> [u8; HEAD_BYTES] {
    let all = u32::try_from(HEAD_BYTES.saturating_add(follow)).unwrap_or(u32::MAX);
    let mut bytes = [0; HEAD_BYTES];
    bytes[..4].copy_from_slice(&all.to_ne_bytes());
    bytes[4..8].copy_from_slice(&(-error).to_ne_bytes());
    bytes[8..].copy_from_slice(&unique.to_ne_bytes());
    bytes
}

/// A notification that the kernel's cached attributes of a node are stale, as header and body.
pub(in super::super) fn stale(node: u64) -> ([u8; HEAD_BYTES], Vec<u8>) {
    // A negative offset: attributes only, no data.
    let rest = Fields::default().u64(node).u64(u64::MAX).u64(0).0;
    (head(0, -STALE, rest.len()), rest)
}

/// The answer to INIT (`struct fuse_init_out`): version, flags and limits of the mount.
pub(in super::super) fn started(of: &Version) -> Vec<u8> {
    let flags = if of.major == MAJOR { of.flags & flag::WANTED } else { 0 };
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    let [low, high] = [half(flags), half(flags >> 32)];
    let pages = u16::try_from(REQUEST_BYTES / PAGE_BYTES).unwrap_or(u16::MAX);
    let version = Fields::default().u32(MAJOR).u32(MINOR.min(of.minor)).u32(of.readahead_bytes);
    let bounds = version.u32(low).u16(BACKGROUND).u16(BACKGROUND / 4 * 3).u32(REQUEST_BYTES);
    let mut all = bounds.u32(1).u16(pages).u16(0).u32(high).0;
    all.resize(64, 0);
    all
}

/// The answer to a lookup (`struct fuse_entry_out`), which the kernel may cache for `fresh`.
pub(in super::super) fn entry(of: &Attributes, fresh: Duration) -> Vec<u8> {
    let (seconds, rest) = (fresh.as_secs(), fresh.subsec_nanos());
    let times = Fields::default().u64(of.node).u64(0).u64(seconds).u64(seconds);
    times.u32(rest).u32(rest).attributes(of).0
}

/// The answer with attributes (`struct fuse_attr_out`), which the kernel may cache for `fresh`.
pub(in super::super) fn attributes(of: &Attributes, fresh: Duration) -> Vec<u8> {
    let times = Fields::default().u64(fresh.as_secs()).u32(fresh.subsec_nanos()).u32(0);
    times.attributes(of).0
}

/// The answer to open (`struct fuse_open_out`). Files bypass the page cache (FOPEN_DIRECT_IO) and
/// take writes in parallel (FOPEN_PARALLEL_DIRECT_WRITES).
pub(in super::super) fn opened(kind: Kind) -> Vec<u8> {
    let flags = if kind == Kind::File { 1 | 1 << 6 } else { 0 };
    Fields::default().u64(0).u32(flags).u32(0).0
}

/// The answer to a write (`struct fuse_write_out`) of `bytes`.
pub(in super::super) fn written(bytes: u32) -> [u8; 8] {
    let mut all = [0; 8];
    all[..4].copy_from_slice(&bytes.to_ne_bytes());
    all
}

/// The answer to statfs(2): a full file system with one file of `bytes`.
pub(in super::super) fn statistics(bytes: u64) -> Vec<u8> {
    let blocks = Fields::default().u64(bytes / u64::from(PAGE_BYTES)).u64(0).u64(0);
    let mut all = blocks.u64(1).u64(0).u32(PAGE_BYTES).u32(255).u32(PAGE_BYTES).0;
    all.resize(80, 0);
    all
}

/// The answer to readdir: entries of a directory (`struct fuse_dirent`), as many as fit.
pub(in super::super) struct Entries {
    bytes: Vec<u8>,
    most: usize,
}

impl Entries {
    /// No entries yet, and room for `most` bytes.
    pub(in super::super) fn new(most: u32) -> Self {
        Self { bytes: Vec::new(), most: usize::try_from(most).unwrap_or(usize::MAX) }
    }

    /// Adds an entry; returns whether it fits. To read on after it, the kernel passes its number.
    pub(in super::super) fn add(&mut self, node: u64, number: u64, kind: Kind, name: &str) -> bool {
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
        let entry = Fields::default().u64(node).u64(number).u32(length).u32(kind.bits() >> 12);
        let mut entry = entry.0;
        entry.extend(name.as_bytes());
        entry.resize(entry.len().next_multiple_of(8), 0);
        let fits = self.bytes.len() + entry.len() <= self.most;
        if fits {
            self.bytes.extend(entry);
        }
        fits
    }

    /// The encoded entries.
    pub(in super::super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
