//! Subsystems, to which hosts connect, and their namespaces.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use nvme::{NamespaceData, Nqn, Opening};

use backend::{Backend, LatchedBackend};
use scsi::LogicalUnit;

use super::identity::Identity;
use super::iscsi::IscsiAccess;
use super::meter::{Meter, NamespaceCounters};
use super::reserved::Reserved;
use super::stripes::Stripes;
use super::views::{Host, Views, ViewsSeen};

/// A namespace: a device as hosts see it.
pub struct Namespace {
    /// NSID: 1 to 1024.
    pub id: u32,
    /// The device that has its bytes.
    pub backend: Arc<dyn Backend>,
    /// NGUID and UUID, by which hosts recognise the namespace.
    pub nguid: [u8; 16],
    /// See above.
    pub uuid: [u8; 16],
    /// Random, drawn when the namespace was opened: hosts with several paths compare it.
    pub(super) opening: Opening,
    /// Its reservations.
    pub reserved: Reserved,
    pub(super) meter: Arc<Meter>,
    pub(super) stripes: Stripes,
    /// The hosts' own disks in place of this namespace, if its memory is leased.
    pub(super) views: Option<Views<Self>>,
    /// Whether one host alone sees it.
    pub(super) is_private: bool,
    /// Whether a loss of its device has been reported.
    pub(super) has_told: AtomicBool,
}

/// A subsystem: namespaces that hosts reach together.
pub struct Subsystem {
    /// What hosts connect to.
    pub nqn: Nqn,
    hosts: RwLock<Option<BTreeSet<Nqn>>>,
    iscsi: RwLock<Option<IscsiAccess>>,
    namespaces: RwLock<Arc<[Arc<Namespace>]>>,
    /// Counts changes of the namespaces.
    generation: AtomicU64,
}

/// The highest namespace identifier.
pub const NAMESPACES_MAX: u32 = 1024;

impl Namespace {
    /// A namespace without reservations; `id` is 1 to [`NAMESPACES_MAX`]. Its NGUID and UUID are
    /// made of the medium's identity.
    #[must_use]
    pub fn new(id: u32, backend: Arc<dyn Backend>, identity: Identity) -> Self {
        let views = backend.lease().cloned().map(Views::new);
        // The latch is common to all protocols and hosts: a loss concerns all.
        let backend = Arc::new(LatchedBackend::new(backend)) as Arc<dyn Backend>;
        let (nguid, uuid) = (identity.nguid(), identity.uuid());
        let (reserved, meter) = (Reserved::default(), Arc::default());
        let (stripes, mut opening) = (Stripes::default(), [0; 16]);
        sys::random::fill(&mut opening);
        let has_told = AtomicBool::new(false);
        Self {
            id,
            backend,
            nguid,
            uuid,
            opening,
            reserved,
            meter,
            stripes,
            views,
            is_private: false,
            has_told,
        }
    }

    // A private namespace for one host, which shares the counters of this one.
    fn view(&self, backend: Arc<dyn Backend>) -> Self {
        let meter = Arc::clone(&self.meter);
        let view = Self::new(self.id, backend, Identity::drawn());
        Self { meter, is_private: true, ..view }
    }

    // Whether its device has lost data and this is the first call since.
    pub(super) fn is_newly_lost(&self) -> bool {
        self.backend.lost().is_some() && !self.has_told.swap(true, Ordering::Relaxed)
    }

    /// Its counters, by the number of each shard that has used them.
    pub fn counters(&self) -> impl Iterator<Item = (u16, &NamespaceCounters)> {
        self.meter.shards()
    }

    /// The state of the hosts' own disks; `None` if its memory is not leased.
    #[must_use]
    pub fn views(&self) -> Option<ViewsSeen> {
        self.views.as_ref().map(Views::seen)
    }

    /// Its data for Identify Namespace (NVM Command Set 4.1.5).
    #[must_use]
    pub fn data(&self) -> NamespaceData {
        let geometry = self.backend.geometry();
        let block_bytes = geometry.block_bytes();
        let blocks = |bytes: u32| u16::try_from((bytes / block_bytes).max(1) - 1).unwrap_or(0);
        NamespaceData {
            block_count: geometry.block_count,
            block_shift: geometry.block_shift,
            nguid: self.nguid,
            uuid: self.uuid,
            atomic_blocks: blocks(geometry.atomic_bytes),
            optimal_write_blocks: blocks(geometry.optimal_bytes),
            discards_to_zero: true,
            used_blocks: self.backend.used_bytes().map(|bytes| bytes >> geometry.block_shift),
            // No other host could use it.
            reservation_kinds: if self.is_private { 0 } else { self.reserved.capabilities() },
            ana_group: 0,
            is_shared: !self.is_private,
            is_read_only: geometry.is_read_only,
            opening: self.opening,
        }
    }
}

