//! The tables that the trap and the supervisor both read and write; `bpf/shared.h` is the same in
//! C.
//!
//! Everything is atomic words in memory that the kernel side maps too. With the userfaultfd trap
//! there is no kernel side, and the same tables lie in ordinary memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use sys::memory::{MemoryFile, SharedView};

use super::lanes::{LANE_WORDS, Lane, Lanes};
use super::link::{LINK_WORDS, LinkTable, PROFILE_ENTRIES};
use crate::page::PageIndex;

/// Most processes that are managed at once.
pub const PROCS_MAX: usize = 128;
/// Most tiers of far memory.
pub const TIERS_MAX: usize = 8;
/// Entries of the event log.
pub(crate) const EVENTS_MAX: usize = 1 << 16;
/// First address of the first arena.
pub(crate) const ARENA_BASE: u64 = 0x1000_0000_0000;
/// Addresses of one arena: 2 to this power.
pub(crate) const ARENA_SHIFT: u32 = 37;
/// Addresses of one arena.
pub(crate) const ARENA_BYTES: u64 = 1 << ARENA_SHIFT;
/// Pages whose state words lie together.
pub(crate) const LEAF_PAGES: usize = 512;
/// Leaves that cover one arena.
pub(crate) const SEGMENTS: usize = (ARENA_BYTES >> 12) as usize / LEAF_PAGES;

const CONTROL_BYTES: usize = 256;
const PROC_WORDS: usize = 8;
// Where the parts of `struct shared` begin, in words.
const PROCS_AT: usize = CONTROL_BYTES / 8;
const LANES_AT: usize = PROCS_AT + PROCS_MAX * PROC_WORDS;
const TAGS_AT: usize = LANES_AT + PROCS_MAX * TIERS_MAX * LANE_WORDS;
const DIRECTORIES_AT: usize = TAGS_AT + EVENTS_MAX;
const SHARED_WORDS: usize = DIRECTORIES_AT + PROCS_MAX * SEGMENTS / 2;
const TIMING_WORDS: usize = 3;
/// The trap learns how far the log has been read at every so many events.
const EVENTS_TOLD: u64 = 256;

/// What the trap did about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// First touch of a new page: no transfer.
    FirstTouch,
    /// A page of far memory was fetched.
    Fetch,
    /// A local page that had been unmapped to see whether it is used: no transfer.
    Soft,
    /// A page was fetched ahead of use.
    Prefetch,
    /// First touch of a page fetched ahead of use.
    Arrived,
}

/// One entry of the event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultEvent {
    /// Nanoseconds since the start of the run; 0 for kinds that are not timed unless faults are
    /// recorded.
    pub time_ns: u64,
    /// Page within the arena; with the swap engine, within its swap space.
    pub page: PageIndex,
    /// Slot of the process.
    pub slot: usize,
    /// Thread that touched the page.
    pub tid: u32,
    /// What was done.
    pub kind: FaultKind,
    /// The access was a write.
    pub write: bool,
    /// Nanoseconds spent waiting for the link, and in user space for a frame.
    pub wait_ns: u32,
    /// Nanoseconds the fault should take.
    pub requested_ns: u32,
    /// Nanoseconds until the trap let it go; the kernel's own share follows.
    pub measured_ns: u32,
}

/// Where the parts of a [`Tag`] begin.
const TAG_KIND_SHIFT: u32 = 4;
const TAG_SLOT_SHIFT: u32 = 7;
const TAG_PAGE_SHIFT: u32 = 14;
const TAG_TID_SHIFT: u32 = 39;

/// What happened, in one word, as `TAG` of `bpf/shared.h`.
#[derive(Debug, Clone, Copy)]
struct Tag(u64);

impl Tag {
    /// `bits` bits from `shift` on: at most 25.
    #[expect(clippy::cast_possible_truncation, reason = "masked")]
    const fn field(self, shift: u32, bits: u32) -> u32 {
        (self.0 >> shift) as u32 & ((1 << bits) - 1)
    }

    fn kind(self) -> FaultKind {
        match self.field(TAG_KIND_SHIFT, 3) {
            1 => FaultKind::FirstTouch,
            2 => FaultKind::Fetch,
            3 => FaultKind::Soft,
            4 => FaultKind::Prefetch,
            _ => FaultKind::Arrived,
        }
    }

    const fn slot(self) -> usize {
        self.field(TAG_SLOT_SHIFT, 7) as usize
    }

