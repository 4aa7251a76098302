//! The tables that trap and supervisor read and write, as in `bpf/shared.h`.
//!
//! Everything is atomic words in memory that the kernel side maps too, and there are no locks. With
//! the userfaultfd trap there is no kernel side, and the same tables lie in ordinary memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use paging::page::PageIndex;
use sys::memory::{MemoryFile, SharedView};

use crate::lanes::{Lane, Lanes};
use crate::layout::{
    EVENTS_MAX, LANES_AT, PAGE_SHIFT, PIDS_MAX, PROC_WORDS, PROCS_AT, PROCS_MAX, SLOTS_AT, Sizes,
    TAGS_AT, TIERS_MAX, TIMING_WORDS, layout,
};
use crate::link::{LinkTable, PROFILE_ENTRIES};
use crate::page_table::PageTable;

// A process enrols with the trap by reading an address of this unmapped range.
const ENROL_BASE: u64 = 0x7700_0000_0000;
const ENROL_BYTES: u64 = 0x400_0000_0000;
/// The read position of the log is published to the trap after every so many events.
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
    /// A dirty page was written back: no fault, and only where faults are recorded.
    WriteBack,
}

/// One entry of the event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultEvent {
    /// Nanoseconds since the start of the run; 0 for kinds that are only timed when recorded.
    pub time_ns: u64,
    /// Address of the page in its process; with the swap engine, in its swap space.
    pub address: u64,
    /// Number of the page: those of a process are numbered as 2 MiB after 2 MiB comes into use.
    pub page: PageIndex,
    /// Slot of the process.
    pub slot: usize,
    /// Thread that touched the page, as the kernel numbers it; 0 for faults that are not timed.
    pub tid: u32,
    /// What was done.
    pub kind: FaultKind,
    /// The access was a write.
    pub write: bool,
    /// Nanoseconds spent waiting for the link, and in user space for a frame.
    pub wait_ns: u32,
    /// Nanoseconds the fault should take.
    pub requested_ns: u32,
    /// Nanoseconds until the fault ended, as the trap sees it; 0 if its end was not seen.
    pub measured_ns: u32,
}

/// Where the parts of a [`Tag`] begin.
const TAG_KIND_SHIFT: u32 = 4;
const TAG_LEAF_SHIFT: u32 = 7;
const TAG_PAGE_SHIFT: u32 = 27;

/// An event in one word, as `TAG` of `bpf/shared.h`.
#[derive(Debug, Clone, Copy)]
struct Tag(u64);

impl Tag {
    /// `bits` bits from `shift` on: at most 20.
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

    const fn leaf(self) -> u32 {
        self.field(TAG_LEAF_SHIFT, 20)
    }

    /// The page's distance from the first page of its leaf, in bytes.
    fn offset(self) -> u64 {
        u64::from(self.field(TAG_PAGE_SHIFT, 9)) << PAGE_SHIFT
    }
}

/// The tables. Field by field as in the C header.
#[derive(Debug)]
pub struct Tables {
    shared: Arc<SharedView>,
    links: SharedView,
    profile: SharedView,
    timings: SharedView,
    /// The state words of pages.
    pub pages: PageTable,
    event_tail: u64,
}

impl Tables {
    /// Tables in ordinary memory, for a trap without a kernel side.
    pub fn private(sizes: Sizes) -> Result<Self, sys::Error> {
        Self::open(sizes, |name, bytes| {
            let file = MemoryFile::new(name, bytes as u64)?;
            SharedView::map(&file, bytes)
        })
    }

