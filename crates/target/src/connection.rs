//! One connection: the bytes from and to its socket, and the protocol end that they belong to.
//!
//! ```text
//! received ─► drive ─► End ─► out ─► flush ─► sent
//! ```
//!
//! Invariants:
//! - One receive and one send are under way at most; a connection is freed when neither is and all
//!   its jobs have ended.
//! - It reads no further while it has [`held::OUT_BYTES`] to send, or while it ends.

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

/// The protocol end of a connection.
#[expect(clippy::large_enum_variant, reason = "each connection is boxed already")]
pub(crate) enum End {
    Nvme(NvmeEnd),
    Iscsi(IscsiEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Nothing more is read; the socket is closed when everything has been answered and sent.
    Draining,
    /// The socket is closed once `out` has been sent and the peer has closed, or at `until_ns`.
    Terminating {
        until_ns: u64,
        has_shut: bool,
    },
    /// The socket is shut: nothing more is sent or received.
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
    /// Bytes received, and the range of them (start, end) that has not been parsed.
    input: Vec<u8>,
    unread: [usize; 2],
    /// Bytes to send, and empty buffers for the next.
    out: Vec<u8>,
    spares: Vec<Vec<u8>>,
    /// How many bytes the send under way has; `None` if there is none.
    sending: Option<usize>,
    /// Zero-copy sends whose memory the kernel still uses, their bytes, and whether there ever
    /// was one.
    lent: u32,
    lent_bytes: usize,
    lends: bool,
    /// Whose memory the connection uses, that holder's account, and the unsent bytes charged to it.
    holder: Holder,
    pub(crate) account: Account,
    weight: usize,
    dues: Dues,
    is_receiving: bool,
    room: Room,
    /// Jobs that have not ended.
    pub(crate) jobs: u32,
    /// The connection waits to be moved to another shard.
    is_placed: bool,
    /// The shard has listed the connection as waiting for memory or for other commands.
    is_listed: bool,
    /// The rest of the input cannot be parsed before another event wakes the connection.
    is_barred: bool,
}

/// Capacity that an empty send buffer keeps, in bytes.
const OUT_KEPT_BYTES: usize = 1 << 20;
/// Empty send buffers that a connection keeps.
const SPARES_MAX: usize = 4;
/// How long a peer may take to close after the PDU that terminates the connection (TCP 3.6.1;
/// Linux waits as long).
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

    /// Takes a completed receive; closes the connection at an error or the end of the stream.
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

    /// Takes a completed send, or the notice that a zero-copy send's memory is free again.
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

