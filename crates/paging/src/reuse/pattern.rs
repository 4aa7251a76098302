//! What a program does around a touch, as a sample of its pages shows.

use std::collections::BTreeMap;

use super::touches::{TouchKind, Touches};
use crate::page::PageIndex;

/// The pattern of one touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pattern {
    /// The page is used again and again from this touch to the next.
    pub(super) hot: bool,
    /// The neighbouring page was touched just before: a thread reads in order.
    pub(super) in_order: bool,
}

/// A page counts as touched again at once if that is within so many times the number of touches for
/// which it stayed mapped.
const SOON: f64 = 1.2;
/// So many touches count as just before another: as many threads can read in order at once.
const JUST: usize = 8;

/// The patterns of all touches.
///
/// While a page is mapped its touches are not seen. If the next one comes as soon as it can be
/// seen, there were others before. The neighbour of a page is the one before it in the sample,
/// wherever that is.
pub(super) fn of(touches: &Touches) -> Vec<Pattern> {
    let mut patterns = vec![Pattern::default(); touches.events.len()];
    let mut last: BTreeMap<(usize, PageIndex), usize> = BTreeMap::new();
    let mut earlier = touches.earlier.iter();
    let mut end = earlier.next().map(|part| part.end);
    for (number, touch) in touches.events.iter().enumerate() {
        while end.is_some_and(|end| end <= number) {
            let next = earlier.next();
            let sample = touches.sample(next.map_or(touches.rate, |part| part.rate));
            last.retain(|&(slot, page), _number| sample.has(slot, page));
            end = next.map(|part| part.end);
        }
        let key = (touch.slot, touch.page);
        if touch.kind == TouchKind::Freed {
            last.remove(&key);
            continue;
        }
        let neighbour = last.range((touch.slot, PageIndex::new(0))..key).next_back();
        patterns[number].in_order = neighbour.is_some_and(|(_, at)| number - at <= JUST);
        if let Some(before) = last.insert(key, number) {
            let mapped = touches.blind_share * last.len() as f64;
            patterns[before].hot = ((number - before) as f64) <= mapped * SOON;
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reuse::Touch;

    fn touches(pages: impl IntoIterator<Item = u32>) -> Touches {
        let mut seen = std::collections::BTreeSet::new();
        let touch = |(at, page): (usize, u32)| Touch {
            time_ns: at as u64 * 1000,
            slot: 0,
            page: PageIndex::new(page),
            tid: 1,
            kind: if seen.insert(page) { TouchKind::First } else { TouchKind::Again },
            write: false,
        };
        let events = pages.into_iter().enumerate().map(touch).collect();
        Touches { rate: 1.0, blind_share: 0.1, events, ..Touches::default() }
    }

    /// Page 0 at every tenth touch, between 99 others in turn.
    #[test]
    fn pages_that_are_touched_as_soon_as_that_can_be_seen_are_used_all_the_time() {
        let others = (0..3000).map(|at| if at % 10 == 0 { 0 } else { 1 + at * 7 % 99 });
        let touches = touches((0..100).chain(others));
        for (number, pattern) in of(&touches).into_iter().enumerate().take(3000).skip(100) {
            assert_eq!(pattern.hot, touches.events[number].page.get() == 0, "{number}");
        }
    }

    #[test]
    fn streams_are_in_order_and_draws_are_not() {
        let share = |touches: &Touches| {
            let patterns = of(touches);
            let count = patterns.iter().filter(|pattern| pattern.in_order).count();
            count as f64 / patterns.len() as f64
        };
        // Four at once, of pages seven apart.
        let streams = (0..400).map(|at| at % 4 * 5000 + at / 4 * 7);
        assert!(share(&touches(streams.clone().chain(streams))) > 0.97);
        let drawn = (0..4000_u32).map(|at| at.wrapping_mul(2_654_435_761) >> 22);
        assert!(share(&touches(drawn)) < 0.05);
    }
}
