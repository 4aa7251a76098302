//! What a thread that looks for its answers does itself, without the kernel's ring.
//!
//! DESIGN NOTES
//!
//! * Over the ring a receive waits in the kernel, is woken when bytes come, and reads them when the
//!   thread enters again; a send is an entry that is made, handed over and reported. While somebody
//!   looks all the time that is work on the way of every message: 2 to 3 us of a round trip of 20.
//!   Plain calls that do not wait take its place, as long as the thread has one connection. With
//!   more of them the ring is cheaper, for it looks at all at once.
//! * A thread that sleeps still sends a short message itself: it leaves 1 us sooner, and what the
//!   thread does before it sleeps comes after it.
//! * With long messages, that is with many requests in each, calls of its own cost 10 % of the
//!   throughput 128 deep: they take what has come sooner, and so less at a time.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::completed::{Completed, Held, length_of};

/// A receive that the kernel does not have.
pub(super) struct Receive {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) token: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) from: usize,
}

/// See the module's description.
#[derive(Default)]
pub(super) struct Direct {
    pub(super) is_on: bool,
    held: Option<Receive>,
    ended: VecDeque<Completed>,
    /// Bytes of the last message each way.
    pub(super) sent: usize,
    pub(super) received: usize,
}

impl Direct {
    /// Receives that the kernel does not have.
    pub(super) fn held(&self) -> usize {
        usize::from(self.held.is_some())
    }

    /// Whether something has ended that has not been taken.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    pub(super) fn take_ended(&mut self) -> Option<Completed> {
        self.ended.pop_front()
    }

    /// Keeps a receive back, to be tried at each look. There is room for one.
    pub(super) fn hold(&mut self, receive: Receive) {
        debug_assert!(self.held.is_none(), "the one before has ended");
        self.held = Some(receive);
    }

    /// The receive that was kept back, for the kernel.
    pub(super) fn release(&mut self) -> Option<Receive> {
        self.held.take()
    }

    /// Tries the receive that was kept back.
    pub(super) fn look(&mut self) {
        let Some(receive) = &mut self.held else { return };
        let room = &mut receive.bytes[receive.from..];
        let received = rustix::net::recv(&receive.socket, room, RecvFlags::DONTWAIT);
        let result = received.map(|(count, _)| count);
        if let Some(result) = unless_it_would_wait(result)
            && let Some(Receive { token, bytes, .. }) = self.held.take()
        {
            self.received = result.as_ref().map_or(0, |count| *count);
            self.ended(token, result, bytes);
        }
    }

    /// Sends what the socket takes of `bytes` from `from` on. What is left, if anything, is for the
    /// kernel: the bytes, and how many of them have gone.
    pub(super) fn send(
        &mut self,
        socket: &Arc<OwnedFd>,
        token: u64,
        bytes: Vec<u8>,
        from: usize,
    ) -> Option<(Vec<u8>, usize)> {
        let rest = &bytes[from..];
        let all = rest.len();
        let sent = rustix::net::send(socket, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        match unless_it_would_wait(sent) {
            None => Some((bytes, 0)),
            Some(Ok(count)) if count < all => Some((bytes, count)),
            Some(result) => {
                self.ended(token, result, bytes);
                None
            }
        }
    }

    fn ended(&mut self, token: u64, result: io::Result<usize>, bytes: Vec<u8>) {
        self.ended.push_back(Completed {
            token,
            result: result.map(length_of),
            held: Held::Bytes(bytes),
            accepted: None,
            has_more: false,
            is_notice: false,
        });
    }
}

fn unless_it_would_wait(result: rustix::io::Result<usize>) -> Option<io::Result<usize>> {
    match result {
        Err(Errno::AGAIN | Errno::INTR) => None,
        result => Some(result.map_err(io::Error::from)),
    }
}