    /// Parses received bytes until they end, too much waits to be sent, or the end has to wait.
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
                    // Another connection has to act first; it will wake this one.
                    self.is_barred = !rest.is_empty();
                    break;
                }
                next => self.follow(next, site),
            }
        }
        self.unread[0] = end - rest.len();
        self.input = input;
    }

    // Does what the protocol end wants of its connection.
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

    /// The shard to which the connection belongs; `here` unless it waits to be moved.
    pub(crate) const fn home(&self, here: u16) -> u16 {
        match &self.end {
            End::Nvme(end) => end.home(here),
            End::Iscsi(end) => end.home(here),
        }
    }

    /// Ends the wait to be moved: the connection is on its home shard.
    pub(crate) const fn settle(&mut self) {
        self.is_placed = false;
    }

    /// Whether the connection waits to be moved and nothing of it is with the kernel or a backend.
    pub(crate) const fn is_movable(&self) -> bool {
        self.is_placed && self.is_idle()
    }

    /// Begins on the home shard: an iSCSI connection enters its session.
    pub(crate) fn enter(&mut self, site: &mut Site<'_>) {
        if let End::Iscsi(end) = &mut self.end {
            let next = end.enter(&mut self.out, site);
            self.follow(next, site);
        }
    }

    /// Hands an ended job to the command that it is of.
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

    // Where `out` has to end: nothing follows the PDU that terminates the connection (TCP 3.6.2.9).
    const fn last_word(&self) -> usize {
        match self.state {
            State::Terminating { .. } => self.out.len(),
            State::Open | State::Draining | State::Closed => usize::MAX,
        }
    }

    /// Hands the outcome of a stored change of reservations to the command that made it.
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

    /// Completes an Asynchronous Event Request of the admin queue.
    pub(crate) fn event(&mut self, slot: Slot, result: u64) {
        let last = self.last_word();
        if let End::Nvme(end) = &mut self.end {
            end.event(slot, result, &mut self.out);
        }
        self.out.truncate(last);
    }

    /// Tries again commands that wait for memory or for other commands, unless `out` is full.
    pub(crate) fn feed(&mut self, site: &mut Site<'_>) {
        if self.state == State::Open && self.is_full() {
            return;
        }
        let is_heard = matches!(self.state, State::Open | State::Draining);
        let (jobs, next) = match &mut self.end {
            // No answer could be sent: waiting commands are never begun.
            End::Nvme(_) if !is_heard => return,
            End::Nvme(end) => end.feed(&mut self.out, site),
            End::Iscsi(end) => end.wake(&mut self.out, site),
        };
        self.jobs += jobs;
        self.follow(next, site);
    }

    /// Continues after an event of another connection: waiting commands first, then input.
    pub(crate) fn wake(&mut self, site: &mut Site<'_>) {
        self.feed(site);
        self.drive(site);
    }

    // Whether a command waits for memory or for other commands.
    fn is_starving(&self) -> bool {
        match &self.end {
            End::Nvme(end) => end.is_starving(),
            End::Iscsi(end) => end.is_starving(),
        }
    }

    /// Whether a command waits for memory or others and the shard has not listed the connection
    /// yet.
    pub(crate) fn begins_to_starve(&mut self) -> bool {
        let is_new = !self.is_listed && self.is_starving();
        self.is_listed |= is_new;
        is_new
    }

    /// Whether a command still waits; if none does, the shard's list no longer has the connection.
    pub(crate) fn still_starves(&mut self) -> bool {
        self.is_listed = self.is_starving();
        self.is_listed
    }

    /// Submits the send of `out` and the next receive, and closes the socket when its state says
    /// so. From `zero_copy` bytes on the send is zero copy.
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
            // Bytes that have come are parsed first.
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

    /// Shuts the socket; sends, receives and jobs under way end by themselves.
    pub(crate) fn close(&mut self) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.socket.shut();
            // A silent peer would hold zero-copy memory for as long as TCP retransmits.
            if self.lends {
                self.socket.abort();
            }
        }
    }

    /// Stops reading; the connection ends when everything has been answered.
    pub(crate) fn drain(&mut self) {
        if matches!(self.state, State::Open) {
            self.state = State::Draining;
        }
    }

    /// Ends because the target stops: announces it to an initiator, then drains.
    pub(crate) fn retire(&mut self, site: &mut Site<'_>) {
        if let End::Iscsi(end) = &mut self.end {
            end.announce_end(&mut self.out, site);
        }
        self.drain();
    }

    /// Whether the connection can be freed: closed, with nothing under way.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Closed && self.is_idle()
    }

    // Whether nothing of the connection is with the kernel or a backend.
    const fn is_idle(&self) -> bool {
        let has_sent = self.sending.is_none() && self.lent == 0;
        has_sent && !self.is_receiving && self.jobs == 0
    }

    /// Whether received bytes wait that may now be parsed.
    pub(crate) fn can_go_on(&self) -> bool {
        let is_able = self.state == State::Open && !self.is_placed && !self.is_full();
        is_able && !self.is_barred && self.unread[0] < self.unread[1]
    }

    /// An event about this connection for the operator.
    pub(crate) fn note(&self, what: Happening, why: Why) -> Event {
        Event { what, why, peer: self.peer, host: self.host().cloned() }
    }

    /// The name of the host or initiator; `None` before it has named itself.
    pub(crate) const fn host(&self) -> Option<&Arc<str>> {
        match &self.end {
            End::Nvme(end) => end.host(),
            End::Iscsi(end) => end.initiator(),
        }
    }

    /// Whether the connection carries a controller's admin queue or is part of an iSCSI session.
    pub(crate) const fn is_logged_in(&self) -> bool {
        match &self.end {
            End::Nvme(end) => matches!(end.role, Role::Admin(_)),
            End::Iscsi(end) => end.is_member(),
        }
    }

    /// Whether the connection has not finished Connect or login.
    pub(crate) const fn is_new(&self) -> bool {
        match &self.end {
            End::Nvme(end) => matches!(end.role, Role::New),
            End::Iscsi(end) => end.is_new(),
        }
    }

    /// The controller whose I/O queue the connection carries, if it carries one.
    pub(crate) const fn controller(&self) -> Option<u16> {
        match &self.end {
            End::Nvme(NvmeEnd { role: Role::Io(session), .. }) => Some(session.controller),
            _ => None,
        }
    }

    /// Looks up the host's namespaces again, after namespaces were replaced.
    pub(crate) fn refresh(&mut self) {
        if let End::Nvme(NvmeEnd { role: Role::Io(session), .. }) = &mut self.end {
            session.refresh();
        }
    }

    /// Frees the memory of all commands into the shard's pool.
    pub(crate) fn release(&mut self, shard: u16, pool: &mut Pool) {
        if let End::Nvme(NvmeEnd { role: Role::Io(session), .. }) = &mut self.end {
            session.release(shard, pool);
        }
    }
}
