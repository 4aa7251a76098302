//! The runs of an experiment on disk: one file per run, which exists once the run has ended.
//!
//! A directory holds `sweep.json` (what was requested, where), `points.jsonl` (every planned run,
//! in the order in which they run), `runs/ID.json` (the runs that have ended), and `log`, which
//! only people read. An ID is a hash of all that decides the result of a run. So any number of
//! processes on any number of machines may work on a directory: a run that has a file is not run
//! again, and of two results of one run the first counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use measure::Host;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Log;

/// The file that says what was requested.
pub const HEADER: &str = "sweep.json";
const POINTS: &str = "points.jsonl";
const RUNS: &str = "runs";
/// Prefix of files that are being written.
const UNFINISHED: &str = ".new-";
/// Files older than this that are still being written belong to processes that were killed.
const ABANDONED: Duration = Duration::from_secs(3600);
/// Hexadecimal digits of an ID: 128 bits, so that no two of any number of runs have the same.
const DIGITS: usize = 32;

/// Why results cannot be stored in, or read from, a directory.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file cannot be read or written.
    #[error("{}: {source}; {}", path.display(), remedy(source))]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why the kernel refused.
        source: io::Error,
    },
    /// The directory belongs to another experiment.
    #[error(
        "{} has the results of another experiment or version, or runs with another \
         --allow-unmanaged; name another directory with --output, or remove it",
        path.display()
    )]
    Other {
        /// The directory.
        path: PathBuf,
    },
    /// A line is not in the format of this version.
    #[error("{}: line {line} is no result; remove it to go on", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
}

/// The contents of `sweep.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Name and version of the kind of runs.
    pub schema: String,
    /// Version of the afar that began it.
    pub version: String,
    /// The command that began it.
    pub command: Vec<String>,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Seed of the order of runs.
    pub seed: u64,
    /// The machine.
    pub host: Host,
    /// The text of the experiment file.
    pub experiment: String,
    /// The cells, each of which runs once in every block.
    pub cells: Vec<String>,
    /// Whether runs count of which much stayed local.
    #[serde(default)]
    pub allow_unmanaged: bool,
}

/// A planned run, a line of `points.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// ID of the run and name of its file.
    pub id: String,
    /// Its block, counted from 0.
    pub block: u32,
    /// The name of its cell.
    pub cell: String,
    /// What its kind of run needs to know besides, by setting.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// A run that belongs to a block and a cell.
pub trait Keyed {
    /// Its block, counted from 0.
    fn block(&self) -> u32;
    /// The name of its cell.
    fn cell(&self) -> &str;
}

/// An open journal.
#[derive(Debug)]
pub struct Journal<R> {
    directory: PathBuf,
    /// The contents of `sweep.json`.
    header: Header,
    /// IDs of the runs that are in `rows`.
    known: BTreeSet<String>,
    /// The runs on disk: those found when the directory was opened by block and cell, then the
    /// others in the order of their ends.
    pub rows: Vec<R>,
}

// The advice for an I/O error at a directory of results.
fn remedy(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "it is no directory; give one, or a name that nothing has yet"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "give a directory in which you may read and write"
        }
        io::ErrorKind::NotFound => "check the path",
        _ => "check the path and the space left on its disk",
    }
}

/// Turns an I/O error at `path` into a `JournalError`.
fn failed(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::File { path, source }
}

