//! One connection: bytes from and to its socket, and what they are about.
//!
//! ```text
//! received ─► drive ─► End ─► out ─► flush ─► sent
//! ```
//!
//! Invariants:
//! - One receive and one send are under way at most; a connection is freed when neither is, and no
//!   job of it.
//! - It reads no further while it has much to send, or while it ends.

mod aborts;
mod held;

use std::net::SocketAddr;
use std::sync::Arc;

use nvme::Slot;
use sys::ring::{Completed, Held, Ring};
use sys::stream::Stream;

use backend::Ended;
use backend::pool::{Account, Holder, Pool};

use super::counters::add;
use super::dues::Dues;
use super::iscsi::IscsiEnd;
use super::keeper::Kept;
use super::next::Next;
use super::nvme_end::{NvmeEnd, Role};
use super::room::Room;
use super::site::{Order, Owner, Site, Tag};
use super::witness::{Event, Happening, Why};

/// Whose words are spoken on a connection.
#[expect(clippy::large_enum_variant, reason = "each connection is boxed already")]
pub(crate) enum End {
    Nvme(NvmeEnd),
    Iscsi(IscsiEnd),
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
    pub(crate) socket: Stream,
    pub(crate) end: End,
    peer: Option<SocketAddr>,
    pub(crate) since_ns: u64,
    /// Nothing is sent before this time.
    silent_until_ns: u64,
    /// When something was last received.
    heard_ns: u64,
    state: State,
    /// Bytes received: those between the two places have not been read.
    input: Vec<u8>,
    unread: [usize; 2],
    /// Bytes to send, and memory that is not in use for that.
    out: Vec<u8>,
    spares: Vec<Vec<u8>>,
    /// Bytes that are being sent, if any are.
    sending: Option<usize>,
    /// What has been sent in place and is still in the kernel's use, its bytes, and whether
    /// anything ever was.
    lent: u32,
    lent_bytes: usize,
    lends: bool,
    /// Whose memory it uses, and how much of that is what it has to send.
    holder: Holder,
    pub(crate) account: Account,
    weight: usize,
    dues: Dues,
    is_receiving: bool,
    room: Room,
    /// Jobs that have not ended.
    pub(crate) jobs: u32,
    /// It waits to be moved to another shard.
    is_placed: bool,
    /// Its shard knows that something of it waits for memory or for others.
    is_listed: bool,
    /// What is there cannot be read before something else has happened.
    is_barred: bool,
}

/// Memory for sending that is kept when it is empty.
const OUT_KEPT_BYTES: usize = 1 << 20;
/// Pieces of it.
const SPARES_MAX: usize = 4;
/// How long a peer may take to close after it was told why (TCP 3.6.1; Linux waits as long).
const TERMINATION_NS: u64 = 5_000_000_000;

impl Connection {
    pub(crate) fn new(socket: Stream, end: End, now_ns: u64) -> Self {
        Self {
            peer: socket.peer_address().ok(),
            socket,
            end,
            since_ns: now_ns,
            silent_until_ns: 0,
            heard_ns: now_ns,
            state: State::Open,
            input: Vec::new(),
            unread: [0, 0],
            out: Vec::new(),
            spares: Vec::new(),
            sending: None,
            lent: 0,
            lent_bytes: 0,
            lends: false,
            holder: Holder::Nobody,
            account: Account::NOBODY,
            weight: 0,
            dues: Dues::default(),
            is_receiving: false,
            room: Room::default(),
            jobs: 0,
            is_placed: false,
            is_listed: false,
            is_barred: false,
        }
    }

    /// Takes what the socket has brought, or its end.
    pub(crate) fn received(&mut self, bytes: Vec<u8>, result: std::io::Result<u32>) {
        self.is_receiving = false;
        self.input = bytes;
        self.unread = [0, 0];
        match result {
            Ok(count) if count > 0 => {
                self.unread[1] = count as usize;
                self.room.learn(count as usize);
            }
            _ => self.close(),
        }
    }

    /// What was sent is gone, or its memory is free again.
    pub(crate) fn sent(&mut self, completed: Completed) {
        let Completed { result, held, has_more, is_notice, .. } = completed;
        if is_notice {
            self.lent -= 1;
            if let Held::Bytes(bytes) = &held {
                self.lent_bytes -= bytes.len();
            }
        } else {
            let all = self.sending.take();
            if has_more {
                self.lent += 1;
                self.lent_bytes += all.unwrap_or(0);
            }
            self.dues.has_read();
            if result.ok().map(|count| count as usize) != all {
                self.close();
            }
        }
        if let Held::Bytes(mut bytes) = held
            && self.spares.len() < SPARES_MAX
        {
            bytes.clear();
            bytes.shrink_to(OUT_KEPT_BYTES);
            self.spares.push(bytes);
        }
    }

