//! `afar point`: runs single points of a sweep, for `afar sweep` or `afar sim`.

use std::process::ExitCode;

use console::{Class, Classed, Failure};
use dispatch::PointFlags;
use experiment::journal::{self, JournalError};

/// Why no point can be run.
#[derive(Debug, thiserror::Error)]
enum PointError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{directory}: a sweep of the kind {schema}, which this afar does not know")]
    Kind { directory: String, schema: String },
}

impl Classed for PointError {
    fn class(&self) -> Class {
        Class::Usage
    }
}

/// Runs points of a sweep. The process ends when its parent does.
///
/// # Errors
/// When the directory is not that of a sweep, or the application that runs the points fails.
pub(crate) fn point(flags: &PointFlags) -> Result<ExitCode, Failure> {
    sys::process::end_with_parent();
    let header = journal::header(&flags.directory).map_err(PointError::from)?;
    match header.schema.as_str() {
        results::sim::SWEEP_SCHEMA => fabric::points(flags),
        results::SWEEP_SCHEMA => sweep::points(flags),
        _ => {
            let (directory, schema) = (flags.directory.display().to_string(), header.schema);
            Err(PointError::Kind { directory, schema }.into())
        }
    }
}
