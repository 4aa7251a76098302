//! The state of a simulated world.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar};

use sys::block::Block;
use sys::event::Waker;
use sys::ring::{Completed, Held};
use workload::Draw;

use super::net::{End, Link, Parcel, WINDOW, Waiting, segment};

/// What a thread waits for, besides its deadline.
#[derive(Debug)]
pub(crate) enum Wait {
    /// A completion of its ring.
    Ring(usize),
    /// Bytes to read, or a waker.
    Stream(usize, Option<Waker>),
    Waker(Waker),
    /// The handshake of a connection.
    Dial(usize),
    /// Another thread's end.
    Thread(usize),
    /// Only its turn.
    Turn,
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) process: usize,
    pub(crate) bell: Arc<Condvar>,
    /// What it waits for, and its deadline; `None` while it runs.
    pub(crate) wait: Option<(Wait, Option<u64>)>,
    /// It does not run before this time, like a thread without a processor.
    pub(crate) stalled_until_ns: u64,
    pub(crate) is_killed: bool,
    pub(crate) has_ended: bool,
}

/// The requests of a ring, and its completions.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Completions; with that of an accept, the new end.
    pub(crate) ended: VecDeque<(Completed, Option<usize>)>,
    pub(crate) hears: Vec<(u64, Waker, Block)>,
    /// Requests that have not ended.
    pub(crate) in_flight: usize,
}

#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) process: usize,
    pub(crate) is_open: bool,
    /// The ring that accepts connections here, and its token.
    pub(crate) accepts: Option<(usize, u64)>,
    /// Connections that are not accepted yet.
    pub(crate) backlog: VecDeque<usize>,
}

/// A future event.
#[derive(Debug)]
pub(crate) enum Event {
    /// The next parcel for this end arrives.
    Arrival(usize),
    /// A connection request reaches an address, for the server's end.
    Connection(SocketAddr, usize),
    /// The dialling end learns whether a listener was there.
    Answer(usize, bool),
}

/// The state of a simulated world; one thread at a time changes it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now_ns: u64,
    pub(crate) draw: Draw,
    sequence: u64,
    /// Turns since time last passed.
    turns: u32,
    digest: DefaultHasher,
    pub(crate) events: BTreeMap<(u64, u64), Event>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) running: usize,
    pub(crate) rings: Vec<Requests>,
    pub(crate) ends: Vec<End>,
    pub(crate) places: Vec<Place>,
    pub(crate) links: Vec<Link>,
    /// The link to an address; the first link if none is given.
    pub(crate) ways: BTreeMap<SocketAddr, usize>,
    pub(crate) processes: usize,
    pub(crate) is_over: bool,
}

/// When a world begins: so no time is 0.
const BEGIN_NS: u64 = 1_000_000_000;

