//! A run of which too little was managed: its exit status, its record, and that nobody concludes
//! anything from it.
//!
//! The program (`programs/hoard.c`) has its memory in a shared mapping, which stays local.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use measure::{InvalidKind, Run, RunResults};
use serde_json::Value;

mod support;

use support::lock::own_lock;
use support::{program, scratch, usable};

const INVALID: i32 = 4;
const ALLOWED: &str = "part of the program ran with local memory only (allowed)";

fn afar(words: &[&str]) -> Output {
    let mut afar = Command::new(env!("CARGO_BIN_EXE_afar"));
    let ended = afar.args(words).env("AFAR_LOCK_DIR", own_lock()).output();
    ended.expect("the afar binary was built with this test")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A new directory of the test's own.
fn directory(test: &str) -> PathBuf {
    let path = scratch(&format!("invalid-{test}"));
    let _none = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the target directory can be written to");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths here are text")
}

fn hoard() -> String {
    text(&program("hoard")).to_owned()
}

fn run(flags: &[&str], json: &Path) -> Output {
    let hoard = hoard();
    let run = ["run", "--no-calibrate", "--trap", "bpf", "--local", "50%", "--json", text(json)];
    afar(&[&run[..], flags, &["--", &hoard, "24", "7"]].concat())
}

fn record(path: &Path) -> Run {
    let text = std::fs::read_to_string(path).expect("afar writes its record");
    Run::<RunResults>::from_json(&text).expect("a record is a record")
}

#[test]
fn a_run_has_a_status_of_its_own_and_its_record_has_the_programs() {
    if !usable("bpf", "invalid::run") {
        return;
    }
    let directory = directory("run");
    let (json, faults) = (directory.join("run.json"), directory.join("faults.parquet"));
    let output = run(&["--record", text(&faults)], &json);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(INVALID), "{said}");
    let first = said.trim_start().lines().next().unwrap_or_default();
    assert!(first.starts_with("afar: INVALID: "), "{first}");
    assert!(first.contains(" MiB of shared memory") && first.contains("hoard"), "{first}");
    assert!(first.contains("--engine swap"), "the remedy: {first}");
    assert!(said.contains("\ncoverage      "), "{said}");
    let results = record(&json).results;
    assert_eq!((results.valid, results.exit_status), (false, Some(7)));
    // The kernel counts what a process has only nearly.
    assert!(results.coverage.unmanaged_shared_bytes >= 20 << 20, "{:?}", results.coverage);
    assert!(results.figures().is_err());
    // Its faults are not told either, and no network is simulated with them.
    for words in [&["report"][..], &["sim", "--traffic", "blades", "--faults"]] {
        let output = afar(&[words, &[text(&faults)]].concat());
        let all = stdout(&output) + &stderr(&output);
        assert!(all.contains("invalid: "), "{words:?}: {all}");
    }
    let quiet = run(&["--quiet"], &json);
    assert_eq!(quiet.status.code(), Some(INVALID));
    assert!(stderr(&quiet).starts_with("afar run: invalid: "), "{}", stderr(&quiet));
}

// It ends before anybody looks at it by chance, and its memory was unmapped before.
#[test]
fn memory_that_is_gone_again_was_there() {
    if !usable("bpf", "invalid::gone") {
        return;
    }
    let directory = directory("gone");
    for way in ["unmap", "pieces", "over", "shrink"].into_iter().cycle().take(8) {
        let json = directory.join("run.json");
        let words = ["run", "--no-calibrate", "--local", "50%", "--json", text(&json), "--"];
        let output = afar(&[&words[..], &[&*hoard(), "24", "0", way]].concat());
        assert_eq!(output.status.code(), Some(INVALID), "{}", stderr(&output));
        let shared = record(&json).results.coverage.unmanaged_shared_bytes;
        // The kernel counts pages processor by processor, and may not have added up the last.
        assert!(shared >= 20 << 20, "{way}: {shared}");
    }
}

