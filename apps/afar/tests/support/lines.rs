//! Command lines of documents, run as they are written: in an empty directory with what documents
//! name, and with addresses and a drive that machines of readers have.
//!
//! Each command of afar must end by itself with status 0, wherever it is in its line. One of
//! [`GO_ON`] may be interrupted, as by Ctrl-C; one of the background ends with its document.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Ended, Launch, program, scratch};

/// What lines need besides afar.
pub(crate) const TOOLS: [&str; 6] = ["bash", "timeout", "unshare", "ip", "redis-server", "jq"];
/// How long a command of the foreground may take that ends by itself; the rest are interrupted.
const LIMIT: Duration = Duration::from_secs(150);
const WATCHED: Duration = Duration::from_secs(8);
/// Parts of command lines that go on for longer than a reader would watch, and why.
const GO_ON: [(&str, &str); 16] = [
    ("afar sweep ", "minutes to hours of runs"),
    ("afar loop ", "a run and a simulation for each round"),
    ("afar reproduce ", "up to two minutes of runs"),
    ("afar run --validate ", "21 runs"),
    ("afar watch ", "until Ctrl-C"),
    ("afar top ", "until Ctrl-C"),
    ("afar torture ", "up to minutes, for targets that let go slowly"),
    ("afar bench memory:1GiB --sweep", "a minute of rates"),
    ("?readonly' nvme", "a minute of runs"),
    ("--duration 60s", "a minute"),
    ("--job examples/bench", "half a minute"),
    ("--load 80%", "144 hosts, in a build for tests"),
    ("--topology fat-tree", "1024 hosts, in a build for tests"),
    ("--sensitivity", "a run for each half and each double"),
    ("examples/sim/transports.toml", "12 simulations"),
    ("--synthetic 10000", "10,000 tenants, in a build for tests"),
];
/// How long all lines of a document may take: its interrupted commands may need a while to end.
const LIMIT_OF_ALL: Duration = Duration::from_secs(600);
/// What documents write outside of the directory.
const OUTSIDE: [&str; 5] =
    ["/mnt/flash", "/mnt/paths", "/var/tmp/store", "/var/tmp/disk.img", "/var/tmp/drive.img"];
/// With what a block of commands begins but for `afar`; others are output, or files.
const BEGINNINGS: [&str; 7] =
    ["sudo ", "redis-server ", "taskset ", "NQN=$(afar ", "dd ", "mkdir ", "printf "];

/// A line that does not run here.
pub(crate) struct Exception {
    /// What is in the line.
    pub(crate) part: &'static str,
    pub(crate) why: &'static str,
}

impl Exception {
    fn is_of(all: &[Self], line: &str) -> bool {
        all.iter().any(|row| line.contains(row.part))
    }
}

/// The lines of each block that calls afar; continued lines are one.
pub(crate) fn blocks(text: &str) -> Vec<Vec<String>> {
    let parts = text.split("```").skip(1).step_by(2);
    // What follows a fence is the language.
    let inner = parts.filter_map(|part| part.split_once('\n')).map(|(_, lines)| lines);
    let joined = inner.map(|lines| lines.replace("\\\n", " "));
    let split = joined.map(|lines| {
        let lines = lines.lines().filter(|line| !line.trim().is_empty());
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    split.filter(|lines| is_ours(lines)).collect()
}

fn is_ours(lines: &[String]) -> bool {
    let is_command = |line: &String| match line.starts_with("afar ") {
        // What afar prints may begin so, too.
        true => calls_afar(line) && !line.split_whitespace().any(|word| word.ends_with(':')),
        false => BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)),
    };
    let begins = lines.first().is_some_and(is_command);
    begins && lines.iter().any(|line| calls_afar(line))
}

fn calls_afar(line: &str) -> bool {
    let line = line.replace("$(", " ");
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_name = |word: &str| word.chars().all(|letter| letter.is_ascii_lowercase());
    words.windows(2).any(|pair| pair[0] == "afar" && is_name(pair[1]))
}

/// A machine of a reader: removed when dropped.
pub(crate) struct Desk {
    directory: PathBuf,
    /// Of [`OUTSIDE`], those that were not there before.
    new: Vec<&'static str>,
}

