//! One job of a load: keeps requests under way and times them.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration as StdDuration;

use measure::{Duration, Instant};
use sys::block::Block;
use sys::clock::monotonic_ns;
use sys::ring::Ring;
use sys::usage;
use workload::Arrivals;

use crate::backend::{Failure, Geometry, Operation, Request};
use crate::idle::Idle;
use crate::jobs::Ended;

use super::config::{LoadConfig, Pace};
use super::depths::Depths;
use super::pattern::Pattern;
use super::stamp::Stamps;
use super::tally::Tally;
use super::under_way::{Made, UnderWay};
use super::way::Way;
use super::{LoadError, Progress};

/// See the module's description.
pub(super) struct Worker<'a> {
    config: &'a LoadConfig,
    job: u16,
    ring: Ring,
    way: Way<Made>,
    pattern: Pattern,
    stamps: Option<Stamps>,
    arrivals: Option<Arrivals>,
    /// Times of requests that should have been made.
    late: VecDeque<u64>,
    spare: Vec<Block>,
    progress: &'a Progress,
    tally: Tally,
    idle: Idle,
    began_ns: u64,
    counted_from_ns: u64,
    until_ns: u64,
    made: u64,
    under_way: UnderWay,
}

/// Requests that are made before answers are looked at.
const RING_ENTRIES: u32 = 256;
/// Places that are looked at before a request waits for another to end.
const PLACE_TRIES: u32 = 64;
/// Time between two attempts to connect again, at first and at last.
const FIRST_PAUSE: StdDuration = StdDuration::from_millis(10);
const LAST_PAUSE: StdDuration = StdDuration::from_secs(1);
/// Time between two looks at whether to stop.
const LOOK: StdDuration = StdDuration::from_millis(100);

impl<'a> Worker<'a> {
    pub(super) fn new(
        config: &'a LoadConfig,
        geometry: Geometry,
        mut way: Way<Made>,
        job: u16,
        progress: &'a Progress,
    ) -> Result<Self, LoadError> {
        let began_ns = monotonic_ns();
        let counted_from_ns = began_ns + config.ramp.as_ns();
        let runtime = config.runtime.map(Duration::as_ns);
        let until_ns = runtime.map_or(u64::MAX, |ns| counted_from_ns.saturating_add(ns));
        let bytes = config.request_bytes as usize;
        let arrivals = match config.pace {
            Pace::Closed => None,
            Pace::Open { mean, spacing } => {
                let seed = config.seed.wrapping_add(u64::from(job) + 1);
                Some(Arrivals::new(spacing, mean, Instant::from_ns(began_ns), seed))
            }
        };
        if config.traces {
            way.trace();
        }
        let seed = config.seed;
        let stamps = config.verifies.then(|| Stamps::new(geometry.block_bytes(), config.nonce));
        Ok(Self {
            ring: Ring::new(RING_ENTRIES)?,
            way,
            pattern: Pattern::new(config, job),
            stamps,
            arrivals,
            late: VecDeque::new(),
            spare: (0..config.depth).map(|_| filled(bytes, seed)).collect(),
            progress,
            tally: Tally::new(),
            idle: Idle::new(config.busy_poll.as_ns()),
            began_ns,
            counted_from_ns,
            until_ns,
            made: 0,
            under_way: UnderWay::new(config.depth),
            job,
            config,
        })
    }

