//! Points of a sweep go to where they run: here, or over Dask, Slurm or Ray.
//!
//! ```text
//! --on ─► Place ─► send ─► python -m afar._engines ─► Dask, Slurm, Ray ─► afar point DIR ID...
//!                    └──────────── counts runs of DIR ◄──────────────────────────┘
//! ```
//!
//! The directory of the sweep (`experiment::journal`) is the contract. An engine moves IDs of
//! points and nothing else: it may lose them, do them twice, or be killed at any moment.

mod place;
mod point;
mod send;

pub use place::{Place, PlaceError};
pub use point::PointFlags;
pub use send::{NotSent, Points, send};
