//! The command lines of README.md run as they are written, in a copy of what it names.

mod support;

use std::fs;
use std::path::Path;
use std::thread;

use support::lines::{Desk, TOOLS, blocks};
use support::{installed, usable};

#[test]
fn command_lines_of_readme_run_as_they_are_written() {
    const TEST: &str = "command_lines_of_readme";
    if !usable("bpf", TEST) || !installed(&TOOLS, TEST) {
        return;
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(home.join("README.md")).expect("it is there");
    // Those that build and install have tests of their own.
    let is_ours = |lines: &Vec<String>| !lines.iter().any(|line| line.contains("scripts/"));
    let blocks: Vec<Vec<String>> = blocks(&readme).into_iter().filter(is_ours).collect();
    assert!(blocks.len() >= 3, "a block for each of three kinds of people: {blocks:?}");
    // At once: each has a desk and a network of its own, and is mostly waited for.
    thread::scope(|scope| {
        for (number, lines) in (1..).zip(&blocks) {
            scope.spawn(move || {
                let desk = Desk::new(&format!("readme-{number}"));
                let ran = desk.run(lines, &[], &format!("block {number}"));
                assert_eq!(ran, lines.len());
            });
        }
    });
}
