//! One run of a sweep that has ended.

use experiment::journal::Keyed;
use serde::{Deserialize, Serialize};

use results::Figures;

/// One run that has ended: the same bytes wherever it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) cell: String,
    /// `None` if the run failed.
    pub(super) figures: Option<Figures>,
    /// Why the run failed; `None` if it has figures.
    pub(super) failure: Option<String>,
}

impl Keyed for Row {
    fn block(&self) -> u32 {
        0
    }

    fn cell(&self) -> &str {
        &self.cell
    }
}
