//! What a blade does.

use std::os::fd::BorrowedFd;

use paging::blade::Token;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// What keeps pages: asked from the supervisor's thread, it answers in any order.
pub trait Blade {
    /// Pages that it has room for.
    fn pages(&self) -> u32;

    /// Keeps a page at `place`. Nothing else that names this place is under way.
    fn write(&mut self, token: Token, place: u32, bytes: &[u8; PAGE_BYTES]);

    /// Answers with the page at `place`. Other reads of it may be under way.
    fn read(&mut self, token: Token, place: u32, wanted: Wanted);

    /// Begins all that it was asked for: what nobody waits for may have been kept until now, so
    /// that neighbours go together. There may be answers at once.
    fn flush(&mut self) {}

    /// What was read in this transfer, and is the answer that was taken last, is not what was
    /// written. Whether there is another copy: then the transfer is answered again.
    fn distrusts(&mut self, _token: Token, _why: &str) -> bool {
        false
    }

    /// What has gone wrong that the run can do without, in words for people; each once.
    fn news(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Nothing is needed any more of the pages below `places`.
    fn release(&mut self, places: u32);

    /// The next answer; none if there is none yet.
    fn next(&mut self) -> Option<Answer>;

    /// One of them becomes readable, or readable anew, when there are answers that were not there
    /// when [`next`](Self::next) last had none; those that [`flush`](Self::flush) brings ring none.
    fn bells(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Makes the bells unreadable until they ring anew; [`next`](Self::next) is asked after that.
    fn acknowledge(&self) {}

    /// When to ask [`next`](Self::next) though no bell has rung, by the monotonic clock.
    fn deadline_ns(&self) -> Option<u64> {
        None
    }
}

/// When a page is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A thread waits for it.
    Now,
    /// It is fetched ahead.
    Ahead,
}

/// What became of a transfer.
pub struct Answer {
    /// The transfer.
    pub token: Token,
    /// The page that was read, or nothing after a write; or why there will never be an answer, as
    /// people are told it.
    pub result: Result<Option<Box<[u8; PAGE_BYTES]>>, String>,
}
