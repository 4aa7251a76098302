//! Outstanding requests and the times of their stages.
//!
//! ```text
//! was to be made ─► made ─► handed over ─► ended
//!                     └ submission ┘└ completion ┘
//! └─────────────────── latency ──────────────────┘
//! ```
//!
//! Requests are handed to the kernel together, so the clock is read once for all of them.

use measure::Duration;

/// The times and the place of an outstanding request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    /// Its arrival; in a closed loop when it was made.
    began_ns: u64,
    made_ns: u64,
    place: u16,
}

/// The times of a request that has ended; the module shows the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) submission: Duration,
    pub(super) completion: Duration,
    pub(super) latency: Duration,
}

/// Outstanding requests, at most as many as the depth.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// When the request at each place was handed over.
    handed_ns: Vec<u64>,
    free: Vec<u16>,
    /// Places of requests that have not been handed over.
    fresh: Vec<u16>,
}

impl UnderWay {
    /// Places for `depth` requests.
    pub(super) fn new(depth: u16) -> Self {
        Self {
            handed_ns: vec![0; usize::from(depth)],
            free: (0..depth).rev().collect(),
            fresh: Vec::with_capacity(usize::from(depth)),
        }
    }

    /// How many requests are outstanding.
    pub(super) const fn len(&self) -> usize {
        self.handed_ns.len() - self.free.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a request; `None` if there is no free place.
    pub(super) fn make(&mut self, began_ns: u64, made_ns: u64) -> Option<Made> {
        let place = self.free.pop()?;
        // Counts for a request that ends in its submission and is never handed over.
        self.handed_ns[usize::from(place)] = made_ns;
        self.fresh.push(place);
        Some(Made { began_ns, made_ns, place })
    }

    /// Notes that the last request has ended without being handed over.
    pub(super) fn ended_at_once(&mut self) {
        self.fresh.pop();
    }

    /// Notes that all requests made so far are handed over now.
    pub(super) fn hand_over(&mut self, clock: impl FnOnce() -> u64) {
        if self.fresh.is_empty() {
            return;
        }
        let now_ns = clock();
        for place in self.fresh.drain(..) {
            self.handed_ns[usize::from(place)] = now_ns;
        }
    }

    /// Ends a request and returns its times.
    pub(super) fn end(&mut self, made: Made, now_ns: u64) -> Times {
        let Made { began_ns, made_ns, place } = made;
        self.free.push(place);
        let handed_ns = self.handed_ns[usize::from(place)];
        let between = |from: u64, to: u64| Duration::from_ns(to.saturating_sub(from));
        Times {
            submission: between(made_ns, handed_ns),
            completion: between(handed_ns, now_ns),
            latency: between(began_ns, now_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_latency_follow_one_another() {
        let mut all = UnderWay::new(2);
        let one = all.make(10, 30).expect("there is room");
        let other = all.make(20, 30).expect("there is room");
        assert!(all.make(30, 30).is_none() && all.len() == 2);
        all.hand_over(|| 35);
        all.hand_over(|| panic!("there is nothing to hand over"));
        let ns = Duration::from_ns;
        let expected = Times { submission: ns(5), completion: ns(65), latency: ns(90) };
        assert_eq!(all.end(one, 100), expected);
        let third = all.make(101, 101).expect("there is room again");
        all.hand_over(|| 102);
        assert_eq!(all.end(other, 110).completion, ns(75), "it was handed over before");
        assert_eq!(all.end(third, 110).completion, ns(8));
        assert!(all.is_empty());
    }

    #[test]
    fn what_ends_at_once_is_not_handed_over() {
        let mut all = UnderWay::new(1);
        let made = all.make(10, 10).expect("there is room");
        all.ended_at_once();
        all.hand_over(|| panic!("there is nothing to hand over"));
        let times = all.end(made, 40);
        assert_eq!((times.submission, times.completion), (Duration::ZERO, Duration::from_ns(30)));
    }
}
