//! `--remember`: the order of first fetches as a file, recorded in one run, replayed in the next.
//!
//! ```text
//! no FILE ─► run ─► ended with status 0 ─► FILE
//! FILE ─► of this program? ─► replayed; stays as it is
//! ```
//!
//! DESIGN NOTES
//!
//! * Pages are identified by their addresses. The engine places what a program maps at the same
//!   addresses in each run; the kernel places its static data. So the program runs without
//!   address-space layout randomisation, as under `setarch -R`, in both runs.
//! * A replay fetches in another order than the program needs its pages. So it is not recorded
//!   again: to record anew, remove the file.

mod runs;

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use console::{Class, Classed, Failure, Output};
use measure::Remembered;
use paging::order::{DEPTH_DEFAULT, Ended, Place};
use paging::{FetchOrder, Prefetch};
use results::order::PageOrder;
use results::{ReadError, read, write};
use sys::process::Change;

use crate::program::{self, ProgramError};
use runs::RunsError;

/// The order of first fetches of a run, which is recorded or replayed.
pub(crate) struct Remember {
    path: PathBuf,
    /// The record of this run, still without pages.
    frame: PageOrder,
    /// The order to replay; `None` to record.
    list: Option<Vec<Place>>,
    /// The file of a recorded order.
    output: Option<Output>,
}

/// Why an order can be neither recorded nor replayed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RememberError {
    #[error("--remember -: the next run reads the file again; give it a name")]
    Standard,
    #[error(
        "--remember {}: read it: {source}; check the path and its permissions, or name a file that \
         is not there", path.display()
    )]
    Open { path: PathBuf, source: io::Error },
    #[error(
        "--remember {}: {source}; give a file that this option has written, or remove it to record \
         the order anew", path.display()
    )]
    Record { path: PathBuf, source: ReadError },
    #[error(
        "--remember {}: pages {source}; it has been changed: remove it to record the order anew",
        path.display()
    )]
    Runs { path: PathBuf, source: RunsError },
    #[error(
        "--remember {}: it is the order of \"{recorded}\", and this is \"{given}\"; name another \
         file, or remove it to record the order anew", path.display()
    )]
    Program { path: PathBuf, recorded: String, given: String },
    #[error(
        "--remember {}: {executable} is not the file that was executed then, {recorded}; name \
         another file, or remove it to record the order anew", path.display()
    )]
    Executable { path: PathBuf, executable: String, recorded: String },
    #[error(
        "--remember: {0}; pages are known by their addresses, which must be the same in both runs: \
         allow personality(2), in a container with a seccomp profile that has it, or leave \
         --remember out"
    )]
    Addresses(sys::Error),
    #[error(transparent)]
    NoProgram(#[from] ProgramError),
}

impl Classed for RememberError {
    fn class(&self) -> Class {
        match self {
            Self::Addresses(_) => Class::Environment,
            Self::NoProgram(error) => error.class(),
            _ => Class::Usage,
        }
    }
}

impl Remember {
    /// Reads the order in the file at `path`, if there is one, which must be of this program.
    ///
    /// # Errors
    /// When the file is no order, or of another program, or addresses cannot be the same in all
    /// runs.
    pub(crate) fn of(path: &Path, words: &[std::ffi::OsString]) -> Result<Self, RememberError> {
        if path.as_os_str() == "-" {
            return Err(RememberError::Standard);
        }
        sys::process::at_fixed_addresses(|| ()).map_err(RememberError::Addresses)?;
        let frame = frame(words)?;
        let list = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(source) => return Err(RememberError::Open { path: path.to_owned(), source }),
            Ok(text) => Some(list_of(path, &text, &frame)?),
        };
        Ok(Self { path: path.to_owned(), frame, list, output: None })
    }

    /// Opens the file for writing, if the order is to be recorded.
    ///
    /// # Errors
    /// When the file cannot be written to.
    pub(crate) fn open(&mut self) -> Result<(), Failure> {
        if self.list.is_none() {
            self.output = Some(Output::open(&self.path)?);
        }
        Ok(())
    }

    /// The order for the engine.
    pub(crate) fn order(&mut self, prefetch: Prefetch) -> FetchOrder {
        let depth = prefetch.depth().unwrap_or(DEPTH_DEFAULT);
        let replayed = |list| FetchOrder::replayed(list, depth);
        self.list.take().map_or_else(FetchOrder::recorded, replayed)
    }

    /// Writes the recorded order if the program ended with status 0. Returns warnings, and whether
    /// it could be written.
    pub(crate) fn keep(self, ended: Ended, change: Change) -> (Vec<String>, Result<(), Failure>) {
        let path = self.path.display();
        let why = match (self.output.is_some(), change) {
            (false, _) => replayed(&ended.counts),
            (true, Change::Exited(0)) => recorded(&ended.counts),
            (true, _) => Some("nothing was recorded: the program did not end with status 0"),
        };
        let said = why.map(|why| format!("--remember {path}: {why}")).into_iter().collect();
        let is_good = change == Change::Exited(0) && !ended.list.is_empty();
        let Some(output) = self.output.filter(|_| is_good) else { return (said, Ok(())) };
        let page_count = ended.counts.page_count;
        let order = PageOrder { page_count, runs: runs::write(&ended.list), ..self.frame };
        (said, output.write(&write(&order)))
    }
}

