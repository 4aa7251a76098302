//! `afar ctl` against a run.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{AFAR, Scratch, afar, is_root, skip, stderr, stdout};

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
        afar(["ctl", "--json", &pid].iter().chain(words))
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
        (&["get"], "is not understood; write list, PID show, PID set SETTING... or identify"),
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
    let states: Value = serde_json::from_str(&stdout(&afar(["ctl", "list", "--json"]))).unwrap();
    let states = states.as_array().unwrap();
    assert!(states.iter().any(|state| state["pid"] == run.afar.id()), "{states:?}");
}

#[test]
fn changes_are_part_of_the_record() {
    let scratch = Scratch::new();
    let json = scratch.path("run.json");
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
