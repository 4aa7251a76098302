//! One thread of a target: its ring, its connections and the jobs of their commands.
//!
//! ```text
//! wait ─► completions ─► drive, ended ─► orders ─► flush what was touched ─► wait
//! errands: what connections want of it, and other shards
//! ```

mod errands;
mod memory;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sys::block::Block;
use sys::clock::thread_ns;
use sys::ring::{Completed, Held, Ring};
use sys::stream::Stream;

use backend::Idle;
use backend::pool::{Account, Pool, Terms};
use backend::{Ended, Jobs};

use super::connection::{Connection, End};
use super::control::Control;
use super::counters::add;
use super::iscsi::{IscsiEnd, Port, Sessions};
use super::ledger::Ledger;
use super::nvme_end::NvmeEnd;
use super::portal::Entrance;
use super::seed::Seed;
use super::site::{Books, Order, Rules, Site, Tag, Who, Wishes};
use super::tenants::Tenants;
use super::tide::Tide;
use super::times::Times;
use super::witness::{Event, Happening, Why};

// The upper byte of a ring token: what it is for. The rest is a number.
const KIND: u64 = 0xff << 56;
const RECEIVE: u64 = 1 << 56;
const SEND: u64 = 2 << 56;
const JOB: u64 = 3 << 56;
const MAIL: u64 = 4 << 56;
const ACCEPT: u64 = 5 << 56;

/// Entries of the submission queue.
const RING_ENTRIES: u32 = 1024;
/// Jobs that are taken in one wake-up before their answers are sent.
const JOBS_AT_ONCE: u32 = 8;
/// Bytes of freed command memory that the pool keeps for reuse.
const POOL_KEEPS: usize = 16 << 20;

/// TCP keep-alive: silence before the first probe, time between probes, and how many may go
/// unanswered.
const TCP_KEEP_ALIVE: (Duration, Duration, u32) =
    (Duration::from_secs(60), Duration::from_secs(10), 6);
/// Rounds of `feed` at most: with so many shares of credit any command may begin.
const ROUNDS_MAX: u32 = 64;

/// See the module's description.
pub(crate) struct Shard {
    seed: Seed,
    ring: Ring,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    /// The deadline of each connection.
    due_ns: Vec<u64>,
    jobs: Jobs<Tag>,
    pool: Pool,
    /// Connections to settle after an event.
    touched: Vec<u32>,
    orders: Vec<Order>,
    sessions: Sessions,
    ledger: Ledger,
    /// When the stop was requested.
    stopping_ns: Option<u64>,
    now_ns: u64,
    idle: Idle,
    /// From how many bytes on a send is zero copy.
    zero_copy: usize,
    /// Connections that wait for memory or for others, each once, in the order of their turns.
    starving: Vec<u32>,
    /// I/O queues and sessions that all shards together may have.
    most_connections: usize,
    /// A range was released for which commands may wait.
    is_released: bool,
    times: Times,
    tide: Tide,
    /// Listeners whose accept has failed; `look_at_times` tries them again.
    resting: Vec<u32>,
    /// Connections that may still be without Connect or login, and when they came.
    newcomers: VecDeque<(u32, u64)>,
    notes: Vec<(Happening, Why)>,
    tenants: Tenants,
}

impl Shard {
    /// Makes the shard of the calling thread.
    pub(crate) fn new(seed: Seed) -> sys::Result<Self> {
        let bytes = |limit: measure::Bytes| usize::try_from(limit.get()).unwrap_or(usize::MAX);
        let limits = &seed.config.limits;
        let (share, common) = (bytes(limits.share), bytes(limits.data));
        let mut ring = seed.world.ring(RING_ENTRIES)?;
        for (number, listener) in (0..).zip(&seed.listeners) {
            ring.accept(listener, ACCEPT | number);
        }
        // The control thread has the time to sleep.
        let is_control = seed.control.is_some();
        let idle = Idle::new(if is_control { 0 } else { seed.config.busy_poll.as_ns() });
        let mut shard = Self {
            now_ns: ring.now_ns(),
            ring,
            connections: Vec::new(),
            free: Vec::new(),
            due_ns: Vec::new(),
            jobs: Jobs::new(JOB),
            pool: Pool::new(Terms { share, common, keeps: POOL_KEEPS }),
            touched: Vec::new(),
            orders: Vec::new(),
            sessions: Sessions::default(),
            ledger: Ledger::default(),
            stopping_ns: None,
            idle,
            zero_copy: seed.config.zero_copy.map_or(usize::MAX, bytes),
            starving: Vec::new(),
            most_connections: usize::from(seed.config.shards) * limits.connections as usize,
            is_released: false,
            times: Times::default(),
            tide: Tide::default(),
            resting: Vec::new(),
            newcomers: VecDeque::new(),
            notes: Vec::new(),
            tenants: Tenants::default(),
            seed,
        };
        if shard.seed.config.traces {
            shard.jobs.trace();
        }
        shard.read_mail(Block::new(1));
        Ok(shard)
    }

