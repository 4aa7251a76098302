//! The runs of an experiment on disk: one line for each, written when it has ended.
//!
//! A directory holds `sweep.json` (what was asked, where) and `runs.jsonl`. A run counts when its
//! line is complete; a line that was being written when the sweep was killed is cut off when it
//! goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use measure::Host;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Why the results cannot be kept where they should.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file cannot be read or written.
    #[error("{}: {source}; check the path and the space left on its disk", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why the kernel refused.
        source: io::Error,
    },
    /// The directory belongs to something else.
    #[error(
        "{} has the results of another experiment or version, or runs with another \
         --allow-unmanaged; name another directory with --output, or remove it",
        path.display()
    )]
    Other {
        /// The directory.
        path: PathBuf,
    },
    /// A whole line is no run of this kind.
    #[error("{}: line {line} is no result; remove it to go on", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
}

/// What `sweep.json` says.
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
    /// The order of runs follows from it.
    pub seed: u64,
    /// The machine.
    pub host: Host,
    /// The text of the experiment file.
    pub experiment: String,
    /// What is run in every block.
    pub cells: Vec<String>,
    /// Whether runs count of which much stayed local.
    #[serde(default)]
    pub allow_unmanaged: bool,
}

/// A run that is one of several of its cell.
pub trait Keyed {
    /// Its block, counted from 0.
    fn block(&self) -> u32;
    /// The name of its cell.
    fn cell(&self) -> &str;
}

/// An open journal.
#[derive(Debug)]
pub struct Journal<R> {
    path: PathBuf,
    file: File,
    /// The runs that are on the disk, in the order of their ends.
    pub rows: Vec<R>,
}

impl<R: Serialize + DeserializeOwned> Journal<R> {
    /// Opens the journal in `directory`, which is made if there is none.
    ///
    /// # Errors
    /// When it belongs to something else or cannot be written to.
    pub fn open(directory: &Path, header: &Header) -> Result<Self, JournalError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::File { path, source }
        };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let head = directory.join("sweep.json");
        match fs::read_to_string(&head) {
            Ok(text) => {
                let before: Option<Header> = serde_json::from_str(&text).ok();
                if !before.is_some_and(|before| before.is_same(header)) {
                    return Err(JournalError::Other { path: directory.to_owned() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_whole(&head, header).map_err(failed(&head))?;
            }
            Err(source) => return Err(JournalError::File { path: head, source }),
        }
        let path = directory.join("runs.jsonl");
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let file = options.open(&path).map_err(failed(&path))?;
        let text = fs::read_to_string(&path).map_err(failed(&path))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(failed(&path))?;
        let rows = text[..whole].lines().enumerate().map(|(index, line)| {
            let wrong = |_| JournalError::Line { path: path.clone(), line: index + 1 };
            serde_json::from_str(line).map_err(wrong)
        });
        let rows = rows.collect::<Result<Vec<R>, _>>()?;
        Ok(Self { path, file, rows })
    }

    /// Adds a run; when this returns, it is on the disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, row: R) -> Result<(), JournalError> {
        let line = serde_json::to_string(&row).expect("plain data has a JSON form") + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|source| JournalError::File { path: self.path.clone(), source })?;
        self.rows.push(row);
        Ok(())
    }
}

/// What a directory holds, without changing it. A line that was being written when its sweep was
/// killed is no run.
///
/// # Errors
/// When it is not the directory of a sweep of this kind of runs.
pub fn read<R: DeserializeOwned>(directory: &Path) -> Result<(Header, Vec<R>), JournalError> {
    let text = |path: &Path| {
        fs::read_to_string(path)
            .map_err(|source| JournalError::File { path: path.to_owned(), source })
    };
    let head = directory.join("sweep.json");
    let header = serde_json::from_str(&text(&head)?);
    let header = header.map_err(|_| JournalError::Line { path: head, line: 1 })?;
    let path = directory.join("runs.jsonl");
    let text = text(&path)?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let rows = text[..whole].lines().enumerate().map(|(index, line)| {
        let wrong = |_| JournalError::Line { path: path.clone(), line: index + 1 };
        serde_json::from_str(line).map_err(wrong)
    });
    Ok((header, rows.collect::<Result<_, _>>()?))
}

impl<R: Keyed> Journal<R> {
    /// Whether a cell has been run in a block.
    #[must_use]
    pub fn has(&self, block: u32, cell: &str) -> bool {
        self.rows.iter().any(|row| row.block() == block && row.cell() == cell)
    }
}

impl Header {
    fn is_same(&self, other: &Self) -> bool {
        let of = |header: &Self| {
            let name = (header.schema.clone(), header.version.clone());
            (name, header.experiment.clone(), header.allow_unmanaged)
        };
        of(self) == of(other)
    }
}

// All of it or nothing.
fn write_whole(path: &Path, header: &Header) -> io::Result<()> {
    let text = serde_json::to_string_pretty(header).expect("plain data has a JSON form") + "\n";
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(experiment: &str) -> Header {
        Header {
            schema: "afar.sweep/2".to_owned(),
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

    #[test]
    fn rows_come_back_and_half_a_line_does_not() {
        let directory = std::env::temp_dir().join(format!("afar-journal-{}", std::process::id()));
        let _none = fs::remove_dir_all(&directory);
        let mut journal = Journal::open(&directory, &header("a")).expect("it is new");
        journal.add(row(0, "native")).expect("there is room");
        journal.add(row(0, "zero")).expect("there is room");
        drop(journal);
        let path = directory.join("runs.jsonl");
        let text = fs::read_to_string(&path).expect("it is there");
        // Killed at any byte of the second line.
        let first = text.find('\n').expect("two lines") + 1;
        for length in first..text.len() {
            fs::write(&path, &text[..length]).expect("there is room");
            let mut journal = Journal::open(&directory, &header("a")).expect("it is ours");
            assert!(journal.has(0, "native") && !journal.has(0, "zero"));
            journal.add(row(0, "zero")).expect("there is room");
            let again = Journal::<Row>::open(&directory, &header("a")).expect("it is ours");
            assert_eq!(again.rows, [row(0, "native"), row(0, "zero")]);
        }
        let other = Journal::<Row>::open(&directory, &header("b"));
        assert!(matches!(other, Err(JournalError::Other { .. })));
        let allowing = Header { allow_unmanaged: true, ..header("a") };
        let other = Journal::<Row>::open(&directory, &allowing);
        assert!(matches!(other, Err(JournalError::Other { .. })), "runs of both are not mixed");
        fs::remove_dir_all(&directory).expect("it is ours");
    }
}
