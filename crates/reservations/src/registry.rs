//! The registry: what each action changes, and whom the change concerns.

/// Most registrants at a time.
pub const REGISTRANTS_MAX: usize = 256;

/// The type of a reservation: what registrants and others may do beside the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only the holder writes; others may read.
    WriteExclusive,
    /// Exclusive access: only the holder reads and writes.
    ExclusiveAccess,
    /// Registrants read and write; others may read.
    WriteExclusiveRegistrants,
    /// Only registrants read and write.
    ExclusiveAccessRegistrants,
    /// Registrants read and write, and all hold the reservation; others may read.
    WriteExclusiveAll,
    /// Only registrants read and write, and all hold the reservation.
    ExclusiveAccessAll,
}

/// How a command accesses a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The command changes nothing.
    Read,
    /// The command changes data, or flushes data to the medium.
    Write,
}

/// An action of a registrant. `known` is the key that the registrant says it has; `None` where the
/// command does not check it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Registers. Registering again with the same key is no error.
    Join {
        /// The new key.
        key: u64,
    },
    /// Replaces its key.
    Rekey {
        /// The current key.
        known: Option<u64>,
        /// The new key.
        key: u64,
    },
    /// Unregisters, and releases a reservation that it alone holds.
    Leave {
        /// The current key.
        known: Option<u64>,
    },
    /// Acquires a reservation that is free.
    Reserve {
        /// The current key.
        known: u64,
        /// The type of the reservation.
        kind: Kind,
    },
    /// Releases its reservation.
    Release {
        /// The current key.
        known: u64,
        /// The type that the command names; `None` for a number that is no type.
        kind: Option<Kind>,
    },
    /// Removes the reservation and all registrations.
    Clear {
        /// The current key.
        known: u64,
    },
    /// Unregisters the registrants with a key, and takes over the reservation that they hold.
    Preempt {
        /// The current key.
        known: u64,
        /// The key of the registrants to preempt; 0 for all others where all registrants hold the
        /// reservation.
        key: u64,
        /// The type of the new reservation.
        kind: Kind,
    },
}

/// Why an action is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The registrant is not registered with this key, or another one holds the reservation.
    Conflict,
    /// The registry is full.
    Full,
    /// The registrant holds a reservation of another type.
    OtherKind,
    /// The key is 0, which no registrant has.
    NoKey,
}

/// How an action of one registrant concerns another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is no longer registered.
    Unregistered,
    /// The reservation was released, or changed its type.
    Released,
    /// All registrations and the reservation were removed.
    Cleared,
}

/// The registrants whom a change concerns, and how.
pub type Changes<I> = Vec<(I, Change)>;

/// A registered host or initiator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registrant<I> {
    /// The identity of the registrant.
    pub who: I,
    /// The registrant's key.
    pub key: u64,
}

/// A reservation: its type and holder; `None` if all registrants hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held<I> {
    pub(crate) kind: Kind,
    pub(crate) holder: Option<I>,
}

/// See the crate's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry<I> {
    pub(crate) registrants: Vec<Registrant<I>>,
    pub(crate) held: Option<Held<I>>,
    /// The generation: counts changes of the registrants.
    pub(crate) generation: u32,
    /// Whether registrations persist through a power loss.
    pub(crate) persists: bool,
    pub(crate) can_persist: bool,
}

impl Kind {
    /// All types, in the order of their numbers in NVMe, from 1.
    pub const ALL: [Self; 6] = [
        Self::WriteExclusive,
        Self::ExclusiveAccess,
        Self::WriteExclusiveRegistrants,
        Self::ExclusiveAccessRegistrants,
        Self::WriteExclusiveAll,
        Self::ExclusiveAccessAll,
    ];

    /// Whether all registrants hold a reservation of this type.
    pub(crate) const fn is_of_all(self) -> bool {
        matches!(self, Self::WriteExclusiveAll | Self::ExclusiveAccessAll)
    }

    // Whether registrants may read and write beside the holder.
    const fn is_for_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    // Whether hosts that are not registered may read.
    const fn lets_read(self) -> bool {
        matches!(
            self,
            Self::WriteExclusive | Self::WriteExclusiveRegistrants | Self::WriteExclusiveAll
        )
    }
}

