//! A blade in afar's own memory with a known delay, against which emulations are compared.

use std::collections::VecDeque;

use ::blades::{Answer, Blade, MemoryBlade, PAGE_BYTES, Token, Wanted};
use measure::Duration;

/// Answers each transfer a fixed time after its request, however many there are.
pub(super) struct DistantBlade {
    memory: MemoryBlade,
    delay_ns: u64,
    /// Answers to come, each with its time; the next one first.
    answers: VecDeque<(u64, Answer)>,
}

impl DistantBlade {
    /// A blade with room for `pages` pages.
    pub(super) const fn new(pages: u32, delay: Duration) -> Self {
        let memory = MemoryBlade::new(pages);
        Self { memory, delay_ns: delay.as_ns(), answers: VecDeque::new() }
    }

    // Takes answers of the memory, and sets their time.
    fn take(&mut self) {
        let due = sys::clock::monotonic_ns() + self.delay_ns;
        while let Some(answer) = self.memory.next() {
            self.answers.push_back((due, answer));
        }
    }
}

impl Blade for DistantBlade {
    fn pages(&self) -> u32 {
        self.memory.pages()
    }

    fn write(&mut self, token: Token, place: u32, bytes: &[u8; PAGE_BYTES]) {
        self.memory.write(token, place, bytes);
        self.take();
    }

    fn read(&mut self, token: Token, place: u32, wanted: Wanted) {
        self.memory.read(token, place, wanted);
        self.take();
    }

    fn release(&mut self, places: u32) {
        self.memory.release(places);
    }

    fn next(&mut self) -> Option<Answer> {
        let (due, _) = self.answers.front()?;
        if sys::clock::monotonic_ns() < *due {
            return None;
        }
        self.answers.pop_front().map(|(_, answer)| answer)
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.answers.front().map(|(due, _)| *due)
    }
}
