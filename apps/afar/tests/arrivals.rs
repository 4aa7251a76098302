//! Pages that arrive without a touch of the program's are charged like touches, or counted; and
//! what cannot work is said with its remedy. The programs are `programs/populate.c` and
//! `programs/notices.c`.

mod support;

use serde_json::Value;
use support::{Launch, TRAPS, program, scratch, usable};

/// Pages of 16 MiB, a quarter of which may be local.
const PAGES: u64 = 4096;
const LOCAL: &str = "4MiB";
/// Pages that every case touches once before it begins (`weigh`).
const WEIGHT: u64 = 512;

/// Runs a case with every trap and checks its record; the trap's name comes first.
#[track_caller]
fn each_trap(file: &str, case: &str, check: impl Fn(&str, &Value)) {
    for trap in TRAPS {
        let what = format!("{case} ({trap})");
        if !usable(trap, &what) {
            continue;
        }
        let path = scratch(&format!("{file}-{case}-{trap}.json"));
        let json = path.to_str().expect("a plain name");
        let flags = ["--no-calibrate", "--trap", trap, "--local", LOCAL, "--json", json];
        let launch = Launch::new([program(file).as_os_str(), case.as_ref()]);
        let launch = launch.unmanaged("what arrives unseen is local until it is found");
        let ended = launch.under_afar(&flags).run();
        let ended = ended.expect(0, &what);
        ended.leaves_nothing(&what);
        if ended.text().contains("not here") {
            support::skip(&what, "the kernel does not have it");
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the record was written");
        let record: Value = serde_json::from_str(&text).expect("a record");
        check(trap, &record["results"]);
    }
}

fn count(results: &Value, what: &str) -> u64 {
    results["faults"][what].as_u64().expect("a count")
}

fn held(results: &Value) -> bool {
    results["budget"]["held"].as_bool().expect("a verdict")
}

/// What the program has beside its 16 MiB: the C library's own.
fn about(number: u64, pages: u64) -> bool {
    (pages..pages + 64).contains(&number)
}

#[test]
fn populated_pages_are_fetched() {
    each_trap("populate", "by_reading", |trap, results| {
        // Twice by the call, once by touches.
        let (first, fetched) = (count(results, "first_touch_count"), count(results, "fetch_count"));
        assert!(about(first, WEIGHT + PAGES), "{trap}: {results:#}");
        assert!(about(fetched, 3 * PAGES), "{trap}: {results:#}");
        assert!(held(results), "{trap}: {results:#}");
    });
}

#[test]
fn populated_pages_are_touched_for_the_first_time() {
    for (case, fetched_pages) in [("by_writing", 2 * PAGES), ("by_mapping", 0)] {
        each_trap("populate", case, |trap, results| {
            let (first, fetched) =
                (count(results, "first_touch_count"), count(results, "fetch_count"));
            assert!(about(first, WEIGHT + PAGES), "{case}, {trap}: {results:#}");
            assert!(about(fetched, fetched_pages), "{case}, {trap}: {results:#}");
            assert!(held(results), "{case}, {trap}: {results:#}");
        });
    }
}

#[test]
fn locked_pages_count_against_the_budget() {
    each_trap("populate", "by_locking", |trap, results| {
        let first = count(results, "first_touch_count");
        assert!(about(first, WEIGHT + PAGES), "{trap}: {results:#}");
        assert!(!held(results), "more is locked than may be local: {trap}: {results:#}");
    });
}

#[test]
fn pages_that_come_unseen_are_found_and_leave() {
    each_trap("populate", "by_the_kernel", |trap, results| {
        let seen = count(results, "first_touch_count") + count(results, "silent_count");
        // The kernel copies a MiB of static data again and again.
        assert!(about(seen, WEIGHT + 256 + PAGES), "{trap}: {results:#}");
        let warned = results["warnings"].to_string().contains("came without a fault");
        assert_eq!(warned, count(results, "silent_count") > 0, "{trap}: {results:#}");
    });
}

#[test]
fn what_cannot_work_is_said_with_its_remedy() {
    let said = [
        ("own_userfaultfd", "UFFDIO_REGISTER", "--engine swap"),
        ("ring", "io_uring", "--engine swap"),
        ("zygote", "--no-zygote", "its zygote"),
        ("own_users", "CLONE_NEWUSER", "--engine swap"),
    ];
    for (case, what, remedy) in said {
        each_trap("notices", case, |trap, results| {
            let warnings = results["warnings"].to_string();
            let is_said = warnings.contains(what) && warnings.contains(remedy);
            assert!(is_said, "{case}, {trap}: {warnings}");
        });
    }
    each_trap("notices", "nothing", |trap, results| {
        assert_eq!(results["warnings"].to_string(), "[]", "{trap}");
    });
}

// The contents are there, and nothing of them is far any more.
#[test]
fn what_moves_to_where_nothing_is_managed_is_counted() {
    each_trap("remap", "to_high_addresses", |trap, results| {
        let lost = results["coverage"]["lost"].as_array().expect("a list");
        let what = "memory moved to an address where none is managed";
        let loss = lost.iter().find(|loss| loss["what"] == what);
        let pages = loss.and_then(|loss| loss["count"].as_u64());
        assert_eq!(pages, Some(32), "{trap}: {results:#}");
    });
}
