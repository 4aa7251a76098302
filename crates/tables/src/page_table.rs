//! The managed pages of each process, with their state words, as in `bpf/shared.h`.
//!
//! ```text
//! slot ─► root, 256 entries of 512 GiB ─► node, 512 of 1 GiB ─► node, 512 of 2 MiB
//!                                                                      └─► leaf, 512 words
//! ```
//!
//! DESIGN NOTES
//!
//! * An entry is *closed* (nothing below it is under management), *open* (all of it is, and nothing
//!   has been touched), or the number of a node. So a reservation of terabytes costs a few nodes at
//!   its ends, and what is touched costs what it would cost the processor's own page tables.
//! * Nodes and leaves come from one stock. The trap takes from its head at the first touch; the
//!   supervisor takes there, too, and returns nodes at the tail. The trap does not see the last
//!   nodes in the stock: they are the supervisor's, and they keep returned nodes from being used
//!   again while a reader that has found one a moment ago still reads it.
//! * The supervisor never takes a node away that is being put in place: a claim ends within the
//!   fault, with interrupts off, so it waits for that.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use paging::regions::PAGE;
use paging::word::{State, Word};
use sys::memory::SharedView;

use crate::layout::{
    CLAIMED, CLOSED, LOWER_SHIFT, NODE_ENTRIES, OPEN, OWNER_SEGMENT_SHIFT, PAGE_SHIFT, PROCS_MAX,
    ROOT_ENTRIES, ROOT_SHIFT, ROOTS_AT, STOCK_HEAD_AT, STOCK_TAIL_AT, Sizes,
};

/// The trees of all processes, and the stock they grow from.
#[derive(Debug)]
pub struct PageTable {
    shared: Arc<SharedView>,
    nodes: SharedView,
    stock: SharedView,
    owners: SharedView,
    stock_mask: u64,
    /// How many nodes the trap leaves in the stock.
    reserve: u64,
    tail: AtomicU64,
}

/// A range of addresses that is to be opened or closed.
struct Change {
    slot: usize,
    start: u64,
    end: u64,
    to: u32,
}

impl PageTable {
    /// A table with all nodes in stock, and no process.
    pub(super) fn new(
        shared: Arc<SharedView>,
        [nodes, stock, owners]: [SharedView; 3],
        sizes: Sizes,
    ) -> Self {
        let count = u64::from(sizes.nodes) - 1;
        let table = Self {
            shared,
            nodes,
            stock,
            owners,
            stock_mask: u64::from(sizes.stock()) - 1,
            reserve: (count / 8).min(1024),
            tail: AtomicU64::new(0),
        };
        // Node 0 means none.
        for number in 1..sizes.nodes {
            table.put_back(number);
        }
        table
    }

    // Index of the next node to take from the stock.
    fn head(&self) -> &AtomicU64 {
        &self.shared.words64()[STOCK_HEAD_AT]
    }

    // Appends a node to the stock.
    fn put_back(&self, number: u32) {
        let tail = self.tail.load(Ordering::Relaxed);
        let place = usize::try_from(tail & self.stock_mask).unwrap_or(0);
        self.stock.words64()[place].store(u64::from(number), Ordering::Relaxed);
        self.tail.store(tail + 1, Ordering::Relaxed);
        let told = (tail + 1).saturating_sub(self.reserve);
        self.shared.words64()[STOCK_TAIL_AT].store(told, Ordering::Release);
    }

    // Takes a node from the stock; `None` if it is empty.
    fn take(&self) -> Option<u32> {
        let tail = self.tail.load(Ordering::Relaxed);
        let next = |head: u64| (head < tail).then_some(head + 1);
        let head = self.head().fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        let place = usize::try_from(head & self.stock_mask).unwrap_or(0);
        u32::try_from(self.stock.words64()[place].load(Ordering::Acquire)).ok()
    }

    /// How many nodes and leaves are in the stock.
    #[cfg(test)]
    fn stocked(&self) -> u64 {
        self.tail.load(Ordering::Relaxed) - self.head().load(Ordering::Acquire)
    }

    fn node(&self, number: u32) -> &[AtomicU32] {
        &self.nodes.words32()[number as usize * NODE_ENTRIES..][..NODE_ENTRIES]
    }

