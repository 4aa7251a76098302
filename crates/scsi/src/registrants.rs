//! Who has registered with a device and who holds it, whatever the protocol that says so.
//!
//! `I` is who an initiator or a host is. A protocol reads its commands into [`Action`]s, names the
//! [`Refusal`]s, and tells those whom a change concerns.
//!
//! Invariants:
//! - Nobody is registered twice, and no more than [`REGISTRANTS_MAX`].
//! - Whoever holds a reservation is registered.
//! - What is refused has changed nothing.

/// Initiators that may be registered at a time.
pub(crate) const REGISTRANTS_MAX: usize = 256;

/// Who may do what beside the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Others read.
    WriteExclusive,
    /// Others do nothing.
    ExclusiveAccess,
    /// Registrants do everything, others read.
    WriteExclusiveRegistrants,
    /// Registrants do everything, others nothing.
    ExclusiveAccessRegistrants,
    /// Registrants do everything and hold it together, others read.
    WriteExclusiveAll,
    /// Registrants do everything and hold it together, others nothing.
    ExclusiveAccessAll,
}

/// What a command does to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Something a registrant does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Registers under `new`, changes its key to it, or leaves if it is 0. `known` is the key it
    /// has now, 0 for none; nothing is known when that is not asked for.
    Register { known: Option<u64>, new: u64 },
    /// Takes a reservation that nobody holds.
    Reserve(Kind),
    /// Gives its reservation up.
    Release(Kind),
    /// Gives up everybody's reservation and registration.
    Clear,
    /// Takes away the registrations under this key, and with them the reservation.
    Preempt { key: u64, kind: Kind },
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not registered so, or another holds it.
    Conflict,
    /// There is no more room.
    Full,
    /// It holds one of another kind.
    OtherKind,
    /// 0 is nobody's key.
    NoKey,
}

/// What has happened to a registrant that another has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is not registered any more.
    Unregistered,
    /// The reservation is not held any more, or in another way.
    Released,
    /// Everything was cleared.
    Cleared,
}

/// One that is registered, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registrant<I> {
    pub(crate) who: I,
    pub(crate) key: u64,
}

/// A reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held<I> {
    pub(crate) kind: Kind,
    /// Whose it is; all registrants' if nobody's.
    pub(crate) holder: Option<I>,
}

/// See the module's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registry<I> {
    pub(crate) registrants: Vec<Registrant<I>>,
    pub(crate) held: Option<Held<I>>,
    /// Counts changes of the registrants.
    pub(crate) generation: u32,
}

/// Those whom a change concerns, and what it is for them.
pub(crate) type Changes<I> = Vec<(I, Change)>;

impl Kind {
    const fn is_of_all(self) -> bool {
        matches!(self, Self::WriteExclusiveAll | Self::ExclusiveAccessAll)
    }

    const fn is_for_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    pub(crate) const fn lets_read(self) -> bool {
        matches!(
            self,
            Self::WriteExclusive | Self::WriteExclusiveRegistrants | Self::WriteExclusiveAll
        )
    }
}

impl<I> Default for Registry<I> {
    fn default() -> Self {
        Self { registrants: Vec::new(), held: None, generation: 0 }
    }
}

impl<I: Clone + Eq> Registry<I> {
    /// Whether somebody may do this.
    pub(crate) fn admits(&self, who: &I, access: Access) -> bool {
        let Some(Held { kind, holder }) = &self.held else { return true };
        let is_registered = self.key_of(who).is_some();
        let is_holder = holder.as_ref().is_none_or(|holder| holder == who) && is_registered;
        is_holder
            || kind.is_for_registrants() && is_registered
            || access == Access::Read && kind.lets_read()
    }

    /// The key under which somebody is registered.
    pub(crate) fn key_of(&self, who: &I) -> Option<u64> {
        self.registrants.iter().find(|one| one.who == *who).map(|one| one.key)
    }

    /// Whether somebody holds the reservation, alone or with all others.
    pub(crate) fn is_holder(&self, who: &I) -> bool {
        let is = |held: &Held<I>| held.holder.as_ref().is_none_or(|holder| holder == who);
        self.held.as_ref().is_some_and(is) && self.key_of(who).is_some()
    }

    /// The key of the one who holds the reservation; `None` if nobody or everybody does.
    pub(crate) fn holder_key(&self) -> Option<u64> {
        self.key_of(self.held.as_ref()?.holder.as_ref()?)
    }

