//! One connection: bytes from and to its socket, and what they are about.
//!
//! ```text
//! received ─► drive ─► Queue ─► admin, io ─► out ─► flush ─► sent
//! ```
//!
//! Invariants:
//! - One receive and one send are under way at most; a connection is freed when neither is, and no
//!   job of it.
//! - It reads no further while it has much to send, or while it ends.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::nvme::{Arrival, Queue, QueueLimits, Slot, Status};
use sys::ring::Ring;

use crate::jobs::{Ended, Jobs};
use crate::pool::Pool;

use super::admin::Admin;
use super::config::Limits;
use super::control::{Connected, Control};
use super::counters::{Counters, add};
use super::io::IoSession;
use super::ledger::Ledger;
use super::portal::Entrance;

/// What a job is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag {
    pub(crate) connection: u32,
    pub(crate) slot: Slot,
}

/// What a connection may use of its shard while it is driven.
pub(crate) struct Site<'a> {
    pub(crate) ring: &'a mut Ring,
    pub(crate) jobs: &'a mut Jobs<Tag>,
    pub(crate) pool: &'a mut Pool,
    /// On the first shard.
    pub(crate) control: Option<&'a mut Control>,
    pub(crate) counters: &'a Counters,
    pub(crate) ledger: &'a mut Ledger,
    /// Which shard it is.
    pub(crate) shard: u16,
    pub(crate) now_ns: u64,
    /// Of the connection that is driven.
    pub(crate) connection: u32,
    /// What the shard is to do next.
    pub(crate) orders: &'a mut Vec<Order>,
}

/// Something a connection wants of its shard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// It carries this I/O queue from now on, and may live elsewhere.
    Place { connection: u32, queue: u16 },
    /// This controller's I/O queues are gone.
    EndQueues(u16),
}

/// What a connection is for.
pub(crate) enum Role {
    /// It has not said.
    New,
    Admin(Admin),
    Io(IoSession),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// No more is read; it is closed when everything has been answered and sent.
    Draining,
    /// It is closed when what is there has been sent and the peer has closed, or at this time.
    Terminating {
        until_ns: u64,
        has_shut: bool,
    },
    /// Nothing more passes.
    Closed,
}

pub(crate) struct Connection {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) role: Role,
    queue: Queue,
    entrance: Entrance,
    since_ns: u64,
    state: State,
    /// Bytes received: those between the two places have not been read.
    input: Vec<u8>,
    unread: [usize; 2],
    /// Bytes to send, and the memory that is not in use for that.
    out: Vec<u8>,
    spare: Vec<u8>,
    is_sending: bool,
    is_receiving: bool,
    /// Jobs that have not ended.
    pub(crate) jobs: u32,
    /// It waits to be moved to another shard.
    is_placed: bool,
}

/// Bytes received at once.
const INPUT_BYTES: usize = 64 << 10;
/// Bytes to send with which nothing more is read.
const OUT_BYTES: usize = 512 << 10;
/// Memory for sending that is kept when it is empty.
const OUT_KEPT_BYTES: usize = 1 << 20;
/// How long a peer may take to close after it was told why (TCP 3.6.1; Linux waits as long).
const TERMINATION_NS: u64 = 5_000_000_000;

impl Connection {
    pub(crate) fn new(
        socket: Arc<OwnedFd>,
        entrance: Entrance,
        limits: &Limits,
        now_ns: u64,
    ) -> Self {
        let queue = Queue::new(QueueLimits {
            capsule_data_bytes: limits.capsule_bytes,
            maxh2cdata: limits.h2c_bytes,
            transfer_bytes: limits.transfer_bytes(),
            entries: limits.queue_entries,
        });
        Self {
            socket,
            role: Role::New,
            queue,
            entrance,
            since_ns: now_ns,
            state: State::Open,
            input: Vec::new(),
            unread: [0, 0],
            out: Vec::new(),
            spare: Vec::new(),
            is_sending: false,
            is_receiving: false,
            jobs: 0,
            is_placed: false,
        }
    }

    /// Takes what the socket has brought, or its end.
    pub(crate) fn received(&mut self, bytes: Vec<u8>, result: std::io::Result<u32>) {
        self.is_receiving = false;
        self.input = bytes;
        self.unread = [0, 0];
        match result {
            Ok(count) if count > 0 => self.unread[1] = count as usize,
            _ => self.close(),
        }
    }

