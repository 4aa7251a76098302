//! Bits that were never cleared: the marks of the packets of `as-published-2016`.
//!
//! The simulator of 2016 did not initialise the congestion mark of a data packet, so a packet had
//! the mark of the packet whose memory it was given. What memory that is follows from the C
//! library's allocator: the last few pieces that were freed, then a list of all others, which is
//! given up when something large is allocated. DCTCP's windows hang on it.

/// Pieces that are used again before any other.
const CACHED: usize = 7;
/// Packets of a flow at which the set of received packets grew to a kilobyte or more.
const GROWTHS: [u32; 9] = [60, 128, 258, 542, 1110, 2358, 5088, 10_274, 20_754];

/// The marks in memory that is free.
#[derive(Debug, Default)]
pub(crate) struct StaleMarks {
    cached: Vec<bool>,
    listed: Vec<bool>,
}

impl StaleMarks {
    /// The mark of a new packet.
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

    /// A packet is freed.
    pub(crate) fn give(&mut self, mark: bool) {
        if self.cached.len() < CACHED {
            self.cached.push(mark);
        } else {
            self.listed.push(mark);
        }
    }

    /// A flow has received `count` different packets.
    pub(crate) fn grown(&mut self, count: u32) {
        if GROWTHS.contains(&count) {
            self.listed.clear();
        }
    }
}
