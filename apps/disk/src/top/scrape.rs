//! Reads the text of a target's metrics: one HTTP/1.1 request, for which no library is needed.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::TopError;

/// Time-out for connecting, and for each part of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of an answer.
const BYTES_MOST: u64 = 64 << 20;

/// Reads `/metrics` at an address with a port.
pub(super) fn fetch(address: &str) -> Result<String, TopError> {
    let unreachable = |source| TopError::Unreachable { address: address.to_owned(), source };
    let answer = ask(address).map_err(unreachable)?;
    body(&answer).map_err(|reason| TopError::Strange { address: address.to_owned(), reason })
}

// Sends the request; returns all bytes of the answer.
fn ask(address: &str) -> io::Result<Vec<u8>> {
    let mut stream = dial(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(BYTES_MOST).read_to_end(&mut answer)?;
    Ok(answer)
}

// Connects to the first address of a host that accepts.
fn dial(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("no such host");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

// The body of an HTTP answer; an error unless its status is 200 and its length right.
fn body(answer: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(answer).map_err(|_| "what answers is no text".to_owned())?;
    let (head, body) =
        text.split_once("\r\n\r\n").ok_or_else(|| "what answers speaks no HTTP".to_owned())?;
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    if !words.next().is_some_and(|version| version.starts_with("HTTP/1.")) {
        return Err("what answers speaks no HTTP".to_owned());
    }
    if words.next() != Some("200") {
        let printable: String = first.chars().filter(|c| !c.is_control()).take(80).collect();
        return Err(format!("it answers {printable:?}"));
    }
    let length = lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    match length {
        Some(Ok(length)) if length != body.len() => {
            Err(format!("{} bytes came for {length}", body.len()))
        }
        _ => Ok(body.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_whole_or_refused() {
        let of = |text: &str| body(text.as_bytes());
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(of(&format!("{ok}a 1")), Ok("a 1".to_owned()));
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\na 1"), Ok("a 1".to_owned()));
        for (text, reason) in [
            (format!("{ok}a"), "1 bytes came for 3"),
            ("HTTP/1.1 404 Not Found\r\n\r\n".to_owned(), "404"),
            ("SSH-2.0-x\r\n".to_owned(), "no HTTP"),
            ("SSH-2.0-x\r\n\r\n".to_owned(), "no HTTP"),
        ] {
            assert!(of(&text).expect_err("it is not").contains(reason), "{text}");
        }
        assert!(body(b"\xff").is_err());
    }
}
