//! Persistent reservations: which initiators may read and write (SPC-4 5.13, 6.15, 6.16).

use reservations::{
    Access, Action, Change, Changes, Identity, Kind, Refusal, Registrant, Registry,
};

use super::attention::Attention;
use super::layout::cdb::reserve;
use super::layout::reservation::transport_id;
use super::layout::reservation::{capabilities, header, held, key, out as parameters, status};
use super::outcome::Outcome;
use super::sense::Sense;

/// What those have reserved of a logical unit who come by another protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elsewhere {
    /// Some of them are registered: nobody else registers or reserves.
    pub has_registrants: bool,
    /// Others do not read.
    pub bars_reading: bool,
    /// Others do not write.
    pub bars_writing: bool,
}

/// Bytes of a transport identifier: 4, a name of 223, a separator and an ISID of 17, padded.
pub const TRANSPORT_ID_BYTES_MAX: usize = 248;

/// Bytes of the parameters of every service action there is (SPC-4 6.16.3).
pub(super) const PARAMETER_BYTES: u32 = parameters::BYTES;

/// Who an initiator is: its port's name, as it stands in parameters (SPC-4 7.6.4.6).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransportId(Vec<u8>);

/// An initiator port and the target port that it has come through, each by its name or number: what
/// is registered (SPC-4 5.13.1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Way {
    id: TransportId,
    port: u16,
}

/// The persistent reservations of a logical unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistentReservations(Registry<Way>);

impl Default for PersistentReservations {
    fn default() -> Self {
        Self::new(false)
    }
}

/// A PERSISTENT RESERVE OUT command, its parameters beside it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Out {
    pub(super) action: u8,
    pub(super) scope: u8,
    pub(super) kind: u8,
    /// Bytes of its parameters, of which only the first [`PARAMETER_BYTES`] were taken.
    pub(super) length: u32,
}

impl Out {
    /// Whether it registers somebody.
    pub(super) const fn registers(action: u8) -> bool {
        matches!(action, 0x00 | 0x06)
    }
}

/// Kinds by TYPE (SPC-4 6.15.3.3).
const KINDS: [(Kind, u8); 6] = [
    (Kind::WriteExclusive, 1),
    (Kind::ExclusiveAccess, 3),
    (Kind::WriteExclusiveRegistrants, 5),
    (Kind::ExclusiveAccessRegistrants, 6),
    (Kind::WriteExclusiveAll, 7),
    (Kind::ExclusiveAccessAll, 8),
];

fn kind_of(number: u8) -> Option<Kind> {
    KINDS.iter().find(|(_, of)| *of == number).map(|(kind, _)| *kind)
}

fn number_of(kind: Kind) -> u8 {
    KINDS.iter().find(|(of, _)| *of == kind).map_or(0, |(_, number)| *number)
}

