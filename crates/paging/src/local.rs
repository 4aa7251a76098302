//! The states of a page, and how it becomes local.

use crate::page::PageIndex;

/// The state of a page with regard to its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageState {
    /// Not local: never touched, freed, or given up.
    Absent,
    /// Local and mapped.
    Active,
    /// Local but unmapped: the next touch is a soft fault.
    Probation,
    /// Local but unmapped, and in the order of leaving.
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
    /// Without a fault that was seen: a scan found it.
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
