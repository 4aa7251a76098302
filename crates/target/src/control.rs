//! The controllers of a target, all on its control thread.
//!
//! Invariants:
//! - A controller exists as long as the connection of its admin queue.
//! - A queue of a controller is on one connection.
//! - A host is connected once nothing of its previous association is under way.

mod look;
mod reset;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nvme::{
    ConnectRequest, Controller, ControllerConfig, ControllerKind, Notice, Nqn, Slot, Status,
};

use super::config::Limits;
use super::guests::{Full, Guest, Guests};
use super::portal::{Entrance, Portal};
use super::remains::{Owner, Remains};
use super::subsystem::{NAMESPACES_MAX, Namespace, Subsystem};
use super::views::Host;
use look::Look;

type Seen = Option<Arc<[Arc<Namespace>]>>;

/// A controller and whom it is for.
pub(crate) struct Association {
    pub(crate) controller: Controller,
    /// `None` for a discovery controller.
    pub(crate) subsystem: Option<Arc<Subsystem>>,
    host: Host,
    /// Namespaces as the host sees them; this reference keeps the host's views alive.
    seen: Seen,
    /// Its admin connection on the control thread.
    pub(crate) connection: u32,
    /// The portal and address of the admin connection.
    entrance: Entrance,
    queues: BTreeSet<u16>,
    /// Queues that a reset has ended but that have not finished.
    leaving: BTreeSet<u16>,
    /// The controller is ending: its keep-alive time has passed, or its host has reset it.
    is_ending: bool,
}

impl Association {
    // When an idle association ends by itself, in milliseconds; `None` if it is not idle.
    fn idle_until_ms(&self) -> Option<u64> {
        match (&self.subsystem, self.controller.expires_ms()) {
            (None, expires_ms) => Some(expires_ms.unwrap_or(0)),
            (Some(_), None) if self.queues.is_empty() => Some(u64::MAX),
            (Some(_), _) => None,
        }
    }

    // When the keep-alive time passes; `None` without one or if the controller is already ending.
    fn expires_ms(&self) -> Option<u64> {
        self.controller.expires_ms().filter(|_| !self.is_ending)
    }

    /// Looks up the host's namespaces again.
    fn look_again(&mut self) {
        self.seen = self.subsystem.as_ref().map(|subsystem| subsystem.seen_by(&self.host));
    }

    /// The namespaces that the host sees.
    pub(crate) fn namespaces(&self) -> &[Arc<Namespace>] {
        self.seen.as_deref().unwrap_or_default()
    }

    // The subsystem and host; `None` for a discovery controller.
    fn owner(&self) -> Option<Owner> {
        let subsystem = self.subsystem.clone()?;
        Some(Owner { subsystem, host: self.host.clone() })
    }
}

/// What a connection has become.
pub(crate) enum Connected {
    /// The admin queue of this controller.
    Admin(u16),
    /// An I/O queue.
    Io {
        /// Of this controller.
        controller: u16,
        /// With these namespaces.
        subsystem: Arc<Subsystem>,
    },
}

/// See the module's description.
pub(crate) struct Control {
    limits: Limits,
    subsystems: Vec<Arc<Subsystem>>,
    /// Where hosts connect; with more than one, namespaces have ANA states.
    portals: Arc<[Arc<Portal>]>,
    associations: BTreeMap<u16, Association>,
    /// Unfinished queues of associations that have ended.
    remains: Remains,
    /// Counts changes of what can be discovered, from 1.
    generation: u64,
    last_id: u16,
    /// The seed of the last controller; the first one is random.
    seed: u64,
    /// Admin connections of controllers that have ended to make room.
    evicted: Vec<u32>,
    /// When leases of views are checked next; 0 while there are none.
    views_ms: u64,
    /// Connections that wait for a queue to end.
    entering: Vec<u32>,
}

/// Why a host is not connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    /// The invalid field, as the command's result encodes it.
    pub(crate) field: u32,
    /// Whether the host may succeed once a queue has ended.
    pub(crate) passes: bool,
}

