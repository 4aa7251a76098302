//! The page over HTTP/1.1, on 127.0.0.1: hyper, on one thread. One page, and a stream of events.
//!
//! Invariants:
//! - Who does not know the token gets nothing, in a time that does not tell how much of it was
//!   right; nor does who asks by another name (a page of another site whose name leads here).
//! - There are [`CONNECTIONS_MAX`] connections and [`WATCHERS_MAX`] streams at most: more are
//!   refused with status 503.
//! - A stream holds one event that was not sent yet; a newer one takes the place of the next.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::net;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use super::pace::{Watcher, Watchers};
use super::page;

/// The most streams of events at a time.
pub(super) const WATCHERS_MAX: usize = 16;
/// The most connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// How long the head of a request may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// A request's first line and headers: the least that hyper takes.
const HEAD_BYTES: usize = 8 << 10;
/// The pause before the next accept, when the system has no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// After this long without an event a comment is sent, which finds out who has gone.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a stream waits for a reader that takes nothing.
const STALLED: Duration = Duration::from_secs(60);
const TOKEN_BYTES: usize = 16;
/// How soon a browser that lost the stream connects again, ms.
const RETRY: &str = "retry: 1000\n\n";
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\
                      Connection: close\r\n\r\n";

/// Sends events to all streams.
#[derive(Debug)]
pub(super) struct Events(watch::Sender<Bytes>);

impl Events {
    /// Makes `event` the next one of every stream, in place of any that was not sent yet.
    pub(super) fn send(&self, event: &page::Event) {
        self.0.send_replace(Bytes::from(event.text()));
    }
}

/// What the server needs to answer requests.
struct Door {
    token: String,
    hosts: [String; 2],
    page: Bytes,
    policy: HeaderValue,
    events: watch::Receiver<Bytes>,
    watchers: Arc<Watchers>,
}

/// Starts the server on a thread; returns the URL of the page of `name`, and the sender of events.
///
/// # Errors
/// When the system has no thread for it, or no more files.
pub(super) fn start(
    listener: net::TcpListener,
    name: &str,
    watchers: Arc<Watchers>,
) -> io::Result<(String, Events)> {
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _inside = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let (sender, events) = watch::channel(Bytes::new());
    let (token, nonce) = (secret(), secret());
    let url = format!("http://127.0.0.1:{port}/?token={token}");
    let policy = HeaderValue::try_from(page::policy(&nonce)).map_err(io::Error::other)?;
    let door = Door {
        token,
        hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
        page: Bytes::from(page::html(name, &nonce)),
        policy,
        events,
        watchers,
    };
    std::thread::Builder::new().name("afar-page".to_owned()).spawn(move || {
        sys::priority::be_nice();
        serve(&runtime, &listener, &Rc::new(door));
    })?;
    Ok((url, Events(sender)))
}

/// A random token, in hexadecimal.
fn secret() -> String {
    let mut bytes = [0; TOKEN_BYTES];
    sys::random::fill(&mut bytes);
    let mut text = String::with_capacity(2 * TOKEN_BYTES);
    for byte in bytes {
        let _infallible = write!(text, "{byte:02x}");
    }
    text
}

/// Accepts connections, and answers each in a task of its own, for ever.
fn serve(runtime: &Runtime, listener: &TcpListener, door: &Rc<Door>) {
    let open = Rc::new(());
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            if Rc::strong_count(&open) > CONNECTIONS_MAX {
                let _gone = stream.try_write(FULL);
                continue;
            }
            let (door, one) = (Rc::clone(door), Rc::clone(&open));
            spawn_local(async move {
                converse(stream, door).await;
                drop(one);
            });
        }
    };
    LocalSet::new().block_on(runtime, accept)
}

