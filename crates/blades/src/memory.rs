//! A blade in the memory of this process: it shows the costs of far memory without those of a
//! network.

use std::collections::VecDeque;
use std::sync::Arc;

use paging::blade::Token;

use super::blade::{Answer, Blade, PAGE_BYTES, Page, Wanted};

/// See the module's description.
pub struct MemoryBlade {
    pages: u32,
    kept: Vec<Option<Page>>,
    answers: VecDeque<Answer>,
}

impl MemoryBlade {
    /// A blade for `pages` pages; memory is allocated when a page is written.
    #[must_use]
    pub const fn new(pages: u32) -> Self {
        Self { pages, kept: Vec::new(), answers: VecDeque::new() }
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
        self.kept[place] = Some(Arc::new(*bytes));
        self.answers.push_back(Answer { token, result: Ok(None) });
    }

    fn read(&mut self, token: Token, place: u32, wanted: Wanted) {
        let kept = self.kept.get(place as usize).cloned().flatten();
        let page = kept.unwrap_or_else(|| Arc::new([0; PAGE_BYTES]));
        let answer = Answer { token, result: Ok(Some(page)) };
        match wanted {
            Wanted::Now => self.answers.push_front(answer),
            Wanted::Ahead => self.answers.push_back(answer),
        }
    }

    fn release(&mut self, _places: u32) {
        self.kept.clear();
    }

    fn next(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }
}
