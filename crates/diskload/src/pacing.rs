//! When a job makes its requests.

use std::collections::VecDeque;

use measure::Instant;
use workload::Arrivals;

use super::config::{LoadConfig, Pace, Think};

/// The schedule of one job's requests.
#[derive(Debug)]
pub(super) struct Pacing {
    /// No request is made before this time.
    from_ns: u64,
    arrivals: Option<Arrivals>,
    /// Arrival times of requests that are due and have not been made.
    late: VecDeque<u64>,
    think: Option<Think>,
    /// Requests since the last pause.
    since_pause: u64,
    made: u64,
    most: u64,
}

impl Pacing {
    pub(super) fn new(config: &LoadConfig, job: u16, from_ns: u64) -> Self {
        let arrivals = match config.pace {
            Pace::Closed => None,
            Pace::Open { mean, spacing } => {
                let seed = config.seed.wrapping_add(u64::from(job) + 1);
                Some(Arrivals::new(spacing, mean, Instant::from_ns(from_ns), seed))
            }
        };
        Self {
            from_ns,
            arrivals,
            late: VecDeque::new(),
            think: config.think.filter(|think| think.requests > 0),
            since_pause: 0,
            made: 0,
            most: config.request_count.unwrap_or(u64::MAX),
        }
    }

    /// Whether all requests have been made.
    pub(super) const fn is_done(&self) -> bool {
        self.made >= self.most
    }

    /// Notes arrivals up to `now_ns`.
    pub(super) fn arrive(&mut self, now_ns: u64) {
        if let Some(arrivals) = &mut self.arrivals {
            while arrivals.peek().as_ns() <= now_ns {
                self.late.push_back(arrivals.advance().as_ns());
            }
        }
    }

    /// The start time of the next request if one is due now, else `None`. `under_way`: how many are
    /// outstanding.
    pub(super) fn next(&mut self, now_ns: u64, under_way: usize) -> Option<u64> {
        if now_ns < self.from_ns || self.is_done() || self.pauses(now_ns, under_way) {
            return None;
        }
        let began_ns = match self.arrivals {
            None => now_ns,
            Some(_) => self.late.pop_front()?,
        };
        self.made += 1;
        self.since_pause += 1;
        Some(began_ns)
    }

    // Whether the job pauses. A pause begins when all requests made since the last one have ended.
    fn pauses(&mut self, now_ns: u64, under_way: usize) -> bool {
        let Some(think) = self.think else { return false };
        if self.since_pause < u64::from(think.requests) {
            return false;
        }
        if under_way == 0 {
            self.since_pause = 0;
            self.from_ns = now_ns + think.time.as_ns();
        }
        true
    }

    /// Puts back a request that [`Pacing::next`] returned and that could not be made.
    pub(super) fn put_back(&mut self, began_ns: u64) {
        self.made -= 1;
        self.since_pause -= 1;
        if self.arrivals.is_some() {
            self.late.push_front(began_ns);
        }
    }

    /// The earliest time at which a request becomes due without another one ending; `None` if that
    /// depends only on requests that end.
    pub(super) fn deadline_ns(&self, now_ns: u64) -> Option<u64> {
        let arrival = self.arrivals.as_ref().map(|arrivals| arrivals.peek().as_ns());
        let start = (self.from_ns > now_ns).then_some(self.from_ns);
        arrival.into_iter().chain(start).max()
    }

    /// How many requests arrived before `until_ns` and were never made; at most as many as the
    /// request count still allowed.
    pub(super) fn unmade(&mut self, until_ns: u64) -> u64 {
        let Some(arrivals) = &mut self.arrivals else { return 0 };
        let mut count = self.late.len() as u64;
        while arrivals.peek().as_ns() < until_ns {
            arrivals.advance();
            count += 1;
        }
        count.min(self.most.saturating_sub(self.made))
    }
}

#[cfg(test)]
mod tests {
    use measure::Duration;
    use workload::Spacing;

    use super::*;

    fn closed() -> LoadConfig {
        LoadConfig { request_count: Some(5), ..LoadConfig::reads(1 << 20) }
    }

    fn open() -> LoadConfig {
        let pace = Pace::Open { mean: Duration::from_ns(100), spacing: Spacing::Even };
        LoadConfig { pace, ..closed() }
    }

    #[test]
    fn a_closed_loop_makes_requests_as_it_is_asked_until_all_are_made() {
        let mut pacing = Pacing::new(&closed(), 0, 1000);
        assert_eq!((pacing.next(999, 0), pacing.deadline_ns(999)), (None, Some(1000)));
        assert_eq!((pacing.next(1000, 0), pacing.deadline_ns(1000)), (Some(1000), None));
        pacing.put_back(1000);
        let made = (0..9).filter_map(|_| pacing.next(1001, 0)).count();
        assert_eq!((made, pacing.is_done(), pacing.unmade(9999)), (5, true, 0));
    }

    #[test]
    fn an_open_loop_makes_those_that_have_arrived_and_counts_what_it_leaves() {
        let mut pacing = Pacing::new(&open(), 0, 1000);
        pacing.arrive(1250);
        assert_eq!(pacing.next(1250, 0), Some(1100));
        assert_eq!(pacing.next(1250, 1), Some(1200));
        assert_eq!((pacing.next(1250, 2), pacing.deadline_ns(1250)), (None, Some(1300)));
        pacing.arrive(1450);
        let first = pacing.next(1450, 0).expect("one is late");
        pacing.put_back(first);
        assert_eq!(pacing.next(1450, 0), Some(first), "none is lost");
        assert_eq!(pacing.unmade(1500), 1, "that of 1400; 1500 is the end");
        let mut pacing = Pacing::new(&open(), 0, 1000);
        assert_eq!(pacing.unmade(9000), 5, "no more were to be made");
    }

    #[test]
    fn a_job_thinks_when_its_requests_have_ended() {
        let think = Think { time: Duration::from_ns(500), requests: 2 };
        let mut pacing = Pacing::new(&LoadConfig { think: Some(think), ..closed() }, 0, 0);
        assert_eq!((pacing.next(10, 0), pacing.next(10, 1)), (Some(10), Some(10)));
        assert_eq!(pacing.next(20, 1), None, "one is under way");
        assert_eq!((pacing.next(30, 0), pacing.deadline_ns(30)), (None, Some(530)));
        assert_eq!((pacing.next(529, 0), pacing.next(530, 0)), (None, Some(530)));
    }
}
