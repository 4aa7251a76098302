//! The arguments of an `mmap`.

/// See the module's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapRequest {
    pub(crate) protection: u64,
    /// The new memory replaces what is mapped there (`MAP_FIXED`).
    pub(crate) fixed: bool,
    /// The memory must be at this address or nowhere (`MAP_FIXED_NOREPLACE`).
    pub(crate) only_there: bool,
    /// All pages are to be populated at once (`MAP_POPULATE`).
    pub(crate) populates: bool,
}