    /// Does what somebody asks for, who says that `key` is its own unless it registers.
    pub(crate) fn act(&mut self, who: &I, key: u64, action: Action) -> Result<Changes<I>, Refusal> {
        if let Action::Register { known, new } = action {
            return self.register(who, known, new);
        }
        if self.key_of(who) != Some(key) {
            return Err(Refusal::Conflict);
        }
        match action {
            Action::Register { .. } => Ok(Vec::new()),
            Action::Reserve(kind) => self.reserve(who, kind).map(|()| Vec::new()),
            Action::Release(kind) => self.release(who, kind),
            Action::Clear => {
                let changes = self.others(who, Change::Cleared);
                self.registrants.clear();
                self.held = None;
                self.generation = self.generation.wrapping_add(1);
                Ok(changes)
            }
            Action::Preempt { key, kind } => self.preempt(who, key, kind),
        }
    }

    fn register(&mut self, who: &I, known: Option<u64>, new: u64) -> Result<Changes<I>, Refusal> {
        let own = self.registrants.iter().position(|one| one.who == *who);
        let key = own.map_or(0, |own| self.registrants[own].key);
        if known.is_some_and(|known| known != key) {
            return Err(Refusal::Conflict);
        }
        let mut changes = Vec::new();
        match own {
            // Nothing of its own to give up.
            None if new == 0 => return Ok(changes),
            None if self.registrants.len() >= REGISTRANTS_MAX => return Err(Refusal::Full),
            None => self.registrants.push(Registrant { who: who.clone(), key: new }),
            Some(own) if new == 0 => changes = self.unregister(own),
            Some(own) => self.registrants[own].key = new,
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(changes)
    }

    // A reservation goes with its holder, or with the last of those who hold it together.
    fn unregister(&mut self, index: usize) -> Changes<I> {
        let gone = self.registrants.remove(index);
        let Some(Held { kind, holder }) = &self.held else { return Vec::new() };
        let is_over = match holder {
            Some(holder) => *holder == gone.who,
            None => self.registrants.is_empty(),
        };
        if !is_over {
            return Vec::new();
        }
        let is_told = kind.is_for_registrants();
        self.held = None;
        if is_told { self.others(&gone.who, Change::Released) } else { Vec::new() }
    }

    fn reserve(&mut self, who: &I, kind: Kind) -> Result<(), Refusal> {
        match &self.held {
            None => {
                let holder = (!kind.is_of_all()).then(|| who.clone());
                self.held = Some(Held { kind, holder });
                Ok(())
            }
            Some(held) if held.kind == kind && self.is_holder(who) => Ok(()),
            Some(_) => Err(Refusal::Conflict),
        }
    }

    fn release(&mut self, who: &I, kind: Kind) -> Result<Changes<I>, Refusal> {
        match &self.held {
            Some(held) if self.is_holder(who) && held.kind != kind => Err(Refusal::OtherKind),
            Some(_) if self.is_holder(who) => {
                self.held = None;
                let is_told = kind.is_for_registrants();
                Ok(if is_told { self.others(who, Change::Released) } else { Vec::new() })
            }
            // Nothing of its own to release.
            _ => Ok(Vec::new()),
        }
    }

    fn preempt(&mut self, who: &I, key: u64, kind: Kind) -> Result<Changes<I>, Refusal> {
        let is_of_all = self.held.as_ref().is_some_and(|held| held.holder.is_none());
        let everybody = is_of_all && key == 0;
        let takes = everybody || key != 0 && self.holder_key() == Some(key);
        if key == 0 && !everybody {
            return Err(Refusal::NoKey);
        }
        let is_meant = |one: &Registrant<I>| everybody || one.key == key;
        if !self.registrants.iter().any(is_meant) {
            return Err(Refusal::Conflict);
        }
        let leaves = |one: &Registrant<I>| one.who != *who && is_meant(one);
        let mut changes: Changes<I> = self
            .registrants
            .iter()
            .filter(|one| leaves(one))
            .map(|one| (one.who.clone(), Change::Unregistered))
            .collect();
        self.registrants.retain(|one| !leaves(one));
        if takes {
            let holder = (!kind.is_of_all()).then(|| who.clone());
            let before = self.held.replace(Held { kind, holder });
            if before.is_some_and(|before| before.kind != kind && before.kind.is_for_registrants())
            {
                changes.extend(self.others(who, Change::Released));
            }
        } else if is_of_all && self.registrants.is_empty() {
            self.held = None;
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(changes)
    }

    fn others(&self, who: &I, change: Change) -> Changes<I> {
        let others = self.registrants.iter().filter(|one| one.who != *who);
        others.map(|one| (one.who.clone(), change)).collect()
    }
}
