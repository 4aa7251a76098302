//! Receives and sends that a polling thread makes itself, without the kernel's ring.
//!
//! DESIGN NOTES
//!
//! * Over the ring a receive waits in the kernel, is woken when bytes arrive, and reads them when
//!   the thread enters the kernel again; a send is an entry that is made, submitted and completed.
//!   For a thread that polls, that is work on the path of every message: 2 to 3 of the 20 us of a
//!   round trip. Non-blocking calls take its place, as long as the thread has one connection. With
//!   more connections the ring is cheaper, since it polls all at once.
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

/// A receive that was not submitted to the kernel.
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
    /// Length of the last message sent, and received.
    pub(super) sent: usize,
    pub(super) received: usize,
}

impl Direct {
    /// How many receives are held here: 0 or 1.
    pub(super) fn held(&self) -> usize {
        usize::from(self.held.is_some())
    }

    /// Whether a completion has not been taken.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Returns the next completion; `None` if there is none.
    pub(super) fn take_ended(&mut self) -> Option<Completed> {
        self.ended.pop_front()
    }

    /// Holds a receive here, to be tried at each poll. There is room for one.
    pub(super) fn hold(&mut self, receive: Receive) {
        debug_assert!(self.held.is_none(), "the one before has ended");
        self.held = Some(receive);
    }

    /// Returns the held receive, for the kernel.
    pub(super) fn release(&mut self) -> Option<Receive> {
        self.held.take()
    }

    /// Tries the held receive without waiting.
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

    /// Sends without waiting as much of `bytes` from `from` on as the socket takes. If a part is
    /// left for the kernel, returns the bytes and how many of them were sent; `None` if the send
    /// completed.
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

    /// Adds a completion.
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

/// The result of a non-blocking call; `None` if the call would have waited.
fn unless_it_would_wait(result: rustix::io::Result<usize>) -> Option<io::Result<usize>> {
    match result {
        Err(Errno::AGAIN | Errno::INTR) => None,
        result => Some(result.map_err(io::Error::from)),
    }
}