impl Desk {
    /// An empty directory with the examples, `./program`, and `afar` and `sudo` on PATH.
    pub(crate) fn new(name: &str) -> Self {
        let directory = scratch(&format!("desk-{name}"));
        let _old = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("home")).expect("there is room for it");
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .args([home.join("examples"), directory.clone()])
            .status();
        assert!(copied.expect("cp is there").success());
        fs::copy(program("reads"), directory.join("program")).expect("there is room for it");
        let new = OUTSIDE.into_iter().filter(|path| !Path::new(path).exists()).collect();
        let desk = Self { directory, new };
        desk.executable("sudo", "exec \"$@\"\n");
        desk.executable("sleep", SLEEP);
        desk.executable("afar", &desk.wrapped());
        desk
    }

    fn executable(&self, name: &str, text: &str) {
        let path = self.directory.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}")).expect("there is room for it");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).expect("the file is ours");
    }

    fn failed(&self) -> PathBuf {
        self.directory.join("failed")
    }

    // A command of the background is the process that the shell knows. In the foreground, what
    // fails within a line is noted, too.
    fn wrapped(&self) -> String {
        let afar = env!("CARGO_BIN_EXE_afar");
        let [limit, watched] = [LIMIT, WATCHED].map(|limit| limit.as_secs());
        let failed = self.failed();
        format!(
            "limit={limit}\n\
             case $AFAR_LINE in background) exec {afar} \"$@\" ;; 130) limit={watched} ;; esac\n\
             timeout --preserve-status --kill-after=30 --signal=INT $limit {afar} \"$@\"\n\
             status=$?\n\
             case $status in 0 | $AFAR_LINE) ;; \
             *) echo \"$status: afar $*\" >>{} ;; esac\n\
             exit $status\n",
            failed.display()
        )
    }

    /// Runs lines in one shell, one after another; the first that fails ends it. Returns how many
    /// ran, which is all but the exceptions.
    #[track_caller]
    pub(crate) fn run(&self, lines: &[String], exceptions: &[Exception], what: &str) -> usize {
        let ended = self.launch(&script(lines, exceptions)).run();
        let last = ended.stderr.rsplit("+++ ").next().unwrap_or_default();
        let last = format!("{what}: {last}");
        let ended: Ended = ended.expect(0, &last);
        ended.leaves_nothing(what);
        let failed = fs::read_to_string(self.failed()).unwrap_or_default();
        assert_eq!(failed, "", "{what}: {}", ended.stderr);
        let ran = ended.stderr.lines().filter(|line| line.starts_with("+++ ")).count();
        let left = lines.iter().filter(|line| Exception::is_of(exceptions, line));
        assert_eq!(ran + left.count(), lines.len(), "{what}: {}", ended.stderr);
        ran
    }

    fn launch(&self, script: &str) -> Launch {
        let drive = if script.contains("/dev/nvme0n1") { DRIVE } else { "" };
        let text = format!("cd {}\n{NETWORK}{drive}{script}", self.directory.display());
        let launch = Launch::new(["unshare", "--mount", "--net", "bash", "-uc", &text]);
        let path = std::env::var("PATH").unwrap_or_default();
        let launch = launch.env("PATH", format!("{}:{path}", self.directory.display()));
        launch.env("HOME", self.directory.join("home")).limit(LIMIT_OF_ALL)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        for path in &self.new {
            let _none = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
        }
        let _left = fs::remove_dir_all(&self.directory);
    }
}

/// Addresses of documents are this machine. Jobs are as those of a terminal.
const NETWORK: &str = "\
ip link set lo up
for address in 10.0.0.2 10.0.0.3 10.0.1.2; do ip address add $address/32 dev lo; done
set -m
";

/// Readers wait as long as it takes until what they have started listens, also on a busy machine.
const SLEEP: &str = "\
/bin/sleep $1
[ -n \"${AFAR_SERVES:-}\" ] || exit 0
for _ in $(seq 120); do grep -q ' 0A ' /proc/net/tcp && exit 0; /bin/sleep 0.5; done
";

/// A drive with nobody's data, which only these lines see.
const DRIVE: &str = "\
set -e
mkdir -p dev
mount -t tmpfs -o mode=755 none dev
for each in /dev/*; do
  if [ -d $each ] && [ ! -L $each ]; then mkdir dev/${each##*/}; mount --rbind $each dev/${each##*/}
  else cp -a $each dev/; fi
done
head -c 67108864 /dev/urandom >drive
rm -f dev/nvme0n1
: >dev/nvme0n1
mount --bind drive dev/nvme0n1
mount --rbind dev /dev
set +e
";

fn goes_on(line: &str) -> bool {
    GO_ON.iter().any(|(part, _)| line.contains(part))
}

fn script(lines: &[String], exceptions: &[Exception]) -> String {
    let mut text = "judge() { case $1 in 0 | $AFAR_LINE) ;; *) exit 77 ;; esac; }\n\
         trap 'for job in $(jobs -p | tac); do kill -TERM $job; wait $job; done' EXIT\n"
        .to_owned();
    for line in lines {
        let command = line.split("  # ").next().unwrap_or(line).trim();
        let shown = command.replace('\'', "'\\''");
        let is_background = command.ends_with('&');
        if Exception::is_of(exceptions, line) {
            continue;
        }
        let (how, judge) = match (is_background, goes_on(line)) {
            (true, _) if line.contains("serve") => ("background", "export AFAR_SERVES=yes\n"),
            (true, _) => ("background", ""),
            (false, true) => ("130", "judge $?\n"),
            (false, false) => ("0", "judge $?\n"),
        };
        let _infallible =
            writeln!(text, "echo '+++ {shown}' >&2\nexport AFAR_LINE={how}\n{command}\n{judge}");
    }
    text
}
