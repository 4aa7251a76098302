//! Connections that transfer bytes in order, and their listeners: of the kernel, or simulated.

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

pub use socket::{forget_unsent, has_wrong_port};

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
    /// Sends nothing more.
    Writing,
    /// Nothing is transferred any more, either way.
    Both,
    /// As [`End::Both`], and unsent bytes are dropped.
    Abort,
    /// Unsent bytes are dropped when it is closed.
    Forget,
}

/// One end of a simulated connection.
pub trait SimulatedStream: Send + Sync {
    /// Its number in the simulation.
    fn number(&self) -> u64;

    /// The simulated time, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Waits for bytes, for at most the patience that was set; 0 when the peer has sent its last.
    ///
    /// # Errors
    /// As a socket's.
    fn read(&self, into: &mut [u8]) -> io::Result<usize>;

    /// Sets how long [`SimulatedStream::read`] waits at most (`None`: for ever).
    fn wait_to_read(&self, patience: Option<Duration>);

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// As a socket's.
    fn write_all(&self, bytes: &[u8]) -> io::Result<()>;

    /// Waits until there are bytes to read, or the waker was used, or `timeout` has passed. Returns
    /// whether each of the first two holds.
    fn wait(&self, waker: &Waker, timeout: Option<Duration>) -> [bool; 2];

    /// Ends the connection.
    fn end(&self, end: End);

    /// The address of this end, and of the peer.
    fn addresses(&self) -> [SocketAddr; 2];

    /// Bytes that have arrived at the peer.
    fn acknowledged_bytes(&self) -> u64;
}

impl Stream {
    /// One end of a simulated connection.
    #[must_use]
    pub fn simulated(stream: Arc<dyn SimulatedStream>) -> Self {
        Self(Simulated(stream))
    }

    /// Connects to a name or an address over the kernel's network; `patience` limits connecting,
    /// and each wait of a read or a write. Small messages are sent at once (TCP_NODELAY).
    ///
    /// # Errors
    /// If nothing listens there, or there is no such name.
    pub fn connect(address: &str, patience: Duration) -> io::Result<Self> {
        socket::connect(address, patience).map(Self::from)
    }

    /// Its number in a simulation; `None` for a socket of the kernel.
    #[must_use]
    pub fn simulated_number(&self) -> Option<u64> {
        match &self.0 {
            Kernel(_) => None,
            Simulated(stream) => Some(stream.number()),
        }
    }

    /// The socket of the kernel; `None` in a simulation.
    pub(crate) const fn kernel(&self) -> Option<&Arc<OwnedFd>> {
        match &self.0 {
            Kernel(socket) => Some(socket),
            Simulated(_) => None,
        }
    }

    /// The time of its world's clock, in nanoseconds.
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
    /// If the connection is no TCP socket.
    pub fn send_at_once(&self) -> Result<()> {
        self.kernel().map_or(Ok(()), |socket| socket::send_at_once(socket))
    }

    /// Probes the peer after so much silence, in intervals of the second time, and gives the
    /// connection up after so many unanswered probes (SO_KEEPALIVE).
    ///
    /// # Errors
    /// If the connection is no TCP socket.
    pub fn keep_alive(&self, times: (Duration, Duration, u32)) -> Result<()> {
        self.kernel().map_or(Ok(()), |socket| socket::keep_alive(socket, times))
    }

    /// Sends nothing more; the peer reads an end of the stream.
    pub fn shut_writing(&self) {
        match &self.0 {
            Kernel(socket) => socket::shut_writing(socket),
            Simulated(stream) => stream.end(End::Writing),
        }
    }

    /// Stops both directions: pending reads and writes end.
    pub fn shut(&self) {
        match &self.0 {
            Kernel(socket) => socket::shut(socket),
            Simulated(stream) => stream.end(End::Both),
        }
    }

    /// Ends the connection at once: unsent bytes are dropped and the peer sees a reset (by
    /// connecting to AF_UNSPEC).
    pub fn abort(&self) {
        match &self.0 {
            Kernel(socket) => socket::abort(socket),
            Simulated(stream) => stream.end(End::Abort),
        }
    }

    /// Drops unsent bytes when the connection is closed; its peer then sees a reset (SO_LINGER of
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
    /// If the connection is no Internet socket.
    pub fn local_address(&self) -> Result<SocketAddr> {
        match &self.0 {
            Kernel(socket) => socket::local_address(socket),
            Simulated(stream) => Ok(stream.addresses()[0]),
        }
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// If the connection is no Internet socket, or the other end is gone.
    pub fn peer_address(&self) -> Result<SocketAddr> {
        match &self.0 {
            Kernel(socket) => socket::peer_address(socket),
            Simulated(stream) => Ok(stream.addresses()[1]),
        }
    }

    /// Bytes that the peer's system has acknowledged since the connection began (TCP_INFO,
    /// `tcpi_bytes_acked`).
    ///
    /// # Errors
    /// If the connection is no TCP socket.
    pub fn acknowledged_bytes(&self) -> Result<u64> {
        match &self.0 {
            Kernel(socket) => socket::acknowledged_bytes(socket),
            Simulated(stream) => Ok(stream.acknowledged_bytes()),
        }
    }

    /// Sets how long [`Stream::read`] waits at most (`None`: for ever).
    ///
    /// # Errors
    /// If the connection is no socket, or the time is 0.
    pub fn wait_to_read(&self, patience: Option<Duration>) -> io::Result<()> {
        match &self.0 {
            Kernel(socket) => socket::set_patience(socket, Timeout::Recv, patience),
            Simulated(stream) => {
                stream.wait_to_read(patience);
                Ok(())
            }
        }
    }

    /// Sets how long [`Stream::write_all`] waits at most (`None`: for ever); a simulated one always
    /// waits.
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
    /// `WouldBlock` after a timeout, and the errors of recv(2).
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kernel(socket) => socket::read(socket, into),
            Simulated(stream) => stream.read(into),
        }
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// As send(2).
    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match &self.0 {
            Kernel(socket) => socket::write_all(socket, bytes),
            Simulated(stream) => stream.write_all(bytes),
        }
    }

    /// Waits until there are bytes to read, or the waker was used, or `timeout` has passed (`None`:
    /// for ever). Returns whether each of the first two holds.
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

/// A listener for connections. Clones are the same listener.
#[derive(Clone)]
pub struct Listener(Place);

#[derive(Clone)]
enum Place {
    Kernel(Arc<OwnedFd>),
    Simulated(Arc<dyn SimulatedListener>),
}

/// A listener of a simulation.
pub trait SimulatedListener: Send + Sync {
    /// Its number in the simulation.
    fn number(&self) -> u64;

    /// Stops listening.
    fn shut(&self);
}

impl Listener {
    /// A listener of a simulation.
    #[must_use]
    pub fn simulated(listener: Arc<dyn SimulatedListener>) -> Self {
        Self(Place::Simulated(listener))
    }

    /// Its number in a simulation; `None` for a socket of the kernel.
    #[must_use]
    pub fn simulated_number(&self) -> Option<u64> {
        match &self.0 {
            Place::Kernel(_) => None,
            Place::Simulated(listener) => Some(listener.number()),
        }
    }

    /// The socket of the kernel; `None` in a simulation.
    pub(crate) const fn kernel(&self) -> Option<&Arc<OwnedFd>> {
        match &self.0 {
            Place::Kernel(socket) => Some(socket),
            Place::Simulated(_) => None,
        }
    }

    /// Stops listening: pending accepts fail.
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
