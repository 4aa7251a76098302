//! The traits of a device that is reached over the network, for any protocol.

use nvme::log::AnaState;
use nvme::{NamespaceIds, Opening};
use sys::block::Block;
use sys::event::Waker;
use sys::ring::{Completed, Ring};
use sys::stream::Stream;

use backend::Ended;
use backend::{Failure, Geometry, Request};

use super::HostError;
use super::fence::{Fenced, Lost};
use super::piece::{Piece, Shape};

/// The disk at the end of a path, as the target last described it.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The subsystem or target that has it.
    pub(crate) owner: String,
    /// Its name there, for messages.
    pub(crate) name: String,
    pub(crate) geometry: Geometry,
    pub(crate) ids: NamespaceIds,
    /// The opening of its medium; `None` if the target reports none.
    pub(crate) opening: Option<Opening>,
    pub(crate) shape: Shape,
    /// How many queues the target grants.
    pub(crate) queues: u16,
    /// Milliseconds after which the target works no more on requests of a path that was lost.
    pub(crate) quiet_ms: u64,
    pub(crate) state: AnaState,
}

/// Why [`Keeper::wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The device has changed, for example its size.
    News,
    /// Another thread has used the waker.
    Called,
    /// The time limit of the wait has passed.
    Time,
}

/// A path to a disk that is connected. The thread that keeps the path alive has it.
pub(crate) trait Keeper: Send {
    /// The disk at its end, as of the last [`Keeper::look`].
    fn found(&self) -> &Found;

    /// Lets `waker` end waits from now on, and has the device report its changes, if it can.
    fn begin(&mut self, waker: &Waker) -> Result<(), HostError>;

    /// Opens queue `number`, from 1 on, for `depth` commands at a time.
    fn queue(
        &self,
        number: u16,
        depth: u16,
        token: u64,
    ) -> Result<Box<dyn Queue<Piece>>, HostError>;

    /// Keeps the path alive until something happens, or until a time of the monotonic clock.
    fn wait(&mut self, until_ns: Option<u64>) -> Result<Heard, HostError>;

    /// Asks the target about the disk again.
    fn look(&mut self) -> Result<(), HostError>;

    /// What [`Keeper::fence`] on another path needs to end requests of this one once it is lost;
    /// none if the target cannot end them.
    fn lost(&self) -> Option<Lost>;

    /// Has the target end the requests of a path that was lost, so that none of them is done later.
    fn fence(&mut self, lost: &Lost) -> Result<Fenced, HostError>;

    /// Its connection, if it has one.
    fn socket(&self) -> Option<&Stream>;

    /// Ends the connection as the protocol asks for.
    fn shut_down(self: Box<Self>);
}

/// Requests under way to a device, on one ring.
///
/// A request ends once. One whose connection was lost has ended as [`Failure::Lost`]: whether it
/// was done is not known.
pub trait Queue<T>: Send {
    /// Takes a request, which [`Queue::flush`] sends. Returns its end if it is over at once. A
    /// request transfers no more bytes than the device takes, and `block` has room for them.
    fn submit(&mut self, request: Request, block: Option<Block>, tag: T) -> Option<Ended<T>>;

    /// Hands the kernel what is to be sent, and buffers for what may come.
    fn flush(&mut self, ring: &mut Ring);

    /// Whether a completion of the ring with this token belongs to this queue.
    fn has(&self, token: u64) -> bool;

    /// Handles a completion for which [`Queue::has`] is true.
    fn complete(&mut self, completed: Completed, now_ns: u64, ended: &mut Vec<Ended<T>>);

    /// Whether something can be taken without waiting: by [`Queue::flush`], then [`Queue::look`].
    fn has_ended(&self) -> bool {
        false
    }

    /// Requests that have not ended.
    fn outstanding(&self) -> usize;

    /// Whether the tag of a request that has not ended fulfils `is_like`.
    fn any(&self, is_like: &dyn Fn(&T) -> bool) -> bool;

    /// When to call [`Queue::look`] next, if nothing happens before.
    fn deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Ends the requests that [`Queue::has_ended`] reports, and those whose target has been silent
    /// for too long.
    fn look(&mut self, now_ns: u64, ended: &mut Vec<Ended<T>>) {
        let _ = (now_ns, ended);
    }

    /// Gives the connection up. Whether requests that were not answered have been done is unknown.
    fn lose(&mut self, ended: &mut Vec<Ended<T>>);

    /// Whether the connection is gone, and the queue with it.
    fn is_lost(&self) -> bool;

    /// Whether the kernel holds no operation of this queue.
    fn is_idle(&self) -> bool;
}

/// A queue, and what it leads to.
pub struct Reached<Q> {
    /// The queue.
    pub queue: Q,
    /// Which controller it is of, as [`crate::Controller::generation`] counts them; 0 over iSCSI.
    pub generation: u64,
    /// The opening of the medium that it leads to; `None` if the target reports none.
    pub opening: Option<Opening>,
}

/// A request that has not ended.
pub(crate) struct Pending<T> {
    pub(crate) request: Request,
    pub(crate) block: Option<Block>,
    pub(crate) tag: T,
}

impl<T> Pending<T> {
    /// Ends the request with a result.
    pub(crate) fn end(self, result: Result<(), Failure>) -> Ended<T> {
        let Self { request, block, tag } = self;
        Ended { request, result, block, tag }
    }

    /// Copies read bytes to `offset` of the block.
    pub(crate) fn fill(&mut self, offset: u32, bytes: &[u8]) {
        let from = offset as usize;
        let block = self.block.as_deref_mut();
        if let Some(room) = block.and_then(|block| block.get_mut(from..from + bytes.len())) {
            room.copy_from_slice(bytes);
        }
    }

    /// Bytes to write; `None` if the range is outside of the block.
    pub(crate) fn bytes(&self, offset: u32, length: u32) -> Option<&[u8]> {
        self.block.as_deref()?.get(offset as usize..offset as usize + length as usize)
    }
}
