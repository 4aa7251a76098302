//! The validation, which is no paper's: emulated far memory beside real far memory.

mod cell;
mod cells;
mod programs;
mod report;

use crate::figure::{Figure, Run};

/// The only figure.
pub(super) const FIGURES: &[Figure] = &[Figure {
    name: "validation",
    quick_s: 120,
    about: "No paper's: programs emulated beside the same ones with pages that are really far, \
            over NVMe/TCP",
    run: Run::Alone(cells::run),
}];
