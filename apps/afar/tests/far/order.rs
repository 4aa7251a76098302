//! `--remember`: what a run fetched first comes ahead of use in the next, and nothing comes of the
//! order of another program.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Ended, Launch, program, scratch, usable};
use crate::{MEMORY, TRAPS, is_usable, keeps};

const PAGES: u64 = 4096;
const LOCAL: [&str; 2] = ["--local", "2MiB"];

fn wander(words: &[&str]) -> Launch {
    let path = program("wander");
    Launch::new([path.to_str().expect("it has a plain name")].iter().chain(words))
}

/// A file that is not there.
fn absent(name: &str) -> PathBuf {
    let file = scratch(name);
    let _none = std::fs::remove_file(&file);
    file
}

/// Runs it with `--remember`, and reads the record.
fn remember(launch: &Launch, file: &Path, more: &[&str]) -> (Ended, Value) {
    let stem = file.file_stem().unwrap_or_default().display();
    let json = absent(&format!("{stem}-run.json"));
    let (name, told) = (file.display().to_string(), json.display().to_string());
    let flags = ["--far", MEMORY, "--remember", &name, "--json", &told];
    let ended = launch.under_afar(&[&flags[..], more].concat()).run();
    let text = std::fs::read_to_string(json).unwrap_or_default();
    (ended, serde_json::from_str(&text).unwrap_or_default())
}

fn count(record: &Value, what: &str) -> u64 {
    let counted = &record["results"]["remembered"][what];
    counted.as_u64().unwrap_or_else(|| panic!("{what} is counted: {:#}", record["results"]))
}

/// What the record says of the option.
fn said(record: &Value) -> String {
    let warnings = record["results"]["warnings"].as_array().into_iter().flatten();
    let ours = |text: &&str| text.starts_with("--remember ");
    warnings.filter_map(Value::as_str).filter(ours).collect::<Vec<_>>().join("; ")
}

/// A program alone, and three of a shell: each is known by when it began.
#[test]
fn pages_come_in_the_order_of_the_last_run() {
    if !is_usable("pages_come_in_the_order_of_the_last_run") {
        return;
    }
    let path = program("wander").display().to_string();
    let twice = format!("{path} 1; {path} 2");
    let cases = [
        // Where threads sleep, frames are free in time; where they spin, not always.
        ("alone", wander(&["3"]), PAGES, ("userfaultfd", 8)),
        (
            "two",
            Launch::new(["sh", "-c", &twice]).unmanaged("a shell is small"),
            2 * PAGES,
            ("auto", 1),
        ),
    ];
    for (name, launch, pages, (trap, least)) in cases {
        let flags = [&LOCAL[..], &["--trap", trap]].concat();
        let file = absent(&format!("order-{name}.json"));
        let (first, record) = remember(&launch, &file, &flags);
        let first = first.expect(0, name);
        first.leaves_nothing(name);
        assert_eq!(record["results"]["remembered"]["is_replayed"], false);
        let listed = count(&record, "page_count");
        assert!(listed >= pages * 9 / 10, "{name}: {listed} pages recorded");
        assert_eq!(said(&record), "", "{name}");
        let order = std::fs::read_to_string(&file).expect("the order is recorded");
        let (next, record) = remember(&launch, &file, &flags);
        let next = next.expect(0, name);
        next.leaves_nothing(name);
        assert_eq!(next.text(), first.text(), "{name}");
        let kept = std::fs::read_to_string(&file).expect("it is there");
        assert_eq!(kept, order, "{name}: a replay leaves the order as it is");
        assert_eq!(record["params"]["remember"], file.display().to_string());
        let counted = |what| count(&record, what);
        let all = &record["results"]["remembered"];
        assert_eq!(counted("page_count"), listed, "{name}: {all}");
        let (ahead, demand) = (counted("ahead_count"), counted("demand_count"));
        assert!(ahead + demand >= pages * 9 / 10, "{name}: the addresses are the same: {all}");
        assert!(ahead > least * demand, "{name}: most come ahead: {all}");
        let (watched, used) = (counted("watched_count"), counted("used_count"));
        assert!(watched > ahead / 100, "{name}: {all}");
        assert!(used <= watched && used > watched / 2, "{name}: most are used: {all}");
        let prefetched = record["results"]["faults"]["prefetch_count"].as_u64();
        assert!(prefetched >= Some(counted("prefetch_count")), "{name}: {all}");
    }
}

