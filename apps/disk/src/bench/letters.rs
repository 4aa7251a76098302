//! Names of compared disks.

/// The letter of each disk. Its length is the most disks of a comparison.
pub(super) const LETTERS: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];
