//! How far the simulations of a directory have come, for `afar watch`.

use std::path::Path;

use experiment::journal::{self, JournalError};
use results::live::{CellProgress, Progress};

use super::row::Row;

/// How far the simulations of a directory have come: each is a cell with one run.
///
/// # Errors
/// A sentence, when the directory is not that of an `afar sim` over many settings.
pub fn progress_of(directory: &Path) -> Result<Progress, String> {
    read(directory).map_err(|error| error.to_string())
}

/// The progress by the journal in the directory.
fn read(directory: &Path) -> Result<Progress, JournalError> {
    let (header, rows) = journal::read::<Row>(directory)?;
    let cell = |name: &String| {
        let mut cell = CellProgress::new(name, Some(1));
        for row in rows.iter().filter(|row| row.cell == *name) {
            let mean = row.figures.as_ref().map(|figures| figures.slowdown.mean);
            cell.add(mean, row.failure.as_deref());
        }
        cell
    };
    Ok(Progress {
        run_count: rows.len() as u64,
        runs_of: Some(header.cells.len() as u64),
        metric: "mean slowdown of flows".to_owned(),
        cells: header.cells.iter().map(cell).collect(),
    })
}