    /// Runs until it is stopped and has nothing left to do.
    pub(crate) fn run(mut self) -> sys::Result<()> {
        while !self.has_stopped() {
            self.trace();
            let until_ns = self.deadline_ns();
            if self.idle.sleeps(&mut self.ring, until_ns)? {
                add(&self.seed.counters.sleeps, 1);
            }
            self.now_ns = self.ring.now_ns();
            // Answers of the first jobs are sent while the rest are still being made.
            let mut jobs = 0;
            while jobs < JOBS_AT_ONCE
                && let Some(completed) = self.ring.take_ended()
            {
                self.times.is_stale = true;
                jobs += u32::from(completed.token & KIND == JOB);
                self.complete(completed);
            }
            while let Some(ended) = self.jobs.next_due(self.now_ns) {
                self.ended(ended);
            }
            if self.times.next_ns().is_some_and(|at| at <= self.now_ns) {
                self.look_at_times();
            }
            self.settle();
            self.count_answers();
            self.account();
        }
        Ok(())
    }

    // Publishes how much memory is in use.
    fn account(&mut self) {
        let counters = &self.seed.counters;
        self.tide.note(self.weight());
        counters.lent_bytes.store(self.pool.held() as u64, Ordering::Relaxed);
        counters.memory_waits.store(self.pool.refusals(), Ordering::Relaxed);
    }

    // Counts answered commands before hosts have the answers: counters are then never behind.
    fn count_answers(&mut self) {
        if !self.ledger.is_empty() {
            let Seed { index, counters, .. } = &self.seed;
            self.ledger.count(*index, counters, &mut self.pool, self.ring.now_ns());
        }
    }

    // Adds up the stages of traced commands, as the kernel gets the answers of this wake-up.
    fn trace(&self) {
        let Some(times) = self.jobs.times() else { return };
        let counters = &self.seed.counters;
        let set = |counter: &AtomicU64, value| counter.store(value, Ordering::Relaxed);
        let ended = times.count - counters.traced.load(Ordering::Relaxed);
        if ended > 0 {
            add(&counters.answer_ns, (self.ring.now_ns() - self.now_ns) * ended);
            set(&counters.device_ns, times.device_ns);
            set(&counters.late_ns, times.late_ns);
            set(&counters.traced, times.count);
        }
    }

    fn has_stopped(&self) -> bool {
        let is_empty = self.connections.iter().all(Option::is_none) && self.jobs.is_empty();
        self.stopping_ns.is_some() && is_empty
    }

    // Dispatches a completion of the ring.
    fn complete(&mut self, completed: Completed) {
        let number = u32::try_from(completed.token & !KIND).unwrap_or(u32::MAX);
        match completed.token & KIND {
            RECEIVE | SEND => self.moved(number, completed),
            JOB => {
                if let Some(ended) = self.jobs.complete(&mut self.ring, completed, self.now_ns) {
                    self.ended(ended);
                }
            }
            MAIL => {
                if let Held::Block(block) = completed.held {
                    self.read_mail(block);
                }
                while let Ok(message) = self.seed.mail.try_recv() {
                    self.take(message);
                }
            }
            _ => self.accepted(number, completed),
        }
    }

    // Waits for the next wake-up by a message.
    fn read_mail(&mut self, block: Block) {
        let own = &self.seed.peers[usize::from(self.seed.index)];
        self.ring.hear(&own.waker, MAIL, block);
    }

    // Takes an accepted socket in as a new connection if there is room.
    fn accepted(&mut self, number: u32, completed: Completed) {
        let is_stopping = self.stopping_ns.is_some();
        if let Some(socket) = completed.accepted
            && !is_stopping
            && self.has_room(&socket)
            && socket.send_at_once().is_ok()
            && socket.keep_alive(TCP_KEEP_ALIVE).is_ok()
            && let Ok(local) = socket.local_address()
            && let Some(end) = self.end_of(number as usize, local)
        {
            let connection = Connection::new(socket, end, self.now_ns);
            let number = self.adopt(Box::new(connection));
            self.newcomers.push_back((number, self.now_ns));
            self.bound_newcomers();
        }
        if !completed.has_more && !is_stopping {
            self.resting.push(number);
        }
    }

