//! What goes into an engine and what comes out.

use measure::{Instant, LinkConfig, Pages};

use crate::page::PageIndex;

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The program touched a page that is not mapped.
    Fault {
        /// The page.
        page: PageIndex,
        /// Whether it was a write.
        write: bool,
        /// When the program was stopped. Delays are counted from here, so time that passed
        /// until now is not added to them; events older than one already handled are taken to
        /// have happened with it.
        at: Instant,
    },
    /// A local page was found to be written to, by a fault that needed no resolution or a scan.
    Written {
        /// The page.
        page: PageIndex,
    },
    /// The program freed pages: their next touch is a first touch. Fetches in flight are
    /// abandoned.
    Discard {
        /// The first page.
        first: PageIndex,
        /// How many.
        count: Pages,
    },
    /// The program locked pages into local memory.
    Pin {
        /// The first page.
        first: PageIndex,
        /// How many.
        count: Pages,
    },
    /// The program unlocked pages.
    Unpin {
        /// The first page.
        first: PageIndex,
        /// How many.
        count: Pages,
    },
    /// The program moved pages to where they do not overlap themselves (`mremap`); what was there
    /// is discarded. Fetches in flight are abandoned, and their pages are remote at the new place.
    Rename {
        /// The first page of the source.
        from: PageIndex,
        /// The first page of the target.
        to: PageIndex,
        /// How many.
        count: Pages,
    },
    /// The settings change from here on.
    Retune {
        /// The new budget; `None` leaves it.
        budget: Option<Pages>,
        /// The new link; `None` leaves it.
        link: Option<LinkConfig>,
    },
    /// Time passed.
    Tick,
}

/// What has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make a page accessible at `ready_at`, which may be in the past, and wake who waits for it.
    Resolve {
        /// The page.
        page: PageIndex,
        /// When.
        ready_at: Instant,
        /// Why, and so from where its content comes.
        kind: ResolveKind,
    },
    /// Unmap a page, if it is still mapped, and move its content to far memory.
    Evict {
        /// The page.
        page: PageIndex,
        /// Whether it differs from the copy in far memory.
        dirty: bool,
        /// When its frame is free: the write-back is acknowledged, or now.
        free_at: Instant,
    },
    /// Unmap a page without giving up its frame.
    Probe {
        /// The page.
        page: PageIndex,
    },
}

/// Why a page becomes accessible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResolveKind {
    /// First touch of a new page, which is zeroes.
    FirstTouch,
    /// A fault on a remote page, fetched over the link.
    Fetch,
    /// A fault on a page on probation, which was local all the time.
    Soft,
    /// A further fault on a page whose resolution is under way or just over.
    Joined,
    /// No fault: the page was fetched ahead.
    Prefetch,
}

/// Where a page is, as the engine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStatus {
    /// Never touched, or freed.
    Absent,
    /// Local and mapped.
    Local,
    /// Local but unmapped.
    Probation,
    /// In far memory, or on its way there.
    Remote,
    /// On its way from far memory.
    InFlight {
        /// When it arrives.
        ready_at: Instant,
    },
}
