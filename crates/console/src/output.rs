//! Files for results, opened before the program starts so that no run is lost to a typo.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{Class, Classed, Failure, terminal};

/// Why a result is in no file.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Before the command started anything.
    #[error("open {} for writing: {source}; check the path and its permissions", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// After a run.
    #[error("write {}: {source}; check the space left on its disk", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl OutputError {
    /// A path that cannot be opened for writing.
    #[must_use]
    pub fn open(path: &Path, source: io::Error) -> Self {
        Self::Open { path: path.to_owned(), source }
    }
}

impl Classed for OutputError {
    fn class(&self) -> Class {
        match self {
            Self::Open { .. } => Class::Usage,
            Self::Write { .. } => Class::Ours,
        }
    }
}

/// Where one text will go.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// None for standard output.
    file: Option<File>,
    /// It was not there before, and nothing has been written to it.
    is_new: bool,
}

/// Where lines go, one after the other.
#[derive(Debug)]
pub struct Lines(Output);

impl Output {
    /// Opens `path` for writing; `-` is standard output.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let path = path.to_owned();
        if path.as_os_str() == "-" {
            return Ok(Self { path, file: None, is_new: false });
        }
        let mut options = File::options();
        let (opened, is_new) = match options.write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Not truncated yet: if the run fails, what was there before is still there.
                let mut options = File::options();
                (options.write(true).create(true).truncate(false).open(&path), false)
            }
            opened => (opened, true),
        };
        let file = opened.map_err(|source| OutputError::open(&path, source))?;
        Ok(Self { path, file: Some(file), is_new })
    }

    /// The same if `path` is given.
    ///
    /// # Errors
    /// As [`Output::open`].
    pub fn wanted(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        path.map(Self::open).transpose()
    }

    /// Whether it is standard output.
    #[must_use]
    pub const fn is_stdout(&self) -> bool {
        self.file.is_none()
    }

    /// Writes the text, in place of what was there.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        self.write_bytes(text.as_bytes())
    }

    /// The same for what need not be text.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn write_bytes(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(file) = self.file.take() else {
            return terminal::answer(&String::from_utf8_lossy(bytes));
        };
        self.is_new = false;
        replace(file, bytes).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Failure {
        OutputError::Write { path: self.path.clone(), source }.into()
    }

    /// Takes lines from now on, in place of what was there.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn lines(mut self) -> Result<Lines, Failure> {
        self.is_new = false;
        if let Some(file) = &self.file {
            empty(file).map_err(|source| self.failed(source))?;
        }
        Ok(Lines(self))
    }
}

/// A command that ends before it has an answer leaves no empty file.
impl Drop for Output {
    fn drop(&mut self) {
        if self.is_new {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

impl Lines {
    /// Writes a line that ends with a line feed; whether a reader is left for the next.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn write(&mut self, line: &str) -> Result<bool, Failure> {
        match &mut self.0.file {
            None => terminal::show(line),
            Some(file) => {
                let written = file.write_all(line.as_bytes());
                written.map(|()| true).map_err(|source| self.0.failed(source))
            }
        }
    }
}

/// A form of an answer: where it is wanted, if it is, and what makes it.
pub type Form<'a> = (Option<Output>, &'a dyn Fn() -> String);

/// Writes an answer in the forms that are wanted, and prints it as `text`, unless a form has gone
/// to standard output.
///
/// # Errors
/// When one of them cannot be written to.
pub fn answer(text: impl FnOnce() -> String, forms: Vec<Form<'_>>) -> Result<(), Failure> {
    let is_answered = forms.iter().flat_map(|(to, _)| to).any(Output::is_stdout);
    for (to, make) in forms {
        if let Some(to) = to {
            to.write(&make())?;
        }
    }
    if is_answered { Ok(()) } else { terminal::answer(&text()) }
}

fn replace(mut file: File, bytes: &[u8]) -> io::Result<()> {
    empty(&file)?;
    file.write_all(bytes)
}

// Pipes and terminals have no length.
fn empty(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("afar-output-{}-{name}", std::process::id()))
    }

    #[test]
    fn who_has_no_answer_leaves_no_file() {
        let path = path("new");
        drop(Output::open(&path).expect("it can be made"));
        assert!(!path.exists());
        Output::open(&path).expect("it can be made").write("first\n").expect("it can");
        drop(Output::open(&path).expect("it is there"));
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "first\n");
        Output::open(&path).expect("it is there").write("2\n").expect("it can");
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "2\n");
        fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn lines_follow_one_another_in_place_of_what_was_there() {
        let path = path("lines");
        fs::write(&path, "something that is longer than what follows").expect("it can be made");
        let output = Output::open(&path).expect("it is there");
        assert!(!output.is_stdout());
        let mut lines = output.lines().expect("it can");
        assert!(lines.write("one\n").expect("it can") && lines.write("two\n").expect("it can"));
        drop(lines);
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "one\ntwo\n");
        fs::remove_file(path).expect("it is there");
    }
}
