//! A blade in this process's own memory: what far memory costs without a network.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use paging::blade::Token;
use sys::event::Waker;

use super::blade::{Answer, Blade, PAGE_BYTES, Wanted};

/// See the module's description.
pub struct MemoryBlade {
    pages: u32,
    kept: Vec<Option<Box<[u8; PAGE_BYTES]>>>,
    answers: VecDeque<Answer>,
    bell: Arc<Waker>,
}

impl MemoryBlade {
    /// Room for so many pages, which take none until they are there. `bell` rings when there are
    /// answers.
    #[must_use]
    pub const fn new(pages: u32, bell: Arc<Waker>) -> Self {
        Self { pages, kept: Vec::new(), answers: VecDeque::new(), bell }
    }

    fn answer(&mut self, token: Token, page: Option<Box<[u8; PAGE_BYTES]>>) {
        self.answers.push_back(Answer { token, result: Ok(page) });
        self.bell.wake();
    }
}

impl Blade for MemoryBlade {
    fn pages(&self) -> u32 {
        self.pages
    }

    fn write(&mut self, token: Token, place: u32, bytes: &[u8; PAGE_BYTES]) {
        let place = place as usize;
        if self.kept.len() <= place {
            self.kept.resize_with(place + 1, || None);
        }
        self.kept[place] = Some(Box::new(*bytes));
        self.answer(token, None);
    }

    fn read(&mut self, token: Token, place: u32, _wanted: Wanted) {
        let kept = self.kept.get(place as usize).cloned().flatten();
        self.answer(token, Some(kept.unwrap_or_else(|| Box::new([0; PAGE_BYTES]))));
    }

    fn release(&mut self, _places: u32) {
        self.kept.clear();
    }

    fn next(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    fn bell(&self) -> BorrowedFd<'_> {
        self.bell.descriptor().as_fd()
    }

    fn acknowledge(&self) {
        self.bell.acknowledge();
    }
}
