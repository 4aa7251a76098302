//! What loads and disks need of a device that they reach over the network, whatever protocol it
//! speaks.

use sys::block::Block;
use sys::ring::{Completed, Ring};

use crate::backend::{Failure, Request};
use crate::jobs::Ended;

/// Requests under way to a device, on one ring.
///
/// A request ends once. One whose connection was lost has ended as [`Failure::Lost`]: whether it
/// was done is not known.
pub(crate) trait Queue<T>: Send {
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
