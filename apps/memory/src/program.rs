//! The program to run: where it is, and whether its memory can be managed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use console::{Class, Classed};
use measure::EngineKind;
use rustix::fs::Access;

/// The longest chain of scripts whose interpreter is a script that the kernel follows
/// (exec_binprm).
const SCRIPTS_MAX: usize = 5;
/// Bytes of a script that the kernel reads (BINPRM_BUF_SIZE); an ELF header is shorter.
const HEAD_BYTES: u64 = 256;
/// The search path for commands if PATH is not set.
const PATH_DEFAULT: &str = "/bin:/usr/bin";

// ELF-64 object file format: the header.
const ELF_MAGIC: &[u8] = b"\x7fELF";
const ELF_CLASS_64_LITTLE: [u8; 2] = [2, 1];
const ELF_HEADER_BYTES: usize = 64;
const EM_X86_64: u16 = 62;

/// Why a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("{0}: not found; check the name, or give its path")]
    NotFound(String),
    #[error("{}: cannot be executed: {source}; {}", path.display(), unusable(source))]
    NotExecutable { path: PathBuf, source: io::Error },
    #[error(
        "{}: it is not for a 64-bit x86 processor, the only kind whose programs --engine arena \
         manages; use one that was built for it, or run it with --engine swap",
        path.display()
    )]
    Foreign { path: PathBuf },
}

// The remedy for a file that cannot be executed.
fn unusable(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::PermissionDenied => "if it is a program, chmod +x makes it one that can be",
        io::ErrorKind::IsADirectory => "give a program and its arguments after --",
        _ => "check the path and its permissions",
    }
}

impl Classed for ProgramError {
    fn class(&self) -> Class {
        match self {
            Self::NotFound(_) => Class::NotFound,
            Self::NotExecutable { .. } => Class::NotExecutable,
            Self::Foreign { .. } => Class::Usage,
        }
    }
}

/// Finds the program `name` as a shell does and checks that its memory can be managed; for a
/// script, that of its interpreter. The swap engine manages any program.
///
/// # Errors
/// When there is no such program, it may not be executed, or its memory cannot be managed.
pub(crate) fn check(name: &OsStr, engine: EngineKind) -> Result<(), ProgramError> {
    let mut path = find(name)?;
    for _ in 0..SCRIPTS_MAX {
        match check_file(&path) {
            Ok(None) => return Ok(()),
            Ok(Some(interpreter)) => path = interpreter,
            Err(Refusal::Unusable(source)) => {
                return Err(ProgramError::NotExecutable { path, source });
            }
            Err(_) if engine == EngineKind::Swap => return Ok(()),
            Err(Refusal::Foreign) => return Err(ProgramError::Foreign { path }),
        }
    }
    // The kernel gives up here too, and says so.
    Ok(())
}

enum Refusal {
    Unusable(io::Error),
    Foreign,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error)
    }
}

/// Finds the program `name` as a shell does.
///
/// # Errors
/// When there is no such program.
pub(crate) fn find(name: &OsStr) -> Result<PathBuf, ProgramError> {
    let not_found = || ProgramError::NotFound(name.to_string_lossy().into_owned());
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        let exists = path.try_exists().unwrap_or(true);
        return exists.then_some(path).ok_or_else(not_found);
    }
    let directories = std::env::var_os("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    let candidates: Vec<PathBuf> = std::env::split_paths(&directories)
        .map(|directory| directory.join(name))
        .filter(|path| path.is_file())
        .collect();
    // The first that may be executed, else the first at all, to say why not.
    let usable = candidates.iter().find(|path| may_execute(path).is_ok());
    let found = usable.or_else(|| candidates.first()).cloned();
    found.filter(|_| !name.is_empty()).ok_or_else(not_found)
}

fn may_execute(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    Ok(rustix::fs::access(path, Access::EXEC_OK)?)
}

/// Checks one file. Returns the interpreter if it is a script, else `None`.
fn check_file(path: &Path) -> Result<Option<PathBuf>, Refusal> {
    may_execute(path)?;
    let file = match File::open(path) {
        Ok(file) => file,
        // Executable but not readable: the kernel can run what we cannot judge.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut head = Vec::new();
    (&file).take(HEAD_BYTES).read_to_end(&mut head)?;
    if let Some(interpreter) = interpreter(&head) {
        // The kernel does not honour a script's own setuid bit.
        return Ok(Some(interpreter));
    }
    if head.starts_with(ELF_MAGIC) {
        check_elf(&head)?;
    }
    // Any other file is a shell script without a first line, or not executable after all.
    Ok(None)
}

/// The interpreter in the first line of a script; `None` if it names none.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let name = line.trim_ascii().split(|byte| b" \t".contains(byte)).next()?;
    (!name.is_empty()).then(|| PathBuf::from(OsString::from_vec(name.to_owned())))
}

/// Checks that the ELF file that begins with `head` is for this processor.
fn check_elf(head: &[u8]) -> Result<(), Refusal> {
    let native = head.len() >= ELF_HEADER_BYTES
        && head[4..6] == ELF_CLASS_64_LITTLE
        && u16::from_le_bytes([head[18], head[19]]) == EM_X86_64;
    if native { Ok(()) } else { Err(Refusal::Foreign) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf() -> Vec<u8> {
        let mut file = vec![0_u8; ELF_HEADER_BYTES];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = 62;
        file
    }

    #[test]
    fn elf_of_other_machines_is_foreign() {
        assert!(check_elf(&elf()).is_ok());
        let mut file = elf();
        file[18] = 183;
        assert!(matches!(check_elf(&file), Err(Refusal::Foreign)));
        let mut file = elf();
        file[4] = 1;
        assert!(matches!(check_elf(&file), Err(Refusal::Foreign)));
        assert!(matches!(check_elf(b"\x7fELF"), Err(Refusal::Foreign)));
    }

    #[test]
    fn interpreter_of_scripts() {
        let cases: [(&[u8], Option<&str>); 5] = [
            (b"#!/bin/sh\nexit", Some("/bin/sh")),
            (b"#! /usr/bin/env python3\n", Some("/usr/bin/env")),
            (b"#!/bin/sh", Some("/bin/sh")),
            (b"#!\n", None),
            (b"exit 3\n", None),
        ];
        for (head, wanted) in cases {
            assert_eq!(interpreter(head), wanted.map(PathBuf::from));
        }
    }

    #[test]
    fn find_like_a_shell() {
        assert!(find("sh".as_ref()).is_ok());
        assert!(find("/bin/sh".as_ref()).is_ok());
        for name in ["no-such-command-anywhere", "/no/such/file", ""] {
            assert!(matches!(find(name.as_ref()), Err(ProgramError::NotFound(_))), "{name}");
        }
    }
}
