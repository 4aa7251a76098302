//! Sends the points of a sweep to where they run: in this process, or over Dask, Slurm or Ray.
//!
//! ```text
//! --on ─► Place ─► send ─► python -m afar._engines ─► Dask, Slurm, Ray ─► afar point DIR ID...
//!                    └──────────── counts runs of DIR ◄──────────────────────────┘
//! ```
//!
//! The directory of the sweep (`experiment::journal`) holds all state. An engine moves only IDs of
//! points: it may lose them, run them twice, or be killed at any moment.

mod place;
mod point;
mod send;

pub use place::{Place, PlaceError};
pub use point::PointFlags;
pub use send::{NotSent, Points, send};
