//! Bulk records as Parquet files, for whatever reads those: DuckDB, pandas, Polars.
//!
//! ```text
//! Fault ─► FaultWriter ─► columns of a row group ─► file ─► FaultReader ─► Fault
//! ```
//!
//! A crate of its own because its dependency is the costliest of all. Values are never scaled:
//! the unit is part of a column's name.

mod fault;
mod reader;
mod writer;

pub use fault::{Fault, FaultKind};
pub use reader::FaultReader;
pub use writer::FaultWriter;

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file could not be written to, most often because the disk is full.
    #[error("write the record of faults: {0}; check the space left on its disk")]
    Write(#[source] parquet::errors::ParquetError),
    /// The file is not a Parquet file or ends early.
    #[error("read the record of faults: {0}; it may be cut short")]
    Read(#[source] parquet::errors::ParquetError),
    /// The file is a Parquet file with other columns.
    #[error("read the record of faults: it has no column `{0}` of the wanted type; it is not one")]
    NoColumn(&'static str),
    /// A kind of fault that this version does not know.
    #[error("read the record of faults: unknown kind `{0}`; use the version that wrote it")]
    UnknownKind(String),
}
