//! Persistent reservations: which initiators may read and write (SPC-4 5.13, 6.15, 6.16).

use crate::registrants::{Access, Action, Change, Changes, Held, Kind, Refusal, Registry};
use crate::registrants::{REGISTRANTS_MAX, Registrant};
use wire::{be64_at, put};

use super::attention::Attention;
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
pub(super) const PARAMETER_BYTES: u32 = 24;

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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistentReservations {
    registry: Registry<Way>,
    /// They outlive the loss of power.
    persists: bool,
    can_persist: bool,
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

/// Flags of what registers (SPC-4 6.16.3).
const SPEC_I_PT: u8 = 1 << 3;
const ALL_TG_PT: u8 = 1 << 2;

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
        // Format 01b, protocol 5.
        let mut bytes = vec![0x45, 0, 0, 0];
        bytes.extend_from_slice(name.get(..223).unwrap_or(name).as_bytes());
        bytes.extend_from_slice(b",i,0x");
        for byte in isid {
            bytes.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        bytes.push(0);
        // ADDITIONAL LENGTH is at least 20 and a multiple of 4.
        bytes.resize(bytes.len().next_multiple_of(4).max(24), 0);
        let length = u16::try_from(bytes.len() - 4).unwrap_or(0);
        put(&mut bytes, 2, &length.to_be_bytes());
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

impl Way {
    fn write(&self) -> String {
        self.id.write_hex() + &self.write_port()
    }

    // Port 1 is where nothing else is said.
    fn write_port(&self) -> String {
        if self.port == 1 { String::new() } else { format!(" {}", self.port) }
    }

    fn read(id: &str, port: &[&str]) -> Option<Self> {
        let id = TransportId::read_hex(id)?;
        match port {
            [] => Some(id.through(1)),
            [port] => Some(id.through(port.parse().ok().filter(|port| *port > 1)?)),
            _ => None,
        }
    }
}

impl PersistentReservations {
    /// None, of a logical unit that can keep them over a loss of power or not.
    #[must_use]
    pub fn new(can_persist: bool) -> Self {
        Self { can_persist, ..Self::default() }
    }

    /// Whether every initiator may do everything.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.registry.held.is_none()
    }

    /// Whether anybody is registered.
    #[must_use]
    pub const fn has_registrants(&self) -> bool {
        !self.registry.registrants.is_empty()
    }

    /// Whether they are to be kept.
    #[must_use]
    pub const fn persists(&self) -> bool {
        self.persists
    }

    /// What is reserved for whoever is not registered.
    #[must_use]
    pub const fn held_for_strangers(&self) -> Elsewhere {
        let has_registrants = self.has_registrants();
        let (bars_reading, bars_writing) = match &self.registry.held {
            Some(held) => (!held.kind.lets_read(), true),
            None => (false, false),
        };
        Elsewhere { has_registrants, bars_reading, bars_writing }
    }

    pub(super) fn admits(&self, who: &Way, access: Access) -> bool {
        self.registry.admits(who, access)
    }

    /// Whether somebody is registered.
    pub(super) fn knows(&self, who: &Way) -> bool {
        self.registry.key_of(who).is_some()
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
        let (key, new, flags) = (be64_at(data, 0), be64_at(data, 8), data[20]);
        let registers = Out::registers(out.action);
        // SPEC_I_PT names initiator ports, and nobody registers for another's. The standard has it
        // only where something is registered, and ALL_TG_PT and APTPL, too.
        if registers && flags & SPEC_I_PT != 0 {
            return Err(Outcome::check(Sense::in_parameters(20, Some(3))));
        }
        // SPC-4 6.16.3: but for the ports of SPEC_I_PT it is as long as that, or it is an error.
        if out.length != PARAMETER_BYTES {
            return Err(Outcome::check(Sense::PARAMETER_LIST_LENGTH));
        }
        let persists = registers && flags & 1 != 0;
        if persists && !self.can_persist {
            return Err(Outcome::check(Sense::in_parameters(20, Some(0))));
        }
        let kind = || {
            // SCOPE: the logical unit (SPC-4 6.15.3.2).
            if out.scope != 0 {
                return Err(Outcome::check(Sense::in_cdb(2, Some(7))));
            }
            kind_of(out.kind).ok_or_else(|| Outcome::check(Sense::in_cdb(2, Some(3))))
        };
        let action = match out.action {
            0x00 => Action::Register { known: Some(key), new },
            0x06 => Action::Register { known: None, new },
            0x01 => Action::Reserve(kind()?),
            0x02 => Action::Release(kind()?),
            0x03 => Action::Clear,
            _ => Action::Preempt { key: new, kind: kind()? },
        };
        let changes = if registers && flags & ALL_TG_PT != 0 {
            let ways: Vec<Way> = (1..=ports).map(|port| who.id.clone().through(port)).collect();
            self.act_for(&ways, key, action)
        } else {
            self.registry.act(who, key, action)
        };
        let changes = changes.map_err(refused)?;
        if registers {
            self.persists = persists;
        }
        Ok(changes)
    }

    // As if each had come, or not at all (SPC-4 5.13.7); it is one change.
    fn act_for(&mut self, ways: &[Way], key: u64, action: Action) -> Result<Changes<Way>, Refusal> {
        let mut next = self.registry.clone();
        let mut changes = Vec::new();
        for way in ways {
            changes.extend(next.act(way, key, action)?);
        }
        changes.retain(|(who, _)| !ways.contains(who));
        if next.generation != self.registry.generation {
            next.generation = self.registry.generation.wrapping_add(1);
        }
        self.registry = next;
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
        let mut data = self.registry.generation.to_be_bytes().to_vec();
        data.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        data
    }

    // SPC-4 6.15.2.
    fn keys(&self) -> Vec<u8> {
        let mut data = self.header(8 * self.registry.registrants.len());
        for one in &self.registry.registrants {
            data.extend_from_slice(&one.key.to_be_bytes());
        }
        data
    }

    // SPC-4 6.15.3.
    fn held(&self) -> Vec<u8> {
        let Some(Held { kind, .. }) = &self.registry.held else { return self.header(0) };
        let mut data = self.header(16);
        // The key is 0 if all registrants hold it.
        data.extend_from_slice(&self.registry.holder_key().unwrap_or(0).to_be_bytes());
        data.extend_from_slice(&[0, 0, 0, 0, 0, number_of(*kind), 0, 0]);
        data
    }

    // SPC-4 6.15.4: ATP_C, PTPL_C; TMV, no commands beyond those of the standard, PTPL_A; all
    // types.
    fn capabilities(&self) -> Vec<u8> {
        let [can, does] = [self.can_persist, self.persists].map(u8::from);
        vec![0, 8, 0x04 | can, 0x80 | does, 0xea, 0x01, 0, 0]
    }

    // SPC-4 6.15.5.
    fn status(&self) -> Vec<u8> {
        let mut list = Vec::new();
        for Registrant { who, key } in &self.registry.registrants {
            let mut entry = [0; 24];
            put(&mut entry, 0, &key.to_be_bytes());
            if let Some(Held { kind, .. }) = &self.registry.held
                && self.registry.is_holder(who)
            {
                (entry[12], entry[13]) = (1, number_of(*kind));
            }
            put(&mut entry, 18, &who.port.to_be_bytes());
            let id = who.id.bytes();
            let length = u32::try_from(id.len()).unwrap_or(0);
            put(&mut entry, 20, &length.to_be_bytes());
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
        use std::fmt::Write as _;
        let registry = &self.registry;
        let mut text = format!("reservations 1\ngeneration {}\n", registry.generation);
        for one in &registry.registrants {
            let Registrant { who, key } = one;
            let (id, port) = (who.id.write_hex(), who.write_port());
            let _infallible = writeln!(text, "registrant {id} {key:016x}{port}");
        }
        if let Some(Held { kind, holder }) = &registry.held {
            let holder = holder.as_ref().map_or_else(|| "all".to_owned(), Way::write);
            let _infallible = writeln!(text, "held {} {holder}", number_of(*kind));
        }
        text + "end\n"
    }

    /// Reads what [`PersistentReservations::write`] has written; `None` if it is not that, or not
    /// all of it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut read = Self { persists: true, ..Self::new(true) };
        let registry = &mut read.registry;
        let mut lines = text.lines();
        if lines.next()? != "reservations 1" {
            return None;
        }
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["generation", number] => registry.generation = number.parse().ok()?,
                ["registrant", who, key, ref port @ ..]
                    if registry.registrants.len() < REGISTRANTS_MAX =>
                {
                    let who = Way::read(who, port)?;
                    let key = u64::from_str_radix(key, 16).ok()?;
                    if registry.key_of(&who).is_some() || key == 0 {
                        return None;
                    }
                    registry.registrants.push(Registrant { who, key });
                }
                ["held", kind, holder, ref port @ ..] => {
                    let kind = kind_of(kind.parse().ok()?)?;
                    let is_of_all = number_of(kind) >= 7;
                    let holder = match holder {
                        "all" => None,
                        holder => Some(Way::read(holder, port)?),
                    };
                    let fits = match &holder {
                        None => is_of_all && !registry.registrants.is_empty(),
                        Some(holder) => !is_of_all && registry.key_of(holder).is_some(),
                    };
                    registry.held = fits.then_some(Held { kind, holder });
                    registry.held.as_ref()?;
                }
                ["end"] => return Some(read),
                _ => return None,
            }
        }
        None
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
        // SERVICE ACTION RESERVATION KEY.
        Refusal::NoKey => Outcome::check(Sense::in_parameters(8, None)),
    }
}
