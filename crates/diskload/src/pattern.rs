//! Chooses the operation and the offset of each request.

use workload::{Draw, Zipf, fnv64};

use backend::{Operation, Request};

use super::config::{LoadConfig, Order};

/// The requests of one job.
pub(super) struct Pattern {
    course: Course,
    read_percent: u64,
    /// The operation of requests that do not read.
    other: Operation,
    bytes: u64,
    /// First byte of this job's region, and how many requests fit in it.
    base: u64,
    places: u64,
    draw: Draw,
}

enum Course {
    Random,
    Zipf(Zipf),
    Sequential { next: u64 },
}

impl Pattern {
    /// The pattern of a job. It has a part of the region for itself if requests are sequential or
    /// verified.
    pub(super) fn new(config: &LoadConfig, job: u16) -> Self {
        let bytes = u64::from(config.request_bytes);
        let [base, length] = config.region;
        let places = length / bytes;
        let is_shared = config.order != Order::Sequential && !config.verifies;
        let (first, places) = if is_shared {
            (0, places)
        } else {
            let part = places / u64::from(config.jobs);
            (u64::from(job) * part, part)
        };
        let places = places.max(1);
        let course = match config.order {
            Order::Random => Course::Random,
            Order::Zipf(theta) => Course::Zipf(Zipf::new(places, theta)),
            Order::Sequential => Course::Sequential { next: 0 },
        };
        let other = match config.trims {
            true => Operation::Discard,
            false => Operation::Write { forced: config.forced },
        };
        Self {
            course,
            read_percent: u64::from(config.read_percent),
            other,
            bytes,
            base: base + first * bytes,
            places,
            draw: Draw::new(config.seed ^ u64::from(job) << 32),
        }
    }

    /// The next request.
    pub(super) fn next(&mut self) -> Request {
        let place = match &mut self.course {
            Course::Random => self.draw.below(self.places),
            // Scattered, so that frequent places are not neighbours.
            Course::Zipf(zipf) => fnv64(zipf.next(&mut self.draw)) % self.places,
            Course::Sequential { next } => {
                let place = *next;
                *next = (place + 1) % self.places;
                place
            }
        };
        let reads = match self.read_percent {
            0 => false,
            100 => true,
            share => self.draw.below(100) < share,
        };
        let operation = if reads { Operation::Read } else { self.other };
        Request { operation, offset: self.base + place * self.bytes, length: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn skewed_requests_go_to_some_places_more_often() {
        let config = LoadConfig { order: Order::Zipf(1.2), ..LoadConfig::reads(4096 * 1000) };
        let mut pattern = Pattern::new(&config, 0);
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for _ in 0..100_000 {
            let Request { offset, length, .. } = pattern.next();
            assert!(offset % 4096 == 0 && offset + length <= 4096 * 1000);
            *counts.entry(offset).or_default() += 1;
        }
        let most = counts.values().max().copied().expect("some were made");
        // One over zeta(1000, 1.2), and what else is scattered to the same place.
        let expected = Zipf::new(1000, 1.2).probability(0) * 1e5;
        assert!((f64::from(most) / expected - 1.0).abs() < 0.1, "{most} for {expected}");
        assert!(counts.len() > 300, "{}", counts.len());
    }

    #[test]
    fn what_does_not_read_trims_if_it_is_to() {
        let config = LoadConfig { read_percent: 0, trims: true, ..LoadConfig::reads(1 << 20) };
        let mut pattern = Pattern::new(&config, 0);
        assert!((0..100).all(|_| pattern.next().operation == Operation::Discard));
    }
}
