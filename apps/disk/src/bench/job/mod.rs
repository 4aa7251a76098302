//! Job files: loads described by fio's options.
//!
//! ```text
//! text: bytes ─► sections ─► entries: values by word ─► meaning ─► options: Job
//!                                  └ words: known options; units: numbers
//! ```
//!
//! Every load of `afar bench` is a `Job`, made from flags or from a section of a job file.
//!
//! Nothing here opens a disk or reads the environment.

mod entries;
mod error;
mod flags;
mod meaning;
mod options;
mod text;
mod units;
mod words;

pub(crate) use error::{JobError, Note};

pub(crate) use options::{Job, Place};
pub(crate) use units::{Extent, fio_size, fio_time};

/// Parses a job file whose variables have the values of `variable`: its jobs, and notes on options
/// without effect.
///
/// # Errors
/// The first error in the file.
pub(crate) fn read(
    bytes: &[u8],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Vec<Job>, Vec<Note>), JobError> {
    let mut notes = Vec::new();
    let sections = text::read(bytes, variable)?;
    let jobs = sections.iter().map(|section| Job::read(section, &mut notes));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    // Global options are read with every section, so their notes repeat.
    notes.sort_by_key(|note: &Note| note.line);
    notes.dedup();
    Ok((jobs, notes))
}
