//! Connected sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::{Shutdown, getpeername, getsockname, shutdown, sockopt};

use crate::Result;
use crate::error::During;

/// Sends small messages at once (TCP_NODELAY).
///
/// # Errors
/// When it is no TCP socket.
pub fn send_at_once(socket: &OwnedFd) -> Result<()> {
    sockopt::set_tcp_nodelay(socket, true).during("set TCP_NODELAY")
}

/// After so much silence asks whether the peer is there, in intervals of the second time, and gives
/// it up after so many questions without an answer (SO_KEEPALIVE).
///
/// # Errors
/// When it is no TCP socket.
pub fn keep_alive(
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

/// Says that nothing more will be sent.
pub fn shut_writing(socket: &impl AsFd) {
    let _gone = shutdown(socket, Shutdown::Write);
}

/// Nothing more passes either way: what waits on it ends.
pub fn shut(socket: &impl AsFd) {
    let _gone = shutdown(socket, Shutdown::Both);
}

/// The connection is over at once, and its peer sees a reset: nothing that was to be sent is kept
/// (connecting to nowhere).
pub fn abort(socket: &impl AsFd) {
    let _no_connection = rustix::net::connect_unspec(socket);
}

/// What is still to be sent when it is closed is not sent: its peer sees a reset (SO_LINGER of 0).
pub fn forget_unsent(socket: &impl AsFd) {
    let _no_socket = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// The address of this end.
///
/// # Errors
/// When it is no socket of the Internet.
pub fn local_address(socket: &impl AsFd) -> Result<SocketAddr> {
    let address = getsockname(socket).during("ask for a socket's address")?;
    SocketAddr::try_from(address).during("ask for a socket's address")
}

/// The address of the other end.
///
/// # Errors
/// When it is no socket of the Internet, or the other end is gone.
pub fn peer_address(socket: &impl AsFd) -> Result<SocketAddr> {
    let address = getpeername(socket).during("ask for a peer's address")?;
    let address = address.ok_or(rustix::io::Errno::NOTCONN).during("ask for a peer's address")?;
    SocketAddr::try_from(address).during("ask for a peer's address")
}

/// Bytes that the peer's system has taken since the connection began (TCP_INFO,
/// `tcpi_bytes_acked`).
///
/// # Errors
/// When it is no TCP socket.
#[expect(unsafe_code, reason = "asks for TCP_INFO, which has no safe wrapper")]
pub fn acknowledged_bytes(socket: &impl AsFd) -> Result<u64> {
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
