//! Connections that bytes pass over in order, and what they come from: of the kernel, or of a
//! simulation.

mod socket;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::Timeout;

use crate::Result;
use crate::clock::monotonic_ns;
use crate::event::{Waker, wait_for};

pub use socket::forget_unsent;

/// One end of a connection. Clones are the same end.
#[derive(Clone)]
pub struct Stream(Inner);

#[derive(Clone)]
enum Inner {
    Kernel(Arc<OwnedFd>),
    Simulated(Arc<dyn SimulatedStream>),
}

use Inner::{Kernel, Simulated};

/// How one end of a connection ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It sends nothing more.
    Writing,
    /// Nothing passes any more, either way.
    Both,
    /// As [`End::Both`], and what was to be sent is not.
    Abort,
    /// What was to be sent is not, once it has ended.
    Forget,
}

/// One end of a connection of a simulation.
pub trait SimulatedStream: Send + Sync {
    /// Which it is, among all there.
    fn number(&self) -> u64;

    /// The time that it is there, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Waits so long for bytes at most; 0 when the peer has sent its last.
    ///
    /// # Errors
    /// As a socket's.
    fn read(&self, into: &mut [u8]) -> io::Result<usize>;

    /// How long [`SimulatedStream::read`] waits at most (`None`: for ever).
    fn wait_to_read(&self, patience: Option<Duration>);

    /// Sends all of it.
    ///
    /// # Errors
    /// As a socket's.
    fn write_all(&self, bytes: &[u8]) -> io::Result<()>;

    /// Waits until there is something to read, or somebody has used the waker, or so long; which
    /// of both is so.
    fn wait(&self, waker: &Waker, timeout: Option<Duration>) -> [bool; 2];

    /// Ends it.
    fn end(&self, end: End);

    /// Its own address, and its peer's.
    fn addresses(&self) -> [SocketAddr; 2];

    /// Bytes that have come to the peer's side.
    fn acknowledged_bytes(&self) -> u64;
}

impl Stream {
    /// One end of a connection of a simulation.
    #[must_use]
    pub fn simulated(stream: Arc<dyn SimulatedStream>) -> Self {
        Self(Simulated(stream))
    }

    /// Connects to a name or an address over the kernel's network, and waits as long for anything
    /// that is sent there. Small messages are sent at once.
    ///
    /// # Errors
    /// When nobody listens there, or there is no such name.
    pub fn connect(address: &str, patience: Duration) -> io::Result<Self> {
        socket::connect(address, patience).map(Self::from)
    }

    /// Its number in a simulation; `None` for the kernel's.
    #[must_use]
    pub fn simulated_number(&self) -> Option<u64> {
        match &self.0 {
            Kernel(_) => None,
            Simulated(stream) => Some(stream.number()),
        }
    }

    pub(crate) const fn kernel(&self) -> Option<&Arc<OwnedFd>> {
        match &self.0 {
            Kernel(socket) => Some(socket),
            Simulated(_) => None,
        }
    }