impl Refusal {
    pub(crate) const BUSY: Self = Self::new(Status::CONNECT_CONTROLLER_BUSY, 0);

    const fn new(status: Status, field: u32) -> Self {
        Self { status, field, passes: false }
    }
}

/// Keep-alive time of a discovery controller whose host sets none, in milliseconds: that of Linux.
const DISCOVERY_KEEP_ALIVE_MS: u32 = 120_000;
/// CQT as reported to hosts: how long commands of a lost host may take to end. A new association of
/// the host waits for them however long they take, as does a reset.
const QUIESCE_MS: u16 = 2_000;
/// Multiplier and increment from one controller's seed to the next (Knuth's MMIX): none repeats.
const SEED_STEP: (u64, u64) = (6_364_136_223_846_793_005, 1_442_695_040_888_963_407);
/// CNTLID of a Connect that lets the subsystem choose the controller.
const ANY: u16 = 0xffff;

// Offsets of fields that can be invalid: in Connect's data (bit 16 set), or in its SQE.
const IN_CONTROLLER_ID: u32 = 1 << 16 | 16;
const IN_SUBSYSTEM: u32 = 1 << 16 | 256;
const IN_HOST: u32 = 1 << 16 | 512;
const IN_QUEUE: u32 = 42;

/// Refusal of a queue that another connection carries.
const QUEUE_TAKEN: Refusal =
    Refusal { passes: true, ..Refusal::new(Status::SEQUENCE_ERROR.do_not_retry(), IN_QUEUE) };
/// Refusal while commands of the host's previous association are under way.
const NOT_OVER: Refusal = Refusal { passes: true, ..Refusal::BUSY };
const OTHER_HOST: Refusal = Refusal::new(Status::CONNECT_INVALID_HOST.do_not_retry(), IN_HOST);

// Refusal of a Connect with an invalid field.
const fn invalid(field: u32) -> Refusal {
    Refusal::new(Status::CONNECT_INVALID_PARAMETERS.do_not_retry(), field)
}

impl Control {
    pub(crate) fn new(
        limits: Limits,
        subsystems: Vec<Arc<Subsystem>>,
        portals: Arc<[Arc<Portal>]>,
    ) -> Self {
        let associations = BTreeMap::new();
        let last_id = limits.controller_ids[1];
        let evicted = Vec::new();
        let entering = Vec::new();
        Self {
            limits,
            subsystems,
            portals,
            associations,
            remains: Remains::default(),
            generation: 1,
            last_id,
            seed: drawn(),
            evicted,
            views_ms: 0,
            entering,
        }
    }

    /// Replaces the subsystems. Returns the admin connections of controllers whose subsystem is
    /// gone.
    pub(crate) fn serve(&mut self, subsystems: Vec<Arc<Subsystem>>) -> Vec<u32> {
        self.subsystems = subsystems;
        self.generation += 1;
        let served = |own: &Arc<Subsystem>| self.subsystems.iter().any(|all| Arc::ptr_eq(all, own));
        let is_lost = |one: &&Association| one.subsystem.as_ref().is_some_and(|own| !served(own));
        self.associations.values().filter(is_lost).map(|one| one.connection).collect()
    }

    /// Records notices about a subsystem, or about discovery if `None`. Returns the event
    /// completions to send: admin connection, slot and result.
    pub(crate) fn notify(
        &mut self,
        subsystem: Option<&Arc<Subsystem>>,
        notices: &[Notice],
    ) -> Vec<(u32, (Slot, u64))> {
        let mut events = Vec::new();
        for one in self.associations.values_mut() {
            if one.subsystem.as_ref().map(Arc::as_ptr) == subsystem.map(Arc::as_ptr) {
                one.look_again();
                let told = notices.iter().filter_map(|notice| one.controller.notify(*notice));
                events.extend(told.map(|event| (one.connection, event)));
            }
        }
        events
    }

