use workload::{write_decimal, write_value};

use crate::keys::Keys;

use super::message::{Command, Item, Protocol, ProtocolError, Reply, VALUE_MAX, decimal, line};

const RESP: Protocol = Protocol::Resp;

/// Appends `command` to `out`.
pub(super) fn encode(out: &mut Vec<u8>, command: Command, keys: Keys) {
    match command {
        Command::Get { first, count: 1 } => {
            out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
            bulk_key(out, first, keys);
        }
        Command::Get { first, count } => {
            out.extend_from_slice(format!("*{}\r\n$4\r\nMGET\r\n", count + 1).as_bytes());
            for record in first..first + u64::from(count) {
                bulk_key(out, record, keys);
            }
        }
        Command::Set { record, version, bytes } | Command::Append { record, version, bytes } => {
            let is_set = matches!(command, Command::Set { .. });
            let name: &[u8] = if is_set { b"$3\r\nSET\r\n" } else { b"$6\r\nAPPEND\r\n" };
            out.extend_from_slice(b"*3\r\n");
            out.extend_from_slice(name);
            bulk_key(out, record, keys);
            bulk_length(out, bytes);
            write_value(out, record, version, bytes);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Appends the key of `record` as a bulk string.
fn bulk_key(out: &mut Vec<u8>, record: u64, keys: Keys) {
    bulk_length(out, keys.length(record));
    keys.write(out, record);
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of a bulk string of `length` bytes.
fn bulk_length(out: &mut Vec<u8>, length: usize) {
    out.push(b'$');
    write_decimal(out, length as u64);
    out.extend_from_slice(b"\r\n");
}

type Decoded = Result<Option<(usize, Reply)>, ProtocolError>;

/// Decodes the reply to `command`, as [`Protocol::decode`].
pub(super) fn decode(input: &[u8], command: Command, each: &mut impl FnMut(Item<'_>)) -> Decoded {
    let Some((head, body)) = line(input).map_err(|found| RESP.violated("a line", found))? else {
        return Ok(None);
    };
    if let Some(error) = head.strip_prefix(b"-") {
        let error = String::from_utf8_lossy(error).into_owned();
        return Ok(Some((body, Reply::Refused(error))));
    }
    match command {
        Command::Set { .. } if head == b"+OK" => Ok(Some((body, Reply::Done))),
        Command::Set { .. } => Err(RESP.violated("+OK", head)),
        // Redis returns the new length of the value; a server that merges later returns +OK.
        Command::Append { .. } if head == b"+OK" => Ok(Some((body, Reply::Done))),
        Command::Append { .. } => match head.strip_prefix(b":").and_then(decimal) {
            Some(_) => Ok(Some((body, Reply::Done))),
            None => Err(RESP.violated("a length or +OK", head)),
        },
        Command::Get { first, count: 1 } => {
            let end = bulk(input, 0, first, each)?;
            Ok(end.map(|end| (end, Reply::Done)))
        }
        Command::Get { first, count } => {
            if head.strip_prefix(b"*").and_then(decimal) != usize::try_from(count).ok() {
                return Err(RESP.violated("as many values as keys", head));
            }
            let mut at = body;
            for record in first..first + u64::from(count) {
                match bulk(input, at, record, each)? {
                    Some(end) => at = end,
                    None => return Ok(None),
                }
            }
            Ok(Some((at, Reply::Done)))
        }
    }
}

// Decodes the bulk string at `at`, the value of `record`. Returns the offset of the next one, or
// `None` if this one is incomplete.
fn bulk(
    input: &[u8],
    at: usize,
    record: u64,
    each: &mut impl FnMut(Item<'_>),
) -> Result<Option<usize>, ProtocolError> {
    let rest = &input[at..];
    let Some((head, body)) = line(rest).map_err(|found| RESP.violated("a line", found))? else {
        return Ok(None);
    };
    if head == b"$-1" {
        each(Item::Missing);
        return Ok(Some(at + body));
    }
    let length = head.strip_prefix(b"$").and_then(decimal).filter(|&length| length <= VALUE_MAX);
    let Some(length) = length else {
        return Err(RESP.violated("a bulk string", head));
    };
    let Some(data) = rest.get(body..body + length + 2) else {
        return Ok(None);
    };
    let Some(data) = data.strip_suffix(b"\r\n") else {
        return Err(RESP.violated("the end of a bulk string", &data[length..]));
    };
    each(Item::Value(record, data));
    Ok(Some(at + body + length + 2))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{APPEND, GET, SCAN, SET, arrives_in_pieces, decoded, done, encoded};
    use super::*;

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        assert_eq!(encoded(RESP, GET), "*2\r\n$3\r\nGET\r\n$5\r\nuser3\r\n");
        assert_eq!(
            encoded(RESP, SCAN),
            "*4\r\n$4\r\nMGET\r\n$5\r\nuser3\r\n$5\r\nuser4\r\n$5\r\nuser5\r\n"
        );
        assert_eq!(encoded(RESP, SET), "*3\r\n$3\r\nSET\r\n$5\r\nuser3\r\n$5\r\n00000\r\n");
        assert_eq!(encoded(RESP, APPEND), "*3\r\n$6\r\nAPPEND\r\n$5\r\nuser3\r\n$2\r\n00\r\n");
        let long = Command::Get { first: 1_000_000, count: 1 };
        assert!(encoded(RESP, long).ends_with("$11\r\nuser1000000\r\n"));
    }

    #[test]
    fn replies() {
        assert_eq!(decoded(RESP, b"+OK\r\n", SET), done(5, &[]));
        assert_eq!(decoded(RESP, b"+OK\r\n", APPEND), done(5, &[]));
        assert_eq!(decoded(RESP, b":17\r\n", APPEND), done(5, &[]));
        assert_eq!(decoded(RESP, b"$2\r\nab\r\n$1", GET), done(8, &["3=ab"]));
        assert_eq!(decoded(RESP, b"$-1\r\n", GET), done(5, &["-"]));
        assert_eq!(decoded(RESP, b"$0\r\n\r\n", GET), done(6, &["3="]));
        let three = b"*3\r\n$1\r\na\r\n$-1\r\n$1\r\nc\r\n";
        assert_eq!(decoded(RESP, three, SCAN), done(three.len(), &["3=a", "-", "5=c"]));
        let refused = Reply::Refused("OOM command not allowed".to_owned());
        assert_eq!(
            decoded(RESP, b"-OOM command not allowed\r\n", SET),
            Ok(Some((26, refused, vec![])))
        );
        arrives_in_pieces(RESP, three, SCAN);
        arrives_in_pieces(RESP, b"$5\r\na\r\nb\n\r\n", GET);
    }

    #[test]
    fn violations_name_what_was_expected() {
        let violation = |input: &[u8], command| decoded(RESP, input, command).expect_err("refused");
        assert_eq!(
            violation(b"HTTP/1.1 400 Bad Request\r\n", SET).to_string(),
            "the server does not speak RESP: expected +OK, got \"HTTP/1.1 400 Bad Request\""
        );
        let _no_length = violation(b":-1\r\n", APPEND);
        let _too_long = violation(b"$99999999999\r\n", GET);
        let _fewer = violation(b"*2\r\n", SCAN);
        let _no_end = violation(b"$2\r\nabcd", GET);
    }
}