    /// Tables in memory that `view` returns by name and size.
    pub fn open<E>(
        sizes: Sizes,
        view: impl FnMut(&'static str, usize) -> Result<SharedView, E>,
    ) -> Result<Self, E> {
        let mut view = view;
        let mut next = layout(sizes).into_iter().map(|(name, bytes)| view(name, bytes));
        // `layout` has one entry per field.
        let mut take = || next.next().expect("a view for each field");
        let shared = Arc::new(take()?);
        let (links, profile, timings) = (take()?, take()?, take()?);
        let pages = [take()?, take()?, take()?];
        let pages = PageTable::new(Arc::clone(&shared), pages, sizes);
        Ok(Self { shared, links, profile, timings, pages, event_tail: 0 })
    }

    /// The start of the run by the monotonic clock, in nanoseconds.
    pub fn epoch_ns(&self) -> &AtomicU64 {
        &self.shared.words64()[0]
    }
    /// 1 if the trap times every fault.
    pub fn timed(&self) -> &AtomicU32 {
        &self.shared.words32()[2]
    }
    /// 1 if the trap logs the times of every fault.
    pub fn recorded(&self) -> &AtomicU32 {
        &self.shared.words32()[3]
    }
    /// How long before its time a fetched page may be mapped; 0 if the whole wait comes before.
    pub fn lead_ns(&self) -> &AtomicU64 {
        &self.shared.words64()[2]
    }
    /// [`Tables::pace`] when the links' constants were measured; 0 if they were not.
    pub fn reference(&self) -> &AtomicU64 {
        &self.shared.words64()[3]
    }
    /// Recent time of a turn of the wait loop, in 1024ths of a nanosecond; 0 without a delay.
    pub fn pace(&self) -> &AtomicU64 {
        &self.shared.words64()[12]
    }
    /// The doorbell rings at indices of the log that have none of these bits.
    pub fn bell_mask(&self) -> &AtomicU64 {
        &self.shared.words64()[4]
    }
    /// Whether a sample of pages is watched.
    pub fn watched(&self) -> &AtomicU64 {
        &self.shared.words64()[5]
    }
    /// How many further BPF programs continue a fault's wait.
    pub fn stretches(&self) -> &AtomicU64 {
        &self.shared.words64()[6]
    }
    /// How long a processor had interrupts off, at most, in nanoseconds, and how often over 20 µs.
    pub fn interrupts_off(&self) -> (u64, u64) {
        let word = |at: usize| self.shared.words64()[at].load(Ordering::Relaxed);
        (word(14), word(15))
    }
    /// How many events the log had no room for.
    pub fn event_lost(&self) -> &AtomicU64 {
        &self.shared.words64()[25]
    }
    /// How many faults joined a fetch under way.
    pub fn joined_count(&self) -> &AtomicU64 {
        &self.shared.words64()[9]
    }
    /// How many entries of the log were reserved since the start.
    pub fn logged_count(&self) -> &AtomicU64 {
        &self.shared.words64()[8]
    }
    /// How many events were read since the start.
    pub const fn taken_count(&self) -> u64 {
        self.event_tail
    }
    /// How many touches were let through because the stock had no leaf for them.
    pub fn stock_empty(&self) -> &AtomicU64 {
        &self.shared.words64()[11]
    }
    /// How often the doorbell had no room for a number.
    pub fn bell_lost(&self) -> &AtomicU64 {
        &self.shared.words64()[26]
    }

    /// Whether the doorbell was rung since the supervisor last slept.
    pub fn rung(&self) -> &AtomicU64 {
        &self.shared.words64()[24]
    }

    /// The row of the process in `slot`.
    pub fn proc(&self, slot: usize) -> Proc<'_> {
        let first = PROCS_AT + slot * PROC_WORDS;
        let words = &self.shared.words64()[first..][..PROC_WORDS];
        let halves = &self.shared.words32()[first * 2..][..PROC_WORDS * 2];
        Proc { words, halves }
    }

    /// The frames of a budget in a tier.
    pub fn lane(&self, budget: usize, tier: usize) -> Lane<'_> {
        Lane::of(&self.shared, LANES_AT, budget * TIERS_MAX + tier)
    }

    /// The frames of all budgets and tiers.
    pub fn lanes(&self) -> Lanes {
        Lanes::of(Arc::clone(&self.shared), LANES_AT)
    }

    /// The link of a tier.
    pub fn link(&self, tier: usize) -> LinkTable<'_> {
        LinkTable::of(&self.links, tier)
    }

    /// Quantiles of the time of a page of a tier, in nanoseconds.
    pub fn profile(&self, tier: usize) -> &[AtomicU32] {
        &self.profile.words32()[tier * PROFILE_ENTRIES..][..PROFILE_ENTRIES]
    }

    /// Has the trap ignore faults of a process from now on. `tgid` is the number in `proc`.
    pub fn forget(&self, tgid: u32) {
        let number = tgid as usize % PIDS_MAX;
        // Two slots share a word of 32 bits.
        let half = &self.shared.words32()[SLOTS_AT * 2 + number / 2];
        half.fetch_and(if number.is_multiple_of(2) { !0xffff } else { 0xffff }, Ordering::AcqRel);
    }

    /// How long a logged fault took, in nanoseconds; `None` before it has ended.
    pub fn end_of(&self, place: u64, tid: u32) -> Option<u32> {
        let place = usize::try_from(place).unwrap_or(0) & (EVENTS_MAX - 1);
        let halves = &self.timings.words32()[place * TIMING_WORDS * 2..][..TIMING_WORDS * 2];
        let measured = halves[5].load(Ordering::Acquire);
        (halves[2].load(Ordering::Relaxed) == tid && measured > 0).then_some(measured)
    }

    /// Writes the end of a fault, as the trap does.
    #[cfg(test)]
    fn set_end(&self, place: usize, tid: u32, measured_ns: u32) {
        let halves = &self.timings.words32()[place * TIMING_WORDS * 2..][..TIMING_WORDS * 2];
        halves[2].store(tid, Ordering::Relaxed);
        halves[5].store(measured_ns, Ordering::Release);
    }

    /// Reads the next event of the log, whose page is not numbered yet; `None` if there is none.
    pub fn next_event(&mut self) -> Option<FaultEvent> {
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
        let (slot, segment) = self.pages.owner(tag.leaf());
        let event = FaultEvent {
            time_ns: if flag(8) { stamp } else { 0 },
            address: segment + tag.offset(),
            page: PageIndex::new(0),
            tid: time(2),
            slot,
            kind: tag.kind(),
            write: flag(1),
            wait_ns: time(3),
            requested_ns: time(4),
            measured_ns: time(5),
        };
        word.store(0, Ordering::Release);
        self.event_tail += 1;
        // The trap reads the position at every fault, so it is not written at every event.
        if self.event_tail.is_multiple_of(EVENTS_TOLD) {
            self.shared.words64()[16].store(self.event_tail, Ordering::Release);
        }
        Some(event)
    }
}