impl TransportId {
    /// That of an iSCSI initiator port: its name and the identifier of its session.
    #[must_use]
    pub fn iscsi(name: &str, isid: [u8; 6]) -> Self {
        use transport_id::*;
        let mut bytes = vec![0; HEADER_BYTES];
        FORMAT.put(&mut bytes, WITH_SESSION);
        PROTOCOL.put(&mut bytes, ISCSI);
        bytes.extend_from_slice(name.get(..223).unwrap_or(name).as_bytes());
        bytes.extend_from_slice(b",i,0x");
        for byte in isid {
            bytes.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        bytes.push(0);
        // ADDITIONAL LENGTH is at least 20 and a multiple of 4.
        let whole = bytes.len().next_multiple_of(4).max(HEADER_BYTES + LENGTH_MIN);
        bytes.resize(whole, 0);
        ADDITIONAL_LENGTH.put(&mut bytes, u16::try_from(whole - HEADER_BYTES).unwrap_or(0));
        Self(bytes)
    }

    /// Through this target port.
    #[must_use]
    pub const fn through(self, port: u16) -> Way {
        Way { id: self, port }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn read_hex(text: &str) -> Option<Self> {
        let is_short = text.len() <= 2 * TRANSPORT_ID_BYTES_MAX;
        if !text.is_ascii() || !is_short || !text.len().is_multiple_of(2) || text.is_empty() {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
        (0..text.len()).step_by(2).map(byte).collect::<Option<_>>().map(Self)
    }

    fn write_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Its identifier in hexadecimal, and the number of the port behind a colon.
impl Identity for Way {
    fn write(&self) -> String {
        format!("{}:{}", self.id.write_hex(), self.port)
    }

    fn read(word: &str) -> Option<Self> {
        let (id, port) = word.split_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        Some(TransportId::read_hex(id)?.through(port))
    }
}

impl PersistentReservations {
    /// None, of a logical unit that can keep them over a loss of power or not.
    #[must_use]
    pub const fn new(can_persist: bool) -> Self {
        Self(Registry::new(can_persist))
    }

    /// Whether every initiator may do everything.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.0.kind().is_none()
    }

    /// Whether anybody is registered.
    #[must_use]
    pub fn has_registrants(&self) -> bool {
        !self.0.registrants().is_empty()
    }

    /// Whether they are to be kept.
    #[must_use]
    pub const fn persists(&self) -> bool {
        self.0.persists()
    }

    /// What is reserved for whoever is not registered.
    #[must_use]
    pub fn held_for_strangers(&self) -> Elsewhere {
        let [bars_reading, bars_writing] =
            [Access::Read, Access::Write].map(|access| !self.0.admits_strangers(access));
        Elsewhere { has_registrants: self.has_registrants(), bars_reading, bars_writing }
    }

    pub(super) fn admits(&self, who: &Way, access: Access) -> bool {
        self.0.admits(who, access)
    }

    /// Whether somebody is registered.
    pub(super) fn knows(&self, who: &Way) -> bool {
        self.0.key_of(who).is_some()
    }

    /// Does a PERSISTENT RESERVE OUT command, where there are so many target ports. On success,
    /// whom it concerns.
    pub(super) fn change(
        &mut self,
        who: &Way,
        out: Out,
        data: &[u8],
        ports: u16,
    ) -> Result<Changes<Way>, Outcome> {
        if data.len() != PARAMETER_BYTES as usize {
            return Err(Outcome::check(Sense::PARAMETER_LIST_LENGTH));
        }
        let (key, new) = (parameters::KEY.get(data), parameters::ACTION_KEY.get(data));
        let registers = Out::registers(out.action);
        // SPEC_I_PT names initiator ports, and nobody registers for another's. The standard has it
        // only where something is registered, and ALL_TG_PT and APTPL, too.
        if registers && parameters::SPEC_I_PT.get(data) {
            return Err(Outcome::check(Sense::wrong_parameter(0, parameters::SPEC_I_PT)));
        }
        // SPC-4 6.16.3: but for the ports of SPEC_I_PT it is as long as that, or it is an error.
        if out.length != PARAMETER_BYTES {
            return Err(Outcome::check(Sense::PARAMETER_LIST_LENGTH));
        }
        let persists = registers && parameters::APTPL.get(data);
        if persists && !self.0.can_persist() {
            return Err(Outcome::check(Sense::wrong_parameter(0, parameters::APTPL)));
        }
        let kind = || {
            // SCOPE: the logical unit (SPC-4 6.15.3.2).
            if out.scope != 0 {
                return Err(Outcome::check(Sense::wrong(reserve::SCOPE)));
            }
            kind_of(out.kind).ok_or_else(|| Outcome::check(Sense::wrong(reserve::TYPE)))
        };
        let changes = match out.action {
            0x00 | 0x06 => {
                let known = (out.action == 0x00).then_some(key);
                let ways: Vec<Way> = match parameters::ALL_TG_PT.get(data) {
                    true => (1..=ports).map(|port| who.id.clone().through(port)).collect(),
                    false => vec![who.clone()],
                };
                // As if each had come, or not at all (SPC-4 5.13.7).
                self.0
                    .act_for(&ways, |registry, way| registration(registry.key_of(way), known, new))
            }
            0x01 => self.0.act(who, Action::Reserve { known: key, kind: kind()? }),
            0x02 => self.0.act(who, Action::Release { known: key, kind: Some(kind()?) }),
            0x03 => self.0.act(who, Action::Clear { known: key }),
            _ => self.0.act(who, Action::Preempt { known: key, key: new, kind: kind()? }),
        };
        let changes = changes.map_err(refused)?;
        if registers {
            // It can: that has been looked at.
            let _can = self.0.persist(persists);
        }
        Ok(changes)
    }

    /// The data of a PERSISTENT RESERVE IN command, whole.
    pub(super) fn report(&self, action: u8) -> Vec<u8> {
        match action {
            0x00 => self.keys(),
            0x01 => self.held(),
            0x02 => self.capabilities(),
            _ => self.status(),
        }
    }

    fn header(&self, length: usize) -> Vec<u8> {
        let mut data = vec![0; header::BYTES];
        header::GENERATION.put(&mut data, self.0.generation());
        header::ADDITIONAL_LENGTH.put(&mut data, u32::try_from(length).unwrap_or(u32::MAX));
        data
    }

    // SPC-4 6.15.2.
    fn keys(&self) -> Vec<u8> {
        let mut data = self.header(key::BYTES * self.0.registrants().len());
        for one in self.0.registrants() {
            let mut entry = [0; key::BYTES];
            key::KEY.put(&mut entry, one.key);
            data.extend_from_slice(&entry);
        }
        data
    }

    // SPC-4 6.15.3.
    fn held(&self) -> Vec<u8> {
        let Some(kind) = self.0.kind() else { return self.header(0) };
        let mut descriptor = [0; held::BYTES];
        // The key is 0 if all registrants hold it.
        held::KEY.put(&mut descriptor, self.0.holder_key().unwrap_or(0));
        held::TYPE.put(&mut descriptor, number_of(kind));
        let mut data = self.header(held::BYTES);
        data.extend_from_slice(&descriptor);
        data
    }

    // SPC-4 6.15.4: no commands beyond those of the standard.
    fn capabilities(&self) -> Vec<u8> {
        use capabilities::*;
        let mut data = vec![0; usize::from(BYTES)];
        LENGTH.put(&mut data, BYTES);
        ATP_C.put(&mut data, true);
        PTPL_C.put(&mut data, self.0.can_persist());
        TMV.put(&mut data, true);
        PTPL_A.put(&mut data, self.0.persists());
        TYPE_MASK.put(&mut data, ALL_TYPES);
        data
    }

    // SPC-4 6.15.5.
    fn status(&self) -> Vec<u8> {
        use status::*;
        let mut list = Vec::new();
        for Registrant { who, key } in self.0.registrants() {
            let mut entry = [0; BYTES];
            KEY.put(&mut entry, *key);
            if let Some(kind) = self.0.kind().filter(|_| self.0.is_holder(who)) {
                R_HOLDER.put(&mut entry, true);
                TYPE.put(&mut entry, number_of(kind));
            }
            PORT.put(&mut entry, who.port);
            let id = who.id.bytes();
            ADDITIONAL_LENGTH.put(&mut entry, u32::try_from(id.len()).unwrap_or(0));
            list.extend_from_slice(&entry);
            list.extend_from_slice(id);
        }
        let mut data = self.header(list.len());
        data.extend(list);
        data
    }

    /// As text, to be read after a restart.
    #[must_use]
    pub fn write(&self) -> String {
        self.0.write()
    }

    /// Reads what [`PersistentReservations::write`] has written; `None` if it is not that, or not
    /// all of it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        // 0 is nobody's key (SPC-4 6.16.3).
        let registry: Registry<Way> = Registry::read(text)?;
        registry.registrants().iter().all(|one| one.key != 0).then_some(Self(registry))
    }
}

// What REGISTER asks for of somebody who has this key, or none: key 0 is none (SPC-4 5.13.7).
fn registration(own: Option<u64>, known: Option<u64>, new: u64) -> Option<Action> {
    match (own, new) {
        (None, _) if known.is_some_and(|known| known != 0) => {
            Some(Action::Rekey { known, key: new })
        }
        // Nothing of its own to give up.
        (None, 0) => None,
        (None, key) => Some(Action::Join { key }),
        (Some(_), 0) => Some(Action::Leave { known }),
        (Some(_), key) => Some(Action::Rekey { known, key }),
    }
}

/// What somebody is told to whom this has happened (SPC-4 5.13.11).
pub(super) const fn attention(change: Change) -> Attention {
    match change {
        Change::Unregistered => Attention::RegistrationsPreempted,
        Change::Released => Attention::ReservationsReleased,
        Change::Cleared => Attention::ReservationsPreempted,
    }
}

fn refused(refusal: Refusal) -> Outcome {
    match refusal {
        Refusal::Conflict => Outcome::conflict(),
        Refusal::Full => Outcome::check(Sense::NO_ROOM_FOR_REGISTRATION),
        Refusal::OtherKind => Outcome::check(Sense::INVALID_RELEASE),
        Refusal::NoKey => Outcome::check(Sense::wrong_parameter(0, parameters::ACTION_KEY)),
    }
}
