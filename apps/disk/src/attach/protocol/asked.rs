//! Bytes of the kernel into what it asks.

use super::numbers::flag;

/// The version of the protocol that the kernel has, and what it offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Version {
    pub(in super::super) major: u32,
    pub(in super::super) minor: u32,
    /// Bytes that it would read ahead.
    pub(in super::super) readahead_bytes: u32,
    pub(in super::super) flags: u64,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Asked<'a> {
    /// To agree on how to talk, first of all.
    Start(Version),
    /// The node of this name in a directory.
    LookUp(&'a [u8]),
    /// Nodes need not be known any more; this has no answer.
    Forget,
    /// What a node is.
    Attributes,
    /// To change that; whether mode or owner are among it.
    Change { is_of_rights: bool },
    /// To open a file.
    Open,
    /// To open a directory.
    OpenDirectory,
    /// Bytes of a file.
    Read { offset: u64, bytes: u32 },
    /// To write to a file; on the medium at once if `is_forced`.
    Write { offset: u64, data: &'a [u8], is_forced: bool },
    /// How much room there is.
    Statistics,
    /// To put on the medium what was written.
    Sync,
    /// To allocate, or to make zeros, by a mode of fallocate(2).
    Allocate { offset: u64, bytes: u64, mode: u32 },
    /// Names in a directory behind the entry of this number, in so many bytes.
    ReadDirectory { offset: u64, bytes: u32 },
    /// Something is closed or over: there is nothing to do.
    Over,
    /// Anything else.
    Other,
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Message<'a> {
    /// By which its answer is known.
    pub(in super::super) unique: u64,
    pub(in super::super) node: u64,
    pub(in super::super) asked: Asked<'a>,
}

/// A message that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {bytes} bytes is not what it says")]
pub(in super::super) struct Malformed {
    /// Its length.
    pub(in super::super) bytes: usize,
    /// Who waits for its answer, as far as it says that.
    pub(in super::super) unique: Option<u64>,
}

/// O_DSYNC, which O_SYNC has in it.
const O_DSYNC: u32 = 0o10000;
/// What is changed: FATTR_MODE, FATTR_UID, FATTR_GID.
const RIGHTS: u32 = 1 | 1 << 1 | 1 << 2;

const HEAD_BYTES: usize = 40;
const WRITE_BYTES: usize = 40;

/// Fields at fixed places of what a message brings.
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

    // Up to its NUL, which ends it.
    fn name(&self) -> Option<&'a [u8]> {
        let (last, name) = self.0.split_last()?;
        (*last == 0 && !name.contains(&0)).then_some(name)
    }
}

/// What a message asks.
///
/// # Errors
/// When it is shorter or longer than what it says.
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

// By the numbers of `enum fuse_opcode`.
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
        // RELEASE, FLUSH, RELEASEDIR, DESTROY: nothing is kept back that had to be written now.
        18 | 25 | 29 | 38 => Asked::Over,
        26 => Asked::Start(version(rest)?),
        27 => Asked::OpenDirectory,
        28 => Asked::ReadDirectory { offset: rest.u64(8)?, bytes: rest.u32(16)? },
        43 => Asked::Allocate { offset: rest.u64(8)?, bytes: rest.u64(16)?, mode: rest.u32(24)? },
        _ => Asked::Other,
    })
}

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
