//! How threads of a disk tell one another things.

use std::sync::mpsc::{Receiver, Sender, channel};

use sys::event::Waker;

/// A way to a thread that waits for its waker.
pub(super) struct Post<M> {
    sender: Sender<M>,
    waker: Waker,
}

impl<M> Post<M> {
    /// A way, and its end.
    pub(super) fn new() -> sys::Result<(Self, Receiver<M>)> {
        let (sender, receiver) = channel();
        Ok((Self { sender, waker: Waker::new()? }, receiver))
    }

    /// Hands over a message; a thread that has gone needs none.
    pub(super) fn tell(&self, message: M) {
        if self.sender.send(message).is_ok() {
            self.waker.wake();
        }
    }

    pub(super) const fn waker(&self) -> &Waker {
        &self.waker
    }
}
