//! The reservations of a namespace by hosts and initiators, shared by all shards and stored in
//! files.
//!
//! NVMe hosts and SCSI initiators register separately. A reservation of one protocol bars the other
//! like any non-registrant, and while one side has registrants the other cannot register.
//!
//! Invariants:
//! - A command that changes stored reservations ends when the change is on the medium, or fails and
//!   changes nothing.
//! - While nobody holds the namespace, a command takes no lock to find that out; a SCSI command
//!   takes none while nothing has happened to the logical unit since its session last looked.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nvme::{Access, Io, Reservations, Status};
use scsi::{
    Command, Elsewhere, LogicalUnit, Nexus, Outcome, PersistentReservations, Sense, Step, UnitData,
    UnitPort, Way,
};

/// See the module's description.
#[derive(Debug, Default)]
pub struct Reserved {
    state: Mutex<State>,
    is_held: AtomicBool,
    /// Counts changes of the reservations and the logical unit.
    epoch: AtomicU64,
    /// Held while reservations change and are being written; checks of reservations do not need it.
    changing: Mutex<()>,
    /// Where reservations are stored: of hosts, and of initiators; `None` if they are not.
    files: Option<[PathBuf; 2]>,
}

#[derive(Debug, Default)]
struct State {
    nvme: Reservations,
    scsi: Scsi,
    /// The last [`CEASED_MAX`] hosts that lost their registration (some may have a new one), and
    /// the epochs when they did.
    ceased: VecDeque<([u8; 16], u64)>,
}

/// How many hosts `State::ceased` has at most: as many as may be registered at a time.
const CEASED_MAX: usize = 256;

/// The SCSI side of a namespace.
#[derive(Debug)]
enum Scsi {
    /// No initiator has come yet.
    Kept(PersistentReservations),
    Unit(Box<LogicalUnit>),
}

impl Default for Scsi {
    fn default() -> Self {
        Self::Kept(PersistentReservations::default())
    }
}

/// Why a file of stored reservations cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReservedError {
    /// The file cannot be read.
    #[error("read the reservations in {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be parsed.
    #[error("{}: damaged reservations; remove it to give up what it kept", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

/// Bytes that are read of a file: more than all registrants take.
const FILE_BYTES: u64 = 256 << 10;

impl Reserved {
    /// Loads stored reservations: those of hosts from `file`, those of initiators from the file
    /// with `.scsi` appended. A missing file means no reservations.
    ///
    /// # Errors
    /// When a file exists and cannot be read or parsed.
    pub fn kept(file: PathBuf) -> Result<Self, ReservedError> {
        let mut beside = file.as_os_str().to_owned();
        beside.push(".scsi");
        let beside = PathBuf::from(beside);
        let nvme = read(&file, Reservations::read)?.unwrap_or_else(|| Reservations::new(true));
        let scsi = read(&beside, PersistentReservations::read)?;
        let scsi = Scsi::Kept(scsi.unwrap_or_else(|| PersistentReservations::new(true)));
        let kept = Self {
            state: Mutex::new(State { nvme, scsi, ceased: VecDeque::new() }),
            files: Some([file, beside]),
            ..Self::default()
        };
        kept.settle(&mut kept.lock());
        Ok(kept)
    }

    /// RESCAP: the reservation capabilities of the namespace.
    pub(super) const fn capabilities(&self) -> u8 {
        Reservations::capabilities(self.files.is_some())
    }

    /// Whether reservations let a host access the namespace in this way.
    pub(super) fn admits(&self, host_id: &[u8; 16], access: Access) -> bool {
        if !self.is_held.load(Ordering::Acquire) {
            return true;
        }
        let state = self.lock();
        let elsewhere = state.scsi.held();
        let is_barred = match access {
            Access::Read => elsewhere.bars_reading,
            Access::Write => elsewhere.bars_writing,
            Access::None => false,
        };
        !is_barred && state.nvme.admits(host_id, access)
    }

    /// Whether the hosts' reservations are stored (PTPL).
    pub(super) fn persists(&self) -> bool {
        self.lock().nvme.persists()
    }

    /// Sets whether the hosts' reservations are stored (PTPL).
    pub(super) fn persist(&self, persists: bool) -> Result<(), Status> {
        self.change(|state| state.persist(persists))
    }

    /// Whether a host's reservation command changes stored reservations, so that the keeper makes
    /// it.
    pub(super) const fn keeps(&self, io: Io) -> bool {
        self.files.is_some() && !matches!(io, Io::ReservationReport { .. })
    }

    /// Whether an initiator's command changes stored reservations, so that the keeper makes it.
    pub(super) const fn keeps_command(&self, command: &Command) -> bool {
        self.files.is_some() && matches!(command, Command::ReservationOut { .. })
    }

