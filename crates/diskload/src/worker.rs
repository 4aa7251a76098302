//! One job of a load: keeps requests under way and times them.

use std::sync::atomic::Ordering;
use std::time::Duration as StdDuration;

use measure::Duration;
use sys::block::Block;
use sys::clock::monotonic_ns;
use sys::ring::Ring;
use sys::usage::{self, Usage};

use backend::Ended;
use backend::Idle;
use backend::{Failure, Geometry, Operation, Request};
use host::Backoff;

use super::config::LoadConfig;
use super::depths::Depths;
use super::pacing::Pacing;
use super::pattern::Pattern;
use super::stamp::Stamps;
use super::tally::Tally;
use super::under_way::{Made, UnderWay};
use super::way::Way;
use super::{LoadError, Progress};

/// The state of one job.
pub(super) struct Worker<'a> {
    config: &'a LoadConfig,
    job: u16,
    ring: Ring,
    way: Way<Made>,
    pattern: Pattern,
    stamps: Option<Stamps>,
    pacing: Pacing,
    /// Offsets that are still to be read back; `None` until reading back begins.
    back: Option<Vec<u64>>,
    spare: Vec<Block>,
    progress: &'a Progress,
    tally: Tally,
    idle: Idle,
    began_ns: u64,
    counted_from_ns: u64,
    until_ns: u64,
    /// The resource usage of this thread when counting began.
    used: Usage,
    under_way: UnderWay,
    flushing: Flushing,
}

/// When the job flushes.
#[derive(Debug, Clone, Copy, Default)]
struct Flushing {
    /// Flush after this many writes; `None` for never.
    every: Option<u32>,
    /// Writes that have ended since the last flush began.
    written: u32,
    /// Whether a flush is outstanding.
    is_on: bool,
}

impl Flushing {
    /// Whether a flush must be made now.
    fn is_due(&self) -> bool {
        !self.is_on && self.every.is_some_and(|every| self.written >= every)
    }
}

/// Entries of the ring.
const RING_ENTRIES: u32 = 256;
/// How many places are tried before a request waits for another one to end.
const PLACE_TRIES: u32 = 64;
/// Time between two attempts to reconnect: the first and the longest.
pub(super) const FIRST_PAUSE: StdDuration = StdDuration::from_millis(10);
pub(super) const LAST_PAUSE: StdDuration = StdDuration::from_secs(1);
/// Longest time between two checks whether to stop.
const LOOK_NS: u64 = 100_000_000;

impl<'a> Worker<'a> {
    pub(super) fn new(
        config: &'a LoadConfig,
        geometry: Geometry,
        mut way: Way<Made>,
        job: u16,
        progress: &'a Progress,
    ) -> Result<Self, LoadError> {
        let (bytes, seed) = (config.request_bytes as usize, config.seed);
        let ring = Ring::new(RING_ENTRIES)?;
        let spare = (0..config.depth).map(|_| filled(bytes, seed)).collect();
        // Arrivals of an open loop begin now, so everything slow has been prepared before.
        let began_ns = monotonic_ns();
        let from_ns = began_ns.saturating_add(config.delay.as_ns());
        let counted_from_ns = from_ns.saturating_add(config.ramp.as_ns());
        let runtime = config.runtime.map(Duration::as_ns);
        let until_ns = runtime.map_or(u64::MAX, |ns| counted_from_ns.saturating_add(ns));
        if config.traces {
            way.trace();
        }
        let stamps = config.verifies.then(|| Stamps::new(geometry.block_bytes(), config.nonce));
        Ok(Self {
            ring,
            way,
            pattern: Pattern::new(config, job),
            stamps,
            pacing: Pacing::new(config, job, from_ns),
            back: None,
            spare,
            progress,
            tally: Tally::new(),
            idle: Idle::new(config.busy_poll.as_ns()),
            began_ns,
            counted_from_ns,
            until_ns,
            used: usage::of_thread(),
            under_way: UnderWay::new(config.depth),
            flushing: Flushing { every: config.flush_every, ..Flushing::default() },
            job,
            config,
        })
    }

