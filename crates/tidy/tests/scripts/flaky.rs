//! `scripts/flaky`: it finds tests that fail at times, names them, and goes on where it was.

use std::fs;

use crate::{Repository, send, wait_until};

// Each test counts its runs in a file of the crate, where it has been started as cargo does.
const TESTS: &str = r#"
use std::fs;

fn run(name: &str) -> usize {
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    assert_eq!(directory, std::env::current_dir().unwrap().to_str().unwrap());
    let path = format!("../../.git/{name}");
    let text = fs::read_to_string(&path).unwrap_or_default() + "x";
    fs::write(&path, &text).unwrap();
    text.len()
}

#[test]
fn aborts_at_its_third() {
    if run("aborts") == 3 {
        // The tests that begin with it have ended then.
        std::thread::sleep(std::time::Duration::from_secs(1));
        std::process::abort();
    }
}

#[test]
fn fails_at_times() {
    let number = run("fails");
    assert!(number % 2 != 0, "number {number}");
}

#[test]
fn hangs_at_its_second() {
    if run("hangs") == 2 {
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
}

#[test]
#[ignore = "it is not run"]
fn ignored() {
    run("ignored");
}

#[test]
fn slow() {
    run("slow");
    std::thread::sleep(std::time::Duration::from_millis(2100));
}

#[test]
#[should_panic]
fn steady() {
    run("steady");
    panic!("as it should");
}
"#;

fn repository(test: &str) -> Option<Repository> {
    let repository = Repository::new(test, "flaky")?;
    repository.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
    for name in ["one", "other", "third"] {
        fs::create_dir_all(repository.directory.join(format!("crates/{name}/src"))).expect("room");
        repository.write(&format!("crates/{name}/src/lib.rs"), "#[test]\nfn nothing() {}\n");
    }
    let package = |name| format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n");
    let needs = "[dev-dependencies]\nother = { path = \"../other\" }\n";
    repository.write("crates/one/Cargo.toml", &(package("one") + needs));
    repository.write("crates/third/Cargo.toml", &package("third"));
    fs::create_dir_all(repository.directory.join("crates/one/tests")).expect("there is room");
    repository.write("crates/one/tests/odd.rs", TESTS);
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["generate-lockfile", "--offline"]).current_dir(repository.directory.path());
    assert!(cargo.status().expect("cargo runs this test").success());
    repository.commit();
    Some(repository)
}

fn runs(repository: &Repository, name: &str) -> usize {
    repository.read(&format!(".git/{name}")).len()
}

#[test]
fn tests_that_fail_at_times_are_found() {
    let Some(repository) = repository("tests_that_fail_at_times_are_found") else { return };
    let said = repository.expect(&["-p", "one", "--limit", "8"], 1);
    // How often is left open: on a machine with much other work, a fast test can be a slow one.
    for wanted in [
        " one::odd fails_at_times: failed",
        " one::odd hangs_at_its_second: took more than 8 s",
        " one::odd aborts_at_its_third: ended its process: status -6",
        "6 tests, ",
    ] {
        assert!(said.contains(wanted), "{wanted} is missing in {said}");
    }
    // The process in which another one hung or aborted was that of these, too.
    assert!((3..=6).contains(&runs(&repository, "slow")), "{}", runs(&repository, "slow"));
    assert_eq!(runs(&repository, "ignored"), 0);
    assert!((3..=24).contains(&runs(&repository, "steady")), "{}", runs(&repository, "steady"));
    let journal = fs::read_dir(repository.directory.join("target/flaky")).expect("it is there");
    let journal: String =
        journal.flatten().map(|file| fs::read_to_string(file.path()).expect("text")).collect();
    assert!(journal.contains("number 2"), "what a test has said is kept: {journal}");
}

#[test]
fn an_interrupted_run_goes_on_and_leaves_nothing_running() {
    let Some(repository) = repository("an_interrupted_run_goes_on") else { return };
    let words = ["-p", "one", "steady"];
    let mut child = repository.start(&words);
    wait_until(|| runs(&repository, "steady") >= 2, "the second round");
    send("KILL", &child);
    child.wait().expect("it is our child");
    let pid = child.id().to_string();
    let is_loop = |path: &std::path::Path| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).rev().nth(1).is_some_and(|word| word == pid.as_bytes())
    };
    let loops = || {
        let processes = fs::read_dir("/proc").expect("there is a /proc").flatten();
        processes.filter(|entry| is_loop(&entry.path())).count()
    };
    wait_until(|| loops() == 0, "the end of the busy loops");
    let before = runs(&repository, "steady");
    repository.expect(&words, 0);
    let after = runs(&repository, "steady");
    assert!(before >= 2 && after <= 21, "{before} runs, and {after} in the end");
    // All of it is there: nothing is run again.
    repository.expect(&words, 0);
    assert_eq!(runs(&repository, "steady"), after);
}

#[test]
fn all_tests_have_as_many_rounds_as_were_asked_for() {
    let Some(repository) = repository("as_many_rounds_as_were_asked_for") else { return };
    repository.expect(&["-p", "one", "--rounds", "5", "slow", "steady"], 0);
    assert_eq!((runs(&repository, "slow"), runs(&repository, "steady")), (5, 5));
}

#[test]
fn what_is_not_done_is_said() {
    let Some(repository) = repository("what_is_not_done_is_said") else { return };
    let said = repository.expect(&["-p", "other", "--minutes", "0"], 3);
    assert!(said.contains("time is up: 20 runs are missing"), "{said}");
    let said = repository.expect(&["-p", "other"], 0);
    assert!(said.contains("1 tests, ") && said.contains(" runs, 0 failures"), "{said}");
    let said = repository.expect(&["-p", "other", "zzz", "yyy"], 2);
    assert!(said.contains("no test has 'zzz' or 'yyy'"), "{said}");
    repository.expect(&["-p", "nobody"], 2);
}

/// What was seen of a crate counts until it, or one that it depends on, is another.
#[test]
fn results_are_of_the_sources_that_a_test_is_made_of() {
    let Some(repository) = repository("results_are_of_the_sources") else { return };
    let words = ["--rounds", "1", "steady"];
    let count = || {
        repository.expect(&words, 0);
        runs(&repository, "steady")
    };
    assert_eq!(count(), 1);
    for new in ["docs", "crates/one/tests/shared", "crates/one/tests/data"] {
        fs::create_dir_all(repository.directory.join(new)).expect("there is room");
    }
    for (path, wanted) in [
        ("README.md", 1),
        ("docs/more.md", 1),
        ("clippy.toml", 1),
        ("scripts/more", 1),
        ("crates/one/tests/other.rs", 1),
        // It names this one, and nobody else does.
        ("crates/one/tests/data/Edited.c", 1),
        ("crates/third/src/lib.rs", 1),
        ("crates/other/src/lib.rs", 2),
        ("crates/one/src/lib.rs", 3),
        ("build.toml", 4),
        ("crates/one/tests/shared/mod.rs", 5),
        ("crates/one/tests/data/steady.c", 6),
        ("crates/one/tests/data/unnamed.c", 7),
    ] {
        repository.write(path, "// Edited.\n");
        repository.commit();
        assert_eq!(count(), wanted, "{path}");
    }
    // What git has not been told of is built, too.
    repository.write("crates/one/src/more.rs", "");
    assert_eq!(count(), 8);
    // A build script may build another crate, which no manifest names.
    repository.write("crates/one/build.rs", "fn main() {}\n// \"../third/src\"\n");
    assert_eq!(count(), 9);
    repository.write("crates/third/src/lib.rs", "// Edited again.\n");
    assert_eq!(count(), 10);
}
