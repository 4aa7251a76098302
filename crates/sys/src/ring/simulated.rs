//! The interface of a simulated ring.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::completed::Completed;
use crate::block::Block;
use crate::event::Waker;
use crate::stream::{Listener, Stream};

/// How a range of a file is set to zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch {
    /// Zeros; room for later writes stays allocated.
    Zero,
    /// Zeros that take no room (a hole).
    Punch,
}

/// A request to a ring, with the memory that it needs: see the methods of [`Ring`](super::Ring) of
/// the same names.
#[derive(Debug)]
#[expect(missing_docs, reason = "the calls say it")]
pub enum Asked {
    Accept(Listener),
    Receive { stream: Stream, bytes: Vec<u8>, from: usize },
    Send { stream: Stream, bytes: Vec<u8>, from: usize },
    Hear { waker: Waker, block: Block },
    Read { file: Arc<OwnedFd>, block: Block, part: Range<usize>, offset: u64 },
    Write { file: Arc<OwnedFd>, block: Block, part: Range<usize>, offset: u64, forced: bool },
    Sync(Arc<OwnedFd>),
    Clear { file: Arc<OwnedFd>, stretch: Stretch, offset: u64, bytes: u64 },
}

/// A simulated ring, for the thread that owns it.
pub trait SimulatedRing {
    /// The simulated time, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Starts a request; `token` is the caller's number for it.
    fn ask(&mut self, asked: Asked, token: u64);

    /// Waits for a completion, or until `until_ns` (`None`: for ever).
    fn wait_until(&mut self, until_ns: Option<u64>);

    /// Whether a request has completed.
    fn has_ended(&mut self) -> bool;

    /// Returns the next completion; `None` if there is none.
    fn take_ended(&mut self) -> Option<Completed>;

    /// How many requests have not ended.
    fn in_flight(&self) -> usize;
}
