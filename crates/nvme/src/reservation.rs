//! Reservations of a namespace: which hosts may read and write it (Base 8.1.22; commands 7.4 to
//! 7.7).
//!
//! Invariants:
//! - A host is registered once, under one key.
//! - Whoever holds a reservation is registered.

use wire::{put, u64_at};

use super::command::Io;
use super::status::Status;

/// Hosts that may be registered at a time.
pub const REGISTRANTS_MAX: usize = 256;

/// Who may do what beside the holder (Base figure "Reservation Types").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservationKind {
    /// 1: others read.
    WriteExclusive,
    /// 2: others do nothing.
    ExclusiveAccess,
    /// 3: registrants do everything, others read.
    WriteExclusiveRegistrants,
    /// 4: registrants do everything, others nothing.
    ExclusiveAccessRegistrants,
    /// 5: as 3, and all registrants hold it.
    WriteExclusiveAll,
    /// 6: as 4, and all registrants hold it.
    ExclusiveAccessAll,
}

use ReservationKind as Kind;

/// What a command does to a namespace, for reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read, Compare, Verify.
    Read,
    /// Write, Write Zeroes, Dataset Management, Flush.
    Write,
    /// It is about reservations.
    None,
}

/// A host that has registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registrant {
    /// HOSTID.
    pub host_id: [u8; 16],
    /// Its key.
    pub key: u64,
}

/// The reservations of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reservations {
    registrants: Vec<Registrant>,
    /// The kind, and whose it is if not all registrants'.
    held: Option<(Kind, Option<[u8; 16]>)>,
    /// GEN: counts changes of the registrants.
    generation: u32,
    /// It outlives the loss of power.
    persists: bool,
    can_persist: bool,
}

const CONFLICT: Status = Status::RESERVATION_CONFLICT.do_not_retry();
const INVALID: Status = Status::INVALID_FIELD.do_not_retry();

impl Kind {
    const ALL: [Self; 6] = [
        Self::WriteExclusive,
        Self::ExclusiveAccess,
        Self::WriteExclusiveRegistrants,
        Self::ExclusiveAccessRegistrants,
        Self::WriteExclusiveAll,
        Self::ExclusiveAccessAll,
    ];

    /// RTYPE: 1 to 6.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// RTYPE.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    const fn is_of_all(self) -> bool {
        matches!(self, Self::WriteExclusiveAll | Self::ExclusiveAccessAll)
    }

    const fn is_for_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    const fn lets_read(self) -> bool {
        matches!(
            self,
            Self::WriteExclusive | Self::WriteExclusiveRegistrants | Self::WriteExclusiveAll
        )
    }
}

/// Which of them a command is.
#[must_use]
pub const fn access(io: Io) -> Access {
    match io {
        Io::Read(_) | Io::Compare(_) | Io::Verify(_) => Access::Read,
        Io::Write(_) | Io::WriteZeroes { .. } | Io::DatasetManagement { .. } | Io::Flush => {
            Access::Write
        }
        Io::ReservationRegister { .. }
        | Io::ReservationReport { .. }
        | Io::ReservationAcquire { .. }
        | Io::ReservationRelease { .. } => Access::None,
    }
}

impl Reservations {
    /// None, of a namespace that can keep them over a loss of power or not.
    #[must_use]
    pub const fn new(can_persist: bool) -> Self {
        Self { registrants: Vec::new(), held: None, generation: 0, persists: false, can_persist }
    }

