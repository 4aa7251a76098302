//! A ring of requests and their completions, for one thread: the kernel's io_uring, or a
//! simulation.
//!
//! ```text
//! receive, send, read, write, … ─► wait, or poll ─► take_ended: token, result, and the memory back
//! ```
//!
//! Invariants:
//! - The ring owns the memory of every request until that has ended.
//! - A request completes once, or several times if its completions say that it goes on.

mod alarm;
mod completed;
mod direct;
mod kernel;
mod simulated;

use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::Result;
use crate::block::Block;
use crate::clock::monotonic_ns;
use crate::event::Waker;
use crate::stream::{Listener, Stream};

pub use completed::{Completed, Held};
use kernel::KernelRing;
pub use simulated::{Asked, SimulatedRing, Stretch};

/// See the module's description.
pub struct Ring(Inner);

#[expect(clippy::large_enum_variant, reason = "there is one for each thread")]
enum Inner {
    Kernel(KernelRing),
    Simulated(Box<dyn SimulatedRing>),
}

use Inner::{Kernel, Simulated};

impl Ring {
    /// A ring of the kernel for the calling thread, with room to submit `entries` requests at once.
    ///
    /// # Errors
    /// When the kernel has no io_uring for this user, or is older than 6.1.
    pub fn new(entries: u32) -> Result<Self> {
        KernelRing::new(entries).map(|ring| Self(Kernel(ring)))
    }

    /// A ring of a simulation.
    #[must_use]
    pub fn simulated(ring: Box<dyn SimulatedRing>) -> Self {
        Self(Simulated(ring))
    }