impl Subsystem {
    /// A subsystem with these namespaces, whose identifiers differ, for these hosts; `None` admits
    /// all.
    #[must_use]
    pub fn new(nqn: Nqn, hosts: Option<BTreeSet<Nqn>>, namespaces: Vec<Namespace>) -> Self {
        let mut namespaces: Vec<_> = namespaces.into_iter().map(Arc::new).collect();
        namespaces.sort_by_key(|namespace| namespace.id);
        Self {
            nqn,
            hosts: RwLock::new(hosts),
            iscsi: RwLock::new(None),
            namespaces: RwLock::new(namespaces.into()),
            generation: AtomicU64::new(1),
        }
    }

    /// Its current namespaces, in the order of identifiers.
    #[must_use]
    pub fn namespaces(&self) -> Arc<[Arc<Namespace>]> {
        Arc::clone(&self.namespaces.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Its namespaces as a host sees them: for leased memory the host's own disk, or nothing if it
    /// can have none.
    pub(super) fn seen_by(&self, host: &Host) -> Arc<[Arc<Namespace>]> {
        let all = self.namespaces();
        if all.iter().all(|one| one.views.is_none()) {
            return all;
        }
        let seen = all.iter().filter_map(|one| match &one.views {
            None => Some(Arc::clone(one)),
            Some(views) => views.of(host, |backend| one.view(backend)),
        });
        seen.collect()
    }

    /// Whether `seen` lacks namespaces: a host should see all.
    pub(super) fn has_more_than(&self, seen: &[Arc<Namespace>]) -> bool {
        self.namespaces().len() > seen.len()
    }

    /// Its namespaces that iSCSI initiators see: those whose memory is not leased.
    pub(super) fn units(&self) -> Arc<[Arc<Namespace>]> {
        let all = self.namespaces();
        if all.iter().all(|one| one.views.is_none()) {
            return all;
        }
        all.iter().filter(|one| one.views.is_none()).cloned().collect()
    }

    /// Ends leases whose time is over. Returns the milliseconds to the next look; `None` without
    /// views.
    pub(super) fn look_at_views(&self, now_ms: u64) -> Option<u64> {
        let namespaces = self.namespaces();
        let views = namespaces.iter().filter_map(|one| one.views.as_ref());
        views.filter_map(|views| views.look(now_ms)).min()
    }

    /// Replaces its namespaces; [`super::Target::changed`] then notifies hosts.
    pub fn replace(&self, mut namespaces: Vec<Arc<Namespace>>) {
        namespaces.sort_by_key(|namespace| namespace.id);
        *self.namespaces.write().unwrap_or_else(PoisonError::into_inner) = namespaces.into();
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    // Resizes logical units to their namespaces, and raises a unit attention at all of them if a
    // changed one is new or gone.
    pub(super) fn tell_initiators(&self, changed: &[u32]) {
        let namespaces = self.namespaces();
        let is_seen = |one: &Arc<Namespace>| one.reserved.with_unit(|_| ()).is_some();
        let is_other = |id: &u32| find(&namespaces, *id).is_none_or(|one| !is_seen(one));
        let has_others = changed.iter().any(is_other);
        for namespace in &*namespaces {
            let block_count = namespace.backend.geometry().block_count;
            namespace.reserved.with_unit(|unit| {
                unit.resize(block_count);
                if has_others {
                    unit.luns_changed();
                }
            });
        }
    }

    // Raises a unit attention for changed port states at all logical units.
    pub(super) fn tell_of_ports(&self) {
        for namespace in &*self.namespaces() {
            namespace.reserved.with_unit(LogicalUnit::port_states_changed);
        }
    }

    /// How often its namespaces have been replaced, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// The iSCSI name and access of the subsystem; `None` if initiators do not see it.
    #[must_use]
    pub fn iscsi(&self) -> Option<IscsiAccess> {
        self.iscsi.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the iSCSI name and access; sessions that exist stay.
    pub fn set_iscsi(&self, access: Option<IscsiAccess>) {
        *self.iscsi.write().unwrap_or_else(PoisonError::into_inner) = access;
    }

    /// Whether a host may connect.
    #[must_use]
    pub fn admits(&self, host: &Nqn) -> bool {
        let hosts = self.hosts.read().unwrap_or_else(PoisonError::into_inner);
        hosts.as_ref().is_none_or(|hosts| hosts.contains(host))
    }

    /// Sets which hosts may connect, all if `None`; connected hosts stay.
    pub fn admit(&self, hosts: Option<BTreeSet<Nqn>>) {
        *self.hosts.write().unwrap_or_else(PoisonError::into_inner) = hosts;
    }
}

/// The namespace with this identifier; `namespaces` are in order.
#[must_use]
pub(super) fn find(namespaces: &[Arc<Namespace>], id: u32) -> Option<&Arc<Namespace>> {
    let place = namespaces.binary_search_by_key(&id, |namespace| namespace.id).ok()?;
    namespaces.get(place)
}