    /// Reads what there is to read, as far as it can be answered.
    pub(crate) fn drive(&mut self, site: &mut Site<'_>) {
        self.heard_ns = site.now_ns;
        self.is_barred = false;
        let input = std::mem::take(&mut self.input);
        let [start, end] = self.unread;
        let mut rest = &input[start..end];
        while self.state == State::Open && !self.is_placed && !self.is_full() {
            let (jobs, next) = match &mut self.end {
                End::Nvme(end) => end.receive(&mut rest, &mut self.out, site),
                End::Iscsi(end) => end.receive(&mut rest, &mut self.out, site),
            };
            self.jobs += jobs;
            match next {
                Next::More => {}
                Next::Wait => {
                    // It is another connection's turn, which will wake this one.
                    self.is_barred = !rest.is_empty();
                    break;
                }
                next => self.follow(next, site),
            }
        }
        self.unread[0] = end - rest.len();
        self.input = input;
    }

    fn follow(&mut self, next: Next, site: &mut Site<'_>) {
        match next {
            Next::More | Next::Wait => {}
            Next::Drain => self.drain(),
            Next::Delay => {
                self.silent_until_ns = site.now_ns + site.rules.wrong_secret_ns;
                self.drain();
            }
            Next::Place => {
                self.is_placed = true;
                site.wishes.orders.push(Order::Place(site.who.connection));
            }
            Next::Violated => {
                add(&site.books.counters.violations, 1);
                let until_ns = site.now_ns + TERMINATION_NS;
                self.state = State::Terminating { until_ns, has_shut: false };
            }
            Next::Close => self.close(),
        }
    }

    /// On which shard it lives from now on; the one where it is unless it waits to be moved.
    pub(crate) const fn home(&self, here: u16) -> u16 {
        match &self.end {
            End::Nvme(end) => end.home(here),
            End::Iscsi(end) => end.home(here),
        }
    }

    /// It stays on the shard where it now is.
    pub(crate) const fn settle(&mut self) {
        self.is_placed = false;
    }

    /// Whether nothing of it is under way with the kernel or a backend, so that it can be moved.
    pub(crate) const fn is_movable(&self) -> bool {
        self.is_placed && self.is_idle()
    }

    /// It has come to the shard where it lives, and begins there.
    pub(crate) fn enter(&mut self, site: &mut Site<'_>) {
        if let End::Iscsi(end) = &mut self.end {
            let next = end.enter(&mut self.out, site);
            self.follow(next, site);
        }
    }

    /// A job of this connection has ended.
    pub(crate) fn ended(&mut self, ended: Ended<Tag>, site: &mut Site<'_>) {
        self.jobs -= 1;
        let last = self.last_word();
        let (jobs, next) = match &mut self.end {
            End::Nvme(end) => (end.ended(ended, &mut self.out, site), Next::More),
            End::Iscsi(end) => end.ended(ended, &mut self.out, site),
        };
        self.out.truncate(last);
        self.jobs += jobs;
        self.follow(next, site);
    }

    // Where what is to be sent ends: nothing follows the PDU that says why the connection ends
    // (TCP 3.6.2.9).
    const fn last_word(&self) -> usize {
        match self.state {
            State::Terminating { .. } => self.out.len(),
            State::Open | State::Draining | State::Closed => usize::MAX,
        }
    }

    /// A change of this connection is kept, or has failed.
    pub(crate) fn kept(&mut self, owner: Owner, kept: Kept, site: &mut Site<'_>) {
        self.jobs -= 1;
        let last = self.last_word();
        let (jobs, next) = match (&mut self.end, owner, kept) {
            (End::Nvme(end), Owner::Slot(slot), Kept::Nvme(result)) => {
                end.kept(slot, result, &mut self.out, site);
                (0, Next::More)
            }
            (End::Iscsi(end), Owner::Task(task), Kept::Scsi(step)) => {
                end.kept(task, step, &mut self.out, site)
            }
            _ => (0, Next::More),
        };
        self.out.truncate(last);
        self.jobs += jobs;
        self.follow(next, site);
    }

    /// Tells the host of the admin queue that something has happened.
    pub(crate) fn event(&mut self, slot: Slot, result: u64) {
        let last = self.last_word();
        if let End::Nvme(end) = &mut self.end {
            end.event(slot, result, &mut self.out);
        }
        self.out.truncate(last);
    }

    /// Tries again what waits for memory or for others, unless there is much to send already.
    pub(crate) fn feed(&mut self, site: &mut Site<'_>) {
        if self.state == State::Open && self.is_full() {
            return;
        }
        let is_heard = matches!(self.state, State::Open | State::Draining);
        let (jobs, next) = match &mut self.end {
            // Nobody would hear of it: what waits is never begun.
            End::Nvme(_) if !is_heard => return,
            End::Nvme(end) => end.feed(&mut self.out, site),
            End::Iscsi(end) => end.wake(&mut self.out, site),
        };
        self.jobs += jobs;
        self.follow(next, site);
    }

    /// It has something to say that has not come from its own input, or its turn has come.
    pub(crate) fn wake(&mut self, site: &mut Site<'_>) {
        self.feed(site);
        self.drive(site);
    }

    // Whether something waits for memory or for others.
    fn is_starving(&self) -> bool {
        match &self.end {
            End::Nvme(end) => end.is_starving(),
            End::Iscsi(end) => end.is_starving(),
        }
    }

