//! Decodes requests of the kernel.

use super::numbers::flag;

/// The version of FUSE that the kernel speaks, and the features it offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Version {
    pub(in super::super) major: u32,
    pub(in super::super) minor: u32,
    /// Bytes that the kernel would read ahead.
    pub(in super::super) readahead_bytes: u32,
    pub(in super::super) flags: u64,
}

/// What the kernel requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Asked<'a> {
    /// INIT, the first request: to agree on a version and flags.
    Start(Version),
    /// The node of this name in a directory.
    LookUp(&'a [u8]),
    /// The kernel has dropped nodes from its cache. This request has no answer.
    Forget,
    /// Attributes of a node.
    Attributes,
    /// To change attributes; `is_of_rights` if mode or owner are among them.
    Change { is_of_rights: bool },
    /// To open a file.
    Open,
    /// To open a directory.
    OpenDirectory,
    /// Bytes of a file.
    Read { offset: u64, bytes: u32 },
    /// To write to a file; the answer waits for the medium if `is_forced`.
    Write { offset: u64, data: &'a [u8], is_forced: bool },
    /// Sizes of the file system, for statfs(2).
    Statistics,
    /// fsync(2).
    Sync,
    /// To allocate, or to make zeros, by a mode of fallocate(2).
    Allocate { offset: u64, bytes: u64, mode: u32 },
    /// Entries of a directory after entry number `offset`, in at most `bytes`.
    ReadDirectory { offset: u64, bytes: u32 },
    /// A file or directory is closed, or the mount ends: there is nothing to do.
    Over,
    /// Any other request.
    Other,
}

/// A request of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Message<'a> {
    /// The number of the request, which its answer repeats.
    pub(in super::super) unique: u64,
    pub(in super::super) node: u64,
    pub(in super::super) asked: Asked<'a>,
}

/// Bytes that are no valid request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {bytes} bytes is not what it says")]
pub(in super::super) struct Malformed {
    /// The length of the message.
    pub(in super::super) bytes: usize,
    /// The number of the request, if the message is long enough to have one.
    pub(in super::super) unique: Option<u64>,
}

/// O_DSYNC, a bit that O_SYNC includes.
const O_DSYNC: u32 = 0o10000;
/// Changes of mode and owner: FATTR_MODE, FATTR_UID, FATTR_GID.
const RIGHTS: u32 = 1 | 1 << 1 | 1 << 2;

const HEAD_BYTES: usize = 40;
const WRITE_BYTES: usize = 40;

/// The body of a message, whose fields are at fixed offsets.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    // The name that is the whole body, without its final NUL.
    fn name(&self) -> Option<&'a [u8]> {
        let (last, name) = self.0.split_last()?;
        (*last == 0 && !name.contains(&0)).then_some(name)
    }
}

/// Decodes a message.
///
/// # Errors
/// When its length is not the one in its header, or too short for its request.
pub(in super::super) fn decode(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let head = Fields(bytes);
    let unique = head.u64(8);
    let malformed = Malformed { bytes: bytes.len(), unique };
    let (Some(length), Some(opcode), Some(unique), Some(node), Some(rest)) =
        (head.u32(0), head.u32(4), unique, head.u64(16), bytes.get(HEAD_BYTES..))
    else {
        return Err(malformed);
    };
    if usize::try_from(length) != Ok(bytes.len()) {
        return Err(malformed);
    }
    let asked = asked(opcode, &Fields(rest)).ok_or(malformed)?;
    Ok(Message { unique, node, asked })
}

// Decodes the body of a request by its `enum fuse_opcode`; `None` if the body is malformed.
fn asked<'a>(opcode: u32, rest: &Fields<'a>) -> Option<Asked<'a>> {
    Some(match opcode {
        1 => Asked::LookUp(rest.name()?),
        2 | 42 => Asked::Forget,
        3 => Asked::Attributes,
        4 => Asked::Change { is_of_rights: rest.u32(0)? & RIGHTS != 0 },
        14 => Asked::Open,
        15 => Asked::Read { offset: rest.u64(8)?, bytes: rest.u32(16)? },
        16 => {
            let data = rest.0.get(WRITE_BYTES..)?;
            if u32::try_from(data.len()) != Ok(rest.u32(16)?) {
                return None;
            }
            let is_forced = rest.u32(32)? & O_DSYNC != 0;
            Asked::Write { offset: rest.u64(8)?, data, is_forced }
        }
        17 => Asked::Statistics,
        20 => Asked::Sync,
        // RELEASE, FLUSH, RELEASEDIR, DESTROY: nothing is cached here that would be written now.
        18 | 25 | 29 | 38 => Asked::Over,
        26 => Asked::Start(version(rest)?),
        27 => Asked::OpenDirectory,
        28 => Asked::ReadDirectory { offset: rest.u64(8)?, bytes: rest.u32(16)? },
        43 => Asked::Allocate { offset: rest.u64(8)?, bytes: rest.u64(16)?, mode: rest.u32(24)? },
        _ => Asked::Other,
    })
}

// Decodes INIT (`struct fuse_init_in`).
fn version(rest: &Fields<'_>) -> Option<Version> {
    let low = u64::from(rest.u32(12)?);
    let high = if low & flag::INIT_EXT != 0 { rest.u32(16)? } else { 0 };
    Some(Version {
        major: rest.u32(0)?,
        minor: rest.u32(4)?,
        readahead_bytes: rest.u32(8)?,
        flags: low | u64::from(high) << 32,
    })
}
