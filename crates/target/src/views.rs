//! Views: disks in leased memory that hosts have of their own; which host has which, and until
//! when.
//!
//! A view is a namespace (`N`) like any other, except that one host alone sees it (NMIC: private).
//! So nothing else of a target has to know of views: a queue, a controller and a command hold
//! namespaces, and this module finds those of a host.
//!
//! Who a host is: its NQN and its identifier. A host with several controllers has one view.
//!
//! Invariants:
//! - Whatever can still write to a view holds a reference: the controller, its queues, their
//!   commands. A lease begins when none is left, and while it lasts the host finds the view again.
//! - A view that has ended has no references, so no late write can reach it; its host gets another,
//!   with zeros and another identity.
//! - A lease never ends early: its time counts from a look that found no references.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend::{Backend, Lease, ViewBackend};
use measure::Duration;
use nvme::Nqn;

/// Whose a view is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Host {
    pub(crate) nqn: Nqn,
    /// HOSTID.
    pub(crate) id: [u8; 16],
}

/// See the module's description.
pub(super) struct Views<N> {
    lease: Lease,
    state: Mutex<State<N>>,
}

struct State<N> {
    views: BTreeMap<Host, View<N>>,
    ended: u64,
    ended_bytes: u64,
}

struct View<N> {
    namespace: Arc<N>,
    backend: Arc<ViewBackend>,
    /// When a look first found no references; `None` while there are some.
    idle_since_ms: Option<u64>,
}

/// The state of all views of a namespace at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewsSeen {
    /// Each view, in the order of hosts.
    pub views: Vec<ViewSeen>,
    /// How long a view outlives the last connection of its host.
    pub lease: Duration,
    /// Size of a view in bytes.
    pub quota_bytes: u64,
    /// Bytes of memory that all views may use, and use.
    pub total_bytes: u64,
    /// See above.
    pub used_bytes: u64,
    /// Views whose lease has ended while they had data, and the bytes of it.
    pub ended: u64,
    /// See above.
    pub ended_bytes: u64,
    /// Writes that failed for lack of memory.
    pub refused: u64,
}

/// The state of a view at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewSeen {
    /// The NQN of its host.
    pub host: String,
    /// HOSTID.
    pub host_id: [u8; 16],
    /// Bytes of memory that it uses.
    pub used_bytes: u64,
    /// Whether a connection or a command of its host holds it.
    pub is_held: bool,
    /// Its writes that failed for lack of memory.
    pub refused: u64,
}

/// Views of a namespace at most; further hosts are refused with Connect Controller Busy.
const VIEWS_MAX: usize = 1024;
/// Looks within the time of a lease, and the milliseconds between two at least and at most.
const LOOKS: u64 = 8;
const LOOK_MS: [u64; 2] = [10, 1000];

