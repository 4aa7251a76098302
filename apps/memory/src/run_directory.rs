//! The directory of runs, with a socket for each run.
//!
//! A path in the file system is the same in every network namespace, and its permissions say who
//! may connect. Root's runs are in `/run/afar`; those of another user in `$XDG_RUNTIME_DIR/afar`,
//! or without such a directory in `/tmp/afar-UID`. A run removes its socket at its end; that of a
//! run that was killed stays without a listener, and `afar doctor` finds it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

const OF_ROOT: &str = "/run/afar";
const PREFIX: &str = "run-";
/// Other users may see who runs what, as in /proc; only the owner may connect.
const DIRECTORY_MODE: u32 = 0o755;
const SOCKET_MODE: u32 = 0o600;
/// Attempts to bind: another run may remove the empty directory between its creation and its first
/// socket.
const TRIES: u32 = 5;
/// Prefix of a socket's name until it has a listener; then it is renamed to be found.
const UNFINISHED: &str = "new-";
/// An unfinished socket that is older was left by a run that was killed.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(2);

/// A run's end of its socket; dropping it removes the path.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Binds a socket in the directory of this process's user.
    ///
    /// # Errors
    /// When the directory cannot be created, or is another user's.
    pub(crate) fn bind() -> io::Result<Self> {
        let directory = of_user(sys::process::effective_user(), &runtime_directory());
        Self::bind_in(&directory)
    }

    // As `bind`, in `directory`.
    fn bind_in(directory: &Path) -> io::Result<Self> {
        // Process ids are unique in their namespace only.
        let now = sys::clock::unix_ns() & u64::from(u32::MAX);
        let name = format!("{}-{now:x}", std::process::id());
        let unfinished = directory.join(format!("{UNFINISHED}{name}"));
        let mut tries = 1..TRIES;
        loop {
            prepare(directory)?;
            match UnixListener::bind(&unfinished) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries.next().is_some() => {
                }
                bound => {
                    let mut listener = Self { socket: bound?, path: unfinished };
                    fs::set_permissions(&listener.path, Permissions::from_mode(SOCKET_MODE))?;
                    let path = directory.join(format!("{PREFIX}{name}"));
                    fs::rename(&listener.path, &path)?;
                    listener.path = path;
                    return Ok(listener);
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.path);
        // The kernel refuses while other sockets are in it.
        let _in_use = self.path.parent().map(fs::remove_dir);
    }
}

/// A socket of a run, as its name describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The run's process id in its own namespace.
    pub pid: u32,
    /// The path of the socket.
    pub path: PathBuf,
    /// Whether the socket has or had a listener.
    pub(crate) finished: bool,
}

impl Found {
    /// Whether the socket has no listener any more.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        (self.finished || self.age() >= Some(UNFINISHED_AGE_MAX))
            && UnixStream::connect(&self.path).is_err_and(refused)
    }

    // The age of the socket; `None` if it is gone.
    fn age(&self) -> Option<Duration> {
        fs::symlink_metadata(&self.path).ok()?.modified().ok()?.elapsed().ok()
    }
}

/// The sockets of all runs that this process may see, in order of their paths: those of every user
/// for root; its own and root's for others.
#[must_use]
pub fn sockets() -> Vec<Found> {
    let user = sys::process::effective_user();
    let mut directories = vec![PathBuf::from(OF_ROOT)];
    if user == 0 {
        directories.extend(children("/run/user").map(|path| path.join("afar")));
        directories.extend(
            children("/tmp").filter(|path| is_named_for_a_user(path) && is_directory(path)),
        );
    } else {
        directories.push(of_user(user, &runtime_directory()));
        directories.push(of_user(user, &None));
    }
    directories.sort();
    directories.dedup();
    let mut found: Vec<Found> = directories.iter().flat_map(children).filter_map(named).collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

// The paths in a directory; none if it cannot be read.
fn children(directory: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

// Whether a path is a directory. Does not follow links, which could lead anywhere.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.is_dir())
}

// Whether a path has the form `afar-UID`.
fn is_named_for_a_user(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("afar-").is_some_and(|user| user.parse::<u32>().is_ok())
}

// The socket at a path; `None` if its name is not that of one.
fn named(path: PathBuf) -> Option<Found> {
    let name = path.file_name()?.to_str()?;
    let finished = name.starts_with(PREFIX);
    let rest = name.strip_prefix(PREFIX).or_else(|| name.strip_prefix(UNFINISHED))?;
    let (pid, _since) = rest.split_once('-')?;
    Some(Found { pid: pid.parse().ok()?, path, finished })
}

fn runtime_directory() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
}

