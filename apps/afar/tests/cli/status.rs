//! Exit statuses: the program's own, and those of shells for a program that did not run.

use std::process::Command;

use crate::{AFAR, Scratch, afar, file, run, stderr, stdout, text};

#[test]
fn the_programs_own_status_comes_through() {
    for status in [0, 1, 7, 125, 255] {
        let script = format!("echo out; echo err >&2; exit {status}");
        let Some(output) = run("status", ["-q", "--", "sh", "-c", &script]) else {
            return;
        };
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(stdout(&output), "out\n");
        assert_eq!(stderr(&output), "err\n", "quiet means that afar says nothing");
    }
}

#[test]
fn death_by_signal_is_128_and_its_number() {
    for (signal, status) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        let script = format!("kill -{signal} $$");
        let Some(output) = run("signal", ["-q", "--", "sh", "-c", &script]) else {
            return;
        };
        assert_eq!(output.status.code(), Some(status), "{signal}");
    }
}

#[test]
fn a_program_that_cannot_be_run() {
    let scratch = Scratch::new("cli");
    let plain = scratch.file("plain", b"#!/bin/sh\nexit 0\n");
    let cases = [
        ("no-such-command-anywhere", 127, "no-such-command-anywhere: not found"),
        ("/no/such/file", 127, "/no/such/file: not found"),
        ("/etc", 126, "/etc: cannot be executed: "),
        (text(&plain), 126, "cannot be executed: Permission denied"),
    ];
    for (program, status, wanted) in cases {
        let output = afar(["run", "--", program]);
        assert_eq!(output.status.code(), Some(status), "{program}");
        let said = stderr(&output);
        assert!(said.contains(wanted) && said.matches('\n').count() == 1, "{said}");
    }
}

#[test]
fn arguments_after_the_program_are_the_programs() {
    let script = "echo \"$@\"";
    let words = ["-q", "sh", "-c", script, "sh", "--local", "0", "--rtt", "-q", "--", "--help"];
    let Some(output) = run("arguments", words) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "--local 0 --rtt -q -- --help\n");
}

#[test]
fn scripts_and_commands_on_the_path_run() {
    let scratch = Scratch::new("cli");
    let script = file(&scratch, "script", b"#!/bin/sh\necho \"$1\"\n", 0o755);
    let Some(output) = run("scripts", ["-q", "--", text(&script), "word"]) else {
        return;
    };
    assert_eq!(stdout(&output), "word\n");
    // No first line at all: a shell runs it, and so do we.
    let bare = file(&scratch, "bare", b"echo bare\n", 0o755);
    let output = run("scripts", ["-q", "--", text(&bare)]).expect("the first one ran");
    assert_eq!(stdout(&output), "bare\n");
}

#[test]
fn the_environment_lacks_every_trap() {
    // As nobody, unless somebody has opened the device for all.
    let mut command = Command::new("setpriv");
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    command.args(nobody).args(["timeout", "-s", "KILL", "60"]);
    command.args([AFAR, "run", "--rtt", "5us", "--", "true"]);
    let Ok(output) = command.output() else {
        return crate::skip("the_environment_lacks_every_trap", "no setpriv(1)");
    };
    let said = stderr(&output);
    if !said.starts_with("afar run: ") || output.status.code() == Some(0) {
        return crate::skip("the_environment_lacks_every_trap", "needs root and a closed device");
    }
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("sudo chgrp $(id -g) /dev/userfaultfd"), "{said}");
    assert_eq!(said.matches('\n').count(), 1, "{said}");
}