    /// The time of the clock that deadlines refer to: the monotonic one, or the simulated one.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Kernel(_) => monotonic_ns(),
            Simulated(ring) => ring.now_ns(),
        }
    }

    /// Sets whether the thread receives by non-blocking calls of its own, while it has one
    /// connection and messages are short: faster for a thread that calls [`Ring::poll`] all the
    /// time. Off at first. Short messages are sent by such calls in any case.
    pub fn set_direct(&mut self, is_direct: bool) {
        if let Kernel(ring) = &mut self.0 {
            ring.set_direct(is_direct);
        }
    }

    /// How many requests have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        match &self.0 {
            Kernel(ring) => ring.in_flight(),
            Simulated(ring) => ring.in_flight(),
        }
    }

    /// Requests connections from `listener`, one completion each, until accepting fails.
    pub fn accept(&mut self, listener: &Listener, token: u64) {
        match (&mut self.0, listener.kernel()) {
            (Kernel(ring), Some(listener)) => ring.accept(listener, token),
            (Kernel(_), None) => wrong_world(),
            (Simulated(ring), _) => ring.ask(Asked::Accept(listener.clone()), token),
        }
    }

    /// Requests a receive into `bytes` from `from` on; it completes with 0 bytes when the peer has
    /// sent its last.
    ///
    /// # Panics
    /// If `from` is beyond the end of `bytes`.
    pub fn receive(&mut self, socket: &Stream, token: u64, bytes: Vec<u8>, from: usize) {
        match (&mut self.0, socket.kernel()) {
            (Kernel(ring), Some(socket)) => ring.receive(socket, token, bytes, from),
            (Kernel(_), None) => wrong_world(),
            (Simulated(ring), _) => {
                ring.ask(Asked::Receive { stream: socket.clone(), bytes, from }, token);
            }
        }
    }

    /// Requests to send `bytes` from `from` on, all of them unless sending fails in between.
    ///
    /// # Panics
    /// If `from` is beyond the end of `bytes`.
    pub fn send(&mut self, socket: &Stream, token: u64, bytes: Vec<u8>, from: usize) {
        match (&mut self.0, socket.kernel()) {
            (Kernel(ring), Some(socket)) => ring.send(socket, token, bytes, from),
            (Kernel(_), None) => wrong_world(),
            (Simulated(ring), _) => {
                ring.ask(Asked::Send { stream: socket.clone(), bytes, from }, token);
            }
        }
    }

    /// As [`Ring::send`], without copying, in two completions: the first has the number of bytes
    /// sent, and the second, a notice, returns the memory when the peer has acknowledged all bytes.
    /// If sending cannot begin, there is only the first.
    pub fn send_in_place(&mut self, socket: &Stream, token: u64, bytes: Vec<u8>) {
        match (&mut self.0, socket.kernel()) {
            (Kernel(ring), Some(socket)) => ring.send_in_place(socket, token, bytes),
            (Kernel(_), None) => wrong_world(),
            (Simulated(ring), _) => {
                ring.ask(Asked::Send { stream: socket.clone(), bytes, from: 0 }, token);
            }
        }
    }

    /// Requests a completion when the waker is used, or at once if it has been; that resets the
    /// waker. `block` has room for eight bytes.
    pub fn hear(&mut self, waker: &Waker, token: u64, block: Block) {
        match &mut self.0 {
            Kernel(ring) => ring.read(waker.descriptor(), token, block, 0..8, 0),
            Simulated(ring) => ring.ask(Asked::Hear { waker: waker.clone(), block }, token),
        }
    }

    /// Requests a completion when a descriptor is readable or has come to its end. If several rings
    /// watch one descriptor, each event completes the request of one. In a simulation there is no
    /// event.
    pub fn watch(&mut self, file: &Arc<OwnedFd>, token: u64) {
        if let Kernel(ring) = &mut self.0 {
            ring.watch(file, token);
        }
    }

    /// Requests a read from `offset` of a file into a part of `block`.
    ///
    /// # Panics
    /// If the block does not have that part.
    pub fn read(
        &mut self,
        file: &Arc<OwnedFd>,
        token: u64,
        block: Block,
        part: Range<usize>,
        offset: u64,
    ) {
        match &mut self.0 {
            Kernel(ring) => ring.read(file, token, block, part, offset),
            Simulated(ring) => {
                ring.ask(Asked::Read { file: Arc::clone(file), block, part, offset }, token);
            }
        }
    }

    /// Requests a write of a part of `block` to `offset` of a file; with `forced` it completes when
    /// the bytes are on the medium.
    ///
    /// # Panics
    /// If the block does not have that part.
    pub fn write(
        &mut self,
        file: &Arc<OwnedFd>,
        token: u64,
        block: Block,
        part: Range<usize>,
        (offset, forced): (u64, bool),
    ) {
        match &mut self.0 {
            Kernel(ring) => ring.write(file, token, block, part, (offset, forced)),
            Simulated(ring) => {
                let file = Arc::clone(file);
                ring.ask(Asked::Write { file, block, part, offset, forced }, token);
            }
        }
    }

    /// Requests that all bytes written to a file be forced to the medium.
    pub fn sync(&mut self, file: &Arc<OwnedFd>, token: u64) {
        match &mut self.0 {
            Kernel(ring) => ring.sync(file, token),
            Simulated(ring) => ring.ask(Asked::Sync(Arc::clone(file)), token),
        }
    }

    /// Requests that a range of a file be set to zeros.
    pub fn clear(
        &mut self,
        file: &Arc<OwnedFd>,
        token: u64,
        stretch: Stretch,
        [offset, bytes]: [u64; 2],
    ) {
        match &mut self.0 {
            Kernel(ring) => ring.clear(file, token, stretch, [offset, bytes]),
            Simulated(ring) => {
                ring.ask(Asked::Clear { file: Arc::clone(file), stretch, offset, bytes }, token);
            }
        }
    }

    /// Submits requests and waits for a completion, or until `until_ns` by the ring's clock
    /// (`None`: for ever). It may return sooner: after a signal, or at an earlier deadline.
    ///
    /// # Errors
    /// When the kernel refuses the ring itself.
    pub fn wait_until(&mut self, until_ns: Option<u64>) -> Result<()> {
        match &mut self.0 {
            Kernel(ring) => ring.wait_until(until_ns),
            Simulated(ring) => {
                ring.wait_until(until_ns);
                Ok(())
            }
        }
    }

    /// Submits requests, if there are any, and looks for completions without waiting.
    ///
    /// # Errors
    /// As [`Ring::wait_until`].
    pub fn poll(&mut self) -> Result<()> {
        match &mut self.0 {
            Kernel(ring) => ring.poll(),
            Simulated(_) => Ok(()),
        }
    }

    /// Creates the descriptor of [`Ring::bell`], for a thread that waits for other descriptors,
    /// too. A simulation has none.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn set_bell(&mut self) -> Result<()> {
        match &mut self.0 {
            Kernel(ring) => ring.set_bell(),
            Simulated(_) => Ok(()),
        }
    }

    /// The descriptor that becomes readable, or readable anew, when [`Ring::poll`] may find a
    /// completion; `None` without [`Ring::set_bell`].
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Kernel(ring) => ring.bell(),
            Simulated(_) => None,
        }
    }

    /// Makes the bell unreadable until it rings again; call [`Ring::poll`] after that.
    pub fn acknowledge(&self) {
        if let Kernel(ring) = &self.0 {
            ring.acknowledge();
        }
    }

    /// Whether [`Ring::take_ended`] has a completion to return.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.0 {
            Kernel(ring) => ring.has_ended(),
            Simulated(ring) => ring.has_ended(),
        }
    }

    /// Returns the next completion; `None` if there is none.
    pub fn take_ended(&mut self) -> Option<Completed> {
        match &mut self.0 {
            Kernel(ring) => ring.take_ended(),
            Simulated(ring) => ring.take_ended(),
        }
    }

    /// Frees memory for requests that are not under way.
    pub fn shrink(&mut self) {
        if let Kernel(ring) = &mut self.0 {
            ring.shrink();
        }
    }
}

// Panics: a simulated stream or listener was used with a ring of the kernel.
fn wrong_world() -> ! {
    unreachable!("a simulated stream is used in its own simulation")
}
