//! Files and settings with units, and errors that name the place.
//!
//! ```text
//! file, KEY=VALUE ─► Source (name, text) ─► TOML with spans, CSV rows ─► values with units
//!                                                └──────────────────────► `file:line:column`: why
//! ```
//!
//! Invariants:
//! 1. An error names the place of what is wrong, as the user wrote it.
//! 2. An unknown key is an error that lists the known ones.

pub mod csv;
pub mod toml_text;

mod error;
mod source;
mod value;

pub use error::{DocumentError, NotRecorded};
pub use source::{Source, Text, Value, is_parquet};
pub use value::{Bandwidth, SeedError, delay, per_second, seed};
