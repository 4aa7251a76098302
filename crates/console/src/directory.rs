//! A directory for results, which is removed again if nothing was written into it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::OutputError;

/// A directory for results, created if missing. Dropping this removes created directories that are
/// empty: a command that fails before it has written anything leaves none.
#[must_use = "what was made for results is removed with this if it is empty"]
#[derive(Debug)]
pub struct Directory {
    /// Directories that this has created, the innermost first.
    made: Vec<PathBuf>,
}

impl Directory {
    /// Creates the directory `path`, and missing parents.
    ///
    /// # Errors
    /// When a directory cannot be created, or `path` is none.
    pub fn make(path: &Path) -> Result<Self, OutputError> {
        let missing = |one: &&Path| !one.as_os_str().is_empty() && !one.exists();
        let made = path.ancestors().take_while(missing).map(Path::to_owned).collect();
        let this = Self { made };
        match fs::create_dir_all(path) {
            Ok(()) => Ok(this),
            Err(source) => Err(OutputError::directory(path, source)),
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        for path in &self.made {
            // A directory that is not empty stays, and so do its parents.
            if fs::remove_dir(path).is_err() {
                return;
            }
        }
    }
}

impl OutputError {
    /// The error that a directory cannot be created.
    fn directory(path: &Path, source: io::Error) -> Self {
        Self::Directory { path: path.to_owned(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_directory_goes_with_who_made_it() {
        let home = std::env::temp_dir().join(format!("afar-directory-{}", std::process::id()));
        let deep = home.join("a/b");
        drop(Directory::make(&deep).expect("it can be made"));
        assert!(!home.exists(), "all that was made is gone");
        let outer = Directory::make(&home).expect("it can be made");
        let inner = Directory::make(&deep).expect("it can be made");
        fs::write(home.join("a/file"), "x").expect("there is room");
        drop(inner);
        assert!(!deep.exists() && home.join("a/file").exists());
        drop(outer);
        assert!(home.join("a/file").exists(), "what was written stays");
        drop(Directory::make(&home).expect("it is there"));
        assert!(home.exists(), "it was there before");
        fs::remove_dir_all(&home).expect("it is ours");
        let error = Directory::make(Path::new("/dev/null/x")).expect_err("it is a file");
        assert!(error.to_string().starts_with("make the directory /dev/null/x: "), "{error}");
    }
}
