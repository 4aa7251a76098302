//! One session: its connections, its commands, and what they wait for.
//!
//! ```text
//! command ─► (memory) ─► (data) ─► (range) ─► step, job, step ... ─► answer
//! ```
//!
//! Invariants:
//! - A command holds its range until its last request has ended, answered or not.
//! - A command that waits for memory gets no data: unsolicited data has its memory at once, or the
//!   command is refused as one too many.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use scsi::iscsi::{Identity, Link, Management, Session, SessionLimits, TargetRecord, Task};
use scsi::{Nexus, TransportId, UnitData};

use super::super::subsystem::{Namespace, Subsystem};
use super::super::waiting::Waiting;
use super::ending::Then;
use super::gate::Gate;
use super::pending::Pending;
use super::port::Port;
use super::unit;

/// Commands that a session may have outstanding, and immediate commands.
const LIMITS: SessionLimits = SessionLimits { commands: 128, immediate: 32 };

/// See the module's description.
pub(crate) struct IscsiSession {
    pub(super) session: Session,
    pub(crate) tsih: u16,
    /// The session's place on the shard, and a number that no other session of the shard has had.
    pub(super) slot: u32,
    pub(super) serial: u64,
    pub(super) nexus: Nexus,
    pub(super) peer: Peer,
    pub(super) units: Arc<[Arc<Namespace>]>,
    /// By place among the units: the last [`super::super::reserved::Reserved::clearance`].
    pub(super) clear: Vec<Option<(u64, UnitData)>>,
    pub(super) pending: Vec<Option<Pending>>,
    pub(super) waiting: Waiting<Task>,
    pub(super) ways: Ways,
    pub(super) due: Due,
}

/// Who has logged in, and to what.
pub(super) struct Peer {
    pub(super) initiator: String,
    pub(super) isid: [u8; 6],
    /// `None` in a discovery session.
    pub(super) subsystem: Option<Arc<Subsystem>>,
    pub(super) target: String,
    /// The target port of its connections.
    pub(super) port: Port,
}

/// The connections of a session.
pub(super) struct Ways {
    /// Connections of the shard and their local addresses, by number in the session.
    pub(super) links: Vec<Option<(u32, SocketAddr)>>,
    /// Numbers of connections that were logged out or replaced.
    pub(super) leaving: BTreeSet<u16>,
    /// Numbers of connections that another one replaces: the session outlives them.
    pub(super) replaced: BTreeSet<u16>,
    /// The connection whose logout waits for commands to end.
    pub(super) logout: Option<u16>,
}

/// Answers that are due.
#[derive(Default)]
pub(super) struct Due {
    /// Task management requests to answer, each with its response code.
    pub(super) managed: Vec<(Management, u8)>,
    /// Aborting commands to answer, since the aborted ones have ended.
    pub(super) completed: Vec<Task>,
}

/// A finished login that begins a session.
pub(super) struct Begun {
    pub(super) identity: Identity,
    pub(super) tsih: u16,
    pub(super) subsystem: Option<Arc<Subsystem>>,
    pub(super) link: Link,
    pub(super) connection: u32,
    pub(super) local: SocketAddr,
    pub(super) port: Port,
}

impl IscsiSession {
    /// A session with its first connection.
    pub(super) fn new(begun: Begun, serial: u64, shard: u16) -> Self {
        let Begun { identity, tsih, subsystem, link, connection, local, port } = begun;
        let mut session = Self {
            session: Session::new(LIMITS, link),
            tsih,
            slot: 0,
            serial,
            // The nexus is unique in the target: a serial per shard, and the shard.
            nexus: Nexus(serial << 16 | u64::from(shard)),
            peer: Peer {
                initiator: identity.initiator,
                isid: identity.isid,
                subsystem,
                target: identity.target.unwrap_or_default(),
                port,
            },
            units: Vec::new().into(),
            clear: Vec::new(),
            pending: Vec::new(),
            waiting: Waiting::default(),
            ways: Ways {
                links: vec![Some((connection, local))],
                leaving: BTreeSet::new(),
                replaced: BTreeSet::new(),
                logout: None,
            },
            due: Due::default(),
        };
        session.refresh();
        session
    }

    /// The session's number, which no other session of its shard has had.
    pub(crate) const fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether the session is between this initiator port and the target port of this number
    /// (4.4.3: the ISID rule); never for discovery sessions, which do not exclude one another.
    pub(super) fn is_of(&self, identity: &Identity, port: u16) -> bool {
        let peer = &self.peer;
        peer.subsystem.is_some()
            && identity.target.as_ref() == Some(&peer.target)
            && identity.initiator == peer.initiator
            && identity.isid == peer.isid
            && peer.port.number() == port
    }

