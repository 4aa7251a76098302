//! What every command says, how much of it, and in which colours.

use std::path::Path;
use std::process::Command;

use crate::{AFAR, Scratch, afar, command, stderr, stdout, text};

const SMALL: [&str; 8] =
    ["sim", "--topology", "single-switch", "--hosts", "4", "--flows", "20", "--sizes=4KiB"];

const FLAGS: [&str; 4] = ["-q, --quiet", "-v, --verbose", "--color <WHEN>", "--no-progress"];

fn sim(further: &[&str]) -> std::process::Output {
    let output = afar(SMALL.iter().chain(further));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

#[test]
fn every_command_has_the_same_flags() {
    let help = stdout(&afar(["--help"]));
    let rows = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = rows.take_while(|line| !line.is_empty()).filter_map(|row| {
        row.strip_prefix("  ").and_then(|row| row.split(' ').next()).filter(|name| !name.is_empty())
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 20, "{names:?}");
    let nested = ["plan pool", "load kv", "workload sort"];
    for name in names.into_iter().chain(nested) {
        let help = stdout(&afar(name.split(' ').chain(["--help"])));
        for flag in FLAGS {
            assert_eq!(help.matches(flag).count(), 1, "afar {name} has no {flag}, or two");
        }
    }
}

#[test]
fn flags_stand_before_the_command_or_after_it() {
    for words in [["--quiet", "version"], ["version", "--quiet"]] {
        let output = afar(words);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
        assert!(stdout(&output).starts_with("afar "), "what was asked for is printed");
    }
    let both = afar(["version", "-q", "-v"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(stderr(&both).contains("exclude each other"), "{}", stderr(&both));
}

#[test]
fn who_is_quiet_gets_what_was_asked_for_and_no_more() {
    let scratch = Scratch::new("cli");
    let path = scratch.path().join("record.json");
    let json = ["--json", text(&path)];
    assert!(stdout(&sim(&json)).contains("slowdown"), "the table is beside the file");
    let quiet = sim(&[&json[..], &["-q"]].concat());
    assert_eq!((stdout(&quiet), stderr(&quiet)), (String::new(), String::new()));
    assert!(path.exists());
    assert!(stdout(&sim(&["-q"])).contains("slowdown"), "nothing else was asked for");
    let wrong = afar(SMALL.iter().chain(&["-q", "--load", "x"]));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(!stderr(&wrong).is_empty(), "errors are said");
}

#[test]
fn who_is_verbose_hears_of_settings_files_and_time() {
    let scratch = Scratch::new("cli");
    let path = scratch.path().join("record.json");
    let said = stderr(&sim(&["-v", "--json", text(&path)]));
    for wanted in ["afar: simulates with ", "hosts=4", "afar: sim took ", " s\n"] {
        assert!(said.contains(wanted), "no {wanted:?} in {said}");
    }
    assert!(said.contains(&format!("afar: wrote {}, ", path.display())), "{said}");
    assert_eq!(stderr(&sim(&[])), "");
}

#[test]
fn every_command_says_its_settings_to_who_is_verbose() {
    let nowhere = "nvme+tcp://127.0.0.1:1/nqn.x";
    for (words, wanted) in [
        (
            &["bench", nowhere, "--rw", "randread"][..],
            "afar: bench, as given: nvme+tcp://127.0.0.1:1/nqn.x --rw randread\n",
        ),
        (&["bench", nowhere], "afar: bench, by default: "),
        (&["plan", "cost", "--map", "--csv=-"], "afar: plan cost, as given: --map --csv -\n"),
        (&["plan", "cost", "--map"], "afar: plan cost, by default: --axis 10\n"),
        (&["load", "kv", "redis://127.0.0.1:1"], "load kv, by default: --workload c --append"),
    ] {
        let said = stderr(&afar([words, &["-v"]].concat()));
        assert!(said.contains(wanted), "no {wanted:?} in {said}");
        assert!(!stderr(&afar(words)).contains(" by default: "), "only to who is verbose");
    }
}

#[test]
fn colours_are_for_terminals_unless_somebody_wants_them() {
    let doctor = |words: &[&str]| stdout(&afar([&["doctor"], words].concat()));
    assert!(doctor(&["--color", "always"]).contains("\x1b[32mok\x1b[0m"));
    for words in [&[][..], &["--color=auto"], &["--color", "never"]] {
        assert!(!doctor(words).contains('\x1b'), "{words:?} to a pipe");
    }
    let wrong = |words: &[&str]| stderr(&afar([&["doctor", "--nonsense"], words].concat()));
    assert!(wrong(&["--color=always"]).starts_with("\x1b[1;31mafar doctor:\x1b[0m there is no"));
    assert!(wrong(&[]).starts_with("afar doctor: there is no flag"));
}

/// Runs afar on a terminal of its own (script(1)), and answers with what it shows there.
fn on_terminal(words: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", "script", "-qec", &format!("{AFAR} {words}"), "/dev/null"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied());
    let output = command.output().expect("timeout(1) and script(1) are on every machine");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_terminal_has_colours_unless_the_user_wants_none() {
    if !Path::new("/usr/bin/script").exists() {
        test_support::skip("colours", "script(1) is not installed");
        return;
    }
    let green = |text: &str| text.contains("\x1b[32mok\x1b[0m");
    assert!(green(&on_terminal("doctor", &[])));
    assert!(!green(&on_terminal("doctor", &[("NO_COLOR", "1")])));
    assert!(!green(&on_terminal("doctor", &[("TERM", "dumb")])));
    assert!(!green(&on_terminal("doctor --color never", &[])));
    assert!(green(&on_terminal("doctor --color always", &[("NO_COLOR", "1")])));
}

#[test]
fn progress_is_shown_unless_the_user_wants_none() {
    let repeated = ["--load", "30%", "--repetitions", "3", "-t", "1"];
    let said = stderr(&sim(&repeated));
    let runs: Vec<&str> = said.lines().filter(|line| line.starts_with("run ")).collect();
    assert_eq!(runs.len(), 3, "a line for each run: {said}");
    assert!(runs[0].starts_with("run 1 of 3: ") && runs[0].ends_with(" left"), "{said}");
    assert!(runs[2].starts_with("run 3 of 3: ") && !runs[2].ends_with(" left"), "{said}");
    for flag in ["--no-progress", "--quiet"] {
        assert_eq!(stderr(&sim(&[&repeated[..], &[flag]].concat())), "", "{flag}");
    }
    let mut lines = command(SMALL.iter().chain(&repeated));
    let told = stderr(&lines.env("AFAR_PROGRESS", "lines").output().expect("it runs"));
    assert!(told.contains("\u{1e}afar  run "), "whoever reads lines has them: {told:?}");
}

#[test]
fn a_value_that_cannot_be_is_told_with_a_remedy() {
    for (words, wanted) in [
        ("serve a=null: --shards x", "--shards: \"x\": not a whole number"),
        ("watch --port 70000", "--port: \"70000\": give a whole number from 0 to 65535"),
        ("plan cost --axis x", "--axis: \"x\": not a whole number"),
        ("plan pool --servers -1", "--servers -1: a negative value"),
        ("plan fleet --hours -3", "--hours -3: a negative value"),
        ("run --trap x -- true", "--trap: \"x\": give auto, bpf or userfaultfd"),
        ("bench null: --depth -1", "--depth -1: a negative value"),
        ("bench null: --duration x", "--duration: "),
        ("bench null: --rw x", "--rw: \"x\": give randread, "),
        ("load kv redis://x --threads x", "--threads: \"x\": not a whole number"),
        ("workload sort --repetitions 0", "--repetitions: \"0\": give a whole number from 1"),
        ("sim --load -5%", "--load -5%: a negative value"),
        ("sim --threads 0", "--threads: \"0\": give a whole number of 1 or more"),
        ("sweep x.toml --find -5%", "--find -5%: a negative value"),
        ("predict x --rtt -1us", "--rtt -1us: a negative value"),
        ("torture 127.0.0.1 --seed x", "--seed: \"x\": a seed is a whole number"),
        ("reproduce dime-fig4 --scale -1", "--scale -1: a negative value"),
        ("report x --bound -5%", "--bound -5%: a negative value"),
        ("top --interval -1s", "--interval -1s: a negative value"),
        ("attach nvme+tcp://h/n d --queues x", "--queues: \"x\": not a whole number"),
        ("doctor --json", "--json: its value is missing"),
        ("discover -1", "-1: a negative value stands nowhere"),
        ("completions x", "<SHELL>: \"x\": give bash, "),
    ] {
        let output = afar(words.split(' '));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains(wanted) && said.matches('\n').count() == 1, "{words}: {said}");
    }
}
