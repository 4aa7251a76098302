//! `scripts/claims`: verdicts, when they are stale, and what an interruption leaves.

use std::process::Command;

use crate::{Repository, is_running, root, send, text, wait_until};

/// A table of claims; nothing disturbs them unless `limit` says so.
fn table(limit: &str, claims: &[(&str, &str, &str)]) -> String {
    let mut text = format!("others_max = {limit}\nstolen_max = 1.0\n");
    for (name, command, more) in claims {
        text += &format!(
            "[[claim]]\nname = \"{name}\"\nquestion = \"?\"\ncommand = '''{command}'''\n\
             bound = \"at most 5 ns\"\ncrates = [\"one\"]\nminutes = 1\n{more}\n"
        );
    }
    text
}

fn repository(test: &str, limit: &str, claims: &[(&str, &str, &str)]) -> Option<Repository> {
    let repository = Repository::new(test, "claims")?;
    repository.write("scripts/claims.toml", &table(limit, claims));
    repository.write("scripts/check", "a\n");
    repository.commit();
    Some(repository)
}

#[track_caller]
fn has(repository: &Repository, name: &str, verdict: &str) -> String {
    let record = repository.read(&format!("target/claims/{name}.json"));
    let wanted = format!("\"verdict\": \"{verdict}\"");
    assert!(record.contains(&wanted), "{name}: {wanted} is missing in {record}");
    record
}

// What a claim does each time it is run.
const COUNT: &str = "echo x >>.git/runs; echo 'PASS  error: 3 ns (at most 5 ns)'; echo bye";

#[test]
fn a_verdict_is_that_of_the_command() {
    let claims = [
        ("good", COUNT, ""),
        ("bad", "echo 'PASS  a: 1'; echo 'FAIL  b: 9'; echo 'PASS  c: 1'; exit 1", ""),
        ("broken", "echo nothing is installed; exit 3", ""),
        ("no-status", "echo 'does not hold here: a'", "fails = \"^does not hold\""),
        ("files", "echo a >\"$CLAIM_FILES/picture\"; echo it holds", ""),
    ];
    let Some(repository) = repository("a_verdict_is_that_of_the_command", "1.0", &claims) else {
        return;
    };
    let said = repository.expect(&[], 1);
    assert!(said.contains("[1/5] good: about 60s; all done in 5min"), "{said}");
    let record = has(&repository, "good", "pass");
    for wanted in [
        "\"schema\": \"afar.claim/1\"",
        "\"figure\": \"PASS  error: 3 ns (at most 5 ns)\"",
        "\"exit_status\": 0",
        "\"clean\": true",
        "\"before\": {",
        "\"kernel\"",
        "\"processors\"",
        "\"load_average\"",
        "\"pressure_some_avg10\"",
        "\"stolen_share\"",
        "\"memory_free_bytes\"",
    ] {
        assert!(record.contains(wanted), "{wanted} is missing in {record}");
    }
    assert!(repository.read("target/claims/good.log").ends_with("\nbye\n"));
    assert!(has(&repository, "bad", "fail").contains("\"figure\": \"FAIL  b: 9\""));
    assert!(has(&repository, "broken", "invalid").contains("exit status 3"));
    has(&repository, "no-status", "fail");
    has(&repository, "files", "pass");
    assert_eq!(repository.read("target/claims/files.files/picture"), "a\n");
    // What passed or failed is not run again, unless that is asked for.
    let said = repository.expect(&[], 1);
    assert!(said.contains("4 of 5 have a fresh verdict"), "{said}");
    assert!(said.contains("[1/1] broken: invalid"), "{said}");
    assert_eq!(repository.read(".git/runs"), "x\n");
    repository.expect(&["--again", "good"], 0);
    assert_eq!(repository.read(".git/runs"), "x\nx\n");
}

