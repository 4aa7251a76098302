//! Why a file is no record, or could not be written.

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file could not be written to, most often because the disk is full.
    #[error("write the record: {0}; check the space left on its disk")]
    Write(#[source] parquet::errors::ParquetError),
    /// Nothing may be concluded from the run of these faults, and why.
    #[error("{0}; nothing is concluded from its faults")]
    Invalid(String),
    /// The file does not begin as Parquet does.
    #[error("read the record: it is no Parquet file; give one, such as --record writes")]
    NotParquet,
    /// The file is damaged or ends early.
    #[error("read the record: {0}; it may be cut short")]
    Read(#[source] parquet::errors::ParquetError),
    /// The file is a Parquet file with other columns.
    #[error("read the record: it has no column `{0}` of the wanted type; it is not one")]
    NoColumn(&'static str),
    /// A kind of fault that this version does not know.
    #[error("read the record: unknown kind `{0}`; use the version that wrote it")]
    UnknownKind(String),
    /// A kind of exchange that this version does not know.
    #[error("there is no exchange \"{0}\"; give one-way, read or write")]
    UnknownExchange(String),
    /// A table cannot be read or written.
    #[error("a table in Parquet: {0}; it may be cut short, or the disk may be full")]
    Table(#[source] parquet::errors::ParquetError),
    /// A column has more than one value in a cell, or a text that cannot be in one.
    #[error("column `{0}` has lists, groups, bytes, commas or line ends; give plain columns")]
    Cell(String),
    /// A table is larger than planning allows.
    #[error("the table has too many columns or rows; give fewer")]
    TooLarge,
}
