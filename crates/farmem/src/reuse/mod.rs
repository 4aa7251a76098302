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

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by page whose hash is the same in every run.
type ByPage<T> = HashMap<u64, T, BuildHasherDefault<PageHasher>>;

/// Hashes numbers alone.
#[derive(Debug, Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mixed(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The bits of a number, spread over all 64: a bijection (Steele et al. 2014, SplitMix64).
const fn mixed(number: u64) -> u64 {
    let sum = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let first = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    second ^ (second >> 31)
}
