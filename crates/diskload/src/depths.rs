//! How many requests are outstanding, are submitted together and end together.

/// Counts by powers of two; the last count of each includes all larger numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depths {
    /// Requests by how many were outstanding with them: 1, 2 to 3, ..., 32 to 63, 64 and more.
    pub level: [u64; 7],
    /// Submissions by their numbers of requests: none, 1 to 4, 5 to 8, ..., 33 to 64, 65 and more.
    pub submitted: [u64; 7],
    /// Completions by their numbers of requests, in the same classes as `submitted`.
    pub completed: [u64; 7],
}

const LAST: usize = 6;

impl Depths {
    /// Counts a request that was made with `under_way` outstanding, itself included.
    pub(super) fn add_level(&mut self, under_way: usize) {
        let place = under_way.max(1).ilog2() as usize;
        self.level[place.min(LAST)] += 1;
    }

    /// Counts a submission of `count` requests.
    pub(super) fn add_submitted(&mut self, count: usize) {
        self.submitted[place(count)] += 1;
    }

    /// Counts a completion of `count` requests.
    pub(super) fn add_completed(&mut self, count: usize) {
        self.completed[place(count)] += 1;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let pairs = [
            (&mut self.level, &other.level),
            (&mut self.submitted, &other.submitted),
            (&mut self.completed, &other.completed),
        ];
        for (own, its) in pairs {
            own.iter_mut().zip(its).for_each(|(own, its)| *own += its);
        }
    }
}

/// The class of `count` in `submitted` and `completed`.
fn place(count: usize) -> usize {
    let place = match count {
        0 => 0,
        1..=4 => 1,
        more => (more - 1).ilog2() as usize,
    };
    place.min(LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_where_their_powers_are() {
        let places = [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 4095].map(place);
        assert_eq!(places, [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
        let mut depths = Depths::default();
        [1, 2, 3, 4, 63, 64, 4095].into_iter().for_each(|depth| depths.add_level(depth));
        assert_eq!(depths.level, [1, 2, 1, 0, 0, 1, 2]);
        let mut twice = depths;
        twice.merge(&depths);
        assert_eq!(twice.level, [2, 4, 2, 0, 0, 2, 4]);
    }
}