    /// The time by the clock of what is at its ends, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Kernel(_) => monotonic_ns(),
            Simulated(stream) => stream.now_ns(),
        }
    }

    /// Sends small messages at once (TCP_NODELAY).
    ///
    /// # Errors
    /// When it is no TCP socket.
    pub fn send_at_once(&self) -> Result<()> {
        self.kernel().map_or(Ok(()), |socket| socket::send_at_once(socket))
    }

    /// After so much silence asks whether the peer is there, in intervals of the second time, and
    /// gives it up after so many questions without an answer (SO_KEEPALIVE).
    ///
    /// # Errors
    /// When it is no TCP socket.
    pub fn keep_alive(&self, times: (Duration, Duration, u32)) -> Result<()> {
        self.kernel().map_or(Ok(()), |socket| socket::keep_alive(socket, times))
    }

    /// Says that nothing more will be sent.
    pub fn shut_writing(&self) {
        match &self.0 {
            Kernel(socket) => socket::shut_writing(socket),
            Simulated(stream) => stream.end(End::Writing),
        }
    }

    /// Nothing more passes either way: what waits on it ends.
    pub fn shut(&self) {
        match &self.0 {
            Kernel(socket) => socket::shut(socket),
            Simulated(stream) => stream.end(End::Both),
        }
    }

    /// The connection is over at once, and its peer sees a reset: nothing that was to be sent is
    /// kept (connecting to nowhere).
    pub fn abort(&self) {
        match &self.0 {
            Kernel(socket) => socket::abort(socket),
            Simulated(stream) => stream.end(End::Abort),
        }
    }

    /// What is still to be sent when it is closed is not sent: its peer sees a reset (SO_LINGER of
    /// 0).
    pub fn forget_unsent(&self) {
        match &self.0 {
            Kernel(socket) => forget_unsent(socket),
            Simulated(stream) => stream.end(End::Forget),
        }
    }

    /// The address of this end.
    ///
    /// # Errors
    /// When it is no socket of the Internet.
    pub fn local_address(&self) -> Result<SocketAddr> {
        match &self.0 {
            Kernel(socket) => socket::local_address(socket),
            Simulated(stream) => Ok(stream.addresses()[0]),
        }
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// When it is no socket of the Internet, or the other end is gone.
    pub fn peer_address(&self) -> Result<SocketAddr> {
        match &self.0 {
            Kernel(socket) => socket::peer_address(socket),
            Simulated(stream) => Ok(stream.addresses()[1]),
        }
    }

    /// Bytes that the peer's system has taken since the connection began (TCP_INFO,
    /// `tcpi_bytes_acked`).
    ///
    /// # Errors
    /// When it is no TCP socket.
    pub fn acknowledged_bytes(&self) -> Result<u64> {
        match &self.0 {
            Kernel(socket) => socket::acknowledged_bytes(socket),
            Simulated(stream) => Ok(stream.acknowledged_bytes()),
        }
    }

    /// How long [`Stream::read`] waits at most (`None`: for ever).
    ///
    /// # Errors
    /// When it is no socket, or the time is 0.
    pub fn wait_to_read(&self, patience: Option<Duration>) -> io::Result<()> {
        match &self.0 {
            Kernel(socket) => socket::set_patience(socket, Timeout::Recv, patience),
            Simulated(stream) => {
                stream.wait_to_read(patience);
                Ok(())
            }
        }
    }

    /// How long [`Stream::write_all`] waits at most (`None`: for ever).
    ///
    /// # Errors
    /// As [`Stream::wait_to_read`].
    pub fn wait_to_write(&self, patience: Option<Duration>) -> io::Result<()> {
        let set = |socket| socket::set_patience(socket, Timeout::Send, patience);
        self.kernel().map_or(Ok(()), set)
    }

    /// Waits for bytes; 0 when the peer has sent its last.
    ///
    /// # Errors
    /// `WouldBlock` when nothing has come in time, and what else a socket may say.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kernel(socket) => socket::read(socket, into),
            Simulated(stream) => stream.read(into),
        }
    }

    /// Sends all of it.
    ///
    /// # Errors
    /// As a socket's.
    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match &self.0 {
            Kernel(socket) => socket::write_all(socket, bytes),
            Simulated(stream) => stream.write_all(bytes),
        }
    }

    /// Waits until there is something to read, or somebody has used the waker, or so long (`None`:
    /// for ever); which of both is so.
    ///
    /// # Errors
    /// Never in practice.
    pub fn wait(&self, waker: &Waker, timeout: Option<Duration>) -> Result<[bool; 2]> {
        match &self.0 {
            Kernel(socket) => wait_for([socket.as_fd(), waker.descriptor().as_fd()], timeout),
            Simulated(stream) => Ok(stream.wait(waker, timeout)),
        }
    }
}

impl From<OwnedFd> for Stream {
    fn from(socket: OwnedFd) -> Self {
        Self(Kernel(Arc::new(socket)))
    }
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self::from(OwnedFd::from(socket))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kernel(socket) => f.debug_tuple("Stream").field(socket).finish(),
            Simulated(stream) => f.debug_tuple("Stream").field(&stream.number()).finish(),
        }
    }
}

/// Where connections come. Clones are the same.
#[derive(Clone)]
pub struct Listener(Place);

#[derive(Clone)]
enum Place {
    Kernel(Arc<OwnedFd>),
    Simulated(Arc<dyn SimulatedListener>),
}

/// Where connections of a simulation come.
pub trait SimulatedListener: Send + Sync {
    /// Which it is, among all there.
    fn number(&self) -> u64;

    /// No more come.
    fn shut(&self);
}

impl Listener {
    /// Where connections of a simulation come.
    #[must_use]
    pub fn simulated(listener: Arc<dyn SimulatedListener>) -> Self {
        Self(Place::Simulated(listener))
    }

    /// Its number in a simulation; `None` for the kernel's.
    #[must_use]
    pub fn simulated_number(&self) -> Option<u64> {
        match &self.0 {
            Place::Kernel(_) => None,
            Place::Simulated(listener) => Some(listener.number()),
        }
    }

    pub(crate) const fn kernel(&self) -> Option<&Arc<OwnedFd>> {
        match &self.0 {
            Place::Kernel(socket) => Some(socket),
            Place::Simulated(_) => None,
        }
    }

    /// No more connections come: accepting fails.
    pub fn shut(&self) {
        match &self.0 {
            Place::Kernel(socket) => socket::shut(socket),
            Place::Simulated(listener) => listener.shut(),
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self(Place::Kernel(Arc::new(OwnedFd::from(listener))))
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.simulated_number()).finish()
    }
}