/// A warning about a recorded order; `None` if it is complete.
fn recorded(counts: &Remembered) -> Option<&'static str> {
    match (counts.page_count, counts.dropped_count) {
        (0, _) => Some("nothing was recorded: no page was fetched; give less --local"),
        (_, 0) => None,
        _ => Some("the order ends where it was full: later pages are not in it"),
    }
}

/// A warning about a replay without effect; `None` if pages were fetched ahead.
fn replayed(counts: &Remembered) -> Option<&'static str> {
    match (counts.ahead_count, counts.demand_count) {
        (0, 0) => Some(
            "nothing came of it: none of its pages was fetched, as the program went another way or \
             all of them stayed local; remove it to record the order anew",
        ),
        (0, _) => Some(
            "nothing came of it: no page was fetched ahead, as no frame was free for one; give \
             more --local",
        ),
        _ => None,
    }
}

/// The pages of the order in a file.
fn list_of(path: &Path, text: &str, frame: &PageOrder) -> Result<Vec<Place>, RememberError> {
    let path = path.to_owned();
    let order: PageOrder = match read(text) {
        Ok(order) => order,
        Err(source) => return Err(RememberError::Record { path, source }),
    };
    if order.program != frame.program {
        let (recorded, given) = (order.program.join(" "), frame.program.join(" "));
        return Err(RememberError::Program { path, recorded, given });
    }
    if order.executable_hash != frame.executable_hash {
        let (executable, recorded) = (frame.executable.clone(), order.executable);
        return Err(RememberError::Executable { path, executable, recorded });
    }
    runs::read(&order.runs, order.page_count).map_err(|source| RememberError::Runs { path, source })
}

/// The order of a program, without pages.
fn frame(words: &[std::ffi::OsString]) -> Result<PageOrder, ProgramError> {
    let name = words.first().map_or_else(Default::default, Clone::clone);
    let executable = program::find(&name)?;
    Ok(PageOrder {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        executable_hash: File::open(&executable).and_then(hash).ok(),
        executable: executable.display().to_string(),
        page_count: 0,
        runs: Vec::new(),
    })
}

/// The FNV-1a hash of all bytes of a reader, in hexadecimal.
fn hash(mut from: impl Read) -> io::Result<String> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut bytes = [0; 1 << 16];
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            return Ok(format!("{hash:016x}"));
        }
        for &byte in &bytes[..count] {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // Of the draft of the IETF (Fowler et al.), appendix.
        assert_eq!(hash(&b""[..]).unwrap(), "cbf29ce484222325");
        assert_eq!(hash(&b"foobar"[..]).unwrap(), "85944171f73967e8");
    }

    #[test]
    fn an_order_that_was_good_for_nothing_says_so() {
        let counts = |ahead_count, demand_count| Remembered {
            is_replayed: true,
            page_count: 9,
            ahead_count,
            demand_count,
            ..Remembered::default()
        };
        assert!(replayed(&counts(0, 0)).unwrap().contains("none of its pages was fetched"));
        assert!(replayed(&counts(0, 4)).unwrap().contains("no frame was free"));
        assert_eq!(replayed(&counts(4, 0)), None);
        let made = |page_count, dropped_count| {
            recorded(&Remembered { page_count, dropped_count, ..Remembered::default() })
        };
        assert!(made(0, 0).unwrap().contains("no page was fetched"));
        assert_eq!(made(1, 0), None);
        assert!(made(1, 1).unwrap().contains("full"));
    }
}
