//! Reservation commands of a namespace (Base 7.4 to 7.7), and checks of hosts' access.
//!
//! Crate `reservations` has the rules; this module decodes commands into its actions, and encodes
//! reports.

use reservations::{Action, Kind, Refusal, Registry};

use super::command::Io;
use super::layout::reservation::{acquire, register, release, status};
use super::status::Status;

/// The access of a command to a namespace, for reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read, Compare, Verify.
    Read,
    /// Write, Write Zeroes, Dataset Management, Flush.
    Write,
    /// Reservation commands, which need no access.
    None,
}

/// The reservations of a namespace, by HOSTID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservations(Registry<[u8; 16]>);

impl Default for Reservations {
    fn default() -> Self {
        Self::new(false)
    }
}

const INVALID: Status = Status::INVALID_FIELD.do_not_retry();
const TOO_SHORT: Status = Status::SGL_LENGTH_INVALID.do_not_retry();

// The kind with this RTYPE.
fn kind_of(number: u8) -> Option<Kind> {
    Kind::ALL.get(usize::from(number).checked_sub(1)?).copied()
}

// The RTYPE of a kind.
fn number_of(kind: Kind) -> u8 {
    (1..).zip(Kind::ALL).find(|(_, one)| *one == kind).map_or(0, |(number, _)| number)
}

/// The holder of a reservation, decoded from a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservationHolder {
    /// HOSTID.
    pub host_id: [u8; 16],
    /// Its reservation key.
    pub key: u64,
}

/// Decodes the first holder of an extended report, or of the first part of one (Base 7.6); `None`
/// if no reservation is held.
#[must_use]
pub fn read_reservation_holder(report: &[u8]) -> Option<ReservationHolder> {
    use status::*;
    let (header, entries) = report.split_at_checked(HEADER_BYTES)?;
    let count = usize::from(REGSTRNT.get(header));
    let mut entries = entries.chunks_exact(ENTRY_BYTES).take(count);
    let entry = entries.find(|entry| RTYPE.get(header) > 0 && RCSTS_HOLDER.get(entry))?;
    Some(ReservationHolder { host_id: HOSTID.get(entry), key: RKEY.get(entry) })
}

/// Encodes the data of Register and Acquire: the current key, and the new key or that to preempt.
#[must_use]
pub fn write_reservation_keys([current, other]: [u64; 2]) -> [u8; register::BYTES] {
    let mut data = [0; register::BYTES];
    register::CRKEY.put(&mut data, current);
    register::NRKEY.put(&mut data, other);
    data
}

/// The access of a command.
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

impl Access {
    // The access for the registry; `None` if reservations never bar it.
    const fn of_device(self) -> Option<reservations::Access> {
        match self {
            Self::Read => Some(reservations::Access::Read),
            Self::Write => Some(reservations::Access::Write),
            Self::None => None,
        }
    }
}

impl Reservations {
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

    /// Whether the reservations are to be stored (PTPL).
    #[must_use]
    pub const fn persists(&self) -> bool {
        self.0.persists()
    }

    /// Sets whether reservations persist through power loss (feature 83h).
    ///
    /// # Errors
    /// The status with which the command ends, if they cannot persist.
    pub const fn persist(&mut self, persists: bool) -> Result<(), Status> {
        if self.0.persist(persists) { Ok(()) } else { Err(INVALID) }
    }

    /// RESCAP: the reservation capabilities of a namespace.
    #[must_use]
    pub const fn capabilities(can_persist: bool) -> u8 {
        // All kinds; IEKEY has its meaning since version 1.3.
        0xfe | can_persist as u8
    }

    /// Whether reservations allow a host this access.
    #[must_use]
    pub fn admits(&self, host_id: &[u8; 16], access: Access) -> bool {
        access.of_device().is_none_or(|access| self.0.admits(host_id, access))
    }

    /// Whether a host is registered.
    #[must_use]
    pub fn is_registered(&self, host_id: &[u8; 16]) -> bool {
        self.0.key_of(host_id).is_some()
    }

    /// The registered hosts.
    pub fn hosts(&self) -> impl Iterator<Item = [u8; 16]> {
        self.0.registrants().iter().map(|one| one.who)
    }

    /// Whether there are registrants.
    #[must_use]
    pub fn has_registrants(&self) -> bool {
        !self.0.registrants().is_empty()
    }

    /// Whether reservations allow non-registrants this access.
    #[must_use]
    pub fn admits_strangers(&self, access: Access) -> bool {
        access.of_device().is_none_or(|access| self.0.admits_strangers(access))
    }

