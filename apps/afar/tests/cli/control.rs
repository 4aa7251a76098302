//! `afar ctl` against a run.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{AFAR, Scratch, afar, is_root, repairing, skip, stderr, stdout};

/// A run of a program that sleeps; ended with the test.
struct Sleeper {
    afar: Child,
}

impl Sleeper {
    /// None, loudly, where nothing can be run.
    fn start(test: &str, flags: &[&str]) -> Option<Self> {
        let mut command = Command::new(AFAR);
        command.args(["run", "-q", "--no-calibrate"]).args(flags);
        command.args(["--", "timeout", "-s", "KILL", "55", "sleep", "50"]);
        let afar = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut sleeper = Self { afar };
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            if sleeper.ctl(&["show"]).status.success() {
                return Some(sleeper);
            }
            if let Some(status) = sleeper.afar.try_wait().unwrap() {
                assert_eq!(status.code(), Some(3), "it ended early");
                skip(test, "no trap can be used");
                return None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the run does not answer");
    }

    fn pid(&self) -> String {
        self.afar.id().to_string()
    }

    fn ctl(&self, words: &[&str]) -> Output {
        let pid = self.pid();
        afar(["ctl", "--json", "-", &pid].iter().chain(words))
    }

    fn show(&self) -> Value {
        serde_json::from_str(&stdout(&self.ctl(&["show"]))).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // Passed on to the program, so that everything ends.
        let _ended = Command::new("kill").args(["-TERM", &self.pid()]).status();
        let _reaped = self.afar.wait();
    }
}

#[test]
fn show_and_set() {
    let flags = ["--rtt", "10us", "--local", "50%", "--tier", "name=slow,rtt=40us"];
    let Some(run) = Sleeper::start("show_and_set", &flags) else {
        return;
    };
    let state = run.show();
    assert_eq!(state["pid"], run.afar.id());
    assert_eq!(state["program"], "timeout");
    let tier = |state: &Value, index: usize| state["tiers"][index].clone();
    assert_eq!(tier(&state, 0)["name"], "far");
    assert_eq!(tier(&state, 0)["rtt_ns"], 10_000);
    assert_eq!(tier(&state, 1)["rtt_ns"], 40_000);

    let output = run.ctl(&["set", "rtt=25us", "bandwidth=10Gbps", "local=25%"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let state = run.show();
    assert_eq!(tier(&state, 0)["rtt_ns"], 25_000);
    assert_eq!(tier(&state, 0)["bandwidth_bps"], 10_000_000_000_u64);
    assert_eq!(tier(&state, 0)["local"], "25%");
    assert_eq!(tier(&state, 1)["rtt_ns"], 40_000, "the other tier stays");

    let output = run.ctl(&["set", "tier=slow", "rtt=80us", "bandwidth=none"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(tier(&run.show(), 1)["rtt_ns"], 80_000);

    let rows = stdout(&afar(["ctl", "--csv", "-", &run.pid(), "show"]));
    let lines: Vec<&str> = rows.lines().collect();
    assert!(lines[0].starts_with("pid,program,elapsed_ns,"), "{rows}");
    assert_eq!(lines.len(), 3, "a row for each tier: {rows}");
    let head: Vec<&str> = lines[0].split(',').collect();
    let of = |line: &str, name: &str| {
        let at = head.iter().position(|column| *column == name).unwrap();
        line.split(',').nth(at).unwrap().to_owned()
    };
    let told = |line: &str| ["pid", "name", "rtt_ns"].map(|name| of(line, name));
    assert_eq!(told(lines[1]), [run.pid(), "far".to_owned(), "25000".to_owned()]);
    assert_eq!(told(lines[2]), [run.pid(), "slow".to_owned(), "80000".to_owned()]);
}

#[test]
fn what_a_run_refuses_changes_nothing() {
    let Some(run) = Sleeper::start("refuses", &["--rtt", "10us", "--local", "4MiB"]) else {
        return;
    };
    let before = run.show()["tiers"].clone();
    let cases = [
        (&["set", "rtt=5"][..], "rtt=\"5\": a time needs a unit"),
        (&["set", "rtt=20us", "local=0"], "must be more than zero"),
        (&["set", "rtt=20us", "speed=9"], "there is no setting \"speed\""),
        (&["set", "tier=slow", "rtt=5us"], "there is no tier \"slow\" in this run; use far"),
        (&["set"], "there is nothing to set"),
        (&["get"], "is not understood; write list, PID show or PID set SETTING..."),
    ];
    for (words, wanted) in cases {
        let output = run.ctl(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let said = stderr(&output);
        assert!(said.contains(wanted) && said.matches('\n').count() == 1, "{said}");
    }
    assert_eq!(run.show()["tiers"], before);
}

#[test]
fn list_shows_runs() {
    let Some(run) = Sleeper::start("list", &["--rtt", "10us"]) else {
        return;
    };
    let table = stdout(&afar(["ctl"]));
    let line = table.lines().find(|line| line.trim_start().starts_with(&run.pid()));
    assert!(line.is_some_and(|line| line.ends_with("timeout")), "{table}");
    assert!(line.is_some_and(|line| line.contains("10.0 µs")), "{table}");
    let states: Value =
        serde_json::from_str(&stdout(&afar(["ctl", "list", "--json", "-"]))).unwrap();
    let states = states.as_array().unwrap();
    assert!(states.iter().any(|state| state["pid"] == run.afar.id()), "{states:?}");
}

#[test]
fn changes_are_part_of_the_record() {
    let scratch = Scratch::new("cli");
    let json = scratch.join("run.json");
    let path = json.display().to_string();
    let Some(run) = Sleeper::start("changes", &["--json", &path]) else {
        return;
    };
    assert!(run.ctl(&["set", "rtt=30us"]).status.success());
    drop(run);
    let record = std::fs::read_to_string(json).unwrap();
    let run = measure::Run::<measure::RunResults>::from_json(&record).unwrap();
    let changed = |warning: &String| warning.ends_with(": rtt=30us");
    assert!(run.results.warnings.iter().any(changed), "{:?}", run.results.warnings);
}

#[test]
fn processes_that_are_no_runs() {
    let output = afar(["ctl", "1", "show"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("process 1 is no run of afar; afar ctl list shows them"));
    assert_eq!(afar(["ctl", "all", "show"]).status.code(), Some(2));
}

#[test]
fn other_users_are_turned_away() {
    if !is_root("other_users_are_turned_away") {
        return;
    }
    let Some(run) = Sleeper::start("other users", &["--rtt", "10us"]) else {
        return;
    };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args([AFAR, "ctl", &run.pid(), "set", "rtt=90us"]);
    let Ok(output) = command.output() else {
        return skip("other_users", "no setpriv(1)");
    };
    if !stderr(&output).starts_with("afar ctl: ") {
        return skip("other_users", "nobody cannot execute afar where it was built");
    }
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("does not answer to this user"), "{}", stderr(&output));
    assert_eq!(run.show()["tiers"][0]["rtt_ns"], 10_000);
}

/// Runs `afar ctl` in a network namespace of its own.
fn ctl_elsewhere(words: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["-n", "timeout", "60", AFAR, "ctl", "--json", "-"]).args(words);
    command.output().expect("unshare(1) is part of util-linux")
}

#[test]
fn a_run_is_found_from_any_network_namespace() {
    if !is_root("a_run_is_found_from_any_network_namespace") {
        return;
    }
    let Some(run) = Sleeper::start("any network", &["--rtt", "10us"]) else {
        return;
    };
    let output = ctl_elsewhere(&[&run.pid(), "set", "rtt=35us"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(run.show()["tiers"][0]["rtt_ns"], 35_000);
    let listed: Value = serde_json::from_str(&stdout(&ctl_elsewhere(&["list"]))).unwrap();
    let is_it = |state: &Value| state["pid"] == run.afar.id();
    assert!(listed.as_array().unwrap().iter().any(is_it), "{listed}");
}

/// The sockets of a run of root's.
fn sockets_of(pid: u32) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir("/run/afar").into_iter().flatten().flatten();
    let begins = format!("run-{pid}-");
    let is_it = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begins))
    };
    entries.map(|entry| entry.path()).filter(is_it).collect()
}

#[test]
fn the_socket_goes_with_the_run_or_is_found_by_doctor() {
    if !is_root("the_socket_goes_with_the_run") {
        return;
    }
    let Some(run) = Sleeper::start("socket", &["--rtt", "10us"]) else {
        return;
    };
    let pid = run.afar.id();
    assert_eq!(sockets_of(pid).len(), 1);
    drop(run);
    assert_eq!(sockets_of(pid).len(), 0, "it ended by itself");

    let _repairing = repairing();
    let Some(mut run) = Sleeper::start("killed", &["--rtt", "10us"]) else {
        return;
    };
    // Only what is older than two seconds is believed to be abandoned.
    std::thread::sleep(Duration::from_millis(2200));
    let left = sockets_of(run.afar.id());
    let found = |arguments: &[&str]| {
        let report: Value = serde_json::from_str(&stdout(&afar(arguments))).unwrap();
        let leftovers = report["leftovers"].as_array().unwrap().clone();
        let is_it = |leftover: &Value| {
            leftover["what"]["kind"] == "socket"
                && leftover["what"]["path"] == left[0].to_str().unwrap()
        };
        leftovers.into_iter().find(is_it).map(|leftover| leftover["removed"] == true)
    };
    assert_eq!(found(&["doctor", "--json", "-"]), None, "its run goes on");
    run.afar.kill().unwrap();
    run.afar.wait().unwrap();
    assert_eq!(found(&["doctor", "--json", "-"]), Some(false), "{left:?}");
    assert!(!stdout(&afar(["ctl", "list"])).contains(&format!(" {} ", run.afar.id())));
    assert_eq!(found(&["doctor", "--repair", "--json", "-"]), Some(true), "{left:?}");
    assert!(!left[0].exists());
}

#[test]
fn a_user_finds_runs_in_the_directory_of_that_user() {
    use std::os::unix::fs::PermissionsExt;
    if !is_root("a_user_finds_runs") {
        return;
    }
    let scratch = Scratch::new("cli");
    let runtime = scratch.join("runtime");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&runtime, Some(65534), Some(65534)).unwrap();
    for runtime in [Some(&runtime), None] {
        // With a trap's right, so that something can be run.
        let script = format!(
            "{AFAR} run -q --no-calibrate --trap userfaultfd -- sleep 20 & run=$!; \
             for i in $(seq 100); do {AFAR} ctl $run set rtt=45us && break; sleep 0.1; done; \
             kill $run; wait"
        );
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.args(["--inh-caps=-all,+sys_ptrace", "--ambient-caps=-all,+sys_ptrace"]);
        command.args(["timeout", "60", "sh", "-c", &script]).env_remove("XDG_RUNTIME_DIR");
        if let Some(runtime) = runtime {
            command.env("XDG_RUNTIME_DIR", runtime);
        }
        let output = command.output().expect("setpriv(1) is part of util-linux");
        if stderr(&output).contains("Permission denied") && stdout(&output).is_empty() {
            return skip("a_user_finds_runs", "nobody cannot execute afar where it was built");
        }
        assert!(stdout(&output).contains("rtt 45.0 µs"), "{}", stderr(&output));
    }
    assert!(!runtime.join("afar").exists(), "gone with its last run");
}
