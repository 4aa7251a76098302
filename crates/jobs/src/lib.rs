//! Batch programs with generated data that stand in for the applications of data centres.
//!
//! ```text
//! size, seed ─► Text     ─► count                 ─► Counts   ┐
//!            ─► Records  ─► sort                  ─► Records  ├─► verified, checksum
//!            ─► Ratings  ─► factorise             ─► Model    │
//!            ─► Graph    ─► pagerank single,      ─► Ranks    ┘
//!                           pagerank timely
//! ```
//!
//! The applications are those of Table 2 of Gao et al., "Network Requirements for Resource
//! Disaggregation" (OSDI 2016): what they do with memory is done here, for real, in one process.
//! What they do besides (disks, shuffles over a network, garbage collection) is not.
//!
//! Invariants, mostly absences:
//! 1. Nothing here reads a clock or a file, and no thread is started but timely's workers.
//! 2. Same size and seed, same data and same checksum, on every machine and in every run: sums
//!    whose order may vary are sums of whole numbers.
//! 3. Data is written in the order of its addresses, so that making it is no harder on far memory
//!    than it must be.
//! 4. Every result can be verified without doing the job again.

mod checksum;

mod records;
mod text;

mod ratings;

mod als;
mod normal;

mod graph;
mod pagerank;
mod parallel;

pub use als::{Model, ModelError, factorise};
pub use graph::Graph;
pub use pagerank::{Ranks, RanksError, pagerank};
pub use parallel::pagerank_timely;
pub use ratings::{NOISE, Ratings, RatingsShape};
pub use records::{OrderError, RECORD_BYTES, Records};
pub use text::{CountError, Counts, SKEW, Text};

/// The least data that a job is made for, in bytes: below it, data is no larger than caches.
pub const SIZE_MIN_BYTES: u64 = 1 << 20;
