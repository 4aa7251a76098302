//! Serves one text over HTTP/1.1 with hyper, on one thread of lower priority than the shards.
//!
//! Invariants:
//! - A connection ends within [`PATIENCE`], however slow its peer is.
//! - There are at most [`CONNECTIONS`]: the oldest is closed for another.
//! - At most [`HEAD_BYTES`] of a request's head are buffered, and none of its body.
//! - The text is made at most once in [`FRESH`], however many requests there are.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::prometheus_text;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

/// The longest life of a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most connections at a time.
const CONNECTIONS: usize = 64;
/// Most bytes of a request's first line and headers: the smallest limit that hyper allows.
const HEAD_BYTES: usize = 8 << 10;
/// How long a text is served again.
const FRESH: Duration = Duration::from_millis(50);
/// Pause before the next accept(2) when one failed.
const PAUSE: Duration = Duration::from_millis(100);
/// The path of the text.
const PATH: &str = "/metrics";
/// Content-Type of the text.
const KIND: HeaderValue = HeaderValue::from_static(prometheus_text::CONTENT_TYPE);
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// The text that is served, and when it was made.
struct Page {
    text: Box<dyn Fn() -> String>,
    last: RefCell<Option<(Instant, Bytes)>>,
    patience: Duration,
}

/// Starts to serve what `text` returns.
///
/// # Errors
/// When the thread cannot be started, or descriptors run out.
pub(crate) fn start(
    listener: net::TcpListener,
    text: impl Fn() -> String + Send + 'static,
) -> io::Result<()> {
    start_with(PATIENCE, listener, text)
}

// As `start`, where a connection lives for `patience` at most.
fn start_with(
    patience: Duration,
    listener: net::TcpListener,
    text: impl Fn() -> String + Send + 'static,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _inside = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let (sender, is_nice) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("afar-metrics".to_owned()).spawn(move || {
        sys::priority::be_nice();
        let _gone = sender.send(());
        let page = Rc::new(Page { text: Box::new(text), last: RefCell::default(), patience });
        serve(&runtime, &listener, &page);
    })?;
    // The thread has set its priority: system calls may be forbidden from here on.
    let _gone = is_nice.recv();
    Ok(())
}

// Accepts connections for ever.
fn serve(runtime: &Runtime, listener: &TcpListener, page: &Rc<Page>) {
    let accept = async {
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            open.retain(|one| !one.is_finished());
            while open.len() >= CONNECTIONS {
                open.pop_front().as_ref().map(AbortHandle::abort);
            }
            open.push_back(spawn_local(converse(stream, Rc::clone(page))).abort_handle());
        }
    };
    LocalSet::new().block_on(runtime, accept)
}

