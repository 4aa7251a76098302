//! Mailboxes of the threads of a disk.

use std::sync::mpsc::{Receiver, Sender, channel};

use sys::event::Waker;

/// A handle for sending messages to a thread and waking it.
pub(super) struct Post<M> {
    sender: Sender<M>,
    waker: Waker,
}

impl<M> Post<M> {
    /// A handle, and the receiver for its thread.
    pub(super) fn new() -> sys::Result<(Self, Receiver<M>)> {
        let (sender, receiver) = channel();
        Ok((Self { sender, waker: Waker::new()? }, receiver))
    }

    /// Sends a message and wakes the thread; does nothing if it has ended.
    pub(super) fn tell(&self, message: M) {
        if self.sender.send(message).is_ok() {
            self.waker.wake();
        }
    }

    /// The thread's waker.
    pub(super) const fn waker(&self) -> &Waker {
        &self.waker
    }
}
