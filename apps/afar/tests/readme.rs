//! The command lines of README.md run as they are written, in a copy of what it names. A command
//! that goes on longer than a newcomer would watch is interrupted, as with Ctrl-C.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use support::lock::own_lock;
use support::{Launch, installed, scratch, usable};

/// How long a command of the foreground may go on, and one of the background, in seconds.
const LIMITS: [u32; 2] = [8, 90];
/// What README writes outside of the directory.
const DRIVE: &str = "/var/tmp/drive.img";

// The blocks of commands; those that build and install have tests of their own.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let parts = text.split("```").skip(1).step_by(2);
    let lines = |part: &'static str| part.lines().filter(|line| !line.trim().is_empty()).collect();
    let parts: Vec<&'static str> =
        parts.map(|part| &*Box::leak(part.to_owned().into_boxed_str())).collect();
    let is_ours = |lines: &Vec<&str>| {
        lines.iter().any(|line| line.starts_with("afar "))
            && !lines.iter().any(|line| line.contains("scripts/"))
    };
    parts.into_iter().map(lines).filter(is_ours).collect()
}

// `afar` as the script finds it: interrupted after a while, with the status that it then has.
fn wrap(directory: &Path) -> PathBuf {
    let path = directory.join("afar");
    let mut text = "#!/bin/sh\nlimit=$AFAR_README_LIMIT\n".to_owned();
    let afar = env!("CARGO_BIN_EXE_afar");
    let _infallible = writeln!(
        text,
        "exec timeout --preserve-status --kill-after=30 --signal=INT \"$limit\" {afar} \"$@\""
    );
    fs::write(&path, text).expect("there is room for it");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    path
}

// The lines one after another; the first that fails ends it.
fn script(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let command = line.split("  # ").next().unwrap_or(line).trim();
        let limit = LIMITS[usize::from(command.ends_with('&'))];
        let _infallible = writeln!(text, "echo '+++' {command:?} >&2\nAFAR_README_LIMIT={limit}");
        let is_background = command.ends_with('&');
        let _infallible = match is_background {
            true => writeln!(text, "export AFAR_README_LIMIT; {command}"),
            false => writeln!(
                text,
                "export AFAR_README_LIMIT; {command}\nstatus=$?\n\
                 [ $status = 0 ] || [ $status = 130 ] || exit 77"
            ),
        };
    }
    text + "jobs -p | xargs -r kill -TERM\nwait\n"
}

#[test]
fn command_lines_of_readme_run_as_they_are_written() {
    const TEST: &str = "command_lines_of_readme";
    if !usable("bpf", TEST) || !installed(&["redis-server", "bash", "timeout"], TEST) {
        return;
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(home.join("README.md")).expect("it is there");
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 3, "a block for each of three kinds of people: {blocks:?}");
    let directory = scratch("readme");
    let _none = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("there is room for it");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([home.join("examples"), directory.clone()])
        .status();
    assert!(copied.expect("cp is there").success());
    wrap(&directory);
    let had_drive = Path::new(DRIVE).exists();
    let path = std::env::var("PATH").unwrap_or_default();
    for (number, lines) in (1..).zip(&blocks) {
        let text = format!("cd {}\n{}", directory.display(), script(lines));
        let launch = Launch::new(["bash", "-uc", &text]).limit(Duration::from_secs(400));
        let launch = launch.env("PATH", format!("{}:{path}", directory.display()));
        let ended = launch.env("AFAR_LOCK_DIR", own_lock()).run();
        let what = format!("block {number}");
        let ended = ended.expect(0, &what);
        let ran = ended.stderr.lines().filter(|line| line.starts_with("+++ ")).count();
        assert_eq!(ran, lines.len(), "{what}: {}", ended.stderr);
        ended.leaves_nothing(&what);
    }
    if !had_drive {
        let _none = fs::remove_file(DRIVE);
    }
}