    /// Executes a reservation command with its data. Returns the data of a Report, `None` for
    /// others.
    ///
    /// # Errors
    /// The status with which the command ends; nothing has changed then.
    pub fn handle(
        &mut self,
        host_id: [u8; 16],
        io: Io,
        data: &[u8],
    ) -> Result<Option<Vec<u8>>, Status> {
        let part = |bytes| data.get(..bytes).ok_or(TOO_SHORT);
        let action = match io {
            // Host identifiers have 128 bits over fabrics (Base 7.6).
            Io::ReservationReport { is_extended: false, .. } => {
                return Err(Status::HOST_ID_INCONSISTENT.do_not_retry());
            }
            Io::ReservationReport { length, .. } => {
                let mut report = self.report();
                report.resize(usize::try_from(length).unwrap_or(usize::MAX).min(1 << 20), 0);
                return Ok(Some(report));
            }
            Io::ReservationRegister { action, ignores_key, persistence } => {
                let data = part(register::BYTES)?;
                let keys = [register::CRKEY, register::NRKEY].map(|key| key.get(data));
                let registration = registration(action, ignores_key, keys)?;
                let persists = self.persistence(persistence)?;
                self.0.act(&host_id, registration).map_err(refused)?;
                // This cannot fail: `persistence` has checked it.
                let _can = self.0.persist(persists);
                return Ok(None);
            }
            Io::ReservationAcquire { action, ignores_key: false, kind } => {
                let kind = kind_of(kind).ok_or(INVALID)?;
                let data = part(acquire::BYTES)?;
                let keys = [acquire::CRKEY, acquire::PRKEY].map(|key| key.get(data));
                acquisition(action, kind, keys)?
            }
            Io::ReservationRelease { action, ignores_key: false, kind } => {
                let known = release::CRKEY.get(part(release::BYTES)?);
                match action {
                    0 => Action::Release { known, kind: kind_of(kind) },
                    1 => Action::Clear { known },
                    _ => return Err(INVALID),
                }
            }
            _ => return Err(INVALID),
        };
        self.0.act(&host_id, action).map_err(refused)?;
        Ok(None)
    }

    // Whether reservations persist after a Register with this CPTPL (Base figure "Reservation
    // Register - Command Dword 10").
    const fn persistence(&self, number: u8) -> Result<bool, Status> {
        match number {
            0 => Ok(self.persists()),
            2 => Ok(false),
            3 if self.0.can_persist() => Ok(true),
            _ => Err(INVALID),
        }
    }

    // The extended report structure (Base 7.6).
    fn report(&self) -> Vec<u8> {
        use status::*;
        let registrants = self.0.registrants();
        let mut report = vec![0; HEADER_BYTES + ENTRY_BYTES * registrants.len()];
        GEN.put(&mut report, self.0.generation());
        RTYPE.put(&mut report, self.0.kind().map_or(0, number_of));
        REGSTRNT.put(&mut report, u16::try_from(registrants.len()).unwrap_or(u16::MAX));
        PTPLS.put(&mut report, u8::from(self.persists()));
        let entries = report[HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES);
        for (one, entry) in registrants.iter().zip(entries) {
            // FFFFh: controllers are dynamic.
            CNTLID.put(entry, u16::MAX);
            RCSTS_HOLDER.put(entry, self.0.is_holder(&one.who));
            RKEY.put(entry, one.key);
            HOSTID.put(entry, &one.who);
        }
        report
    }

    /// The reservations as text, to be stored.
    #[must_use]
    pub fn write(&self) -> String {
        self.0.write()
    }

    /// Parses text of [`Reservations::write`]; `None` if it is invalid or truncated.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Registry::read(text).map(Self)
    }
}

// The action of a Reservation Register command, by RREGA (Base 7.5).
const fn registration(
    action: u8,
    ignores_key: bool,
    [current, new]: [u64; 2],
) -> Result<Action, Status> {
    let known = if ignores_key { None } else { Some(current) };
    match action {
        0 => Ok(Action::Join { key: new }),
        1 => Ok(Action::Leave { known }),
        2 => Ok(Action::Rekey { known, key: new }),
        _ => Err(INVALID),
    }
}

// The action of a Reservation Acquire command, by RACQA (Base 7.4). Commands of others cannot be
// aborted, since a device already has them.
const fn acquisition(action: u8, kind: Kind, [known, key]: [u64; 2]) -> Result<Action, Status> {
    match action {
        0 => Ok(Action::Reserve { known, kind }),
        1 | 2 => Ok(Action::Preempt { known, key, kind }),
        _ => Err(INVALID),
    }
}

