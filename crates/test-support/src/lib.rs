//! What tests of several crates share: a report of tests that did not run, recorded bytes of other
//! programs, and directories that are removed with their test.
//!
//! Only `[dev-dependencies]` may name this crate.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The file to which [`skip`] appends, since cargo hides what passing tests print.
pub const SKIP_LOG: &str = "AFAR_SKIP_LOG";

/// Prints, in one line, that `test` did not run, and why.
///
/// `scripts/test` lists these lines at its end. With `AFAR_FORBID_SKIPS=1` they are failures.
///
/// # Panics
/// When the log of skipped tests cannot be written to: a test that did not run must be seen.
#[expect(clippy::print_stdout, reason = "the convention for skipped tests")]
pub fn skip(test: &str, reason: &str) {
    let line = skip_line(test, reason);
    print!("{line}");
    if let Some(path) = std::env::var_os(SKIP_LOG) {
        append(Path::new(&path), &line).expect("the log of skipped tests can be written to");
    }
}

/// The line about a skipped test.
fn skip_line(test: &str, reason: &str) -> String {
    let reason: Vec<&str> = reason.split_whitespace().collect();
    format!("SKIPPED {test}: {}\n", reason.join(" "))
}

// Appends a line by a single write, since other tests append, too.
fn append(path: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

/// Parses recorded bytes: a line with their number, then the lines of 16 bytes that are not all
/// zeros, each with its offset.
///
/// ```
/// let bytes = test_support::read_hex("bytes 18\n0010 00ff\n");
/// assert_eq!((bytes.len(), bytes[17]), (18, 255));
/// ```
///
/// # Panics
/// If the text has another form.
#[must_use]
pub fn read_hex(text: &str) -> Vec<u8> {
    let mut lines = text.lines();
    let count = lines.next().and_then(|line| line.strip_prefix("bytes ")).expect("a length");
    let mut data = vec![0; count.parse().expect("a number")];
    for line in lines {
        let (at, digits) = line.split_once(' ').expect("a place, and what is there");
        let at = usize::from_str_radix(at, 16).expect("a place");
        for (place, pair) in data[at..].iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = str::from_utf8(pair).expect("digits");
            *place = u8::from_str_radix(pair, 16).expect("digits");
        }
    }
    data
}

/// A free port of the loopback interface, below those that the kernel assigns by itself: a process
/// that is started with it finds it free, whatever other tests do meanwhile.
///
/// # Panics
/// If no such port is free.
#[must_use]
pub fn free_port() -> u16 {
    // Below the ports that the kernel assigns (net.ipv4.ip_local_port_range), and different for
    // each process.
    const PORTS: std::ops::Range<u32> = 10_000..32_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id().wrapping_mul(61);
    let count = PORTS.end - PORTS.start;
    let any = (0..count).find_map(|_| {
        let place = own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % count;
        let port = u16::try_from(PORTS.start + place).ok()?;
        std::net::TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
    });
    any.expect("a port is free")
}

/// An empty directory of its own, removed when dropped. It derefs to its path.
///
/// ```
/// let scratch = test_support::Scratch::new("example");
/// let path = scratch.file("list.csv", "1,2\n");
/// drop(scratch);
/// assert!(!path.exists());
/// ```
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates it in the directory for temporary files; its name has `name` and the process id.
    ///
    /// # Panics
    /// When there is no room for temporary files.
    #[must_use]
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("afar-{name}-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Self { path },
                // Left by a killed process with the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into the directory. Returns its path.
    ///
    /// # Panics
    /// When there is no room for temporary files.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.path);
    }
}

thread_local! {
    static OF_THIS_TEST: Scratch = Scratch::new("test");
}

/// A path in the running test's own directory, which is removed when the test ends.
///
/// Each thread has its own directory. In threads that a test starts, and for what outlives a test
/// (a `static`), use [`Scratch`].
///
/// # Panics
/// If there is no room for temporary files.
#[must_use]
pub fn scratch(name: impl AsRef<Path>) -> PathBuf {
    OF_THIS_TEST.with(|scratch| scratch.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_one_line() {
        assert_eq!(skip_line("a::b", " no\n  root \n"), "SKIPPED a::b: no root\n");
    }

    #[test]
    fn skips_are_appended() {
        let log = scratch("skips");
        append(&log, "one\n").unwrap();
        append(&log, "two\n").unwrap();
        assert_eq!(fs::read_to_string(log).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_scratch_directory_goes_with_all_that_is_in_it() {
        let (one, other) = (Scratch::new("same"), Scratch::new("same"));
        assert_ne!(one.path(), other.path());
        fs::create_dir(one.join("deep")).unwrap();
        let file = one.file("deep/file", "text");
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        drop(one);
        assert!(!file.exists() && other.path().exists());
    }

    #[test]
    fn each_test_has_a_directory_that_goes_with_it() {
        let here = scratch("a");
        assert_eq!(here, scratch("a"));
        let of_another = || {
            let path = scratch("a");
            fs::write(&path, "text").unwrap();
            path
        };
        let there = std::thread::spawn(of_another).join().unwrap();
        assert_ne!(here, there);
        assert!(!there.parent().unwrap().exists() && here.parent().unwrap().exists());
        let failing = std::thread::spawn(|| -> () { panic!("{}", scratch("a").display()) });
        let path = failing.join().unwrap_err().downcast::<String>().unwrap();
        assert!(!Path::new(path.as_str()).parent().unwrap().exists());
    }
}
