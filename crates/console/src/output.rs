//! Files for results, opened before the program starts so that no run is lost to a typing error.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Class, Classed, Failure, speech, terminal};

/// Why a result was not written to a file.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file cannot be opened, before the command has started anything.
    #[error("open {} for writing: {source}; {}", path.display(), remedy(path, source))]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Of a directory, before the command started anything.
    #[error("make the directory {}: {source}; {}", path.display(), elsewhere(source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Standard output has another answer already.
    #[error("two answers would be written to standard output; give one of them a file")]
    Taken,
    /// Writing failed, after a run.
    #[error("write {}: {source}; check the space left on its disk", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl OutputError {
    /// The error of a path that cannot be opened for writing.
    #[must_use]
    pub fn open(path: &Path, source: io::Error) -> Self {
        Self::Open { path: path.to_owned(), source }
    }
}

impl Classed for OutputError {
    fn class(&self) -> Class {
        match self {
            Self::Open { .. } | Self::Directory { .. } | Self::Taken => Class::Usage,
            Self::Write { .. } => Class::Ours,
        }
    }
}

/// Where a directory can be made.
fn elsewhere(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "give a directory, or a name that nothing has yet"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or give another place"
        }
        _ => "give a place where you may write",
    }
}

/// What lets a path be written.
fn remedy(path: &Path, source: &io::Error) -> String {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    match (source.kind(), directory) {
        (io::ErrorKind::IsADirectory, _) => "give the name of a file in it".to_owned(),
        (io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory, _) => {
            "give a directory, or a name that nothing has yet".to_owned()
        }
        (io::ErrorKind::NotFound, Some(directory)) => {
            format!("make its directory first: mkdir -p {}", directory.display())
        }
        (io::ErrorKind::PermissionDenied, _) => "give a place where you may write".to_owned(),
        (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => {
            "make room there, or give another place".to_owned()
        }
        _ => "check the path and its permissions".to_owned(),
    }
}

/// The destination of a text.
///
/// A file has either the whole text or its old contents: a text is written beside it and then
/// renamed (rename(2)), so that a command that is interrupted or killed leaves neither an empty
/// file nor half of a text.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    place: Place,
}

/// Whether an open `Output` is standard output.
static TAKEN: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
enum Place {
    Stdout,
    /// A file that replaces an old one; the permissions of the old one, if there is one.
    Renamed {
        kept: Option<fs::Permissions>,
    },
    /// What cannot be replaced, such as a pipe, or a file in a directory without write permission.
    There(File),
}

/// The destination of lines, one after the other.
#[derive(Debug)]
pub struct Lines {
    output: Output,
    /// `None` for standard output.
    file: Option<File>,
}

impl Output {
    /// Opens `path` for writing; `-` is standard output.
    ///
    /// # Errors
    /// If the file cannot be opened, or standard output is taken.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            if TAKEN.swap(true, Ordering::Relaxed) {
                return Err(OutputError::Taken.into());
            }
            return Ok(Self { path: path.to_owned(), place: Place::Stdout });
        }
        // The target of a link is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let place = Place::of(&path).map_err(|source| OutputError::open(&path, source))?;
        Ok(Self { path, place })
    }

    /// As [`Output::open`], if there is a path.
    ///
    /// # Errors
    /// As [`Output::open`].
    pub fn wanted(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        path.map(Self::open).transpose()
    }

    /// Whether the destination is standard output.
    #[must_use]
    pub const fn is_stdout(&self) -> bool {
        matches!(self.place, Place::Stdout)
    }

    /// Writes the text in place of the old contents.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        self.write_bytes(text.as_bytes())
    }

    /// As [`Output::write`], for bytes.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn write_bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &self.place {
            Place::Stdout => return terminal::answer(&String::from_utf8_lossy(bytes)),
            Place::Renamed { kept } => replace(&self.path, bytes, kept.as_ref()),
            Place::There(file) => overwrite(file, bytes),
        };
        written.map_err(|source| self.failed(source))?;
        terminal::detail(|| format!("wrote {}, {} bytes", self.path.display(), bytes.len()));
        Ok(())
    }

    /// The error of a write.
    fn failed(&self, source: io::Error) -> Failure {
        OutputError::Write { path: self.path.clone(), source }.into()
    }

    /// Empties the file, to be written line by line.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn lines(self) -> Result<Lines, Failure> {
        let file = match &self.place {
            Place::Stdout => None,
            Place::Renamed { .. } => Some(File::create(&self.path)),
            Place::There(file) => Some(empty(file).and_then(|()| file.try_clone())),
        };
        let file = file.transpose().map_err(|source| self.failed(source))?;
        Ok(Lines { output: self, file })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_stdout() {
            TAKEN.store(false, Ordering::Relaxed);
        }
    }
}

impl Place {
    /// How a path can be written to. A file that this creates is removed again.
    fn of(path: &Path) -> io::Result<Self> {
        let opened = File::options().write(true).create_new(true).open(path);
        match opened {
            Ok(_) => fs::remove_file(path).map(|()| Self::Renamed { kept: None }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Not truncated: if the run fails, the old contents stay.
                let file = File::options().write(true).open(path)?;
                let metadata = file.metadata()?;
                let can_rename = metadata.is_file()
                    && beside(path).is_ok_and(|name| {
                        let made = File::options().write(true).create_new(true).open(&name);
                        made.is_ok() && fs::remove_file(name).is_ok()
                    });
                Ok(match can_rename {
                    true => Self::Renamed { kept: Some(metadata.permissions()) },
                    false => Self::There(file),
                })
            }
            Err(error) => Err(error),
        }
    }
}

