//! A controller's view of its subsystem, its portals and the discovery log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nvme::log::{AnaGroup, DiscoveryEntry, Health};
use nvme::{NamespaceData, Nqn, Status, View};

use super::super::meter::Kind;
use super::super::portal::{Entrance, Portal};
use super::super::subsystem::{Namespace, Subsystem, find};

/// See the module's description.
pub(crate) struct Look<'a> {
    /// Namespaces, as its host sees them; `None` of a discovery controller.
    pub(super) seen: Option<&'a [Arc<Namespace>]>,
    pub(super) subsystems: &'a [Arc<Subsystem>],
    pub(super) generation: u64,
    pub(super) host: &'a Nqn,
    pub(super) portals: &'a [Arc<Portal>],
    /// The ANA group of every namespace; 0 without ANA.
    pub(super) ana_group: u32,
    pub(super) entrance: &'a Entrance,
}

impl View for Look<'_> {
    fn namespaces(&self) -> Vec<u32> {
        self.seen.unwrap_or_default().iter().map(|namespace| namespace.id).collect()
    }

    fn namespace(&self, nsid: u32) -> Option<NamespaceData> {
        let data = find(self.seen?, nsid)?.data();
        Some(NamespaceData { ana_group: self.ana_group, ..data })
    }

    fn health(&self) -> Health {
        let mut health = Health::default();
        for namespace in self.seen.unwrap_or_default() {
            health.is_unreliable |= namespace.backend.lost().is_some();
            for (_, counters) in namespace.counters() {
                let [reads, writes] = [Kind::Read, Kind::Write].map(|kind| counters.of(kind));
                let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                health.reads += value(&reads.commands);
                health.writes += value(&writes.commands);
                health.bytes_read += value(&reads.bytes);
                health.bytes_written += value(&writes.bytes);
            }
        }
        health
    }

    // The only ANA group: all namespaces have the state of this portal.
    fn ana_groups(&self) -> (Vec<AnaGroup>, u64) {
        let (state, change_count) = self.entrance.portal.state();
        let (id, namespaces) = (self.ana_group, self.namespaces());
        (vec![AnaGroup { id, change_count, state, namespaces }], change_count)
    }

    fn persists(&self, nsid: u32) -> Option<bool> {
        find(self.seen?, nsid).map(|namespace| namespace.reserved.persists())
    }

    fn persist(&self, nsid: u32, persists: bool) -> Result<(), Status> {
        let namespace = self.seen.and_then(|seen| find(seen, nsid));
        let namespace = namespace.ok_or(Status::INVALID_NAMESPACE.do_not_retry())?;
        namespace.reserved.persist(persists)
    }

    // The discovery log for this host: this discovery subsystem first, then every subsystem that
    // admits the host, at every portal.
    fn discovery(&self) -> (Vec<DiscoveryEntry>, u64) {
        let portal = &self.entrance.portal;
        let own = portal.reached(self.entrance.local).map(|address| DiscoveryEntry {
            subsystem: Nqn::new(Nqn::DISCOVERY).expect("it is a name"),
            address,
            port: portal.number,
            is_this_discovery: true,
        });
        let admitted = self.subsystems.iter().filter(|subsystem| subsystem.admits(self.host));
        let entries = admitted.flat_map(|subsystem| {
            let reached = |portal: &Arc<Portal>| {
                Some(DiscoveryEntry {
                    subsystem: subsystem.nqn.clone(),
                    address: portal.reached(self.entrance.local)?,
                    port: portal.number,
                    is_this_discovery: false,
                })
            };
            self.portals.iter().filter_map(reached)
        });
        (own.into_iter().chain(entries).collect(), self.generation)
    }
}