/// Pages that were fetched ahead and never used leave again, and the run says what came of it.
#[test]
fn an_order_that_the_program_does_not_keep_to_does_no_harm() {
    if !is_usable("an_order_that_the_program_does_not_keep_to_does_no_harm") {
        return;
    }
    let file = absent("order-shuffled.json");
    let launch = wander(&["2"]);
    let (first, _) = remember(&launch, &file, &LOCAL);
    let first = first.expect(0, "recorded");
    let text = std::fs::read_to_string(&file).expect("the order is recorded");
    let mut order: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut pages = order["runs"].as_array().expect("pages").clone();
    // Those that follow one are of quite another time.
    pages.sort_by_key(|run| run.as_str().map(|run| run.bytes().rev().collect::<Vec<_>>()));
    order["runs"] = pages.into();
    std::fs::write(&file, order.to_string()).expect("the scratch directory can be written to");
    let (next, record) = remember(&launch, &file, &["--local", "2MiB", "--prefetch", "next-32"]);
    let next = next.expect(0, "another order");
    next.leaves_nothing("another order");
    assert_eq!(next.text(), first.text());
    let unused = count(&record, "unused_count");
    let all = &record["results"]["remembered"];
    assert!(unused > 0, "they leave: {all}");
    // Windows of 32 pages would be thirty times as many.
    assert!(count(&record, "prefetch_count") < 4 * 2 * PAGES, "and fewer come: {all}");
    let held = &record["results"]["budget"]["held"];
    assert_eq!(held, &Value::Bool(true), "{}", said(&record));

    order["runs"] = serde_json::json!(["0:1+5", "77:5+1"]);
    order["page_count"] = 6.into();
    std::fs::write(&file, order.to_string()).expect("the scratch directory can be written to");
    let (next, record) = remember(&launch, &file, &LOCAL);
    let next = next.expect(0, "an order of nothing");
    assert_eq!((count(&record, "ahead_count"), count(&record, "demand_count")), (0, 0));
    next.leaves_nothing("an order of nothing");
    let why = said(&record);
    assert!(why.contains("nothing came of it: none of its pages"), "{why}");
}

/// Threads, forks, moves and programs that execute others find what they wrote, whatever comes
/// ahead and is not mapped yet.
#[test]
fn a_program_finds_what_it_wrote_whatever_comes_ahead() {
    const TEST: &str = "far::order::a_program_finds_what_it_wrote_whatever_comes_ahead";
    if !is_usable("order::a_program_finds_what_it_wrote_whatever_comes_ahead") {
        return;
    }
    let usable_traps = TRAPS.into_iter().filter(|trap| usable(trap, TEST));
    for (trap, case) in
        usable_traps.flat_map(|trap| ["together", "and_executes"].map(|one| (trap, one)))
    {
        let name = format!("order-keeps-{case}-{trap}");
        let file = absent(&format!("{name}.json"));
        let flags = ["--local", "1MiB", "--trap", trap];
        for _recorded_and_replayed in 0..2 {
            let (ended, record) = remember(&keeps(case, "17"), &file, &flags);
            ended.expect(0, &name).leaves_nothing(&name);
            assert!(count(&record, "page_count") > 200, "{name}: {}", record["results"]);
        }
    }
}

#[test]
fn an_order_of_a_run_that_failed_is_not_kept() {
    if !is_usable("an_order_of_a_run_that_failed_is_not_kept") {
        return;
    }
    let file = absent("order-failed.json");
    let (ended, record) = remember(&wander(&["1", "3"]), &file, &LOCAL);
    ended.expect(3, "a program that fails");
    assert!(said(&record).contains("did not end with status 0"), "{}", said(&record));
    assert!(!file.exists());
    let (ended, record) = remember(&wander(&["1"]), &file, &["--local", "1GiB"]);
    ended.expect(0, "a program with all of its memory here");
    assert!(said(&record).contains("no page was fetched"), "{}", said(&record));
    assert!(!file.exists());
}

/// The program does not run, and the file stays as it is.
#[test]
fn an_order_that_is_none_or_of_another_program_is_refused() {
    if !is_usable("an_order_that_is_none_or_of_another_program_is_refused") {
        return;
    }
    let copy = absent("order-copy");
    std::fs::copy(program("wander"), &copy).expect("it was built");
    let own = |words: &[&str]| Launch::new([copy.to_str().expect("plain")].iter().chain(words));
    let file = absent("order-own.json");
    remember(&own(&["1"]), &file, &LOCAL).0.expect(0, "recorded");
    let order = std::fs::read_to_string(&file).expect("the order is recorded");
    let refused = |launch: &Launch, text: &str, why: &str| {
        std::fs::write(&file, text).expect("the scratch directory can be written to");
        let ended = remember(launch, &file, &LOCAL).0.expect(2, why);
        assert!(ended.stderr.contains(why), "{why}: {}", ended.stderr);
        assert!(ended.stderr.contains("--remember"), "{}", ended.stderr);
        assert_eq!(ended.text(), "", "{why}: the program ran");
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), text, "{why}");
    };
    refused(&own(&["2"]), &order, "it is the order of ");
    refused(&own(&["1"]), &order[..order.len() / 2], "cannot be read as a record");
    refused(&own(&["1"]), &order.replace("afar.order/1", "afar.order/9"), "\"afar.order/9\"");
    refused(&own(&["1"]), &order.replacen("\"0:", "\"x:", 1), "PROCESS:PAGE+COUNT");
    refused(&own(&["1"]), "", "cannot be read as a record");
    let mut bytes = std::fs::read(&copy).expect("it was copied");
    bytes.push(0);
    std::fs::write(&copy, bytes).expect("it can be changed");
    refused(&own(&["1"]), &order, "is not the file that was executed then");
    let directory = file.parent().expect("it is in one");
    let ended = remember(&own(&["1"]), directory, &LOCAL).0.expect(2, "a directory");
    assert!(ended.stderr.contains("check the path and its permissions"), "{}", ended.stderr);
    let ended = remember(&own(&["1"]), Path::new("-"), &LOCAL).0.expect(2, "standard output");
    assert!(ended.stderr.contains("give it a name"), "{}", ended.stderr);
    let ended = own(&["1"]).under_afar(&["--remember", "order.json"]).run().expect(2, "no blade");
    assert!(ended.stderr.contains("--far"), "{}", ended.stderr);
}