    // The protocol end of a connection to the listener at `place`.
    fn end_of(&self, place: usize, local: SocketAddr) -> Option<End> {
        let seed = &self.seed;
        // Listeners for NVMe/TCP come first.
        if let Some(portal) = seed.portals.get(place) {
            let entrance = Entrance { local, portal: Arc::clone(portal) };
            return Some(End::Nvme(NvmeEnd::new(entrance, &seed.config.limits)));
        }
        let port = Port::new(&seed.iscsi_portals, place.checked_sub(seed.portals.len())?)?;
        Some(End::Iscsi(IscsiEnd::new(local, port)))
    }

    // Whether there is room for another connection; a refusal is noted for the operator.
    fn has_room(&self, socket: &Stream) -> bool {
        let most = self.seed.config.limits.connections as usize;
        let has_room = self.connections.len() - self.free.len() < most;
        if !has_room {
            let (what, why) = (Happening::Full, Why::Plain);
            let peer = socket.peer_address().ok();
            self.seed.witness.note(Event { what, why, peer, host: None });
        }
        has_room
    }

    // Evicts the oldest connection without Connect or login when there are too many.
    fn bound_newcomers(&mut self) {
        let most = self.seed.config.limits.handshakes as usize;
        if self.newcomers.len() <= most {
            return;
        }
        let connections = &self.connections;
        self.newcomers.retain(|(number, since_ns)| {
            let place = connections.get(*number as usize).and_then(Option::as_ref);
            place.is_some_and(|one| one.since_ns == *since_ns && one.is_new())
        });
        if self.newcomers.len() > most
            && let Some((number, _)) = self.newcomers.pop_front()
        {
            self.orders.push(Order::Evict(number));
        }
    }

