//! What threads of a disk tell one another.

use nvme::log::AnaState;

use super::ghosts::Origin;
use super::guest::Guest;
use super::piece::Piece;
use super::reach::Queue;

/// Something for a lane to do or know.
pub(super) enum Mail {
    /// To be done.
    Pieces(Vec<Piece>),
    /// There is a queue over a path.
    Up { path: usize, generation: u64, queue: Box<dyn Queue<Piece>>, state: AnaState },
    /// The namespace can be reached so over a path.
    State { path: usize, generation: u64, state: AnaState },
    /// A path was lost.
    Down { path: usize, generation: u64 },
    /// What a path has had and lost does nothing any more that it was asked.
    AtRest(Origin),
    /// Somebody to be served beside the disk.
    Guest(Box<dyn Guest>),
    /// The disk was lost.
    Lost,
    /// Nothing more is asked.
    Stop,
}

/// Something for a path to do.
pub(super) enum Call {
    /// Its controller of this generation was lost.
    Lost {
        /// Controllers of a path are counted.
        generation: u64,
        /// As a lane has seen it.
        reason: &'static str,
    },
    /// The access state is not what it was said to be.
    Look {
        /// See above.
        generation: u64,
    },
    /// Another path has lost what it had: it is to be ended.
    Fence,
    /// To say good-bye.
    Stop,
}
