//! The log of who ran what, and when: for people. afar itself does not read it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// A file of this process in the directory of an experiment: a line when a run begins, and one
/// when it has ended.
#[derive(Debug)]
pub struct Log {
    /// `None` if it cannot be written: runs go on without a log.
    file: Option<Mutex<File>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    event: &'static str,
    id: &'a str,
    at_unix_ns: u64,
}

impl Log {
    /// Opens the log of this machine and process in the directory of an experiment.
    #[must_use]
    pub fn open(directory: &Path) -> Self {
        let directory = directory.join("log");
        let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let path = directory.join(format!("{}-{}.jsonl", machine.trim(), std::process::id()));
        let file = fs::create_dir_all(&directory)
            .and_then(|()| File::options().create(true).append(true).open(path));
        Self { file: file.ok().map(Mutex::new) }
    }

    /// Logs that run `id` begins.
    pub fn began(&self, id: &str) {
        self.write("began", id);
    }

    /// Logs that run `id` has ended and is stored.
    pub fn ended(&self, id: &str) {
        self.write("ended", id);
    }

    /// Appends a line.
    fn write(&self, event: &'static str, id: &str) {
        let Some(file) = &self.file else { return };
        let entry = Entry { event, id, at_unix_ns: sys::clock::unix_ns() };
        let line = serde_json::to_string(&entry).expect("plain data has a JSON form") + "\n";
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let _lost = file.write_all(line.as_bytes());
    }
}