    const fn page(self) -> PageIndex {
        PageIndex::new(self.field(TAG_PAGE_SHIFT, 25))
    }

    const fn tid(self) -> u32 {
        self.field(TAG_TID_SHIFT, 22)
    }
}

/// Sizes that depend on the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Leaves of the page-state table, a power of two.
    pub(crate) leaves: u32,
}

impl Sizes {
    /// Enough leaves for all memory of the machine, in segments a quarter full.
    pub(crate) fn for_memory(bytes: u64) -> Self {
        let segments = (bytes >> 21).max(512) * 2;
        let leaves = segments.next_power_of_two().min(1 << 18);
        Self { leaves: u32::try_from(leaves).unwrap_or(1 << 18) }
    }
}

/// The tables. Field by field as in the C header.
#[derive(Debug)]
pub(crate) struct Tables {
    shared: Arc<SharedView>,
    links: SharedView,
    profile: SharedView,
    pages: SharedView,
    stock: SharedView,
    timings: SharedView,
    stock_mask: u64,
    event_tail: u64,
}

/// Bytes of each table, in the order of the fields of [`Tables`], with its name in the BPF object.
pub(crate) fn layout(sizes: Sizes) -> [(&'static str, usize); 6] {
    let leaves = sizes.leaves as usize;
    [
        ("afar_shared", SHARED_WORDS * 8),
        ("afar_links", TIERS_MAX * LINK_WORDS * 8),
        ("afar_profile", TIERS_MAX * PROFILE_ENTRIES * 4),
        ("afar_pages", leaves * LEAF_PAGES * 4),
        ("afar_stock", leaves * 8),
        ("afar_timings", EVENTS_MAX * TIMING_WORDS * 8),
    ]
}

impl Tables {
    /// Tables in memory of our own.
    pub(crate) fn private(sizes: Sizes) -> Result<Self, sys::Error> {
        Self::open(sizes, |name, bytes| {
            let file = MemoryFile::new(name, bytes as u64)?;
            SharedView::map(&file, bytes)
        })
    }

    /// Tables that `view` finds by name and size.
    pub(crate) fn open<E>(
        sizes: Sizes,
        view: impl FnMut(&'static str, usize) -> Result<SharedView, E>,
    ) -> Result<Self, E> {
        let mut view = view;
        let mut next = layout(sizes).into_iter().map(|(name, bytes)| view(name, bytes));
        // `layout` has one entry per field.
        let mut take = || next.next().expect("a view for each field");
        let tables = Self {
            shared: Arc::new(take()?),
            links: take()?,
            profile: take()?,
            pages: take()?,
            stock: take()?,
            timings: take()?,
            stock_mask: u64::from(sizes.leaves) - 1,
            event_tail: 0,
        };
        // Leaf 0 means none.
        for (place, leaf) in tables.stock.words64().iter().zip(1..u64::from(sizes.leaves)) {
            place.store(leaf, Ordering::Relaxed);
        }
        tables.stock_tail().store(u64::from(sizes.leaves) - 1, Ordering::Release);
        Ok(tables)
    }

    pub(crate) fn epoch_ns(&self) -> &AtomicU64 {
        &self.shared.words64()[0]
    }
    pub(crate) fn timed(&self) -> &AtomicU32 {
        &self.shared.words32()[2]
    }
    pub(crate) fn recorded(&self) -> &AtomicU32 {
        &self.shared.words32()[3]
    }
    /// How long before its time a fetched page is let go to be mapped; 0 if the whole wait comes
    /// before.
    pub(crate) fn lead_ns(&self) -> &AtomicU64 {
        &self.shared.words64()[2]
    }
    /// What [`Tables::pace`] was when the links' constants were measured; 0 if it was not.
    pub(crate) fn reference(&self) -> &AtomicU64 {
        &self.shared.words64()[3]
    }
    /// How long a turn of the wait loop has lately taken, in 1024ths of a nanosecond; 0 if nothing
    /// was delayed.
    pub(crate) fn pace(&self) -> &AtomicU64 {
        &self.shared.words64()[12]
    }
    /// The doorbell rings at places of the log that have none of these bits.
    pub(crate) fn bell_mask(&self) -> &AtomicU64 {
        &self.shared.words64()[4]
    }
    /// Whether a sample of pages is watched.
    pub(crate) fn watched(&self) -> &AtomicU64 {
        &self.shared.words64()[5]
    }
    pub(crate) fn event_lost(&self) -> &AtomicU64 {
        &self.shared.words64()[25]
    }
    pub(crate) fn joined_count(&self) -> &AtomicU64 {
        &self.shared.words64()[9]
    }
    fn stock_head(&self) -> &AtomicU64 {
        &self.shared.words64()[10]
    }
    fn stock_tail(&self) -> &AtomicU64 {
        &self.shared.words64()[17]
    }

    /// The doorbell was rung since the supervisor last slept.
    pub(crate) fn rung(&self) -> &AtomicU64 {
        &self.shared.words64()[24]
    }

    pub(crate) fn proc(&self, slot: usize) -> Proc<'_> {
        let first = PROCS_AT + slot * PROC_WORDS;
        let words = &self.shared.words64()[first..][..PROC_WORDS];
        let halves = &self.shared.words32()[first * 2..][..PROC_WORDS * 2];
        Proc { words, halves }
    }

    pub(crate) fn lane(&self, budget: usize, tier: usize) -> Lane<'_> {
        Lane::of(&self.shared, LANES_AT, budget * TIERS_MAX + tier)
    }

    pub(crate) fn lanes(&self) -> Lanes {
        Lanes::of(Arc::clone(&self.shared), LANES_AT)
    }

    pub(crate) fn link(&self, tier: usize) -> LinkTable<'_> {
        LinkTable::of(&self.links, tier)
    }

    pub(crate) fn profile(&self, tier: usize) -> &[AtomicU32] {
        &self.profile.words32()[tier * PROFILE_ENTRIES..][..PROFILE_ENTRIES]
    }

    fn directory(&self, slot: usize) -> &[AtomicU32] {
        &self.shared.words32()[DIRECTORIES_AT * 2 + slot * SEGMENTS..][..SEGMENTS]
    }

    /// The leaf of `segment` of the arena in `slot`, if it has one.
    pub(crate) fn leaf(&self, slot: usize, segment: usize) -> Option<&[AtomicU32]> {
        let leaf = self.directory(slot)[segment].load(Ordering::Acquire);
        if leaf == 0 || leaf == u32::MAX {
            return None;
        }
        Some(&self.pages.words32()[leaf as usize * LEAF_PAGES..][..LEAF_PAGES])
    }

    /// Whether anything was ever touched in the segment of a page.
    pub(crate) fn has_leaf(&self, slot: usize, page: PageIndex) -> bool {
        self.leaf(slot, split(page).0).is_some()
    }

    /// The state word of a page, whose leaf is taken from the stock if need be; none if the stock
    /// is empty.
    pub(crate) fn make_word(&self, slot: usize, page: PageIndex) -> Option<&AtomicU32> {
        let (segment, index) = split(page);
        let entry = &self.directory(slot)[segment];
        if entry.compare_exchange(0, u32::MAX, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let taken = self.stock_head().fetch_add(1, Ordering::AcqRel);
            if taken >= self.stock_tail().load(Ordering::Acquire) {
                entry.store(0, Ordering::Release);
                self.stock_head().fetch_sub(1, Ordering::AcqRel);
                return None;
            }
            let place = usize::try_from(taken & self.stock_mask).unwrap_or(0);
            let leaf = self.stock.words64()[place].load(Ordering::Acquire);
            entry.store(u32::try_from(leaf).unwrap_or(0), Ordering::Release);
        }
        self.leaf(slot, segment).map(|words| &words[index])
    }

    /// The state word of a page, if it has one.
    pub(crate) fn word(&self, slot: usize, page: PageIndex) -> Option<&AtomicU32> {
        let (segment, index) = split(page);
        self.leaf(slot, segment).map(|words| &words[index])
    }

    /// Calls `visit` with every state word of `count` pages from `first` on that exists.
    pub(crate) fn each_word(
        &self,
        slot: usize,
        first: PageIndex,
        count: u64,
        mut visit: impl FnMut(PageIndex, &AtomicU32),
    ) {
        let mut page = u64::from(first.get());
        let end = (page + count).min(ARENA_BYTES >> 12);
        while page < end {
            let segment_end = (page / LEAF_PAGES as u64 + 1) * LEAF_PAGES as u64;
            let stop = segment_end.min(end);
            let segment = usize::try_from(page).unwrap_or(0) / LEAF_PAGES;
            if let Some(words) = self.leaf(slot, segment) {
                for at in page..stop {
                    let index = usize::try_from(at).unwrap_or(0) % LEAF_PAGES;
                    if let Ok(page) = PageIndex::try_from(at) {
                        visit(page, &words[index]);
                    }
                }
            }
            page = stop;
        }
    }

    /// Gives the leaf of a segment that no mapping covers any more back to the stock.
    pub(crate) fn release_leaf(&self, slot: usize, segment: usize) {
        let entry = &self.directory(slot)[segment];
        if entry.load(Ordering::Acquire) == 0 {
            return;
        }
        let leaf = entry.swap(0, Ordering::AcqRel);
        if leaf == 0 {
            return;
        }
        for word in &self.pages.words32()[leaf as usize * LEAF_PAGES..][..LEAF_PAGES] {
            word.store(0, Ordering::Relaxed);
        }
        let tail = self.stock_tail().load(Ordering::Acquire);
        let place = usize::try_from(tail & self.stock_mask).unwrap_or(0);
        self.stock.words64()[place].store(u64::from(leaf), Ordering::Relaxed);
        self.stock_tail().store(tail + 1, Ordering::Release);
    }

    /// Gives all leaves of `slot` back.
    pub(crate) fn release_slot(&self, slot: usize) {
        for segment in 0..SEGMENTS {
            self.release_leaf(slot, segment);
        }
    }

    /// Takes the next event out of the log.
    pub(crate) fn next_event(&mut self) -> Option<FaultEvent> {
        let place = usize::try_from(self.event_tail).unwrap_or(0) & (EVENTS_MAX - 1);
        let word = &self.shared.words64()[TAGS_AT + place];
        let tag = Tag(word.load(Ordering::Acquire));
        if tag.0 == 0 {
            return None;
        }
        let flag = |flag: u64| tag.0 & flag != 0;
        let stamp = self.timings.words64()[place * TIMING_WORDS].load(Ordering::Relaxed);
        let halves = &self.timings.words32()[place * TIMING_WORDS * 2..][..TIMING_WORDS * 2];
        let time = |at: usize| if flag(8) { halves[at].load(Ordering::Relaxed) } else { 0 };
        let event = FaultEvent {
            time_ns: if flag(8) { stamp } else { 0 },
            page: tag.page(),
            tid: tag.tid(),
            slot: tag.slot(),
            kind: tag.kind(),
            write: flag(1),
            wait_ns: time(3),
            requested_ns: time(4),
            measured_ns: time(5),
        };
        word.store(0, Ordering::Release);
        self.event_tail += 1;
        // The trap reads it at every fault, so it is not written at every event.
        if self.event_tail.is_multiple_of(EVENTS_TOLD) {
            self.shared.words64()[16].store(self.event_tail, Ordering::Release);
        }
        Some(event)
    }
}