    /// Whether something waits for memory or for others of which its shard does not yet know.
    pub(crate) fn begins_to_starve(&mut self) -> bool {
        let is_new = !self.is_listed && self.is_starving();
        self.is_listed |= is_new;
        is_new
    }

    /// Whether something still waits; if not, its shard forgets that it did.
    pub(crate) fn still_starves(&mut self) -> bool {
        self.is_listed = self.is_starving();
        self.is_listed
    }

    /// Lets the kernel have what is to be sent and room for what may come, and closes the socket
    /// when it is time. From `zero_copy` bytes on they are sent in place.
    pub(crate) fn flush(
        &mut self,
        tokens: [u64; 2],
        ring: &mut Ring,
        zero_copy: usize,
        now_ns: u64,
    ) {
        if self.state == State::Closed {
            return;
        }
        if self.sending.is_none() && !self.out.is_empty() && self.silent_until_ns <= now_ns {
            let spare = self.spares.pop().unwrap_or_default();
            let bytes = std::mem::replace(&mut self.out, spare);
            self.sending = Some(bytes.len());
            self.dues.reading(true, now_ns);
            if bytes.len() >= zero_copy {
                self.lends = true;
                ring.send_in_place(&self.socket, tokens[1], bytes);
            } else {
                ring.send(&self.socket, tokens[1], bytes, 0);
            }
        }
        let is_sent = self.sending.is_none() && self.out.is_empty() && self.lent == 0;
        match self.state {
            State::Draining if is_sent && self.jobs == 0 => self.close(),
            State::Terminating { until_ns, .. } if until_ns <= now_ns => self.close(),
            State::Terminating { until_ns, has_shut: false } if is_sent => {
                self.state = State::Terminating { until_ns, has_shut: true };
                self.socket.shut_writing();
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
            let input = self.room.fit(std::mem::take(&mut self.input));
            self.unread = [0, 0];
            ring.receive(&self.socket, tokens[0], input, 0);
            self.is_receiving = true;
        }
    }

    /// Nothing more passes: what is under way ends by itself.
    pub(crate) fn close(&mut self) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.socket.shut();
            // A peer that is silent would keep what it was lent for as long as TCP waits for it.
            if self.lends {
                self.socket.abort();
            }
        }
    }

    /// Ends when everything has been answered.
    pub(crate) fn drain(&mut self) {
        if matches!(self.state, State::Open) {
            self.state = State::Draining;
        }
    }

    /// The target goes: its peer is told, and it ends when everything has been answered.
    pub(crate) fn retire(&mut self, site: &mut Site<'_>) {
        if let End::Iscsi(end) = &mut self.end {
            end.announce_end(&mut self.out, site);
        }
        self.drain();
    }

    /// Whether it can be freed.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Closed && self.is_idle()
    }

    // Nothing of it is with the kernel or a backend.
    const fn is_idle(&self) -> bool {
        let has_sent = self.sending.is_none() && self.lent == 0;
        has_sent && !self.is_receiving && self.jobs == 0
    }

    /// Whether bytes wait that may now be read.
    pub(crate) fn can_go_on(&self) -> bool {
        let is_able = self.state == State::Open && !self.is_placed && !self.is_full();
        is_able && !self.is_barred && self.unread[0] < self.unread[1]
    }

    /// Something about it that an operator is to know.
    pub(crate) fn note(&self, what: Happening, why: Why) -> Event {
        Event { what, why, peer: self.peer, host: self.host().cloned() }
    }

    /// Whose it is, if its peer has said so.
    pub(crate) const fn host(&self) -> Option<&Arc<str>> {
        match &self.end {
            End::Nvme(end) => end.host(),
            End::Iscsi(end) => end.initiator(),
        }
    }

    /// Whether it is the admin queue of a controller, or of a session.
    pub(crate) const fn is_logged_in(&self) -> bool {
        match &self.end {
            End::Nvme(end) => matches!(end.role, Role::Admin(_)),
            End::Iscsi(end) => end.is_member(),
        }
    }

    /// Whether it has not said what it is for.
    pub(crate) const fn is_new(&self) -> bool {
        match &self.end {
            End::Nvme(end) => matches!(end.role, Role::New),
            End::Iscsi(end) => end.is_new(),
        }
    }

    /// The controller whose I/O queue it carries.
    pub(crate) const fn controller(&self) -> Option<u16> {
        match &self.end {
            End::Nvme(NvmeEnd { role: Role::Io(session), .. }) => Some(session.controller),
            _ => None,
        }
    }

    /// Namespaces have been replaced.
    pub(crate) fn refresh(&mut self) {
        if let End::Nvme(NvmeEnd { role: Role::Io(session), .. }) = &mut self.end {
            session.refresh();
        }
    }

    /// Gives back memory that commands hold to a shard.
    pub(crate) fn release(&mut self, shard: u16, pool: &mut Pool) {
        if let End::Nvme(NvmeEnd { role: Role::Io(session), .. }) = &mut self.end {
            session.release(shard, pool);
        }
    }
}