#[test]
fn an_allowed_run_is_labelled() {
    if !usable("bpf", "invalid::allowed") {
        return;
    }
    let json = directory("allowed").join("run.json");
    let output = run(&["--allow-unmanaged"], &json);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.starts_with(&format!("\nafar: {ALLOWED}: ")), "{said}");
    let results = record(&json).results;
    assert!(results.valid && results.coverage.allow_unmanaged && results.figures().is_ok());
    assert!(results.allowed[0].reason.contains("shared memory"), "{:?}", results.allowed);
    let report = stdout(&afar(&["report", text(&json)]));
    assert!(report.contains(ALLOWED), "{report}");
}

#[test]
fn a_report_gives_a_reason_and_no_verdict() {
    if !usable("bpf", "invalid::report") {
        return;
    }
    let directory = directory("report");
    let json = directory.join("run.json");
    run(&[], &json);
    let told = directory.join("report.json");
    afar(&["report", text(&json), "--json", text(&told)]);
    let told: Value = serde_json::from_str(&std::fs::read_to_string(told).expect("it is there"))
        .expect("a report is JSON");
    let section = told.to_string();
    assert!(section.contains("\"valid\":false") && section.contains("invalid: "), "{section}");
    let shown = [&["report", text(&json)][..], &["report", "--compare", text(&json), text(&json)]];
    for words in shown {
        let output = afar(words);
        let report = stdout(&output);
        assert!(report.contains("invalid: "), "{words:?}: {report}{}", stderr(&output));
        for verdict in ["did not matter", "ran for", "no figure in common", "B is better"] {
            assert!(!report.contains(verdict), "{words:?}: {report}");
        }
    }
}

// Of 25 % of its memory, which the smallest budget holds.
fn told_nothing(test: &str, program: &[&str], kind: InvalidKind, why: &str) {
    let json = directory(test).join("run.json");
    let flags = ["--no-calibrate", "--trap", "bpf", "--local", "25%", "--json", text(&json)];
    let output = afar(&[&["run"], &flags[..], &["--"], program].concat());
    let said = stderr(&output);
    let first = said.trim_start().lines().next().unwrap_or_default();
    assert!(first.starts_with("afar: nothing to conclude: ") && first.contains(why), "{first}");
    let results = record(&json).results;
    assert_eq!(output.status.code(), results.exit_status, "the program's own: {said}");
    let kinds: Vec<InvalidKind> = results.invalid.iter().map(|one| one.kind).collect();
    assert_eq!((results.valid, kinds), (false, vec![kind]));
    assert!(results.figures().is_err() && results.tells_nothing());
    let report = stdout(&afar(&["report", text(&json)]));
    assert!(report.contains(why) && !report.contains("did not matter"), "{report}");
}

#[test]
fn from_a_program_that_is_too_small_nothing_is_told() {
    if usable("bpf", "invalid::small") {
        let program = ["sh", "-c", "exit 7"];
        told_nothing("small", &program, InvalidKind::Small, "all its memory is ");
    }
}

#[test]
fn from_a_run_in_which_nothing_was_far_nothing_is_told() {
    if !usable("bpf", "invalid::nothing_far") {
        return;
    }
    // Nearly all of its memory is managed, and that is less than 1 MiB.
    let program = scratch("touch-little");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/touch.c");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-static", "-DBYTES=917504", "-o"]).args([&program, &source]);
    assert!(cc.status().expect("cc is installed").success());
    let why = "nothing was far: no process had more than ";
    told_nothing("nothing_far", &[text(&program)], InvalidKind::NothingFar, why);
}

fn experiment(directory: &Path, more: &str) -> PathBuf {
    let path = directory.join("hoard.toml");
    let hoard = hoard();
    let head = format!("repetitions = 2\n[workload]\ncommand = [\"{hoard}\", \"24\"]\n");
    let text = format!("{head}{more}");
    std::fs::write(&path, text).expect("the target directory can be written to");
    path
}