fn split(page: PageIndex) -> (usize, usize) {
    let page = page.get() as usize;
    (page / LEAF_PAGES, page % LEAF_PAGES)
}

/// What the trap knows of a process.
pub(crate) struct Proc<'a> {
    words: &'a [AtomicU64],
    halves: &'a [AtomicU32],
}

impl<'a> Proc<'a> {
    pub(crate) fn tgid(&self) -> &'a AtomicU32 {
        &self.halves[0]
    }
    pub(crate) fn budget(&self) -> &'a AtomicU32 {
        &self.halves[1]
    }
    pub(crate) fn unlimited(&self) -> &'a AtomicU32 {
        &self.halves[2]
    }
    pub(crate) fn prefetch_count(&self) -> &'a AtomicU32 {
        &self.halves[3]
    }
    pub(crate) fn prefetch_stride(&self) -> &'a AtomicU32 {
        &self.halves[4]
    }
    /// Processor of the last fault that rang the doorbell.
    pub(crate) fn processor(&self) -> Option<usize> {
        self.halves[7].load(Ordering::Relaxed).checked_sub(1).map(|number| number as usize)
    }
    pub(crate) fn first_touch_count(&self) -> &'a AtomicU64 {
        &self.words[4]
    }
    pub(crate) fn clear(&self) {
        self.tgid().store(0, Ordering::Release);
        for word in &self.words[1..] {
            word.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::word::State;
    use super::*;

    fn tables() -> Tables {
        Tables::private(Sizes { leaves: 8 }).unwrap()
    }

    // As the trap does it.
    fn log(tables: &Tables, head: u64, (slot, kind, flags): (u64, u64, u64), page: u32) {
        let place = usize::try_from(head).unwrap() & (EVENTS_MAX - 1);
        tables.timings.words32()[place * TIMING_WORDS * 2 + 3].store(5, Ordering::Relaxed);
        let tag = flags | kind << 4 | slot << 7 | u64::from(page) << 14 | 77 << 39;
        tables.shared.words64()[TAGS_AT + place].store(tag, Ordering::Release);
    }

    #[test]
    fn next_event_takes_complete_entries_in_order_across_the_end() {
        let mut tables = tables();
        for head in 0..EVENTS_MAX as u64 + 10 {
            assert_eq!(tables.next_event(), None);
            log(&tables, head, (3, 2, 1), u32::try_from(head).unwrap());
            let event = tables.next_event().unwrap();
            assert_eq!((u64::from(event.page.get()), event.slot, event.tid), (head, 3, 77));
            assert_eq!((event.kind, event.write), (FaultKind::Fetch, true));
            // Not timed: what an older entry left there is not shown.
            assert_eq!(event.wait_ns, 0);
        }
    }

    #[test]
    fn next_event_waits_for_an_entry_without_a_tag() {
        let mut tables = tables();
        log(&tables, 1, (0, 1, 0), 9);
        assert_eq!(tables.next_event(), None);
        log(&tables, 0, (0, 1, 8), 8);
        assert_eq!(tables.next_event().map(|event| event.wait_ns), Some(5));
        assert_eq!(tables.next_event().map(|event| event.page.get()), Some(9));
    }

    #[test]
    fn leaves_come_from_the_stock_and_go_back_empty() {
        let tables = tables();
        let page = |segment: u32| PageIndex::new(segment * 512 + 3);
        for segment in 0..7 {
            let word = tables.make_word(2, page(segment)).unwrap();
            word.store(State::Local as u32, Ordering::Relaxed);
        }
        assert!(tables.make_word(2, page(7)).is_none(), "seven leaves, the first is no leaf");
        assert!(tables.word(1, page(0)).is_none(), "slots do not share");
        tables.release_leaf(2, 4);
        let word = tables.make_word(5, page(9)).unwrap();
        assert_eq!(word.load(Ordering::Relaxed), 0);
        let mut seen = Vec::new();
        tables.each_word(2, PageIndex::new(0), 8 * 512, |page, word| {
            if word.load(Ordering::Relaxed) != 0 {
                seen.push(page.get() / 512);
            }
        });
        assert_eq!(seen, [0, 1, 2, 3, 5, 6]);
        tables.release_slot(2);
        assert!((0..6).all(|segment| tables.make_word(0, page(segment)).is_some()));
    }

    #[test]
    fn layout_agrees_with_the_header() {
        let header = include_str!("../../bpf/shared.h");
        let sizes = [
            ("control", CONTROL_BYTES),
            ("proc", PROC_WORDS * 8),
            ("lane", LANE_WORDS * 8),
            ("shared", SHARED_WORDS * 8),
            ("timing", TIMING_WORDS * 8),
        ];
        for (name, bytes) in sizes {
            let line = format!("_Static_assert(sizeof(struct {name}) == {bytes}, ");
            assert!(header.contains(&line), "{line}");
        }
        let constants = [
            format!("#define PROCS_MAX {PROCS_MAX}\n"),
            format!("#define TIERS_MAX {TIERS_MAX}\n"),
            format!("#define EVENTS_MAX (1 << {})\n", EVENTS_MAX.trailing_zeros()),
            format!("#define ARENA_BASE {ARENA_BASE:#x}ULL\n"),
            format!("#define ARENA_SHIFT {ARENA_SHIFT}\n"),
            format!("#define STATE_FOREIGN {}U\n", State::Foreign as u32),
            format!("#define TAG_KIND_SHIFT {TAG_KIND_SHIFT}\n"),
            format!("#define TAG_SLOT_SHIFT {TAG_SLOT_SHIFT}\n"),
            format!("#define TAG_PAGE_SHIFT {TAG_PAGE_SHIFT}\n"),
            format!("#define TAG_TID_SHIFT {TAG_TID_SHIFT}\n"),
        ];
        for constant in constants {
            assert!(header.contains(&constant), "{constant}");
        }
    }
}
