//! Encodes commands and decodes replies.
//!
//! Written here, because a client library has sockets and waits of its own, and a load measures
//! when a request is sent and answered.

mod memcached;
mod message;
mod resp;

use crate::keys::Keys;

pub(crate) use message::{Command, Item, Reply};
pub use message::{Protocol, ProtocolError};

impl Protocol {
    /// Appends `command` to `out`.
    pub(crate) fn encode(self, out: &mut Vec<u8>, command: Command, keys: Keys) {
        match self {
            Self::Resp => resp::encode(out, command, keys),
            Self::Memcached => memcached::encode(out, command, keys),
        }
    }

    /// Decodes the reply to `command` at the beginning of `input` and calls `each` for every record
    /// in it. Returns its length and result, or `None` if the reply is incomplete; `each` may then
    /// have been called for a part and will be called for that again.
    pub(crate) fn decode(
        self,
        input: &[u8],
        command: Command,
        keys: Keys,
        each: &mut impl FnMut(Item<'_>),
    ) -> Result<Option<(usize, Reply)>, ProtocolError> {
        match self {
            Self::Resp => resp::decode(input, command, each),
            Self::Memcached => memcached::decode(input, command, keys, each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) const GET: Command = Command::Get { first: 3, count: 1 };
    pub(super) const SET: Command = Command::Set { record: 3, version: 1, bytes: 5 };
    pub(super) const APPEND: Command = Command::Append { record: 3, version: 1, bytes: 2 };
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
        let reply = protocol.decode(input, command, Keys::PLAIN, &mut each)?;
        Ok(reply.map(|(length, reply)| (length, reply, items)))
    }

    /// A command as text.
    pub(super) fn encoded(protocol: Protocol, command: Command) -> String {
        let mut out = Vec::new();
        protocol.encode(&mut out, command, Keys::PLAIN);
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
        fn no_bytes_are_too_much(input: Vec<u8>, which in 0..4_usize) {
            let command = [GET, SET, SCAN, APPEND][which];
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