#[test]
fn a_change_of_what_it_depends_on_makes_a_verdict_stale() {
    let claims = [("one", "scripts/check || true; echo PASS 1", ""), ("never", "false", "")];
    let Some(repository) = repository("a_change_makes_a_verdict_stale", "1.0", &claims) else {
        return;
    };
    let line = || {
        let said = repository.expect(&["list"], 0);
        said.lines().find(|line| line.starts_with("one ")).expect("its line").to_owned()
    };
    repository.expect(&["one"], 0);
    assert!(line().contains("pass") && line().ends_with("PASS 1"), "{}", line());
    assert!(repository.expect(&["list"], 0).contains("never run; about 1 min"));
    repository.write("crates/other/lib.rs", "a");
    repository.commit();
    assert!(!line().contains("STALE"), "it is of another crate: {}", line());
    for path in ["crates/one/Cargo.toml", "scripts/check", "crates/one/new.rs"] {
        repository.write(path, "edited\n");
        let about = path.rsplit_once('/').map_or(path, |(crates, _)| crates);
        let about = if about == "scripts" { path } else { about };
        let wanted = format!("STALE ({about} changed)");
        assert!(line().contains(&wanted), "{wanted}: {}", line());
        repository.commit();
        assert!(line().contains(&wanted), "once it is committed: {}", line());
        let said = repository.expect(&["one"], 0);
        assert!(said.contains("[1/1] one: pass"), "{said}");
        assert!(!line().contains("STALE"), "{}", line());
    }
    // A verdict about a tree that was never committed is about no commit.
    repository.write("crates/one/new.rs", "edited again\n");
    repository.expect(&["one"], 0);
    assert!(line().contains("STALE"), "{}", line());
    let json = repository.expect(&["list", "--json"], 0);
    for wanted in ["\"stale\": \"crates/one changed\"", "\"clean\": false", "\"age_s\": "] {
        assert!(json.contains(wanted), "{wanted} is missing in {json}");
    }
    repository.git(&["checkout", "--quiet", "crates"]);
    let other = table("1.0", &claims).replace("at most 5 ns", "at most 2 ns");
    repository.write("scripts/claims.toml", &other);
    assert!(line().contains("STALE (its command or bound is another)"), "{}", line());
}

#[test]
fn an_interrupted_check_goes_on_where_it_was() {
    // What a command has started ends with it.
    let slow =
        "[ ! -e .git/slow ] || { sleep 1000 & echo $! >\"$CLAIM_FILES/pid\"; wait; }; echo PASS";
    let claims = [("first", COUNT, ""), ("second", slow, ""), ("third", COUNT, "")];
    let Some(repository) = repository("an_interrupted_check_goes_on", "1.0", &claims) else {
        return;
    };
    let slow = repository.directory.file(".git/slow", "");
    let pid_file = "target/claims/second.files/pid";
    // Killed, it leaves what it has finished, and no command at work.
    let mut killed = repository.start(&[]);
    let pid = repository.wait_for(pid_file);
    send("KILL", &killed);
    killed.wait().expect("it is our child");
    wait_until(|| !is_running(&pid), "the end of the command");
    has(&repository, "first", "pass");
    assert!(!repository.exists("target/claims/second.json"));
    // Interrupted, it says so.
    let mut interrupted = repository.start(&[]);
    wait_until(|| ![String::new(), pid.clone()].contains(&repository.read(pid_file)), pid_file);
    let pid = repository.read(pid_file);
    assert!(repository.expect(&[], 2).contains("another scripts/claims is at work"));
    send("INT", &interrupted);
    assert_eq!(interrupted.wait().expect("it is our child").code(), Some(130));
    wait_until(|| !is_running(&pid), "the end of the command");
    has(&repository, "second", "interrupted");
    assert!(!repository.exists("target/claims/third.json"));
    std::fs::remove_file(slow).expect("it is there");
    let said = repository.expect(&[], 0);
    assert!(said.contains("1 of 3 have a fresh verdict"), "{said}");
    assert_eq!(repository.read(".git/runs"), "x\nx\n", "the first and the third, once each");
}

