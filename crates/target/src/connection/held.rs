//! The memory that a connection holds, and the deadlines of its peer.

use backend::pool::{Account, Holder, Pool};

use super::super::config::Limits;
use super::super::counters::add;
use super::super::dues::Late;
use super::super::site::Site;
use super::super::witness::{Happening, Why};
use super::{Connection, End, State};

/// Unsent bytes, those being sent included, from which on nothing more is read or begun.
const OUT_BYTES: usize = 1 << 20;
/// The same for connections without I/O commands.
const SMALL_OUT_BYTES: usize = 64 << 10;
/// How long an initiator may be silent before the target pings it, and how long the answer may
/// take.
const SILENCE_NS: u64 = 30_000_000_000;

impl Connection {
    /// Acts on a deadline of [`Connection::deadline_ns`]: closes the connection, unless the peer
    /// has moved data since, a delayed answer is due, or an initiator is pinged first.
    pub(crate) fn expire(&mut self, limits: &Limits, site: &mut Site<'_>) {
        let patience_ns = limits.stall.as_ns();
        if let End::Iscsi(end) = &mut self.end {
            end.look_at_owed(site);
            self.dues.data(end.owed(), site.now_ns);
        }
        let acknowledged = || self.socket.acknowledged_bytes().ok();
        match self.dues.late(patience_ns, site.now_ns, acknowledged) {
            Some(late) => return self.give_up(late, site),
            None if self.own_deadline_ns(limits) > site.now_ns => return,
            None => {}
        }
        if self.state == State::Draining {
            // The delayed answer is sent now.
            self.silent_until_ns = 0;
            return;
        }
        if self.state == State::Open && self.is_new() {
            site.wishes.notes.push((Happening::Silent, Why::Plain));
        }
        match &mut self.end {
            End::Iscsi(end) if self.state == State::Open => {
                let next = end.ask(&mut self.out, site);
                self.heard_ns = site.now_ns;
                self.follow(next, site);
            }
            // The command that waits is refused: its time is over.
            End::Nvme(end) if end.waits_until_ns().is_some() => self.feed(site),
            _ => self.close(),
        }
    }

    // Closes and resets the connection of a peer that holds memory without progress.
    fn give_up(&mut self, late: Late, site: &mut Site<'_>) {
        match late {
            Late::Data => {
                add(&site.books.counters.late_data, 1);
                site.wishes.notes.push((Happening::LateData, Why::Plain));
            }
            Late::Reading => {
                add(&site.books.counters.unread, 1);
                site.wishes.notes.push((Happening::Unread, Why::Plain));
            }
        }
        self.lends = true;
        self.close();
    }

    /// When [`Connection::expire`] is due if nothing happens; `u64::MAX` if never.
    pub(crate) fn deadline_ns(&self, limits: &Limits) -> u64 {
        match self.state {
            State::Closed => u64::MAX,
            _ => self.own_deadline_ns(limits).min(self.dues.deadline_ns(limits.stall.as_ns())),
        }
    }

    // The deadline of the connection's state, without what its peer owes.
    fn own_deadline_ns(&self, limits: &Limits) -> u64 {
        match (self.state, &self.end) {
            (State::Terminating { until_ns, .. }, _) => until_ns,
            (State::Open, End::Nvme(end)) if let Some(until_ns) = end.waits_until_ns() => until_ns,
            (State::Open, _) if self.is_new() => self.since_ns + limits.handshake.as_ns(),
            (State::Draining, _) if self.silent_until_ns > 0 => self.silent_until_ns,
            (State::Open, End::Iscsi(_)) => self.heard_ns + SILENCE_NS,
            _ => u64::MAX,
        }
    }

    // Bytes of answers in this process's memory: unsent, being sent, or lent to the kernel.
    fn unsent(&self) -> usize {
        self.out.len() + self.sending.unwrap_or(0) + self.lent_bytes
    }

    // Whether so much is unsent that nothing more is read or begun.
    pub(super) fn is_full(&self) -> bool {
        let most = if self.holder == Holder::Nobody { SMALL_OUT_BYTES } else { OUT_BYTES };
        self.unsent() >= most
    }

    /// Charges unsent bytes to the account of the connection's holder, and notes what its peer
    /// owes.
    pub(crate) fn weigh(&mut self, pool: &mut Pool, now_ns: u64) {
        let (holder, came) = match &self.end {
            End::Nvme(end) => (end.holder(), end.owed()),
            End::Iscsi(end) => (end.holder(), end.owed()),
        };
        // A connection that has ended keeps its holder until it is freed.
        if holder != self.holder && holder != Holder::Nobody {
            self.unburden(pool);
            (self.holder, self.account) = (holder, pool.open(holder));
        }
        let weight = self.unsent();
        if weight != self.weight {
            pool.hold(self.account, self.weight, weight);
            self.weight = weight;
        }
        self.dues.data(came, now_ns);
    }

    /// Closes the connection's account: it leaves its shard.
    pub(crate) fn unburden(&mut self, pool: &mut Pool) {
        pool.hold(self.account, self.weight, 0);
        self.weight = 0;
        if self.holder != Holder::Nobody {
            pool.close(self.account);
        }
        (self.holder, self.account) = (Holder::Nobody, Account::NOBODY);
    }

    /// Frees unused send buffers.
    pub(crate) fn shrink(&mut self) {
        self.spares = Vec::new();
        if self.out.is_empty() {
            self.out = Vec::new();
        }
    }
}