impl<R: Serialize + DeserializeOwned + Keyed> Journal<R> {
    /// Opens the journal in `directory`, and creates the directory and its `sweep.json` if need be.
    ///
    /// # Errors
    /// If the directory belongs to another experiment or cannot be written to.
    pub fn open(directory: &Path, header: &Header) -> Result<Self, JournalError> {
        let runs = directory.join(RUNS);
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let head = directory.join(HEADER);
        match fs::read_to_string(&head) {
            Ok(text) => {
                let before: Option<Header> = serde_json::from_str(&text).ok();
                if !before.is_some_and(|before| before.is_same(header)) {
                    return Err(JournalError::Other { path: directory.to_owned() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text =
                    serde_json::to_string_pretty(header).expect("plain data has a JSON form");
                write_whole(&head, &(text + "\n")).map_err(failed(&head))?;
            }
            Err(source) => return Err(JournalError::File { path: head, source }),
        }
        fs::create_dir_all(&runs).map_err(failed(&runs))?;
        remove_abandoned(&runs);
        Self::of(directory, header.clone())
    }

    /// Opens the journal of a directory that another process has begun.
    ///
    /// # Errors
    /// If `directory` has no journal, or one of its runs cannot be read.
    pub fn join(directory: &Path) -> Result<Self, JournalError> {
        Self::of(directory, header(directory)?)
    }

    /// Opens the journal of `directory` and reads its runs.
    fn of(directory: &Path, header: Header) -> Result<Self, JournalError> {
        let directory = directory.to_owned();
        let mut journal = Self { directory, header, known: BTreeSet::new(), rows: Vec::new() };
        journal.read_on()?;
        Ok(journal)
    }

    /// As `join`, without reading the runs, of which there may be many.
    ///
    /// # Errors
    /// If `directory` has no journal.
    pub fn join_blind(directory: &Path) -> Result<Self, JournalError> {
        let (directory, header) = (directory.to_owned(), header(directory)?);
        Ok(Self { directory, header, known: BTreeSet::new(), rows: Vec::new() })
    }

    /// Reads the runs that other processes have added since the last call.
    ///
    /// # Errors
    /// If a run cannot be read or is not of this experiment.
    pub fn read_on(&mut self) -> Result<(), JournalError> {
        let mut fresh = Vec::new();
        for (id, path) in files(&self.directory)? {
            if self.known.contains(&id) {
                continue;
            }
            let row: R = read_run(&path)?;
            if self.header.id(row.block(), row.cell()) != id {
                return Err(JournalError::Line { path, line: 1 });
            }
            self.known.insert(id);
            fresh.push(row);
        }
        fresh.sort_by(|one, other| (one.block(), one.cell()).cmp(&(other.block(), other.cell())));
        self.rows.extend(fresh);
        Ok(())
    }

    /// Writes a run to disk and adds it to `rows`. If another process has written that run before,
    /// its result is added instead.
    ///
    /// # Errors
    /// If the run cannot be written.
    pub fn add(&mut self, row: R) -> Result<(), JournalError> {
        let id = self.header.id(row.block(), row.cell());
        let path = self.directory.join(RUNS).join(format!("{id}.json"));
        let text = serde_json::to_string(&row).expect("plain data has a JSON form") + "\n";
        let row = match write_once(&path, &text).map_err(failed(&path))? {
            true => row,
            false => read_run(&path)?,
        };
        if self.known.insert(id) {
            self.rows.push(row);
        }
        Ok(())
    }

    /// Writes `points.jsonl`, from which other processes learn the planned runs.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn plan(&self, points: &[Point]) -> Result<(), JournalError> {
        let line = |point| serde_json::to_string(point).expect("plain data has a JSON form") + "\n";
        let path = self.directory.join(POINTS);
        write_whole(&path, &points.iter().map(line).collect::<String>()).map_err(failed(&path))
    }

    /// Whether the run `id` is on disk, from whatever process.
    #[must_use]
    pub fn is_there(&self, id: &str) -> bool {
        self.known.contains(id) || self.directory.join(RUNS).join(format!("{id}.json")).exists()
    }

    /// The log file of this process.
    #[must_use]
    pub fn log(&self) -> Log {
        Log::open(&self.directory)
    }

    /// The contents of `sweep.json`.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }
}

/// How many runs `directory` has; 0 if there is no such directory.
#[must_use]
pub fn count(directory: &Path) -> usize {
    files(directory).map_or(0, |files| files.len())
}

/// The contents of a directory's `sweep.json`.
///
/// # Errors
/// If `directory` is not the directory of a sweep.
pub fn header(directory: &Path) -> Result<Header, JournalError> {
    let path = directory.join(HEADER);
    let text = fs::read_to_string(&path).map_err(failed(&path))?;
    serde_json::from_str(&text).map_err(|_| JournalError::Line { path, line: 1 })
}

/// Every planned run of a directory.
///
/// # Errors
/// If no process has written `points.jsonl`.
pub fn points(directory: &Path) -> Result<Vec<Point>, JournalError> {
    let path = directory.join(POINTS);
    lines(&path, &fs::read_to_string(&path).map_err(failed(&path))?)
}

/// Reads the header and the runs of a directory, by block and cell, without changing it.
///
/// # Errors
/// If `directory` is not the directory of a sweep of this kind of runs.
pub fn read<R>(directory: &Path) -> Result<(Header, Vec<R>), JournalError>
where
    R: Serialize + DeserializeOwned + Keyed,
{
    let journal = Journal::join(directory)?;
    Ok((journal.header, journal.rows))
}

impl<R: Keyed> Journal<R> {
    /// Whether `cell` has been run in `block`, among the runs read so far.
    #[must_use]
    pub fn has(&self, block: u32, cell: &str) -> bool {
        self.known.contains(&self.header.id(block, cell))
    }
}

impl Header {
    /// The parts of the header that decide results.
    fn identity(&self) -> (&str, &str, &str, bool) {
        (&self.schema, &self.version, &self.experiment, self.allow_unmanaged)
    }

    /// Whether both headers are of one experiment.
    fn is_same(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    /// The name of a run: a hash (SHA-256, the first half) of all that decides its result.
    #[must_use]
    pub fn id(&self, block: u32, cell: &str) -> String {
        let (schema, version, experiment, allow) = self.identity();
        let said = [schema, version, experiment, &allow.to_string(), &block.to_string(), cell];
        let mut hash = Sha256::new();
        for text in said {
            // With its length: no two lists of texts are one.
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        digits(&hash.finalize(), DIGITS)
    }
}

/// A hash of a file's bytes, by which changes are noticed.
///
/// # Errors
/// If the file cannot be read.
pub fn mark(path: &Path) -> io::Result<String> {
    Ok(digits(&Sha256::digest(fs::read(path)?), DIGITS))
}

/// The first `count` hexadecimal digits of a hash.
pub(crate) fn digits(hash: &[u8], count: usize) -> String {
    let mut text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(count);
    text
}

/// The files of runs that have ended, by ID.
fn files(directory: &Path) -> Result<BTreeMap<String, PathBuf>, JournalError> {
    let runs = directory.join(RUNS);
    let entries = fs::read_dir(&runs).map_err(failed(&runs))?.flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let id = name.strip_suffix(".json").filter(|id| !id.starts_with('.'))?;
        Some((id.to_owned(), entry.path()))
    });
    Ok(named.collect())
}

/// Reads a run from its file.
fn read_run<R: DeserializeOwned>(path: &Path) -> Result<R, JournalError> {
    let text = fs::read_to_string(path).map_err(failed(path))?;
    serde_json::from_str(&text).map_err(|_| JournalError::Line { path: path.to_owned(), line: 1 })
}

/// Parses a file of one JSON value per line.
fn lines<T: DeserializeOwned>(path: &Path, text: &str) -> Result<Vec<T>, JournalError> {
    let read = |(index, line)| {
        let wrong = |_| JournalError::Line { path: path.to_owned(), line: index + 1 };
        serde_json::from_str(line).map_err(wrong)
    };
    text.lines().enumerate().map(read).collect()
}

// Removes unfinished files of processes that were killed; those that are being written are newer.
fn remove_abandoned(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let is_unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        let age = entry.metadata().and_then(|data| data.modified()).ok();
        let age = age.and_then(|modified| modified.elapsed().ok());
        if is_unfinished && age.is_some_and(|age| age > ABANDONED) {
            let _somebody_else_has = fs::remove_file(entry.path());
        }
    }
}

// Writes a temporary file beside `path`, with a name that is unique to this process and moment.
fn write_beside(path: &Path, text: &str) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let own = format!("{}-{}", std::process::id(), sys::clock::unix_ns());
    let beside = path.with_file_name(format!("{UNFINISHED}{own}-{name}"));
    let mut file = File::create_new(&beside)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_data())?;
    Ok(beside)
}

