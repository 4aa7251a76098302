//! Hosts and initiators that speak for themselves: they reserve, abort and overlap as they like.

pub(crate) mod iscsi;
pub(crate) mod nvme;

use sys::stream::Stream;

/// Something to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    Read {
        first: u64,
        count: u32,
    },
    Write {
        first: u64,
        forced: bool,
        data: Vec<u8>,
    },
    Zero {
        first: u64,
        count: u32,
    },
    Flush,
    /// Compares a block, and writes it if it is so.
    Swap {
        block: u64,
        old: Vec<u8>,
        new: Vec<u8>,
    },
    Register(u64),
    /// Writers must be registered.
    Acquire(u64),
    /// Ends the registration of another's key, and aborts what it has under way.
    Preempt {
        own: u64,
        other: u64,
    },
}

/// What has become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It was done; what was read.
    Done(Vec<u8>),
    /// It was not, for the device is another's.
    Conflict,
    /// It was not, for the block was another.
    Miscompare,
    /// It was aborted; it may have been done before.
    Aborted,
    /// Anything else.
    Failed(String),
}

/// Something that was asked has ended.
pub(crate) type Ended = (u64, Reply);

/// One that has connected.
pub(crate) trait Peer {
    /// Asks for something; its number, if there is room for it.
    fn begin(&mut self, op: &Op) -> Option<u64>;

    /// Takes what has come; `None` if the connection is over.
    fn hear(&mut self) -> Option<Vec<Ended>>;

    /// Has a command aborted that it has begun; whether it still talks.
    fn abort(&mut self, number: u64) -> bool;

    /// Where what comes can be read.
    fn stream(&self) -> &Stream;
}

/// Commands at a time.
const DEPTH: u16 = 16;
/// Bytes of a block.
const BLOCK: u32 = 512;

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("it is short")
}
