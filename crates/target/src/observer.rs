//! A target's counters, events and subsystems, for other threads to read while it works.

use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::counters::Counters;
use super::mail::{Message, Peer};
use super::subsystem::Subsystem;
use super::tenants::{ByHost, Usage};
use super::witness::Witness;

/// How long a shard may take to report how much hosts use.
const PATIENCE: Duration = Duration::from_secs(1);

/// See the module's description.
#[derive(Clone)]
pub struct Observer {
    counters: Arc<[Arc<Counters>]>,
    subsystems: Arc<RwLock<Arc<[Arc<Subsystem>]>>>,
    witness: Witness,
    peers: Arc<[Peer]>,
}

impl Observer {
    pub(super) fn new(
        counters: Vec<Arc<Counters>>,
        subsystems: Vec<Arc<Subsystem>>,
        witness: Witness,
        peers: Arc<[Peer]>,
    ) -> Self {
        let subsystems = Arc::new(RwLock::new(subsystems.into()));
        Self { counters: counters.into(), subsystems, witness, peers }
    }

    /// The counters of each shard, and last of the control thread.
    #[must_use]
    pub fn counters(&self) -> &[Arc<Counters>] {
        &self.counters
    }

    /// Counts and events of rare acts of hosts (logins, refusals, violations).
    #[must_use]
    pub const fn witness(&self) -> &Witness {
        &self.witness
    }

    /// How much each host uses of all shards, in the order of names. After a second without a
    /// report the rest of the shards is left out.
    #[must_use]
    pub fn usage(&self) -> Vec<(String, Usage)> {
        let (sender, reports) = channel();
        self.peers.iter().for_each(|peer| peer.tell(Message::Report(sender.clone())));
        drop(sender);
        let mut all = ByHost::default();
        for _ in &*self.peers {
            let Ok(report) = reports.recv_timeout(PATIENCE) else { break };
            for (host, usage) in report.iter() {
                all.row(host).add(usage);
            }
        }
        all.iter().map(|(host, usage)| (host.to_owned(), *usage)).collect()
    }

    /// The subsystems that are served now.
    #[must_use]
    pub fn subsystems(&self) -> Arc<[Arc<Subsystem>]> {
        Arc::clone(&self.subsystems.read().unwrap_or_else(PoisonError::into_inner))
    }

    // Replaces the subsystems that are served.
    pub(super) fn serve(&self, subsystems: Vec<Arc<Subsystem>>) {
        *self.subsystems.write().unwrap_or_else(PoisonError::into_inner) = subsystems.into();
    }
}
