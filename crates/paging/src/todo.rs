//! The part of an address space that is still to be copied.

use std::collections::BTreeMap;

/// A set of addresses, as ranges that do not overlap.
#[derive(Debug, Default)]
pub struct Todo {
    // First address to first address behind.
    ranges: BTreeMap<u64, u64>,
}

impl Todo {
    /// Adds a range of which nothing is in the set yet.
    pub fn add(&mut self, start: u64, end: u64) {
        self.ranges.insert(start, end);
    }

    /// The first range of the set at or after `at`; `None` if there is none.
    #[must_use]
    pub fn next(&self, at: u64) -> Option<(u64, u64)> {
        let around = self.ranges.range(..at).next_back().filter(|&(_, &end)| end > at);
        let around = around.map(|(_, &end)| (at, end));
        around.or_else(|| self.ranges.range(at..).next().map(|(&start, &end)| (start, end)))
    }

    /// The parts of `start..end` that are in the set, in order.
    #[must_use]
    pub fn within(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let before = self.ranges.range(..start).next_back();
        let parts = before.into_iter().chain(self.ranges.range(start..end));
        let clipped = parts.map(|(&from, &to)| (from.max(start), to.min(end)));
        clipped.filter(|(from, to)| from < to).collect()
    }

    /// Takes `start..end` out of the set.
    pub fn remove(&mut self, start: u64, end: u64) {
        for (from, to) in self.within(start, end) {
            let Some((&first, &last)) = self.ranges.range(..=from).next_back() else {
                continue;
            };
            self.ranges.remove(&first);
            if first < from {
                self.ranges.insert(first, from);
            }
            if to < last {
                self.ranges.insert(to, last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Against the plainest possible model: a set of numbers.
        #[test]
        fn todo_agrees_with_a_set_of_numbers(
            added in prop::collection::vec(1_u64..9, 1..9),
            removed in prop::collection::vec((0_u64..80, 0_u64..20), 0..40),
        ) {
            let (mut todo, mut model, mut at) = (Todo::default(), BTreeSet::new(), 0);
            for length in added {
                todo.add(at, at + length);
                model.extend(at..at + length);
                // Every second range touches the one before.
                at += length + length % 2;
            }
            for (start, length) in removed {
                todo.remove(start, start + length);
                model.retain(|number| !(start..start + length).contains(number));
                let left: BTreeSet<u64> =
                    todo.within(0, 200).into_iter().flat_map(|(from, to)| from..to).collect();
                prop_assert_eq!(&left, &model);
                for at in [0, start] {
                    let first = model.range(at..).next().copied();
                    prop_assert_eq!(todo.next(at).map(|(from, _)| from), first);
                    prop_assert!(todo.next(at).is_none_or(|(_, to)| left.contains(&(to - 1))));
                }
                let part: Vec<u64> =
                    todo.within(7, 30).into_iter().flat_map(|(from, to)| from..to).collect();
                let expected: Vec<u64> = model.range(7..30).copied().collect();
                prop_assert_eq!(part, expected);
            }
        }
    }
}
