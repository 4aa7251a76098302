//! What both protocols say, and how their lines end.

/// What a server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The Redis serialization protocol, version 2.
    Resp,
    /// The text protocol of memcached (`doc/protocol.txt`).
    Memcached,
}

/// What goes over the wire for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Read `count` records from `first` on.
    Get { first: u64, count: u32 },
    /// Store a version of a record.
    Set { record: u64, version: u64, bytes: usize },
    /// Have a record end with a value of this version, too.
    Append { record: u64, version: u64, bytes: usize },
}

/// What a server said of one record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// Record number `.0` holds this.
    Value(u64, &'a [u8]),
    /// There is no such record.
    Missing,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// As asked.
    Done,
    /// The server would not.
    Refused(String),
}

/// The server said what the protocol does not allow; the connection is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak {protocol}: expected {wanted}, got {found:?}")]
pub struct ProtocolError {
    protocol: &'static str,
    wanted: &'static str,
    found: String,
}

/// Longest line that is not a value.
pub(super) const LINE_MAX: usize = 64 << 10;
/// Longest value; Redis allows no more.
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

    pub(super) fn violated(self, wanted: &'static str, found: &[u8]) -> ProtocolError {
        let found = String::from_utf8_lossy(&found[..found.len().min(40)]).into_owned();
        ProtocolError { protocol: self.name(), wanted, found }
    }
}

/// The line at the beginning of `input` without its end, and where the next begins.
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

/// A decimal number and nothing else.
pub(super) fn decimal(text: &[u8]) -> Option<usize> {
    let number = std::str::from_utf8(text).ok()?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if digits { number.parse().ok() } else { None }
}