    /// Records a changed ANA state of a portal. Returns the event completions to send.
    pub(crate) fn reached(&mut self, portal: u16) -> Vec<(u32, (Slot, u64))> {
        let here = self
            .associations
            .values_mut()
            .filter(|one| one.entrance.portal.number == portal && one.subsystem.is_some());
        let told = here.filter_map(|one| {
            let event = one.controller.notify(Notice::AnaChange)?;
            Some((one.connection, event))
        });
        told.collect()
    }

    /// Answers Connect (Base 6.3).
    pub(crate) fn connect(
        &mut self,
        request: &ConnectRequest,
        connection: u32,
        entrance: &Entrance,
        now_ms: u64,
    ) -> Result<Connected, Refusal> {
        if request.queue == 0 {
            self.connect_admin(request, connection, entrance, now_ms).map(Connected::Admin)
        } else {
            self.connect_io(request)
        }
    }

    // Makes a controller for an admin queue. Returns its CNTLID.
    fn connect_admin(
        &mut self,
        request: &ConnectRequest,
        connection: u32,
        entrance: &Entrance,
        now_ms: u64,
    ) -> Result<u16, Refusal> {
        let data = &request.data;
        let subsystem = if data.subsystem.as_str() == Nqn::DISCOVERY {
            None
        } else {
            let known = self.subsystems.iter().find(|other| other.nqn == data.subsystem);
            Some(Arc::clone(known.ok_or(invalid(IN_SUBSYSTEM))?))
        };
        if subsystem.as_ref().is_some_and(|subsystem| !subsystem.admits(&data.host)) {
            return Err(OTHER_HOST);
        }
        // Controllers are dynamic: a host cannot choose one by number.
        if data.controller_id != ANY {
            return Err(invalid(IN_CONTROLLER_ID));
        }
        let host = Host { nqn: data.host.clone(), id: data.host_id };
        let owner = |subsystem: &Arc<Subsystem>| Owner {
            subsystem: Arc::clone(subsystem),
            host: host.clone(),
        };
        if subsystem.as_ref().is_some_and(|own| self.remains.has_of(&owner(own))) {
            return Err(NOT_OVER);
        }
        self.make_room(&data.host)?;
        let seen = subsystem.as_ref().map(|subsystem| subsystem.seen_by(&host));
        if seen.as_ref().zip(subsystem.as_ref()).is_some_and(|(seen, of)| of.has_more_than(seen)) {
            return Err(Refusal::BUSY);
        }
        // A discovery controller without a keep-alive time does not live for ever.
        let keep_alive_ms = match (&subsystem, request.keep_alive_ms) {
            (None, 0) => DISCOVERY_KEEP_ALIVE_MS,
            (_, wanted) => wanted,
        };
        let id = self.next_id();
        self.seed = self.seed.wrapping_mul(SEED_STEP.0).wrapping_add(SEED_STEP.1);
        let config = self.config(id, subsystem.as_deref(), data.host_id);
        let association = Association {
            controller: Controller::new(config, keep_alive_ms, now_ms),
            subsystem,
            host,
            seen,
            connection,
            entrance: entrance.clone(),
            queues: BTreeSet::new(),
            leaving: BTreeSet::new(),
            is_ending: false,
        };
        self.associations.insert(id, association);
        Ok(id)
    }

    // Makes room for another controller of a host. At the limit, the discovery controller that
    // would expire first ends, or else one without keep-alive and I/O queues.
    fn make_room(&mut self, host: &Nqn) -> Result<(), Refusal> {
        let [first, last] = self.limits.controller_ids;
        let most = usize::from(self.limits.controllers).min(usize::from(last - first) + 1);
        let most_of_one = usize::from(self.limits.host_controllers);
        let all = self.associations.iter().map(|(id, one)| {
            let (is_of_host, idle) = (one.host.nqn == *host, one.idle_until_ms());
            Guest { key: *id, is_of_host, idle }
        });
        let evicted = Guests { most, most_of_one }.admit(all).map_err(|Full| Refusal::BUSY)?;
        let evicted = evicted.and_then(|id| self.associations.remove(&id));
        self.evicted.extend(evicted.map(|one| one.connection));
        Ok(())
    }

