//! The command lines of README.md run as they are written, in a copy of what it names. A command
//! that goes on longer than a newcomer would watch is interrupted, as with Ctrl-C.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use support::lock::own_lock;
use support::{Launch, installed, scratch, usable};

/// How long a command of the foreground may go on, and one of the background, in seconds.
const LIMITS: [u32; 2] = [8, 90];
/// What README writes outside of the directory.
const DRIVE: &str = "/var/tmp/drive.img";
/// Commands of the foreground that failed, with their statuses.
const FAILED: &str = "failed";

// The blocks of commands; those that build and install have tests of their own.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let parts = text.split("```").skip(1).step_by(2);
    let is_ours = |lines: &Vec<&str>| {
        lines.iter().any(|line| line.starts_with("afar "))
            && !lines.iter().any(|line| line.contains("scripts/"))
    };
    let lines = parts.map(|part| part.lines().filter(|line| !line.trim().is_empty()).collect());
    lines.filter(is_ours).collect()
}

// `afar` as the script finds it: interrupted after a while. What fails within a line, before its
// last command, is noted in FAILED.
fn wrap(directory: &Path) {
    let path = directory.join("afar");
    let (afar, [_, background]) = (env!("CARGO_BIN_EXE_afar"), LIMITS);
    let failed = directory.join(FAILED);
    let text = format!(
        "#!/bin/sh\nrun='timeout --preserve-status --kill-after=30 --signal=INT'\n\
         [ $AFAR_README_LIMIT = {background} ] && exec $run {background} {afar} \"$@\"\n\
         $run $AFAR_README_LIMIT {afar} \"$@\"\nstatus=$?\n\
         [ $status = 0 ] || [ $status = 130 ] || echo \"$status: afar $*\" >> {}\n\
         exit $status\n",
        failed.display()
    );
    fs::write(&path, text).expect("there is room for it");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
}

// The lines one after another; the first that fails ends it.
fn script(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let command = line.split("  # ").next().unwrap_or(line).trim();
        let is_background = command.ends_with('&');
        let limit = LIMITS[usize::from(is_background)];
        let check = if is_background { "" } else { "judge $?\n" };
        let _infallible = writeln!(
            text,
            "echo '+++' {command:?} >&2\nexport AFAR_README_LIMIT={limit}\n{command}\n{check}"
        );
    }
    let judge = "judge() { [ $1 = 0 ] || [ $1 = 130 ] || exit 77; }\n";
    format!("{judge}{text}jobs -p | xargs -r kill -TERM\nwait\n")
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
        let failed = fs::read_to_string(directory.join(FAILED)).unwrap_or_default();
        assert_eq!(failed, "", "{what}");
    }
    if !had_drive {
        let _none = fs::remove_file(DRIVE);
    }
}
