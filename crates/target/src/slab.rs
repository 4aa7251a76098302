//! Freeing of unused places of a slab.

/// Removes free places at the end, and frees their memory.
pub(crate) fn shrink<T>(places: &mut Vec<Option<T>>, free: &mut Vec<u32>) {
    while places.last().is_some_and(Option::is_none) {
        places.pop();
    }
    let count = places.len();
    free.retain(|place| (*place as usize) < count);
    places.shrink_to_fit();
    free.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_before_the_last_one_in_use_stay() {
        let mut places = vec![Some(1), None, Some(3), None, None];
        let mut free = vec![4, 1, 3];
        shrink(&mut places, &mut free);
        assert_eq!((places, free), (vec![Some(1), None, Some(3)], vec![1]));
    }
}
