//! `afar doctor`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{AFAR, Scratch, afar, repairing, skip, stderr, stdout, text};

#[test]
fn doctor_says_whether_afar_works_here() {
    let output = afar(["doctor"]);
    let said = stdout(&output);
    let verdict = match output.status.code() {
        Some(0) => "\nafar run works here.\n",
        Some(3) => "\nafar run does not work here: ",
        other => panic!("{other:?}: {}", stderr(&output)),
    };
    assert!(said.contains(verdict), "{said}");
    for name in ["kernel ", "trap bpf ", "trap userfaultfd ", "left by killed runs "] {
        assert!(said.contains(&format!("\n{name}")) || said.starts_with(name), "{name}: {said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn doctor_json_agrees_with_its_status() {
    let output = afar(["doctor", "--json", "-"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["schema"], "afar.doctor/2");
    let usable = output.status.code() == Some(0);
    assert_eq!(report["usable"], usable);
    let checks = report["checks"].as_array().unwrap();
    let trap_ok = |check: &&Value| {
        check["name"].as_str().unwrap().starts_with("trap ") && check["state"] == "ok"
    };
    assert_eq!(checks.iter().any(|check| trap_ok(&check)), usable);
    // What is wrong is explained.
    for check in checks.iter().filter(|check| check["state"] == "no") {
        assert!(check["needed_for"].is_string() || check["remedy"].is_string(), "{check}");
    }
}

#[test]
fn doctor_csv_has_a_row_for_each_check() {
    let scratch = Scratch::new("doctor-rows");
    let json = scratch.join("doctor.json");
    let rows = stdout(&afar(["doctor", "--csv", "-", "--json", text(&json)]));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert!(rows.starts_with("name,state,found"), "{rows}");
    assert_eq!(rows.lines().count(), 1 + checks.len(), "{rows}");
    for (line, check) in rows.lines().skip(1).zip(checks) {
        let [name, state] = ["name", "state"].map(|key| check[key].as_str().unwrap());
        assert!(line.starts_with(&format!("{name},{state},")), "{line}");
    }
}

#[test]
fn doctor_finds_and_removes_an_orphan() {
    let scratch = Scratch::new("cli");
    // creat(argv[1], 0600), then pause() for ever. It never asks for memory, so it is without the
    // part of afar that would end it.
    let text_of_it =
        b"__asm__(\".globl _start\\n_start: mov 16(%rsp), %rdi; mov $0600, %esi\\n\"\n\
        \"mov $85, %eax; syscall; 1: mov $34, %eax; syscall; jmp 1b\");\n";
    let source = scratch.file("p.c", text_of_it);
    let program = scratch.join("afar-orphan");
    let mut cc = Command::new("cc");
    cc.args(["-static", "-nostdlib", "-o", text(&program), text(&source)]);
    if !cc.status().is_ok_and(|status| status.success()) {
        return skip("doctor_finds_an_orphan", "no C compiler for static programs");
    }
    let (pid_file, ready) = (scratch.join("pid"), scratch.join("ready"));
    let (name, pids) = (program.display(), pid_file.display());
    let script = format!("{name} {} & echo $! >{pids}; wait", ready.display());
    let mut afar_run = Command::new(AFAR);
    afar_run.args(["run", "-q", "--no-calibrate", "--", "sh", "-c", &script]);
    let mut run = afar_run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let pid = loop {
        let written = std::fs::read_to_string(&pid_file).unwrap_or_default();
        // Not before it has begun: the shell's own child would end with the shell, and the start of
        // a program needs system calls that fail without afar.
        if let Ok(pid) = written.trim().parse::<u32>()
            && ready.exists()
        {
            break pid;
        }
        if run.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(20) {
            return skip("doctor_finds_an_orphan", "no trap can be used");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let _repairing = repairing();
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(orphan(&["doctor", "--json", "-"], pid), Some(false), "found, not removed");
    assert_eq!(orphan(&["doctor", "--repair", "--json", "-"], pid), Some(true), "removed");
    assert_eq!(orphan(&["doctor", "--json", "-"], pid), None, "gone");
}

/// Whether the doctor has removed the orphan; `None` if it did not find it.
fn orphan(arguments: &[&str], pid: u32) -> Option<bool> {
    let report: Value = serde_json::from_str(&stdout(&afar(arguments))).unwrap();
    let leftovers = report["leftovers"].as_array().unwrap();
    let orphan = leftovers.iter().find(|leftover| leftover["what"]["pid"] == pid)?;
    orphan["removed"].as_bool()
}
