//! One thread of a load and its event loop.
//!
//! ```text
//! wait -> replies | room to write | next arrival | tick -> tally, free slots -> issue, flush
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration as WallDuration;

use measure::{Duration, Instant};
use sys::clock::monotonic_ns;
use sys::event::{Poll, Ready};
use workload::{Arrivals, Operation, Request};

use crate::config::LoadConfig;
use crate::connection::{Connection, Sent};
use crate::growth::{Values, check};
use crate::keys::Keys;
use crate::protocol::{Command, Item, Reply};
use crate::source::Source;
use crate::tally::Tally;

/// Longest time between two checks of time-outs and of the flag to stop.
const TICK_NS: u64 = 50_000_000;
/// The worker does not sleep if the next arrival is nearer than this.
const SPIN_NS: u64 = 20_000;

/// The state that [`Progress`](crate::Progress) shares with the workers.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) answered: AtomicU64,
    pub(crate) stop: AtomicBool,
}

/// When this worker's requests may be sent.
pub(crate) enum Pacer {
    Closed,
    Open(Arrivals),
}

pub(crate) struct Worker<'a> {
    config: &'a LoadConfig,
    keys: Keys,
    shared: &'a Shared,
    /// The lengths of values; `None` if values do not grow.
    values: Option<&'a Values>,
    source: Source,
    pacer: Pacer,
    connections: Vec<Connection>,
    /// Free slots: each connection once for each request that it has room for.
    slots: VecDeque<usize>,
    /// Connections with bytes in their output buffers.
    unflushed: Vec<usize>,
    on_their_way: usize,
    exhausted: bool,
    /// When a connection was last ready.
    answered_ns: u64,
    counted_from_ns: u64,
    until_ns: u64,
    tally: Tally,
}

