//! Which local page to give up: one trait, and a row for each policy.
//!
//! A policy is one module: its type and, beside it, what the workspace knows of it
//! (`PolicyKind::NAME`). A new one is its file and a row of [`PolicyKind::ALL`].
//!
//! | policy | order of eviction | references |
//! |---|---|---|
//! | [`Fifo`] | oldest arrival first (`DiME` §2.1) | ignored |
//! | [`Clock`] | oldest arrival first, but referenced pages later (Corbató 1968) | one bit |
//! | [`Lru`] | least recently referenced first | recency |
//! | [`Random`] | uniform, from a seed | ignored |
//! | [`S3Fifo`] | pages seen once leave early (Yang et al., SOSP'23 §4) | a count up to 3 |

mod clock;
mod fifo;
mod interface;
mod kind;
mod lru;
mod probation;
mod queue;
mod random;
mod s3fifo;
mod stamps;

pub use clock::Clock;
pub use fifo::Fifo;
pub use interface::Policy;
pub use kind::{ParsePolicyError, PolicyKind};
use kind::{Row, only_line};
pub use lru::Lru;
pub use probation::Probation;
pub(crate) use queue::{Places, Queue};
pub use random::Random;
pub use s3fifo::S3Fifo;
pub use stamps::Stamps;

impl PolicyKind {
    /// Every policy, in the order they are listed to users.
    pub const ALL: [Self; 5] = [Self::FIFO, Self::CLOCK, Self::LRU, Self::RANDOM, Self::S3FIFO];
}
