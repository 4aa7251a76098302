//! Finds and removes what killed runs and attached disks have left behind.
//!
//! Memory, descriptors and BPF programs of the arena engine belong to processes and end with them.
//! What can stay is a process: a descendant of the program that was not killed with it, whose
//! system calls nobody answers any more; or an afar whose program is gone. Names in file systems
//! are looked for all the same.
//!
//! A killed run leaves the name of the socket by which `afar ctl` reached it; nobody listens there.
//!
//! An attached disk is a mount, which outlives the process that serves it; every access then fails.
//!
//! The swap engine changes the host. Its keeper, a separate process, undoes the changes; if the
//! keeper was killed too, its journal lists them.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use farmem::VARIABLE as SUPERVISOR_VARIABLE;
use results::doctor;
use sys::group::Hierarchy;

const SIGKILL: i32 = 9;
/// How long the process that serves a mount has to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// One thing that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leftover {
    what: What,
    /// Whether `remove` has removed it.
    pub(super) removed: bool,
    /// Why it could not be removed.
    error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// A process that ran under a supervisor that is gone.
    Orphan { pid: u32, name: String },
    /// A supervisor without a program.
    Supervisor { pid: u32 },
    /// A pinned BPF object, or a control group.
    Path { path: PathBuf },
    /// The mount of an attached disk that no process serves any more.
    Mount { path: PathBuf },
    /// The socket of a run that was killed.
    Socket { path: PathBuf },
    /// Changes to the host by a run under the swap engine.
    Swap { keeper: u32, changes: String },
}

/// Finds all leftovers, kind by kind.
pub(super) fn find() -> Vec<Leftover> {
    let mut found: Vec<What> = swap::leftovers()
        .iter()
        .map(|left| What::Swap { keeper: left.keeper(), changes: left.describe() })
        .collect();
    for pid in processes() {
        if is_orphan(pid) {
            let name = read(pid, "comm").trim_end().to_owned();
            found.push(What::Orphan { pid, name });
        } else if is_idle_supervisor(pid) {
            found.push(What::Supervisor { pid });
        }
    }
    let groups = Hierarchy::find().map(|hierarchy| hierarchy.root);
    for directory in groups.into_iter().chain(["/sys/fs/bpf".into()]) {
        let abandoned = named_afar(&directory).filter(|path| !swap::is_known(path));
        found.extend(abandoned.map(|path| What::Path { path }));
    }
    let mounts = sys::mount::mounts_of(disk::ATTACHED_KIND).filter(|path| is_abandoned(path));
    found.extend(mounts.map(|path| What::Mount { path }));
    let sockets = memory::sockets().into_iter().filter(memory::Found::is_abandoned);
    found.extend(sockets.map(|socket| What::Socket { path: socket.path }));
    let leftover = |what| Leftover { what, removed: false, error: None };
    found.into_iter().map(leftover).collect()
}

impl Leftover {
    /// Removes the leftover; stores whether that worked.
    pub(super) fn remove(&mut self) {
        let result = match &self.what {
            // Checked again: the process id may have been reused meanwhile.
            What::Orphan { pid, .. } if !is_orphan(*pid) => Ok(()),
            What::Supervisor { pid } if !is_idle_supervisor(*pid) => Ok(()),
            What::Orphan { pid, .. } | What::Supervisor { pid } => {
                sys::process::kill(*pid, SIGKILL).map_err(|error| error.to_string())
            }
            // A control group that was removed with the other changes of its run.
            What::Path { path } if !path.exists() => Ok(()),
            What::Socket { path } => remove_socket(path).map_err(|error| error.to_string()),
            What::Mount { path } if !is_abandoned(path) => Ok(()),
            What::Mount { path } => sys::mount::detach(path).map_err(|error| error.to_string()),
            What::Path { path } => remove_path(path).map_err(|error| error.to_string()),
            What::Swap { keeper, .. } => undo(*keeper),
        };
        self.removed = result.is_ok();
        self.error = result.err();
    }

