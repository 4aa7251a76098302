//! In which ways a page is local.

use crate::page::PageIndex;

/// Where a page is, as far as its frame is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageState {
    /// Not local: never touched, freed, or given up.
    Absent,
    /// Local and mapped.
    Active,
    /// Local but unmapped: the next touch is a soft fault.
    Probation,
    /// As on probation, and in order of leaving.
    Leaving,
    /// Local, mapped, and not to be given up.
    Pinned,
}

/// How a page became local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// The first touch of a new page.
    FirstTouch,
    /// A fault on a page in far memory.
    Fetch,
    /// Fetched ahead of a fault.
    Prefetch,
    /// Without a fault that was seen: a scan came across it.
    Found,
}

/// A page to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Victim {
    /// The page.
    pub page: PageIndex,
    /// Whether it is still mapped; if not, it was unmapped when it went on probation.
    pub mapped: bool,
}
