//! Why there is no prediction.

use std::path::PathBuf;

use console::{Class, Classed};
use measure::LocalSize;
use records::RecordError;

/// Why there is no prediction.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PredictError {
    #[error("read {}: {source}; check the path and its permissions", path.display())]
    Open { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Record { path: PathBuf, source: RecordError },
    #[error(
        "{} does not say how a program uses its memory; give what afar predict --record has \
         written", path.display()
    )]
    NoProfile { path: PathBuf },
    #[error("interrupted; there is no prediction")]
    Interrupted,
    #[error("{program} ended with {end}, so what it did says nothing; mend it first")]
    Failed { program: String, end: String },
    #[error(
        "{program} has not touched any memory that afar manages, so nothing is known of it; a \
         program must be dynamically linked, see afar run --help"
    )]
    Nothing { program: String },
    #[error(transparent)]
    Invalid(#[from] measure::InvalidRun),
    #[error("--of {0}: a size is not a share of anything; leave it out, or give --local as shares")]
    OfSize(measure::ShareOf),
    #[error("--local {0}: nothing local is no place for a program; give more")]
    NoLocal(LocalSize),
}

impl Classed for PredictError {
    fn class(&self) -> Class {
        match self {
            Self::Invalid(_) => Class::Invalid,
            Self::Interrupted => Class::Interrupted,
            Self::Failed { .. } | Self::Nothing { .. } => Class::Failed,
            _ => Class::Usage,
        }
    }
}
