//! The interface of a blade.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use paging::blade::Token;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// The bytes of a page. A blade in this process answers with those that it keeps.
pub type Page = Arc<[u8; PAGE_BYTES]>;

/// A store of pages. Requests come from the supervisor's thread; answers come in any order.
pub trait Blade {
    /// How many pages the blade has room for.
    fn pages(&self) -> u32;

    /// Writes a page to `place`. No other transfer of this place is under way.
    fn write(&mut self, token: Token, place: u32, bytes: &[u8; PAGE_BYTES]);

    /// Reads the page at `place`. Other reads of it may be under way.
    fn read(&mut self, token: Token, place: u32, wanted: Wanted);

    /// Sends all requests. Until now those for which no thread waits may have been delayed, so that
    /// neighbours are sent together. There may be answers at once.
    fn flush(&mut self) {}

    /// Reports that the page of the last answer, in this transfer, is not the one that was written.
    /// Returns whether there is another copy: then the transfer is answered again.
    fn distrusts(&mut self, _token: Token, _why: &str) -> bool {
        false
    }

    /// Takes messages for the user about failures that the run survives; each once.
    fn news(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Frees the pages below `places`, which are no longer needed.
    fn release(&mut self, places: u32);

    /// The next answer; `None` if there is none yet.
    fn next(&mut self) -> Option<Answer>;

    /// Descriptors of which one becomes readable, or readable anew, when there are answers that
    /// were not there when [`next`](Self::next) last returned `None`; not for answers that
    /// [`flush`](Self::flush) brings.
    fn bells(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Makes the bells unreadable until they ring anew; call [`next`](Self::next) after that.
    fn acknowledge(&self) {}

    /// When to call [`next`](Self::next) though no bell has rung, by the monotonic clock; `None`
    /// for never.
    fn deadline_ns(&self) -> Option<u64> {
        None
    }
}

/// When a page is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A thread waits for it.
    Now,
    /// The page is fetched ahead.
    Ahead,
}

/// The result of a transfer.
pub struct Answer {
    /// The transfer.
    pub token: Token,
    /// The page that was read, or `None` after a write; or the message why the transfer can never
    /// be completed.
    pub result: Result<Option<Page>, String>,
}
