//! What the engine knows of a page beyond its residency, as bits of one byte; zero for a page
//! never seen, and for a local one of which there is nothing to say.

/// The content is in far memory, or on its way there.
pub(super) const REMOTE: u8 = 1;

/// The content is on its way here.
pub(super) const IN_FLIGHT: u8 = 2;

/// The content is on its way to far memory and still occupies its frame.
pub(super) const DRAINING: u8 = 4;

/// Written since it became local.
pub(super) const DIRTY: u8 = 8;

/// Fetched ahead, and not used since.
pub(super) const PREFETCHED: u8 = 16;

/// A fault on it waits for a frame.
pub(super) const WAITING: u8 = 32;