    /// Takes the admin connections of controllers that have ended to make room for others.
    pub(crate) fn take_evicted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.evicted)
    }

    // Adds an I/O queue to its controller.
    fn connect_io(&mut self, request: &ConnectRequest) -> Result<Connected, Refusal> {
        let data = &request.data;
        let io_queues = self.limits.io_queues;
        let association = self.associations.get_mut(&data.controller_id);
        let association = association.ok_or(invalid(IN_CONTROLLER_ID))?;
        let Some(subsystem) = association.subsystem.clone() else {
            return Err(invalid(IN_SUBSYSTEM));
        };
        if subsystem.nqn != data.subsystem {
            return Err(invalid(IN_SUBSYSTEM));
        }
        if association.host.nqn != data.host || association.host.id != data.host_id {
            return Err(OTHER_HOST);
        }
        if request.queue > io_queues {
            return Err(invalid(IN_QUEUE));
        }
        if !association.controller.is_ready() {
            return Err(Refusal::new(Status::SEQUENCE_ERROR.do_not_retry(), 0));
        }
        if !association.leaving.is_empty() {
            return Err(NOT_OVER);
        }
        if !association.queues.insert(request.queue) {
            return Err(QUEUE_TAKEN);
        }
        Ok(Connected::Io { controller: data.controller_id, subsystem })
    }

    // The next free CNTLID after the last one, so that numbers are reused late.
    fn next_id(&mut self) -> u16 {
        let [first, last] = self.limits.controller_ids;
        loop {
            self.last_id = if self.last_id >= last { first } else { self.last_id + 1 };
            if !self.associations.contains_key(&self.last_id) && !self.remains.has(self.last_id) {
                return self.last_id;
            }
        }
    }

    // The configuration of a new controller.
    fn config(
        &self,
        id: u16,
        subsystem: Option<&Subsystem>,
        host_id: [u8; 16],
    ) -> ControllerConfig {
        let kind = match subsystem {
            Some(_) => ControllerKind::Io,
            None => ControllerKind::Discovery,
        };
        let discovery = || Nqn::new(Nqn::DISCOVERY).expect("it is a name");
        let nqn = subsystem.map_or_else(discovery, |subsystem| subsystem.nqn.clone());
        ControllerConfig {
            kind,
            id,
            seed: self.seed,
            host_id,
            serial: serial(&nqn),
            subsystem: nqn,
            model: "afar".to_owned(),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
            transfer_shift: self.limits.transfer_shift,
            queue_entries: self.limits.queue_entries,
            io_queues: self.limits.io_queues,
            namespaces_max: NAMESPACES_MAX,
            capsule_data_bytes: self.limits.capsule_bytes,
            has_reservations: kind == ControllerKind::Io,
            ana_groups: if kind == ControllerKind::Io { self.ana_group() } else { 0 },
            quiesce_ms: if kind == ControllerKind::Io { QUIESCE_MS } else { 0 },
            resets_max: if kind == ControllerKind::Io { self.limits.resets } else { 0 },
        }
    }

    // The ANA group of every namespace; 0 where there is one address and ANA says nothing.
    fn ana_group(&self) -> u32 {
        u32::from(self.portals.len() > 1)
    }

    /// The association of this CNTLID; `None` if there is none.
    pub(crate) fn get(&mut self, id: u16) -> Option<&mut Association> {
        self.associations.get_mut(&id)
    }

    /// A controller and its view of the target; `None` if there is no such controller.
    pub(crate) fn with_view(&mut self, id: u16) -> Option<(&mut Controller, Look<'_>)> {
        let ana_group = self.ana_group();
        let association = self.associations.get_mut(&id)?;
        association.look_again();
        let Association { controller, seen, host, entrance, .. } = association;
        let look = Look {
            seen: seen.as_deref(),
            subsystems: &self.subsystems,
            generation: self.generation,
            host: &host.nqn,
            portals: &self.portals,
            ana_group,
            entrance,
        };
        Some((controller, look))
    }

    /// Removes a controller because its admin connection is gone; whether there was one. If the
    /// number has passed to a controller with another admin connection, nothing is removed.
    pub(crate) fn end(&mut self, id: u16, connection: u32) -> bool {
        if self.associations.get(&id).is_none_or(|one| one.connection != connection) {
            return false;
        }
        let gone = self.associations.remove(&id).expect("it has just been looked at");
        if let Some(owner) = gone.owner() {
            self.remains.add(id, owner, gone.queues);
        }
        true
    }

    /// Marks all queues of a controller that was reset as leaving; no new one begins before they
    /// have ended.
    pub(crate) fn reset(&mut self, id: u16) {
        if let Some(association) = self.associations.get_mut(&id) {
            association.leaving.clone_from(&association.queues);
        }
    }

    /// Registers a connection to be woken when a queue has ended.
    pub(crate) fn wait_for_queue(&mut self, connection: u32) {
        self.entering.push(connection);
    }

    /// Removes a queue of a controller. Returns the connections that wait for a queue to end.
    pub(crate) fn end_queue(&mut self, id: u16, queue: u16) -> Vec<u32> {
        if let Some(association) = self.associations.get_mut(&id) {
            association.queues.remove(&queue);
            association.leaving.remove(&queue);
        }
        self.remains.end_queue(id, queue);
        self.take_waiting()
    }

    /// Takes the connections that wait for a queue or controller to end; a connection that waits
    /// twice appears twice.
    pub(crate) fn take_waiting(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.entering)
    }

    /// Marks controllers whose keep-alive time has passed (Base 3.9) as ending, and returns each of
    /// them once. Also ends leases whose time is over.
    pub(crate) fn take_expired(&mut self, now_ms: u64) -> Vec<u16> {
        if now_ms >= self.views_ms {
            let next = self.subsystems.iter().filter_map(|one| one.look_at_views(now_ms)).min();
            self.views_ms = next.map_or(0, |ms| now_ms + ms);
        }
        let is_over = |one: &Association| one.expires_ms().is_some_and(|at| at <= now_ms);
        let over = self.associations.iter_mut().filter(|(_, one)| is_over(one));
        over.map(|(id, one)| {
            one.is_ending = true;
            *id
        })
        .collect()
    }

    /// When the next controller or the next check of leases is due, in milliseconds.
    pub(crate) fn expires_ms(&self) -> Option<u64> {
        let views = (self.views_ms > 0).then_some(self.views_ms);
        self.associations.values().filter_map(Association::expires_ms).chain(views).min()
    }
}

