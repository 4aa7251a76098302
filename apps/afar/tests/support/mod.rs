//! Running programs natively and under afar, never longer than they may take, leaving nothing
//! behind.
#![allow(dead_code, reason = "every test file uses its part of this")]

mod covered;
pub(crate) mod iscsi;
pub(crate) mod lines;
pub(crate) mod lock;
mod ready;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lock::lock_directory;
pub(crate) use test_support::skip;

pub(crate) const TRAPS: [&str; 2] = ["bpf", "userfaultfd"];

// Processes of a run are known by this variable of their environment.
const MARK: &str = "AFAR_TEST_RUN";
const POLL: Duration = Duration::from_millis(5);

/// A command to run: natively, or behind [`Launch::under_afar`].
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Option<PathBuf>,
    limit: Duration,
    mark: String,
    /// Where afar writes the record of the run.
    record: Option<PathBuf>,
    /// Why the test says something although memory stayed local.
    exception: Option<&'static str>,
}

impl Launch {
    pub(crate) fn new<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            words: words.into_iter().map(|w| w.as_ref().to_owned()).collect(),
            environment: vec![("AFAR_LOCK_DIR".into(), lock_directory(number).into())],
            stdin: None,
            limit: Duration::from_secs(180),
            mark: format!("{}.{number}", std::process::id()),
            record: None,
            exception: None,
        }
    }

    /// The test says something although not all of the program is managed, for this reason.
    pub(crate) fn unmanaged(mut self, reason: &'static str) -> Self {
        self.exception = Some(reason);
        self
    }

    /// The same command under `afar run` with `flags`. At its end its record is looked at: the
    /// program's memory must have been managed, unless [`Launch::unmanaged`] says why not.
    pub(crate) fn under_afar(&self, flags: &[&str]) -> Self {
        let afar = [env!("CARGO_BIN_EXE_afar"), "run", "--quiet"];
        let words = afar.iter().chain(flags).map(OsString::from);
        let mut launch = Self::new(words);
        let given = flags.iter().position(|&flag| flag == "--json").map(|at| flags[at + 1]);
        let record = given.map_or_else(|| launch.own_record(), PathBuf::from);
        let own = ["--json".into(), record.clone().into_os_string()];
        launch.words.extend(own.into_iter().filter(|_| given.is_none()));
        launch.words.extend(self.exception.map(|_| "--allow-unmanaged".into()));
        launch.words.push("--".into());
        launch.words.extend(self.words.iter().cloned());
        launch.record = Some(record);
        launch.exception = self.exception;
        launch.environment.clone_from(&self.environment);
        launch.stdin.clone_from(&self.stdin);
        launch.limit = self.limit;
        if let Some(at) = flags.iter().position(|&flag| flag == "--trap") {
            launch = launch.env("AFAR_TEST_TRAP", flags[at + 1]);
        }
        launch
    }

    /// As [`Launch::under_afar`], as an ordinary user whose only right is to `/dev/userfaultfd`.
    /// The device that this user sees is one of its own, in a mount namespace.
    pub(crate) fn as_ordinary_user(&self, flags: &[&str]) -> Self {
        let flags: Vec<&str> = ["--trap", "userfaultfd"].iter().chain(flags).copied().collect();
        let mut launch = self.under_afar(&flags);
        let (afar, device) = ordinary_user_paths();
        launch.words[0] = afar.into();
        let wrapper = ["unshare", "--mount", "sh", "-c", ORDINARY_USER, "sh"];
        let wrapper = wrapper.iter().map(OsString::from).chain([device.into()]);
        launch.words = wrapper.chain(std::mem::take(&mut launch.words)).collect();
        launch
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().into()));
        self
    }

    pub(crate) fn stdin(mut self, path: &Path) -> Self {
        self.stdin = Some(path.to_owned());
        self
    }

    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts it in a process group of its own, with the signals of a terminal as a shell leaves
    /// them: who runs the tests in the background may ignore them.
    pub(crate) fn start(self) -> Running {
        self.empty_record();
        let (out, err) = (self.file("out"), self.file("err"));
        let mut command = Command::new("env");
        command
            .arg("--default-signal=INT,QUIT")
            .args(&self.words)
            .env("TMPDIR", env!("CARGO_TARGET_TMPDIR"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env(MARK, &self.mark)
            .stdin(self.stdin.as_ref().map_or_else(Stdio::null, |path| {
                File::open(path).expect("the input exists").into()
            }))
            .stdout(File::create(&out).expect("the target directory can be written to"))
            .stderr(File::create(&err).expect("the target directory can be written to"))
            .process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.words));
        Running { launch: self, child, out, err, ended: false }
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Ended {
        self.start().wait()
    }

    fn own_record(&self) -> PathBuf {
        open_scratch(&format!("{}.json", self.mark))
    }

    // What an earlier run has said is not about this one; and everybody may write to it.
    fn empty_record(&self) {
        use std::os::unix::fs::PermissionsExt as _;
        let Some(record) = &self.record else { return };
        File::create(record).expect("there is room for temporary files");
        let everybody = fs::Permissions::from_mode(0o666);
        fs::set_permissions(record, everybody).expect("it is ours");
    }

    fn file(&self, kind: &str) -> PathBuf {
        scratch(&format!("{}.{kind}", self.mark))
    }
}