    /// Makes requests until its time is over, then waits for those that are outstanding.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        let mut now_ns = self.began_ns;
        let mut is_counting = self.counted_from_ns == self.began_ns;
        loop {
            let is_over = self.is_over(now_ns);
            if is_over && self.back.is_none() && self.under_way.is_empty() {
                self.close(now_ns);
            }
            if self.back.is_some() {
                self.read_back(now_ns);
            } else if !is_over {
                self.make(now_ns);
            }
            if self.under_way.is_empty() && self.is_done() {
                break;
            }
            if self.way.is_lost() && self.under_way.is_empty() && !self.find_again()? {
                break;
            }
            // `flush` may send at once, so the time of the hand-over is read before it.
            self.under_way.hand_over(monotonic_ns);
            self.way.flush(&mut self.ring);
            if !self.way.has_ended() {
                let until_ns = self.deadline_ns(now_ns);
                self.idle.sleeps(&mut self.ring, Some(until_ns))?;
            }
            now_ns = monotonic_ns();
            if !is_counting && now_ns >= self.counted_from_ns {
                is_counting = true;
                self.used = usage::of_thread();
                self.tally.depths = Depths::default();
            }
            self.hear(now_ns);
        }
        if self.back.is_none() {
            self.close(now_ns);
        }
        self.tally.times = self.way.times();
        Ok(self.tally)
    }

    // Ends counting, and begins to read back if that is configured.
    fn close(&mut self, now_ns: u64) {
        self.tally.unmade_count = self.pacing.unmade(self.until_ns.min(now_ns));
        self.tally.elapsed = Duration::from_ns(now_ns.saturating_sub(self.counted_from_ns));
        self.tally.usage = usage::of_thread().since(&self.used);
        let reads_back = self.config.reads_back && !self.progress.has_stopped();
        let places = self.stamps.as_ref().filter(|_| reads_back).map(Stamps::written_places);
        self.back = Some(places.unwrap_or_default());
    }

    // Whether no request is left to be made, not even to read back.
    fn is_done(&self) -> bool {
        let has_read = self.back.as_ref().is_some_and(|places| places.is_empty());
        has_read || self.is_lost_for_good()
    }

    // Takes all completions and all requests that have ended.
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

    // Whether no more requests are to be made, except to read back.
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns
            || self.progress.has_stopped()
            || self.pacing.is_done()
            || self.is_lost_for_good()
    }

    // Whether the connection is lost and is not to be reestablished.
    fn is_lost_for_good(&self) -> bool {
        self.way.is_lost() && self.config.reconnect.is_zero()
    }

    // Reconnects to the device, with growing pauses between attempts. Returns whether it succeeded.
    fn find_again(&mut self) -> Result<bool, LoadError> {
        while !self.way.is_idle() {
            self.ring.wait_until(Some(monotonic_ns() + LOOK_NS))?;
            while let Some(completed) = self.ring.take_ended() {
                self.way.complete(&mut self.ring, completed, monotonic_ns());
            }
        }
        let until_ns = monotonic_ns() + self.config.reconnect.as_ns();
        let seed = self.config.seed ^ u64::from(self.job);
        let mut backoff = Backoff::new(FIRST_PAUSE, LAST_PAUSE, seed);
        loop {
            let Err(error) = self.way.renew(self.job, self.config.depth) else {
                self.tally.losses.reconnect_count += 1;
                if self.way.was_reopened() {
                    self.tally.losses.reopen_count += 1;
                    // A load that never flushes expects every answered write to survive.
                    let stamps = self.stamps.as_mut().filter(|_| self.flushing.every.is_some());
                    stamps.into_iter().for_each(Stamps::reopened);
                }
                return Ok(true);
            };
            let now_ns = monotonic_ns();
            let is_over = self.back.is_none() && now_ns >= self.until_ns;
            if now_ns >= until_ns || is_over || self.progress.has_stopped() {
                self.tally.first_failure.get_or_insert_with(|| error.to_string());
                self.tally.writes.failure_count += u64::from(now_ns >= until_ns);
                return Ok(false);
            }
            self.rest(backoff.pause())?;
        }
    }

    // Waits for `pause`; the ring has nothing else to do.
    fn rest(&mut self, pause: StdDuration) -> sys::Result<()> {
        let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = monotonic_ns().saturating_add(pause_ns);
        while monotonic_ns() < until_ns {
            self.ring.wait_until(Some(until_ns))?;
            while self.ring.take_ended().is_some() {}
        }
        Ok(())
    }

    // Makes requests as long as blocks are free and requests are due.
    fn make(&mut self, heard_ns: u64) {
        // Reads the clock again, so that the handling of completions does not count as submission.
        let now_ns = if self.spare.is_empty() { heard_ns } else { monotonic_ns() };
        self.pacing.arrive(now_ns);
        if self.flushing.is_due() && !self.spare.is_empty() && !self.way.is_lost() {
            self.flushing = Flushing { written: 0, is_on: true, ..self.flushing };
            self.stamps.iter_mut().for_each(Stamps::flush);
            let request = Request { operation: Operation::Flush, offset: 0, length: 0 };
            self.submit(request, now_ns, now_ns);
        }
        let mut count = 0;
        while !self.spare.is_empty() && !self.way.is_lost() && !self.flushing.is_due() {
            let Some(began_ns) = self.pacing.next(now_ns, self.under_way.len()) else { break };
            let Some(request) = self.place() else {
                self.pacing.put_back(began_ns);
                break;
            };
            self.submit(request, began_ns, now_ns);
            count += 1;
        }
        if count > 0 {
            self.tally.depths.add_submitted(count);
        }
    }

    // Makes reads of places to read back, as long as blocks are free.
    fn read_back(&mut self, now_ns: u64) {
        if self.progress.has_stopped() {
            self.back = Some(Vec::new());
        }
        while !self.spare.is_empty() && !self.way.is_lost() {
            let Some(offset) = self.back.as_mut().and_then(Vec::pop) else { break };
            let length = u64::from(self.config.request_bytes);
            let request = Request { operation: Operation::Read, offset, length };
            self.submit(request, now_ns, now_ns);
        }
    }

    // Submits a request with a free block.
    fn submit(&mut self, request: Request, began_ns: u64, now_ns: u64) {
        let mut block = self.spare.pop().expect("it was looked for");
        if let (Some(stamps), Operation::Write { .. }) = (&mut self.stamps, request.operation) {
            stamps.write(request.offset, &mut block[..self.config.request_bytes as usize]);
        }
        let made = self.under_way.make(began_ns, now_ns).expect("it has as much room as blocks");
        if self.back.is_none() {
            self.tally.depths.add_level(self.under_way.len());
        }
        if self.way.submit(&mut self.ring, request, block, made, now_ns) {
            self.under_way.ended_at_once();
        }
    }

    // The next request; `None` if it must wait. A verified place has one request at a time, because
    // otherwise its last write would be unknown.
    fn place(&mut self) -> Option<Request> {
        let Some(stamps) = &mut self.stamps else { return Some(self.pattern.next()) };
        let mut tries = (0..PLACE_TRIES).map(|_| self.pattern.next());
        tries.find(|request| stamps.take(request.offset))
    }

    // Counts and verifies a request that has ended.
    fn take(&mut self, ended: Ended<Made>, now_ns: u64) {
        let Ended { request, result, block, tag: made } = ended;
        let times = self.under_way.end(made, now_ns);
        self.progress.ended.fetch_add(1, Ordering::Relaxed);
        self.check(&request, result, block.as_deref());
        self.spare.extend(block);
        let (of, what) = match request.operation {
            Operation::Read => (&mut self.tally.reads, "read"),
            Operation::Discard => (&mut self.tally.trims, "trim"),
            Operation::Flush => (&mut self.tally.flushes, "flush"),
            _ => (&mut self.tally.writes, "write"),
        };
        match request.operation {
            Operation::Flush => self.flushing.is_on = false,
            Operation::Write { .. } => self.flushing.written += 1,
            _ => {}
        }
        match result {
            Ok(()) if now_ns >= self.counted_from_ns && self.back.is_none() => {
                of.add(&times, request.length, now_ns - self.counted_from_ns);
            }
            Ok(()) => {}
            Err(Failure::Lost) if !self.config.reconnect.is_zero() => match &mut self.back {
                Some(places) if request.operation == Operation::Read => places.push(request.offset),
                _ if request.operation == Operation::Flush => {}
                _ => self.tally.losses.uncertain_count += 1,
            },
            Err(failure) => {
                of.failure_count += 1;
                let text = format!("{what} at byte {}: {failure}", request.offset);
                self.tally.first_failure.get_or_insert(text);
            }
        }
    }

    // Verifies what was read, and tells the stamps of writes and flushes that have ended.
    fn check(&mut self, request: &Request, result: Result<(), Failure>, block: Option<&[u8]>) {
        let Some(stamps) = &mut self.stamps else { return };
        match request.operation {
            Operation::Read => {}
            Operation::Flush => return stamps.flushed(result.is_ok()),
            operation => {
                let is_forced = operation == Operation::Write { forced: true };
                return stamps.written(request.offset, result.is_ok(), is_forced);
            }
        }
        let data = block.and_then(|block| block.get(..self.config.request_bytes as usize));
        let data = data.filter(|_| result.is_ok());
        self.tally.checks.checked_count += u64::from(data.is_some());
        if let Err(wrong) = stamps.read(request.offset, data) {
            self.tally.checks.add(wrong);
            let text = format!("{wrong:?} block read at byte {}", request.offset);
            self.tally.first_failure.get_or_insert(text);
        }
    }

    // How long to sleep at most.
    fn deadline_ns(&self, now_ns: u64) -> u64 {
        // A late request waits for a free block, not for its arrival.
        let waits = self.back.is_none() && !self.spare.is_empty();
        let arrival = self.pacing.deadline_ns(now_ns).filter(|_| waits);
        let end = (self.until_ns > now_ns && self.until_ns < u64::MAX).then_some(self.until_ns);
        let deadlines = [arrival, self.way.deadline_ns(), end].into_iter().flatten();
        deadlines.min().unwrap_or(u64::MAX).min(now_ns + LOOK_NS)
    }
}

