//! Where requests go, and what they do there.

use workload::Draw;

use crate::backend::{Operation, Request};

use super::config::{LoadConfig, Order};

/// See the module's description.
pub(super) struct Pattern {
    order: Order,
    read_percent: u64,
    forced: bool,
    bytes: u64,
    /// First byte of this job's region, and requests that fit in it.
    base: u64,
    places: u64,
    next: u64,
    draw: Draw,
}

impl Pattern {
    /// Of a job: in a part of the region to itself if what is written is checked or comes in order.
    pub(super) fn new(config: &LoadConfig, job: u16) -> Self {
        let bytes = u64::from(config.request_bytes);
        let [base, length] = config.region;
        let places = length / bytes;
        let is_shared = config.order == Order::Random && !config.verifies;
        let (first, places) = if is_shared {
            (0, places)
        } else {
            let part = places / u64::from(config.jobs);
            (u64::from(job) * part, part)
        };
        Self {
            order: config.order,
            read_percent: u64::from(config.read_percent),
            forced: config.forced,
            bytes,
            base: base + first * bytes,
            places: places.max(1),
            next: 0,
            draw: Draw::new(config.seed ^ u64::from(job) << 32),
        }
    }

    /// What is asked next.
    pub(super) fn next(&mut self) -> Request {
        let place = match self.order {
            Order::Random => self.draw.below(self.places),
            Order::Sequential => {
                let place = self.next;
                self.next = (self.next + 1) % self.places;
                place
            }
        };
        let reads = match self.read_percent {
            0 => false,
            100 => true,
            share => self.draw.below(100) < share,
        };
        let operation =
            if reads { Operation::Read } else { Operation::Write { forced: self.forced } };
        Request { operation, offset: self.base + place * self.bytes, length: self.bytes }
    }
}