/// A secret address that the process in `slot` reads to enrol with the trap.
pub fn enrol_address(slot: usize, random: u64) -> u64 {
    let numbers = (ENROL_BYTES >> PAGE_SHIFT) / PROCS_MAX as u64;
    ENROL_BASE + (((random % numbers) * PROCS_MAX as u64 + slot as u64) << PAGE_SHIFT)
}

/// The trap's entry of a process.
pub struct Proc<'a> {
    words: &'a [AtomicU64],
    halves: &'a [AtomicU32],
}

impl<'a> Proc<'a> {
    /// The trap's number of the process; 0 before it has enrolled.
    pub fn tgid(&self) -> &'a AtomicU32 {
        &self.halves[0]
    }
    pub fn budget(&self) -> &'a AtomicU32 {
        &self.halves[1]
    }
    pub fn unlimited(&self) -> &'a AtomicU32 {
        &self.halves[2]
    }
    pub fn prefetch_count(&self) -> &'a AtomicU32 {
        &self.halves[3]
    }
    pub fn prefetch_stride(&self) -> &'a AtomicU32 {
        &self.halves[4]
    }
    /// The processor of the last fault that rang the doorbell; `None` before the first.
    pub fn processor(&self) -> Option<usize> {
        self.halves[5].load(Ordering::Relaxed).checked_sub(1).map(|number| number as usize)
    }
    pub fn first_touch_count(&self) -> &'a AtomicU64 {
        &self.words[3]
    }
    /// The address by which the process enrols; 0 for none.
    pub fn enrol_address(&self) -> &'a AtomicU64 {
        &self.words[4]
    }
    pub fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Release));
    }
}

#[cfg(test)]
mod tests {
    use paging::word::State;

    use super::super::lanes::LANE_WORDS;
    use super::super::layout::{
        ADDRESS_TOP, CLAIMED, CLOSED, CONTROL_BYTES, LOWER_SHIFT, NODE_ENTRIES, OPEN,
        OWNER_SEGMENT_SHIFT, ROOT_ENTRIES, ROOT_SHIFT, SHARED_WORDS,
    };
    use super::*;

    fn tables() -> Tables {
        Tables::private(Sizes { nodes: 64 }).unwrap()
    }

    // As the trap does it.
    fn log(tables: &Tables, head: u64, (leaf, kind, flags): (u64, u64, u64), page: u64) {
        let place = usize::try_from(head).unwrap() & (EVENTS_MAX - 1);
        tables.timings.words32()[place * TIMING_WORDS * 2 + 2].store(77, Ordering::Relaxed);
        tables.timings.words32()[place * TIMING_WORDS * 2 + 3].store(5, Ordering::Relaxed);
        let tag = flags | kind << 4 | leaf << 7 | page << 27;
        tables.shared.words64()[TAGS_AT + place].store(tag, Ordering::Release);
    }

    #[test]
    fn the_end_of_a_fault_is_that_of_its_thread() {
        let tables = Tables::private(Sizes { nodes: 64 }).unwrap();
        assert_eq!(tables.end_of(3, 7), None);
        tables.set_end(3, 8, 6_100);
        assert_eq!(tables.end_of(3, 7), None, "another thread's");
        tables.set_end(3, 7, 6_200);
        assert_eq!((tables.end_of(3, 7), tables.end_of(4, 7)), (Some(6_200), None));
    }

