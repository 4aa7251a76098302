//! Asks: requests of faults whose thread spins in the trap; `struct asks` of `bpf/far.bpf.h`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use measure::{Duration, Spins};
use sys::bpf::{BpfError, Object};
use sys::memory::SharedView;

/// Faults on processors beyond this number do not ask.
const ASKS_MAX: usize = 1024;
const HEADER_WORDS: usize = 8;
const ASK_WORDS: usize = 16;
const WORDS: usize = HEADER_WORDS + ASKS_MAX * ASK_WORDS;
/// Index of the word of an ask that is written first; its number is written last.
const BEGUN: usize = 7;
const NAME: &str = "afar_asks";

/// A fault's request for a page (an ask).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The slot of the process.
    pub slot: usize,
    /// The address that the thread touched.
    pub address: u64,
    /// The thread.
    pub tid: u32,
    /// Whether it writes.
    pub is_write: bool,
    /// Time of the ask, by the monotonic clock.
    pub at_ns: u64,
    /// The processor on which the thread spins, and the number of the ask there.
    processor: usize,
    number: u64,
}

/// The table of asks, with a row for each processor.
pub struct Asks {
    view: SharedView,
    /// The last ask seen of each processor.
    seen: Vec<u64>,
    /// Asks without an answer.
    open: Vec<Ask>,
}

impl Asks {
    /// The table of the trap `object`, whose faults spin for `longest` at most, on `processors`.
    ///
    /// # Errors
    /// When the table cannot be mapped.
    pub fn of(object: &Object, longest: Duration, processors: usize) -> Result<Self, BpfError> {
        Ok(Self::on(object.view(NAME, WORDS * 8)?, longest, processors))
    }

    // The table in `view`.
    fn on(view: SharedView, longest: Duration, processors: usize) -> Self {
        let asks = Self { view, seen: vec![0; processors.min(ASKS_MAX)], open: Vec::new() };
        asks.word(1).store(longest.as_ns(), Ordering::Release);
        asks
    }

