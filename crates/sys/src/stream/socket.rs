//! Sockets of the kernel.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, getpeername, getsockname, shutdown, sockopt};

use crate::Result;
use crate::error::During;

/// Sends small messages at once (TCP_NODELAY).
///
/// # Errors
/// If the connection is no TCP socket.
pub(super) fn send_at_once(socket: &OwnedFd) -> Result<()> {
    sockopt::set_tcp_nodelay(socket, true).during("set TCP_NODELAY")
}

/// Probes the peer after so much silence, in intervals of the second time, and gives the connection
/// up after so many unanswered probes (SO_KEEPALIVE).
///
/// # Errors
/// If the connection is no TCP socket.
pub(super) fn keep_alive(
    socket: &OwnedFd,
    (idle, interval, count): (Duration, Duration, u32),
) -> Result<()> {
    let set = || {
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, idle)?;
        sockopt::set_tcp_keepintvl(socket, interval)?;
        sockopt::set_tcp_keepcnt(socket, count)
    };
    set().during("set SO_KEEPALIVE")
}

/// Sends nothing more; the peer reads an end of the stream.
pub(super) fn shut_writing(socket: &impl AsFd) {
    let _gone = shutdown(socket, Shutdown::Write);
}

/// Stops both directions: pending reads and writes end.
pub(super) fn shut(socket: &impl AsFd) {
    let _gone = shutdown(socket, Shutdown::Both);
}

/// Ends the connection at once: unsent bytes are dropped and the peer sees a reset (by connecting
/// to AF_UNSPEC).
pub(super) fn abort(socket: &impl AsFd) {
    let _no_connection = rustix::net::connect_unspec(socket);
}

/// Drops unsent bytes when the connection is closed; its peer then sees a reset (SO_LINGER of 0).
pub fn forget_unsent(socket: &impl AsFd) {
    let _no_socket = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// The address of this end.
///
/// # Errors
/// If the connection is no Internet socket.
pub(super) fn local_address(socket: &impl AsFd) -> Result<SocketAddr> {
    let address = getsockname(socket).during("ask for a socket's address")?;
    SocketAddr::try_from(address).during("ask for a socket's address")
}

/// The address of the other end.
///
/// # Errors
/// If the connection is no Internet socket, or the other end is gone.
pub(super) fn peer_address(socket: &impl AsFd) -> Result<SocketAddr> {
    let address = getpeername(socket).during("ask for a peer's address")?;
    let address = address.ok_or(Errno::NOTCONN).during("ask for a peer's address")?;
    SocketAddr::try_from(address).during("ask for a peer's address")
}

/// Bytes that the peer's system has acknowledged since the connection began (TCP_INFO,
/// `tcpi_bytes_acked`).
///
/// # Errors
/// If the connection is no TCP socket.
#[expect(unsafe_code, reason = "asks for TCP_INFO, which has no safe wrapper")]
pub(super) fn acknowledged_bytes(socket: &impl AsFd) -> Result<u64> {
    // include/uapi/linux/tcp.h: the first fields of `struct tcp_info`, in 8-byte words.
    const WORDS: usize = 16;
    const BYTES_ACKED: usize = 15;
    let mut info = [0_u64; WORDS];
    let mut length = u32::try_from(size_of_val(&info)).unwrap_or(u32::MAX);
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes into `info`, which is that long.
    let done = unsafe {
        let to = info.as_mut_ptr().cast();
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length)
    };
    if done != 0 {
        return Err(io::Error::last_os_error()).during("ask for a connection's state");
    }
    Ok(info[BYTES_ACKED])
}

/// Sets the longest wait of a read or a write (SO_RCVTIMEO, SO_SNDTIMEO); `None` for no limit.
///
/// # Errors
/// If `socket` is no socket.
pub(super) fn set_patience(
    socket: &impl AsFd,
    way: sockopt::Timeout,
    patience: Option<Duration>,
) -> io::Result<()> {
    Ok(sockopt::set_socket_timeout(socket, way, patience)?)
}

/// Waits for bytes; 0 when the peer has sent its last.
///
/// # Errors
/// As recv(2).
pub(super) fn read(socket: &impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, into, RecvFlags::empty())?.0)
}

/// Sends all of `bytes`.
///
/// # Errors
/// As send(2).
pub(super) fn write_all(socket: &impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether what stands behind the last colon of HOST:PORT is no port that somebody listens on.
#[must_use]
pub fn has_wrong_port(address: &str) -> bool {
    let port = address.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// Connects to a name or an address within a time, for each address that a name has.
///
/// # Errors
/// If nothing listens there, or there is no such name.
pub(super) fn connect(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::other("no such host");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