impl<I> Registry<I> {
    /// An empty registry. `can_persist`: whether the device can keep it through a power loss.
    #[must_use]
    pub const fn new(can_persist: bool) -> Self {
        Self { registrants: Vec::new(), held: None, generation: 0, persists: false, can_persist }
    }

    /// All registrants, in the order in which they registered.
    #[must_use]
    pub fn registrants(&self) -> &[Registrant<I>] {
        &self.registrants
    }

    /// The type of the reservation; `None` if there is none.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.held.as_ref().map(|held| held.kind)
    }

    /// The generation: counts changes of the registrants, modulo 2³².
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether the registry persists through a power loss (PTPL).
    #[must_use]
    pub const fn persists(&self) -> bool {
        self.persists
    }

    /// Whether the device can keep the registry through a power loss.
    #[must_use]
    pub const fn can_persist(&self) -> bool {
        self.can_persist
    }

    /// Sets whether the registry persists through a power loss. Returns false if the device cannot.
    #[must_use]
    pub const fn persist(&mut self, persists: bool) -> bool {
        let can = self.can_persist || !persists;
        if can {
            self.persists = persists;
        }
        can
    }

    /// Whether hosts that are not registered may access the device.
    #[must_use]
    pub fn admits_strangers(&self, access: Access) -> bool {
        self.kind().is_none_or(|kind| access == Access::Read && kind.lets_read())
    }
}

impl<I: Clone + Eq> Registry<I> {
    /// Whether `who` may access the device.
    #[must_use]
    pub fn admits(&self, who: &I, access: Access) -> bool {
        let is_for_registrants = self.kind().is_some_and(Kind::is_for_registrants);
        self.admits_strangers(access)
            || self.is_holder(who)
            || is_for_registrants && self.key_of(who).is_some()
    }

    /// The key of `who`; `None` if it is not registered.
    #[must_use]
    pub fn key_of(&self, who: &I) -> Option<u64> {
        self.registrants.iter().find(|one| one.who == *who).map(|one| one.key)
    }

    /// Whether `who` holds the reservation, alone or with all other registrants.
    #[must_use]
    pub fn is_holder(&self, who: &I) -> bool {
        let is = |held: &Held<I>| held.holder.as_ref().is_none_or(|holder| holder == who);
        self.held.as_ref().is_some_and(is) && self.key_of(who).is_some()
    }

    /// The key of the single holder of the reservation; `None` if there is no reservation or all
    /// registrants hold it.
    #[must_use]
    pub fn holder_key(&self) -> Option<u64> {
        self.key_of(self.held.as_ref()?.holder.as_ref()?)
    }

    /// Performs an action of `who`. Returns whom it concerns.
    ///
    /// # Errors
    /// The refusal; the registry is then unchanged.
    pub fn act(&mut self, who: &I, action: Action) -> Result<Changes<I>, Refusal> {
        let own = self.key_of(who);
        let is_known = match action {
            Action::Join { key } => own.is_none_or(|own| own == key),
            Action::Rekey { known, .. } | Action::Leave { known } => {
                own.is_some_and(|own| known.is_none_or(|known| known == own))
            }
            Action::Reserve { known, .. }
            | Action::Release { known, .. }
            | Action::Clear { known }
            | Action::Preempt { known, .. } => own == Some(known),
        };
        if !is_known {
            return Err(Refusal::Conflict);
        }
        let changes = match action {
            Action::Reserve { kind, .. } => return self.reserve(who, kind),
            Action::Release { kind, .. } => return self.release(who, kind),
            Action::Join { key } | Action::Rekey { key, .. } => self.register(who, key)?,
            Action::Leave { .. } => self.leave(who),
            Action::Clear { .. } => self.clear(who),
            Action::Preempt { key, kind, .. } => self.preempt(who, key, kind)?,
        };
        self.generation = self.generation.wrapping_add(1);
        Ok(changes)
    }