impl State {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now_ns: BEGIN_NS,
            draw: Draw::new(seed),
            sequence: 0,
            turns: 0,
            digest: DefaultHasher::new(),
            events: BTreeMap::new(),
            threads: Vec::new(),
            running: 0,
            rings: Vec::new(),
            ends: Vec::new(),
            places: Vec::new(),
            links: vec![Link::default()],
            ways: BTreeMap::new(),
            processes: 0,
            is_over: false,
        }
    }

    /// Adds an event to the digest, so that two runs can be compared.
    pub(crate) fn note(&mut self, what: impl Hash) {
        (self.now_ns, what).hash(&mut self.digest);
    }

    /// Counts a turn. Returns how many there were since time last passed.
    pub(crate) const fn count_turn(&mut self) -> u32 {
        self.turns += 1;
        self.turns
    }

    /// Sets the time to `at_ns`.
    pub(crate) const fn pass_to(&mut self, at_ns: u64) {
        (self.now_ns, self.turns) = (at_ns, 0);
    }

    /// The hash of all events so far.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    /// Adds an event at `at_ns`.
    pub(crate) fn expect(&mut self, at_ns: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((at_ns, self.sequence), event);
    }

    /// Handles all events that are due.
    pub(crate) fn happen(&mut self) {
        while let Some((&(at_ns, sequence), _)) = self.events.first_key_value() {
            if at_ns > self.now_ns {
                return;
            }
            let Some(event) = self.events.remove(&(at_ns, sequence)) else { return };
            match event {
                Event::Arrival(end) => self.arrive(end),
                Event::Connection(address, end) => self.connect(address, end),
                Event::Answer(end, is_there) => {
                    let state = &mut self.ends[end].state;
                    (state.is_connected, state.is_reset) = (true, state.is_reset || !is_there);
                }
            }
        }
    }

    // The next parcel for end `to` arrives, unless the link is cut.
    fn arrive(&mut self, to: usize) {
        let now_ns = self.now_ns;
        let clear_ns = self.link(to).clear_ns(now_ns).max(self.ends[to].arrivals.held_until_ns);
        if clear_ns > now_ns {
            self.expect(clear_ns, Event::Arrival(to));
            return;
        }
        let Some(parcel) = self.ends[to].coming.pop_front() else { return };
        self.note((to, parcel.weight()));
        let end = &mut self.ends[to];
        match parcel {
            Parcel::Bytes(bytes) if end.state.is_closed && !end.state.is_reset => {
                end.unread -= bytes.len();
                self.reset(to);
            }
            Parcel::Bytes(bytes) if end.state.is_deaf || end.state.is_closed => {
                end.unread -= bytes.len();
                self.go_on_sending(to ^ 1);
            }
            Parcel::Bytes(bytes) => {
                end.inbox.extend(&bytes);
                self.ends[to ^ 1].acknowledged += bytes.len() as u64;
            }
            Parcel::Fin => end.state.is_finished = true,
            Parcel::Reset => self.break_off(to),
        }
        self.go_on_receiving(to);
    }

    /// A connection request reaches `address`: it is queued at the listener, or refused.
    fn connect(&mut self, address: SocketAddr, end: usize) {
        let link = self.link(end);
        let back_ns = link.clear_ns(self.now_ns) + link.latency_ns;
        let is_it = |place: &&mut Place| place.address == address && place.is_open;
        let place = self.places.iter_mut().find(is_it);
        let process = place.as_ref().map(|place| place.process);
        if let Some(place) = place {
            place.backlog.push_back(end);
        }
        if let Some(process) = process {
            self.ends[end].process = process;
            self.ends[end].state.is_connected = true;
        } else {
            self.ends[end].state.is_closed = true;
        }
        self.expect(back_ns, Event::Answer(end ^ 1, process.is_some()));
        self.go_on_accepting();
    }

    /// The link of an end.
    pub(crate) fn link(&self, end: usize) -> Link {
        self.links[self.ends[end].link]
    }

    /// Opens a connection. Returns the number of the dialling end; the server's end has the next
    /// number.
    pub(crate) fn dial(&mut self, address: SocketAddr, process: usize) -> usize {
        let link = self.ways.get(&address).copied().unwrap_or(0);
        let number = self.ends.len();
        let port = u16::try_from(40_000 + number % 20_000).unwrap_or(u16::MAX);
        let own = SocketAddr::from(([127, 0, 0, 1], port));
        self.ends.push(End::new(own, link, process));
        self.ends.push(End::new(address, link, usize::MAX));
        let at_ns = self.links[link].arrival_ns(self.now_ns, 0, &mut self.draw);
        self.expect(at_ns, Event::Connection(address, number + 1));
        number
    }

    /// Completes accepts with queued connections.
    pub(crate) fn go_on_accepting(&mut self) {
        for number in 0..self.places.len() {
            while let Some((ring, token)) = self.places[number].accepts
                && let Some(end) = self.places[number].backlog.pop_front()
            {
                let completed = Completed {
                    token,
                    result: Ok(0),
                    held: Held::Nothing,
                    accepted: None,
                    has_more: true,
                    is_notice: false,
                };
                self.rings[ring].ended.push_back((completed, Some(end)));
            }
        }
    }

    /// Sends bytes from an end, in segments.
    pub(crate) fn transmit(&mut self, from: usize, mut bytes: &[u8]) {
        let link = self.link(from);
        while !bytes.is_empty() {
            let (first, rest) = bytes.split_at(segment(bytes.len(), &mut self.draw));
            bytes = rest;
            let at_ns = link.arrival_ns(self.now_ns, first.len(), &mut self.draw);
            self.ends[from ^ 1].unread += first.len();
            self.post(from ^ 1, Parcel::Bytes(first.to_vec()), at_ns);
        }
    }

    /// Puts a parcel on its way, to arrive at `at_ns` but after earlier ones.
    fn post(&mut self, to: usize, parcel: Parcel, at_ns: u64) {
        let end = &mut self.ends[to];
        let at_ns = at_ns.max(end.arrivals.last_ns);
        end.arrivals.last_ns = at_ns;
        end.coming.push_back(parcel);
        self.expect(at_ns, Event::Arrival(to));
    }

    /// Sends the end of a connection, or a reset, after all bytes.
    fn post_end(&mut self, from: usize, parcel: Parcel) {
        let at_ns = self.link(from).arrival_ns(self.now_ns, 0, &mut self.draw);
        self.post(from ^ 1, parcel, at_ns);
    }

    /// Shuts the sending direction of an end.
    pub(crate) fn shut_writing(&mut self, from: usize) {
        if !std::mem::replace(&mut self.ends[from].state.has_shut, true) {
            if let Some(waiting) = self.ends[from].send.take() {
                self.fail(waiting, ErrorKind::BrokenPipe);
            }
            self.post_end(from, Parcel::Fin);
        }
    }

    /// Shuts both directions of an end.
    pub(crate) fn shut(&mut self, from: usize) {
        self.shut_writing(from);
        self.ends[from].state.is_deaf = true;
        let dropped = self.ends[from].inbox.len();
        self.ends[from].inbox.clear();
        self.ends[from].unread -= dropped;
        self.go_on_receiving(from);
        self.go_on_sending(from ^ 1);
    }

    /// Resets a connection from this end; if the link is cut, parcels under way to the peer are
    /// dropped.
    pub(crate) fn reset(&mut self, from: usize) {
        if std::mem::replace(&mut self.ends[from].state.is_reset, true) {
            return;
        }
        let is_cut = self.link(from).clear_ns(self.now_ns) > self.now_ns;
        if is_cut {
            let peer = &mut self.ends[from ^ 1];
            let left = std::mem::take(&mut peer.coming);
            let bytes: usize = left.iter().map(Parcel::weight).sum();
            peer.unread -= bytes;
        }
        self.break_off(from);
        self.post_end(from, Parcel::Reset);
    }

    /// Resets a connection for the end that dialled. What it has sent stays under way until
    /// `until_ns`, and only then does the other end learn of the reset.
    pub(crate) fn strand(&mut self, end: usize, until_ns: u64) {
        self.break_off(end);
        self.ends[end ^ 1].arrivals.held_until_ns = until_ns;
        self.post_end(end, Parcel::Reset);
    }

    // Marks an end as reset, and completes its requests.
    fn break_off(&mut self, end: usize) {
        self.ends[end].state.is_reset = true;
        if let Some(waiting) = self.ends[end].send.take() {
            self.fail(waiting, ErrorKind::ConnectionReset);
        }
        self.go_on_receiving(end);
    }

    /// Closes an end whose last handle was dropped.
    pub(crate) fn close(&mut self, end: usize) {
        if std::mem::replace(&mut self.ends[end].state.is_closed, true) {
            return;
        }
        if self.ends[end].state.forgets || !self.ends[end].inbox.is_empty() {
            self.reset(end);
        } else {
            self.shut(end);
        }
    }

    /// Closes a listener; connections that are not accepted are reset.
    pub(crate) fn shut_place(&mut self, number: usize) {
        let place = &mut self.places[number];
        place.is_open = false;
        let left = std::mem::take(&mut place.backlog);
        if let Some((ring, token)) = place.accepts.take() {
            self.end(ring, token, Err(ErrorKind::InvalidInput.into()), Held::Nothing);
        }
        for end in left {
            self.ends[end].state.forgets = true;
            self.close(end);
        }
    }

    /// Completes a request with an error.
    fn fail(&mut self, waiting: Waiting, kind: ErrorKind) {
        let Waiting { ring, token, bytes, .. } = waiting;
        self.end(ring, token, Err(kind.into()), Held::Bytes(bytes));
    }

    /// Completes a request of a ring.
    pub(crate) fn end(&mut self, ring: usize, token: u64, result: Result<u32, Error>, held: Held) {
        self.rings[ring].in_flight -= 1;
        let completed =
            Completed { token, result, held, accepted: None, has_more: false, is_notice: false };
        self.rings[ring].ended.push_back((completed, None));
    }

    /// Completes the pending receive of an end, if it can be.
    pub(crate) fn go_on_receiving(&mut self, number: usize) {
        let end = &mut self.ends[number];
        if !end.is_readable() {
            return;
        }
        let Some(Waiting { ring, token, mut bytes, from }) = end.receive.take() else { return };
        let result = if end.inbox.is_empty() {
            let is_broken = end.state.is_reset && !end.state.is_deaf;
            if is_broken { Err(ErrorKind::ConnectionReset.into()) } else { Ok(0) }
        } else {
            Ok(u32::try_from(end.take(&mut bytes[from..], &mut self.draw)).unwrap_or(u32::MAX))
        };
        self.end(ring, token, result, Held::Bytes(bytes));
        self.go_on_sending(number ^ 1);
    }

    /// Sends bytes of the pending send of an end, as far as the window has room.
    pub(crate) fn go_on_sending(&mut self, number: usize) {
        let room = WINDOW.saturating_sub(self.ends[number ^ 1].unread);
        let Some(mut waiting) = self.ends[number].send.take() else { return };
        let upto = waiting.bytes.len().min(waiting.from + room);
        let going = waiting.bytes[waiting.from..upto].to_vec();
        self.transmit(number, &going);
        waiting.from = upto;
        if upto < waiting.bytes.len() {
            self.ends[number].send = Some(waiting);
            return;
        }
        let Waiting { ring, token, bytes, .. } = waiting;
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.end(ring, token, Ok(count), Held::Bytes(bytes));
    }
}

impl Parcel {
    /// Length in bytes; 0 without any.
    fn weight(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Fin | Self::Reset => 0,
        }
    }
}
