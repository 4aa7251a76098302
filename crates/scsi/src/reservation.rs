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

/// The effect of reservations through the other protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elsewhere {
    /// The other protocol has registrants: nobody else may register or reserve.
    pub has_registrants: bool,
    /// Others may not read.
    pub bars_reading: bool,
    /// Others may not write.
    pub bars_writing: bool,
}

/// Bytes of a transport identifier at most: 4, a name of 223, separator and ISID of 17, padded.
pub const TRANSPORT_ID_BYTES_MAX: usize = 248;

/// Bytes of the parameter list of every supported service action (SPC-4 6.16.3).
pub(super) const PARAMETER_BYTES: u32 = parameters::BYTES;

/// A TransportID: the name of an initiator port, as encoded in parameters (SPC-4 7.6.4.6).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransportId(Vec<u8>);

/// What is registered (SPC-4 5.13.1): an initiator port by name, and a target port by number.
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

/// The fields of a PERSISTENT RESERVE OUT command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Out {
    pub(super) action: u8,
    pub(super) scope: u8,
    pub(super) kind: u8,
    /// Bytes of its parameter list, of which only the first [`PARAMETER_BYTES`] are received.
    pub(super) length: u32,
}

impl Out {
    /// Whether a service action is REGISTER or REGISTER AND IGNORE EXISTING KEY.
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

// The kind with this TYPE.
fn kind_of(number: u8) -> Option<Kind> {
    KINDS.iter().find(|(_, of)| *of == number).map(|(kind, _)| *kind)
}

// The TYPE of a kind.
fn number_of(kind: Kind) -> u8 {
    KINDS.iter().find(|(of, _)| *of == kind).map_or(0, |(_, number)| *number)
}

impl TransportId {
    /// The TransportID of an iSCSI initiator port: the initiator's name and the ISID.
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

    /// The initiator port together with a target port.
    #[must_use]
    pub const fn through(self, port: u16) -> Way {
        Way { id: self, port }
    }

    /// The encoded bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    // Parses hexadecimal digits; `None` if they are invalid or too many.
    fn read_hex(text: &str) -> Option<Self> {
        let is_short = text.len() <= 2 * TRANSPORT_ID_BYTES_MAX;
        if !text.is_ascii() || !is_short || !text.len().is_multiple_of(2) || text.is_empty() {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
        (0..text.len()).step_by(2).map(byte).collect::<Option<_>>().map(Self)
    }

    // The bytes in hexadecimal digits.
    fn write_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The stored form: the TransportID in hexadecimal, a colon, and the number of the target port.
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
    /// No reservations; `can_persist` says whether they can persist through power loss.
    #[must_use]
    pub const fn new(can_persist: bool) -> Self {
        Self(Registry::new(can_persist))
    }

    /// Whether no reservation is held.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.0.kind().is_none()
    }

    /// Whether there are registrants.
    #[must_use]
    pub fn has_registrants(&self) -> bool {
        !self.0.registrants().is_empty()
    }

    /// Whether the reservations are to be stored (APTPL).
    #[must_use]
    pub const fn persists(&self) -> bool {
        self.0.persists()
    }

    /// The effect of the reservations on non-registrants.
    #[must_use]
    pub fn held_for_strangers(&self) -> Elsewhere {
        let [bars_reading, bars_writing] =
            [Access::Read, Access::Write].map(|access| !self.0.admits_strangers(access));
        Elsewhere { has_registrants: self.has_registrants(), bars_reading, bars_writing }
    }

    /// Whether the reservation lets an initiator access the unit in this way.
    pub(super) fn admits(&self, who: &Way, access: Access) -> bool {
        self.0.admits(who, access)
    }

    /// Whether this initiator and port are registered.
    pub(super) fn knows(&self, who: &Way) -> bool {
        self.0.key_of(who).is_some()
    }

    /// Executes a PERSISTENT RESERVE OUT command, for a target with `ports` ports. Returns the
    /// changes that concern other registrants.
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
        // SPEC_I_PT, which registers other initiator ports, is not supported. It is valid only in
        // REGISTER actions, as are ALL_TG_PT and APTPL.
        if registers && parameters::SPEC_I_PT.get(data) {
            return Err(Outcome::check(Sense::wrong_parameter(0, parameters::SPEC_I_PT)));
        }
        // SPC-4 6.16.3: without SPEC_I_PT the list has exactly this length.
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
                // All ports are registered, or none (SPC-4 5.13.7).
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
            // This cannot fail: `can_persist` was checked.
            let _can = self.0.persist(persists);
        }
        Ok(changes)
    }

    /// The data of a PERSISTENT RESERVE IN command, not cut.
    pub(super) fn report(&self, action: u8) -> Vec<u8> {
        match action {
            0x00 => self.keys(),
            0x01 => self.held(),
            0x02 => self.capabilities(),
            _ => self.status(),
        }
    }

    // The header of a report with `length` bytes behind it.
    fn header(&self, length: usize) -> Vec<u8> {
        let mut data = vec![0; header::BYTES];
        header::GENERATION.put(&mut data, self.0.generation());
        header::ADDITIONAL_LENGTH.put(&mut data, u32::try_from(length).unwrap_or(u32::MAX));
        data
    }

    // READ KEYS (SPC-4 6.15.2).
    fn keys(&self) -> Vec<u8> {
        let mut data = self.header(key::BYTES * self.0.registrants().len());
        for one in self.0.registrants() {
            let mut entry = [0; key::BYTES];
            key::KEY.put(&mut entry, one.key);
            data.extend_from_slice(&entry);
        }
        data
    }

    // READ RESERVATION (SPC-4 6.15.3).
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

    // REPORT CAPABILITIES (SPC-4 6.15.4): no further commands are allowed.
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

    // READ FULL STATUS (SPC-4 6.15.5).
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

    /// The reservations as text, to be stored.
    #[must_use]
    pub fn write(&self) -> String {
        self.0.write()
    }

    /// Parses text of [`PersistentReservations::write`]; `None` if it is invalid or truncated.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        // 0 is no key (SPC-4 6.16.3).
        let registry: Registry<Way> = Registry::read(text)?;
        registry.registrants().iter().all(|one| one.key != 0).then_some(Self(registry))
    }
}

// The action of REGISTER by an initiator whose key is `own`; a new key of 0 unregisters (SPC-4
// 5.13.7).
fn registration(own: Option<u64>, known: Option<u64>, new: u64) -> Option<Action> {
    match (own, new) {
        (None, _) if known.is_some_and(|known| known != 0) => {
            Some(Action::Rekey { known, key: new })
        }
        // No registration to remove.
        (None, 0) => None,
        (None, key) => Some(Action::Join { key }),
        (Some(_), 0) => Some(Action::Leave { known }),
        (Some(_), key) => Some(Action::Rekey { known, key }),
    }
}

/// The unit attention of a registrant that a change concerns (SPC-4 5.13.11).
pub(super) const fn attention(change: Change) -> Attention {
    match change {
        Change::Unregistered => Attention::RegistrationsPreempted,
        Change::Released => Attention::ReservationsReleased,
        Change::Cleared => Attention::ReservationsPreempted,
    }
}

// The outcome of a refused command.
fn refused(refusal: Refusal) -> Outcome {
    match refusal {
        Refusal::Conflict => Outcome::conflict(),
        Refusal::Full => Outcome::check(Sense::NO_ROOM_FOR_REGISTRATION),
        Refusal::OtherKind => Outcome::check(Sense::INVALID_RELEASE),
        Refusal::NoKey => Outcome::check(Sense::wrong_parameter(0, parameters::ACTION_KEY)),
    }
}