// Replaces `path` by a file with `text`, atomically.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    fs::rename(write_beside(path, text)?, path)
}

/// Creates `path` with `text`, atomically, unless it exists. Returns whether it did not.
fn write_once(path: &Path, text: &str) -> io::Result<bool> {
    let beside = write_beside(path, text)?;
    // Linking fails if the name is taken, renaming does not.
    match fs::hard_link(&beside, path) {
        Ok(()) => fs::remove_file(&beside).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(&beside).map(|()| false)
        }
        // Some file systems have no hard links.
        Err(_) => fs::rename(&beside, path).map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(experiment: &str) -> Header {
        Header {
            schema: "afar.sweep/4".to_owned(),
            version: "0".to_owned(),
            command: Vec::new(),
            started_unix_ns: 0,
            seed: 1,
            host: Host::default(),
            experiment: experiment.to_owned(),
            cells: Vec::new(),
            allow_unmanaged: false,
        }
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Row {
        block: u32,
        cell: String,
    }

    impl Keyed for Row {
        fn block(&self) -> u32 {
            self.block
        }

        fn cell(&self) -> &str {
            &self.cell
        }
    }

    fn row(block: u32, cell: &str) -> Row {
        Row { block, cell: cell.to_owned() }
    }

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("afar-{name}-{}", std::process::id()));
        let _none = fs::remove_dir_all(&path);
        path
    }

    fn whole_runs(directory: &Path) -> BTreeMap<String, String> {
        let read = |(id, path)| (id, fs::read_to_string(path).expect("it is there"));
        files(directory).expect("it is there").into_iter().map(read).collect()
    }

    #[test]
    fn rows_come_back_and_what_is_half_written_is_none() {
        let directory = directory("journal");
        let mut journal = Journal::open(&directory, &header("a")).expect("it is new");
        journal.add(row(0, "zero")).expect("there is room");
        journal.add(row(0, "native")).expect("there is room");
        drop(journal);
        // Somebody was killed while writing a third run.
        let unfinished = directory.join(RUNS).join(format!("{UNFINISHED}1-1-x.json"));
        fs::write(&unfinished, "{\"block\":1,\"ce").expect("there is room");
        let mut journal = Journal::open(&directory, &header("a")).expect("it is ours");
        assert_eq!(journal.rows, [row(0, "native"), row(0, "zero")]);
        assert!(journal.has(0, "native") && !journal.has(1, "native"));
        journal.add(row(1, "native")).expect("there is room");
        let (_, again) = read::<Row>(&directory).expect("it is ours");
        assert_eq!(again, [row(0, "native"), row(0, "zero"), row(1, "native")]);
        assert!(unfinished.exists(), "whoever writes it may be alive");
        let other = Journal::<Row>::open(&directory, &header("b"));
        assert!(matches!(other, Err(JournalError::Other { .. })));
        let allowing = Header { allow_unmanaged: true, ..header("a") };
        let other = Journal::<Row>::open(&directory, &allowing);
        assert!(matches!(other, Err(JournalError::Other { .. })), "runs of both are not mixed");
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn the_first_of_two_that_did_the_same_counts() {
        let directory = directory("twice");
        let mut one = Journal::open(&directory, &header("a")).expect("it is new");
        let mut other = Journal::<Figure>::join(&directory).expect("it is there");
        let figure = |value| Figure { value };
        one.add(figure(1)).expect("there is room");
        let before = whole_runs(&directory);
        other.add(figure(2)).expect("it is there");
        assert_eq!((&one.rows, &other.rows), (&vec![figure(1)], &vec![figure(1)]));
        assert_eq!(whole_runs(&directory), before);
        let names = fs::read_dir(directory.join(RUNS)).expect("it is there").count();
        assert_eq!(names, 1, "nothing is left beside it");
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    /// Readers beside a writer see whole runs only, however often they look.
    #[test]
    fn nobody_sees_half_a_run() {
        let directory = directory("whole");
        let long = |number: u32| row(number, &"x".repeat(200_000));
        let mut journal = Journal::open(&directory, &header("a")).expect("it is new");
        let mut reader = Journal::<Row>::join(&directory).expect("it is there");
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..30 {
                    journal.add(long(number)).expect("there is room");
                }
                is_done.store(true, std::sync::atomic::Ordering::Release);
            });
            while !is_done.load(std::sync::atomic::Ordering::Acquire) {
                reader.read_on().expect("every run there is whole");
            }
        });
        reader.read_on().expect("every run there is whole");
        reader.rows.sort_by_key(Keyed::block);
        assert_eq!(reader.rows, (0..30).map(long).collect::<Vec<_>>());
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Figure {
        value: u32,
    }

    impl Keyed for Figure {
        fn block(&self) -> u32 {
            0
        }

        fn cell(&self) -> &'static str {
            "native"
        }
    }

    #[test]
    fn whatever_decides_a_run_is_in_its_name() {
        let id = |header: &Header, block, cell| header.id(block, cell);
        let first = id(&header("a"), 0, "b");
        assert_eq!((first.len(), &first), (DIGITS, &id(&header("a"), 0, "b")));
        let later = Header { started_unix_ns: 7, command: vec!["x".to_owned()], ..header("a") };
        assert_eq!(first, id(&later, 0, "b"), "who began it, and when, decides nothing");
        let others = [
            id(&header("ab"), 0, ""),
            id(&header("b"), 0, "b"),
            id(&header("a"), 1, "b"),
            id(&header("a"), 0, "c"),
            id(&Header { allow_unmanaged: true, ..header("a") }, 0, "b"),
            id(&Header { version: "1".to_owned(), ..header("a") }, 0, "b"),
        ];
        assert!(others.iter().all(|other| *other != first), "{others:?}");
        let directory = directory("foreign");
        let mut journal = Journal::open(&directory, &header("a")).expect("it is new");
        journal.add(row(0, "b")).expect("there is room");
        let path = |id: &str| directory.join(RUNS).join(format!("{id}.json"));
        fs::rename(path(&first), path(&others[0])).expect("it is there");
        let wrong = Journal::<Row>::join(&directory).map(|_| ()).expect_err("it is another's");
        assert!(wrong.to_string().contains("is no result; remove it to go on"), "{wrong}");
        fs::remove_dir_all(&directory).expect("it is ours");
    }
}