// A random number.
fn drawn() -> u64 {
    let mut bytes = [0; 8];
    sys::random::fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

// The serial number (SN): the same for all controllers of a subsystem, made of its NQN.
fn serial(nqn: &Nqn) -> String {
    format!("{:016X}", workload::fnv64_text(nqn.as_str()))
}

#[cfg(test)]
mod tests {
    use nvme::{
        Admin, Arrival, Change, Command, ConnectData, Data, Digests, Direction, Fabrics, Fused,
        HostQueue, Property, Queue, QueueLimits, Reply, Submission, Transfer,
    };

    use super::*;

    fn subsystem(name: &str) -> Arc<Subsystem> {
        Arc::new(Subsystem::new(Nqn::new(name).expect("it is one"), None, Vec::new()))
    }

    fn control(subsystems: &[&Arc<Subsystem>]) -> Control {
        let subsystems = subsystems.iter().map(|one| Arc::clone(one)).collect();
        let address = "10.0.0.1:4420".parse().expect("it is one");
        Control::new(Limits::default(), subsystems, [Arc::new(Portal::new(1, address))].into())
    }

    // Slots are those of a queue: what comes when a host connects, and in which.
    fn arrived(name: &str) -> (Slot, ConnectRequest) {
        let mut queue = Queue::new(QueueLimits {
            capsule_data_bytes: 8192,
            maxh2cdata: 8192,
            transfer_bytes: 8192,
            entries: 32,
        });
        let [mut sent, mut answered] = [Vec::new(), Vec::new()];
        let mut host = HostQueue::begin(32, Digests { header: false, data: false }, &mut sent);
        assert!(queue.receive(&mut &sent[..], &mut answered).expect("it is right").is_none());
        host.receive(&mut &answered[..]).expect("it is right");
        let data = ConnectData {
            host_id: [1; 16],
            controller_id: ANY,
            subsystem: Nqn::new(name).expect("it is one"),
            host: Nqn::new("nqn.host").expect("it is one"),
        };
        let data = data.write();
        let length = u32::try_from(data.len()).expect("it is short");
        let connect =
            Fabrics::Connect { format: 0, queue: 0, size: 31, attributes: 0, keep_alive_ms: 0 };
        let submission = Submission {
            cid: 0,
            fused: Fused::No,
            nsid: 0,
            data: Data::InCapsule { offset: 0, length },
            direction: Direction::ToController,
            command: Command::Fabrics(connect),
        };
        sent.clear();
        host.submit(submission.write(), &data, Transfer::None, &mut sent).expect("there is room");
        match queue.receive(&mut &sent[..], &mut answered) {
            Ok(Some(Arrival::Connect(slot, request))) => (slot, request),
            other => panic!("{other:?}"),
        }
    }

    // A host that promises signs of life, unless it only looks around.
    fn connect(control: &mut Control, name: &str, connection: u32) -> Option<u16> {
        let keep_alive_ms = if name == Nqn::DISCOVERY { 0 } else { 300_000 };
        connect_for(control, name, connection, keep_alive_ms)
    }

    fn connect_for(
        control: &mut Control,
        name: &str,
        connection: u32,
        keep_alive_ms: u32,
    ) -> Option<u16> {
        let request = ConnectRequest { keep_alive_ms, ..arrived(name).1 };
        let local = "10.0.0.1:4420".parse().expect("it is one");
        let entrance = Entrance { local, portal: Arc::clone(&control.portals[0]) };
        match control.connect(&request, connection, &entrance, 0) {
            Ok(Connected::Admin(id)) => Some(id),
            _ => None,
        }
    }

    fn ask(control: &mut Control, id: u16, command: Command, length: u32) -> Reply {
        let (controller, look) = control.with_view(id).expect("it is there");
        let (data, direction) = match length {
            0 => (Data::None, Direction::None),
            _ => (Data::Transport { length }, Direction::ToHost),
        };
        let submission = Submission { cid: 1, fused: Fused::No, nsid: 0, data, direction, command };
        controller.handle(arrived("nqn.any").0, &submission, &look, 0)
    }

    // A discovery controller that wants to know, and what it finds.
    fn watch(control: &mut Control, connection: u32) -> u16 {
        let id = connect(control, Nqn::DISCOVERY, connection).expect("anybody may");
        let property = Property { offset: 0x14, is_wide: false };
        let enable = Fabrics::PropertySet { property, value: 0x46_0001 };
        let enabled = ask(control, id, Command::Fabrics(enable), 0);
        assert_eq!(enabled, Reply::Changed(Change::Enabled));
        let want = Admin::SetFeatures { feature: 0x0b, saves: false, value: 1 << 31 };
        ask(control, id, Command::Admin(want), 0);
        assert_eq!(ask(control, id, Command::Admin(Admin::AsyncEventRequest), 0), Reply::Held);
        id
    }

    fn found(control: &mut Control, id: u16) -> [u8; 2] {
        let page = Admin::GetLogPage {
            page: 0x70,
            specific: 0,
            retains_event: false,
            length: 1024,
            offset: 0,
            is_index: false,
        };
        match ask(control, id, Command::Admin(page), 1024) {
            Reply::Data(data) => [data[0], data[8]],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn subsystems_come_and_go_while_hosts_are_there() {
        let [one, two, three] = ["nqn.one", "nqn.two", "nqn.three"].map(subsystem);
        let mut control = control(&[&one, &two]);
        assert!(connect(&mut control, "nqn.one", 10).is_some());
        assert!(connect(&mut control, "nqn.two", 20).is_some());
        assert_eq!(connect(&mut control, "nqn.three", 30), None, "it is not there yet");
        let watcher = watch(&mut control, 40);
        assert_eq!(found(&mut control, watcher), [1, 3], "both, and itself");
        let lost = control.serve(vec![Arc::clone(&one), Arc::clone(&three)]);
        assert_eq!(lost, [20]);
        let events = control.notify(None, &[Notice::Discovery]);
        assert_eq!(events, [(40, (arrived("nqn.any").0, 0x70_f0_02))]);
        assert_eq!(found(&mut control, watcher), [2, 3]);
        assert_eq!(connect(&mut control, "nqn.two", 50), None, "it is gone");
        assert!(connect(&mut control, "nqn.three", 60).is_some());
        // One of the same name is another; nobody has said yet that the connection of 20 is gone.
        assert_eq!(control.serve(vec![subsystem("nqn.one"), three]), [10, 20]);
    }

    #[test]
    fn controllers_have_numbers_of_their_range() {
        let one = subsystem("nqn.one");
        let mut control = control(&[&one]);
        control.limits.controller_ids = [7, 8];
        control.last_id = 8;
        let connected = [10, 20, 30].map(|connection| connect(&mut control, "nqn.one", connection));
        assert_eq!(connected, [Some(7), Some(8), None]);
        assert!(control.end(7, 10));
        assert_eq!(connect(&mut control, "nqn.one", 40), Some(7));
        assert!(!control.end(7, 10), "it is the controller of another connection");
        assert_eq!(connect(&mut control, "nqn.one", 50), None, "which has stayed");
    }

    #[test]
    fn hosts_that_may_not_connect_do_not_find_it() {
        let one = subsystem("nqn.one");
        let mut control = control(&[&one]);
        let watcher = watch(&mut control, 40);
        assert_eq!(found(&mut control, watcher), [1, 2]);
        one.admit(Some(BTreeSet::new()));
        let lost = control.serve(vec![Arc::clone(&one)]);
        assert!(lost.is_empty(), "those that are there stay: {lost:?}");
        assert_eq!(found(&mut control, watcher), [2, 1]);
        assert_eq!(connect(&mut control, "nqn.one", 10), None);
    }

    #[test]
    fn a_host_is_given_up_once() {
        let one = subsystem("nqn.one");
        let mut control = control(&[&one]);
        let id = connect_for(&mut control, "nqn.one", 1, 100).expect("there is room");
        assert!(control.expires_ms().is_some_and(|at| at <= 10_000));
        assert_eq!(control.take_expired(10_000), [id]);
        // It ends when what it has under way has: nothing is due until then.
        assert_eq!((control.take_expired(10_001), control.expires_ms()), (vec![], None));
    }

    #[test]
    fn who_only_looks_around_keeps_nobody_out() {
        let one = subsystem("nqn.one");
        let mut control = control(&[&one]);
        (control.limits.controllers, control.limits.host_controllers) = (3, 4);
        for connection in 1..=3 {
            connect(&mut control, Nqn::DISCOVERY, connection).expect("there is room");
        }
        assert_eq!(control.expires_ms(), Some(u64::from(DISCOVERY_KEEP_ALIVE_MS)));
        for (connection, evicted) in [(4, 1), (5, 2), (6, 3)] {
            connect(&mut control, "nqn.one", connection).expect("there is room for it");
            assert_eq!(control.take_evicted(), [evicted]);
        }
        assert_eq!(connect(&mut control, "nqn.one", 7), None, "none of them looks around");
        control.limits.host_controllers = 5;
        let idle = control.associations.iter().next().expect("there are some");
        let (idle, connection) = (*idle.0, idle.1.connection);
        assert!(control.end(idle, connection));
        connect_for(&mut control, "nqn.one", 8, 0).expect("there is room");
        connect(&mut control, "nqn.one", 9).expect("who promises nothing makes room");
        assert_eq!(control.take_evicted(), [8]);
        control.limits.controllers = 100;
        control.limits.host_controllers = 4;
        connect(&mut control, "nqn.one", 7).expect("there is room");
        assert_eq!(connect(&mut control, "nqn.one", 8), None, "it has as many as a host may");
    }

    #[test]
    fn only_hosts_of_a_subsystem_hear_of_its_namespaces() {
        let [one, two] = ["nqn.one", "nqn.two"].map(subsystem);
        let mut control = control(&[&one, &two]);
        for (name, connection) in [("nqn.one", 10), ("nqn.two", 20)] {
            let id = connect(&mut control, name, connection).expect("it is there");
            let property = Property { offset: 0x14, is_wide: false };
            let enable = Fabrics::PropertySet { property, value: 0x46_0001 };
            ask(&mut control, id, Command::Fabrics(enable), 0);
            let want = Admin::SetFeatures { feature: 0x0b, saves: false, value: 1 << 8 };
            ask(&mut control, id, Command::Admin(want), 0);
            ask(&mut control, id, Command::Admin(Admin::AsyncEventRequest), 0);
        }
        let events = control.notify(Some(&two), &[Notice::Namespace(7)]);
        assert_eq!(events, [(20, (arrived("nqn.any").0, 0x04_00_02))]);
    }

    fn connect_queue(control: &mut Control, id: u16, queue: u16) -> Result<(), Refusal> {
        let (_, mut request) = arrived("nqn.one");
        (request.queue, request.data.controller_id) = (queue, id);
        let local = "10.0.0.1:4420".parse().expect("it is one");
        let entrance = Entrance { local, portal: Arc::clone(&control.portals[0]) };
        control.connect(&request, 99, &entrance, 0).map(|_| ())
    }

    fn enable(control: &mut Control, id: u16, is_on: bool) {
        let property = Property { offset: 0x14, is_wide: false };
        let value = 0x46_0000 | u64::from(is_on);
        ask(control, id, Command::Fabrics(Fabrics::PropertySet { property, value }), 0);
    }

    #[test]
    fn a_host_waits_for_the_queues_it_had() {
        let [one, two] = ["nqn.one", "nqn.two"].map(subsystem);
        let mut control = control(&[&one, &two]);
        let id = connect(&mut control, "nqn.one", 10).expect("anybody may");
        enable(&mut control, id, true);
        connect_queue(&mut control, id, 1).expect("it is ready");
        // Another association of a host that is there is another path.
        let other = connect(&mut control, "nqn.one", 20).expect("nothing is over");
        enable(&mut control, other, true);
        assert!(control.end(id, 10));
        assert_eq!(connect(&mut control, "nqn.one", 30), None, "a queue is there");
        assert!(connect(&mut control, "nqn.two", 40).is_some(), "but not here");
        connect_queue(&mut control, other, 1).expect("its other path goes on");
        assert!(control.end_queue(id, 1).is_empty());
        assert!(connect(&mut control, "nqn.one", 50).is_some());
    }

    #[test]
    fn a_controller_that_was_reset_has_its_queues_ended_before_others_begin() {
        let one = subsystem("nqn.one");
        let mut control = control(&[&one]);
        let id = connect(&mut control, "nqn.one", 10).expect("anybody may");
        enable(&mut control, id, true);
        connect_queue(&mut control, id, 1).expect("it is ready");
        control.reset(id);
        assert_eq!(connect_queue(&mut control, id, 2), Err(NOT_OVER));
        control.end_queue(id, 1);
        connect_queue(&mut control, id, 2).expect("nothing is under way");
    }
}