    // Adds a connection, new or moved from another shard. Returns its number.
    fn adopt(&mut self, mut connection: Box<Connection>) -> u32 {
        // Its namespaces may have changed while it moved between shards.
        connection.refresh();
        let number = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.due_ns.push(u64::MAX);
            u32::try_from(self.connections.len() - 1).expect("connections are bounded")
        });
        self.connections[number as usize] = Some(connection);
        add(&self.seed.counters.connections, 1);
        self.with(number, Connection::enter);
        number
    }

    // Takes a completed receive or send of a connection.
    fn moved(&mut self, number: u32, completed: Completed) {
        let is_received = completed.token & KIND == RECEIVE;
        self.with(number, |connection, site| {
            match (completed.held, is_received) {
                (Held::Bytes(bytes), true) => connection.received(bytes, completed.result),
                (held, _) => connection.sent(Completed { held, ..completed }),
            }
            connection.drive(site);
        });
    }

    fn ended(&mut self, ended: Ended<Tag>) {
        self.with(ended.tag.connection, |connection, site| connection.ended(ended, site));
    }

    // Runs `act` on a connection, which is taken out meanwhile and settled afterwards.
    fn with(&mut self, number: u32, act: impl FnOnce(&mut Connection, &mut Site<'_>)) {
        let place = self.connections.get_mut(number as usize);
        let Some(mut connection) = place.and_then(Option::take) else { return };
        let mut site = self.site(number, connection.account);
        act(&mut connection, &mut site);
        connection.weigh(&mut self.pool, self.now_ns);
        if connection.begins_to_starve() {
            self.starving.push(number);
        }
        for (what, why) in self.notes.drain(..) {
            self.seed.witness.note(connection.note(what, why));
        }
        self.connections[number as usize] = Some(connection);
        if self.touched.last() != Some(&number) {
            self.touched.push(number);
        }
    }

    // Runs `act` on the shard's site without a connection.
    fn on_site<T>(&mut self, act: impl FnOnce(&mut Site<'_>) -> T) -> T {
        act(&mut self.site(u32::MAX, Account::NOBODY))
    }

    // What a connection may use of the shard.
    fn site(&mut self, connection: u32, account: Account) -> Site<'_> {
        Site {
            ring: &mut self.ring,
            jobs: &mut self.jobs,
            pool: &mut self.pool,
            control: self.seed.control.as_mut(),
            gate: self.seed.gate.as_mut(),
            loads: &mut self.seed.loads,
            sessions: &mut self.sessions,
            books: Books { counters: &self.seed.counters, ledger: &mut self.ledger },
            rules: Rules {
                wrong_secret_ns: self.seed.config.limits.wrong_secret.as_ns(),
                most_connections: self.most_connections,
                shard: self.seed.index,
                shards: self.seed.config.shards,
            },
            now_ns: self.now_ns,
            who: Who { connection, account },
            wishes: Wishes { orders: &mut self.orders, notes: &mut self.notes },
        }
    }

    // Acts on all deadlines: connections, controllers, resting listeners, memory.
    fn look_at_times(&mut self) {
        let limits = self.seed.config.limits;
        let drain_ns = limits.drain.as_ns();
        let must_end = self.stopping_ns.is_some_and(|since| since + drain_ns <= self.now_ns);
        let is_due = |number: &usize| self.due_ns[*number] <= self.now_ns || must_end;
        let due: Vec<usize> = (0..self.connections.len()).filter(is_due).collect();
        for number in due {
            let number = u32::try_from(number).expect("connections are bounded");
            self.with(number, |connection, site| match must_end {
                true => connection.close(),
                false => connection.expire(&limits, site),
            });
        }
        let now_ms = self.now_ns / 1_000_000;
        let expired = self.seed.control.as_mut().map(|control| control.take_expired(now_ms));
        for controller in expired.unwrap_or_default() {
            let association = self.seed.control.as_mut().and_then(|all| all.get(controller));
            if let Some(connection) = association.map(|one| one.connection) {
                self.with(connection, |connection, site| {
                    site.wishes.notes.push((Happening::Expired, Why::Plain));
                    connection.close();
                });
            }
        }
        for number in std::mem::take(&mut self.resting) {
            if let Some(listener) = self.seed.listeners.get(number as usize) {
                self.ring.accept(listener, ACCEPT | u64::from(number));
            }
        }
        if self.tide.has_fallen(self.weight(), self.now_ns) {
            self.all_give_back();
        }
        let busy_ns = thread_ns().saturating_sub(self.idle.looked_ns());
        // Polling is timed by another clock, so the difference may decrease; the counter does not.
        self.seed.counters.busy_ns.fetch_max(busy_ns, Ordering::Relaxed);
        let deadline_ns = self.first_deadline_ns();
        self.times = Times { looked_ns: self.now_ns, deadline_ns, is_stale: false };
    }

    fn first_deadline_ns(&self) -> Option<u64> {
        let limits = &self.seed.config.limits;
        let connections = self.due_ns.iter().copied().min().filter(|at| *at < u64::MAX);
        let hosts = self.seed.control.as_ref().and_then(Control::expires_ms);
        let stop = self.stopping_ns.map(|since| since + limits.drain.as_ns());
        let tide = self.tide.next_ns();
        let deadlines = [connections, hosts.map(|ms| ms * 1_000_000), stop, tide];
        deadlines.into_iter().flatten().min()
    }

    // Until when the shard may sleep.
    fn deadline_ns(&self) -> Option<u64> {
        [self.jobs.deadline_ns(), self.times.next_ns()].into_iter().flatten().min()
    }

    // Restores the invariants: readable input is parsed, output is being sent, and connections that
    // have ended are freed.
    fn settle(&mut self) {
        if self.pool.take_room() || self.is_released {
            self.feed();
        }
        loop {
            self.obey();
            let Some(number) = self.touched.pop() else { break };
            self.settle_connection(number);
        }
    }

    fn settle_connection(&mut self, number: u32) {
        self.count_answers();
        let place = self.connections.get_mut(number as usize);
        let Some(connection) = place.and_then(Option::as_mut) else { return };
        let tokens = [RECEIVE, SEND].map(|kind| kind | u64::from(number));
        connection.flush(tokens, &mut self.ring, self.zero_copy, self.now_ns);
        self.due_ns[number as usize] = connection.deadline_ns(&self.seed.config.limits);
        if connection.is_over() {
            self.free_connection(number);
        } else if connection.can_go_on() {
            self.with(number, Connection::drive);
        } else if connection.is_movable() {
            self.place(number);
        }
    }

    // Gives freed memory to waiting connections in turn: each may begin a share's worth of commands
    // in a round.
    fn feed(&mut self) {
        let is_released = std::mem::take(&mut self.is_released);
        let mut waiting = std::mem::take(&mut self.starving);
        for _ in 0..ROUNDS_MAX {
            self.pool.begin_round();
            let before = self.pool.held();
            waiting.retain(|number| self.feed_one(*number, is_released));
            let is_over = self.pool.held() <= before && !self.pool.needs_round();
            if is_over || waiting.is_empty() {
                break;
            }
        }
        // Another connection is first the next time.
        if waiting.len() > 1 {
            waiting.rotate_left(1);
        }
        waiting.append(&mut self.starving);
        self.pool.settle(!waiting.is_empty());
        self.starving = waiting;
        self.pool.take_room();
    }

    // Feeds one connection. Returns whether it still waits.
    fn feed_one(&mut self, number: u32, is_released: bool) -> bool {
        let place = self.connections.get(number as usize).and_then(Option::as_ref);
        let Some(connection) = place else { return false };
        if !is_released && !self.pool.has_any_for(connection.account) {
            return true;
        }
        self.pool.turn(connection.account);
        self.with(number, Connection::feed);
        let place = self.connections.get_mut(number as usize).and_then(Option::as_mut);
        place.is_some_and(|connection| connection.still_starves())
    }
}