// A block of random bytes, which do not compress.
fn filled(bytes: usize, seed: u64) -> Block {
    let mut block = Block::new(bytes);
    let mut draw = workload::Draw::new(seed);
    for word in block.chunks_exact_mut(8) {
        word.copy_from_slice(&draw.bits().to_le_bytes());
    }
    block
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};

    use backend::NullBackend;
    use host::{Queue, Reached};
    use measure::Histogram;
    use sys::ring::Completed;

    use super::super::under_way::Times;
    use super::super::{Device, OperationTally};
    use super::*;

    /// When each step of a request took place, by the clock.
    #[derive(Debug, Clone, Copy, Default)]
    struct Met {
        /// The load had looked at all that had ended before.
        looked_ns: u64,
        /// Its submission began and ended.
        submitted_ns: [u64; 2],
        /// Its sending began.
        sent_ns: u64,
        ended_ns: u64,
    }

    impl Met {
        // A load makes it after the look and before its submission, and hands it over between that
        // and when it is sent.
        fn shortest_and_longest(&self) -> [Times; 2] {
            let Self { looked_ns, submitted_ns: [from_ns, until_ns], sent_ns, ended_ns } = *self;
            let ns = Duration::from_ns;
            let shortest = Times {
                submission: ns(until_ns - from_ns),
                completion: ns(ended_ns - sent_ns),
                latency: ns(ended_ns - from_ns),
            };
            let longest = Times {
                submission: ns(sent_ns - looked_ns),
                completion: ns(ended_ns - until_ns),
                latency: ns(ended_ns - looked_ns),
            };
            [shortest, longest]
        }
    }

    /// A queue whose every step takes time; what was sent ends with the next look.
    struct Slow {
        under_way: Vec<(Ended<Made>, Met)>,
        looked_ns: u64,
        met: Sender<Met>,
    }

    // Waits until the clock shows another microsecond: a step of no time would have no two sides.
    fn later_ns() -> u64 {
        let from_ns = monotonic_ns();
        let mut times = std::iter::repeat_with(monotonic_ns);
        times.find(|now_ns| *now_ns > from_ns + 1_000).unwrap_or(from_ns)
    }

    impl Queue<Made> for Slow {
        fn submit(
            &mut self,
            request: Request,
            block: Option<Block>,
            tag: Made,
        ) -> Option<Ended<Made>> {
            let submitted_ns = [monotonic_ns(), later_ns()];
            let met = Met { looked_ns: self.looked_ns, submitted_ns, ..Met::default() };
            self.under_way.push((Ended { request, result: Ok(()), block, tag }, met));
            None
        }

        fn flush(&mut self, _ring: &mut Ring) {
            let now_ns = monotonic_ns();
            self.under_way.iter_mut().for_each(|(_, met)| met.sent_ns = now_ns);
            later_ns();
        }

        fn has(&self, _token: u64) -> bool {
            false
        }

        fn complete(&mut self, _: Completed, _now_ns: u64, _ended: &mut Vec<Ended<Made>>) {}

        fn outstanding(&self) -> usize {
            self.under_way.len()
        }

        fn any(&self, is_like: &dyn Fn(&Made) -> bool) -> bool {
            self.under_way.iter().any(|(one, _)| is_like(&one.tag))
        }

        fn deadline_ns(&self) -> Option<u64> {
            Some(0)
        }

        fn look(&mut self, now_ns: u64, ended: &mut Vec<Ended<Made>>) {
            for (one, met) in self.under_way.drain(..) {
                ended.push(one);
                let _gone = self.met.send(Met { ended_ns: now_ns, ..met });
            }
            self.looked_ns = later_ns();
        }

        fn lose(&mut self, _ended: &mut Vec<Ended<Made>>) {}

        fn is_lost(&self) -> bool {
            false
        }

        fn is_idle(&self) -> bool {
            true
        }
    }

    // The queue reads the clock around each of its steps, so every time of the load has bounds that
    // hold on any machine, however busy. A reading on the other side of a step is out of them.
    #[test]
    fn a_request_is_made_before_it_is_submitted_and_handed_over_before_it_is_sent() {
        let (met, all_met) = channel();
        let queue = Slow { under_way: Vec::new(), looked_ns: monotonic_ns(), met };
        let device = Device::Local(Arc::new(NullBackend::new(1 << 20, 12)));
        let geometry = device.geometry();
        let reached = Reached { queue: Box::new(queue) as _, generation: 0, opening: None };
        let way = Way::Remote { device, reached, was_reopened: false, ended: Vec::new() };
        let config =
            LoadConfig { depth: 2, request_count: Some(100), ..LoadConfig::reads(1 << 20) };
        let progress = Progress::default();
        let worker = Worker::new(&config, geometry, way, 0, &progress).expect("there are rings");
        let reads = worker.run().expect("the kernel lets it wait").reads;
        let [mut shortest, mut longest] = [(); 2].map(|()| OperationTally::default());
        for met in all_met.try_iter() {
            let [short, long] = met.shortest_and_longest();
            shortest.add(&short, 4096, 0);
            longest.add(&long, 4096, 0);
        }
        let lies = |what: &str, of: fn(&OperationTally) -> &Histogram| {
            let [short, is, long] = [&shortest, &reads, &longest].map(|tally| of(tally).mean());
            assert!(short <= is && is <= long, "{what}: {is} is not in {short} to {long}");
            assert_eq!([&shortest, &reads, &longest].map(|tally| of(tally).count()), [100; 3]);
        };
        lies("submission", |tally| &tally.submission);
        lies("completion", |tally| &tally.completion);
        lies("latency", |tally| &tally.latency);
    }
}