    // The root entries of the process in `slot`.
    fn root(&self, slot: usize) -> &[AtomicU32] {
        let first = ROOTS_AT * 2 + (slot % PROCS_MAX) * ROOT_ENTRIES;
        &self.shared.words32()[first..][..ROOT_ENTRIES]
    }

    /// Frees all nodes of `slot` and closes all of its addresses, for the next process.
    pub fn clear(&self, slot: usize) {
        for entry in self.root(slot) {
            self.shut(entry, ROOT_SHIFT, 0, &mut |_segment| {});
        }
    }

    /// Takes `start..end` under management; pages that are managed already stay as they are.
    /// Returns how many pages could not be taken, because the stock is empty.
    pub fn open(&self, slot: usize, start: u64, end: u64) -> u64 {
        let change = Change { slot, start, end, to: OPEN };
        self.change(self.root(slot), ROOT_SHIFT, 0, &change, &mut |_segment| {})
    }

    /// Ends the management of `start..end`. Calls `freed` with the first address of each leaf that
    /// it frees. Returns how many pages stay managed, because the stock is empty.
    pub fn close(&self, slot: usize, start: u64, end: u64, freed: &mut dyn FnMut(u64)) -> u64 {
        let change = Change { slot, start, end, to: CLOSED };
        self.change(self.root(slot), ROOT_SHIFT, 0, &change, freed)
    }

    // Applies `change` to a node's entries; the first one covers `1 << shift` bytes from `base` on.
    // Returns how many pages it could not change.
    fn change(
        &self,
        entries: &[AtomicU32],
        shift: u32,
        base: u64,
        change: &Change,
        freed: &mut dyn FnMut(u64),
    ) -> u64 {
        let mut failed = 0;
        for (index, entry) in within(entries, shift, base, change.start, change.end) {
            let from = base + ((index as u64) << shift);
            let until = from + (1 << shift);
            if shift == PAGE_SHIFT {
                change_word(entry, change.to);
                continue;
            }
            let whole = change.start <= from && until <= change.end;
            if whole && change.to == CLOSED {
                self.shut(entry, shift, from, freed);
                continue;
            }
            let value = settled(entry);
            if value == change.to {
                continue;
            }
            if whole && value == CLOSED {
                entry.store(OPEN, Ordering::Release);
                continue;
            }
            match self.split(entry, shift, from, change.slot) {
                Some(number) => {
                    let below = child_shift(shift);
                    failed += self.change(self.node(number), below, from, change, freed);
                }
                None => {
                    failed += (until.min(change.end) - from.max(change.start)) >> PAGE_SHIFT;
                }
            }
        }
        failed
    }

    // The node below an entry, made if there is none. `None` if the stock is empty.
    fn split(&self, entry: &AtomicU32, shift: u32, base: u64, slot: usize) -> Option<u32> {
        loop {
            let value = settled(entry);
            if value != OPEN && value != CLOSED {
                return Some(value);
            }
            let number = self.take()?;
            let is_leaf = child_shift(shift) == PAGE_SHIFT;
            let fill = match (value, is_leaf) {
                (OPEN, _) => 0,
                (_, true) => State::Foreign as u32,
                (_, false) => CLOSED,
            };
            self.node(number).iter().for_each(|below| below.store(fill, Ordering::Relaxed));
            if is_leaf {
                let owner = base >> LOWER_SHIFT << OWNER_SEGMENT_SHIFT | slot as u64;
                self.owners.words64()[number as usize].store(owner, Ordering::Relaxed);
            }
            if entry.compare_exchange(value, number, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Some(number);
            }
            // The trap was first.
            self.give_back(number);
        }
    }

    // Closes an entry and frees the nodes below it.
    fn shut(&self, entry: &AtomicU32, shift: u32, base: u64, freed: &mut dyn FnMut(u64)) {
        let value = loop {
            let value = settled(entry);
            if value == CLOSED {
                return;
            }
            let closed = entry.compare_exchange(value, CLOSED, Ordering::AcqRel, Ordering::Acquire);
            if closed.is_ok() {
                break value;
            }
        };
        if value == OPEN {
            return;
        }
        let below = child_shift(shift);
        if below == PAGE_SHIFT {
            freed(base);
        } else {
            for (index, entry) in self.node(value).iter().enumerate() {
                self.shut(entry, below, base + ((index as u64) << below), freed);
            }
        }
        self.give_back(value);
    }

