//! The sessions of a target, and which one a new connection joins (RFC 7143 6.3.1, 6.3.5, 6.3.6).

use std::collections::BTreeMap;

use super::admission::LoginStatus;
use super::login::Identity;

/// The session of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// A new session.
    New {
        /// Its TSIH.
        tsih: u16,
        /// The session that it replaces, which has to end before the login continues (6.3.5).
        replaces: Option<u16>,
    },
    /// An existing session.
    Joins {
        /// Its TSIH.
        tsih: u16,
        /// Whether it replaces a connection with the same CID, which has to end before the login
        /// continues (6.3.6).
        replaces: bool,
    },
}

/// An existing session.
#[derive(Debug)]
pub struct Known {
    /// The initiator's name.
    pub initiator: String,
    /// The target's name; `None` in a discovery session.
    pub target: Option<String>,
    isid: [u8; 6],
    /// Tag of its portal group.
    group: u16,
    connections_max: u16,
    cids: Vec<u16>,
    /// Whether another session has replaced it, and it has not ended yet.
    is_replaced: bool,
}

/// The sessions of a target, over all portal groups. The caller bounds their number, below that of
/// TSIHs.
#[derive(Debug, Default)]
pub struct Registry {
    sessions: BTreeMap<u16, Known>,
    latest: u16,
}

impl Registry {
    /// The sessions that no other one has replaced, in the order of TSIHs.
    pub fn sessions(&self) -> impl Iterator<Item = (u16, &Known)> {
        let all = self.sessions.iter().map(|(tsih, known)| (*tsih, known));
        all.filter(|(_, known)| !known.is_replaced)
    }

    /// The session that a new one of this identity replaces: of the same initiator port with the
    /// same portal group of the target (4.4.3: the ISID rule), or such a session that was replaced
    /// but has not ended. Discovery sessions do not exclude one another.
    #[must_use]
    pub fn replaced_by(&self, identity: &Identity, group: u16) -> Option<u16> {
        let is_same = |known: &Known| {
            known.target.is_some()
                && known.target == identity.target
                && known.initiator == identity.initiator
                && known.isid == identity.isid
                && known.group == group
        };
        let same = || self.sessions.iter().filter(|(_, known)| is_same(known));
        let now = same().find(|(_, known)| !known.is_replaced).or_else(|| same().next());
        now.map(|(tsih, _)| *tsih)
    }

    /// Places a connection that has come through portal group `group`; a new session may have
    /// `connections_max` connections.
    ///
    /// # Errors
    /// The status with which its login ends.
    pub fn place(
        &mut self,
        identity: &Identity,
        group: u16,
        connections_max: u16,
    ) -> Result<Placement, LoginStatus> {
        if identity.tsih == 0 {
            return Ok(self.begin(identity, group, connections_max));
        }
        let known =
            self.sessions.get_mut(&identity.tsih).ok_or(LoginStatus::SessionDoesNotExist)?;
        let is_same = known.initiator == identity.initiator
            && known.isid == identity.isid
            && known.target == identity.target;
        if !is_same || known.target.is_none() || known.is_replaced {
            return Err(LoginStatus::SessionDoesNotExist);
        }
        // 4.4.2: a session stays within a portal group.
        if known.group != group {
            return Err(LoginStatus::CannotInclude);
        }
        let replaces = known.cids.contains(&identity.cid);
        if !replaces {
            if known.cids.len() >= usize::from(known.connections_max) {
                return Err(LoginStatus::TooManyConnections);
            }
            known.cids.push(identity.cid);
        }
        Ok(Placement::Joins { tsih: identity.tsih, replaces })
    }

    // Adds a new session with the next free TSIH.
    fn begin(&mut self, identity: &Identity, group: u16, connections_max: u16) -> Placement {
        let replaces = self.replaced_by(identity, group);
        if let Some(known) = replaces.and_then(|replaced| self.sessions.get_mut(&replaced)) {
            known.is_replaced = true;
        }
        let mut tsih = self.latest;
        loop {
            tsih = tsih.wrapping_add(1);
            if tsih != 0 && !self.sessions.contains_key(&tsih) {
                break;
            }
        }
        self.latest = tsih;
        let known = Known {
            initiator: identity.initiator.clone(),
            target: identity.target.clone(),
            isid: identity.isid,
            group,
            connections_max,
            cids: vec![identity.cid],
            is_replaced: false,
        };
        self.sessions.insert(tsih, known);
        Placement::New { tsih, replaces }
    }

