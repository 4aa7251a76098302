//! The command lines of the guide run as they are written: those of a page one after another, in
//! one shell. Here the pages that take seconds, with `AFAR_TEST_FULL` all of them.

mod support;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use support::lines::{Desk, Exception, TOOLS, blocks};
use support::{full, installed, usable};

/// The least number of lines of all pages; with fewer, the guide was not read.
const LINES_MIN: usize = 130;

/// Pages whose lines take seconds; those of others measure, for minutes.
const QUICK: [&str; 8] = ["blade", "ctl", "doctor", "engines", "kv", "plan", "serve", "version"];

/// Lines that do not run here: that afar knows their flags is a test of the program.
const EXCEPTIONS: [Exception; 11] = [
    nothing("--slo ", "a search of minutes, which has no answer when it is interrupted"),
    nothing("nvme connect", "the kernel's NVMe/TCP host, a module that few machines have"),
    nothing("iscsiadm", "the kernel's iSCSI initiator, a module that few machines have"),
    nothing("--azure packing_trace", "a trace of 1.7 GB that others publish"),
    nothing("import pandas", "pandas, which afar does not need"),
    nothing("--on dask", "Dask, which the Python package's tests have"),
    nothing("--on slurm", "Slurm, which the Python package's tests imitate"),
    nothing("--on ray", "Ray, which the Python package's tests imitate"),
    nothing("--sweep examples/redis.sweep", "a search that has ended, after minutes"),
    nothing("--format md redis.json", "a sweep that has ended, after minutes"),
    nothing("examples/terasort.sweep -o", "a sweep with cells, after minutes"),
];

const fn nothing(part: &'static str, why: &'static str) -> Exception {
    Exception { part, why }
}

/// A page that has command lines.
struct Page {
    name: String,
    lines: Vec<String>,
}

fn pages() -> Vec<Page> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let files = fs::read_dir(home).expect("the guide").map(|file| file.expect("a page").path());
    let mut pages: Vec<Page> = files
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a page");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            Page { name, lines: blocks(&text).concat() }
        })
        .filter(|page| !page.lines.is_empty())
        .collect();
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    pages
}

#[test]
fn command_lines_of_the_guide_run_as_they_are_written() {
    const TEST: &str = "command_lines_of_the_guide";
    if !usable("bpf", TEST) || !installed(&TOOLS, TEST) {
        return;
    }
    let only = std::env::var("AFAR_TEST_PAGE").ok();
    let is_wanted = |page: &Page| match &only {
        Some(name) => page.name == *name,
        None => full() || QUICK.contains(&page.name.as_str()),
    };
    let wanted: Vec<Page> = pages().into_iter().filter(is_wanted).collect();
    let count = wanted.len();
    let (left, ran) = (Mutex::new(wanted.into_iter()), Mutex::new(0));
    let next = || left.lock().expect("nobody fails with it").next();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(page) = next() {
                    let desk = Desk::new(&page.name);
                    *ran.lock().expect("as above") +=
                        desk.run(&page.lines, &EXCEPTIONS, &format!("page {}", page.name));
                }
            });
        }
    });
    assert!(count >= QUICK.len() || only.is_some());
    assert!(*ran.lock().expect("all have ended") >= count, "each page has a line that runs");
}

#[test]
fn every_exception_is_of_a_line_and_has_a_reason() {
    let pages = pages();
    let lines: Vec<&String> = pages.iter().flat_map(|page| &page.lines).collect();
    assert!(lines.len() >= LINES_MIN, "{} lines", lines.len());
    for row in &EXCEPTIONS {
        assert!(lines.iter().any(|line| line.contains(row.part)), "no line has {}", row.part);
        assert!(!row.why.is_empty(), "{} has no reason", row.part);
    }
    let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    assert!(QUICK.iter().all(|name| names.contains(name)), "{names:?}");
}
