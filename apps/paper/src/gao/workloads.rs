//! Common parts of Figures 7 and 8: the programs whose traffic is simulated, their local memory,
//! and the network.

use std::path::{Path, PathBuf};

use console::OutputError;
use fabric::SimError;

use crate::ReproduceError;

/// Programs of afar's own, with their sizes for `--quick` and without.
pub(super) const WORKLOADS: [(&str, [&[&str]; 2]); 4] = [
    ("wordcount", [&["--size", "8MiB"], &["--size", "64MiB"]]),
    ("sort", [&["--size", "8MiB"], &["--size", "64MiB"]]),
    ("als", [&["--size", "4MiB", "--iterations", "4"], &["--size", "32MiB"]]),
    ("pagerank", [&["--size", "8MiB", "--iterations", "8"], &["--size", "64MiB"]]),
];
/// Their short names for axes.
pub(super) const LABELS: [&str; WORKLOADS.len()] = ["words", "sort", "als", "ranks"];
/// The share of a program's memory that is local, as in §3 of the paper.
pub(super) const LOCAL: &str = "25%";
/// Delays of the paper's network: host to leaf, leaf to spine, spine to leaf, leaf to host.
pub(super) const DELAY: &str = "10ns,400ns,400ns,210ns";

/// Creates the directory in which a figure stores the files of one workload.
///
/// # Errors
/// If it cannot be created.
pub(super) fn directory(
    output: &Path,
    figure: &str,
    workload: &str,
) -> Result<PathBuf, ReproduceError> {
    let directory = output.join(figure).join(workload);
    let refused = |source| SimError::from(OutputError::open(&directory, source));
    std::fs::create_dir_all(&directory).map_err(refused)?;
    Ok(directory)
}
