//! Answers into bytes for the kernel.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::asked::Version;
use super::numbers::{BACKGROUND, MAJOR, MINOR, PAGE_BYTES, REQUEST_BYTES, flag};

const HEAD_BYTES: usize = 16;
/// FUSE_NOTIFY_INVAL_INODE.
const STALE: i32 = 2;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Kind {
    Directory,
    File,
}

impl Kind {
    // S_IFDIR and S_IFREG, without what stands for rights.
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
    /// As chmod(1) writes them.
    pub(in super::super) rights: u32,
    pub(in super::super) bytes: u64,
    /// When it was made, read, written and changed.
    pub(in super::super) since: SystemTime,
    pub(in super::super) user: u32,
    pub(in super::super) group: u32,
}

/// Bytes that grow field by field.
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

    // `struct fuse_attr`.
    fn attributes(self, of: &Attributes) -> Self {
        let since = of.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, rest) = (since.as_secs(), since.subsec_nanos());
        let size = self.u64(of.node).u64(of.bytes).u64(of.bytes / 512);
        let times = size.u64(seconds).u64(seconds).u64(seconds).u32(rest).u32(rest).u32(rest);
        let owner = times.u32(of.kind.bits() | of.rights).u32(1).u32(of.user).u32(of.group);
        owner.u32(0).u32(PAGE_BYTES).u32(0)
    }
}

/// What every answer begins with: that it went well, or an error of errno(3), and how many bytes
/// follow.
pub(in super::super) fn head(unique: u64, error: i32, follow: usize) -> [u8; HEAD_BYTES] {
    let all = u32::try_from(HEAD_BYTES.saturating_add(follow)).unwrap_or(u32::MAX);
    let mut bytes = [0; HEAD_BYTES];
    bytes[..4].copy_from_slice(&all.to_ne_bytes());
    bytes[4..8].copy_from_slice(&(-error).to_ne_bytes());
    bytes[8..].copy_from_slice(&unique.to_ne_bytes());
    bytes
}

/// Tells the kernel, which has not asked, that what it knows of a node is not so any more.
pub(in super::super) fn stale(node: u64) -> ([u8; HEAD_BYTES], Vec<u8>) {
    // Attributes only: from before the beginning on.
    let rest = Fields::default().u64(node).u64(u64::MAX).u64(0).0;
    (head(0, -STALE, rest.len()), rest)
}

/// Answers what begins a mount.
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

/// A node that was looked for, which is so for a time.
pub(in super::super) fn entry(of: &Attributes, fresh: Duration) -> Vec<u8> {
    let (seconds, rest) = (fresh.as_secs(), fresh.subsec_nanos());
    let times = Fields::default().u64(of.node).u64(0).u64(seconds).u64(seconds);
    times.u32(rest).u32(rest).attributes(of).0
}

/// Attributes, which are so for a time.
pub(in super::super) fn attributes(of: &Attributes, fresh: Duration) -> Vec<u8> {
    let times = Fields::default().u64(fresh.as_secs()).u32(fresh.subsec_nanos()).u32(0);
    times.attributes(of).0
}

/// Something was opened. A file is read and written past the page cache (FOPEN_DIRECT_IO), by
/// several at once (FOPEN_PARALLEL_DIRECT_WRITES).
pub(in super::super) fn opened(kind: Kind) -> Vec<u8> {
    let flags = if kind == Kind::File { 1 | 1 << 6 } else { 0 };
    Fields::default().u64(0).u32(flags).u32(0).0
}

/// So many bytes were written.
pub(in super::super) fn written(bytes: u32) -> [u8; 8] {
    let mut all = [0; 8];
    all[..4].copy_from_slice(&bytes.to_ne_bytes());
    all
}

/// A file system of one file of so many bytes, without room for more.
pub(in super::super) fn statistics(bytes: u64) -> Vec<u8> {
    let blocks = Fields::default().u64(bytes / u64::from(PAGE_BYTES)).u64(0).u64(0);
    let mut all = blocks.u64(1).u64(0).u32(PAGE_BYTES).u32(255).u32(PAGE_BYTES).0;
    all.resize(80, 0);
    all
}

/// Entries of a directory, as many as fit.
pub(in super::super) struct Entries {
    bytes: Vec<u8>,
    most: usize,
}

impl Entries {
    /// None yet, in so many bytes at most.
    pub(in super::super) fn new(most: u32) -> Self {
        Self { bytes: Vec::new(), most: usize::try_from(most).unwrap_or(usize::MAX) }
    }

    /// Adds one; whether it fits. Whoever asks for what is behind it gives its number.
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

    /// The answer.
    pub(in super::super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
