//! Fault counts that follow from the pattern of accesses alone.
//!
//! The patterns are those by which an earlier per-process emulator (DiME, APSys 2017) was tested:
//! two pages in turn with one local page, and a loop over the last x of 2000 pages with 1000 local
//! under FIFO. A first walk over all pages leaves the last 1000 local. A second walk over the last
//! x therefore fetches nothing if x ≤ 1000, and every page if x > 1000, because each is given up
//! just before its turn comes.
//!
//! The program's static data are managed, too, and touched before and after: what that costs is
//! measured without the pattern.

use std::path::{Path, PathBuf};
use std::process::Command;

use measure::{PAGE_BYTES, Run};
use test_support::skip;

#[test]
fn alternate_two_pages_with_one_local_faults_at_every_access() {
    let figures = |pattern: &[&str]| {
        // Too small a program for anything else.
        let flags = ["--trap", "userfaultfd", "--local", "4KiB", "--allow-unmanaged"];
        afar(&flags, pattern).map(|run| run.results.figures().unwrap().clone())
    };
    let runs = (figures(&["nothing"]), figures(&["alternate", "0"]));
    let (Some(nothing), Some(none)) = runs else { return };
    let Some(thousand) = figures(&["alternate", "1000"]) else { return };
    assert_eq!(none.faults.first_touch_count, nothing.faults.first_touch_count + 2);
    assert_eq!(thousand.faults.first_touch_count, none.faults.first_touch_count);
    assert_eq!(thousand.faults.fetch_count, none.faults.fetch_count + 2000);
    assert_eq!(thousand.budget.peak_resident_bytes, PAGE_BYTES);
}

#[test]
fn last_x_pages_follow_the_closed_form_to_the_page() {
    let Some(run) = last(0, "userfaultfd") else { return };
    let around = run.results.figures().unwrap().faults.fetch_count;
    assert!(around < 10, "static data and nothing else: {around}");
    for x in (100..=2000).step_by(100) {
        let Some(run) = last(x, "userfaultfd") else { return };
        let figures = run.results.figures().unwrap();
        assert_eq!(figures.faults.fetch_count - around, if x > 1000 { x } else { 0 }, "x = {x}");
        assert!(figures.budget.held);
    }
}

#[test]
fn last_x_pages_in_the_kernel_trap_are_within_two_per_cent() {
    for x in (100..=2000).step_by(100) {
        // Between the budget less a batch and the budget, a page more or less decides.
        if (930..=1000).contains(&x) {
            continue;
        }
        let Some(run) = last(x, "bpf") else { return };
        let figures = run.results.figures().unwrap();
        assert!(figures.budget.held);
        let expected = 2000 + if x > 1000 { x } else { 0 };
        let faults = figures.faults.fetch_count + figures.faults.first_touch_count;
        assert!(faults.abs_diff(expected) * 50 <= expected, "x = {x}: {faults}, not {expected}");
    }
}

fn last(x: u64, trap: &str) -> Option<Run> {
    let x = x.to_string();
    afar(&["--trap", trap, "--local", "4000KiB"], &["last", "2000", &x, "1"])
}

// None, loudly, when this machine does not let us.
fn afar(flags: &[&str], pattern: &[&str]) -> Option<Run> {
    // One at a time: they would disturb one another.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let record = scratch(&format!("{}.json", pattern.join("-") + flags[1]));
    let output = Command::new(env!("CARGO_BIN_EXE_afar"))
        .args(["run", "--quiet", "--policy", "fifo", "--no-calibrate", "--json"])
        .arg(&record)
        .args(flags)
        .arg("--")
        .arg(pages())
        .args(pattern)
        .output()
        .expect("the afar binary was built with this test");
    if output.status.code() == Some(3) {
        skip("goldens", &String::from_utf8_lossy(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&record).expect("afar writes its record");
    Some(Run::from_json(&text).expect("a record is a record"))
}

// The program, compiled once for each test process.
fn pages() -> &'static Path {
    static BINARY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    BINARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/pages.c");
        let binary = scratch("pages");
        let compiled = Command::new("cc").arg("-O1").arg("-o").arg(&binary).arg(source).status();
        assert!(compiled.is_ok_and(|status| status.success()), "cc compiles pages.c");
        binary
    })
}

// For all tests of this process, which share the program.
fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("goldens");
    std::fs::create_dir_all(&directory).expect("a directory under target");
    directory.join(name)
}
