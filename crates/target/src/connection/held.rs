//! What a connection holds, and how long its peer may do nothing about it.

use backend::pool::{Account, Holder, Pool};

use super::super::config::Limits;
use super::super::counters::add;
use super::super::dues::Late;
use super::super::site::Site;
use super::super::witness::{Happening, Why};
use super::{Connection, End, State};

/// Bytes to send, those on their way too, with which nothing more is read or begun.
const OUT_BYTES: usize = 1 << 20;
/// The same where no I/O is done.
const SMALL_OUT_BYTES: usize = 64 << 10;
/// How long an initiator may say nothing before it is asked whether it is there, and how long it
/// may take to answer.
const SILENCE_NS: u64 = 30_000_000_000;

impl Connection {
    /// A time has come that [`Connection::deadline_ns`] has named: nothing follows, unless its peer
    /// is only asked whether it is there, or has moved something meanwhile.
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
            // What has waited is sent now.
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
            // It is answered that what it waits for has not come.
            End::Nvme(end) if end.waits_until_ns().is_some() => self.feed(site),
            _ => self.close(),
        }
    }

    // Its peer keeps memory that it does nothing with: what it was sent is forgotten, too.
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

    /// When something is to be done about it if nothing happens; the largest number if nothing is.
    pub(crate) fn deadline_ns(&self, limits: &Limits) -> u64 {
        match self.state {
            State::Closed => u64::MAX,
            _ => self.own_deadline_ns(limits).min(self.dues.deadline_ns(limits.stall.as_ns())),
        }
    }

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

    // Bytes of answers that the socket has not taken, or has in this memory.
    fn unsent(&self) -> usize {
        self.out.len() + self.sending.unwrap_or(0) + self.lent_bytes
    }

    // It has so much to send that nothing more is begun for it.
    pub(super) fn is_full(&self) -> bool {
        let most = if self.holder == Holder::Nobody { SMALL_OUT_BYTES } else { OUT_BYTES };
        self.unsent() >= most
    }

    /// Notes whose memory it uses now and how much of that is unsent, and what its peer owes.
    pub(crate) fn weigh(&mut self, pool: &mut Pool, now_ns: u64) {
        let (holder, came) = match &self.end {
            End::Nvme(end) => (end.holder(), end.owed()),
            End::Iscsi(end) => (end.holder(), end.owed()),
        };
        // An end that is over has its memory until it is freed.
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

    /// It holds nothing any more: it leaves its shard.
    pub(crate) fn unburden(&mut self, pool: &mut Pool) {
        pool.hold(self.account, self.weight, 0);
        self.weight = 0;
        if self.holder != Holder::Nobody {
            pool.close(self.account);
        }
        (self.holder, self.account) = (Holder::Nobody, Account::NOBODY);
    }

    /// Frees memory that it does not use.
    pub(crate) fn shrink(&mut self) {
        self.spares = Vec::new();
        if self.out.is_empty() {
            self.out = Vec::new();
        }
    }
}
