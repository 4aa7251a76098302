//! A cell of the validation, and what became of it.

use results::Validation;

/// A program, and what of its memory is local.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) name: &'static str,
    /// Of `afar workload`, quick and in full.
    pub(super) words: [&'static str; 2],
    pub(super) local: &'static str,
}

/// What became of a cell.
pub(super) type Ran = (Cell, Result<Validation, String>);
