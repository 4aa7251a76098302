//! Fused commands: pairs that are executed together (Base 3.4.2).

use nvme::{Io, Slot, Status};

/// Which command may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Any command.
    Any,
    /// The second of two fused commands, of which this is the first.
    Second(Slot),
    /// The second of two fused commands whose first has failed.
    Aborted,
}

/// The state of one of two fused commands.
pub(crate) struct Pair {
    /// The other command, once it has come and as long as it is under way.
    pub(crate) other: Option<Slot>,
    pub(crate) is_second: bool,
    pub(crate) stage: Stage,
}

/// How far one of two fused commands has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its data is in transit.
    Coming,
    /// Its data is complete.
    Ready,
    /// The other has failed.
    Failed,
}

/// What follows when a command's data is complete.
pub(crate) enum Paired {
    /// This command begins: an ordinary one, or the first of two that are both complete.
    Begins(Slot),
    /// The other command is awaited.
    Waits,
    /// The other has failed.
    Failed,
}

impl Pair {
    /// The state of a first command whose second has not come.
    pub(crate) const fn first() -> Self {
        Self { other: None, is_second: false, stage: Stage::Coming }
    }
}

/// Checks a fused command: Compare first and Write second, of no more blocks than the device writes
/// atomically.
pub(crate) fn check(io: Io, is_first: bool, atomic_blocks: u32) -> Result<(), Status> {
    match (io, is_first) {
        (Io::Compare(range), true) | (Io::Write(range), false) => {
            let fits = range.count <= atomic_blocks;
            if fits { Ok(()) } else { Err(Status::ATOMIC_UNIT_EXCEEDED.do_not_retry()) }
        }
        _ => Err(Status::INVALID_FIELD.do_not_retry()),
    }
}
