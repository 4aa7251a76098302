//! What no paper has published: far memory that is emulated beside far memory that is real.

mod cell;
mod cells;
mod programs;
mod report;

use crate::figure::{Figure, Run};

/// The only one.
pub(super) const FIGURES: &[Figure] = &[Figure {
    name: "validation",
    quick_s: 120,
    about: "No paper's: programs emulated beside the same ones with pages that are really far, \
            over NVMe/TCP",
    run: Run::Alone(cells::run),
}];