/// A command that has been started. Dropping it kills whatever is left of it.
pub(crate) struct Running {
    launch: Launch,
    child: Child,
    out: PathBuf,
    err: PathBuf,
    ended: bool,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process alone.
    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, &self.child.id().to_string());
    }

    /// Sends a signal to the process group, as a terminal does.
    pub(crate) fn signal_group(&self, signal: &str) {
        kill(signal, &format!("-{}", self.child.id()));
    }

    /// Processes of this run, the started one included.
    pub(crate) fn processes(&self) -> Vec<u32> {
        marked(&self.launch.mark)
    }

    /// Whether the command is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it has printed so far.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap_or_default()).into_owned()
    }

    /// Waits until it has printed `text`, there or as an error.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let start = Instant::now();
        while !self.output().contains(text) && !self.errors().contains(text) {
            assert!(self.is_running(), "ended before it said {text:?}:\n{}", self.errors());
            if start.elapsed() > self.launch.limit {
                self.time_out();
            }
            sleep(POLL);
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                break status;
            }
            if start.elapsed() > self.launch.limit {
                self.time_out();
            }
            sleep(POLL);
        };
        self.ended = true;
        self.check_record(status.code());
        Ended {
            status: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout: fs::read(&self.out).unwrap_or_default(),
            stderr: self.errors(),
            elapsed: start.elapsed(),
            mark: self.launch.mark.clone(),
        }
    }

    // Of a run that afar refused, or that was killed with afar, there is none.
    fn check_record(&self, status: Option<i32>) {
        let Some(record) = self.launch.record.as_ref().filter(|_| self.launch.exception.is_none())
        else {
            return;
        };
        let is_written = fs::metadata(record).is_ok_and(|file| file.len() > 0);
        // One that was ended by a signal may have had no memory yet.
        if status == Some(0) || (is_written && !covered::is_cut_short(record)) {
            covered::check(record, &format!("{:?}", self.launch.words));
        }
    }

    /// What it has said so far on standard error.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap_or_default()).into_owned()
    }

    // Says where everything hangs.
    fn time_out(&self) -> ! {
        let mut report = String::new();
        for pid in self.processes() {
            for task in entries(Path::new(&format!("/proc/{pid}/task"))) {
                let read = |name| fs::read_to_string(task.join(name)).unwrap_or_default();
                let state = read("stat").rsplit(')').next().unwrap_or("").chars().nth(1);
                let state = state.unwrap_or('?');
                let (name, place) = (read("comm"), read("wchan"));
                let task = task.display();
                let _always = writeln!(report, "{task} {} {state} {place}", name.trim());
            }
        }
        panic!(
            "{}: {:?} did not end within {:?}\n{report}{}",
            std::thread::current().name().unwrap_or("a test"),
            self.launch.words,
            self.launch.limit,
            self.errors(),
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.signal_group("KILL");
            for pid in self.processes() {
                kill("KILL", &pid.to_string());
            }
            let _reaped = self.child.wait();
        }
        for path in [&self.out, &self.err, &self.launch.own_record()] {
            let _gone = fs::remove_file(path);
        }
    }
}

/// A command that has ended.
pub(crate) struct Ended {
    /// As a shell says it: 128 and the signal, if one ended it.
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
    mark: String,
}

impl Ended {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    #[track_caller]
    pub(crate) fn expect(self, status: i32, what: &str) -> Self {
        let (err, out) = (&self.stderr, self.text());
        assert_eq!(self.status, status, "status of {what}\n{err}\n{out:.2000}");
        self
    }

    /// Nothing of the run is left on this host.
    #[track_caller]
    pub(crate) fn leaves_nothing(&self, what: &str) {
        let start = Instant::now();
        loop {
            let left = marked(&self.mark);
            if left.is_empty() {
                return;
            }
            if start.elapsed() > Duration::from_secs(5) {
                let names: Vec<_> = left.iter().map(|pid| describe(*pid)).collect();
                left.iter().for_each(|pid| kill("KILL", &pid.to_string()));
                panic!("{what}: processes are left: {names:?}");
            }
            sleep(POLL);
        }
    }
}

/// Compiles `tests/programs/NAME.c`, once; `NAME_static` is the same program without a loader.
pub(crate) fn program(name: &str) -> PathBuf {
    static BUILT: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let path = scratch(name);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if !built.iter().any(|done| done == name) {
        let fresh = scratch(&format!("{name}.{}", std::process::id()));
        let file = name.strip_suffix("_static").unwrap_or(name);
        let linked = (file != name).then_some("-static");
        let status = Command::new("cc")
            .args(["-O1", "-pthread"])
            .args(linked)
            .arg("-o")
            .args([fresh.as_os_str(), source.join(format!("{file}.c")).as_os_str()])
            .status();
        assert!(status.expect("cc is installed").success(), "{name}.c does not compile");
        // Another test program may be running the old one.
        fs::rename(&fresh, &path).expect("both are in the same directory");
        built.push(name.to_owned());
    }
    path
}