    // Zeroes a node and returns it to the stock.
    fn give_back(&self, number: u32) {
        self.node(number).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.put_back(number);
    }

    /// The state words of the 2 MiB that hold `address`; `None` if they have no leaf.
    pub fn leaf(&self, slot: usize, address: u64) -> Option<&[AtomicU32]> {
        let mut entries = self.root(slot);
        let mut shift = ROOT_SHIFT;
        while shift > PAGE_SHIFT {
            let index = usize::try_from(address >> shift).ok()? % entries.len();
            entries = self.node(numbered(&entries[index])?);
            shift = child_shift(shift);
        }
        (address >> ROOT_SHIFT < ROOT_ENTRIES as u64).then_some(entries)
    }

    /// The state word of a page; `None` if it has none.
    pub fn word(&self, slot: usize, address: u64) -> Option<&AtomicU32> {
        self.leaf(slot, address).map(|words| &words[index_in_leaf(address)])
    }

    /// The state word of a page, and the reference by which [`word_of`](Self::word_of) finds it
    /// without its process; `None` if it has none.
    pub fn reference(&self, slot: usize, address: u64) -> Option<(u32, &AtomicU32)> {
        let mut entries = self.root(slot);
        let mut shift = ROOT_SHIFT;
        let mut number = 0;
        while shift > PAGE_SHIFT {
            let index = usize::try_from(address >> shift).ok()? % entries.len();
            number = numbered(&entries[index])?;
            entries = self.node(number);
            shift = child_shift(shift);
        }
        let index = index_in_leaf(address);
        let reference = u32::try_from(number as usize * NODE_ENTRIES + index).ok()?;
        Some((reference, &entries[index]))
    }

    /// The state word of a reference; an arbitrary word if its leaf was freed meanwhile.
    pub fn word_of(&self, reference: u32) -> &AtomicU32 {
        &self.nodes.words32()[reference as usize]
    }

    /// Takes a node from the stock for a ring of outgoing pages; `None` if the stock is empty.
    pub fn take_ring(&self) -> Option<u32> {
        let number = self.take()?;
        self.node(number).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        Some(number)
    }

    /// Frees the node of a ring.
    pub fn give_ring(&self, number: u32) {
        self.give_back(number);
    }

    /// The words of a ring of outgoing pages, as 32 bits and as 64 bits each.
    pub fn ring(&self, number: u32) -> (&[AtomicU32], &[AtomicU64]) {
        let first = number as usize * NODE_ENTRIES / 2;
        (self.node(number), &self.nodes.words64()[first..][..NODE_ENTRIES / 2])
    }

    /// The state word of a managed page, whose leaf is taken from the stock if need be.
    pub fn make_word(&self, slot: usize, address: u64) -> Result<&AtomicU32, NoWord> {
        let mut entries = self.root(slot);
        let mut shift = ROOT_SHIFT;
        if address >> ROOT_SHIFT >= ROOT_ENTRIES as u64 {
            return Err(NoWord::Closed);
        }
        while shift > PAGE_SHIFT {
            let index = usize::try_from(address >> shift).unwrap_or(0) % entries.len();
            let entry = &entries[index];
            if settled(entry) == CLOSED {
                return Err(NoWord::Closed);
            }
            let base = address >> shift << shift;
            entries = self.node(self.split(entry, shift, base, slot).ok_or(NoWord::Full)?);
            shift = child_shift(shift);
        }
        let word = &entries[index_in_leaf(address)];
        let is_closed = word.load(Ordering::Acquire) == State::Foreign as u32;
        if is_closed { Err(NoWord::Closed) } else { Ok(word) }
    }

    /// The owner of a leaf: its slot, and the first address it covers.
    pub(super) fn owner(&self, leaf: u32) -> (usize, u64) {
        let owners = self.owners.words64();
        let word = owners.get(leaf as usize).map_or(0, |owner| owner.load(Ordering::Acquire));
        let slot = usize::try_from(word & ((1 << OWNER_SEGMENT_SHIFT) - 1)).unwrap_or(0);
        (slot, word >> OWNER_SEGMENT_SHIFT << LOWER_SHIFT)
    }