#[test]
fn a_check_that_resumes_finds_its_files() {
    // It counts how often it was at work on the same files, and ends at its third.
    let step = "cd \"$CLAIM_FILES\"; echo x >>steps; [ $(wc -l <steps) = 3 ] || exit 3; echo PASS";
    let claims = [("goes-on", step, "resumes = true"), ("begins-anew", step, "")];
    let Some(repository) = repository("a_check_that_resumes", "1.0", &claims) else { return };
    let steps = |name: &str| repository.read(&format!("target/claims/{name}.files/steps"));
    repository.expect(&[], 1);
    repository.expect(&[], 1);
    assert_eq!((steps("goes-on").len(), steps("begins-anew").len()), (4, 2));
    repository.expect(&["goes-on"], 0);
    // Asked for again, it does all of it again; so it does when its sources are others.
    repository.expect(&["--again", "goes-on"], 1);
    assert_eq!(steps("goes-on"), "x\n");
    repository.write("crates/one/new.rs", "");
    repository.commit();
    repository.expect(&["goes-on"], 1);
    assert_eq!(steps("goes-on"), "x\n");
}

#[test]
fn what_was_measured_beside_other_work_neither_passes_nor_fails() {
    let claims = [
        ("timed", "sleep 1; echo PASS", ""),
        ("too-slow", "sleep 1; echo FAIL; exit 1", ""),
        ("same-output", "sleep 1; echo PASS", "timed = false"),
        ("busy-itself", "timeout 1 sh -c 'while :; do :; done' || echo PASS", ""),
    ];
    let test = "what_was_measured_beside_other_work";
    let Some(repository) = repository(test, "0.02", &claims) else { return };
    let mut other = Command::new("timeout")
        .args(["60", "sh", "-c", "while :; do :; done"])
        .spawn()
        .expect("timeout(1) is part of coreutils");
    repository.expect(&["timed", "too-slow"], 1);
    repository.expect(&["same-output"], 0);
    send("TERM", &other);
    other.wait().expect("it is our child");
    let record = has(&repository, "timed", "disturbed");
    assert!(record.contains("other programs kept"), "{record}");
    has(&repository, "too-slow", "disturbed");
    has(&repository, "same-output", "pass");
    // What the command itself uses is known; other work of this machine may still disturb it.
    repository.write("scripts/claims.toml", &table("1.0", &claims));
    repository.expect(&["busy-itself"], 0);
    let record = has(&repository, "busy-itself", "pass");
    let own = record.split("\"own_processor_s\": ").nth(1).expect("it is told");
    let own: f64 = own.split(',').next().expect("a number").parse().expect("a number");
    assert!((0.1..1.5).contains(&own), "{own}");
}

#[test]
fn what_cannot_be_is_said() {
    let claims = [("delay", "true", ""), ("law", "true", "")];
    let Some(repository) = repository("what_cannot_be_is_said", "1.0", &claims) else { return };
    let said = repository.expect(&["dely"], 2);
    assert_eq!(said, "scripts/claims: there is no claim dely; near it: delay\n");
    assert!(repository.expect(&["list", "zzz"], 2).contains("scripts/claims list has all"));
    repository.expect(&["--nonsense"], 2);
    for (wrong, wanted) in [
        (("a", "true", "fails = 3"), "fails is of another type"),
        (("a", "true", "resumes = 1"), "resumes is of another type"),
        (("a", "true", "crate = []"), "nobody knows crate"),
        (("list", "true", ""), "its name is taken"),
        (("a", "scripts/gone", ""), "there is no scripts/gone"),
    ] {
        repository.write("scripts/claims.toml", &table("1.0", &[wrong]));
        let said = repository.expect(&["list"], 2);
        assert!(said.contains(wanted), "{wanted} is missing in {said}");
    }
    assert!(!repository.exists("target/claims"), "nothing was run");
}

/// The table of this repository can be read, and each of its claims is of crates that there are.
#[test]
fn our_own_table_is_sound() {
    if Repository::new("our_own_table_is_sound", "claims").is_none() {
        return;
    }
    let mut command = Command::new(root().join("scripts/claims"));
    let output = command.args(["list", "--json"]).output().expect("it can be executed");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("\"name\": \"delay\""));
}
