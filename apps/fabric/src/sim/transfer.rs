//! Data that a node moved.

/// Where data is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Memory,
    Disk,
}

/// Data that a node moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) at_ps: u64,
    pub(super) place: Place,
    /// The page or sector, below `address_end`.
    pub(super) address: u64,
    pub(super) address_end: u64,
    pub(super) bytes: u64,
    /// Whether the data goes to the compute blade.
    pub(super) is_read: bool,
}
