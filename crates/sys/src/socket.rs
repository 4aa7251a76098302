//! Connected pairs of message sockets, which can transfer descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::Result;
use crate::error::During;

/// One end of a connection that preserves message boundaries.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

/// The result of [`Socket::receive`].
#[derive(Debug)]
pub enum Received {
    /// A message of this many bytes, with the descriptor it carried.
    Message(usize, Option<OwnedFd>),
    /// Nothing has arrived yet.
    Nothing,
    /// The other end is gone.
    Closed,
}

impl Socket {
    /// Two connected ends. The first never blocks; the second does.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub fn pair() -> Result<(Self, OwnedFd)> {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .during("create a socket pair")?;
        rustix::io::ioctl_fionbio(&near, true).during("make a socket non-blocking")?;
        Ok((Self { fd: near }, far))
    }

    /// Sends one message.
    ///
    /// # Errors
    /// When the other end is gone (`EPIPE`) or its queue is full (`EAGAIN`).
    pub fn send(&self, message: &[u8]) -> Result<()> {
        rustix::net::send(&self.fd, message, SendFlags::NOSIGNAL)
            .map(|_sent| ())
            .during("send to the program's helper")
    }

    /// Sends one message that carries a descriptor.
    ///
    /// # Errors
    /// As [`Socket::send`].
    pub fn send_with(&self, message: &[u8], fd: &impl AsFd) -> Result<()> {
        let fds = [fd.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&self.fd, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)
            .map(|_sent| ())
            .during("send a descriptor to the program's helper")
    }

    /// Waits until a message can be sent, for at most `limit`.
    pub fn wait_for_room(&self, limit: std::time::Duration) {
        let limit = rustix::time::Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        let mut set = [PollFd::new(&self.fd, PollFlags::OUT)];
        // After a timeout or an interruption the next send fails, and says so.
        let _ready = rustix::event::poll(&mut set, Some(&limit));
    }

    /// Receives one message into `buffer`; a longer one is cut.
    ///
    /// # Errors
    /// When the kernel refuses; an empty queue and a closed peer are answers, not errors.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Received> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(buffer)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match recvmsg(&self.fd, &mut slices, &mut control, flags) {
            Ok(message) if message.bytes == 0 => Ok(Received::Closed),
            Ok(message) => {
                let passenger = control.drain().find_map(|entry| match entry {
                    RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                    _ => None,
                });
                Ok(Received::Message(message.bytes, passenger))
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Received::Nothing),
            Err(rustix::io::Errno::CONNRESET) => Ok(Received::Closed),
            Err(error) => Err(crate::Error::new("receive from the program's helper", error)),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}
