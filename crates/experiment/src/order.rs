//! The order in which the cells of a block run.

use workload::Draw;

/// A permutation of `count` cells that follows from `seed` and `block`: shuffled, so that a machine
/// that drifts favours no cell.
#[must_use]
pub fn order(count: usize, seed: u64, block: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut draw = Draw::new(seed.wrapping_add(u64::from(block).wrapping_mul(0x9e37_79b9)));
    for last in (1..count).rev() {
        let other = usize::try_from(draw.below(last as u64 + 1)).unwrap_or(0);
        order.swap(last, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_differ_between_blocks_and_follow_from_the_seed() {
        let mut sorted = order(20, 1, 0);
        assert_eq!(order(20, 1, 0), sorted);
        assert_ne!(order(20, 1, 1), sorted);
        assert_ne!(order(20, 2, 0), sorted);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }
}