    /// Applies to every registrant of `all` the action that `action` returns, or none of them if
    /// one is refused. The generation counts once.
    ///
    /// # Errors
    /// The refusal; the registry is then unchanged.
    pub fn act_for(
        &mut self,
        all: &[I],
        action: impl Fn(&Self, &I) -> Option<Action>,
    ) -> Result<Changes<I>, Refusal> {
        let mut next = self.clone();
        let mut changes = Vec::new();
        for who in all {
            if let Some(action) = action(&next, who) {
                changes.extend(next.act(who, action)?);
            }
        }
        changes.retain(|(who, _)| !all.contains(who));
        if next.generation != self.generation {
            next.generation = self.generation.wrapping_add(1);
        }
        *self = next;
        Ok(changes)
    }

    // Registers `who`, or replaces its key.
    fn register(&mut self, who: &I, key: u64) -> Result<Changes<I>, Refusal> {
        if let Some(own) = self.registrants.iter_mut().find(|one| one.who == *who) {
            own.key = key;
        } else if self.registrants.len() >= REGISTRANTS_MAX {
            return Err(Refusal::Full);
        } else {
            self.registrants.push(Registrant { who: who.clone(), key });
        }
        Ok(Vec::new())
    }

    // Unregisters `who`. A reservation is released with its holder, or with the last of all its
    // holders.
    fn leave(&mut self, who: &I) -> Changes<I> {
        self.registrants.retain(|one| one.who != *who);
        let Some(Held { kind, holder }) = &self.held else { return Vec::new() };
        let is_over = match holder {
            Some(holder) => holder == who,
            None => self.registrants.is_empty(),
        };
        if !is_over {
            return Vec::new();
        }
        let is_told = kind.is_for_registrants();
        self.held = None;
        if is_told { self.others(who, Change::Released) } else { Vec::new() }
    }

    // Acquires the reservation; no error if `who` holds it already.
    fn reserve(&mut self, who: &I, kind: Kind) -> Result<Changes<I>, Refusal> {
        match &self.held {
            None => self.held = Some(Self::held_by(who, kind)),
            Some(held) if held.kind == kind && self.is_holder(who) => {}
            Some(_) => return Err(Refusal::Conflict),
        }
        Ok(Vec::new())
    }

    // A reservation of `who`, or of all registrants if its type says so.
    fn held_by(who: &I, kind: Kind) -> Held<I> {
        Held { kind, holder: (!kind.is_of_all()).then(|| who.clone()) }
    }

    fn release(&mut self, who: &I, kind: Option<Kind>) -> Result<Changes<I>, Refusal> {
        // A registrant that is not a holder has nothing to release.
        let Some(held) = self.kind().filter(|_| self.is_holder(who)) else {
            return Ok(Vec::new());
        };
        if kind != Some(held) {
            return Err(Refusal::OtherKind);
        }
        self.held = None;
        let is_told = held.is_for_registrants();
        Ok(if is_told { self.others(who, Change::Released) } else { Vec::new() })
    }

    // Removes the reservation and all registrations.
    fn clear(&mut self, who: &I) -> Changes<I> {
        let changes = self.others(who, Change::Cleared);
        self.registrants.clear();
        self.held = None;
        changes
    }

    // Unregisters those with `key`, and takes over the reservation if they hold it.
    fn preempt(&mut self, who: &I, key: u64, kind: Kind) -> Result<Changes<I>, Refusal> {
        let is_of_all = self.held.as_ref().is_some_and(|held| held.holder.is_none());
        let everybody = is_of_all && key == 0;
        let takes = everybody || self.holder_key() == Some(key);
        if key == 0 && !takes {
            return Err(Refusal::NoKey);
        }
        let is_meant = |one: &Registrant<I>| everybody || one.key == key;
        if !self.registrants.iter().any(is_meant) {
            return Err(Refusal::Conflict);
        }
        let leaves = |one: &Registrant<I>| one.who != *who && is_meant(one);
        let gone = self.registrants.iter().filter(|one| leaves(one));
        let mut changes: Changes<I> =
            gone.map(|one| (one.who.clone(), Change::Unregistered)).collect();
        self.registrants.retain(|one| !leaves(one));
        if takes {
            let before = self.held.replace(Self::held_by(who, kind));
            let is_told = |before: Held<I>| before.kind != kind && before.kind.is_for_registrants();
            if before.is_some_and(is_told) {
                changes.extend(self.others(who, Change::Released));
            }
        }
        Ok(changes)
    }

