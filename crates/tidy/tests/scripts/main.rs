//! What `scripts/claims` and `scripts/flaky` promise, tried in repositories made for it.

mod claims;
mod flaky;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use test_support::{Scratch, skip};

/// What no step here takes, even on a machine with other work.
const LIMIT: Duration = Duration::from_secs(60);

/// A repository with two crates and a copy of one of our scripts.
struct Repository {
    directory: Scratch,
    script: &'static str,
}

impl Repository {
    /// `None`, loudly, where the script cannot work.
    fn new(test: &str, script: &'static str) -> Option<Self> {
        for (program, probe) in [("python3", "import tomllib"), ("git", "")] {
            let mut command = Command::new(program);
            command.args(if probe.is_empty() { vec!["--version"] } else { vec!["-c", probe] });
            if !command.output().is_ok_and(|output| output.status.success()) {
                skip(test, &format!("needs {program} {probe}"));
                return None;
            }
        }
        let repository = Self { directory: Scratch::new("repository"), script };
        for directory in ["scripts", "crates/one", "crates/other"] {
            fs::create_dir_all(repository.directory.join(directory)).expect("there is room");
        }
        for name in ["one", "other"] {
            let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n");
            repository.write(&format!("crates/{name}/Cargo.toml"), &manifest);
        }
        repository.write(".gitignore", "/target\n");
        let ours = root().join("scripts").join(script);
        fs::copy(ours, repository.directory.join("scripts").join(script)).expect("it is there");
        repository.git(&["init", "--quiet"]);
        Some(repository)
    }

    fn write(&self, path: &str, text: &str) {
        self.directory.file(path, text);
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.directory.join(path)).unwrap_or_default()
    }

    fn exists(&self, path: &str) -> bool {
        self.directory.join(path).exists()
    }

    fn git(&self, words: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a", "-c", "commit.gpgsign=false"]);
        let output =
            command.args(words).current_dir(self.directory.path()).env_remove("GIT_DIR").output();
        let output = output.expect("git is there");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "a"]);
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.directory.join("scripts").join(self.script));
        // They would name another repository, in a git hook, or our own target.
        command.args(words).stdin(Stdio::null());
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "CARGO_TARGET_DIR"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("it can be executed")
    }

    /// Runs it, and answers with what it printed if it ended with this status.
    #[track_caller]
    fn expect(&self, words: &[&str], status: i32) -> String {
        let output = self.run(words);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        said
    }

    fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it can be executed")
    }

    /// Waits until a file is there and has something in it.
    #[track_caller]
    fn wait_for(&self, path: &str) -> String {
        wait_until(|| !self.read(path).is_empty(), path);
        self.read(path)
    }
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/tidy lies two levels below the root").to_owned()
}

#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(signal: &str, child: &Child) {
    let mut command = Command::new("kill");
    let sent = command.args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill(1) is there").success());
}

/// Whether the process whose number is in this text is still there, and not a zombie.
fn is_running(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
