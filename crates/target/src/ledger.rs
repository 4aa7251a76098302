//! Commands that a shard has answered in one wake-up, counted together at its end: one look at the
//! clock serves them all, and what has taken no second wake-up has taken time, too.

use std::sync::Arc;

use backend::pool::{Account, Pool};

use super::counters::{Counters, add};
use super::meter::Kind;
use super::subsystem::Namespace;

/// A command that has been answered.
pub(crate) struct Answered {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) kind: Kind,
    /// Of data that was read or written.
    pub(crate) bytes: u32,
    pub(crate) has_failed: bool,
    pub(crate) taken_ns: u64,
    /// It is one of those in flight.
    pub(crate) was_begun: bool,
}

/// See the module's description.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Each with whose it was.
    answered: Vec<(Account, Answered)>,
}

impl Ledger {
    /// Notes a command of an account.
    pub(crate) fn note(&mut self, account: Account, answered: Answered) {
        self.answered.push((account, answered));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.answered.is_empty()
    }

    /// Counts what was noted, at the time that it now is, for the shard with these counters.
    pub(crate) fn count(&mut self, shard: u16, counters: &Counters, pool: &mut Pool, now_ns: u64) {
        for (account, one) in self.answered.drain(..) {
            pool.note(account, if one.has_failed { 0 } else { one.bytes });
            let namespace = one.namespace.meter.shard(shard);
            if one.was_begun {
                namespace.end();
            }
            let kind = namespace.of(one.kind);
            add(&kind.commands, 1);
            kind.latency.record(now_ns.saturating_sub(one.taken_ns));
            if one.has_failed {
                add(&kind.failures, 1);
                continue;
            }
            let bytes = u64::from(one.bytes);
            add(&kind.bytes, bytes);
            match one.kind {
                Kind::Read => {
                    add(&counters.reads, 1);
                    add(&counters.read_bytes, bytes);
                }
                Kind::Write => {
                    add(&counters.writes, 1);
                    add(&counters.write_bytes, bytes);
                }
                Kind::Other => {}
            }
        }
    }
}
