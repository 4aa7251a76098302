//! Files and settings with units, which say where in them something is wrong.
//!
//! ```text
//! file, KEY=VALUE ─► Source (name, text) ─► TOML with spans, CSV rows ─► values with units
//!                                                └──────────────────────► `file:line:column`: why
//! ```
//!
//! Invariants:
//! 1. An error names the place where the user wrote what is wrong.
//! 2. A key that is not known is an error that lists those that are.

pub mod csv;
pub mod toml_text;

mod error;
mod source;
mod value;

pub use error::{DocumentError, NotRecorded};
pub use source::{Source, Text, Value, is_parquet};
pub use value::{Bandwidth, SeedError, delay, per_second, seed};
