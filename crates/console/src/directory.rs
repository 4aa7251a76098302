//! A directory for results, which is gone again if nothing was written into it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::OutputError;

/// A directory that was made for results, or was there before. While a command goes on it keeps
/// this: a command that fails before it has written anything leaves no empty directory.
#[must_use = "what was made for results is removed with this if it is empty"]
#[derive(Debug)]
pub struct Directory {
    /// What this has made, the innermost first.
    made: Vec<PathBuf>,
}

impl Directory {
    /// Makes what is missing of `path`.
    ///
    /// # Errors
    /// When it cannot be made, or is no directory.
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
            // What has something in it stays, and so does what it is in.
            if fs::remove_dir(path).is_err() {
                return;
            }
        }
    }
}

impl OutputError {
    /// A directory that cannot be made.
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
