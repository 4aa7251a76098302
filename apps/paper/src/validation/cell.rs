//! A cell of the validation, and its result.

use results::Validation;

use super::programs::Program;

/// A program, its number of threads, and its share of local memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) program: &'static Program,
    pub(super) threads: u32,
    pub(super) local: &'static str,
}

impl Cell {
    /// The program and its threads, as text.
    pub(super) fn name(&self) -> String {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        format!("{}, {} {threads}", self.program.name, self.threads)
    }
}

/// A cell and its record, or why it failed.
pub(super) type Ran = (Cell, Result<Validation, String>);
