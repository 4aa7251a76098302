use workload::write_value;

use crate::keys::Keys;

use super::message::{Command, Item, Protocol, ProtocolError, Reply, VALUE_MAX, decimal, line};

const TEXT: Protocol = Protocol::Memcached;

/// Appends `command` to `out`.
pub(super) fn encode(out: &mut Vec<u8>, command: Command, keys: Keys) {
    match command {
        Command::Get { first, count } => {
            out.extend_from_slice(b"get");
            for record in first..first + u64::from(count) {
                out.push(b' ');
                keys.write(out, record);
            }
            out.extend_from_slice(b"\r\n");
        }
        Command::Set { record, version, bytes } | Command::Append { record, version, bytes } => {
            let is_set = matches!(command, Command::Set { .. });
            out.extend_from_slice(if is_set { b"set " } else { b"append " });
            keys.write(out, record);
            out.extend_from_slice(format!(" 0 0 {bytes}\r\n").as_bytes());
            write_value(out, record, version, bytes);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Decodes the reply to `command`, as [`Protocol::decode`].
pub(super) fn decode(
    input: &[u8],
    command: Command,
    keys: Keys,
    each: &mut impl FnMut(Item<'_>),
) -> Result<Option<(usize, Reply)>, ProtocolError> {
    let mut at = 0;
    // Values come in the order of the requested keys; the server leaves out missing ones.
    let (mut record, end) = match command {
        Command::Get { first, count } => (first, first + u64::from(count)),
        Command::Set { .. } | Command::Append { .. } => (0, 0),
    };
    loop {
        let rest = &input[at..];
        let Some((head, body)) = line(rest).map_err(|found| TEXT.violated("a line", found))? else {
            return Ok(None);
        };
        let is_get = matches!(command, Command::Get { .. });
        if let Some(error) = refusal(head) {
            return Ok(Some((at + body, Reply::Refused(error))));
        } else if !is_get {
            return match head {
                b"STORED" => Ok(Some((at + body, Reply::Done))),
                _ => Err(TEXT.violated("STORED", head)),
            };
        } else if head == b"END" {
            for _ in record..end {
                each(Item::Missing);
            }
            return Ok(Some((at + body, Reply::Done)));
        }
        let (key, length) = value_line(head)?;
        loop {
            if record == end {
                return Err(TEXT.violated("a key that was asked for", key));
            }
            record += 1;
            if keys.is(key, record - 1) {
                break;
            }
            each(Item::Missing);
        }
        let Some(data) = rest.get(body..body + length + 2) else {
            return Ok(None);
        };
        let Some(data) = data.strip_suffix(b"\r\n") else {
            return Err(TEXT.violated("the end of a value", &data[length..]));
        };
        each(Item::Value(record - 1, data));
        at += body + length + 2;
    }
}

/// The text of an error line; `None` if `head` is no error.
fn refusal(head: &[u8]) -> Option<String> {
    let is_error = head == b"ERROR"
        || head.starts_with(b"CLIENT_ERROR ")
        || head.starts_with(b"SERVER_ERROR ")
        || head == b"NOT_STORED";
    is_error.then(|| String::from_utf8_lossy(head).into_owned())
}

// Key and length of a line `VALUE key flags bytes`, perhaps with a fifth word.
fn value_line(head: &[u8]) -> Result<(&[u8], usize), ProtocolError> {
    let mut words = head.split(|&byte| byte == b' ');
    let (word, key, _flags, length) = (words.next(), words.next(), words.next(), words.next());
    let length = length.and_then(decimal).filter(|&length| length <= VALUE_MAX);
    match (word, key, length) {
        (Some(b"VALUE"), Some(key), Some(length)) => Ok((key, length)),
        _ => Err(TEXT.violated("VALUE or END", head)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{APPEND, GET, SCAN, SET, arrives_in_pieces, decoded, done, encoded};
    use super::*;

    #[test]
    fn commands_are_lines() {
        assert_eq!(encoded(TEXT, GET), "get user3\r\n");
        assert_eq!(encoded(TEXT, SCAN), "get user3 user4 user5\r\n");
        assert_eq!(encoded(TEXT, SET), "set user3 0 0 5\r\n00000\r\n");
        assert_eq!(encoded(TEXT, APPEND), "append user3 0 0 2\r\n00\r\n");
    }

    #[test]
    fn replies() {
        assert_eq!(decoded(TEXT, b"STORED\r\n", SET), done(8, &[]));
        assert_eq!(decoded(TEXT, b"STORED\r\n", APPEND), done(8, &[]));
        assert_eq!(decoded(TEXT, b"END\r\n", GET), done(5, &["-"]));
        let one = b"VALUE user3 0 2\r\nab\r\nEND\r\n";
        assert_eq!(decoded(TEXT, one, GET), done(one.len(), &["3=ab"]));
        let gap = b"VALUE user3 0 1\r\na\r\nVALUE user5 0 3 17\r\nEND\r\nEND\r\n";
        assert_eq!(decoded(TEXT, gap, SCAN), done(gap.len(), &["3=a", "-", "5=END"]));
        let refused = Reply::Refused("SERVER_ERROR out of memory".to_owned());
        let reply = decoded(TEXT, b"SERVER_ERROR out of memory\r\n", SET);
        assert_eq!(reply, Ok(Some((28, refused, vec![]))));
        arrives_in_pieces(TEXT, gap, SCAN);
        arrives_in_pieces(TEXT, b"STORED\r\n", SET);
    }

    #[test]
    fn values_nobody_asked_for_are_violations() {
        let violation = |input: &[u8], command| decoded(TEXT, input, command).expect_err("refused");
        assert_eq!(
            violation(b"VALUE user9 0 1\r\na\r\nEND\r\n", SCAN).to_string(),
            "the server does not speak the memcached text protocol: expected a key that was asked \
             for, got \"user9\""
        );
        let _twice = violation(b"VALUE user3 0 1\r\na\r\nVALUE user3 0 1\r\na\r\nEND\r\n", GET);
        let _redis = violation(b"-ERR unknown command\r\n", GET);
        let _long = violation(b"VALUE user3 0 99999999999\r\n", GET);
    }
}
