//! The sort of the C++ library that the simulator of 2016 was built with.
//!
//! It is not stable: flows that start at one instant come out in the order of its own steps.

/// Ranges up to this length are left to the final insertion sort.
const SMALL: usize = 16;

/// Sorts `items` by `key` with the steps of that library.
pub(crate) fn sort<T: Copy, K: PartialOrd>(items: &mut [T], key: &impl Fn(T) -> K) {
    let depth = 2 * items.len().max(1).ilog2();
    split(items, key, depth);
    let small = items.len().min(SMALL);
    for place in 1..small {
        if key(items[place]) < key(items[0]) {
            items[..=place].rotate_right(1);
        } else {
            insert(items, place, key);
        }
    }
    for place in small..items.len() {
        insert(items, place, key);
    }
}

/// Partitions `items` until ranges are `SMALL`; `depth` bounds the recursion.
fn split<T: Copy, K: PartialOrd>(mut items: &mut [T], key: &impl Fn(T) -> K, mut depth: u32) {
    while items.len() > SMALL {
        if depth == 0 {
            // The library would use a heap sort here; no list of flows has been seen to come this
            // far.
            items.sort_by(|one, other| {
                key(*one).partial_cmp(&key(*other)).unwrap_or(std::cmp::Ordering::Equal)
            });
            return;
        }
        depth -= 1;
        let cut = partition(items, key);
        let (left, right) = items.split_at_mut(cut);
        split(right, key, depth);
        items = left;
    }
}

/// Moves the median of three to the front and partitions the rest by it. Returns the cut.
fn partition<T: Copy, K: PartialOrd>(items: &mut [T], key: &impl Fn(T) -> K) -> usize {
    let (one, two, three) = (1, items.len() / 2, items.len() - 1);
    let is_before = |left: usize, right: usize| key(items[left]) < key(items[right]);
    let median = if is_before(one, two) {
        if is_before(two, three) {
            two
        } else if is_before(one, three) {
            three
        } else {
            one
        }
    } else if is_before(one, three) {
        one
    } else if is_before(two, three) {
        three
    } else {
        two
    };
    items.swap(0, median);
    let (mut low, mut high) = (1, items.len());
    loop {
        while key(items[low]) < key(items[0]) {
            low += 1;
        }
        high -= 1;
        while key(items[0]) < key(items[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        items.swap(low, high);
        low += 1;
    }
}

/// Moves the item at `place` down to where it belongs among those before it.
fn insert<T: Copy, K: PartialOrd>(items: &mut [T], mut place: usize, key: &impl Fn(T) -> K) {
    let item = items[place];
    while place > 0 && key(item) < key(items[place - 1]) {
        items[place] = items[place - 1];
        place -= 1;
    }
    items[place] = item;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sort_sorts(mut items in prop::collection::vec(0_u32..50, 0..400)) {
            let mut model = items.clone();
            model.sort_unstable();
            super::sort(&mut items, &|item| item);
            prop_assert_eq!(items, model);
        }
    }
}
