//! Who ran what, and when: for people. Nothing is decided by it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// A file of this process in the directory of an experiment: a line when a run begins, and one
/// when it has ended.
#[derive(Debug)]
pub struct Log {
    /// Nothing where it cannot be written: that hinders no run.
    file: Option<Mutex<File>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    event: &'static str,
    id: &'a str,
    at_unix_ns: u64,
}

impl Log {
    /// In the directory of an experiment, named after this machine and process.
    #[must_use]
    pub fn open(directory: &Path) -> Self {
        let directory = directory.join("log");
        let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let path = directory.join(format!("{}-{}.jsonl", machine.trim(), std::process::id()));
        let file = fs::create_dir_all(&directory)
            .and_then(|()| File::options().create(true).append(true).open(path));
        Self { file: file.ok().map(Mutex::new) }
    }

    /// A run begins.
    pub fn began(&self, id: &str) {
        self.write("began", id);
    }

    /// A run has ended and is kept.
    pub fn ended(&self, id: &str) {
        self.write("ended", id);
    }

    fn write(&self, event: &'static str, id: &str) {
        let Some(file) = &self.file else { return };
        let entry = Entry { event, id, at_unix_ns: sys::clock::unix_ns() };
        let line = serde_json::to_string(&entry).expect("plain data has a JSON form") + "\n";
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let _lost = file.write_all(line.as_bytes());
    }
}