    /// Works until its time is over and every request has ended.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        let mut now_ns = self.began_ns;
        let mut used = usage::of_thread();
        let mut is_counting = self.config.ramp.is_zero();
        loop {
            let is_over = self.is_over(now_ns);
            if !is_over {
                self.make(now_ns);
            }
            if self.under_way.is_empty() && (is_over || self.is_lost_for_good()) {
                break;
            }
            if self.way.is_lost() && self.under_way.is_empty() && !self.find_again()? {
                break;
            }
            self.way.flush(&mut self.ring);
            self.under_way.hand_over(monotonic_ns);
            if !self.way.has_ended() {
                let timeout = self.timeout(now_ns);
                self.idle.sleeps(&mut self.ring, Some(timeout))?;
            }
            now_ns = monotonic_ns();
            if !is_counting && now_ns >= self.counted_from_ns {
                is_counting = true;
                used = usage::of_thread();
                self.tally.depths = Depths::default();
            }
            self.hear(now_ns);
        }
        self.tally.unmade_count = self.unmade(now_ns);
        self.tally.elapsed = Duration::from_ns(now_ns.saturating_sub(self.counted_from_ns));
        self.tally.times = self.way.times();
        self.tally.usage = usage::of_thread().since(&used);
        Ok(self.tally)
    }

    // Takes what has ended.
    fn hear(&mut self, now_ns: u64) {
        while let Some(completed) = self.ring.take_ended() {
            self.way.complete(&mut self.ring, completed, now_ns);
        }
        let mut count = 0;
        while let Some(ended) = self.way.ended(now_ns) {
            self.take(ended, now_ns);
            count += 1;
        }
        if count > 0 {
            self.tally.depths.add_completed(count);
        }
    }

    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns
            || self.progress.has_stopped()
            || self.config.request_count.is_some_and(|most| self.made >= most)
            || self.is_lost_for_good()
    }

    const fn is_lost_for_good(&self) -> bool {
        self.way.is_lost() && self.config.reconnect.is_zero()
    }

    // Looks for the device again, ever more seldom; whether it was found in time.
    fn find_again(&mut self) -> Result<bool, LoadError> {
        while !self.way.is_idle() {
            self.ring.wait(Some(LOOK))?;
            while let Some(completed) = self.ring.take_ended() {
                self.way.complete(&mut self.ring, completed, monotonic_ns());
            }
        }
        let until_ns = monotonic_ns() + self.config.reconnect.as_ns();
        let mut pause = FIRST_PAUSE;
        loop {
            let Err(error) = self.way.renew(self.job, self.config.depth) else {
                self.tally.reconnect_count += 1;
                return Ok(true);
            };
            let now_ns = monotonic_ns();
            if now_ns >= until_ns.min(self.until_ns) || self.progress.has_stopped() {
                self.tally.first_failure.get_or_insert_with(|| error.to_string());
                self.tally.writes.failure_count += u64::from(now_ns >= until_ns);
                return Ok(false);
            }
            // Nothing is on the ring: this only waits.
            self.ring.wait(Some(pause))?;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    // Makes requests: as many as fit, or as many as have arrived.
    fn make(&mut self, now_ns: u64) {
        if let Some(arrivals) = &mut self.arrivals {
            while arrivals.peek().as_ns() <= now_ns {
                self.late.push_back(arrivals.advance().as_ns());
            }
        }
        let most = self.config.request_count.unwrap_or(u64::MAX);
        let before = self.made;
        while self.made < most && !self.spare.is_empty() && !self.way.is_lost() {
            let began = match self.arrivals {
                None => now_ns,
                Some(_) => match self.late.pop_front() {
                    Some(began) => began,
                    None => break,
                },
            };
            if !self.make_one(began, now_ns) {
                if self.arrivals.is_some() {
                    self.late.push_front(began);
                }
                break;
            }
        }
        let made = usize::try_from(self.made - before).unwrap_or(usize::MAX);
        if made > 0 {
            self.tally.depths.add_submitted(made);
        }
    }

    // Requests that are late for ever. Those that a count does not allow were not to be made.
    fn unmade(&mut self, now_ns: u64) -> u64 {
        let Some(arrivals) = &mut self.arrivals else { return 0 };
        let until_ns = self.until_ns.min(now_ns);
        let mut count = self.late.len() as u64;
        while arrivals.peek().as_ns() < until_ns {
            arrivals.advance();
            count += 1;
        }
        let most = self.config.request_count.unwrap_or(u64::MAX);
        count.min(most.saturating_sub(self.made))
    }

    // Whether there was a place for it.
    fn make_one(&mut self, began_ns: u64, now_ns: u64) -> bool {
        let Some(request) = self.place() else { return false };
        let Some(mut block) = self.spare.pop() else { return false };
        if let (Some(stamps), Operation::Write { .. }) = (&mut self.stamps, request.operation) {
            stamps.write(request.offset, &mut block[..self.config.request_bytes as usize]);
        }
        let made = self.under_way.make(began_ns, now_ns).expect("it has as much room as blocks");
        self.made += 1;
        self.tally.depths.add_level(self.under_way.len());
        if self.way.submit(&mut self.ring, request, block, made, now_ns) {
            self.under_way.ended_at_once();
        }
        true
    }

    // What is asked next. If it is checked, one at a time in each place: else nobody could say
    // which write is the last.
    fn place(&mut self) -> Option<Request> {
        let Some(stamps) = &mut self.stamps else { return Some(self.pattern.next()) };
        let mut tries = (0..PLACE_TRIES).map(|_| self.pattern.next());
        tries.find(|request| stamps.take(request.offset))
    }

    fn take(&mut self, ended: Ended<Made>, now_ns: u64) {
        let Ended { request, result, block, tag: made } = ended;
        let times = self.under_way.end(made, now_ns);
        self.progress.ended.fetch_add(1, Ordering::Relaxed);
        let is_read = request.operation == Operation::Read;
        if let Some(stamps) = &mut self.stamps {
            let length = self.config.request_bytes as usize;
            let data = block.as_deref().and_then(|block| block.get(..length));
            let checked = match is_read {
                true => stamps.read(request.offset, data.filter(|_| result.is_ok())),
                false => {
                    stamps.written(request.offset, result.is_ok());
                    Ok(())
                }
            };
            if let Err(wrong) = checked {
                self.tally.add_wrong(wrong);
                let text = format!("{wrong:?} block read at byte {}", request.offset);
                self.tally.first_failure.get_or_insert(text);
            }
        }
        self.spare.extend(block);
        let of = if is_read { &mut self.tally.reads } else { &mut self.tally.writes };
        match result {
            Ok(()) if now_ns >= self.counted_from_ns => {
                of.add(&times, request.length, now_ns - self.counted_from_ns);
            }
            Ok(()) => {}
            Err(Failure::Lost) if !self.config.reconnect.is_zero() => {
                self.tally.uncertain_count += 1;
            }
            Err(failure) => {
                of.failure_count += 1;
                let what = if is_read { "read" } else { "write" };
                let text = format!("{what} at byte {}: {failure}", request.offset);
                self.tally.first_failure.get_or_insert(text);
            }
        }
    }

    fn timeout(&self, now_ns: u64) -> StdDuration {
        let arrival = match &self.arrivals {
            // One that is late waits for an answer, not for its time.
            Some(arrivals) if !self.spare.is_empty() => Some(arrivals.peek().as_ns()),
            _ => None,
        };
        let end = (self.until_ns > now_ns && self.until_ns < u64::MAX).then_some(self.until_ns);
        let deadlines = [arrival, self.way.deadline_ns(), end].into_iter().flatten();
        let first = deadlines.min().map(|at| StdDuration::from_nanos(at.saturating_sub(now_ns)));
        first.unwrap_or(LOOK).min(LOOK)
    }
}

// What does not compress.
fn filled(bytes: usize, seed: u64) -> Block {
    let mut block = Block::new(bytes);
    let mut draw = workload::Draw::new(seed);
    for word in block.chunks_exact_mut(8) {
        word.copy_from_slice(&draw.bits().to_le_bytes());
    }
    block
}
