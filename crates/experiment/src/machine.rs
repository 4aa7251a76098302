//! The machine that measures: its class, and the lock by which one run at a time is measured on it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

use measure::{Bytes, Host};
use sha2::{Digest as _, Sha256};

use crate::journal::digits;

/// The variable that names the directory of the lock: containers of one machine that share a
/// directory see one another.
pub const VARIABLE: &str = "AFAR_LOCK_DIR";
const DIRECTORIES: [&str; 2] = ["/run/lock", "/tmp"];
const NAME: &str = "afar-measures";
/// Every user may take the lock.
const MODE: u32 = 0o666;
/// `O_NOFOLLOW`: not through a link of another user's (Linux, x86-64 and AArch64).
const NO_FOLLOW: i32 = 0o400_000;
const DIGITS: usize = 8;

/// The class of a machine: a description behind a hash of all that is known of it. Runs on machines
/// of different classes are not compared.
#[must_use]
pub fn class(host: &Host) -> String {
    let Host { kernel, cpu_model, cpu_count, memory_bytes, thp, clocksource, .. } = host;
    let Host { virtualised, governor, mitigations, .. } = host;
    // Equal machines differ in how much memory their firmware reserves.
    let memory = Bytes::new(memory_bytes.next_multiple_of(1 << 30));
    let all = format!(
        "{cpu_model}\n{cpu_count}\n{memory}\n{kernel}\n{thp}\n{clocksource}\n{virtualised:?}\n\
         {governor:?}\n{mitigations:?}"
    );
    let mark = digits(&Sha256::digest(all), DIGITS);
    format!("{mark} {cpu_model} x{cpu_count}, {memory}, Linux {kernel}")
}

/// Why nothing may be measured now.
#[derive(Debug, thiserror::Error)]
pub enum Busy {
    /// Another process measures.
    #[error(
        "{holder} measures on this machine, and two at once would measure each other; wait until \
         it ends, or stop it ({})",
        path.display()
    )]
    Held {
        /// The process and its command.
        holder: String,
        /// The lock.
        path: PathBuf,
    },
    /// The lock file cannot be opened or locked.
    #[error(
        "{}: {source}; name a directory that may be written to with {VARIABLE}",
        path.display()
    )]
    Lock {
        /// The lock.
        path: PathBuf,
        /// Why the kernel refused.
        source: std::io::Error,
    },
}

/// The lock on this machine's measurements. The kernel releases it when the process ends, however
/// it ends.
#[derive(Debug)]
pub struct Measuring {
    _file: File,
}

impl Measuring {
    /// Takes the lock, and names this command in the lock file.
    ///
    /// # Errors
    /// If another process holds the lock, or it cannot be taken.
    pub fn begin() -> Result<Self, Busy> {
        let named = std::env::var_os(VARIABLE).map(PathBuf::from);
        let standard = DIRECTORIES.iter().map(PathBuf::from).find(|path| path.is_dir());
        let path = named.or(standard).unwrap_or_else(std::env::temp_dir).join(NAME);
        let command: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        Self::at(path, &command.join(" "))
    }

    /// Takes the lock at `path` for `command`.
    fn at(path: PathBuf, command: &str) -> Result<Self, Busy> {
        let mut file = match open(&path) {
            Ok(file) => file,
            Err(source) => return Err(Busy::Lock { path, source }),
        };
        match file.try_lock() {
            Ok(()) => {
                let said = format!("process {} ({command})\n", std::process::id());
                let _untold = file.set_len(0).and_then(|()| file.write_all(said.as_bytes()));
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut said = String::new();
                let _untold = file.rewind().and_then(|()| file.read_to_string(&mut said));
                let said = said.lines().next().unwrap_or("another process").to_owned();
                Err(Busy::Held { holder: said, path })
            }
            Err(TryLockError::Error(source)) => Err(Busy::Lock { path, source }),
        }
    }
}

// Opens the lock file, or creates it. First without creating: the kernel refuses to create a file
// that exists in a directory that every user may write to (fs.protected_regular).
fn open(path: &std::path::Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(NO_FOLLOW);
    match options.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            match options.create_new(true).mode(MODE).open(path) {
                Ok(file) => {
                    // Independently of the process' umask.
                    file.set_permissions(std::fs::Permissions::from_mode(MODE))?;
                    Ok(file)
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    OpenOptions::new().read(true).write(true).custom_flags(NO_FOLLOW).open(path)
                }
                other => other,
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_refused_and_told_of_the_first() {
        let path = std::env::temp_dir().join(format!("afar-lock-{}", std::process::id()));
        let first = Measuring::at(path.clone(), "afar sweep x.toml").expect("nobody measures");
        let busy = Measuring::at(path.clone(), "afar sweep y.toml").expect_err("somebody does");
        let said = busy.to_string();
        let holder = format!("process {} (afar sweep x.toml) measures", std::process::id());
        assert!(said.starts_with(&holder), "{said}");
        drop(first);
        Measuring::at(path.clone(), "afar sweep y.toml").expect("nobody measures");
        std::fs::remove_file(path).expect("it is ours");
    }

    #[test]
    fn machines_are_of_one_class_if_nothing_that_is_known_differs() {
        let host = Host {
            kernel: "6.18.5".to_owned(),
            cpu_model: "A".to_owned(),
            cpu_count: 2,
            memory_bytes: 8_000_000_000,
            ..Host::default()
        };
        let one = class(&host);
        assert!(one.ends_with(" A x2, 8.0 GiB, Linux 6.18.5"), "{one}");
        let twin = Host { memory_bytes: 8_000_100_000, ..host.clone() };
        assert_eq!(one, class(&twin));
        let others = [
            Host { kernel: "6.18.6".to_owned(), ..host.clone() },
            Host { governor: Some("powersave".to_owned()), ..host.clone() },
            Host { cpu_count: 4, ..host },
        ];
        assert!(others.iter().all(|other| class(other) != one));
    }
}