    /// Removes a connection of a session, and the session with the last one.
    pub fn left(&mut self, tsih: u16, cid: u16) {
        if let Some(known) = self.sessions.get_mut(&tsih) {
            known.cids.retain(|one| *one != cid);
            if known.cids.is_empty() {
                self.ended(tsih);
            }
        }
    }

    /// Removes a session.
    pub fn ended(&mut self, tsih: u16) {
        self.sessions.remove(&tsih);
    }

    /// The number of sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there are no sessions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(isid: u8, tsih: u16, cid: u16) -> Identity {
        Identity {
            initiator: "iqn.a".to_owned(),
            target: Some("iqn.t".to_owned()),
            isid: [isid; 6],
            tsih,
            cid,
        }
    }

    #[test]
    fn connections_join_the_session_that_they_name() {
        let mut all = Registry::default();
        assert_eq!(
            all.place(&identity(1, 0, 0), 1, 2),
            Ok(Placement::New { tsih: 1, replaces: None })
        );
        let joins = |replaces| Ok(Placement::Joins { tsih: 1, replaces });
        assert_eq!(all.place(&identity(1, 1, 1), 1, 2), joins(false));
        assert_eq!(all.place(&identity(1, 1, 1), 1, 2), joins(true));
        assert_eq!(all.place(&identity(1, 1, 2), 1, 2), Err(LoginStatus::TooManyConnections));
        assert_eq!(all.place(&identity(1, 7, 2), 1, 2), Err(LoginStatus::SessionDoesNotExist));
        assert_eq!(all.place(&identity(2, 1, 2), 1, 2), Err(LoginStatus::SessionDoesNotExist));
        let other = Identity { initiator: "iqn.b".to_owned(), ..identity(1, 1, 2) };
        assert_eq!(all.place(&other, 1, 2), Err(LoginStatus::SessionDoesNotExist));
        all.left(1, 1);
        assert_eq!(all.place(&identity(1, 1, 2), 1, 2), joins(false));
        all.left(1, 2);
        all.left(1, 0);
        assert!(all.is_empty());
    }

    #[test]
    fn a_session_is_of_one_portal_group() {
        let mut all = Registry::default();
        let new = |tsih, replaces| Ok(Placement::New { tsih, replaces });
        assert_eq!(all.place(&identity(1, 0, 0), 1, 2), new(1, None));
        assert_eq!(all.place(&identity(1, 0, 0), 2, 2), new(2, None), "beside the other");
        assert_eq!(all.place(&identity(1, 1, 1), 2, 2), Err(LoginStatus::CannotInclude));
        assert_eq!(all.place(&identity(1, 0, 0), 2, 2), new(3, Some(2)));
        assert_eq!(all.sessions().count(), 2);
    }

    #[test]
    fn whoever_comes_again_is_in_the_stead_of_the_one_before() {
        let mut all = Registry::default();
        for round in 0..1000_u16 {
            let Ok(Placement::New { tsih, replaces }) = all.place(&identity(1, 0, 0), 1, 1) else {
                panic!("there is room in round {round}");
            };
            assert_eq!(replaces, (round > 0).then(|| tsih - 1));
            replaces.into_iter().for_each(|replaced| all.ended(replaced));
            assert_eq!(all.len(), 1);
        }
        let discovery = Identity { target: None, ..identity(3, 0, 0) };
        for _ in 0..2 {
            let placed = all.place(&discovery, 1, 1);
            assert!(matches!(placed, Ok(Placement::New { replaces: None, .. })));
        }
    }

    #[test]
    fn a_session_that_has_not_ended_is_replaced_by_whoever_comes_next() {
        let mut all = Registry::default();
        let new = |tsih, replaces| Ok(Placement::New { tsih, replaces });
        assert_eq!(all.place(&identity(1, 0, 0), 1, 1), new(1, None));
        assert_eq!(all.place(&identity(1, 0, 0), 1, 1), new(2, Some(1)));
        assert_eq!(all.place(&identity(1, 1, 1), 1, 1), Err(LoginStatus::SessionDoesNotExist));
        // The second is lost before the first has ended.
        all.ended(2);
        assert_eq!(all.place(&identity(1, 0, 0), 1, 1), new(3, Some(1)));
        all.ended(1);
        assert_eq!(all.place(&identity(1, 0, 0), 1, 1), new(4, Some(3)));
        assert_eq!(all.sessions().map(|(tsih, _)| tsih).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn identifiers_are_never_nothing() {
        let mut all = Registry { latest: u16::MAX, ..Registry::default() };
        assert_eq!(
            all.place(&identity(1, 0, 0), 1, 1),
            Ok(Placement::New { tsih: 1, replaces: None })
        );
    }
}
