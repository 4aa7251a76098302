//! The network in between: `afar sim` and `afar loop`.
//!
//! ```text
//! flags, files ─► Settings ─► Setup ─► netsim ─► Figures, rows ─► table, JSON, pictures
//!                    ▲──────────── loop: delays of pages ◄─────────┘──► runs of the program
//! ```

mod closed_loop;
mod sim;

pub use closed_loop::flags::LoopFlags;
pub use closed_loop::{
    Fed, FedPage, FedReads, FedRound, FedZero, Feeder, LoopError, Short, Slower, Stopped,
    closed_loop,
};
pub use sim::error::SimError;
pub use sim::figures::{figures, rows};
pub use sim::flags::SimFlags;
pub use sim::many;
pub use sim::progress::progress_of;
pub use sim::run::{Looker, run_stranded};
pub use sim::setting::Settings;
pub use sim::setup::Setup;
pub use sim::{points, sim};