impl Lines {
    /// Writes a line that ends with a line feed. Returns whether a reader is left for the next one.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn write(&mut self, line: &str) -> Result<bool, Failure> {
        match &mut self.file {
            None => terminal::show(line),
            Some(file) => {
                let written = file.write_all(line.as_bytes());
                written.map(|()| true).map_err(|source| self.output.failed(source))
            }
        }
    }
}

/// A form of an answer: its destination, if it is wanted, and the function that makes it.
pub type Form<'a> = (Option<Output>, &'a dyn Fn() -> String);

/// Writes an answer in the forms that are wanted. Also prints it as `text`, unless a form was
/// written to standard output, or to a file with `--quiet`.
///
/// # Errors
/// When one of them cannot be written to.
pub fn answer(text: impl FnOnce() -> String, forms: Vec<Form<'_>>) -> Result<(), Failure> {
    let wanted = forms.into_iter().filter_map(|(to, make)| Some((to?, make)));
    answer_bytes(text, wanted.map(|(to, make)| (to, make().into_bytes())).collect())
}

/// As [`answer`], with files as bytes.
///
/// # Errors
/// As [`answer`].
pub fn answer_bytes(
    text: impl FnOnce() -> String,
    files: Vec<(Output, Vec<u8>)>,
) -> Result<(), Failure> {
    let is_told = is_told(&files.iter().map(|(to, _)| to).collect::<Vec<_>>(), speech::is_quiet());
    for (to, bytes) in files {
        to.write_bytes(&bytes)?;
    }
    if is_told { terminal::answer(&text()) } else { Ok(()) }
}

/// Whether an answer that is written to `places` is also printed as text.
fn is_told(places: &[&Output], is_quiet: bool) -> bool {
    let is_answered = places.iter().any(|place| place.is_stdout());
    !is_answered && (places.is_empty() || !is_quiet)
}

/// The temporary name of a file that will be renamed to `path`.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    Ok(path.with_file_name(format!(".{name}.afar-{}", std::process::id())))
}

/// Writes a file beside `path` and renames it, with the permissions of the old one.
fn replace(path: &Path, bytes: &[u8], kept: Option<&fs::Permissions>) -> io::Result<()> {
    let name = beside(path)?;
    let written = fs::write(&name, bytes).and_then(|()| {
        if let Some(kept) = kept {
            fs::set_permissions(&name, kept.clone())?;
        }
        fs::rename(&name, path)
    });
    if written.is_err() {
        let _gone = fs::remove_file(&name);
    }
    written
}

/// Writes `bytes` in place of a file's contents.
fn overwrite(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    empty(file)?;
    file.write_all(bytes)
}

// Empties a file; pipes and terminals have no length.
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
        let opened = Output::open(&path).expect("it can be made");
        // Whoever is killed now has left nothing.
        assert!(!path.exists());
        drop(opened);
        assert!(!path.exists());
        Output::open(&path).expect("it can be made").write("first\n").expect("it can");
        drop(Output::open(&path).expect("it is there"));
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "first\n");
        Output::open(&path).expect("it is there").write("2\n").expect("it can");
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "2\n");
        fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn a_text_is_there_as_a_whole_or_not_at_all() {
        use std::io::Read as _;
        use std::os::unix::fs::PermissionsExt as _;

        let (path, link) = (path("whole"), path("link"));
        fs::write(&path, "before\n").expect("it can be made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        std::os::unix::fs::symlink(&path, &link).expect("it can be made");
        let mut reader = File::open(&path).expect("it is there");
        Output::open(&link).expect("it is there").write("after\n").expect("it can");
        let mut seen = String::new();
        reader.read_to_string(&mut seen).expect("it is open");
        assert_eq!(seen, "before\n", "who reads the old text reads all of it");
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "after\n");
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        let directory = path.parent().expect("it has one");
        let name = beside(&path).expect("a name");
        assert!(name.starts_with(directory) && !name.exists());
        for path in [link, path] {
            fs::remove_file(path).expect("it is there");
        }
    }

    #[test]
    fn what_is_no_file_is_written_in_place() {
        let output = Output::open(Path::new("/dev/full")).expect("it is there");
        let error = output.write("x").expect_err("it is full").to_string();
        assert!(error.starts_with("write /dev/full: "), "{error}");
        Output::open(Path::new("/dev/null")).expect("it is there").write("x").expect("it can");
        let error = Output::open(Path::new("/no/such/file")).expect_err("no directory").to_string();
        assert!(error.starts_with("open /no/such/file for writing: "), "{error}");
    }

    #[test]
    fn standard_output_has_one_answer_and_the_quiet_hear_it_once() {
        let stdout = Output::open(Path::new("-")).expect("it is free");
        let error = Output::open(Path::new("-")).expect_err("it is taken").to_string();
        assert!(error.contains("give one of them a file"), "{error}");
        let file = Output::open(Path::new("/dev/null")).expect("it is there");
        let told = |places: &[&Output]| [false, true].map(|quiet| is_told(places, quiet));
        assert_eq!(told(&[]), [true, true], "nothing else was asked for");
        assert_eq!(told(&[&file]), [true, false]);
        assert_eq!(told(&[&file, &stdout]), [false, false]);
        drop(stdout);
        drop(Output::open(Path::new("-")).expect("it is free again"));
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