    // `change` for all registrants but `who`.
    fn others(&self, who: &I, change: Change) -> Changes<I> {
        let others = self.registrants.iter().filter(|one| one.who != *who);
        others.map(|one| (one.who.clone(), change)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Host = [u8; 16];

    // Few hosts and keys, so that they meet.
    fn host() -> impl Strategy<Value = Host> {
        (0..4_u8).prop_map(|number| [number; 16])
    }

    fn action() -> impl Strategy<Value = Action> {
        let key = || 0..4_u64;
        let known = || proptest::option::of(key());
        let kind = || (0..Kind::ALL.len()).prop_map(|at| Kind::ALL[at]);
        prop_oneof![
            key().prop_map(|key| Action::Join { key }),
            (known(), key()).prop_map(|(known, key)| Action::Rekey { known, key }),
            known().prop_map(|known| Action::Leave { known }),
            (key(), kind()).prop_map(|(known, kind)| Action::Reserve { known, kind }),
            (key(), proptest::option::of(kind()))
                .prop_map(|(known, kind)| Action::Release { known, kind }),
            key().prop_map(|known| Action::Clear { known }),
            (key(), key(), kind()).prop_map(|(known, key, kind)| Action::Preempt {
                known,
                key,
                kind
            }),
        ]
    }

    fn check(registry: &Registry<Host>) {
        let registrants = registry.registrants();
        for (at, one) in registrants.iter().enumerate() {
            assert!(registrants[..at].iter().all(|before| before.who != one.who), "twice");
            assert!(registry.admits(&one.who, Access::Read) || !registry.is_holder(&one.who));
        }
        let is_held = registrants.iter().any(|one| registry.is_holder(&one.who));
        assert_eq!(is_held, registry.kind().is_some(), "held by nobody: {registry:?}");
    }

    proptest! {
        #[test]
        fn the_holder_is_registered(acts in prop::collection::vec((host(), action()), 1..64)) {
            let mut registry = Registry::new(true);
            for (who, action) in acts {
                let before = registry.clone();
                match registry.act(&who, action) {
                    Err(_) => prop_assert_eq!(&registry, &before, "a refusal changes nothing"),
                    Ok(changes) => {
                        let mut told: Vec<Host> = changes.iter().map(|(whom, _)| *whom).collect();
                        prop_assert!(!told.contains(&who), "it knows what it has done");
                        told.retain(|whom| before.key_of(whom).is_none());
                        prop_assert!(told.is_empty(), "it never was registered");
                    }
                }
                check(&registry);
                let _can = registry.persist(true);
                prop_assert_eq!(Registry::read(&registry.write()), Some(registry.clone()));
            }
        }

        #[test]
        fn several_act_as_one_or_not_at_all(keys in prop::collection::vec(0..3_u64, 3)) {
            let mut registry = Registry::new(false);
            let hosts: Vec<Host> = (0..3).map(|number| [number; 16]).collect();
            registry.act(&hosts[1], Action::Join { key: 1 }).expect("nobody is there");
            let before = registry.clone();
            let join = |_: &Registry<Host>, who: &Host| {
                Some(Action::Join { key: keys[usize::from(who[0])] })
            };
            let done = registry.act_for(&hosts, join);
            prop_assert_eq!(done.is_ok(), keys[1] == 1);
            let step = u32::from(done.is_ok());
            prop_assert_eq!(registry.generation(), before.generation() + step);
            prop_assert!(done.is_ok() || registry == before);
        }
    }

    #[test]
    fn no_more_register_than_there_is_room_for() {
        let mut registry = Registry::new(false);
        for number in 0..REGISTRANTS_MAX {
            registry.act(&number, Action::Join { key: 1 }).expect("there is room");
        }
        let refused = registry.act(&REGISTRANTS_MAX, Action::Join { key: 1 });
        assert_eq!(refused, Err(Refusal::Full));
        registry.act(&7, Action::Leave { known: None }).expect("it is registered");
        assert!(registry.act(&REGISTRANTS_MAX, Action::Join { key: 1 }).is_ok());
    }
}