    /// Executes a reservation command of a host. Returns the data of a Report, `None` for others.
    pub(super) fn handle(
        &self,
        host_id: [u8; 16],
        io: Io,
        data: &[u8],
    ) -> Result<Option<Vec<u8>>, Status> {
        match io {
            // A report changes nothing, so nothing has to be stored.
            Io::ReservationReport { .. } => self.lock().nvme.handle(host_id, io, data),
            _ if self.lock().scsi.held().has_registrants => {
                Err(Status::RESERVATION_CONFLICT.do_not_retry())
            }
            _ => self.change(|state| state.handle(host_id, io, data)),
        }
    }

    // Changes the hosts' reservations, stores them first if they persist, and notes which hosts
    // have lost their registration.
    fn change<T>(
        &self,
        act: impl FnOnce(&mut Reservations) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.lock().nvme.clone();
        let mut nvme = before.clone();
        let result = act(&mut nvme)?;
        let is_kept = before.persists() || nvme.persists();
        if let Some([file, _]) = self.files.as_ref().filter(|_| is_kept && nvme != before)
            && keep(file, nvme.persists().then(|| nvme.write())).is_err()
        {
            return Err(Status::INTERNAL_ERROR.do_not_retry());
        }
        let mut state = self.lock();
        state.nvme = nvme;
        let next = self.epoch() + 1;
        let gone: Vec<_> = before.hosts().filter(|one| !state.nvme.is_registered(one)).collect();
        for host_id in gone {
            state.ceased.retain(|(one, _)| *one != host_id);
            state.ceased.push_back((host_id, next));
        }
        while state.ceased.len() > CEASED_MAX {
            state.ceased.pop_front();
        }
        self.settle(&mut state);
        Ok(result)
    }

    /// Whether a host has lost its registration since an epoch, even if it has a new one: its
    /// writes from before are refused.
    pub(super) fn has_ceased(&self, host_id: &[u8; 16], since: u64) -> bool {
        self.epoch() != since
            && self.lock().ceased.iter().any(|(one, epoch)| one == host_id && *epoch > since)
    }

    /// Attaches an initiator's nexus; the first one makes the logical unit from `data`.
    pub(super) fn attach(&self, nexus: Nexus, way: Way, data: impl FnOnce() -> UnitData) {
        let mut state = self.lock();
        if let Scsi::Kept(kept) = &mut state.scsi {
            let unit = LogicalUnit::new(data(), std::mem::take(kept));
            state.scsi = Scsi::Unit(Box::new(unit));
        }
        if let Scsi::Unit(unit) = &mut state.scsi {
            unit.attach(nexus, way);
        }
        self.settle(&mut state);
    }

    /// Runs `act` on the logical unit; `None` if no initiator has ever come.
    pub(super) fn with_unit<T>(&self, act: impl FnOnce(&mut LogicalUnit) -> T) -> Option<T> {
        let mut state = self.lock();
        let Scsi::Unit(unit) = &mut state.scsi else { return None };
        let result = act(unit);
        self.settle(&mut state);
        Some(result)
    }

    /// Begins a command of an initiator. Returns its first step, and whether sense data has
    /// descriptor format.
    pub(super) fn begin(
        &self,
        nexus: Nexus,
        cdb: &[u8; 16],
        sent_bytes: u32,
        port: UnitPort<'_>,
    ) -> (Step, bool) {
        let begun = self.with_unit(|unit| {
            let step = unit.begin(nexus, cdb, sent_bytes, port);
            (step, unit.has_descriptors())
        });
        begun.unwrap_or_else(|| (scsi::absent(cdb), false))
    }

    /// Continues a command of an initiator with its parameter list. Stores changed reservations,
    /// and restores the old ones if that fails.
    pub(super) fn parameters(&self, nexus: Nexus, command: &Command, data: &[u8]) -> Step {
        let _alone = self
            .keeps_command(command)
            .then(|| self.changing.lock().unwrap_or_else(PoisonError::into_inner));
        let begun = self.with_unit(|unit| {
            let before = unit.reservations().clone();
            let step = unit.parameters(nexus, command, data);
            let persists = unit.reservations().persists();
            (step, before, unit.unsaved().map(|text| persists.then_some(text)))
        });
        let Some((step, before, unsaved)) = begun else {
            return Step::Answer(Outcome::check(Sense::LOGICAL_UNIT_NOT_SUPPORTED));
        };
        if let (Some(text), Some([_, file])) = (unsaved, &self.files)
            && keep(file, text).is_err()
        {
            self.with_unit(|unit| unit.restore(before));
            return Step::Answer(Outcome::check(Sense::INTERNAL_TARGET_FAILURE));
        }
        step
    }

    /// Whether a reservation bars an initiator from writing, checked again when a write begins.
    pub(super) fn bars_writing(&self, nexus: Nexus) -> bool {
        self.is_held.load(Ordering::Acquire)
            && match &self.lock().scsi {
                Scsi::Unit(unit) => unit.bars_writing(nexus),
                Scsi::Kept(_) => false,
            }
    }

    /// How often the reservations or the logical unit have changed.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The epoch and the unit's data, if nothing bars reads and writes of an initiator; they may
    /// skip the lock as long as the epoch is the same.
    pub(super) fn clearance(&self, nexus: Nexus) -> Option<(u64, UnitData)> {
        let state = self.lock();
        let Scsi::Unit(unit) = &state.scsi else { return None };
        unit.is_clear(nexus).then(|| (self.epoch(), unit.unit_data().clone()))
    }

