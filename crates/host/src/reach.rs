//! What loads and disks need of a device that they reach over the network, whatever protocol it
//! speaks.

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

/// What a way leads to.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The subsystem or target that has it.
    pub(crate) owner: String,
    /// What it is called there.
    pub(crate) name: String,
    pub(crate) geometry: Geometry,
    pub(crate) ids: NamespaceIds,
    /// Which opening of its medium it is, if the target says that.
    pub(crate) opening: Option<Opening>,
    pub(crate) shape: Shape,
    /// Queues there may be.
    pub(crate) queues: u16,
    /// Milliseconds after which nothing is done any more of what was asked before the way was lost.
    pub(crate) quiet_ms: u64,
    pub(crate) state: AnaState,
}

/// What [`Keeper::wait`] has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The device is another than it was.
    News,
    /// Somebody has used the waker.
    Called,
    /// The time has come.
    Time,
}

/// A way to a disk that is there, as the thread has it that keeps it.
pub(crate) trait Keeper: Send {
    /// What it leads to, as it was last asked.
    fn found(&self) -> &Found;

    /// Whatever ends waits from now on; and the device says what happens, if it can.
    fn begin(&mut self, waker: &Waker) -> Result<(), HostError>;

    /// Queue `number`, from 1 on, for `depth` commands at a time.
    fn queue(
        &self,
        number: u16,
        depth: u16,
        token: u64,
    ) -> Result<Box<dyn Queue<Piece>>, HostError>;

    /// Keeps the way until something happens, or until a time of the monotonic clock.
    fn wait(&mut self, until_ns: Option<u64>) -> Result<Heard, HostError>;

    /// Asks again what it leads to.
    fn look(&mut self) -> Result<(), HostError>;

    /// What it would be known by if it were lost; none if nobody could end it then.
    fn lost(&self) -> Option<Lost>;

    /// Has the device end what was asked over a way that is lost.
    fn fence(&mut self, lost: &Lost) -> Result<Fenced, HostError>;

    /// Its connection.
    fn socket(&self) -> &Stream;

    /// Says good-bye.
    fn shut_down(self: Box<Self>);
}

/// Requests under way to a device, on one ring.
///
/// A request ends once. One whose connection was lost has ended as [`Failure::Lost`]: whether it
/// was done is not known.
pub trait Queue<T>: Send {
    /// Asks for something, which [`Queue::flush`] sends; its end, if it cannot even be asked. A
    /// request moves as many bytes as the device takes at most, and its block has them.
    fn submit(&mut self, request: Request, block: Option<Block>, tag: T) -> Option<Ended<T>>;

    /// Lets the kernel have what is to be sent and room for what may come.
    fn flush(&mut self, ring: &mut Ring);

    /// Whether a completion of the ring with this token is its.
    fn has(&self, token: u64) -> bool;

    /// Takes such a completion.
    fn complete(&mut self, completed: Completed, now_ns: u64, ended: &mut Vec<Ended<T>>);

    /// Requests that have not ended.
    fn outstanding(&self) -> usize;

    /// Whether one of them was asked by somebody like this.
    fn any(&self, is_like: &dyn Fn(&T) -> bool) -> bool;

    /// When to look at it next, if nothing happens before.
    fn deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Looks whether its peer is still there, once it is time.
    fn look(&mut self, now_ns: u64, ended: &mut Vec<Ended<T>>) {
        let _ = (now_ns, ended);
    }

    /// Ends it. Nobody knows what became of requests that were not answered.
    fn lose(&mut self, ended: &mut Vec<Ended<T>>);

    /// Whether a connection is gone, and with it the queue.
    fn is_lost(&self) -> bool;

    /// Whether the kernel has nothing of it.
    fn is_idle(&self) -> bool;
}

/// A queue, and what it is a queue of.
pub struct Reached<Q> {
    /// The queue.
    pub queue: Q,
    /// Which controller it is of, as [`crate::Controller::generation`] counts them; 0 over iSCSI.
    pub generation: u64,
    /// Which opening of its medium it leads to, if the target says that.
    pub opening: Option<Opening>,
}

/// A request that has not ended.
pub(crate) struct Pending<T> {
    pub(crate) request: Request,
    pub(crate) block: Option<Block>,
    pub(crate) tag: T,
}

impl<T> Pending<T> {
    pub(crate) fn end(self, result: Result<(), Failure>) -> Ended<T> {
        let Self { request, block, tag } = self;
        Ended { request, result, block, tag }
    }

    /// Takes bytes that were read, from an offset on.
    pub(crate) fn fill(&mut self, offset: u32, bytes: &[u8]) {
        let from = offset as usize;
        let block = self.block.as_deref_mut();
        if let Some(room) = block.and_then(|block| block.get_mut(from..from + bytes.len())) {
            room.copy_from_slice(bytes);
        }
    }

    /// Bytes that are to be written.
    pub(crate) fn bytes(&self, offset: u32, length: u32) -> Option<&[u8]> {
        self.block.as_deref()?.get(offset as usize..offset as usize + length as usize)
    }
}
