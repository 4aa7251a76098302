//! What a simulation does in place of the kernel.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::completed::Completed;
use crate::block::Block;
use crate::event::Waker;
use crate::stream::{Listener, Stream};

/// What becomes of a stretch of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch {
    /// Zeros, with room kept for what is written there.
    Zero,
    /// Zeros that take no room.
    Punch,
}

/// A request to a ring, with the memory that it needs: see the calls of [`Ring`](super::Ring) of
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

/// A ring of a simulation, for the thread that has it.
pub trait SimulatedRing {
    /// The time that it is there, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Begins a request, which the caller knows by a number.
    fn ask(&mut self, asked: Asked, token: u64);

    /// Waits until something has ended, or until a time (`None`: for ever).
    fn wait_until(&mut self, until_ns: Option<u64>);

    /// Whether something has ended.
    fn has_ended(&mut self) -> bool;

    /// A request that has ended.
    fn take_ended(&mut self) -> Option<Completed>;

    /// Requests that have not ended.
    fn in_flight(&self) -> usize;
}
