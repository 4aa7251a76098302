//! The server as others see it: over sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use super::*;
use crate::watch::shown::Shown;

struct Served {
    port: u16,
    token: String,
    events: Events,
    watchers: Arc<Watchers>,
}

impl Served {
    fn new() -> Self {
        let listener = net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let watchers = Arc::new(Watchers::default());
        let (url, events) = start(listener, "x", Arc::clone(&watchers)).expect("a thread");
        let rest = url.strip_prefix("http://127.0.0.1:").expect("loopback");
        let (port, token) = rest.split_once("/?token=").expect("a token");
        Self { port: port.parse().expect("a port"), token: token.to_owned(), events, watchers }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        // So that what never comes is a failure and no test that hangs.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        stream
    }

    fn head(&self, first: &str, host: &str) -> String {
        format!("{first} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn ask(&self, first: &str, host: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(self.head(first, host).as_bytes()).expect("it takes that");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        text
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path}"), &self.host())
    }

    // A stream whose first line has come, so that it counts; or the status of the refusal.
    fn stream(&self) -> Result<BufReader<TcpStream>, String> {
        let mut stream = self.connect();
        let first = format!("GET /events?token={}", self.token);
        stream.write_all(self.head(&first, &self.host()).as_bytes()).expect("it takes that");
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).expect("it answers");
        if line.contains(" 200 ") { Ok(stream) } else { Err(line) }
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn nobody_has_the_page_without_the_token() {
    let served = Served::new();
    let token = &served.token;
    assert_eq!(token.len(), 2 * TOKEN_BYTES);
    let page = served.get(&format!("/?token={token}"));
    assert!(status(&page) == "200" && page.contains("<h1>x</h1>"), "{page:.300}");
    let (almost, short) = (format!("{}g", &token[..31]), &token[..31]);
    let upper = token.to_uppercase();
    for path in ["/", "/events"] {
        for query in ["", "?", "?token=", &format!("?token={almost}"), &format!("?token={short}")] {
            assert_eq!(status(&served.get(&format!("{path}{query}"))), "403", "{path}{query}");
        }
        let twice = format!("{path}?token=x&token={token}");
        assert_eq!(status(&served.get(&twice)), "403", "the first counts");
    }
    assert!(upper == *token || status(&served.get(&format!("/?token={upper}"))) == "403");
    assert_eq!(status(&served.get(&format!("/other?token={token}"))), "404");
    let post = served.ask(&format!("POST /?token={token}"), &served.host());
    assert!(status(&post) == "405" && post.contains("allow: GET, HEAD"), "{post}");
}

#[test]
fn tokens_are_drawn_anew() {
    assert_ne!(Served::new().token, Served::new().token);
}

#[test]
fn another_name_for_this_machine_has_nothing() {
    let served = Served::new();
    let (port, get) = (served.port, format!("GET /?token={}", served.token));
    for host in ["evil.example", "127.0.0.1", "", &format!("evil.example:{port}")] {
        assert_eq!(status(&served.ask(&get, host)), "403", "{host}");
    }
    let host = served.host();
    let both = format!("{host}\r\nHost: evil.example");
    assert_ne!(status(&served.ask(&get, &both)), "200");
    let absolute = format!("GET http://evil.example/?token={}", served.token);
    assert_eq!(status(&served.ask(&absolute, &host)), "403");
    assert_eq!(status(&served.ask(&get, &format!("localhost:{port}"))), "200");
}

#[test]
fn the_page_may_ask_nobody_else() {
    let served = Served::new();
    for path in [format!("/?token={}", served.token), "/".to_owned()] {
        let answer = served.get(&path);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        for wanted in [
            "default-src 'none'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(wanted), "{wanted}: {head}");
        }
        assert!(!head.contains("unsafe") && !head.contains("access-control"), "{head}");
        for outside in ["http://", "https://", "src=\"", "@import", "url("] {
            assert!(!body.contains(outside), "{outside}");
        }
    }
}

#[test]
fn streams_have_a_bound_and_who_goes_makes_room() {
    let served = Served::new();
    let mut streams: Vec<_> =
        (0..WATCHERS_MAX).map(|_| served.stream().expect("there is room")).collect();
    let refused = served.stream().expect_err("one too many");
    assert_eq!(status(&refused), "503");
    // The page itself is still there.
    assert_eq!(status(&served.get(&format!("/?token={}", served.token))), "200");
    streams.pop();
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while served.stream().is_err() {
        assert!(std::time::Instant::now() < until, "who went made no room");
        std::thread::yield_now();
    }
}

#[test]
fn a_stream_has_the_last_event_first_and_then_the_new() {
    let served = Served::new();
    let shown = |state: &str| Shown { state: state.to_owned(), is_there: true, sections: None };
    let mut event = page::Event::default();
    for state in ["old", "last"] {
        event.update(shown(state));
        served.events.send(&event);
    }
    let mut stream = served.stream().expect("there is room");
    // Somebody watches.
    served.watchers.wait();
    let mut until = |wanted: &str| {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert_ne!(stream.read_line(&mut line).expect("it goes on"), 0, "{wanted}");
            assert!(!line.contains("\"old\""), "{line}");
        }
    };
    until("text/event-stream");
    until("retry: 1000");
    until("data: {\"state\":\"last\"");
    event.update(shown("new"));
    served.events.send(&event);
    until("data: {\"state\":\"new\"");
}

#[test]
fn connections_have_a_bound() {
    let served = Served::new();
    // Who says nothing is let go after a while, and that may be before the last is there.
    let is_full = || {
        let silent: Vec<_> = (0..CONNECTIONS_MAX).map(|_| served.connect()).collect();
        let mut text = String::new();
        let told = served.connect().read_to_string(&mut text);
        drop(silent);
        told.is_ok() && status(&text) == "503"
    };
    assert!((0..20).any(|_| is_full()), "there is no bound");
}
