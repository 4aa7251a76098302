//! How much each host uses of a shard: what an operator asks when somebody is greedy.
//!
//! Invariants:
//! - Counts never fall: what a host has used is kept when its last connection goes.
//! - [`HOSTS_MAX`] hosts are told apart; the others are one.

use std::collections::BTreeMap;
use std::sync::Arc;

use backend::pool::Work;

use super::witness::{HOSTS_MAX, OTHERS};

/// What a host uses of one shard, or of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Connections with I/O queues, or of sessions.
    pub connections: u64,
    /// Bytes of memory that its data and answers on their way take now.
    pub memory_bytes: u64,
    /// Times that a command of it has had to wait for memory.
    pub memory_waits: u64,
    /// Commands that were answered, however they went.
    pub commands: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
}

impl Usage {
    /// Both together.
    pub const fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.memory_bytes += other.memory_bytes;
        self.memory_waits += other.memory_waits;
        self.commands += other.commands;
        self.bytes += other.bytes;
    }

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
pub(crate) type ByHost = BTreeMap<Arc<str>, Usage>;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    gone: ByHost,
}

impl Tenants {
    /// The account of a host is closed.
    pub(crate) fn leave(&mut self, host: &Arc<str>, work: &Work) {
        if *work != Work::default() {
            put(&mut self.gone, host, &Usage::of(work));
        }
    }

    /// All that hosts use: these accounts, with the memory they hold and their connections, and
    /// what those that have gone had used.
    pub(crate) fn report(
        &self,
        accounts: impl Iterator<Item = (Arc<str>, u64, u64, Work)>,
    ) -> ByHost {
        let mut all = self.gone.clone();
        for (host, connections, memory_bytes, work) in accounts {
            put(&mut all, &host, &Usage { connections, memory_bytes, ..Usage::of(&work) });
        }
        all
    }
}

fn put(all: &mut ByHost, host: &Arc<str>, usage: &Usage) {
    let is_told_apart = all.contains_key(host) || all.len() < HOSTS_MAX;
    let host = if is_told_apart { Arc::clone(host) } else { Arc::from(OTHERS) };
    all.entry(host).or_default().add(usage);
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
        assert_eq!(tenants.report(accounts())[&host], used);
        tenants.leave(&host, &work);
        let gone = Usage { connections: 0, memory_bytes: 0, ..used };
        assert_eq!(tenants.report(std::iter::empty())[&host], gone);
        let again = tenants.report(accounts())[&host];
        assert_eq!((again.commands, again.connections), (6, 2));
    }

    #[test]
    fn hosts_without_number_take_no_memory_without_bound() {
        let mut tenants = Tenants::default();
        for number in 0..2 * HOSTS_MAX {
            let host: Arc<str> = format!("nqn.{number}").into();
            tenants.leave(&host, &Work { commands: 1, ..Work::default() });
        }
        let all = tenants.report(std::iter::empty());
        assert_eq!(all.len(), HOSTS_MAX + 1);
        assert_eq!(all[OTHERS].commands, HOSTS_MAX as u64);
    }
}