    // Word `at` of the header.
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.view.words64()[at]
    }

    // The 64-bit word `at` of the row of `processor`.
    fn ask(&self, processor: usize, at: usize) -> &AtomicU64 {
        self.word(HEADER_WORDS + processor * ASK_WORDS + at)
    }

    // The 32-bit word `at` of the row of `processor`.
    fn half(&self, processor: usize, at: usize) -> &AtomicU32 {
        &self.view.words32()[(HEADER_WORDS + processor * ASK_WORDS) * 2 + at]
    }

    /// The processor of the last fault; `None` before the first.
    pub fn near(&self) -> Option<usize> {
        let near = self.word(2).load(Ordering::Relaxed);
        usize::try_from(near).ok().and_then(|near| near.checked_sub(1))
    }

    /// Lets faults spin from here on: the caller, on `processor`, polls for their asks.
    pub fn look(&self, processor: usize) {
        self.word(0).store(processor as u64 + 1, Ordering::Release);
    }

    /// Lets no further fault spin. Those that asked before still do: look once more.
    pub fn rest(&self) {
        self.word(0).store(0, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Whether there is an ask that was not seen yet.
    pub fn is_asked(&self) -> bool {
        let is_new = |(processor, seen): (usize, &u64)| {
            self.ask(processor, 0).load(Ordering::Relaxed) != *seen
        };
        self.seen.iter().enumerate().any(is_new)
    }

    /// Returns the next new ask, which is open until it is answered; `None` if there is none.
    pub fn take(&mut self) -> Option<Ask> {
        for processor in 0..self.seen.len() {
            let number = self.ask(processor, 0).load(Ordering::Acquire);
            if number == self.seen[processor] {
                continue;
            }
            let word = |at: usize| self.ask(processor, at).load(Ordering::Relaxed);
            let half = |at: usize| self.half(processor, at).load(Ordering::Relaxed);
            let ask = Ask {
                slot: half(6) as usize,
                address: word(1),
                tid: half(7),
                is_write: word(4) != 0,
                at_ns: word(2),
                processor,
                number,
            };
            fence(Ordering::Acquire);
            // If the next ask is being written over this one, this one has expired.
            if self.ask(processor, BEGUN).load(Ordering::Relaxed) == number {
                self.seen[processor] = number;
                self.open.push(ask);
                return Some(ask);
            }
        }
        None
    }

    /// Whether an ask has no answer yet.
    pub fn is_open(&self, ask: &Ask) -> bool {
        self.open.contains(ask)
    }

    /// Ends the spin of a thread whose page is not here: userfaultfd then puts it to sleep.
    pub fn let_go(&mut self, ask: &Ask) {
        self.answer_where(|open| open == ask);
    }

    /// Answers all asks for a page, which is now mapped.
    pub fn answer(&mut self, slot: usize, address: u64) {
        if !self.open.is_empty() {
            self.answer_where(|ask| ask.slot == slot && ask.address >> 12 == address >> 12);
        }
    }

    /// Closes all asks of a process that has ended.
    pub fn forget(&mut self, slot: usize) {
        self.answer_where(|ask| ask.slot == slot);
    }

    // Answers the open asks for which `is_it` holds.
    fn answer_where(&mut self, is_it: impl Fn(&Ask) -> bool) {
        let mut open = std::mem::take(&mut self.open);
        for ask in open.extract_if(.., |ask| is_it(ask)) {
            self.ask(ask.processor, 8).fetch_max(ask.number, Ordering::AcqRel);
        }
        self.open = open;
    }

    /// How many spins have been answered, and how many have expired, since the start.
    pub fn counts(&self) -> Spins {
        let of = |at: usize| {
            let all = 0..self.seen.len();
            all.map(|processor| self.ask(processor, at).load(Ordering::Relaxed)).sum()
        };
        Spins { answered_count: of(5), expired_count: of(6) }
    }
}

#[cfg(test)]
mod tests {
    use sys::memory::MemoryFile;

    use super::*;

    fn asks(processors: usize) -> Asks {
        let file = MemoryFile::new("asks", WORDS as u64 * 8).unwrap();
        let view = SharedView::map(&file, WORDS * 8).unwrap();
        Asks::on(view, Duration::from_us(20), processors)
    }

    // As the trap does it.
    fn fault(asks: &Asks, processor: usize, (slot, address): (u32, u64)) -> u64 {
        asks.ask(processor, BEGUN).fetch_add(1, Ordering::Relaxed);
        asks.ask(processor, 1).store(address, Ordering::Relaxed);
        asks.half(processor, 6).store(slot, Ordering::Relaxed);
        asks.half(processor, 7).store(77, Ordering::Relaxed);
        asks.ask(processor, 4).store(1, Ordering::Relaxed);
        asks.ask(processor, 0).fetch_add(1, Ordering::Release) + 1
    }

    fn answered(asks: &Asks, processor: usize) -> u64 {
        asks.ask(processor, 8).load(Ordering::Acquire)
    }

    #[test]
    fn an_ask_is_seen_once_and_answered_where_it_spins() {
        let mut asks = asks(4);
        assert_eq!((asks.take(), asks.is_asked()), (None, false));
        let number = fault(&asks, 2, (5, 0x7000_1234));
        assert!(asks.is_asked());
        let ask = asks.take().unwrap();
        assert_eq!((ask.slot, ask.address, ask.tid, ask.is_write), (5, 0x7000_1234, 77, true));
        assert_eq!((asks.take(), asks.is_open(&ask)), (None, true));
        // Another page, and another process.
        asks.answer(5, 0x7000_2000);
        asks.answer(6, 0x7000_1000);
        assert_eq!(answered(&asks, 2), number - 1);
        asks.answer(5, 0x7000_1000);
        assert_eq!((answered(&asks, 2), answered(&asks, 1)), (number, 0));
        assert!(!asks.is_open(&ask));
    }

    #[test]
    fn all_who_ask_for_a_page_are_answered_and_no_newer_ask_is() {
        let mut asks = asks(3);
        for processor in [0, 1] {
            fault(&asks, processor, (1, 0x1000));
        }
        while asks.take().is_some() {}
        // The first has expired, and its processor asks for another page.
        let newer = fault(&asks, 0, (1, 0x9000));
        asks.answer(1, 0x1000);
        assert_eq!((answered(&asks, 0), answered(&asks, 1)), (newer - 1, 1));
        let ask = asks.take().unwrap();
        asks.let_go(&ask);
        assert_eq!(answered(&asks, 0), newer);
    }

    #[test]
    fn an_ask_that_is_being_overwritten_is_not_read() {
        let mut asks = asks(1);
        fault(&asks, 0, (1, 0x1000));
        // The next one has begun: its address is there, and not yet its process.
        asks.ask(0, BEGUN).fetch_add(1, Ordering::Relaxed);
        asks.ask(0, 1).store(0x9000, Ordering::Relaxed);
        assert_eq!(asks.take(), None);
        asks.ask(0, 0).fetch_add(1, Ordering::Release);
        assert_eq!(asks.take().unwrap().address, 0x9000);
    }

    #[test]
    fn nobody_of_a_process_that_has_ended_spins_on() {
        let mut asks = asks(2);
        fault(&asks, 0, (1, 0x1000));
        fault(&asks, 1, (2, 0x1000));
        while asks.take().is_some() {}
        asks.forget(1);
        assert_eq!((answered(&asks, 0), answered(&asks, 1)), (1, 0));
    }

    #[test]
    fn the_trap_knows_who_looks_and_how_long_to_spin() {
        let asks = asks(2);
        assert_eq!(asks.word(1).load(Ordering::Relaxed), 20_000);
        asks.look(1);
        assert_eq!(asks.word(0).load(Ordering::Relaxed), 2);
        asks.rest();
        assert_eq!(asks.word(0).load(Ordering::Relaxed), 0);
        assert_eq!(asks.near(), None);
        asks.word(2).store(1, Ordering::Relaxed);
        assert_eq!(asks.near(), Some(0));
    }

    #[test]
    fn layout_agrees_with_the_header() {
        let header = include_str!("../../farmem/bpf/far.bpf.h");
        for line in [
            format!("#define ASKS_MAX {ASKS_MAX}\n"),
            format!("_Static_assert(sizeof(struct ask) == {}, ", ASK_WORDS * 8),
            format!("_Static_assert(sizeof(struct asks) == {}, ", WORDS * 8),
        ] {
            assert!(header.contains(&line), "{line}");
        }
    }
}