    #[test]
    fn next_event_takes_complete_entries_in_order_across_the_end() {
        let mut tables = tables();
        let address = 0x7b00_0040_0000;
        tables.pages.clear(3);
        assert_eq!(tables.pages.open(3, address, address + (2 << 20)), 0);
        let word = tables.pages.make_word(3, address).unwrap() as *const AtomicU32;
        let leaf = (1..64).find(|&leaf| tables.pages.owner(leaf) == (3, address)).unwrap();
        assert_eq!(word, std::ptr::from_ref(&tables.pages.leaf(3, address).unwrap()[0]));
        for head in 0..EVENTS_MAX as u64 + 10 {
            assert_eq!(tables.next_event(), None);
            log(&tables, head, (leaf.into(), 2, 1), head % 512);
            let event = tables.next_event().unwrap();
            assert_eq!((event.address, event.slot), (address + head % 512 * 4096, 3));
            assert_eq!((event.kind, event.write), (FaultKind::Fetch, true));
            // Not timed: what an older entry left there is not shown.
            assert_eq!((event.wait_ns, event.tid), (0, 0));
        }
    }

    #[test]
    fn next_event_waits_for_an_entry_without_a_tag() {
        let mut tables = tables();
        log(&tables, 1, (0, 1, 0), 9);
        assert_eq!(tables.next_event(), None);
        log(&tables, 0, (0, 1, 8), 8);
        assert_eq!(tables.next_event().map(|event| (event.wait_ns, event.tid)), Some((5, 77)));
        assert_eq!(tables.next_event().map(|event| event.address), Some(9 * 4096));
    }

    #[test]
    fn forget_clears_one_process_of_two_in_a_word() {
        let tables = tables();
        let slots = || tables.shared.words32()[SLOTS_AT * 2 + 50].load(Ordering::Relaxed);
        tables.shared.words32()[SLOTS_AT * 2 + 50].store(0x0007_0003, Ordering::Relaxed);
        tables.forget(100);
        assert_eq!(slots(), 0x0007_0000);
        tables.forget(101);
        assert_eq!(slots(), 0);
    }

    #[test]
    fn enrol_address_says_the_slot_and_is_no_other_slots() {
        for random in [0, 1, u64::MAX] {
            for slot in [0, 1, PROCS_MAX - 1] {
                let address = enrol_address(slot, random);
                assert!((ENROL_BASE..ENROL_BASE + ENROL_BYTES).contains(&address));
                assert_eq!(address >> 12 & (PROCS_MAX as u64 - 1), slot as u64);
            }
        }
        assert_ne!(enrol_address(1, 1), enrol_address(1, 2));
    }

    #[test]
    fn layout_agrees_with_the_header() {
        let header = include_str!("../../farmem/bpf/shared.h");
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
            format!("#define ADDRESS_TOP {ADDRESS_TOP:#x}ULL\n"),
            format!("#define ENROL_BASE {ENROL_BASE:#x}ULL\n"),
            format!("#define ENROL_BYTES {ENROL_BYTES:#x}ULL\n"),
            format!("#define PIDS_MAX (1 << {})\n", PIDS_MAX.trailing_zeros()),
            format!("#define ENTRY_OPEN {}U\n", OPEN),
            format!("#define ENTRY_CLOSED {:#x}U\n", CLOSED),
            format!("#define ENTRY_CLAIMED {:#x}U\n", CLAIMED),
            format!("#define NODE_ENTRIES {NODE_ENTRIES}U\n"),
            format!("#define ROOT_ENTRIES {ROOT_ENTRIES}U\n"),
            format!("#define ROOT_SHIFT {}\n", ROOT_SHIFT),
            format!("#define LOWER_SHIFT {LOWER_SHIFT}\n"),
            format!("#define PAGE_SHIFT {PAGE_SHIFT}\n"),
            format!("#define OWNER_SEGMENT_SHIFT {}\n", OWNER_SEGMENT_SHIFT),
            format!("#define STATE_FOREIGN {}U\n", State::Foreign as u32),
            format!("#define TAG_KIND_SHIFT {TAG_KIND_SHIFT}\n"),
            format!("#define TAG_LEAF_SHIFT {TAG_LEAF_SHIFT}\n"),
            format!("#define TAG_PAGE_SHIFT {TAG_PAGE_SHIFT}\n"),
        ];
        for constant in constants {
            assert!(header.contains(&constant), "{constant}");
        }
    }
}