// The directory of a user's runs.
fn of_user(user: u32, runtime: &Option<PathBuf>) -> PathBuf {
    match runtime {
        _ if user == 0 => OF_ROOT.into(),
        Some(runtime) if is_own(runtime, user) => runtime.join("afar"),
        _ => format!("/tmp/afar-{user}").into(),
    }
}

/// Creates the directory, or checks that it is this user's: anyone could have created one in /tmp.
fn prepare(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(DIRECTORY_MODE).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    if is_own(directory, sys::process::effective_user()) {
        return Ok(());
    }
    let why = format!("{} is another user's; remove it", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

// Whether a path is a directory of `user`, no link, in which no other user can create files.
fn is_own(directory: &Path, user: u32) -> bool {
    let others_write = 0o022;
    fs::symlink_metadata(directory)
        .is_ok_and(|data| data.is_dir() && data.uid() == user && data.mode() & others_write == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("directory-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_socket_goes_with_its_run_and_the_directory_with_the_last() {
        let directory = scratch("bind");
        let (one, other) =
            (Listener::bind_in(&directory).unwrap(), Listener::bind_in(&directory).unwrap());
        let found = named(one.path.clone()).unwrap();
        assert_eq!(found.pid, std::process::id());
        assert_eq!(fs::metadata(&one.path).unwrap().mode() & 0o777, SOCKET_MODE);
        assert!(UnixStream::connect(&one.path).is_ok() && !found.is_abandoned());
        assert_eq!(
            children(&directory).filter_map(named).filter(|found| found.finished).count(),
            2
        );
        drop(one);
        assert!(!found.path.exists() && other.path.exists());
        drop(other);
        assert!(!directory.exists());
    }

    #[test]
    fn a_socket_that_nobody_listens_to_is_abandoned_at_once_unless_it_may_be_unfinished() {
        let directory = scratch("killed");
        fs::create_dir(&directory).unwrap();
        for (name, is_abandoned) in [("run-12-34", true), ("new-12-34", false)] {
            let path = directory.join(name);
            drop(UnixListener::bind(&path).unwrap());
            assert_eq!(named(path).unwrap().is_abandoned(), is_abandoned, "{name}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not_used() {
        let directory = scratch("open");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
        let error = Listener::bind_in(&directory).unwrap_err();
        assert!(error.to_string().ends_with("is another user's; remove it"), "{error}");
        fs::remove_dir(&directory).unwrap();
        let target = scratch("target");
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &directory).unwrap();
        assert!(Listener::bind_in(&directory).is_err(), "a link");
        fs::remove_file(&directory).unwrap();
        fs::remove_dir(&target).unwrap();
    }

    #[test]
    fn each_user_has_a_directory() {
        let own = scratch("runtime");
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, Permissions::from_mode(0o700)).unwrap();
        let user = fs::metadata(&own).unwrap().uid();
        assert_eq!(of_user(0, &Some(own.clone())), Path::new("/run/afar"));
        assert_eq!(of_user(4711, &None), Path::new("/tmp/afar-4711"));
        assert_eq!(of_user(4711, &Some("/no/such".into())), Path::new("/tmp/afar-4711"));
        if user != 0 {
            assert_eq!(of_user(user, &Some(own.clone())), own.join("afar"));
        }
        fs::remove_dir(&own).unwrap();
    }

    #[test]
    fn names_that_are_none() {
        for name in ["swap-12-34", "run-12", "run-x-1", "run--1"] {
            assert_eq!(named(Path::new("/run/afar").join(name)), None, "{name}");
        }
        assert!(is_named_for_a_user(Path::new("/tmp/afar-65534")));
        assert!(!is_named_for_a_user(Path::new("/tmp/afar-cli-12")));
    }
}
