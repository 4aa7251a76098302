//! Ends that nobody planned: whoever is killed, and whenever, nothing hangs and nothing is left on
//! the host.

mod support;

use std::fs;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use support::{Launch, Running, TRAPS, installed, kill, program, usable};

const SIGKILL: i32 = 128 + 9;
const SEED: u64 = 20_170_903;

#[test]
fn killed_supervisor_takes_the_program_with_it() {
    for_each_trap("killed_supervisor", |trap| {
        let run = ready(trap);
        run.signal("KILL");
        settle(run, SIGKILL, trap);
    });
}

#[test]
fn killed_program_ends_the_run() {
    for_each_trap("killed_program", |trap| {
        let run = ready(trap);
        kill("KILL", &first_child(&run).expect("the program runs").to_string());
        settle(run, SIGKILL, trap);
    });
}

#[test]
fn interrupt_from_the_terminal_ends_both() {
    for_each_trap("interrupt", |trap| {
        let run = ready(trap);
        run.signal_group("INT");
        settle(run, 128 + 2, trap);
    });
}

#[test]
fn termination_is_passed_on() {
    for_each_trap("termination", |trap| {
        let run = ready(trap);
        run.signal("TERM");
        settle(run, 128 + 15, trap);
    });
}

#[test]
fn closed_output_ends_the_program_as_usual() {
    for_each_trap("closed_output", |trap| {
        let script = format!("\"$0\" run --quiet --trap {trap} --local 10% -- yes | head -n 1");
        let launch = Launch::new(["sh", "-c", &script, env!("CARGO_BIN_EXE_afar")]);
        let ended = launch.run().expect(0, trap);
        assert_eq!(ended.text(), "y\n");
        ended.leaves_nothing(trap);
    });
}

#[test]
fn kill_at_any_time_leaves_nothing() {
    let mut state = SEED;
    let rounds = 200;
    for_each_trap("kill_at_any_time", |trap| {
        for round in 0..rounds / TRAPS.len() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let run = busy(trap);
            // From before the program runs to well after it has begun.
            sleep(Duration::from_micros((state >> 33) % 80_000));
            // Its first children are attempts at what this machine can do.
            let is_program = |pid: &u32| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "busy\n")
            };
            let child = first_child(&run).filter(|pid| round % 2 == 1 && is_program(pid));
            match child {
                Some(child) => kill("KILL", &child.to_string()),
                None => run.signal("KILL"),
            }
            let (pid, ended) = (run.pid(), run.wait());
            let what = format!("{trap}, round {round} of seed {SEED}");
            assert_eq!(ended.status, SIGKILL, "{what}\n{}", ended.stderr);
            ended.leaves_nothing(&what);
            assert_clean(pid, &what);
        }
    });
}

// Most of a short program's life is its loader's and our way in. The first process of a namespace
// cannot send itself a signal that kills.
#[test]
fn kill_while_programs_are_entered_leaves_nothing() {
    const SHORT: &str = "echo ready; while :; do /bin/true; done";
    let namespace = ["unshare", "--pid", "--fork", "sh", "-c", SHORT];
    let rounds = if sys::process::effective_user() == 0 { 2 } else { 1 };
    let mut state = SEED;
    for_each_trap("kill_while_programs_are_entered", |trap| {
        for words in [&namespace[3..], &namespace].into_iter().take(rounds) {
            for round in 0..25 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let launch = Launch::new(words).under_afar(&["--no-calibrate", "--trap", trap]);
                let mut run = launch.limit(Duration::from_secs(20)).start();
                run.wait_for("ready");
                sleep(Duration::from_micros((state >> 33) % 8_000));
                run.signal("KILL");
                let what = format!("{trap}, {words:?}, round {round} of seed {SEED}");
                run.wait().expect(SIGKILL, &what).leaves_nothing(&what);
            }
        }
    });
}

#[test]
fn two_runs_do_not_disturb_each_other() {
    for_each_trap("two_runs", |trap| {
        let path = program("heap");
        let native = Launch::new([path.as_os_str(), "stress".as_ref()]);
        let launch = native.under_afar(&["--trap", trap, "--local", "25%"]);
        let other = native.under_afar(&["--trap", trap, "--local", "25%"]).start();
        launch.run().expect(0, trap).leaves_nothing(trap);
        other.wait().expect(0, trap).leaves_nothing(trap);
    });
}

#[test]
fn run_inside_a_run_is_refused() {
    for_each_trap("run_inside_a_run", |trap| {
        let flags = ["--trap", trap];
        let refused = Launch::new(["true"]).unmanaged("it is refused");
        let ended = refused.under_afar(&flags).under_afar(&flags).run();
        let ended = ended.expect(125, trap);
        assert!(ended.stderr.contains("cannot run inside afar"), "{}", ended.stderr);
        ended.leaves_nothing(trap);
    });
}

// One at a time: what is left over must be of the run that was just looked at.
fn for_each_trap(test: &str, mut body: impl FnMut(&str)) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone: MutexGuard<'_, ()> = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for trap in TRAPS {
        if usable(trap, &format!("failure::{test}")) {
            body(trap);
        }
    }
}

fn busy(trap: &str) -> Running {
    let launch = Launch::new([program("busy")]);
    launch.under_afar(&["--trap", trap, "--local", "10%"]).limit(Duration::from_secs(20)).start()
}

fn ready(trap: &str) -> Running {
    let mut run = busy(trap);
    run.wait_for("ready");
    run
}

fn settle(run: Running, status: i32, trap: &str) {
    let pid = run.pid();
    run.wait().expect(status, trap).leaves_nothing(trap);
    assert_clean(pid, trap);
}

// The program itself, once it has been executed.
fn first_child(run: &Running) -> Option<u32> {
    let is_child = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent.and_then(|parent| parent.trim().parse().ok()) == Some(run.pid())
    };
    run.processes().into_iter().find(is_child)
}

/// No socket of supervisor `pid`, and no BPF program of ours that nobody alive holds.
fn assert_clean(pid: u32, what: &str) {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let name = format!("@afar-{pid}");
    let is_left = |line: &str| line.split_whitespace().any(|word| word == name);
    assert!(!sockets.lines().any(is_left), "{what}: socket {name} is left");
    if !installed(&["bpftool"], "failure: BPF programs") {
        return;
    }
    // The kernel frees programs a moment after their last holder has gone; others' runs come and
    // go meanwhile.
    let mut left = orphaned_programs();
    for _ in 0..100 {
        if left.is_empty() {
            return;
        }
        sleep(Duration::from_millis(20));
        let now = orphaned_programs();
        left.retain(|id| now.contains(id));
    }
    panic!("{what}: BPF programs are left: {left:?}");
}

// Numbers of the programs of ours, if no supervisor is alive that could hold them.
fn orphaned_programs() -> Vec<u64> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    // Copies of it may have longer names.
    let is_afar = |comm: String| comm.starts_with("afar");
    let mut names = processes.map(|process| fs::read_to_string(process.path().join("comm")));
    if names.any(|name| name.is_ok_and(is_afar)) {
        return Vec::new();
    }
    let output = Command::new("bpftool").args(["prog", "show", "--json"]).output();
    let json = output.map(|output| output.stdout).unwrap_or_default();
    let programs: serde_json::Value = serde_json::from_slice(&json).unwrap_or_default();
    let is_ours = |program: &&serde_json::Value| {
        program["name"].as_str().is_some_and(|name| name.starts_with("afar"))
    };
    let programs = programs.as_array().into_iter().flatten().filter(is_ours);
    programs.filter_map(|program| program["id"].as_u64()).collect()
}
