//! Touches by several threads, in order or in a random one.

use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::thread::scope;

use sys::clock::cycles;

use super::page::{Page, WORDS_PER_PAGE};

/// The order in which a thread touches its part of the pages, over and over.
#[derive(Debug, PartialEq, Eq)]
struct Order(Vec<u32>);

impl Order {
    /// One page after another; `shuffled`, a random order, the same in every run.
    fn new(count: usize, shuffled: bool) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..count).collect();
        let mut draw = 1_u64;
        for last in (1..order.len()).rev().filter(|_| shuffled) {
            // Knuth's MMIX, whose high bits are the random ones.
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let other = (draw >> 32) % (last as u64 + 1);
            order.swap(last, usize::try_from(other).unwrap_or(0));
        }
        Self(order)
    }
}

/// What threads do with their parts of the pages.
pub(super) struct Parts<'a> {
    pages: &'a [Page],
    /// Pages of a part.
    part: usize,
    orders: Vec<Order>,
}

impl<'a> Parts<'a> {
    /// The parts of `threads` threads, or fewer if there are fewer pages.
    pub(super) fn new(pages: &'a [Page], threads: usize, shuffled: bool) -> Self {
        let part = pages.len().div_ceil(threads).max(1);
        let orders = pages.chunks(part).map(|part| Order::new(part.len(), shuffled)).collect();
        Self { pages, part, orders }
    }

    /// Has each thread touch its pages, and stores the ticks of each touch: those of the first
    /// thread, those of the second, and so on.
    pub(super) fn touch(&self, write: bool, samples: &mut [u64]) {
        let parts = self.pages.chunks(self.part).zip(&self.orders);
        scope(|scope| {
            let (mut rest, mut left) = (samples, self.orders.len());
            for (pages, order) in parts {
                // As many as each of the others, or one more.
                let each = rest.len().div_ceil(left);
                let (own, others) = std::mem::take(&mut rest).split_at_mut(each);
                (rest, left) = (others, left - 1);
                scope.spawn(move || touch(pages, order, write, own));
            }
        });
    }
}

// Touches pages in an order, over and over.
fn touch(pages: &[Page], order: &Order, write: bool, samples: &mut [u64]) {
    for (sample, &number) in samples.iter_mut().zip(order.0.iter().cycle()) {
        let word = &pages[number as usize].0[0];
        let before = cycles();
        if write {
            word.store(before, Ordering::Relaxed);
        } else {
            black_box(word.load(Ordering::Relaxed));
        }
        *sample = cycles() - before;
    }
}

/// Has `threads` threads touch each page of `memory` for the first time, and stores the ticks of
/// each touch.
pub(super) fn touch_first(memory: &mut [u64], threads: usize, samples: &mut [u64]) {
    let part = samples.len().div_ceil(threads).max(1);
    scope(|scope| {
        let parts = memory.chunks_mut(part * WORDS_PER_PAGE).zip(samples.chunks_mut(part));
        for (memory, samples) in parts {
            scope.spawn(move || {
                for (sample, page) in samples.iter_mut().zip(memory.chunks_mut(WORDS_PER_PAGE)) {
                    let before = cycles();
                    *black_box(&mut page[0]) = before;
                    *sample = cycles() - before;
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use std::array::from_fn;
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn pages(count: u64) -> Vec<Page> {
        (0..count).map(|_| Page(from_fn(|_word| AtomicU64::new(0)))).collect()
    }

    #[test]
    fn a_shuffled_order_has_every_page_once_and_hardly_one_in_its_place() {
        assert_eq!(Order::new(4, false).0, [0, 1, 2, 3]);
        let mut order = Order::new(1000, true);
        assert_eq!(order, Order::new(1000, true), "it is the same in every run");
        let follows = order.0.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        assert!(follows < 10, "{follows} neighbours follow one another");
        order.0.sort_unstable();
        assert_eq!(order, Order::new(1000, false));
    }

    #[test]
    fn every_page_is_touched_whatever_the_number_of_threads() {
        for (threads, shuffled) in [(1, true), (3, false), (4, true), (40, false)] {
            let pages = pages(22);
            // Two rounds, and a few touches more.
            let mut samples = vec![0; 70];
            Parts::new(&pages, threads, shuffled).touch(true, &mut samples);
            assert!(samples.iter().all(|&ticks| ticks > 0), "{threads}: {samples:?}");
            let touched = |page: &Page| page.0[0].load(Ordering::Relaxed) > 0;
            assert!(pages.iter().all(touched), "{threads} threads");
        }
    }

    #[test]
    fn every_page_is_touched_for_the_first_time_once() {
        for threads in [1, 3, 50] {
            let mut memory = vec![0_u64; 22 * WORDS_PER_PAGE];
            let mut samples = vec![0; 22];
            touch_first(&mut memory, threads, &mut samples);
            assert!(samples.iter().all(|&ticks| ticks > 0), "{threads}: {samples:?}");
            assert!(memory.chunks(WORDS_PER_PAGE).all(|page| page[0] > 0 && page[1] == 0));
        }
    }
}
