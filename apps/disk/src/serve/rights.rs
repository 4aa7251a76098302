//! Drops rights that a target does not need: root's, files elsewhere, and system calls.
//!
//! ```text
//! files, devices, sockets open ─► Rights::reduce ─► threads ─► Rights::seal ─► ready
//!                                 user, landlock               seccomp
//! ```
//!
//! Invariants:
//! - `reduce` runs while the process has one thread: later threads inherit its rights.
//! - Files that were opened before stay open; files opened later need the rights that are left.
//! - System calls are forbidden last, for all threads, after the target has started its threads
//!   and rings.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use sys::sandbox::{Reach, forbid_calls, keep_to};
use sys::user::{User, may_read, may_write_in};

use super::ServeError;
use super::plan::{NamespacePlan, Plan};
use super::sandbox::Sandbox;

/// The rights that a target keeps.
#[derive(Debug)]
pub(super) struct Rights {
    user: Option<User>,
    sandbox: Sandbox,
    /// Files that may still be opened; all if `None`.
    reach: Option<Reach>,
}

/// Paths that stay readable: to learn about media and who uses them, and for backtraces.
const SYSTEM: [&str; 3] = ["/proc", "/sys", launch::SELF];
/// Appended to what a sandbox lacks, unless it is `--sandbox on`.
const WITHOUT: &str = "; it serves without that (--sandbox on refuses to, off says nothing)";
/// RLIMIT_MEMLOCK for sending without copying, which does not bind root.
const PINNED_BYTES: u64 = 64 << 20;

impl Rights {
    /// The rights that a plan asks for.
    ///
    /// # Errors
    /// When there is no such user.
    pub(super) fn of(plan: &Plan) -> Result<Self, ServeError> {
        let user = plan.fixed.user.as_deref().map(User::find).transpose();
        let user = user.map_err(|source| ServeError::Flag(format!("user: {source}")))?;
        Ok(Self { user, sandbox: plan.fixed.sandbox, reach: None })
    }

    /// Becomes the plan's user and restricts files (landlock). Returns lines to print.
    ///
    /// # Errors
    /// When the process cannot become the user, the user cannot write where reservations are
    /// stored, or landlock fails with `--sandbox on`.
    pub(super) fn reduce(
        &mut self,
        plan: &Plan,
        file: Option<&Path>,
    ) -> Result<Vec<String>, ServeError> {
        let mut lines = Vec::new();
        if let Some(user) = &self.user {
            sys::process::allow_pinned_memory(PINNED_BYTES);
            let name = user.name().to_owned();
            user.assume().map_err(|source| ServeError::User { name, source })?;
            check_state(plan, user)?;
            lines.push(format!("it has the rights of user {} from here on", user.name()));
            if let Some(file) = file.filter(|file| !may_read(file)) {
                let (name, file) = (user.name(), file.display());
                lines.push(format!(
                    "user {name} cannot read {file}, so SIGHUP will change nothing; let {name} \
                     read it"
                ));
            }
        }
        if self.sandbox != Sandbox::Off {
            let reach = reach(plan, file);
            match (keep_to(&reach), self.sandbox) {
                (Ok(true), _) => self.reach = Some(reach),
                (Ok(false), Sandbox::On) => return Err(ServeError::NoLandlock),
                (Err(error), Sandbox::On) => return Err(error.into()),
                (Ok(false), _) => lines.push(format!("this kernel has no landlock{WITHOUT}")),
                (Err(error), _) => lines.push(format!("{error}{WITHOUT}")),
            }
        }
        Ok(lines)
    }

    /// Forbids system calls (seccomp), once every thread runs. Returns lines to print.
    ///
    /// # Errors
    /// When this fails with `--sandbox on`.
    pub(super) fn seal(&self) -> Result<Vec<String>, ServeError> {
        if self.sandbox == Sandbox::Off {
            return Ok(Vec::new());
        }
        match forbid_calls() {
            Ok(()) => Ok(Vec::new()),
            Err(error) if self.sandbox == Sandbox::On => Err(error.into()),
            Err(error) => Ok(vec![format!("{error}{WITHOUT}")]),
        }
    }

