//! Memory on a blade: pages leave for it, and come back from it.
//!
//! ```text
//! unmapped ─► read from the memory file ─► blade ─► acknowledged ─► frame needed: far
//!                     ▲ touched meanwhile: stays
//! touched ─► frame ─► blade ─► verified ─► into the memory file ─► mapped
//! ```
//!
//! DESIGN NOTES
//!
//! * Whatever could map a page asks the supervisor first (userfaultfd, pages that are missing and
//!   pages that are not mapped). So a page on its way out cannot change unseen, and one that is
//!   written back into the file is seen by nobody before it is whole.
//! * Until another page needs its frame, a page that the blade has acknowledged is local, and a
//!   touch takes it back (`paging::leavers`). The frame is given away at once, so that the page
//!   which needs it is asked for. What gave it leaves the file afterwards, while the other comes:
//!   then its word says that it is far. If it cannot leave any more, the budget is one frame short,
//!   and the next page leaves.
//! * The kernel can write to a frame without a fault: while a device fills a buffer, and as long as
//!   a buffer is registered with a ring (`frames`). A page that has changed since it was sent
//!   stays. What a device writes after its page has left, for a request that began before the page
//!   was unmapped and that nobody waits for, would be lost: asynchronous direct I/O.
//! * A page that leaves as it came is on the blade already, and is not sent. What it holds is
//!   compared, not whether it was written to: so a device that writes unseen is seen.
//! * Times are measured: nothing is reserved on a link.
//! * A page that a thread waits for is asked for at once, and alone. Those that leave, and those
//!   that are fetched ahead of a fault, are asked for when the supervisor has nothing else to do:
//!   neighbours on the blade go as one request. A page that was fetched ahead is mapped when it is
//!   here, so whether it was of use is not known; of a window that an earlier run gave (`order`),
//!   one page stays unmapped until it is touched.
//! * With the right to load BPF programs, a fault asks for its page from the trap, and spins until
//!   it is mapped (`look`). That is a shorter way to the same steps: an ask changes nothing, and a
//!   thread without an answer is reported by userfaultfd as without it.
//! * Pages that the supervisor itself accesses are brought first (`bring`); the call waits.
//! * A blade that loses a page, or answers with another one, ends the program, unless another blade
//!   has a copy (`blades`): it never sees zeros or older bytes.

mod frames;
mod look;
mod order;
mod out;
mod steps;

use std::collections::BTreeMap;
use std::time::Duration;

use blades::{Answer, Blade, PAGE_BYTES, Wanted};
use paging::blade::{Blade as Places, Content, Token};
use paging::leavers::Leavers;
use paging::order::FetchOrder;
use paging::patience::Patience;
use paging::print::PrintKey;

use super::userfault_trap::Touch;

/// Most neighbours that are moved at once. A fault that comes meanwhile waits for all of them.
const RUN_PAGES: usize = 8;

/// The bytes of so many pages.
type Run = Vec<[u8; PAGE_BYTES]>;

/// Where a needed page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brought {
    /// Local, or never used.
    Here,
    /// On its way.
    Comes,
    /// Not requested before a frame is free.
    NoFrame,
}

/// A page on its way in.
#[derive(Debug, Clone, Copy)]
struct Coming {
    /// The fault that needs the page.
    touch: Touch,
    wanted: Wanted,
    /// The first fault that waits for this page, if it was fetched ahead.
    joined: Option<Touch>,
    /// How many threads asked for it from the trap and are not reported by userfaultfd yet.
    asked: u32,
}

impl Coming {
    // Whether a thread waits for the page.
    const fn is_awaited(&self) -> bool {
        matches!(self.wanted, Wanted::Now) || self.joined.is_some()
    }
}

/// A blade, and which pages it has.
pub(crate) struct Far {
    pub(crate) blade: Box<dyn Blade>,
    pub(crate) places: Places,
    /// The order of first fetches, if it is recorded or replayed.
    pub(crate) order: Option<FetchOrder>,
    /// The key of fingerprints of pages.
    key: PrintKey,
    /// Some pages need not be sent, so no acknowledgement will say that their frames are free.
    has_held: bool,
    /// Pages on their way out.
    leavers: Leavers,
    /// Pages on their way in.
    coming: BTreeMap<Token, Coming>,
    /// An answer of the blade that is to be acted on next.
    held: Option<Answer>,
    /// The bytes of a run that is moved; empty while it is.
    bytes: Run,
    patience: Patience,
}

