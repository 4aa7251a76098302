//! The results of a sweep on disk: one line for each run, written when it has ended. Sweeps of
//! `afar sim` have lines of their own.
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
pub(crate) enum JournalError {
    #[error("{}: {source}; check the path and the space left on its disk", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "{} has the results of another experiment or version, or runs with another \
         --allow-unmanaged; name another directory with --output, or remove it",
        path.display()
    )]
    Other { path: PathBuf },
    #[error("{}: line {line} is no result; remove it to go on", path.display())]
    Line { path: PathBuf, line: usize },
}

/// What `sweep.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) schema: String,
    pub(crate) version: String,
    pub(crate) command: Vec<String>,
    pub(crate) started_unix_ns: u64,
    pub(crate) seed: u64,
    pub(crate) host: Host,
    /// The text of the experiment file.
    pub(crate) experiment: String,
    /// What is run in every block.
    pub(crate) cells: Vec<String>,
    /// Whether runs count of which much stayed local.
    #[serde(default)]
    pub(crate) allow_unmanaged: bool,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Counted from 0.
    pub(crate) block: u32,
    pub(crate) cell: String,
    /// The figure; nothing if the run failed or is invalid.
    pub(crate) value: Option<f64>,
    /// What `metric.further` points to; nothing where it points to no number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) further: Vec<Option<f64>>,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    /// Why nothing is concluded from it; it has no numbers then.
    pub(crate) invalid: Option<String>,
    /// Whether it would be invalid, had the user not allowed memory that is not managed.
    pub(crate) allowed: bool,
    pub(crate) started_unix_ns: u64,
    pub(crate) elapsed_ns: u64,
    /// The share of the processor time it wanted that went to other guests of the machine, 0 to 1.
    #[serde(default)]
    pub(crate) stolen: f64,
    /// Runs before this one that were thrown away because they lost more.
    #[serde(default)]
    pub(crate) repeated_count: u32,
    pub(crate) fetch_count: Option<u64>,
    pub(crate) fetch_p50_ns: Option<u64>,
    pub(crate) managed_peak_bytes: Option<u64>,
    pub(crate) unmanaged_bytes: Option<u64>,
    pub(crate) budget_held: Option<bool>,
}

impl Row {
    /// Why it has no figure, if it has none.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.failure.as_deref().or(self.invalid.as_deref())
    }

    /// Nothing is concluded from the run: its numbers go, so that nobody can use them.
    pub(crate) fn invalidate(&mut self, why: String) {
        let Self { block, started_unix_ns, unmanaged_bytes, .. } = *self;
        let cell = std::mem::take(&mut self.cell);
        let invalid = Some(why);
        *self = Self { block, cell, started_unix_ns, unmanaged_bytes, invalid, ..Self::default() };
    }
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal<R> {
    path: PathBuf,
    file: File,
    pub(crate) rows: Vec<R>,
}

impl<R: Serialize + DeserializeOwned> Journal<R> {
    /// Opens the journal in `directory`, which is made if there is none.
    ///
    /// # Errors
    /// When it belongs to something else or cannot be written to.
    pub(crate) fn open(directory: &Path, header: &Header) -> Result<Self, JournalError> {
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
    pub(crate) fn add(&mut self, row: R) -> Result<(), JournalError> {
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
pub(crate) fn read<R: DeserializeOwned>(
    directory: &Path,
) -> Result<(Header, Vec<R>), JournalError> {
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

impl Journal<Row> {
    /// Whether a cell has been run in a block.
    pub(crate) fn has(&self, block: u32, cell: &str) -> bool {
        self.rows.iter().any(|row| row.block == block && row.cell == cell)
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

    fn row(block: u32, cell: &str) -> Row {
        Row { block, cell: cell.to_owned(), value: Some(1.5), ..Row::default() }
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