    /// The user that the target has become, if it has.
    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_ref().map(User::name)
    }

    /// What to do about an error when rights are missing to open one of `files`; else "".
    pub(super) fn remedy(&self, error: &ServeError, files: &[PathBuf]) -> String {
        if !error.is_denied() {
            return String::new();
        }
        if let Some(reach) = &self.reach
            && let Some(file) = files.iter().find(|file| !is_in(reach, file))
        {
            let may: Vec<String> =
                reach.written.iter().map(|one| one.display().to_string()).collect();
            let (file, may) = (file.display(), may.join(", "));
            return format!(
                "; {file} is outside the sandbox, which holds {may}: move it there, or start \
                 afar serve again, with it or with --sandbox off"
            );
        }
        self.user.as_ref().map_or_else(String::new, |user| {
            format!("; it is opened with the rights of user {0}: let {0} use it", user.name())
        })
    }
}

// Checks that the user can write where reservations and identities are stored.
fn check_state(plan: &Plan, user: &User) -> Result<(), ServeError> {
    let directories: Vec<PathBuf> = match &plan.fixed.state {
        Some(state) => vec![state.clone()],
        None => plan.namespaces().filter_map(beside).collect(),
    };
    match directories.into_iter().find(|one| !may_write_in(one)) {
        None => Ok(()),
        Some(directory) => Err(ServeError::Unwritable { user: user.name().to_owned(), directory }),
    }
}

// The directory that stores the reservations of a file by default; `None` for other disks.
fn beside(namespace: &NamespacePlan) -> Option<PathBuf> {
    let file = namespace.uri.file().filter(|file| file.is_file())?;
    Some(parent(file))
}

// The directory of a file.
fn parent(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new(".")).to_owned()
}

// What the target may open later: its block devices themselves; for files their directories, where
// SIGHUP may find new ones.
fn reach(plan: &Plan, file: Option<&Path>) -> Reach {
    let mut written: Vec<PathBuf> = plan.fixed.state.iter().cloned().collect();
    for file in plan.files() {
        let found = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let is_device = fs::metadata(&found).is_ok_and(|one| one.file_type().is_block_device());
        match is_device {
            true => written.push(found),
            false => written.extend([parent(file), parent(&found)]),
        }
    }
    let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    if let Some(file) = file {
        let found = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        read.extend([parent(file), parent(&found)]);
    }
    Reach { written: distinct(written), read: distinct(read) }
}

// Canonical paths, sorted and without duplicates.
fn distinct(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        paths.into_iter().map(|one| fs::canonicalize(&one).unwrap_or(one)).collect();
    paths.sort();
    paths.dedup();
    paths
}

// Whether the sandbox lets a file, which need not exist, be opened for writing.
fn is_in(reach: &Reach, file: &Path) -> bool {
    let found = fs::canonicalize(file).or_else(|_| {
        let name = file.file_name().unwrap_or_default();
        fs::canonicalize(parent(file)).map(|directory| directory.join(name))
    });
    let found = found.unwrap_or_else(|_| file.to_owned());
    reach.written.iter().any(|one| found.starts_with(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &[&str]) -> Plan {
        let flags = crate::serve::flags::of_words(words);
        Plan::of_flags(&flags).expect("it can be")
    }

    #[test]
    fn what_is_served_is_within_reach_and_what_is_beside_it() {
        let directory = std::env::temp_dir().join(format!("afar-reach-{}", std::process::id()));
        let [data, traces] = ["data", "traces"].map(|name| directory.join(name));
        for one in [&data, &traces] {
            fs::create_dir_all(one).expect("there is room");
        }
        let [disk, trace] = [data.join("disk"), traces.join("trace")];
        fs::write(&disk, "x").expect("there is room");
        let away = data.join("away");
        std::os::unix::fs::symlink("/etc/passwd", &away).expect("there is room");
        let uri = format!("d=trace:{}:file:{}", trace.display(), disk.display());
        let reach = reach(&plan(&[&uri, "m=memory:1MiB"]), Some(Path::new("/etc/afar/x.toml")));
        let own = [&data, &traces].map(|one| fs::canonicalize(one).expect("it is there"));
        assert_eq!(reach.written, own);
        assert!(reach.read.contains(&PathBuf::from("/etc/afar")), "{reach:?}");
        for one in [&disk, &trace, &data.join("new"), &data.join("disk.reservations")] {
            assert!(is_in(&reach, one), "{}", one.display());
        }
        assert!(!is_in(&reach, &away), "wherever a link is");
        for one in ["/etc/passwd", "/etc/afar/x.toml", "/nowhere/at/all", "relative"] {
            assert!(!is_in(&reach, Path::new(one)), "{one}");
        }
        fs::remove_dir_all(directory).expect("it is there");
    }
}
