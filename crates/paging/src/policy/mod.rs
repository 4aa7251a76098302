//! Which local page to give up: one trait, five policies.
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
mod queue;
mod random;
mod s3fifo;
mod stamps;

pub use clock::Clock;
pub use fifo::Fifo;
pub use interface::Policy;
pub use kind::{ParsePolicyError, PolicyKind};
pub use lru::Lru;
pub(crate) use queue::{Places, Queue};
pub use random::Random;
pub use s3fifo::S3Fifo;
pub use stamps::Stamps;