// Answers the requests of one connection, until it is closed or fails.
async fn converse(stream: TcpStream, door: Rc<Door>) {
    let service = service_fn(move |request| {
        let answer = door.answer(&request);
        async { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let _gone = connection.await;
}

impl Door {
    /// The response to a request: the page, the stream of events, or a refusal.
    fn answer<B>(&self, request: &Request<B>) -> Response<Answer> {
        let refused = |status: StatusCode, why: &str| {
            let text = Answer::Whole(Some(Bytes::from(format!("{why}\n"))));
            self.with_headers(status, "text/plain; charset=utf-8", text)
        };
        if !self.is_for_us(request) {
            return refused(StatusCode::FORBIDDEN, "Ask for 127.0.0.1 or localhost.");
        }
        if !self.is_known(request.uri().query().unwrap_or_default()) {
            let why =
                "Open the address that afar watch has printed: its token is missing or wrong.";
            return refused(StatusCode::FORBIDDEN, why);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer =
                refused(StatusCode::METHOD_NOT_ALLOWED, "There are only GET and HEAD.");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match request.uri().path() {
            "/" => {
                let page = Answer::Whole(Some(self.page.clone()));
                self.with_headers(StatusCode::OK, "text/html; charset=utf-8", page)
            }
            // HEAD is not for a stream.
            "/events" if request.method() == Method::GET => {
                match Watcher::enter(Arc::clone(&self.watchers), WATCHERS_MAX) {
                    Some(watcher) => self.stream(watcher),
                    None => {
                        let why = format!("{WATCHERS_MAX} pages are open; close one.");
                        refused(StatusCode::SERVICE_UNAVAILABLE, &why)
                    }
                }
            }
            _ => refused(StatusCode::NOT_FOUND, "There is only the page at /."),
        }
    }

    // Whether the one `Host` of a request names this server: browsers put there what their address
    // line says.
    fn is_for_us<B>(&self, request: &Request<B>) -> bool {
        let mut names = request.headers().get_all(header::HOST).iter();
        let is_ours = |name: &HeaderValue| {
            name.to_str().is_ok_and(|name| self.hosts.iter().any(|host| host.as_str() == name))
        };
        let is_alone = names.next().is_some_and(is_ours) && names.next().is_none();
        is_alone && request.uri().authority().is_none()
    }

    /// Whether a query has the token, compared in constant time.
    fn is_known(&self, query: &str) -> bool {
        let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        token.is_some_and(|token| bool::from(token.as_bytes().ct_eq(self.token.as_bytes())))
    }

    /// The response that streams events to a watcher.
    fn stream(&self, watcher: Watcher<Arc<Watchers>>) -> Response<Answer> {
        let (sender, receiver) = mpsc::channel(1);
        spawn_local(feed(self.events.clone(), sender));
        let stream = Answer::Stream { receiver, _watcher: watcher };
        self.with_headers(StatusCode::OK, "text/event-stream", stream)
    }

    /// A response with the headers that all responses have.
    fn with_headers(
        &self,
        status: StatusCode,
        kind: &'static str,
        answer: Answer,
    ) -> Response<Answer> {
        let mut answer = Response::new(answer);
        *answer.status_mut() = status;
        let fixed = [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, "no-store"),
            // The token is in the address.
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        for (name, value) in fixed {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let own = HeaderValue::from_static("same-origin");
        answer.headers_mut().insert("cross-origin-resource-policy", own.clone());
        answer.headers_mut().insert("cross-origin-opener-policy", own);
        answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        answer
    }
}

// Sends each new event to a stream, and comments in between, until nobody takes them.
async fn feed(mut events: watch::Receiver<Bytes>, to: mpsc::Sender<Bytes>) {
    let mut next = Bytes::from_static(RETRY.as_bytes());
    events.mark_changed();
    while let Ok(Ok(())) = timeout(STALLED, to.send(next)).await {
        next = match timeout(SILENCE, events.changed()).await {
            // Before the first look there is no event.
            Ok(Ok(())) if events.borrow().is_empty() => {
                events.mark_unchanged();
                Bytes::from_static(b":\n\n")
            }
            Ok(Ok(())) => events.borrow_and_update().clone(),
            Ok(Err(_)) => return,
            Err(_) => Bytes::from_static(b":\n\n"),
        };
    }
}

/// The body of a response.
enum Answer {
    Whole(Option<Bytes>),
    Stream { receiver: mpsc::Receiver<Bytes>, _watcher: Watcher<Arc<Watchers>> },
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take()),
            Self::Stream { receiver, .. } => receiver.poll_recv(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
                hyper::body::SizeHint::with_exact(length)
            }
            Self::Stream { .. } => hyper::body::SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests;
