//! Commands that a shard has answered in one wake-up, counted together at its end: one reading of
//! the clock serves all, and commands answered in the wake-up that took them have a latency, too.

use std::sync::Arc;

use backend::pool::{Account, Pool};

use super::counters::{Counters, add};
use super::meter::Kind;
use super::subsystem::Namespace;

/// A command that has been answered.
pub(crate) struct Answered {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) kind: Kind,
    /// Bytes of data that were read or written.
    pub(crate) bytes: u32,
    pub(crate) has_failed: bool,
    pub(crate) taken_ns: u64,
    /// Whether the command was counted as in flight.
    pub(crate) was_begun: bool,
}

/// See the module's description.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Answered commands, each with its account.
    answered: Vec<(Account, Answered)>,
}

impl Ledger {
    /// Records an answered command of an account.
    pub(crate) fn note(&mut self, account: Account, answered: Answered) {
        self.answered.push((account, answered));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.answered.is_empty()
    }

    /// Adds the recorded commands to the counters of the shard, the namespaces and the accounts,
    /// with `now_ns` as the time of their answers.
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
