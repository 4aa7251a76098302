//! What a program asked of `mmap`.

/// See the module's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapRequest {
    pub(crate) protection: u64,
    /// Whatever is there is replaced (`MAP_FIXED`).
    pub(crate) fixed: bool,
    /// It must be there or nowhere (`MAP_FIXED_NOREPLACE`).
    pub(crate) only_there: bool,
    /// Its pages are to be there at once (`MAP_POPULATE`).
    pub(crate) populates: bool,
}