impl<N> Views<N> {
    /// No views yet, in memory of this lease.
    pub(super) fn new(lease: Lease) -> Self {
        let state = State { views: BTreeMap::new(), ended: 0, ended_bytes: 0 };
        Self { lease, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State<N>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The view of a host, made of a new disk if it has none; `None` if there is no room for
    /// another.
    pub(super) fn of(
        &self,
        host: &Host,
        make: impl FnOnce(Arc<dyn Backend>) -> N,
    ) -> Option<Arc<N>> {
        let mut state = self.lock();
        if let Some(view) = state.views.get(host) {
            return Some(Arc::clone(&view.namespace));
        }
        if state.views.len() >= VIEWS_MAX {
            return None;
        }
        let backend = Arc::new(ViewBackend::new(&self.lease).ok()?);
        let namespace = Arc::new(make(Arc::clone(&backend) as Arc<dyn Backend>));
        let view = View { namespace: Arc::clone(&namespace), backend, idle_since_ms: None };
        state.views.insert(host.clone(), view);
        Some(namespace)
    }

    /// Ends views whose lease is over. Returns the milliseconds to the next look; `None` without
    /// views.
    pub(super) fn look(&self, now_ms: u64) -> Option<u64> {
        let ttl_ms = self.lease.ttl().as_ns().div_ceil(1_000_000);
        let mut state = self.lock();
        let mut over = Vec::new();
        for (host, view) in &mut state.views {
            // New references are made under this lock or from existing ones.
            if Arc::strong_count(&view.namespace) > 1 {
                view.idle_since_ms = None;
            } else if now_ms - *view.idle_since_ms.get_or_insert(now_ms) >= ttl_ms {
                over.push(host.clone());
            }
        }
        let ended: Vec<View<N>> = over.iter().filter_map(|host| state.views.remove(host)).collect();
        for view in &ended {
            let bytes = view.backend.used_bytes().unwrap_or(0);
            state.ended += u64::from(bytes > 0);
            state.ended_bytes += bytes;
        }
        let [least, most] = LOOK_MS;
        let next = (!state.views.is_empty()).then(|| (ttl_ms / LOOKS).clamp(least, most));
        drop(state);
        // Freeing much memory takes a while; the lock is free meanwhile.
        drop(ended);
        next
    }

    /// The current state of all views.
    pub(super) fn seen(&self) -> ViewsSeen {
        let state = self.lock();
        let views = state.views.iter().map(|(host, view)| ViewSeen {
            host: host.nqn.as_str().to_owned(),
            host_id: host.id,
            used_bytes: view.backend.used_bytes().unwrap_or(0),
            is_held: Arc::strong_count(&view.namespace) > 1,
            refused: view.backend.refused(),
        });
        ViewsSeen {
            views: views.collect(),
            lease: self.lease.ttl(),
            quota_bytes: self.lease.quota_bytes(),
            total_bytes: self.lease.total_bytes(),
            used_bytes: self.lease.used_bytes(),
            ended: state.ended,
            ended_bytes: state.ended_bytes,
            refused: self.lease.refused(),
        }
    }
}

#[cfg(test)]
mod tests {
    use backend::{Operation, Request};

    use super::*;

    const MIB: u64 = 1 << 20;
    const TTL_MS: u64 = 800;

    /// A namespace, as far as views know of them.
    struct Disk {
        backend: Arc<dyn Backend>,
        serial: usize,
    }

    fn views(quota: u64) -> Views<Disk> {
        Views::new(Lease::new(Duration::from_ms(TTL_MS), 4 * MIB, quota, 12))
    }

    fn host(number: u8) -> Host {
        Host { nqn: Nqn::new("nqn.h").expect("it is one"), id: [number; 16] }
    }

    fn write(view: &Disk) {
        let operation = Operation::Write { forced: false };
        let request = Request { operation, offset: 0, length: 4096 };
        view.backend.start(&request, &mut [7; 4096], 0);
    }

    fn first_byte(view: &Disk) -> u8 {
        let mut read = [1; 4096];
        let request = Request { operation: Operation::Read, offset: 0, length: 4096 };
        view.backend.start(&request, &mut read, 0);
        read[0]
    }

    #[test]
    fn a_host_finds_its_own_until_its_lease_has_ended() {
        let views = views(MIB);
        let made = std::cell::Cell::new(0);
        let of = |number| {
            let make = |backend| {
                made.set(made.get() + 1);
                Disk { backend, serial: made.get() }
            };
            views.of(&host(number), make).expect("there is room")
        };
        let [one, other] = [of(1), of(2)];
        assert_ne!(one.serial, other.serial);
        write(&one);
        assert_eq!([&one, &other].map(|view| first_byte(view)), [7, 0]);
        assert_eq!(views.seen().used_bytes, 4096);
        assert_eq!(views.look(0), Some(100));
        drop(one);
        // Held by nobody from the look on, and again by its host in between.
        assert!(views.look(1000).is_some() && views.look(1000 + TTL_MS - 1).is_some());
        assert_eq!(first_byte(&of(1)), 7);
        let again = of(1);
        let serial = again.serial;
        views.look(9000);
        drop(again);
        views.look(9001);
        views.look(9001 + TTL_MS - 1);
        assert_eq!(views.seen().used_bytes, 4096, "a lease never ends early");
        // Whatever is under way holds it.
        let late = of(1);
        views.look(9001 + TTL_MS);
        assert_eq!((views.seen().used_bytes, views.seen().ended), (4096, 0));
        drop(late);
        views.look(20_000);
        views.look(20_000 + TTL_MS);
        let seen = views.seen();
        assert_eq!((seen.used_bytes, seen.ended, seen.ended_bytes), (0, 1, 4096));
        assert_eq!((seen.views.len(), seen.views[0].is_held), (1, true), "the other stays");
        let new = of(1);
        assert_eq!(first_byte(&new), 0, "what was there is gone");
        assert_ne!(new.serial, serial, "and it is another");
        drop((new, other));
        views.look(30_000);
        assert_eq!(views.look(30_000 + TTL_MS), None, "there is nothing to look at");
        assert_eq!(views.seen().ended, 1, "those without bytes are not counted");
    }

    #[test]
    fn views_are_bounded() {
        let views = views(4096);
        let make = |backend| Disk { backend, serial: 0 };
        let id = |number: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&(number as u64).to_le_bytes());
            Host { nqn: Nqn::new("nqn.h").expect("it is one"), id }
        };
        for number in 0..VIEWS_MAX {
            assert!(views.of(&id(number), make).is_some(), "{number}");
        }
        assert!(views.of(&id(VIEWS_MAX), make).is_none());
        assert!(views.of(&id(5), make).is_some(), "who has one has it");
    }
}