    /// Its connections, by their numbers on the shard.
    pub(super) fn links(&self) -> impl Iterator<Item = u32> {
        self.ways.links.iter().flatten().map(|(connection, _)| *connection)
    }

    /// Marks the connections with this CID as replaced, and returns them to be closed. The session
    /// outlives them.
    pub(super) fn replace(&mut self, cid: u16) -> Vec<u32> {
        let open = self.session.connections().filter(|one| one.1 == cid);
        let numbers: Vec<u16> = open.map(|one| one.0).collect();
        self.ways.leaving.extend(&numbers);
        self.ways.replaced.extend(&numbers);
        let link = |number: u16| self.ways.links.get(usize::from(number)).copied().flatten();
        numbers.into_iter().filter_map(link).map(|(connection, _)| connection).collect()
    }

    /// Adds a connection. Returns its number in the session.
    pub(super) fn join(&mut self, link: Link, connection: u32, local: SocketAddr) -> u16 {
        let number = self.session.join(link);
        let index = usize::from(number);
        self.ways.links.resize(self.ways.links.len().max(index + 1), None);
        self.ways.links[index] = Some((connection, local));
        number
    }

    /// Takes over changes of the subsystem's namespaces: detaches from old units, attaches to new.
    pub(crate) fn refresh(&mut self) {
        let Some(subsystem) = &self.peer.subsystem else { return };
        let units = subsystem.units();
        let is_in = |all: &[Arc<Namespace>], one: &Arc<Namespace>| {
            all.iter().any(|other| Arc::ptr_eq(other, one))
        };
        for gone in self.units.iter().filter(|one| !is_in(&units, one)) {
            gone.reserved.with_unit(|unit| unit.detach(self.nexus));
        }
        for new in units.iter().filter(|one| !is_in(&self.units, one)) {
            let id = TransportId::iscsi(&self.peer.initiator, self.peer.isid);
            let port = &self.peer.port;
            let way = id.through(port.number());
            new.reserved.attach(self.nexus, way, || unit::data(new, port.count()));
        }
        self.clear = vec![None; units.len()];
        self.units = units;
    }

    /// Detaches the session from its logical units: it has ended.
    pub(super) fn detach(&self) {
        for unit in &*self.units {
            unit.reserved.with_unit(|unit| unit.detach(self.nexus));
        }
    }

    /// The command of this task; `None` if it is not under way.
    pub(super) fn pending(&mut self, task: Task) -> Option<&mut Pending> {
        self.pending.get_mut(usize::from(task.number()))?.as_mut()
    }

    /// Makes an answer due whose aborted commands have ended. Returns the connection to wake.
    pub(crate) fn follow(&mut self, then: Then) -> Option<u32> {
        match then {
            Then::Answer { management, .. } => {
                self.due.managed.push((management, 0));
                let number = self.session.connection_of_management(management)?;
                self.ways.links.get(usize::from(number))?.map(|(connection, _)| connection)
            }
            Then::Complete { task, .. } => {
                let is_aborting = self.pending(task).is_some_and(|one| one.is_aborting());
                self.due.completed.extend(is_aborting.then_some(task));
                self.link_of(task)
            }
            Then::Tell { .. } => None,
        }
    }

    /// SendTargets: in a discovery session records of all targets, from the control thread; in a
    /// normal session that of its own target (RFC 7143 appendix C).
    pub(super) fn records(
        &self,
        number: u16,
        asked: &str,
        gate: Option<&Gate>,
    ) -> Vec<TargetRecord> {
        let link = self.ways.links.get(usize::from(number)).copied().flatten();
        let Some((_, local)) = link else { return Vec::new() };
        match (&self.peer.subsystem, gate) {
            (None, Some(gate)) => gate.records(asked, &self.peer.initiator, local),
            (Some(_), _) if asked.is_empty() || asked == self.peer.target => {
                let addresses = vec![format!("{local},{}", self.peer.port.number())];
                vec![TargetRecord { name: self.peer.target.clone(), addresses }]
            }
            _ => Vec::new(),
        }
    }

    /// The connection, by number on the shard, that a command belongs to.
    pub(super) fn link_of(&self, task: Task) -> Option<u32> {
        let number = self.session.connection_of(task)?;
        self.ways.links.get(usize::from(number))?.map(|(connection, _)| connection)
    }

    /// How many bytes of data have come; `None` if no data is owed.
    pub(super) const fn owed(&self) -> Option<u64> {
        self.waiting.owed()
    }

    /// Ends what is owed of a command's data.
    pub(super) fn settle_data(&mut self, task: Task, now_ns: u64) {
        if let Some(bytes) = self.pending(task).and_then(|one| one.owes.take()) {
            self.waiting.solicited.end(bytes, now_ns);
        }
    }

    /// Whether a command waits for memory or for a range.
    pub(super) fn is_starving(&self) -> bool {
        self.waiting.is_starving()
    }
}