    /// Whether every host may do everything.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.held.is_none()
    }

    /// Whether they are to be kept.
    #[must_use]
    pub const fn persists(&self) -> bool {
        self.persists
    }

    /// Keeps them over a loss of power from now on, or not (feature 83h).
    ///
    /// # Errors
    /// The status with which the command ends, where nothing would keep them.
    pub const fn persist(&mut self, persists: bool) -> Result<(), Status> {
        if persists && !self.can_persist {
            return Err(INVALID);
        }
        self.persists = persists;
        Ok(())
    }

    /// RESCAP: how a namespace can be reserved.
    #[must_use]
    pub const fn capabilities(can_persist: bool) -> u8 {
        // Every kind; keys are ignored as the standard has it since version 1.3.
        0xfe | can_persist as u8
    }

    /// Whether a host may do this.
    #[must_use]
    pub fn admits(&self, host_id: &[u8; 16], access: Access) -> bool {
        let Some((kind, holder)) = self.held else { return true };
        let is_registered = self.of(host_id).is_some();
        let is_holder = holder.is_none_or(|holder| holder == *host_id) && is_registered;
        match access {
            Access::None => true,
            _ if is_holder || kind.is_for_registrants() && is_registered => true,
            Access::Read => kind.lets_read(),
            Access::Write => false,
        }
    }

    /// Whether anybody is registered.
    #[must_use]
    pub const fn has_registrants(&self) -> bool {
        !self.registrants.is_empty()
    }

    /// Whether those who are not registered may do this.
    #[must_use]
    pub const fn admits_strangers(&self, access: Access) -> bool {
        match (self.held, access) {
            (None, _) | (_, Access::None) => true,
            (Some((kind, _)), Access::Read) => kind.lets_read(),
            (Some(_), Access::Write) => false,
        }
    }

    fn of(&self, host_id: &[u8; 16]) -> Option<usize> {
        self.registrants.iter().position(|one| one.host_id == *host_id)
    }

    /// Does a reservation command with the data that it came with; Report's data otherwise.
    ///
    /// # Errors
    /// The status with which the command ends; nothing has changed then.
    pub fn handle(
        &mut self,
        host_id: [u8; 16],
        io: Io,
        data: &[u8],
    ) -> Result<Option<Vec<u8>>, Status> {
        let keys = || match data.get(..16) {
            Some(data) => Ok([u64_at(data, 0), u64_at(data, 8)]),
            None => Err(Status::SGL_LENGTH_INVALID.do_not_retry()),
        };
        match io {
            Io::ReservationRegister { action, ignores_key, persistence } => {
                self.register(host_id, action, ignores_key, persistence, keys()?).map(|()| None)
            }
            Io::ReservationAcquire { action, ignores_key: false, kind } => {
                let kind = Kind::new(kind).ok_or(INVALID)?;
                self.acquire(host_id, action, kind, keys()?).map(|()| None)
            }
            Io::ReservationRelease { action, ignores_key: false, kind } => {
                let key = data.get(..8).map(|data| u64_at(data, 0));
                let key = key.ok_or(Status::SGL_LENGTH_INVALID.do_not_retry())?;
                self.release(host_id, action, kind, key).map(|()| None)
            }
            // Host identifiers have 128 bits over fabrics (Base 7.6).
            Io::ReservationReport { is_extended: false, .. } => {
                Err(Status::HOST_ID_INCONSISTENT.do_not_retry())
            }
            Io::ReservationReport { length, .. } => {
                let mut report = self.report();
                report.resize(usize::try_from(length).unwrap_or(usize::MAX).min(1 << 20), 0);
                Ok(Some(report))
            }
            _ => Err(INVALID),
        }
    }

    // Base 7.5.
    fn register(
        &mut self,
        host_id: [u8; 16],
        action: u8,
        ignores_key: bool,
        persistence: u8,
        [current, new]: [u64; 2],
    ) -> Result<(), Status> {
        let persists = match persistence {
            0 => self.persists,
            2 => false,
            3 if self.can_persist => true,
            _ => return Err(INVALID),
        };
        let own = self.of(&host_id);
        let knows = |own: usize| ignores_key || self.registrants[own].key == current;
        match (action, own) {
            (0, None) if self.registrants.len() >= REGISTRANTS_MAX => {
                return Err(Status::INTERNAL_ERROR.do_not_retry());
            }
            (0, None) => self.registrants.push(Registrant { host_id, key: new }),
            (0, Some(own)) if self.registrants[own].key == new => {}
            (1, Some(own)) if knows(own) => self.unregister(own),
            (2, Some(own)) if knows(own) => self.registrants[own].key = new,
            (0..=2, _) => return Err(CONFLICT),
            _ => return Err(INVALID),
        }
        self.generation = self.generation.wrapping_add(1);
        self.persists = persists;
        Ok(())
    }

    // A reservation goes with its holder, or with the last of those who hold it together.
    fn unregister(&mut self, index: usize) {
        let gone = self.registrants.remove(index);
        let is_over = match self.held {
            Some((_, Some(holder))) => holder == gone.host_id,
            Some((_, None)) => self.registrants.is_empty(),
            None => false,
        };
        if is_over {
            self.held = None;
        }
    }

    // Who asks is registered, under this key.
    fn check(&self, host_id: &[u8; 16], key: u64) -> Result<(), Status> {
        let own = self.of(host_id).map(|own| self.registrants[own].key);
        if own == Some(key) { Ok(()) } else { Err(CONFLICT) }
    }

    // Base 7.4.
    fn acquire(
        &mut self,
        host_id: [u8; 16],
        action: u8,
        kind: Kind,
        [current, other]: [u64; 2],
    ) -> Result<(), Status> {
        self.check(&host_id, current)?;
        let held = (kind, (!kind.is_of_all()).then_some(host_id));
        match action {
            0 => match self.held {
                None => self.held = Some(held),
                Some(before) if before == held => {}
                Some(_) => return Err(CONFLICT),
            },
            // What others have under way cannot be aborted: it is with a device already.
            1 | 2 => {
                self.preempt(host_id, held, other)?;
                self.generation = self.generation.wrapping_add(1);
            }
            _ => return Err(INVALID),
        }
        Ok(())
    }

    // Base 8.1.22.7.
    fn preempt(
        &mut self,
        host_id: [u8; 16],
        held: (Kind, Option<[u8; 16]>),
        key: u64,
    ) -> Result<(), Status> {
        let holder_key = match self.held {
            Some((_, Some(holder))) => self.of(&holder).map(|holder| self.registrants[holder].key),
            Some((_, None)) | None => None,
        };
        let is_of_all = matches!(self.held, Some((_, None)));
        let takes = is_of_all && key == 0 || holder_key == Some(key);
        let everybody = is_of_all && key == 0;
        if key == 0 && !everybody && holder_key != Some(0) {
            return Err(INVALID);
        }
        let leaves = |one: &Registrant| one.host_id != host_id && (everybody || one.key == key);
        let own_key = self.of(&host_id).map(|own| self.registrants[own].key);
        let is_own = takes && own_key == Some(key);
        if !everybody && !is_own && !self.registrants.iter().any(|one| one.key == key) {
            return Err(CONFLICT);
        }
        self.registrants.retain(|one| !leaves(one));
        if takes {
            self.held = Some(held);
        } else if let Some((_, Some(holder))) = self.held
            && self.of(&holder).is_none()
        {
            self.held = None;
        }
        Ok(())
    }

    // Base 7.7.
    fn release(&mut self, host_id: [u8; 16], action: u8, kind: u8, key: u64) -> Result<(), Status> {
        self.check(&host_id, key)?;
        match (action, self.held) {
            (0, Some((held, holder))) if holder.is_none_or(|holder| holder == host_id) => {
                if Kind::new(kind) != Some(held) {
                    return Err(INVALID);
                }
                self.held = None;
            }
            // Nothing of this host's to release.
            (0, _) => {}
            (1, _) => {
                self.registrants.clear();
                self.held = None;
                self.generation = self.generation.wrapping_add(1);
            }
            _ => return Err(INVALID),
        }
        Ok(())
    }

    // Base 7.6: the extended structure.
    fn report(&self) -> Vec<u8> {
        const HEADER: usize = 64;
        const ENTRY: usize = 64;
        let mut report = vec![0; HEADER + ENTRY * self.registrants.len()];
        put(&mut report, 0, &self.generation.to_le_bytes());
        report[4] = self.held.map_or(0, |(kind, _)| kind.number());
        let count = u16::try_from(self.registrants.len()).unwrap_or(u16::MAX);
        put(&mut report, 5, &count.to_le_bytes());
        report[9] = u8::from(self.persists);
        for (one, entry) in self.registrants.iter().zip(report[HEADER..].chunks_exact_mut(ENTRY)) {
            // Any controller: they are made for whoever asks.
            put(entry, 0, &u16::MAX.to_le_bytes());
            let holds =
                self.held.is_some_and(|(_, holder)| holder.is_none_or(|h| h == one.host_id));
            entry[2] = u8::from(holds);
            put(entry, 8, &one.key.to_le_bytes());
            put(entry, 16, &one.host_id);
        }
        report
    }

    /// As text, to be read after a restart.
    #[must_use]
    pub fn write(&self) -> String {
        use std::fmt::Write as _;
        let hex = |bytes: &[u8; 16]| format!("{:032x}", u128::from_be_bytes(*bytes));
        let mut text = format!("reservations 1\ngeneration {}\n", self.generation);
        for one in &self.registrants {
            let _infallible = writeln!(text, "registrant {} {:016x}", hex(&one.host_id), one.key);
        }
        if let Some((kind, holder)) = &self.held {
            let holder = holder.as_ref().map_or_else(|| "all".to_owned(), hex);
            let _infallible = writeln!(text, "held {} {holder}", kind.number());
        }
        text + "end\n"
    }

    /// Reads what [`Reservations::write`] has written; `None` if it is not that, or not all of it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let hex = |word: &str| {
            let is_hex = word.len() == 32;
            is_hex.then(|| u128::from_str_radix(word, 16).ok()).flatten().map(u128::to_be_bytes)
        };
        let mut read = Self { persists: true, ..Self::new(true) };
        let mut lines = text.lines();
        if lines.next()? != "reservations 1" {
            return None;
        }
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["generation", number] => read.generation = number.parse().ok()?,
                ["registrant", host_id, key] if read.registrants.len() < REGISTRANTS_MAX => {
                    let host_id = hex(host_id)?;
                    let key = u64::from_str_radix(key, 16).ok()?;
                    if read.of(&host_id).is_some() {
                        return None;
                    }
                    read.registrants.push(Registrant { host_id, key });
                }
                ["held", kind, holder] => {
                    let kind = Kind::new(kind.parse().ok()?)?;
                    let holder = match holder {
                        "all" => None,
                        holder => Some(hex(holder)?),
                    };
                    let fits = match holder {
                        None => kind.is_of_all() && !read.registrants.is_empty(),
                        Some(holder) => !kind.is_of_all() && read.of(&holder).is_some(),
                    };
                    read.held = fits.then_some((kind, holder));
                    read.held?;
                }
                ["end"] => return Some(read),
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [u8; 16] = [0xa; 16];
    const B: [u8; 16] = [0xb; 16];
    const C: [u8; 16] = [0xc; 16];

    fn keys(current: u64, other: u64) -> [u8; 16] {
        let mut data = [0; 16];
        put(&mut data, 0, &current.to_le_bytes());
        put(&mut data, 8, &other.to_le_bytes());
        data
    }

    fn register(all: &mut Reservations, host: [u8; 16], key: u64) -> Result<(), Status> {
        let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence: 0 };
        all.handle(host, io, &keys(0, key)).map(|_| ())
    }

    fn acquire(
        all: &mut Reservations,
        host: [u8; 16],
        action: u8,
        kind: Kind,
        [key, other]: [u64; 2],
    ) -> Result<(), Status> {
        let io = Io::ReservationAcquire { action, ignores_key: false, kind: kind.number() };
        all.handle(host, io, &keys(key, other)).map(|_| ())
    }

    fn release(
        all: &mut Reservations,
        host: [u8; 16],
        action: u8,
        kind: u8,
        key: u64,
    ) -> Result<(), Status> {
        let io = Io::ReservationRelease { action, ignores_key: false, kind };
        all.handle(host, io, &keys(key, 0)).map(|_| ())
    }

    /// A (key 1) and B (key 2) are registered, A holds it.
    fn held(kind: Kind) -> Reservations {
        let mut all = Reservations::new(true);
        register(&mut all, A, 1).expect("it may");
        register(&mut all, B, 2).expect("it may");
        acquire(&mut all, A, 0, kind, [1, 0]).expect("it may");
        all
    }

    // The table of the specification: reads and writes of the holder, a registrant, anybody.
    #[test]
    fn each_kind_admits_whom_it_should() {
        let table = [
            (Kind::WriteExclusive, [1, 1, 1, 0, 1, 0]),
            (Kind::ExclusiveAccess, [1, 1, 0, 0, 0, 0]),
            (Kind::WriteExclusiveRegistrants, [1, 1, 1, 1, 1, 0]),
            (Kind::ExclusiveAccessRegistrants, [1, 1, 1, 1, 0, 0]),
            (Kind::WriteExclusiveAll, [1, 1, 1, 1, 1, 0]),
            (Kind::ExclusiveAccessAll, [1, 1, 1, 1, 0, 0]),
        ];
        for (kind, expected) in table {
            let all = held(kind);
            let admitted = [A, B, C].map(|host| {
                [Access::Read, Access::Write].map(|access| u8::from(all.admits(&host, access)))
            });
            assert_eq!(admitted.concat(), expected, "{kind:?}");
            assert!(all.admits(&C, Access::None));
        }
        assert!(Reservations::new(false).admits(&C, Access::Write), "nobody holds it");
    }

    #[test]
    fn a_host_registers_once_and_knows_its_key() {
        let mut all = Reservations::new(false);
        register(&mut all, A, 1).expect("it may");
        assert_eq!(register(&mut all, A, 1), Ok(()), "the same again");
        assert_eq!(register(&mut all, A, 2), Err(CONFLICT));
        let change = |all: &mut Reservations, action, ignores_key, current| {
            let io = Io::ReservationRegister { action, ignores_key, persistence: 0 };
            all.handle(A, io, &keys(current, 5)).map(|_| ())
        };
        assert_eq!(change(&mut all, 2, false, 9), Err(CONFLICT), "not its key");
        assert_eq!(change(&mut all, 2, true, 9), Ok(()));
        assert_eq!(change(&mut all, 1, false, 1), Err(CONFLICT), "it is 5 now");
        assert_eq!(change(&mut all, 1, false, 5), Ok(()));
        assert_eq!(change(&mut all, 1, true, 5), Err(CONFLICT), "it is gone");
        assert_eq!(change(&mut all, 3, false, 5), Err(INVALID));
        let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence: 3 };
        assert_eq!(all.handle(A, io, &keys(0, 1)), Err(INVALID), "nothing would keep it");
        let short = Err(Status::SGL_LENGTH_INVALID.do_not_retry());
        let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence: 0 };
        assert_eq!(all.handle(A, io, &[0; 15]), short);
        for number in 0..u64::try_from(REGISTRANTS_MAX).expect("it fits") {
            let mut host = [0; 16];
            put(&mut host, 0, &number.to_le_bytes());
            register(&mut all, host, number).expect("there is room");
        }
        assert!(register(&mut all, C, 1).is_err(), "there is none left");
    }

    #[test]
    fn a_reservation_is_its_holders_to_give_up() {
        let mut all = held(Kind::WriteExclusive);
        assert_eq!(acquire(&mut all, A, 0, Kind::WriteExclusive, [1, 0]), Ok(()), "again");
        assert_eq!(acquire(&mut all, A, 0, Kind::ExclusiveAccess, [1, 0]), Err(CONFLICT));
        assert_eq!(acquire(&mut all, B, 0, Kind::WriteExclusive, [2, 0]), Err(CONFLICT));
        assert_eq!(acquire(&mut all, C, 0, Kind::WriteExclusive, [0, 0]), Err(CONFLICT));
        assert_eq!(release(&mut all, B, 0, 1, 2), Ok(()), "nothing of its own");
        assert!(!all.is_free());
        assert_eq!(release(&mut all, A, 0, 2, 1), Err(INVALID), "another kind");
        assert_eq!(release(&mut all, A, 0, 1, 7), Err(CONFLICT), "another key");
        assert_eq!(release(&mut all, A, 0, 1, 1), Ok(()));
        assert!(all.is_free());
        // It goes with its holder; one of all registrants stays with the rest.
        for (kind, is_free) in [(Kind::ExclusiveAccess, true), (Kind::ExclusiveAccessAll, false)] {
            let mut all = held(kind);
            let io = Io::ReservationRegister { action: 1, ignores_key: false, persistence: 0 };
            all.handle(A, io, &keys(1, 0)).expect("it may");
            assert_eq!(all.is_free(), is_free, "{kind:?}");
        }
        let mut all = held(Kind::ExclusiveAccess);
        assert_eq!(release(&mut all, B, 1, 0, 2), Ok(()), "any registrant may clear");
        assert!(all.is_free() && all.of(&A).is_none());
    }

    #[test]
    fn whoever_knows_the_holders_key_takes_it() {
        let mut all = held(Kind::ExclusiveAccess);
        assert_eq!(acquire(&mut all, B, 1, Kind::ExclusiveAccess, [2, 9]), Err(CONFLICT), "whose?");
        assert_eq!(acquire(&mut all, B, 1, Kind::ExclusiveAccess, [2, 0]), Err(INVALID));
        acquire(&mut all, B, 1, Kind::WriteExclusive, [2, 1]).expect("it knows A's");
        assert_eq!(all.held, Some((Kind::WriteExclusive, Some(B))));
        assert_eq!(all.of(&A), None, "A is not registered any more");
        // Its own key changes the kind.
        acquire(&mut all, B, 1, Kind::ExclusiveAccess, [2, 2]).expect("it is its own");
        assert_eq!(all.held, Some((Kind::ExclusiveAccess, Some(B))));
        // A key that is no holder's only unregisters.
        register(&mut all, C, 3).expect("it may");
        acquire(&mut all, B, 1, Kind::ExclusiveAccess, [2, 3]).expect("it knows C's");
        assert_eq!((all.of(&C), all.held.is_some()), (None, true));
        // Of all registrants, nobody's key takes it.
        let mut all = held(Kind::WriteExclusiveAll);
        acquire(&mut all, B, 2, Kind::ExclusiveAccess, [2, 0]).expect("it may");
        assert_eq!(all.held, Some((Kind::ExclusiveAccess, Some(B))));
        assert_eq!(all.registrants.len(), 1);
    }

    #[test]
    fn a_report_says_who_holds_what() {
        let mut all = held(Kind::WriteExclusive);
        let plain = Io::ReservationReport { length: 64, is_extended: false };
        assert_eq!(all.handle(C, plain, &[]), Err(Status::HOST_ID_INCONSISTENT.do_not_retry()));
        let io = Io::ReservationReport { length: 4096, is_extended: true };
        let report = all.handle(C, io, &[]).expect("anybody may").expect("it has data");
        assert_eq!(report.len(), 4096);
        assert_eq!(report[..10], [2, 0, 0, 0, 1, 2, 0, 0, 0, 0]);
        assert_eq!((report[64 + 2], report[128 + 2]), (1, 0));
        assert_eq!((report[64 + 8], report[128 + 8]), (1, 2));
        assert_eq!(report[128 + 16..144 + 16], B);
        let io = Io::ReservationReport { length: 8, is_extended: true };
        assert_eq!(all.handle(C, io, &[]).expect("it may").expect("data").len(), 8);
    }

    #[test]
    fn what_is_written_is_read() {
        for kind in Kind::ALL {
            let mut all = held(kind);
            let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence: 3 };
            all.handle(C, io, &keys(0, u64::MAX)).expect("it may");
            let text = all.write();
            assert_eq!(Reservations::read(&text).as_ref(), Some(&all), "{text}");
            for cut in 0..text.len() - 1 {
                assert_eq!(Reservations::read(&text[..cut]), None, "cut off at {cut}");
            }
        }
        let twice = "reservations 1\nregistrant 0000000000000000000000000000000a 1\n";
        assert_eq!(Reservations::read(&format!("{twice}{}end\n", &twice[15..])), None);
        assert_eq!(Reservations::read("reservations 1\nheld 1 all\nend\n"), None);
    }
}
