//! How often memories of any size miss, from one pass over a stream of pages.
//!
//! ```text
//! pages ─┬─► Recency ─► stack distances ─► Distances ─► Curve: LRU, any number of frames
//!        └─► Sample ─┬─► Shards: the same, scaled and corrected
//!                    └─► Mini: any policy, chosen numbers of frames
//! running program ─► Sampler ─► Touches ─► Replay: fetches of any policy at any local size
//! accesses by page ─► Popularity ─► LRU, FIFO, CLOCK by formula, if accesses are independent
//! ```
//!
//! A page is any number that names it, so that pages of several processes can be told apart.
//! Nothing here iterates over a hash map before its entries are in order: same stream, same curve.

mod curve;
mod hash;
mod irm;
mod mini;
mod pattern;
mod recency;
mod replay;
mod sample;
mod shards;
mod touches;

pub use curve::{Curve, Distances};
pub use irm::Popularity;
pub use mini::{Mini, MiniConfig};
pub use recency::Recency;
pub use replay::{Memory, Replayed, replay};
pub use shards::{Shards, ShardsConfig};
pub use touches::{Due, Part, Sampler, SamplerConfig, Touch, TouchKind, Touches};
