//! Job files: loads written down in fio's words.
//!
//! ```text
//! text: bytes ─► sections ─► entries: values by word ─► meaning ─► options: Job
//!                                  └ words and units say what there is
//! ```
//!
//! A load of `afar bench` is a `Job`, whether flags say it or a section of a job file.
//!
//! Nothing here looks at a disk or an environment: what a path leads to is seen by who opens it.

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

/// The jobs of a file, and what in it has no effect.
///
/// # Errors
/// The first thing in it that cannot be.
pub(crate) fn read(
    bytes: &[u8],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Vec<Job>, Vec<Note>), JobError> {
    let mut notes = Vec::new();
    let sections = text::read(bytes, variable)?;
    let jobs = sections.iter().map(|section| Job::read(section, &mut notes));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    // What is global is read with every section.
    notes.sort_by_key(|note: &Note| note.line);
    notes.dedup();
    Ok((jobs, notes))
}