    /// What was sent is gone.
    pub(crate) fn sent(&mut self, bytes: Vec<u8>, result: &std::io::Result<u32>) {
        self.is_sending = false;
        if !matches!(result, Ok(count) if *count as usize == bytes.len()) {
            self.close();
        }
        self.spare = bytes;
        self.spare.clear();
        self.spare.shrink_to(OUT_KEPT_BYTES);
    }

    /// Reads what there is to read, as far as it can be answered.
    pub(crate) fn drive(&mut self, site: &mut Site<'_>) {
        let input = std::mem::take(&mut self.input);
        let [start, end] = self.unread;
        let mut rest = &input[start..end];
        while self.state == State::Open && !self.is_placed && self.out.len() < OUT_BYTES {
            match self.queue.receive(&mut rest, &mut self.out) {
                Ok(Some(arrival)) => self.arrived(arrival, site),
                Ok(None) => break,
                Err(fatal) => {
                    self.queue.terminate(fatal, &mut self.out);
                    self.violated(site);
                }
            }
        }
        if self.queue.has_ended() {
            self.close();
        }
        self.unread[0] = end - rest.len();
        self.input = input;
    }

    fn violated(&mut self, site: &Site<'_>) {
        add(&site.counters.violations, 1);
        let until_ns = site.now_ns + TERMINATION_NS;
        self.state = State::Terminating { until_ns, has_shut: false };
    }

    fn arrived(&mut self, arrival: Arrival<'_>, site: &mut Site<'_>) {
        let Self { queue, out, role, jobs, .. } = self;
        match (arrival, role) {
            (Arrival::Connect(slot, request), Role::New) => {
                self.connect(slot, &request, site);
            }
            (Arrival::Command(slot, submission), Role::Admin(admin)) => {
                *jobs += admin.command(slot, &submission, queue, out, site);
            }
            (Arrival::Command(slot, submission), Role::Io(session)) => {
                *jobs += session.command(slot, &submission, queue, out, site);
                if session.has_left() {
                    self.state = State::Draining;
                }
            }
            (Arrival::Data(slot, offset, bytes), Role::Io(session)) => {
                session.data(slot, offset, bytes);
            }
            (Arrival::AllData(slot, is_intact), Role::Io(session)) => {
                *jobs += session.all_data(slot, is_intact, queue, out, site);
            }
            // Data of admin commands is not used by any that is done.
            (Arrival::Data(..) | Arrival::AllData(..), _) => {}
            (Arrival::Command(slot, _) | Arrival::Connect(slot, _), _) => {
                queue.complete(slot, Status::SEQUENCE_ERROR.do_not_retry(), 0, out);
            }
        }
    }

    fn connect(&mut self, slot: Slot, request: &proto::nvme::ConnectRequest, site: &mut Site<'_>) {
        let Some(control) = site.control.as_deref_mut() else {
            return self.queue.complete(slot, Status::INTERNAL_ERROR, 0, &mut self.out);
        };
        let now_ms = site.now_ns / 1_000_000;
        match control.connect(request, site.connection, &self.entrance, now_ms) {
            Ok(Connected::Admin(controller)) => {
                self.role = Role::Admin(Admin::new(controller));
                self.queue.accept(slot, request, controller, &mut self.out);
            }
            Ok(Connected::Io { controller, subsystem }) => {
                let portal = Arc::clone(&self.entrance.portal);
                let session = IoSession::new(controller, request, subsystem, portal);
                self.role = Role::Io(session);
                self.queue.accept(slot, request, controller, &mut self.out);
                self.is_placed = true;
                let (connection, queue) = (site.connection, request.queue);
                site.orders.push(Order::Place { connection, queue });
            }
            Err((status, field)) => {
                self.queue.complete(slot, status, u64::from(field), &mut self.out);
            }
        }
    }

    /// It stays on the shard where it now is.
    pub(crate) const fn settle(&mut self) {
        self.is_placed = false;
    }

