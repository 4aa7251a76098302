//! Why there is no report.

use std::path::PathBuf;

use console::{Class, Classed};

use super::raster::RasterError;
use super::source::SourceError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("--bound {0}: give a share above 0 with its sign, such as 5%")]
    Bound(String),
    #[error("--compare: give two records of the same kind, or up to 26, not {0}")]
    Count(usize),
    #[error("--compare: {} is a {one} record and {} a {other} record; give those of one kind",
        paths[0].display(), paths[1].display())]
    Kinds { paths: [PathBuf; 2], one: &'static str, other: &'static str },
    #[error(transparent)]
    Raster(#[from] RasterError),
}

impl Classed for ReportError {
    fn class(&self) -> Class {
        match self {
            Self::Raster(_) => Class::Failed,
            _ => Class::Usage,
        }
    }
}