    // Tells each protocol's side what the other has reserved, and counts the epoch.
    fn settle(&self, state: &mut State) {
        let held = state.scsi.held();
        let nvme = &state.nvme;
        if let Scsi::Unit(unit) = &mut state.scsi {
            unit.set_elsewhere(Elsewhere {
                has_registrants: nvme.has_registrants(),
                bars_reading: !nvme.admits_strangers(Access::Read),
                bars_writing: !nvme.admits_strangers(Access::Write),
            });
        }
        let is_held = !nvme.is_free() || held.bars_writing || held.bars_reading;
        self.is_held.store(is_held, Ordering::Release);
        self.epoch.fetch_add(1, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scsi {
    // What initiators' reservations mean for hosts.
    fn held(&self) -> Elsewhere {
        match self {
            Self::Kept(kept) => kept.held_for_strangers(),
            Self::Unit(unit) => unit.held(),
        }
    }
}

// Reads and parses a file; `None` if there is none.
fn read<T>(path: &Path, parse: fn(&str) -> Option<T>) -> Result<Option<T>, ReservedError> {
    let text = match read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ReservedError::Read { path: path.to_owned(), source }),
    };
    let damaged = || ReservedError::Damaged { path: path.to_owned() };
    parse(&text).ok_or_else(damaged).map(Some)
}

// The first `FILE_BYTES` of a file.
fn read_text(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let mut text = String::new();
    io::Read::read_to_string(&mut io::Read::take(file, FILE_BYTES), &mut text)?;
    Ok(text)
}

// Replaces a file's text, or removes the file if `None`. The rename is atomic: after a power
// failure the old or the new text is whole.
fn keep(path: &Path, text: Option<String>) -> io::Result<()> {
    if let Some(text) = text {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
    } else {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use test_support::Scratch;

    use super::*;

    const A: [u8; 16] = [1; 16];
    const B: [u8; 16] = [2; 16];

    fn keys(current: u64, new: u64) -> Vec<u8> {
        [current, new].iter().flat_map(|key| key.to_le_bytes()).collect()
    }

    fn register(reserved: &Reserved, host: [u8; 16], persistence: u8) -> Result<(), Status> {
        let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence };
        reserved.handle(host, io, &keys(0, 7)).map(|_| ())
    }

    fn acquire(reserved: &Reserved, host: [u8; 16]) -> Result<(), Status> {
        let write_exclusive = 1;
        let io = Io::ReservationAcquire { action: 0, ignores_key: false, kind: write_exclusive };
        reserved.handle(host, io, &keys(7, 0)).map(|_| ())
    }

    #[test]
    fn what_persists_is_there_again() {
        let scratch = Scratch::new("reserved-again");
        let directory = scratch.path();
        let file = directory.join("disk.img.reservations");
        let reserved = Reserved::kept(file.clone()).expect("there is no file");
        register(&reserved, A, 0).expect("it may");
        acquire(&reserved, A).expect("it may");
        assert!(!file.exists(), "nobody asked for it to be kept");
        assert!(!reserved.admits(&B, Access::Write) && reserved.admits(&B, Access::Read));
        register(&reserved, B, 3).expect("it may");
        let again = Reserved::kept(file.clone()).expect("it was written");
        assert!(!again.admits(&B, Access::Write) && again.admits(&A, Access::Write));
        assert!(again.persists());
        again.persist(false).expect("it may");
        assert!(!file.exists() && !again.admits(&B, Access::Write));
        let names: Vec<_> = fs::read_dir(directory).expect("it is there").collect();
        assert!(names.is_empty(), "{names:?}");
    }

    #[test]
    fn nothing_changes_that_cannot_be_kept() {
        let scratch = Scratch::new("reserved-fails");
        let directory = scratch.path();
        let file = directory.join("no such directory").join("kept");
        let reserved = Reserved::kept(file).expect("there is no file");
        let failed = Err(Status::INTERNAL_ERROR.do_not_retry());
        assert_eq!(register(&reserved, A, 3), failed);
        assert_eq!(acquire(&reserved, A), Err(Status::RESERVATION_CONFLICT.do_not_retry()));
        let nowhere = Reserved::default();
        assert_eq!(register(&nowhere, A, 3), Err(Status::INVALID_FIELD.do_not_retry()));
        assert_eq!(nowhere.capabilities() & 1, 0);
    }

    #[test]
    fn a_damaged_file_is_not_taken_for_none() {
        let scratch = Scratch::new("reserved-damaged");
        let directory = scratch.path();
        let file = directory.join("kept");
        fs::write(&file, "reservations 2\ngeneration 1\n").expect("there is room");
        assert!(matches!(Reserved::kept(file), Err(ReservedError::Damaged { .. })));
        let itself = directory.to_owned();
        assert!(matches!(Reserved::kept(itself), Err(ReservedError::Read { .. })));
    }
}