    /// Calls `visit` with the first address of every leaf that covers any of `start..end`, and its
    /// words, in order of address, until it breaks.
    pub fn each_leaf<B>(
        &self,
        slot: usize,
        start: u64,
        end: u64,
        mut visit: impl FnMut(u64, &[AtomicU32]) -> ControlFlow<B>,
    ) -> Option<B> {
        let root = self.root(slot);
        self.walk(root, ROOT_SHIFT, 0, (start, end), &mut visit).break_value()
    }

    // As `each_leaf`, below a node whose first entry covers `1 << shift` bytes from `base` on.
    fn walk<B>(
        &self,
        entries: &[AtomicU32],
        shift: u32,
        base: u64,
        (start, end): (u64, u64),
        visit: &mut impl FnMut(u64, &[AtomicU32]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if shift == PAGE_SHIFT {
            return visit(base, entries);
        }
        for (index, entry) in within(entries, shift, base, start, end) {
            if let Some(number) = numbered(entry) {
                let from = base + ((index as u64) << shift);
                self.walk(self.node(number), child_shift(shift), from, (start, end), visit)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The first address of the first leaf that covers any of `start..end`.
    pub fn next_leaf(&self, slot: usize, start: u64, end: u64) -> Option<u64> {
        self.each_leaf(slot, start, end, |segment, _words| ControlFlow::Break(segment))
    }

    /// The first page of `start..end` whose state word says that it has contents.
    pub fn next_used(&self, slot: usize, start: u64, end: u64) -> Option<u64> {
        self.each_leaf(slot, start, end, |segment, words| {
            let is_used = |cell: &AtomicU32| {
                !matches!(
                    Word(cell.load(Ordering::Acquire)).state(),
                    State::Absent | State::Foreign
                )
            };
            let mut words = within(words, PAGE_SHIFT, segment, start, end);
            match words.find(|(_, word)| is_used(word)) {
                Some((index, _)) => ControlFlow::Break(segment + ((index as u64) << PAGE_SHIFT)),
                None => ControlFlow::Continue(()),
            }
        })
    }

    /// Calls `visit` with the address and the word of every page of `start..end` that has one.
    pub fn each_word(
        &self,
        slot: usize,
        start: u64,
        end: u64,
        mut visit: impl FnMut(u64, &AtomicU32),
    ) {
        let all = self.each_leaf(slot, start, end, |segment, words| {
            for (index, word) in within(words, PAGE_SHIFT, segment, start, end) {
                visit(segment + ((index as u64) << PAGE_SHIFT), word);
            }
            ControlFlow::<()>::Continue(())
        });
        debug_assert!(all.is_none(), "nothing breaks the walk");
    }

    /// The ranges, in order, of pages of `start..end` for whose state words `wanted` holds.
    pub fn runs(
        &self,
        slot: usize,
        (start, end): (u64, u64),
        wanted: impl Fn(Word) -> bool,
    ) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        self.each_word(slot, start, end, |address, cell| {
            if !wanted(Word(cell.load(Ordering::Acquire))) {
                return;
            }
            match runs.last_mut() {
                Some((_, end)) if *end == address => *end += PAGE,
                _ => runs.push((address, address + PAGE)),
            }
        });
        runs
    }
}

/// Why a page has no state word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoWord {
    /// The page is not under management.
    Closed,
    /// The stock has no leaf for the page.
    Full,
}

// The entries of a node that overlap `start..end`, with their indices.
fn within(
    entries: &[AtomicU32],
    shift: u32,
    base: u64,
    start: u64,
    end: u64,
) -> impl Iterator<Item = (usize, &AtomicU32)> {
    let place = |address: u64| usize::try_from(address >> shift).unwrap_or(usize::MAX);
    let first = place(start.saturating_sub(base));
    let last = place(end.saturating_sub(base).saturating_add((1 << shift) - 1)).min(entries.len());
    entries.iter().enumerate().take(last).skip(first)
}

const fn child_shift(shift: u32) -> u32 {
    shift - 9
}

/// The index of a page's word in its leaf.
pub fn index_in_leaf(address: u64) -> usize {
    usize::try_from(address >> PAGE_SHIFT).unwrap_or(0) % NODE_ENTRIES
}

// The node that an entry names; `None` if the entry is open or closed.
fn numbered(entry: &AtomicU32) -> Option<u32> {
    let value = entry.load(Ordering::Acquire);
    (value != OPEN && value < CLOSED).then_some(value)
}

// The value of an entry, once the trap is not putting a node there.
fn settled(entry: &AtomicU32) -> u32 {
    loop {
        let value = entry.load(Ordering::Acquire);
        if value != CLAIMED {
            return value;
        }
        std::hint::spin_loop();
    }
}

fn change_word(word: &AtomicU32, to: u32) {
    const FOREIGN: u32 = State::Foreign as u32;
    if to == CLOSED {
        word.store(FOREIGN, Ordering::Release);
    } else {
        // A page that is under management already keeps its state.
        let _open = word.compare_exchange(FOREIGN, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::layout::SEGMENT;
    use super::super::shared::Tables;
    use super::*;

    const GIB: u64 = 1 << 30;
    const END: u64 = 1 << 47;
    const PAGE: u64 = 4096;

    fn tables(nodes: u32) -> Tables {
        let tables = Tables::private(Sizes { nodes }).unwrap();
        tables.pages.clear(1);
        tables.pages.clear(2);
        tables
    }

    #[test]
    fn a_reservation_of_terabytes_costs_its_ends_and_what_is_touched() {
        let tables = tables(64);
        let pages = &tables.pages;
        let before = pages.stocked();
        let start = 0x2000_0000_0000 + 5 * PAGE;
        assert_eq!(pages.open(1, start, start + (32 << 40)), 0);
        assert!(before - pages.stocked() <= 6, "three nodes at each end");
        assert_eq!(pages.make_word(1, start - PAGE).err(), Some(NoWord::Closed));
        let used = pages.stocked();
        let far = start + (17 << 40);
        pages.make_word(1, far).unwrap().store(State::Local as u32, Ordering::Relaxed);
        assert_eq!(used - pages.stocked(), 3);
        let mut seen = Vec::new();
        pages.each_word(1, 0, END, |address, word| {
            if word.load(Ordering::Relaxed) == State::Local as u32 {
                seen.push(address);
            }
        });
        assert_eq!(seen, [far]);
        assert_eq!(pages.next_leaf(1, start + SEGMENT, far / SEGMENT * SEGMENT), None);
        assert_eq!(pages.next_leaf(1, start + SEGMENT, END), Some(far / SEGMENT * SEGMENT));
        let mut freed = Vec::new();
        assert_eq!(pages.close(1, 0, END, &mut |segment| freed.push(segment)), 0);
        assert_eq!(pages.stocked(), before);
        assert!(freed.contains(&(far / SEGMENT * SEGMENT)));
    }

    #[test]
    fn no_node_is_lost_when_the_stock_is_empty() {
        let tables = tables(32);
        let pages = &tables.pages;
        let all = pages.stocked();
        assert_eq!(pages.open(1, 0, 4 * GIB), 0);
        let mut made = 0;
        while pages.make_word(1, made * SEGMENT).is_ok() {
            made += 1;
        }
        // One node for 512 GiB, one for each gigabyte.
        assert_eq!((made, pages.stocked()), (all - 2 - u64::from(made > 512), 0));
        for _ in 0..100 {
            assert_eq!(pages.make_word(1, made * SEGMENT).err(), Some(NoWord::Full));
        }
        assert_eq!(pages.open(2, PAGE, 3 * PAGE), 2, "pages that cannot be opened are counted");
        pages.clear(1);
        assert_eq!(pages.stocked(), all);
        assert_eq!(pages.open(2, PAGE, 3 * PAGE), 0);
        assert!(pages.make_word(2, PAGE).is_ok());
        assert_eq!(pages.make_word(2, 0).err(), Some(NoWord::Closed));
    }

    #[test]
    fn a_claim_that_is_under_way_is_waited_for() {
        let tables = tables(32);
        let pages = &tables.pages;
        let before = pages.stocked();
        pages.open(1, 0, 1 << ROOT_SHIFT);
        let entry = &pages.root(1)[0];
        entry.store(CLAIMED, Ordering::Release);
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| pages.close(1, 0, END, &mut |_segment| {}));
            std::thread::sleep(std::time::Duration::from_millis(10));
            assert!(!closing.is_finished());
            let number = pages.take().unwrap();
            entry.store(number, Ordering::Release);
        });
        assert_eq!(entry.load(Ordering::Acquire), CLOSED);
        assert_eq!(pages.stocked(), before);
    }

    proptest! {
        // Against a map of pages, at both ends of every level of the tree.
        #[test]
        fn the_tree_is_a_map_of_pages(
            steps in prop::collection::vec((0_u8..4, 0_usize..12, 1_u64..2000, 0_u64..4), 1..60),
        ) {
            let bounds = [
                0, SEGMENT, 3 * SEGMENT, GIB, 2 * GIB, 5 * GIB, 512 * GIB, 1024 * GIB, 77 * SEGMENT,
                GIB + SEGMENT, 512 * GIB + GIB, 1023 * GIB,
            ];
            let tables = tables(1024);
            let pages = &tables.pages;
            let all = pages.stocked();
            // Ranges under management, and words that are not 0.
            let mut open: Vec<(u64, u64)> = Vec::new();
            let mut words = BTreeMap::<u64, u32>::new();
            let is_open = |open: &[(u64, u64)], at: u64| {
                open.iter().any(|&(from, to)| (from..to).contains(&at))
            };
            for (step, bound, count, scale) in steps {
                let middle: u64 = bounds[bound];
                let length = (count * PAGE) << (scale * 6);
                let before = length / PAGE / 2 * PAGE;
                let (start, end) = (middle.saturating_sub(before), middle + length);
                match step {
                    0 => {
                        prop_assert_eq!(pages.open(1, start, end), 0);
                        open.push((start, end));
                    }
                    1 => {
                        prop_assert_eq!(pages.close(1, start, end, &mut |_segment| {}), 0);
                        open = open
                            .iter()
                            .flat_map(|&(from, to)| [(from, to.min(start)), (from.max(end), to)])
                            .filter(|(from, to)| from < to)
                            .collect();
                        words.retain(|at, _| !(start..end).contains(at));
                    }
                    _ => {
                        let at = if step == 2 { start } else { end - PAGE };
                        let word = pages.make_word(1, at);
                        prop_assert_eq!(word.is_ok(), is_open(&open, at));
                        if let Ok(word) = word {
                            word.store(State::Remote as u32, Ordering::Relaxed);
                            words.insert(at, State::Remote as u32);
                        }
                    }
                }
                let mut found = BTreeMap::new();
                let mut wrong = Vec::new();
                pages.each_word(1, 0, END, |address, word| {
                    let word = word.load(Ordering::Relaxed);
                    if (word == State::Foreign as u32) == is_open(&open, address) {
                        wrong.push(address);
                    }
                    if word != 0 && word != State::Foreign as u32 {
                        found.insert(address, word);
                    }
                });
                prop_assert_eq!(&found, &words);
                prop_assert_eq!(wrong, Vec::<u64>::new());
            }
            pages.clear(1);
            prop_assert_eq!(pages.stocked(), all);
        }
    }

    #[test]
    fn the_ring_of_outgoing_pages_agrees_with_the_header() {
        use paging::outgoing::{FREE, LEFT, OUTCOME, OUTGOING_MAX, OUTGOING_WORDS, PAGE, STAYS};

        assert_eq!(OUTGOING_MAX as usize * OUTGOING_WORDS, NODE_ENTRIES);
        let header = include_str!("../../farmem/bpf/shared.h");
        let constants = [
            format!("#define OUTGOING_MAX {OUTGOING_MAX}U\n"),
            format!("#define OUTGOING_WORDS {OUTGOING_WORDS}U\n"),
            format!("#define OUTGOING_PAGE {PAGE}U\n"),
            format!("#define OUTGOING_OUTCOME {OUTCOME}U\n"),
            format!("#define OUTGOING_FREE {FREE}U\n"),
            format!("#define OUTCOME_LEFT {LEFT}U\n"),
            format!("#define OUTCOME_STAYS {STAYS}U\n"),
            format!("#define TICKETS (1U << {})\n", Word::TICKETS.trailing_zeros()),
        ];
        for constant in constants {
            assert!(header.contains(&constant), "{constant}");
        }
    }
}
