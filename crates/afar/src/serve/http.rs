//! Answers GET of one text over HTTP/1.1, each connection on a thread of its own.
//!
//! Invariants:
//! - A connection is over within [`PATIENCE`], however slowly it speaks and hears.
//! - There are [`CONNECTIONS`] at most: the oldest ends for another.
//! - No more than [`REQUEST_BYTES`] of a request are kept.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For everything about a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections at a time.
const CONNECTIONS: usize = 64;
/// A request's first line and headers.
const REQUEST_BYTES: usize = 8 << 10;
/// Before the next try, when the system has no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Where the text is.
const PATH: &str = "/metrics";
/// Prometheus' text format.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What there is to read, at the time.
type Text = dyn Fn() -> String + Send + Sync;

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Found,
    Malformed,
    NotFound,
    NotGet,
}

/// Listens, and begins to answer with what `text` says at the time; where it listens.
///
/// # Errors
/// When the address is in use or not ours.
pub(crate) fn start(
    address: SocketAddr,
    text: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let local = listener.local_addr()?;
    let text: Arc<Text> = Arc::new(text);
    std::thread::Builder::new().name("afar-metrics".to_owned()).spawn(move || {
        let mut open = VecDeque::new();
        loop {
            match listener.accept() {
                Ok((stream, _)) => begin(stream, &mut open, &text),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    })?;
    Ok(local)
}

// Answers a connection on a thread of its own, with the oldest of those that are open closed if
// there are as many as may be. Who hangs up or is too slow gets nothing; that is theirs to notice.
fn begin(stream: TcpStream, open: &mut VecDeque<Arc<TcpStream>>, text: &Arc<Text>) {
    // Its thread has the other handle.
    open.retain(|stream| Arc::strong_count(stream) > 1);
    while open.len() >= CONNECTIONS {
        if let Some(oldest) = open.pop_front() {
            let _gone = oldest.shutdown(Shutdown::Both);
        }
    }
    let (stream, text) = (Arc::new(stream), Arc::clone(text));
    open.push_back(Arc::clone(&stream));
    let answering = std::thread::Builder::new()
        .name("afar-scrape".to_owned())
        .spawn(move || drop(answer(&stream, &*text)));
    if answering.is_err() {
        open.pop_back();
    }
}

fn answer(mut stream: &TcpStream, text: &Text) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let verdict = loop {
        if let Some(verdict) = verdict(&request) {
            break verdict;
        }
        let mut part = [0; 1024];
        let count = read(&mut stream, &mut part, until)?;
        if count == 0 {
            break Verdict::Malformed;
        }
        request.extend_from_slice(&part[..count]);
    };
    write(&mut stream, reply(verdict, text).as_bytes(), until)?;
    // Closing with bytes unread would take the answer back.
    stream.shutdown(Shutdown::Write)?;
    while read(&mut stream, &mut [0; 1024], until)? > 0 {}
    Ok(())
}

// What becomes of a request; `None` before all of its headers are there.
fn verdict(request: &[u8]) -> Option<Verdict> {
    let has = |end: &[u8]| request.windows(end.len()).any(|bytes| bytes == end);
    if !has(b"\r\n\r\n") && !has(b"\n\n") {
        return (request.len() >= REQUEST_BYTES).then_some(Verdict::Malformed);
    }
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let Ok(line) = std::str::from_utf8(line) else { return Some(Verdict::Malformed) };
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = words[..] else { return Some(Verdict::Malformed) };
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_method || !target.starts_with('/') || !version.starts_with("HTTP/1.") {
        return Some(Verdict::Malformed);
    }
    Some(match (method, target.split('?').next()) {
        (_, path) if path != Some(PATH) => Verdict::NotFound,
        ("GET", _) => Verdict::Found,
        _ => Verdict::NotGet,
    })
}

fn reply(verdict: Verdict, text: &Text) -> String {
    let (status, body) = match verdict {
        Verdict::Found => ("200 OK", text()),
        Verdict::Malformed => ("400 Bad Request", "This is no HTTP request.\n".to_owned()),
        Verdict::NotFound => ("404 Not Found", format!("There is only {PATH}.\n")),
        Verdict::NotGet => ("405 Method Not Allowed", "There is only GET.\n".to_owned()),
    };
    let allow = if verdict == Verdict::NotGet { "Allow: GET\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {KIND}\r\nContent-Length: {}\r\n{allow}Connection: \
         close\r\n\r\n{body}",
        body.len()
    )
}

fn left(until: Instant) -> io::Result<Option<Duration>> {
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(Some(left)),
    }
}

fn read(stream: &mut &TcpStream, part: &mut [u8], until: Instant) -> io::Result<usize> {
    stream.set_read_timeout(left(until)?)?;
    stream.read(part)
}

fn write(stream: &mut &TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(left(until)?)?;
        match stream.write(bytes)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_judged_when_they_are_whole() {
        let of = |text: &str| verdict(text.as_bytes());
        assert_eq!(of("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), Some(Verdict::Found));
        assert_eq!(of("GET /metrics?x=1 HTTP/1.0\n\n"), Some(Verdict::Found));
        assert_eq!(of("GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
        assert_eq!(of("GET / HTTP/1.1\r\n\r\n"), Some(Verdict::NotFound));
        assert_eq!(of("POST /metrics HTTP/1.1\r\n\r\n"), Some(Verdict::NotGet));
        for wrong in ["\r\n\r\n", "GET /metrics\r\n\r\n", "GET  /metrics HTTP/1.1\r\n\r\n"] {
            assert_eq!(of(wrong), Some(Verdict::Malformed), "{wrong:?}");
        }
        assert_eq!(verdict(b"\xff /metrics HTTP/1.1\r\n\r\n"), Some(Verdict::Malformed));
        assert_eq!(verdict(&[b'x'; REQUEST_BYTES]), Some(Verdict::Malformed));
        assert_eq!(verdict(&[b'x'; REQUEST_BYTES - 1]), None);
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request).expect("it takes that");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        text
    }

    #[test]
    fn who_says_nothing_is_in_nobodys_way() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let address = start(address, || "afar_x 1\n".to_owned()).expect("it can listen");
        // More than may be open: the first are closed although their time has not come.
        let mut silent: Vec<_> = (0..2 * CONNECTIONS)
            .map(|_| TcpStream::connect(address).expect("it listens"))
            .collect();
        let text = ask(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(silent[0].read(&mut [0; 1]).expect("it is closed"), 0);
        drop(silent);
        let (head, body) = text.split_once("\r\n\r\n").expect("it has headers");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Length: 9\r\n"), "{head}");
        assert_eq!(body, "afar_x 1\n");
        let long = [&[b'x'; 2 * REQUEST_BYTES][..], b"\r\n\r\n"].concat();
        assert!(ask(address, &long).starts_with("HTTP/1.1 400 "));
        let put = ask(address, b"PUT /metrics HTTP/1.1\r\n\r\n");
        assert!(put.starts_with("HTTP/1.1 405 ") && put.contains("Allow: GET"), "{put}");
    }
}
