//! Why a file or a setting could not be read.

use std::path::PathBuf;

use console::{Class, Classed};

/// Why a file or a setting could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The file cannot be opened or read.
    #[error("{}: {source}; give a file that can be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// The file is no Parquet table.
    #[error("{place}: {source}")]
    Table {
        /// The file.
        place: String,
        /// What is wrong in it.
        source: records::RecordError,
    },
    /// A value or key in the file is wrong.
    #[error("{place}: {message}")]
    At {
        /// File, line and column.
        place: String,
        /// What is wrong there.
        message: String,
    },
    /// A setting is not `KEY=VALUE`.
    #[error("--set {0:?}: write KEY=VALUE, such as price.tax=100")]
    Set(String),
}

impl Classed for DocumentError {
    fn class(&self) -> Class {
        Class::Usage
    }
}

/// A record file that could not be written in full.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct NotRecorded {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: records::RecordError,
}

impl Classed for NotRecorded {
    fn class(&self) -> Class {
        Class::Ours
    }
}