#[test]
fn a_sweep_marks_the_cell_and_uses_no_number_of_it() {
    if !usable("bpf", "invalid::sweep") {
        return;
    }
    let directory = directory("sweep");
    let path = experiment(&directory, "[matrix]\nlocal = [\"25%\", \"50%\"]\n");
    let output = afar(&["sweep", "--quiet", text(&path)]);
    let table = stdout(&output);
    assert_eq!(output.status.code(), Some(INVALID), "{table}{}", stderr(&output));
    let marked = table.lines().filter(|line| line.contains("no figure  2 invalid: "));
    assert_eq!(marked.count(), 3, "both cells, and afar by itself: {table}");
    let json = stdout(&afar(&["sweep", "--quiet", "--json", "-", text(&path)]));
    let findings: Value = serde_json::from_str(&json).expect("findings are JSON");
    for cell in findings["cells"].as_array().expect("cells") {
        if cell["kind"] != "native" && cell["kind"] != "small" {
            assert_eq!((&cell["slowdown"], &cell["fetch_count"]), (&Value::Null, &Value::Null));
            assert_eq!((&cell["invalid_count"], &cell["failed_count"]), (&2.into(), &0.into()));
        }
    }
    let report = stdout(&afar(&["report", text(&directory.join("hoard.sweep"))]));
    assert!(report.contains("invalid: ") && !report.contains("as fast"), "{report}");
    // The same results do not become valid by being looked at otherwise.
    let mixed = afar(&["sweep", "--quiet", "--allow-unmanaged", text(&path)]);
    assert_eq!(mixed.status.code(), Some(2), "{}", stderr(&mixed));
    let other = directory.join("other");
    let flags = ["--quiet", "--allow-unmanaged", "--output", text(&other), text(&path)];
    // What is managed of it is too little for a share of it to be anything.
    let more = "[matrix]\nlocal = [\"25%\", \"50%\"]\nof = [\"live\"]\n";
    let _same = experiment(&directory, more);
    let allowed = afar(&[&["sweep"][..], &flags].concat());
    let table = stdout(&allowed);
    assert_eq!(allowed.status.code(), Some(0), "{table}{}", stderr(&allowed));
    assert!(table.contains("n=2") && table.contains(ALLOWED), "{table}");
}

#[test]
fn a_search_ends_at_an_invalid_step_without_a_requirement() {
    if !usable("bpf", "invalid::find") {
        return;
    }
    let find = "[find]\nrtt_steps = [\"90us\"]\nbandwidth_steps = [\"40Gbps\"]\n\
                local_steps = [\"50%\"]\nrtt = \"90us\"\n";
    let path = experiment(&directory("find"), find);
    let output = afar(&["sweep", "--quiet", "--find", "5%", text(&path)]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(INVALID), "{said}{}", stderr(&output));
    assert_eq!(said.matches("unknown: at ").count(), 3, "{said}");
    assert!(!said.contains("none of the steps") && !said.contains("CONFIRMED"), "{said}");
}

#[test]
fn nothing_is_predicted_from_an_invalid_run() {
    if !usable("bpf", "invalid::predict") {
        return;
    }
    let hoard = hoard();
    let output = afar(&["predict", "--quiet", "--", &hoard, "24"]);
    assert_eq!(output.status.code(), Some(INVALID), "{}", stderr(&output));
    assert!(stderr(&output).contains("the run is invalid: "), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_loop_with_an_invalid_run_has_a_reason_in_place_of_a_result() {
    if !usable("bpf", "invalid::loop") {
        return;
    }
    let directory = directory("loop");
    let path = directory.join("hoard.toml");
    let text_of = format!("[program]\ncommand = [\"{}\", \"24\"]\nlocal = \"50%\"\n", hoard());
    std::fs::write(&path, text_of).expect("the target directory can be written to");
    let output = afar(&["loop", "--quiet", text(&path)]);
    assert_eq!(output.status.code(), Some(INVALID), "{}", stderr(&output));
    assert!(stderr(&output).contains("invalid: "), "{}", stderr(&output));
    let record = directory.join("hoard.loop/loop.json");
    let report = stdout(&afar(&["report", text(&record)]));
    assert!(report.contains("invalid: ") && !report.contains("slower"), "{report}");
}
