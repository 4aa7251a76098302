//! Bytes to replies and back.

mod memcached;
mod resp;

use workload::KeyOrder;

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
const LINE_MAX: usize = 64 << 10;
/// Longest value; Redis allows no more.
const VALUE_MAX: usize = 512 << 20;

impl Protocol {
    /// Its usual name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resp => "RESP",
            Self::Memcached => "the memcached text protocol",
        }
    }

    /// Appends a command.
    pub(crate) fn encode(self, out: &mut Vec<u8>, command: Command, order: KeyOrder) {
        match self {
            Self::Resp => resp::encode(out, command, order),
            Self::Memcached => memcached::encode(out, command, order),
        }
    }

    /// Reads the reply to `command` from the beginning of `input` and says to `each` what is in it.
    /// Answers how many bytes it had, or nothing if it has not arrived completely; `each` may
    /// then have been told a part, and will be told again.
    pub(crate) fn decode(
        self,
        input: &[u8],
        command: Command,
        order: KeyOrder,
        each: &mut impl FnMut(Item<'_>),
    ) -> Result<Option<(usize, Reply)>, ProtocolError> {
        match self {
            Self::Resp => resp::decode(input, command, each),
            Self::Memcached => memcached::decode(input, command, order, each),
        }
    }

    fn violated(self, wanted: &'static str, found: &[u8]) -> ProtocolError {
        let found = String::from_utf8_lossy(&found[..found.len().min(40)]).into_owned();
        ProtocolError { protocol: self.name(), wanted, found }
    }
}

/// The line at the beginning of `input` without its end, and where the next begins.
fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, &[u8]> {
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
fn decimal(text: &[u8]) -> Option<usize> {
    let number = std::str::from_utf8(text).ok()?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if digits { number.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) const GET: Command = Command::Get { first: 3, count: 1 };
    pub(super) const SET: Command = Command::Set { record: 3, version: 1, bytes: 5 };
    pub(super) const SCAN: Command = Command::Get { first: 3, count: 3 };

    /// The reply, and every item as text.
    pub(super) fn decoded(
        protocol: Protocol,
        input: &[u8],
        command: Command,
    ) -> Result<Option<(usize, Reply, Vec<String>)>, ProtocolError> {
        let mut items = Vec::new();
        let mut each = |item: Item<'_>| {
            items.push(match item {
                Item::Value(record, data) => {
                    format!("{record}={}", String::from_utf8_lossy(data))
                }
                Item::Missing => "-".to_owned(),
            });
        };
        let reply = protocol.decode(input, command, KeyOrder::Ordered, &mut each)?;
        Ok(reply.map(|(length, reply)| (length, reply, items)))
    }

    /// A command as text.
    pub(super) fn encoded(protocol: Protocol, command: Command) -> String {
        let mut out = Vec::new();
        protocol.encode(&mut out, command, KeyOrder::Ordered);
        String::from_utf8(out).expect("text")
    }

    /// What [`decoded`] says of a reply of `length` bytes with these items.
    pub(super) fn done(
        length: usize,
        items: &[&str],
    ) -> Result<Option<(usize, Reply, Vec<String>)>, ProtocolError> {
        let items = items.iter().map(|&item| item.to_owned()).collect();
        Ok(Some((length, Reply::Done, items)))
    }

    /// Any beginning of a good reply is incomplete, and what follows it is left alone.
    pub(super) fn arrives_in_pieces(protocol: Protocol, reply: &[u8], command: Command) {
        for end in 0..reply.len() {
            let part = decoded(protocol, &reply[..end], command);
            assert_eq!(part, Ok(None), "{:?}", String::from_utf8_lossy(&reply[..end]));
        }
        let more = [reply, b"+next"].concat();
        let length = decoded(protocol, &more, command).map(|found| found.map(|found| found.0));
        assert_eq!(length, Ok(Some(reply.len())));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(input: Vec<u8>, which in 0..3_usize) {
            let command = [GET, SET, SCAN][which];
            for protocol in [Protocol::Resp, Protocol::Memcached] {
                if let Ok(Some((length, _, _))) = decoded(protocol, &input, command) {
                    prop_assert!(length <= input.len());
                }
            }
        }

        #[test]
        fn no_changed_byte_is_too_much(at in 0..60_usize, byte: u8, which in 0..3_usize) {
            let command = [GET, SET, SCAN][which];
            let resp = b"*3\r\n$5\r\nhello\r\n$-1\r\n$2\r\nab\r\n$5\r\nhello\r\n+OK\r\n".to_vec();
            let text = b"VALUE user3 0 5\r\nhello\r\nVALUE user5 0 2\r\nab\r\nEND\r\n".to_vec();
            for (protocol, mut input) in [(Protocol::Resp, resp), (Protocol::Memcached, text)] {
                let at = at % input.len();
                input[at] = byte;
                let _reply = decoded(protocol, &input, command);
            }
        }
    }
}
