//! Two commands that are done together (Base 3.4.2).

use nvme::{Io, Slot, Status};

/// What the next command is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Any.
    Any,
    /// The second of two, of which this is the first.
    Second(Slot),
    /// The second of two whose first has failed.
    Aborted,
}

/// One of two.
pub(crate) struct Pair {
    /// The other, once that has come and as long as it is there.
    pub(crate) other: Option<Slot>,
    pub(crate) is_second: bool,
    pub(crate) stage: Stage,
}

/// How far one of two has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its data is on its way.
    Coming,
    /// All of it is there.
    Ready,
    /// The other has failed.
    Failed,
}

/// What is to be done with a command whose data is there.
pub(crate) enum Paired {
    /// This is to begin: it is one, or the first of two that are both there.
    Begins(Slot),
    /// The other is awaited.
    Waits,
    /// The other has failed.
    Failed,
}

impl Pair {
    pub(crate) const fn first() -> Self {
        Self { other: None, is_second: false, stage: Stage::Coming }
    }
}

/// Whether a first of two, and a second, can be these; of what the device writes all or not at all.
pub(crate) fn check(io: Io, is_first: bool, atomic_blocks: u32) -> Result<(), Status> {
    match (io, is_first) {
        (Io::Compare(range), true) | (Io::Write(range), false) => {
            let fits = range.count <= atomic_blocks;
            if fits { Ok(()) } else { Err(Status::ATOMIC_UNIT_EXCEEDED.do_not_retry()) }
        }
        _ => Err(Status::INVALID_FIELD.do_not_retry()),
    }
}