/// The times of a run, by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Requests meant to be sent before this are not counted.
    pub(crate) counted_from_ns: u64,
    /// No request is sent after this.
    pub(crate) until_ns: u64,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        (config, shared, values): (&'a LoadConfig, &'a Shared, Option<&'a Values>),
        source: Source,
        pacer: Pacer,
        connections: Vec<Connection>,
        window: Window,
    ) -> Self {
        // Round robin: the first requests spread over all connections.
        let slots = (0..config.depth).flat_map(|_| 0..connections.len()).collect();
        Self {
            config,
            keys: Keys::new(&config.workload, config.key_bytes),
            shared,
            values,
            source,
            pacer,
            connections,
            slots,
            unflushed: Vec::new(),
            on_their_way: 0,
            exhausted: false,
            answered_ns: 0,
            counted_from_ns: window.counted_from_ns,
            until_ns: window.until_ns,
            tally: Tally::new(),
        }
    }

    /// Sends requests until there are no more, time is over or a stop is requested, then waits for
    /// the outstanding answers.
    pub(crate) fn run(mut self) -> sys::Result<Tally> {
        let mut poll = Poll::new()?;
        for (index, connection) in self.connections.iter().enumerate() {
            poll.add_changes(connection, index as u64)?;
        }
        let mut ready = Vec::new();
        let mut ticked_ns = monotonic_ns();
        loop {
            let now = monotonic_ns();
            self.issue(now);
            self.flush(&poll);
            if self.is_over(now) {
                break;
            }
            poll.wait(Some(self.patience(now)), &mut ready)?;
            if !ready.is_empty() {
                self.answered_ns = now;
            }
            for event in &ready {
                self.answer(*event, &poll);
            }
            if now - ticked_ns >= TICK_NS {
                ticked_ns = now;
                self.give_up_on_late(now);
            }
        }
        self.give_up_on_all();
        Ok(self.tally)
    }

    /// Whether no request will be sent any more and none is outstanding, or all connections failed.
    fn is_over(&mut self, now: u64) -> bool {
        self.exhausted |= now >= self.until_ns || self.shared.stop.load(Ordering::Relaxed);
        (self.exhausted && self.on_their_way == 0)
            || self.connections.iter().all(|connection| connection.failed)
    }

    /// How long to sleep at most; 0 to poll.
    fn patience(&self, now: u64) -> WallDuration {
        let next_ns = match &self.pacer {
            Pacer::Open(arrivals) if !self.exhausted && !self.slots.is_empty() => {
                arrivals.peek().as_ns()
            }
            _ => u64::MAX,
        };
        let wait = next_ns.min(self.until_ns.max(now + 1)).saturating_sub(now).min(TICK_NS);
        // The server need not wake a client that polls.
        let answer_is_near =
            self.on_their_way > 0 && now - self.answered_ns < self.config.busy_poll.as_ns();
        WallDuration::from_nanos(if wait < SPIN_NS || answer_is_near { 0 } else { wait })
    }

    /// Sends requests that are due at `now`, as long as there are free slots.
    fn issue(&mut self, now: u64) {
        while !self.exhausted && now < self.until_ns {
            let meant_ns = match &self.pacer {
                Pacer::Closed => now,
                Pacer::Open(arrivals) => arrivals.peek().as_ns(),
            };
            if meant_ns > now {
                return;
            }
            let Some(slot) = self.slots.pop_front() else {
                return;
            };
            if self.connections[slot].failed {
                continue;
            }
            let Some(request) = self.source.next_request() else {
                self.exhausted = true;
                return;
            };
            if let Pacer::Open(arrivals) = &mut self.pacer {
                arrivals.advance();
            }
            let command = self.first_command(request);
            self.on_their_way += 1;
            self.send(slot, Sent { request, command, meant_ns, sent_ns: now });
        }
    }

    /// Encodes the command of a request into the output buffer of the connection `slot`.
    fn send(&mut self, slot: usize, sent: Sent) {
        let connection = &mut self.connections[slot];
        if connection.out().is_empty() {
            self.unflushed.push(slot);
        }
        self.config.target.protocol.encode(connection.out(), sent.command, self.keys);
        connection.sent.push_back(sent);
    }

    /// Writes the output buffers of all connections that have bytes in them.
    fn flush(&mut self, poll: &Poll) {
        while let Some(slot) = self.unflushed.pop() {
            if let Err(error) = self.connections[slot].flush() {
                self.fail(slot, || format!("write: {error}"), poll);
            }
        }
    }

    // Reads all that a ready connection has: the poll reports readiness only once (edge-triggered).
    fn answer(&mut self, event: Ready, poll: &Poll) {
        let slot = usize::try_from(event.token).unwrap_or(0);
        if self.connections[slot].failed {
            return;
        }
        if self.connections[slot].blocked {
            self.unflushed.push(slot);
        }
        loop {
            let more = match self.connections[slot].read() {
                Ok(more) => more,
                Err(error) => {
                    self.fail(slot, || format!("read: {error}"), poll);
                    return;
                }
            };
            let now = monotonic_ns();
            if !self.take_replies(slot, now, poll) {
                return;
            }
            // At once, so that the server has work while this thread reads the other connections.
            self.issue(now);
            self.flush(poll);
            if !more {
                return;
            }
        }
    }

    /// Decodes and counts every complete reply of a connection. Returns false if it failed.
    fn take_replies(&mut self, slot: usize, now: u64, poll: &Poll) -> bool {
        let config = self.config;
        let (keys, length) = (self.keys, config.workload.value_bytes);
        loop {
            let connection = &self.connections[slot];
            let Some(&sent) = connection.sent.front() else {
                if connection.unread().is_empty() {
                    return true;
                }
                self.fail(slot, || "the server answered what nobody asked".to_owned(), poll);
                return false;
            };
            let (mut missing, mut wrong, mut first_wrong) = (0, 0, None);
            let mut each = |item: Item<'_>| match item {
                Item::Missing => missing += 1,
                Item::Value(record, data) if config.verify => {
                    if let Err(error) = check(data, record, length, config.growth) {
                        wrong += 1;
                        first_wrong.get_or_insert(error);
                    }
                }
                Item::Value(..) => {}
            };
            let protocol = config.target.protocol;
            match protocol.decode(connection.unread(), sent.command, keys, &mut each) {
                Ok(None) => return true,
                Ok(Some((length, reply))) => {
                    let tally = self.tally.of_mut(sent.request.operation);
                    tally.missing_count += missing;
                    tally.wrong_count += wrong;
                    if let Some(error) = first_wrong {
                        self.tally.trouble(|| format!("wrong value: {error}"));
                    }
                    let connection = &mut self.connections[slot];
                    connection.used(length);
                    connection.sent.pop_front();
                    self.complete(slot, sent, reply, now);
                }
                Err(error) => {
                    self.fail(slot, || error.to_string(), poll);
                    return false;
                }
            }
        }
    }

    /// Ends a request with its reply: counts it, or sends the write of a read-modify-write.
    fn complete(&mut self, slot: usize, sent: Sent, reply: Reply, now: u64) {
        let Request { operation, record, version, .. } = sent.request;
        let is_half =
            operation == Operation::ReadModifyWrite && matches!(sent.command, Command::Get { .. });
        if is_half && reply == Reply::Done {
            let bytes = self.config.workload.value_bytes;
            let command = Command::Set { record, version, bytes };
            if let Some(values) = self.values {
                values.set(record);
            }
            self.send(slot, Sent { command, sent_ns: now, ..sent });
            return;
        }
        self.on_their_way -= 1;
        self.slots.push_back(slot);
        if operation == Operation::Insert && reply == Reply::Done {
            self.source.acknowledge(record);
        }
        self.shared.answered.fetch_add(1, Ordering::Relaxed);
        if sent.meant_ns < self.counted_from_ns {
            return;
        }
        let from = Instant::from_ns(self.counted_from_ns);
        let elapsed = Instant::from_ns(now).saturating_since(from);
        match reply {
            Reply::Done => {
                self.tally.answered(elapsed);
                let took = Duration::from_ns(now.saturating_sub(sent.meant_ns));
                self.tally.of_mut(operation).latency.record(took);
            }
            Reply::Refused(error) => {
                self.tally.of_mut(operation).refused_count += 1;
                self.tally.trouble(|| format!("refused: {error}"));
            }
        }
        self.tally.elapsed = elapsed;
    }

    /// Marks a connection as failed and its outstanding requests as lost.
    fn fail(&mut self, slot: usize, why: impl FnOnce() -> String, poll: &Poll) {
        let connection = &mut self.connections[slot];
        poll.remove(connection);
        connection.failed = true;
        self.on_their_way -= connection.sent.len();
        self.tally.lost_count += connection.sent.len() as u64;
        connection.sent.clear();
        self.tally.failed_connections += 1;
        self.tally.trouble(|| format!("connection failed: {}", why()));
    }

    /// Fails connections whose oldest request has exceeded the timeout.
    fn give_up_on_late(&mut self, now: u64) {
        let limit = self.config.timeout.as_ns();
        let late = |connection: &Connection| {
            connection.sent.front().is_some_and(|sent| now.saturating_sub(sent.sent_ns) > limit)
        };
        for connection in self.connections.iter_mut().filter(|connection| late(connection)) {
            connection.failed = true;
            self.on_their_way -= connection.sent.len();
            self.tally.lost_count += connection.sent.len() as u64;
            connection.sent.clear();
            self.tally.failed_connections += 1;
            self.tally.trouble(|| format!("no answer within {} ms", limit / 1_000_000));
        }
    }

    /// Counts all outstanding requests as lost.
    fn give_up_on_all(&mut self) {
        let unanswered: usize =
            self.connections.iter().map(|connection| connection.sent.len()).sum();
        self.tally.lost_count += unanswered as u64;
    }

    /// The first command of a request; a read-modify-write has a second one.
    fn first_command(&self, request: Request) -> Command {
        let Request { operation, record, count, version } = request;
        let bytes = self.config.workload.value_bytes;
        match operation {
            Operation::Read | Operation::Scan | Operation::ReadModifyWrite => {
                Command::Get { first: record, count }
            }
            Operation::Update => match self.values.and_then(|values| values.grow(record)) {
                Some(bytes) => Command::Append { record, version, bytes },
                None => Command::Set { record, version, bytes },
            },
            Operation::Insert => Command::Set { record, version, bytes },
        }
    }
}
