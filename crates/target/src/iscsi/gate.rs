//! Who may log in, and to which shard a connection belongs: on the control thread, which accepts
//! all.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use scsi::iscsi::{
    Admission, Chap, Identity, LoginStatus, Nonce, Placement, Registry, TargetRecord,
};

use super::super::guests::{Full, Guest, Guests};
use super::super::loads::Loads;
use super::super::portal::Portal;
use super::super::subsystem::Subsystem;
use super::port::Port;

/// See the module's description.
pub(crate) struct Gate {
    subsystems: Vec<Arc<Subsystem>>,
    portals: Arc<[Arc<Portal>]>,
    /// CHAP secrets of discovery sessions.
    discovery: Option<Chap>,
    registry: Registry,
    guests: Guests,
    /// Discovery sessions that have ended to make room for others.
    evicted: Vec<u16>,
    /// The shard of each session.
    homes: BTreeMap<u16, u16>,
    /// The number of the control thread, where discovery sessions live.
    own: u16,
}

/// The shard of a connection, and its place among the sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) home: u16,
    pub(crate) placement: Placement,
}

impl Gate {
    pub(crate) fn new(
        subsystems: Vec<Arc<Subsystem>>,
        portals: Arc<[Arc<Portal>]>,
        discovery: Option<Chap>,
        guests: Guests,
        own: u16,
    ) -> Self {
        Self {
            subsystems,
            portals,
            discovery,
            registry: Registry::default(),
            guests,
            evicted: Vec::new(),
            homes: BTreeMap::new(),
            own,
        }
    }

    /// Replaces the subsystems.
    pub(crate) fn serve(&mut self, subsystems: Vec<Arc<Subsystem>>) {
        self.subsystems = subsystems;
    }

    /// Random bytes for a CHAP challenge.
    pub(crate) fn nonce() -> Nonce {
        let mut bytes = [0; 33];
        sys::random::fill(&mut bytes);
        let mut challenge = [0; 32];
        challenge.copy_from_slice(&bytes[..32]);
        Nonce { id: bytes[32], challenge }
    }

    /// Admits an initiator that has come through `port`. Returns the terms of its login, and the
    /// subsystem if it has named a target.
    pub(crate) fn admit(
        &self,
        identity: &Identity,
        port: &Port,
    ) -> Result<(Admission, Option<Arc<Subsystem>>), LoginStatus> {
        let group = port.number();
        let Some(target) = &identity.target else {
            let chap = self.discovery.clone();
            return Ok((Admission { chap, group, alias: None }, None));
        };
        let named = self.subsystems.iter().find_map(|subsystem| {
            let access = subsystem.iscsi();
            access.filter(|access| access.name == *target).map(|access| (subsystem, access))
        });
        let (subsystem, access) = named.ok_or(LoginStatus::NotFound)?;
        if !access.admits(&identity.initiator) {
            return Err(LoginStatus::AuthorizationFailure);
        }
        let chap = access.chap_for(&identity.initiator);
        let chap = chap.ok_or(LoginStatus::AuthorizationFailure)?;
        let admission = Admission { chap, group, alias: None };
        Ok((admission, Some(Arc::clone(subsystem))))
    }

    /// Places a logged-in connection: its shard, and a new or existing session, which may have
    /// `connections_max` connections.
    pub(crate) fn place(
        &mut self,
        identity: &Identity,
        port: &Port,
        connections_max: u16,
        loads: &mut Loads,
    ) -> Result<Place, LoginStatus> {
        if identity.tsih == 0 {
            self.make_room(identity, port.number())?;
        }
        let placement = self.registry.place(identity, port.number(), connections_max)?;
        let home = match placement {
            Placement::Joins { tsih, .. } => {
                *self.homes.get(&tsih).ok_or(LoginStatus::SessionDoesNotExist)?
            }
            Placement::New { tsih, replaces } => {
                // On the shard of the session that it replaces, which has to end first.
                let before = replaces.and_then(|replaced| self.homes.get(&replaced).copied());
                // Discovery sessions need data that only this thread has.
                let home = match (&identity.target, before) {
                    (None, _) => self.own,
                    (Some(_), Some(home)) if home != self.own => {
                        loads.enter(home);
                        home
                    }
                    (Some(_), _) => loads.place(),
                };
                self.homes.insert(tsih, home);
                home
            }
        };
        Ok(Place { home, placement })
    }

