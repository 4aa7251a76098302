//! Lower bounds of the number of servers that a placement needs.

use std::collections::BTreeMap;

use super::unit::{DIMENSIONS, Unit, Units};
use super::{PlaceError, Problem};

/// A number of servers below which no placement exists: the largest of several simple bounds.
///
/// # Errors
/// As [`super::place`].
pub fn lower_bound(problem: &Problem) -> Result<u32, PlaceError> {
    Ok(of(&Units::of(problem)?).0)
}

/// The lower bound as [`lower_bound`], and the index of the dimension that it comes from.
pub(super) fn of(units: &Units) -> (u32, usize) {
    let mut best = (counted(units), 0);
    let racks = in_racks(units);
    if racks.0 > best.0 {
        best = racks;
    }
    for dimension in 0..DIMENSIONS {
        let each = units.each[dimension];
        if each == u64::MAX {
            continue;
        }
        let sizes = || units.all.iter().map(|unit| unit.sizes[dimension]);
        let bound = summed(sizes(), each).max(large(sizes().collect(), each));
        if bound > best.0 {
            best = (bound, dimension);
        }
    }
    best
}

/// The bound from units that must be in a given rack: the sum over racks. Returns the dimension
/// of the rack that needs most, too.
fn in_racks(units: &Units) -> (u32, usize) {
    let mut racks: BTreeMap<u32, [u128; DIMENSIONS]> = BTreeMap::new();
    for unit in &units.all {
        let Some(rack) = unit.rack else { continue };
        for (sum, size) in racks.entry(rack).or_default().iter_mut().zip(unit.sizes) {
            *sum += u128::from(size);
        }
    }
    let mut most = 0;
    let mut found = (0_u32, 0);
    for sums in racks.values() {
        let of = |at: usize| sums[at].div_ceil(u128::from(units.each[at]));
        let at = (0..DIMENSIONS).max_by_key(|at| of(*at)).unwrap_or(0);
        let count = u32::try_from(of(at).max(1)).unwrap_or(u32::MAX);
        if count > most {
            (most, found.1) = (count, at);
        }
        found.0 = found.0.saturating_add(count);
    }
    found
}

/// The bound from rules other than sizes: replicas, tenants kept apart, tenants per server.
fn counted(units: &Units) -> u32 {
    let replicas = units.all.iter().map(|unit| unit.replicas).max().unwrap_or(0);
    let words = units.all.iter().flat_map(|unit| &unit.apart).max().map_or(0, |most| most + 1);
    let mut apart = vec![0_u32; words as usize];
    for word in units.all.iter().flat_map(|unit| &unit.apart) {
        apart[*word as usize] += 1;
    }
    let tenants: usize = units.all.iter().map(|unit: &Unit| unit.members.len()).sum();
    let full = tenants.div_ceil(units.tenants_max as usize);
    let full = u32::try_from(full).unwrap_or(u32::MAX);
    replicas.max(apart.into_iter().max().unwrap_or(0)).max(full)
}

/// The bound if units could be split: the sum of `sizes` over the size of a server.
fn summed(sizes: impl Iterator<Item = u64>, each: u64) -> u32 {
    let sum: u128 = sizes.map(u128::from).sum();
    u32::try_from(sum.div_ceil(u128::from(each))).unwrap_or(u32::MAX)
}

/// Martello and Toth's L2: no two sizes above half share a server, and sizes of at least some
/// threshold do not fit beside those that leave less room.
fn large(mut sizes: Vec<u64>, each: u64) -> u32 {
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let half = each / 2;
    let above = sizes.partition_point(|size| *size > half);
    let small = &sizes[above..];
    let mut best = above as u128;
    // The sum of all small sizes; larger thresholds take the smallest out again.
    let mut from = small.len();
    let mut sum: u128 = small.iter().map(|size| u128::from(*size)).sum();
    // Thresholds ascend: a higher one leaves out more small sizes, but also more room beside large.
    while from > 0 {
        let least = small[from - 1];
        let alone = sizes[..above].partition_point(|size| *size > each - least);
        let room: u128 = sizes[alone..above].iter().map(|size| u128::from(each - size)).sum();
        let more = sum.saturating_sub(room).div_ceil(u128::from(each));
        best = best.max(above as u128 + more);
        // At most about 64 thresholds: each costs a sum.
        let step = (small.len() / 64).max(1).min(from);
        sum -= small[from - step..from].iter().map(|size| u128::from(*size)).sum::<u128>();
        from -= step;
    }
    u32::try_from(best).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_ones_are_alone() {
        assert_eq!(large(vec![6, 6, 6], 10), 3);
        assert_eq!(large(vec![6, 6, 4, 4], 10), 2);
        // Fives do not fit beside sixes: two and one, where sums say 2.2.
        assert_eq!(large(vec![6, 6, 5, 5], 10), 3);
        assert_eq!(summed([6, 6, 5, 5].into_iter(), 10), 3);
        assert_eq!(large(vec![7, 7, 4, 4], 10), 3);
        assert_eq!(large(vec![], 10), 0);
    }
}