// The status of a refused command.
const fn refused(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Conflict => Status::RESERVATION_CONFLICT.do_not_retry(),
        Refusal::Full => Status::INTERNAL_ERROR.do_not_retry(),
        Refusal::OtherKind | Refusal::NoKey => INVALID,
    }
}

#[cfg(test)]
mod tests {
    use reservations::REGISTRANTS_MAX;

    use super::status::HEADER_BYTES;
    use super::*;

    const CONFLICT: Status = Status::RESERVATION_CONFLICT.do_not_retry();

    const A: [u8; 16] = [0xa; 16];
    const B: [u8; 16] = [0xb; 16];
    const C: [u8; 16] = [0xc; 16];

    fn keys(current: u64, other: u64) -> [u8; 16] {
        (u128::from(other) << 64 | u128::from(current)).to_le_bytes()
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
        let io = Io::ReservationAcquire { action, ignores_key: false, kind: number_of(kind) };
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

    /// The kind, and who holds it.
    fn holders(all: &Reservations) -> Option<(Kind, Vec<[u8; 16]>)> {
        let all = &all.0;
        let who = all.registrants().iter().map(|one| one.who).filter(|who| all.is_holder(who));
        all.kind().map(|kind| (kind, who.collect()))
    }

    /// A (key 1) and B (key 2) are registered, A holds it.
    fn held(kind: Kind) -> Reservations {
        let mut all = Reservations::new(true);
        register(&mut all, A, 1).expect("it may");
        register(&mut all, B, 2).expect("it may");
        acquire(&mut all, A, 0, kind, [1, 0]).expect("it may");
        all
    }

    #[test]
    fn a_holder_is_read_as_it_was_reported() {
        let all = held(Kind::ExclusiveAccess);
        let holder = ReservationHolder { host_id: A, key: 1 };
        assert_eq!(read_reservation_holder(&all.report()), Some(holder));
        assert_eq!(read_reservation_holder(&all.report()[..HEADER_BYTES + 8]), None);
        let mut free = Reservations::new(true);
        assert_eq!(read_reservation_holder(&free.report()), None);
        register(&mut free, A, 1).expect("it may");
        assert_eq!(read_reservation_holder(&free.report()), None);
        assert_eq!(write_reservation_keys([1, 2]), keys(1, 2));
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
            let host = u128::from(number).to_le_bytes();
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
        assert!(all.is_free() && all.0.key_of(&A).is_none());
    }

    #[test]
    fn whoever_knows_the_holders_key_takes_it() {
        let mut all = held(Kind::ExclusiveAccess);
        assert_eq!(acquire(&mut all, B, 1, Kind::ExclusiveAccess, [2, 9]), Err(CONFLICT), "whose?");
        assert_eq!(acquire(&mut all, B, 1, Kind::ExclusiveAccess, [2, 0]), Err(INVALID));
        acquire(&mut all, B, 1, Kind::WriteExclusive, [2, 1]).expect("it knows A's");
        assert_eq!(holders(&all), Some((Kind::WriteExclusive, vec![B])));
        assert_eq!(all.0.key_of(&A), None, "A is not registered any more");
        // Its own key changes the kind.
        acquire(&mut all, B, 1, Kind::ExclusiveAccess, [2, 2]).expect("it is its own");
        assert_eq!(holders(&all), Some((Kind::ExclusiveAccess, vec![B])));
        // A key that is no holder's only unregisters.
        register(&mut all, C, 3).expect("it may");
        acquire(&mut all, B, 1, Kind::ExclusiveAccess, [2, 3]).expect("it knows C's");
        assert_eq!((all.0.key_of(&C), all.is_free()), (None, false));
        // Of all registrants, nobody's key takes it.
        let mut all = held(Kind::WriteExclusiveAll);
        acquire(&mut all, B, 2, Kind::ExclusiveAccess, [2, 0]).expect("it may");
        assert_eq!(holders(&all), Some((Kind::ExclusiveAccess, vec![B])));
        assert_eq!(all.0.registrants().len(), 1);
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
        let twice = "reservations 2\nregistrant 0000000000000000000000000000000a 1\n";
        assert_eq!(Reservations::read(&format!("{twice}{}end\n", &twice[15..])), None);
        assert_eq!(Reservations::read("reservations 2\nheld 1 all\nend\n"), None);
    }
}
