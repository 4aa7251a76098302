//! A program file ready to be executed between fork and exec, where nothing may be allocated.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Where `execvp(3)` looks without a `PATH`.
const PATH_DEFAULT: &str = "/bin:/usr/bin";
const SHELL: &CStr = c"/bin/sh";

/// The files that a program's name may stand for, its arguments, and its environment.
pub(crate) struct Image {
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    // Room for the arguments of a shell that runs a script: its name, the script, the rest.
    pointers: Vec<*const libc::c_char>,
    environment_pointers: Vec<*const libc::c_char>,
}

// SAFETY: the pointers are those of the strings beside them, which never change.
#[expect(unsafe_code, reason = "pointers to strings of its own")]
unsafe impl Send for Image {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "pointers to strings of its own")]
unsafe impl Sync for Image {}

impl Image {
    /// The program `words[0]`, searched for as `execvp(3)` does, with the caller's environment and
    /// `variable`.
    pub(crate) fn new(words: &[OsString], variable: (&OsStr, &OsStr)) -> io::Result<Self> {
        let name = words.first().ok_or(io::ErrorKind::NotFound)?;
        let mut variables: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, _)| name != variable.0).collect();
        variables.push((variable.0.to_owned(), variable.1.to_owned()));
        let environment: Vec<CString> = variables
            .into_iter()
            .map(|(mut name, value)| {
                name.push("=");
                name.push(value);
                CString::new(name.into_vec())
            })
            .collect::<Result<_, _>>()?;
        let arguments: Vec<CString> =
            words.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
        let mut environment_pointers: Vec<_> = environment.iter().map(|v| v.as_ptr()).collect();
        environment_pointers.push(std::ptr::null());
        let mut pointers = vec![std::ptr::null(); arguments.len() + 2];
        for (place, argument) in pointers[1..].iter_mut().zip(&arguments) {
            *place = argument.as_ptr();
        }
        let candidates = candidates(name)?;
        Ok(Self { candidates, arguments, environment, pointers, environment_pointers })
    }

    /// Executes the program; returns only if that fails, with the reason. Makes system calls only.
    pub(crate) fn execute(&mut self, mark: u64) -> io::Error {
        let mut denied = None;
        for candidate in 0..self.candidates.len() {
            let error = self.attempt(&self.candidates[candidate], 1, mark);
            match error.raw_os_error() {
                Some(libc::ENOEXEC) => return self.by_shell(candidate, mark),
                Some(libc::EACCES) => denied = Some(error),
                Some(libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV) => {}
                _ => return error,
            }
        }
        denied.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    // Executes a script without an interpreter line by the shell.
    fn by_shell(&mut self, candidate: usize, mark: u64) -> io::Error {
        self.pointers[0] = SHELL.as_ptr();
        self.pointers[1] = self.candidates[candidate].as_ptr();
        self.attempt(SHELL, 0, mark)
    }

    /// Executes `file` with the arguments from place `first` on; returns only if that fails.
    #[expect(unsafe_code, reason = "execve(2) with a mark in an unused argument")]
    fn attempt(&self, file: &CStr, first: usize, mark: u64) -> io::Error {
        let arguments = &self.pointers[first..];
        let environment = self.environment_pointers.as_ptr();
        debug_assert_eq!(self.environment.len() + 1, self.environment_pointers.len());
        debug_assert!(!self.arguments.is_empty());
        // SAFETY: all strings end in zero and both arrays in a null pointer.
        unsafe {
            libc::syscall(
                libc::SYS_execve,
                file.as_ptr(),
                arguments.as_ptr(),
                environment,
                0_u64,
                0_u64,
                mark,
            );
        }
        io::Error::last_os_error()
    }
}

/// The files that `name` may stand for, in the order of `PATH`.
fn candidates(name: &OsStr) -> io::Result<Vec<CString>> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![CString::new(name.as_bytes())?]);
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    let files = std::env::split_paths(&path).map(|directory| {
        let directory = if directory.as_os_str().is_empty() { ".".into() } else { directory };
        CString::new(directory.join(name).into_os_string().into_vec())
    });
    Ok(files.collect::<Result<_, _>>()?)
}
