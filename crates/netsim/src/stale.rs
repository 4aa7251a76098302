//! Bits that were never cleared: the marks of the packets of `as-published-2016`.
//!
//! The simulator of 2016 did not initialise the congestion mark of a data packet, so a packet had
//! the mark of the packet whose memory it was given. What memory that is follows from the C
//! library's allocator: the last few pieces that were freed, then a list of all others, which is
//! given up when something large is allocated. DCTCP's windows hang on it.

/// Pieces of memory that the allocator reuses before any other.
const CACHED: usize = 7;
/// Packets of a flow at which the set of received packets grew to a kilobyte or more.
const GROWTHS: [u32; 9] = [60, 128, 258, 542, 1110, 2358, 5088, 10_274, 20_754];

/// The marks in freed memory.
#[derive(Debug, Default)]
pub(crate) struct StaleMarks {
    cached: Vec<bool>,
    listed: Vec<bool>,
}

impl StaleMarks {
    /// Removes and returns the mark that a new packet inherits.
    pub(crate) fn take(&mut self) -> bool {
        if let Some(mark) = self.cached.pop() {
            return mark;
        }
        let mark = self.listed.pop();
        while self.cached.len() < CACHED
            && let Some(mark) = self.listed.pop()
        {
            self.cached.push(mark);
        }
        mark.unwrap_or(false)
    }

    /// Stores the mark of a freed packet.
    pub(crate) fn give(&mut self, mark: bool) {
        if self.cached.len() < CACHED {
            self.cached.push(mark);
        } else {
            self.listed.push(mark);
        }
    }

    /// Drops the listed pieces when a flow that has received `count` packets makes its set grow.
    pub(crate) fn grown(&mut self, count: u32) {
        if GROWTHS.contains(&count) {
            self.listed.clear();
        }
    }
}
