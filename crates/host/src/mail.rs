//! Messages between the threads of a disk.

use nvme::log::AnaState;

use super::ghosts::Origin;
use super::guest::Guest;
use super::piece::Piece;
use super::reach::Queue;

/// A message to a lane.
pub(super) enum Mail {
    /// Execute these pieces.
    Pieces(Vec<Piece>),
    /// A path is up, and this is the lane's queue over it.
    Up { path: usize, generation: u64, queue: Box<dyn Queue<Piece>>, state: AnaState },
    /// The ANA state over a path.
    State { path: usize, generation: u64, state: AnaState },
    /// A path was lost.
    Down { path: usize, generation: u64 },
    /// All commands of a lost path have ended.
    AtRest(Origin),
    /// Serve this guest.
    Guest(Box<dyn Guest>),
    /// The disk was lost.
    Lost,
    /// Stop.
    Stop,
}

/// A message to a path.
pub(super) enum Call {
    /// The controller of this generation was lost.
    Lost {
        /// Counts the controllers of a path.
        generation: u64,
        /// The reason, as a lane has seen it.
        reason: &'static str,
    },
    /// A request has contradicted the reported ANA state.
    Look {
        /// See above.
        generation: u64,
    },
    /// A path was lost: its commands have to be ended over this one.
    Fence,
    /// Shut the controller down and stop.
    Stop,
}
