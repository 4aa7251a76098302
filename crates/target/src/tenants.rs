//! How much each host uses of a shard, for an operator who looks for greedy hosts.
//!
//! Invariant: counts never fall. Usage of a host outlives its last connection.

use std::sync::Arc;

use backend::pool::Work;

use super::roster::Roster;

/// What a host uses of one shard, or of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Connections with I/O queues, or of sessions.
    pub connections: u64,
    /// Bytes of memory that its data and answers in transit take now.
    pub memory_bytes: u64,
    /// Times that one of its commands has had to wait for memory.
    pub memory_waits: u64,
    /// Commands that were answered, failed ones included.
    pub commands: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
}

impl Usage {
    /// Adds the usage of `other`.
    pub const fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.memory_bytes += other.memory_bytes;
        self.memory_waits += other.memory_waits;
        self.commands += other.commands;
        self.bytes += other.bytes;
    }

    // The counters of an account's work.
    const fn of(work: &Work) -> Self {
        Self {
            connections: 0,
            memory_bytes: 0,
            memory_waits: work.waits,
            commands: work.commands,
            bytes: work.bytes,
        }
    }
}

/// By the names of hosts.
pub(crate) type ByHost = Roster<Usage>;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    gone: ByHost,
}

impl Tenants {
    /// Saves the work of a host's account, which is about to be closed.
    pub(crate) fn leave(&mut self, host: &str, work: &Work) {
        if *work != Work::default() {
            self.gone.row(host).add(&Usage::of(work));
        }
    }

    /// The usage of all hosts: open accounts (host, connections, bytes held, work), and the saved
    /// work of closed ones.
    pub(crate) fn report(
        &self,
        accounts: impl Iterator<Item = (Arc<str>, u64, u64, Work)>,
    ) -> ByHost {
        let mut all = self.gone.clone();
        for (host, connections, memory_bytes, work) in accounts {
            all.row(&host).add(&Usage { connections, memory_bytes, ..Usage::of(&work) });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_has_used_stays_when_it_goes() {
        let mut tenants = Tenants::default();
        let work = Work { commands: 3, bytes: 12_288, waits: 1 };
        let host: Arc<str> = Arc::from("nqn.a");
        let accounts = || [(Arc::clone(&host), 2, 4096, work)].into_iter();
        let used = Usage {
            connections: 2,
            memory_bytes: 4096,
            memory_waits: 1,
            commands: 3,
            bytes: 12_288,
        };
        assert_eq!(*tenants.report(accounts()).row("nqn.a"), used);
        tenants.leave("nqn.a", &work);
        let gone = Usage { connections: 0, memory_bytes: 0, ..used };
        assert_eq!(*tenants.report(std::iter::empty()).row("nqn.a"), gone);
        let again = *tenants.report(accounts()).row("nqn.a");
        assert_eq!((again.commands, again.connections), (6, 2));
    }
}