// Serves one connection. Errors of the peer are ignored.
async fn converse(stream: TcpStream, page: Rc<Page>) {
    let patience = page.patience;
    // No request is taken after this time, so that each has as long again to be answered.
    let kept = patience / 2;
    let service = service_fn(move |request| {
        let answer = page.answer(&request);
        async { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(HEAD_BYTES)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    if timeout(kept, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _over = timeout(patience.saturating_sub(kept), connection).await;
    }
}

impl Page {
    // The answer to a request: the text, or an error.
    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let (status, body) = match (request.uri().path(), is_read) {
            (PATH, true) => (StatusCode::OK, self.at(Instant::now())),
            (PATH, false) => {
                (StatusCode::METHOD_NOT_ALLOWED, "There are only GET and HEAD.\n".into())
            }
            _ => (StatusCode::NOT_FOUND, format!("There is only {PATH}.\n").into()),
        };
        let mut answer = Response::new(Full::new(body));
        *answer.status_mut() = status;
        answer.headers_mut().insert(CONTENT_TYPE, KIND);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            answer.headers_mut().insert(ALLOW, METHODS);
        }
        answer
    }

    // The text; made again if the last is too old.
    fn at(&self, now: Instant) -> Bytes {
        let mut last = self.last.borrow_mut();
        let fresh = last.as_ref().filter(|(made, _)| now.duration_since(*made) < FRESH);
        if let Some((_, text)) = fresh {
            return text.clone();
        }
        let text = Bytes::from((self.text)());
        *last = Some((now, text.clone()));
        text
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};

    use super::*;

    const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    const CLOSE: &str = "Host: x\r\nConnection: close\r\n\r\n";

    fn started(text: impl Fn() -> String + Send + 'static) -> SocketAddr {
        started_with(PATIENCE, text)
    }

    fn started_with(patience: Duration, text: impl Fn() -> String + Send + 'static) -> SocketAddr {
        let listener = net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it has one");
        start_with(patience, listener, text).expect("there is a thread");
        address
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).expect("it listens");
        // So that what never comes is a failure and no test that hangs.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        stream
    }

    fn is_closed(stream: &mut TcpStream) -> bool {
        match stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    fn ask(address: SocketAddr, first: &str) -> String {
        let mut stream = connect(address);
        stream.write_all(format!("{first}\r\n{CLOSE}").as_bytes()).expect("it takes that");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        text
    }

    // An answer's head, and as much of a body as that says.
    fn read_one(stream: &mut BufReader<TcpStream>) -> (String, String) {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).expect("it answers"), 0, "{head}");
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse().expect("a number"))
        });
        let mut body = vec![0; length.expect("it says how long")];
        stream.read_exact(&mut body).expect("all of it comes");
        (head, String::from_utf8(body).expect("it is text"))
    }

    #[test]
    fn who_says_nothing_is_in_nobodys_way() {
        // Nobody's time ever comes, so whoever is closed has made room.
        let address = started_with(Duration::from_secs(3600), || "afar_x 1\n".to_owned());
        let mut silent: Vec<_> = (0..500).map(|_| connect(address)).collect();
        let text = ask(address, "GET /metrics HTTP/1.1");
        assert!(text.ends_with("\r\n\r\nafar_x 1\n"), "{text}");
        for stream in &mut silent[..500 - CONNECTIONS] {
            assert!(is_closed(stream), "the oldest are closed for others");
        }
        let last = silent.last_mut().expect("there are some");
        last.set_nonblocking(true).expect("it can be");
        assert!(!is_closed(last), "and no more than have to be");
    }

    #[test]
    fn who_says_nothing_is_let_go() {
        let address = started(|| "afar_x 1\n".to_owned());
        let mut silent = connect(address);
        let mut slow = connect(address);
        slow.write_all(b"GET /metr").expect("it takes that");
        assert!(is_closed(&mut silent) && is_closed(&mut slow));
    }

    #[test]
    fn a_connection_brings_several_answers() {
        let address = started(|| "afar_x 1\n".to_owned());
        let mut stream = BufReader::new(connect(address));
        for _ in 0..3 {
            stream.get_mut().write_all(GET).expect("it takes that");
            let (head, body) = read_one(&mut stream);
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert!(head.contains("text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
            assert_eq!(body, "afar_x 1\n");
        }
        // And is closed when nothing more comes.
        assert_eq!(stream.read(&mut [0; 1]).expect("it is closed"), 0);
    }

    #[test]
    fn what_is_not_there_is_refused_by_the_book() {
        let address = started(|| "afar_x 1\n".to_owned());
        let head = ask(address, "HEAD /metrics HTTP/1.1").to_lowercase();
        assert!(head.starts_with("http/1.1 200 ok\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(head.contains("content-length: 9\r\n"), "{head}");
        let put = ask(address, "PUT /metrics HTTP/1.1").to_lowercase();
        assert!(put.starts_with("http/1.1 405 ") && put.contains("allow: get, head\r\n"), "{put}");
        assert!(ask(address, "GET / HTTP/1.1").starts_with("HTTP/1.1 404 "));
        assert!(ask(address, "GET /metrics?x=1 HTTP/1.0").starts_with("HTTP/1.0 200 "));
        assert!(ask(address, "hello").starts_with("HTTP/1.1 400 "));
    }

    #[test]
    fn a_head_has_a_bound() {
        let address = started(|| "afar_x 1\n".to_owned());
        let mut stream = connect(address);
        // It is answered or cut off, and in no case heard to the end.
        let long = [b'x'; HEAD_BYTES];
        let _cut = stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ");
        while stream.write_all(&long).is_ok() {}
        let mut answer = Vec::new();
        let _cut = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }

    #[test]
    fn who_does_not_read_is_let_go() {
        // More than the sockets of both ends hold.
        let address = started(|| "x".repeat(64 << 20));
        let mut stream = connect(address);
        stream.write_all(GET).expect("it takes that");
        let mut other = connect(address);
        other.write_all(GET).expect("it takes that");
        assert_ne!(other.read(&mut [0; 1]).expect("it answers"), 0);
        // Its time passes without it.
        while stream.write_all(b"\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn many_who_ask_get_one_text() {
        let count = std::cell::Cell::new(0);
        let text = Box::new(move || {
            count.set(count.get() + 1);
            count.get().to_string()
        });
        let page = Page { text, last: RefCell::default(), patience: PATIENCE };
        let began = Instant::now();
        let just = FRESH.saturating_sub(Duration::from_nanos(1));
        let texts = [Duration::ZERO, just, FRESH, FRESH + just, FRESH * 2];
        assert_eq!(texts.map(|after| page.at(began + after)), ["1", "1", "2", "2", "3"]);
    }
}