    // Makes room for a new session, which may replace an old one. At the limit the discovery
    // session with the lowest TSIH ends: the oldest, until numbers wrap.
    fn make_room(&mut self, identity: &Identity, group: u16) -> Result<(), LoginStatus> {
        let replaced = self.registry.replaced_by(identity, group);
        let others = self.registry.sessions().filter(|(tsih, _)| Some(*tsih) != replaced);
        let all = others.map(|(key, known)| Guest {
            key,
            is_of_host: known.initiator == identity.initiator,
            idle: known.target.is_none().then_some(0),
        });
        let evicted = self.guests.admit(all).map_err(|Full| LoginStatus::OutOfResources)?;
        if let Some(tsih) = evicted {
            self.registry.ended(tsih);
            self.evicted.push(tsih);
        }
        Ok(())
    }

    /// Takes the discovery sessions that have ended to make room for others.
    pub(crate) fn take_evicted(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.evicted)
    }

    /// Removes a connection of a session, and the session with the last one.
    pub(crate) fn connection_ended(&mut self, tsih: u16, cid: u16) {
        self.registry.left(tsih, cid);
    }

    /// Removes a session.
    pub(crate) fn session_ended(&mut self, tsih: u16, loads: &mut Loads) {
        self.registry.ended(tsih);
        if let Some(home) = self.homes.remove(&tsih).filter(|home| *home != self.own) {
            loads.leave(home);
        }
    }

    /// SendTargets: records of the targets that an initiator at local address `local` may log in
    /// to, all of them or the one that it names.
    pub(crate) fn records(
        &self,
        asked: &str,
        initiator: &str,
        local: SocketAddr,
    ) -> Vec<TargetRecord> {
        let access = self.subsystems.iter().filter_map(|subsystem| subsystem.iscsi());
        access
            .filter(|access| asked == "All" || asked == access.name)
            .filter(|access| access.admits(initiator))
            .map(|access| TargetRecord { name: access.name, addresses: self.addresses(local) })
            .collect()
    }

    // TargetAddress values of all portals that an initiator at `local` can reach.
    fn addresses(&self, local: SocketAddr) -> Vec<String> {
        let reached = |portal: &Arc<Portal>| {
            portal.reached(local).map(|address| format!("{address},{}", portal.number))
        };
        self.portals.iter().filter_map(reached).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_asks_which_targets_there_are_keeps_nobody_out() {
        let address = "127.0.0.1:3260".parse().expect("an address");
        let portals: Arc<[_]> = vec![Arc::new(Portal::new(1, address))].into();
        let guests = Guests { most: 3, most_of_one: 2 };
        let mut gate = Gate::new(Vec::new(), Arc::clone(&portals), None, guests, 2);
        let mut loads = Loads::new(2);
        let mut comes = |initiator: &str, isid: u8, target: Option<&str>| {
            let (initiator, target) = (initiator.to_owned(), target.map(str::to_owned));
            let identity = Identity { initiator, target, isid: [isid; 6], tsih: 0, cid: 0 };
            let port = Port::new(&portals, 0).expect("there is one");
            let placed = gate.place(&identity, &port, 1, &mut loads).map(|place| place.placement);
            (placed, gate.take_evicted())
        };
        let new = |tsih| Ok(Placement::New { tsih, replaces: None });
        let full = Err(LoginStatus::OutOfResources);
        assert_eq!(comes("iqn.a", 1, None), (new(1), vec![]));
        assert_eq!(comes("iqn.a", 2, None), (new(2), vec![]));
        assert_eq!(comes("iqn.a", 3, None), (full, vec![]), "it has as many as a host may");
        let disk = Some("iqn.t");
        assert_eq!(comes("iqn.b", 1, disk), (new(3), vec![]));
        assert_eq!(comes("iqn.c", 1, disk), (new(4), vec![1]), "the first makes room");
        assert_eq!(comes("iqn.d", 1, disk), (new(5), vec![2]));
        assert_eq!(comes("iqn.e", 1, disk), (full, vec![]));
        // Who comes again is in the stead of the one before, and needs no room.
        let again = Ok(Placement::New { tsih: 6, replaces: Some(5) });
        assert_eq!(comes("iqn.d", 1, disk), (again, vec![]));
    }
}