    /// Whether nothing of it is under way with the kernel or a backend, so that it can be moved.
    pub(crate) const fn is_movable(&self) -> bool {
        self.is_placed && !self.is_sending && !self.is_receiving && self.jobs == 0
    }

    /// A job of this connection has ended.
    pub(crate) fn ended(&mut self, ended: Ended<Tag>, site: &mut Site<'_>) {
        self.jobs -= 1;
        let Self { queue, out, role, jobs, .. } = self;
        match role {
            Role::Io(session) => *jobs += session.ended(ended, queue, out, site),
            Role::Admin(admin) => *jobs += admin.ended(&ended, queue, out, site),
            Role::New => {}
        }
    }

    /// Tells the host of the admin queue that something has happened.
    pub(crate) fn event(&mut self, slot: Slot, result: u64) {
        self.queue.complete(slot, Status::SUCCESS, result, &mut self.out);
    }

    /// Tries again what waits for memory.
    pub(crate) fn feed(&mut self, site: &mut Site<'_>) {
        let Self { queue, out, role, jobs, .. } = self;
        if let Role::Io(session) = role {
            *jobs += session.feed(queue, out, site);
        }
    }

    /// Whether something waits for memory.
    pub(crate) fn is_starving(&self) -> bool {
        matches!(&self.role, Role::Io(session) if session.is_starving())
    }

    /// Lets the kernel have what is to be sent and room for what may come, and closes the socket
    /// when it is time.
    pub(crate) fn flush(&mut self, tokens: [u64; 2], ring: &mut Ring, now_ns: u64) {
        if self.state == State::Closed {
            return;
        }
        if !self.is_sending && !self.out.is_empty() {
            let bytes = std::mem::replace(&mut self.out, std::mem::take(&mut self.spare));
            ring.send(&self.socket, tokens[1], bytes, 0);
            self.is_sending = true;
        }
        let is_sent = !self.is_sending && self.out.is_empty();
        match self.state {
            State::Draining if is_sent && self.jobs == 0 => self.close(),
            State::Terminating { until_ns, .. } if until_ns <= now_ns => self.close(),
            State::Terminating { until_ns, has_shut: false } if is_sent => {
                self.state = State::Terminating { until_ns, has_shut: true };
                sys::stream::shut_writing(&self.socket);
            }
            _ => {}
        }
        let reads = match self.state {
            // What came is to be read first.
            State::Open => self.unread[0] == self.unread[1] && !self.is_placed,
            State::Terminating { .. } => true,
            State::Draining | State::Closed => false,
        };
        if reads && !self.is_receiving {
            let mut input = std::mem::take(&mut self.input);
            input.resize(INPUT_BYTES, 0);
            self.unread = [0, 0];
            ring.receive(&self.socket, tokens[0], input, 0);
            self.is_receiving = true;
        }
    }

    /// Nothing more passes: what is under way ends by itself.
    pub(crate) fn close(&mut self) {
        if self.state != State::Closed {
            self.state = State::Closed;
            sys::stream::shut(&self.socket);
        }
    }

    /// Ends when everything has been answered.
    pub(crate) fn drain(&mut self) {
        if matches!(self.state, State::Open) {
            self.state = State::Draining;
        }
    }

    /// Whether it can be freed.
    pub(crate) fn is_over(&self) -> bool {
        let is_idle = !self.is_sending && !self.is_receiving && self.jobs == 0;
        self.state == State::Closed && is_idle
    }

    /// Whether bytes wait that may now be read.
    pub(crate) fn can_go_on(&self) -> bool {
        let is_able = self.state == State::Open && !self.is_placed && self.out.len() < OUT_BYTES;
        is_able && self.unread[0] < self.unread[1]
    }

    /// When something is to be done about it if nothing happens.
    pub(crate) const fn deadline_ns(&self, handshake_ns: u64) -> Option<u64> {
        match (self.state, &self.role) {
            (State::Terminating { until_ns, .. }, _) => Some(until_ns),
            (State::Open, Role::New) => Some(self.since_ns + handshake_ns),
            _ => None,
        }
    }

    /// Gives back memory that commands hold to a shard.
    pub(crate) fn release(&mut self, shard: u16, pool: &mut Pool) {
        if let Role::Io(session) = &mut self.role {
            session.release(shard, pool);
        }
    }
}
