//! What disks that are compared are called.

/// Letters of disks, as many as are compared at most.
pub(super) const LETTERS: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];
