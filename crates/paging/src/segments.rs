//! Dense numbers for the pages of a process, whose addresses may be anywhere.
//!
//! The data of a page in residency and policies are at its number, so numbers must be dense: each 2
//! MiB that come into use (a segment) get the lowest free number, and a page's number is made of
//! that and its place within.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::PageIndex;
use crate::regions::PAGE;

/// Pages of a segment.
pub const PAGES: u32 = 512;
/// Bytes of a segment.
const SEGMENT: u64 = PAGES as u64 * PAGE;

/// The segments of one process that are in use.
#[derive(Debug, Clone, Default)]
pub struct Segments {
    /// By address, in units of 2 MiB.
    numbers: BTreeMap<u64, u32>,
    /// By number.
    addresses: Vec<u64>,
    /// Numbers that were used and are free.
    free: BTreeSet<u32>,
    /// The segment that was found last.
    last: Option<(u64, u32)>,
}

/// Pages with consecutive numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Number of the first page.
    pub first: PageIndex,
    /// Address of the first page.
    pub address: u64,
    /// Pages, at most 512.
    pub count: u64,
}

impl Segments {
    /// The number of the page at `address`; `None` if its segment is not in use.
    pub fn find(&self, address: u64) -> Option<PageIndex> {
        let segment = address / SEGMENT;
        let number = match self.last {
            Some((last, number)) if last == segment => number,
            _ => *self.numbers.get(&segment)?,
        };
        PageIndex::try_from(u64::from(number * PAGES) + address % SEGMENT / PAGE).ok()
    }

    /// The number of the page at `address`, and whether its segment has just come into use; `None`
    /// when all numbers are taken.
    pub fn number(&mut self, address: u64) -> Option<(PageIndex, bool)> {
        let segment = address / SEGMENT;
        let known = self.find(address);
        if let Some(page) = known {
            self.last = Some((segment, page.get() / PAGES));
            return known.map(|page| (page, false));
        }
        let number = match self.free.pop_first() {
            Some(number) => number,
            None => u32::try_from(self.addresses.len()).ok()?,
        };
        if number > PageIndex::MAX.get() / PAGES {
            return None;
        }
        let at = number as usize;
        if at == self.addresses.len() {
            self.addresses.push(segment);
        }
        self.addresses[at] = segment;
        self.numbers.insert(segment, number);
        self.last = Some((segment, number));
        self.find(address).map(|page| (page, true))
    }

    /// The address of a page whose segment is in use.
    pub fn address(&self, page: PageIndex) -> u64 {
        let segment = self.addresses.get((page.get() / PAGES) as usize).copied().unwrap_or(0);
        segment * SEGMENT + u64::from(page.get() % PAGES) * PAGE
    }

    /// Frees the number of the segment at `address`.
    pub fn remove(&mut self, address: u64) {
        if let Some(number) = self.numbers.remove(&(address / SEGMENT)) {
            self.free.insert(number);
        }
        self.last = None;
    }

    /// The pages of `start..end` that have numbers, in order of address.
    pub fn spans(&self, start: u64, end: u64) -> Vec<Span> {
        if start >= end {
            return Vec::new();
        }
        let within = self.numbers.range(start / SEGMENT..=(end - 1) / SEGMENT);
        let span = |(&segment, _): (&u64, &u32)| {
            let address = (segment * SEGMENT).max(start) / PAGE * PAGE;
            let until = ((segment + 1) * SEGMENT).min(end);
            let count = (until - address).div_ceil(PAGE);
            self.find(address).map(|first| Span { first, address, count })
        };
        within.filter_map(span).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: u64 = 0x7b00_0000_0000;

    #[test]
    fn segments_are_numbered_as_they_come_into_use_and_numbers_are_used_again() {
        let mut segments = Segments::default();
        let number = |segments: &mut Segments, address: u64| {
            segments.number(address).map(|(page, new)| (page.get(), new))
        };
        assert_eq!(number(&mut segments, FAR + 3 * PAGE), Some((3, true)));
        assert_eq!(number(&mut segments, 0x1_0000), Some((512 + 16, true)));
        assert_eq!(number(&mut segments, FAR), Some((0, false)));
        assert_eq!(segments.find(FAR + SEGMENT), None);
        assert_eq!(segments.address(PageIndex::new(512 + 16)), 0x1_0000);
        segments.remove(FAR + 9 * PAGE);
        assert_eq!(segments.find(FAR), None);
        assert_eq!(number(&mut segments, 1 << 40), Some((0, true)));
        assert_eq!(segments.address(PageIndex::new(1)), (1 << 40) + PAGE);
    }

    #[test]
    fn spans_are_clipped_and_in_order_of_address() {
        let mut segments = Segments::default();
        for address in [FAR + 4 * SEGMENT, FAR, FAR + 2 * SEGMENT] {
            segments.number(address);
        }
        let spans = segments.spans(FAR + PAGE, FAR + 2 * SEGMENT + 2 * PAGE);
        let found: Vec<_> =
            spans.iter().map(|span| (span.first.get(), span.address - FAR, span.count)).collect();
        assert_eq!(found, [(513, PAGE, 511), (1024, 2 * SEGMENT, 2)]);
        assert_eq!(segments.spans(0, 1 << 47).len(), 3);
        assert_eq!(segments.spans(FAR, FAR), []);
    }
}