impl Far {
    pub(crate) fn new(blade: Box<dyn Blade>, order: Option<FetchOrder>) -> Self {
        Self {
            order,
            places: Places::new(blade.pages()),
            key: new_key(),
            has_held: false,
            blade,
            leavers: Leavers::default(),
            coming: BTreeMap::new(),
            held: None,
            bytes: vec![[0; PAGE_BYTES]; RUN_PAGES],
            patience: Patience::default(),
        }
    }

    /// How long until the blade is to be polled though it has not rung; `None` without a deadline.
    fn due(deadline_ns: Option<u64>) -> Option<Duration> {
        let now_ns = sys::clock::monotonic_ns();
        deadline_ns.map(|at| Duration::from_nanos(at.saturating_sub(now_ns)))
    }

    /// Whether pages that need not be sent have freed frames that were not looked at.
    pub(crate) const fn has_held(&self) -> bool {
        self.has_held
    }

    /// Resets `has_held`: the caller looks at those frames.
    pub(crate) const fn look(&mut self) {
        self.has_held = false;
    }

    // Takes the buffer for a run. The caller puts it back; a nested caller gets one of its own.
    fn take_room(&mut self) -> Run {
        let mut room = std::mem::take(&mut self.bytes);
        room.resize(RUN_PAGES, [0; PAGE_BYTES]);
        room
    }

    /// The next answer of the blade; `None` if there is none yet.
    fn next(&mut self) -> Option<Answer> {
        self.held.take().or_else(|| self.blade.next())
    }

    // The page at `address` if it is on its way in.
    fn coming_to(&mut self, slot: usize, address: u64) -> Option<&mut Coming> {
        let token = self.places.awaited((slot, address / PAGE_BYTES as u64))?;
        self.coming.get_mut(&token)
    }

    /// Notes that a thread asked for a page from the trap. Returns whether the page is on its way.
    pub(crate) fn asked(&mut self, slot: usize, address: u64) -> bool {
        let coming = self.coming_to(slot, address);
        coming.map(|coming| coming.asked += 1).is_some()
    }

    /// Userfaultfd reports a fault. Returns whether its thread has asked already, and waits.
    pub(crate) fn has_asked(&mut self, slot: usize, address: u64) -> bool {
        let coming = self.coming_to(slot, address).filter(|coming| coming.asked > 0);
        coming.map(|coming| coming.asked -= 1).is_some()
    }

    /// Notes that a page came at `now_ns`, `ns` after a thread began to wait for it.
    pub(crate) fn took(&mut self, ns: u64, now_ns: u64) {
        self.patience.fetched(ns, now_ns);
    }

    /// A thread waits for a page on its way. Returns whether it is the first, of one fetched ahead.
    pub(crate) fn joins(&mut self, touch: Touch) -> bool {
        let coming = self.coming_to(touch.slot, touch.address);
        match coming.filter(|one| one.wanted == Wanted::Ahead && one.joined.is_none()) {
            None => false,
            Some(coming) => {
                coming.joined = Some(touch);
                true
            }
        }
    }

    /// How many pages of a budget and tier are on their way out and still have their frames.
    pub(crate) fn leaving_of(&self, budget: usize, tier: usize) -> u32 {
        self.leavers.count((budget, tier))
    }
}

/// A random key of page fingerprints, which nobody can know.
pub(crate) fn new_key() -> PrintKey {
    let mut bytes = [0; PAGE_BYTES];
    sys::random::fill(&mut bytes);
    PrintKey::new(&bytes, sys::random::number())
}

// The checksum and the fingerprint of a page.
fn content(bytes: &[u8; PAGE_BYTES], key: &PrintKey) -> Content {
    Content { sum: sum(bytes), print: key.print(bytes) }
}

/// The checksum of a page.
fn sum(bytes: &[u8; PAGE_BYTES]) -> u32 {
    crc32c::crc32c(bytes)
}
