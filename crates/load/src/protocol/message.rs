//! Commands and replies of both protocols, and the parsing of lines.

/// A protocol of key-value stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The Redis serialization protocol, version 2.
    Resp,
    /// The text protocol of memcached (`doc/protocol.txt`).
    Memcached,
}

/// A command that is sent for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Read `count` records from `first` on.
    Get { first: u64, count: u32 },
    /// Store a version of a record.
    Set { record: u64, version: u64, bytes: usize },
    /// Append a value of a version to that of a record.
    Append { record: u64, version: u64, bytes: usize },
}

/// The part of a reply that is about one record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// Record number `.0` has the value `.1`.
    Value(u64, &'a [u8]),
    /// The server has no such record.
    Missing,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The command was executed.
    Done,
    /// The server answered with this error.
    Refused(String),
}

/// The server violated the protocol; the connection cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak {protocol}: expected {wanted}, got {found:?}")]
pub struct ProtocolError {
    protocol: &'static str,
    wanted: &'static str,
    found: String,
}

/// Longest line, in bytes; values are no lines.
pub(super) const LINE_MAX: usize = 64 << 10;
/// Longest value, in bytes, which is Redis' limit.
pub(super) const VALUE_MAX: usize = 512 << 20;

impl Protocol {
    /// Its usual name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resp => "RESP",
            Self::Memcached => "the memcached text protocol",
        }
    }

    /// The error that the server sent `found` where `wanted` was expected.
    pub(super) fn violated(self, wanted: &'static str, found: &[u8]) -> ProtocolError {
        let found = String::from_utf8_lossy(&found[..found.len().min(40)]).into_owned();
        ProtocolError { protocol: self.name(), wanted, found }
    }
}

/// The first line of `input` without its line end, and the offset of the next line; `None` if it is
/// incomplete. The error is the beginning of a line that is too long.
pub(super) fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, &[u8]> {
    let window = &input[..input.len().min(LINE_MAX)];
    match window.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            let text = &window[..end];
            Ok(Some((text.strip_suffix(b"\r").unwrap_or(text), end + 1)))
        }
        None if input.len() >= LINE_MAX => Err(window),
        None => Ok(None),
    }
}

/// The number that `text` is in decimal; `None` if it has anything but digits.
pub(super) fn decimal(text: &[u8]) -> Option<usize> {
    let number = std::str::from_utf8(text).ok()?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if digits { number.parse().ok() } else { None }
}
