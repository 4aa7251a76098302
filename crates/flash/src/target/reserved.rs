//! Which hosts may do what with a namespace, as all shards see it, and kept in a file.
//!
//! Invariants:
//! - A command that changes what is kept ends when that is on the medium, or fails and changes
//!   nothing.
//! - While nobody holds the namespace, a command takes no lock to find that out.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use proto::nvme::{Access, Io, Reservations, Status};

/// See the module's description.
#[derive(Debug, Default)]
pub struct Reserved {
    state: Mutex<Reservations>,
    is_held: AtomicBool,
    /// Where they are kept, if they can be.
    file: Option<PathBuf>,
}

/// A file that should say who has reserved a namespace and does not.
#[derive(Debug, thiserror::Error)]
pub enum ReservedError {
    /// It cannot be read.
    #[error("read the reservations in {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It says something else.
    #[error("{}: damaged reservations; remove it to give up what it kept", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

/// More than all registrants take.
const FILE_BYTES: u64 = 64 << 10;

impl Reserved {
    /// What a file says that [`Reserved`] has written; nothing is reserved where there is none.
    ///
    /// # Errors
    /// When there is one that cannot be read or says something else.
    pub fn kept(file: PathBuf) -> Result<Self, ReservedError> {
        let state = match read(&file) {
            Ok(text) => match Reservations::read(&text) {
                Some(state) => state,
                None => return Err(ReservedError::Damaged { path: file }),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Reservations::new(true),
            Err(source) => return Err(ReservedError::Read { path: file, source }),
        };
        let is_held = AtomicBool::new(!state.is_free());
        Ok(Self { state: Mutex::new(state), is_held, file: Some(file) })
    }

    /// RESCAP.
    pub(super) const fn capabilities(&self) -> u8 {
        Reservations::capabilities(self.file.is_some())
    }

    /// Whether a host may do this.
    pub(super) fn admits(&self, host_id: &[u8; 16], access: Access) -> bool {
        !self.is_held.load(Ordering::Acquire) || self.lock().admits(host_id, access)
    }

    /// Whether they are kept.
    pub(super) fn persists(&self) -> bool {
        self.lock().persists()
    }

    /// Keeps them from now on, or not.
    pub(super) fn persist(&self, persists: bool) -> Result<(), Status> {
        self.change(|state| state.persist(persists))
    }

    /// Does a reservation command of a host; Report's data.
    pub(super) fn handle(
        &self,
        host_id: [u8; 16],
        io: Io,
        data: &[u8],
    ) -> Result<Option<Vec<u8>>, Status> {
        match io {
            // Nothing is kept, so nothing is lost if nothing changes.
            Io::ReservationReport { .. } => self.lock().handle(host_id, io, data),
            _ => self.change(|state| state.handle(host_id, io, data)),
        }
    }

    fn change<T>(
        &self,
        act: impl FnOnce(&mut Reservations) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let mut state = self.lock();
        let before = state.clone();
        let result = act(&mut state)?;
        let is_kept = before.persists() || state.persists();
        if let Some(file) = self.file.as_deref().filter(|_| is_kept && *state != before)
            && keep(file, &state).is_err()
        {
            *state = before;
            return Err(Status::INTERNAL_ERROR.do_not_retry());
        }
        self.is_held.store(!state.is_free(), Ordering::Release);
        Ok(result)
    }

    fn lock(&self) -> MutexGuard<'_, Reservations> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let mut text = String::new();
    io::Read::read_to_string(&mut io::Read::take(file, FILE_BYTES), &mut text)?;
    Ok(text)
}

// All of the new or all of the old is there whenever the power fails.
fn keep(path: &Path, state: &Reservations) -> io::Result<()> {
    if state.persists() {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let mut file = File::create(&beside)?;
        file.write_all(state.write().as_bytes())?;
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
    use proto::nvme::ReservationKind;

    use super::*;

    const A: [u8; 16] = [1; 16];
    const B: [u8; 16] = [2; 16];

    /// A directory that goes with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("afar-reserved-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).expect("it is not there");
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("it is there");
        }
    }

    fn keys(current: u64, new: u64) -> Vec<u8> {
        [current, new].iter().flat_map(|key| key.to_le_bytes()).collect()
    }

    fn register(reserved: &Reserved, host: [u8; 16], persistence: u8) -> Result<(), Status> {
        let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence };
        reserved.handle(host, io, &keys(0, 7)).map(|_| ())
    }

    fn acquire(reserved: &Reserved, host: [u8; 16]) -> Result<(), Status> {
        let kind = ReservationKind::WriteExclusive.number();
        let io = Io::ReservationAcquire { action: 0, ignores_key: false, kind };
        reserved.handle(host, io, &keys(7, 0)).map(|_| ())
    }

    #[test]
    fn what_persists_is_there_again() {
        let Scratch(directory) = &Scratch::new("again");
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
        let Scratch(directory) = &Scratch::new("fails");
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
        let Scratch(directory) = &Scratch::new("damaged");
        let file = directory.join("kept");
        fs::write(&file, "reservations 1\ngeneration 1\n").expect("there is room");
        assert!(matches!(Reserved::kept(file), Err(ReservedError::Damaged { .. })));
        let itself = directory.clone();
        assert!(matches!(Reserved::kept(itself), Err(ReservedError::Read { .. })));
    }
}
