//! A ring of requests and their completions, for one thread: of the kernel, or of a simulation.
//!
//! ```text
//! receive, send, read, write, … ─► wait, or poll ─► take_ended: token, result, and the memory back
//! ```
//!
//! Invariants:
//! - The ring owns the memory of every request until that has ended.
//! - A request ends once, or as often as it says that it goes on.

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

    /// The time by the clock of its deadlines: the monotonic one, unless it is simulated.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Kernel(_) => monotonic_ns(),
            Simulated(ring) => ring.now_ns(),
        }
    }

    /// Whether the thread receives by calls of its own that do not wait, while it has one
    /// connection and messages are short: sooner for one that calls [`Ring::poll`] all the time.
    /// Not so at first. It sends such messages itself in any case.
    pub fn set_direct(&mut self, is_direct: bool) {
        if let Kernel(ring) = &mut self.0 {
            ring.set_direct(is_direct);
        }
    }

    /// Requests that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        match &self.0 {
            Kernel(ring) => ring.in_flight(),
            Simulated(ring) => ring.in_flight(),
        }
    }

    /// Accepts connections until it fails.
    pub fn accept(&mut self, listener: &Listener, token: u64) {
        match (&mut self.0, listener.kernel()) {
            (Kernel(ring), Some(listener)) => ring.accept(listener, token),
            (Kernel(_), None) => wrong_world(),
            (Simulated(ring), _) => ring.ask(Asked::Accept(listener.clone()), token),
        }
    }

    /// Receives into `bytes` from `from` on; 0 bytes when the peer has sent its last.
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

    /// Sends `bytes` from `from` on, all of them unless it fails in between.
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

    /// As [`Ring::send`], but without copying: two completions, of which the first says what was
    /// sent and the second, a notice, brings the memory back when the peer has all of it. If it
    /// cannot begin, there is only the first.
    pub fn send_in_place(&mut self, socket: &Stream, token: u64, bytes: Vec<u8>) {
        match (&mut self.0, socket.kernel()) {
            (Kernel(ring), Some(socket)) => ring.send_in_place(socket, token, bytes),
            (Kernel(_), None) => wrong_world(),
            (Simulated(ring), _) => {
                ring.ask(Asked::Send { stream: socket.clone(), bytes, from: 0 }, token);
            }
        }
    }

    /// Ends when somebody has used the waker, or has already; it is as if unused then. `block` has
    /// room for eight bytes.
    pub fn hear(&mut self, waker: &Waker, token: u64, block: Block) {
        match &mut self.0 {
            Kernel(ring) => ring.read(waker.descriptor(), token, block, 0..8, 0),
            Simulated(ring) => ring.ask(Asked::Hear { waker: waker.clone(), block }, token),
        }
    }

    /// Ends when there is something to read from a descriptor, or it has come to its end. Of
    /// several rings that watch the same, each thing that comes ends the request of one. In a
    /// simulation nothing comes.
    pub fn watch(&mut self, file: &Arc<OwnedFd>, token: u64) {
        if let Kernel(ring) = &mut self.0 {
            ring.watch(file, token);
        }
    }

    /// Reads from `offset` of a file into part of `block`.
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

    /// Writes part of `block` to `offset` of a file; with `forced` it has ended when that is on the
    /// medium.
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

    /// Puts what has been written to a file on the medium.
    pub fn sync(&mut self, file: &Arc<OwnedFd>, token: u64) {
        match &mut self.0 {
            Kernel(ring) => ring.sync(file, token),
            Simulated(ring) => ring.ask(Asked::Sync(Arc::clone(file)), token),
        }
    }

    /// Makes a stretch of a file zeros.
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

    /// Submits what was asked for and waits until something has ended, or until `until_ns` by its
    /// clock (`None`: for ever). It may also end sooner: by a signal, or by a time that was given
    /// before.
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

    /// Submits what was asked for, if anything, and looks for what has ended without waiting.
    ///
    /// # Errors
    /// As [`Ring::wait_until`].
    pub fn poll(&mut self) -> Result<()> {
        match &mut self.0 {
            Kernel(ring) => ring.poll(),
            Simulated(_) => Ok(()),
        }
    }

    /// Has the ring tell by [`Ring::bell`] that something has ended: for a thread that waits for
    /// other things, too. In a simulation there is no such bell.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn set_bell(&mut self) -> Result<()> {
        match &mut self.0 {
            Kernel(ring) => ring.set_bell(),
            Simulated(_) => Ok(()),
        }
    }

    /// Becomes readable, or readable anew, when [`Ring::poll`] may find that something has ended.
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Kernel(ring) => ring.bell(),
            Simulated(_) => None,
        }
    }

    /// Makes the bell unreadable until it rings anew; [`Ring::poll`] comes after that.
    pub fn acknowledge(&self) {
        if let Kernel(ring) = &self.0 {
            ring.acknowledge();
        }
    }

    /// Whether [`Ring::take_ended`] has something.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.0 {
            Kernel(ring) => ring.has_ended(),
            Simulated(ring) => ring.has_ended(),
        }
    }

    /// A request that has ended.
    pub fn take_ended(&mut self) -> Option<Completed> {
        match &mut self.0 {
            Kernel(ring) => ring.take_ended(),
            Simulated(ring) => ring.take_ended(),
        }
    }

    /// Frees memory for requests beyond those that are under way.
    pub fn shrink(&mut self) {
        if let Kernel(ring) = &mut self.0 {
            ring.shrink();
        }
    }
}

// A stream of a simulation exists nowhere else.
fn wrong_world() -> ! {
    unreachable!("a simulated stream is used in its own simulation")
}