    /// The leftover, for the record.
    pub(super) fn told(&self) -> doctor::Leftover {
        let text = |path: &Path| path.display().to_string();
        let what = match &self.what {
            What::Orphan { pid, name } => doctor::What::Orphan { pid: *pid, name: name.clone() },
            What::Supervisor { pid } => doctor::What::Supervisor { pid: *pid },
            What::Path { path } => doctor::What::Path { path: text(path) },
            What::Mount { path } => doctor::What::Mount { path: text(path) },
            What::Socket { path } => doctor::What::Socket { path: text(path) },
            What::Swap { keeper, changes } => {
                doctor::What::Swap { keeper: *keeper, changes: changes.clone() }
            }
        };
        doctor::Leftover { what, removed: self.removed, error: self.error.clone() }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Orphan { pid, name } => {
                write!(f, "process {pid} ({name}), whose afar is gone")?;
            }
            What::Supervisor { pid } => write!(f, "process {pid} (afar), whose program is gone")?,
            What::Path { path } => write!(f, "{}", path.display())?,
            What::Socket { path } => {
                write!(f, "{}, the socket of a killed run", path.display())?;
            }
            What::Mount { path } => {
                write!(f, "a disk at {}, whose afar is gone", path.display())?;
            }
            What::Swap { keeper, changes } => {
                write!(f, "changes to this host by process {keeper} (afar): {changes}")?;
            }
        }
        match &self.error {
            Some(error) => write!(f, ": not removed: {error}"),
            None if self.removed => f.write_str(": removed"),
            None => Ok(()),
        }
    }
}

/// Whether no process serves a mount. A process that does not answer in time counts as serving.
fn is_abandoned(path: &Path) -> bool {
    let (sender, answer) = channel();
    let path = path.to_owned();
    // The thread may hang in a system call until this process ends.
    std::thread::spawn(move || sender.send(sys::mount::is_abandoned(&path)));
    answer.recv_timeout(PATIENCE).unwrap_or(false)
}

/// Undoes the changes of the run with this keeper.
fn undo(keeper: u32) -> Result<(), String> {
    let leftovers = swap::leftovers();
    let left = leftovers.iter().filter(|left| left.keeper() == keeper);
    let failed: Vec<String> = left.flat_map(swap::Leftover::undo).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

// All process ids, ascending.
fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut pids: Vec<u32> = entries.filter_map(Result::ok).filter_map(number).collect();
    pids.sort_unstable();
    pids
}

// The text of a file in /proc/PID; "" if it cannot be read.
fn read(pid: u32, file: &str) -> String {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether the process was started under a supervisor that no longer exists.
fn is_orphan(pid: u32) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables.find_map(|variable| {
        let value = variable.strip_prefix(SUPERVISOR_VARIABLE.as_bytes())?;
        std::str::from_utf8(value.strip_prefix(b"=")?).ok()
    });
    // Anybody can set the variable; the seccomp filter shows that a supervisor did.
    value.is_some_and(|life| !sys::process::Life::is_lived(life)) && is_filtered(pid)
}

/// Whether the process runs under a seccomp filter (proc_pid_status(5)).
fn is_filtered(pid: u32) -> bool {
    let status = read(pid, "status");
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == "2")
}

/// Whether the process is an `afar run` that was orphaned, has no program and does not answer.
fn is_idle_supervisor(pid: u32) -> bool {
    if pid == std::process::id() || !is_afar_run(pid) || parent(pid) != Some(1) {
        return false;
    }
    has_no_children(pid) && !memory::answers(pid)
}

// Whether the process's command line is `afar run ...`.
fn is_afar_run(pid: u32) -> bool {
    let command = read(pid, "cmdline");
    let mut words = command.split('\0');
    let program = words.next().map(Path::new).and_then(Path::file_name);
    program == Some(OsStr::new("afar")) && words.next() == Some("run")
}

// The process id of the parent; `None` if the process has ended.
fn parent(pid: u32) -> Option<u32> {
    let status = read(pid, "status");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

fn has_no_children(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let children = |task: fs::DirEntry| fs::read_to_string(task.path().join("children"));
    let mut tasks = tasks.into_iter().flatten().filter_map(Result::ok);
    tasks.all(|task| children(task).is_ok_and(|children| children.trim().is_empty()))
}

/// Entries of a directory whose names begin with `afar`, in order.
fn named_afar(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_bytes().starts_with(b"afar"))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.into_iter()
}

/// Removes a socket, and its directory if that is empty then.
fn remove_socket(path: &Path) -> std::io::Result<()> {
    fs::remove_file(path)?;
    let _in_use = path.parent().map(fs::remove_dir);
    Ok(())
}

/// Removes a file or an empty directory. A control group with processes cannot be removed.
fn remove_path(path: &Path) -> std::io::Result<()> {
    if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_no_leftover() {
        let pid = std::process::id();
        assert!(!is_orphan(pid));
        assert!(!is_idle_supervisor(pid));
        assert!(processes().contains(&pid));
    }

    #[test]
    fn named_afar_takes_no_other() {
        let directory = std::env::temp_dir().join(format!("leftovers-{}", std::process::id()));
        for name in ["afar-2", "afar-1", "other"] {
            fs::create_dir_all(directory.join(name)).unwrap();
        }
        let found: Vec<PathBuf> = named_afar(&directory).collect();
        assert_eq!(found, [directory.join("afar-1"), directory.join("afar-2")]);
        fs::remove_dir_all(&directory).unwrap();
    }
}
