//! The thread that copies ranges of one memory file to another, a piece at a time.
//!
//! ```text
//! supervisor -> piece -> copier: copy -> done, bell -> supervisor
//! ```
//!
//! A piece has one owner: the copier, from when it is sent until it is done. The supervisor keeps
//! what it must know of a page of that piece (`copy`), so that it never waits for the copier.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use sys::event::Waker;
use sys::memory::MemoryFile;

/// Memory of this size takes milliseconds to free, so a thread of its own frees it.
const FREE_BYTES: u64 = 4 << 20;

/// Ranges to be copied.
pub(crate) struct Piece {
    /// The number of the copy that the piece belongs to.
    pub(crate) number: u64,
    pub(crate) source: Arc<MemoryFile>,
    pub(crate) target: Arc<MemoryFile>,
    pub(crate) ranges: Vec<(u64, u64)>,
}

impl Piece {
    /// Copies the ranges from `source` to `target`.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn copy(&self) -> Result<(), sys::Error> {
        let copy =
            |&(from, to): &(u64, u64)| self.source.copy_to(&self.target, from, from, to - from);
        self.ranges.iter().try_for_each(copy)
    }
}

/// The outcome of copying a piece.
pub(crate) struct Done {
    pub(crate) number: u64,
    pub(crate) result: Result<(), sys::Error>,
}

/// The copying thread; dropping this handle ends it.
pub(crate) struct Copier {
    pieces: Option<Sender<Piece>>,
    done: Receiver<Done>,
    bell: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Copier {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel is out of threads or descriptors.
    pub(crate) fn start() -> Result<Self, sys::Error> {
        let (pieces, todo) = channel::<Piece>();
        let (tell, done) = channel();
        let bell = Waker::new()?;
        let ring = bell.clone();
        let work = move || {
            for piece in todo {
                let done = Done { number: piece.number, result: piece.copy() };
                drop(piece);
                if tell.send(done).is_err() {
                    return;
                }
                ring.wake();
            }
        };
        let builder = std::thread::Builder::new().name("afar-copier".to_owned());
        let thread =
            builder.spawn(work).map_err(|source| sys::Error::new("start a thread", source))?;
        Ok(Self { pieces: Some(pieces), done, bell, thread: Some(thread) })
    }

    /// Readable when a piece is done.
    pub(crate) const fn bell(&self) -> &Waker {
        &self.bell
    }

    /// Queues a piece behind all that were sent before.
    pub(crate) fn send(&self, piece: Piece) {
        if let Some(pieces) = &self.pieces {
            // The thread ends only when this handle is dropped.
            let _ended = pieces.send(piece);
        }
    }

    /// The next outcome; `None` if no further piece is done.
    pub(crate) fn next(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.pieces = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Frees memory that is no longer used; in a thread of its own if it is large.
pub(crate) fn free(memory: MemoryFile) {
    if memory.allocated_bytes().is_ok_and(|bytes| bytes >= FREE_BYTES) {
        let builder = std::thread::Builder::new().name("afar-free".to_owned());
        // If no thread can be started, `memory` is freed here.
        let _no_thread = builder.spawn(move || drop(memory));
    }
}