// First argument: an empty directory. The rest: what to run.
const ORDINARY_USER: &str = "set -e
    device=$1 && shift
    major=$((0x$(stat -c %t /dev/userfaultfd))) minor=$((0x$(stat -c %T /dev/userfaultfd)))
    mount -t tmpfs -o mode=755 none \"$device\"
    mknod -m 666 \"$device/userfaultfd\" c $major $minor
    mount --bind \"$device/userfaultfd\" /dev/userfaultfd
    exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \"$@\"";

// A copy of afar that everybody may execute, wherever the checkout is, and an empty directory.
fn ordinary_user_paths() -> &'static (PathBuf, PathBuf) {
    static PATHS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    PATHS.get_or_init(|| {
        let (afar, device) = (open_scratch("afar"), open_scratch("device"));
        let fresh = open_scratch(&format!("afar.{}", std::process::id()));
        fs::create_dir_all(&device).expect("there is room for temporary files");
        fs::copy(env!("CARGO_BIN_EXE_afar"), &fresh).expect("there is room for temporary files");
        // Another test program may be running the old one.
        fs::rename(&fresh, &afar).expect("both are in the same directory");
        (afar, device)
    })
}

/// As [`scratch`], where an ordinary user can get at it even if the checkout is out of reach.
pub(crate) fn open_scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join("afar-tests");
    fs::create_dir_all(&directory).expect("there is room for temporary files");
    directory.join(name)
}

/// Whether programs can be run as an ordinary user with access to `/dev/userfaultfd` here. If not,
/// the test is counted as skipped.
pub(crate) fn ordinary_user_usable(test: &str) -> bool {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    let refusal = REFUSAL.get_or_init(|| {
        let ended = nothing().as_ordinary_user(&[]).run();
        (ended.status != 0).then(|| ended.stderr.trim().to_owned())
    });
    if let Some(reason) = refusal {
        skip(&format!("{test} (ordinary user)"), reason);
    }
    refusal.is_none()
}

/// A path in the directory for scratch files.
pub(crate) fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Whether the full sizes are asked for.
pub(crate) fn full() -> bool {
    std::env::var_os("AFAR_TEST_FULL").is_some()
}

/// Shows how far a long test is, to whoever asked for `--nocapture`.
#[expect(clippy::print_stderr, reason = "cargo hides it unless it is asked for")]
pub(crate) fn progress(text: &str) {
    eprintln!("{text}");
}

// A program that ends at once, and has too little memory to say anything.
fn nothing() -> Launch {
    Launch::new(["true"]).unmanaged("it does nothing")
}

/// Whether afar can run a program with this trap here. If not, the test is counted as skipped.
pub(crate) fn usable(trap: &str, test: &str) -> bool {
    static REFUSALS: OnceLock<Vec<Option<String>>> = OnceLock::new();
    let refusals = REFUSALS.get_or_init(|| {
        let probe = |trap: &&str| {
            let ended = nothing().under_afar(&["--trap", trap]).run();
            (ended.status == 3).then(|| ended.stderr.trim().to_owned())
        };
        TRAPS.iter().map(probe).collect()
    });
    let at = TRAPS.iter().position(|&known| known == trap).unwrap_or(0);
    if let Some(reason) = &refusals[at] {
        skip(&format!("{test} ({trap})"), reason);
    }
    refusals[at].is_none()
}

/// Whether afar can run a program under the swap engine here. If not, the test is counted as
/// skipped.
pub(crate) fn swap_usable(test: &str) -> bool {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    let refusal = REFUSAL.get_or_init(|| {
        let ended = nothing().under_afar(&["--engine", "swap"]).run();
        (ended.status == 3).then(|| ended.stderr.trim().to_owned())
    });
    if let Some(reason) = refusal {
        skip(&format!("{test} (swap)"), reason);
    }
    refusal.is_none()
}

/// Whether all of these programs are installed. If not, the test is counted as skipped.
pub(crate) fn installed(programs: &[&str], test: &str) -> bool {
    let is_missing = |name: &&&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
    };
    let missing: Vec<_> = programs.iter().filter(is_missing).collect();
    if !missing.is_empty() {
        skip(test, &format!("not installed: {missing:?}"));
    }
    missing.is_empty()
}

/// Sends a signal to a process, or to a group if the number is negative.
pub(crate) fn kill(signal: &str, target: &str) {
    let mut command = Command::new("/bin/kill");
    command.args(["-s", signal, "--", target]).stderr(Stdio::null());
    let _gone = command.status();
}

pub(crate) fn describe(pid: u32) -> String {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} {}", String::from_utf8_lossy(&command).replace('\0', " "))
}

// Zombies have no environment any more, so they do not count.
fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let is_ours = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let processes = entries(Path::new("/proc")).into_iter().filter_map(number);
    processes.filter(is_ours).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
