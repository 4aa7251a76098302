//! A cell of the validation, and what became of it.

use results::Validation;

use super::programs::Program;

/// A program, its threads, and what of its memory is local.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) program: &'static Program,
    pub(super) threads: u32,
    pub(super) local: &'static str,
}

impl Cell {
    /// What people call it.
    pub(super) fn name(&self) -> String {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        format!("{}, {} {threads}", self.program.name, self.threads)
    }
}

/// What became of a cell.
pub(super) type Ran = (Cell, Result<Validation, String>);
