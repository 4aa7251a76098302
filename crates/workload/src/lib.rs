//! Generates requests: which operation, which record, how many bytes, and when.
//!
//! ```text
//! seed ─► Draw ─► Popularity ─► record number ┐
//!              ─► Mix ─► operation            ├─► Request
//!              ─► Arrivals ─► time            ┘
//!              ─► Sizes ─► bytes of a flow
//! YCSB property file ─► Ycsb ─► all of them
//! ```
//!
//! Invariants:
//! 1. Nothing here reads a clock or a file: a seed and a text in, requests out.
//! 2. Same seed, same requests, on every machine.
//! 3. A value says which record it belongs to, so that whoever reads it can tell a wrong one.

mod arrivals;
mod draw;
mod popularity;
mod record;
mod requests;
mod sizes;
mod ycsb;
mod zipf;

pub use arrivals::{Arrivals, Spacing};
pub use draw::Draw;
pub use popularity::{Popularity, PopularityKind};
pub use record::{
    KeyOrder, ValueError, check_value, fnv64, fnv64_text, is_key, key_bytes, padded_key_bytes_min,
    write_decimal, write_key, write_padded_key, write_value,
};
pub use requests::{Operation, Request, Requests};
pub use sizes::{Sizes, SizesError, SizesName};
pub use ycsb::{Mix, PropertyError, Ycsb, YcsbName};
pub use zipf::{Zipf, zeta};
