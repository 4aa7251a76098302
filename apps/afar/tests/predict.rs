//! Predictions for programs whose miss ratios are known in closed form, watched for real.

mod support;

use std::path::Path;

use results::plan::pool::PoolSizing;
use results::prediction::{Prediction, Slowdown};
use serde_json::Value;
use support::{Launch, installed, scratch, usable};

/// Pages that the programs touch.
const PAGES: u64 = 4000;
/// Touches after each page was touched once.
const TOUCHES: u64 = 60_000;
/// Of the interpreter besides, at most.
const OTHERS: u64 = 3000;

/// Watches a program in Python that touches the pages `next` says, one after another with work in
/// between; answers what is predicted for local memories of so many pages.
fn predicted(test: &str, next: &str, local: &[u64]) -> Option<Vec<Value>> {
    if !usable("bpf", test) || !installed(&["python3"], test) {
        return None;
    }
    let script = [
        // Touches each page once, to clear it.
        format!("memory = bytearray(4096 * {PAGES})"),
        "x = 1".to_owned(),
        format!("for i in range({TOUCHES}):"),
        "    x = (x * 6364136223846793005 + 1442695040888963407) % 2 ** 64".to_owned(),
        format!("    memory[({next}) * 4096] ^= 1"),
        "    sum(range(2000))".to_owned(),
    ]
    .join("\n");
    // Tests run side by side.
    let file = scratch(&format!("{}.reuse", test.replace("::", "-")));
    let afar = env!("CARGO_BIN_EXE_afar");
    let record = file.to_str().expect("a plain path");
    let words = ["predict", "--quiet", "--record", record, "--", "/usr/bin/python3", "-c", &script];
    Launch::new([afar].iter().chain(&words)).run().expect(0, "watching");
    let answer = ask(&file, local);
    let rows = Launch::new([afar, "predict", record, "--csv", "-"]).run().expect(0, "--csv").text();
    assert!(rows.starts_with("local,rtt_ns,bandwidth_bps,slowdown,"), "{rows}");
    assert_eq!(rows.lines().count(), 1 + 9 * 4, "nine shares over four networks: {rows}");
    let curve = answer["curve"].as_array().expect("a curve").clone();
    std::fs::remove_file(&file).expect("it was written");
    Some(curve)
}

fn ask(file: &Path, local: &[u64]) -> Value {
    let local: Vec<String> = local.iter().map(|pages| format!("{}", pages * 4096)).collect();
    let words = ["predict".to_owned(), file.display().to_string(), "--json".to_owned()];
    let rest = ["-".to_owned(), "--local".to_owned(), local.join(",")];
    let afar = [env!("CARGO_BIN_EXE_afar").to_owned()];
    let words: Vec<String> = afar.into_iter().chain(words).chain(rest).collect();
    let ended = Launch::new(words).run().expect(0, "predicting");
    serde_json::from_slice(&ended.stdout).expect("JSON")
}

fn fetches(point: &Value) -> f64 {
    point["fetch_count"].as_f64().expect("a number")
}

/// Holds a share of touches that are fetches against what it is, within four standard deviations of
/// the sample. Where the machine was too slow for the sample to be seen whole, fetches are missing,
/// and none may be too many.
fn holds(point: &Value, wanted: f64) {
    let share = fetches(point) / TOUCHES as f64;
    let deviation = point["fetch_deviation"].as_f64().expect("a number") / TOUCHES as f64;
    assert!(deviation < 0.1, "a sample that proves nothing: {point}");
    let most = 0.02 + 4.0 * deviation;
    let least = if point["seen_whole"] == true { most } else { 1.0 };
    assert!(share < wanted + most && share > wanted - least, "{wanted}, but {share}: {point}");
}

/// By 3/4 of a batch less than asked for is in use: the frames that are free or on their way out.
fn in_use(pages: u64) -> f64 {
    pages as f64 - (pages as f64 / 32.0).max((pages as f64 / 8.0).min(64.0)).min(120.0) * 0.75
}

/// A cycle: every touch misses as long as the pages do not fit, and none when they do.
#[test]
fn cycle_is_a_step_for_lru_fifo_and_clock() {
    let local = [2000, 3000, PAGES + OTHERS];
    let Some(curve) = predicted("predict::cycle", &format!("i % {PAGES}"), &local) else {
        return;
    };
    assert_eq!(curve.len(), 9);
    for (at, point) in curve.iter().enumerate() {
        holds(point, if at / 3 == 2 { 0.0 } else { 1.0 });
    }
}

/// Uniformly random touches: FIFO misses with the share of pages that are not local.
#[test]
fn uniform_is_a_line_for_fifo() {
    let local = [2000, 2700, 3400];
    let next = format!("(x >> 33) % {PAGES}");
    let Some(curve) = predicted("predict::uniform", &next, &local) else {
        return;
    };
    let fifo = curve.iter().filter(|point| point["policy"] == "fifo");
    for (point, pages) in fifo.zip(local) {
        holds(point, 1.0 - in_use(pages) / PAGES as f64);
    }
}

/// From what was predicted to memory of servers and of a pool.
#[test]
fn predicted_programs_share_a_pool() {
    let golden = include_str!("../../../crates/results/tests/golden/prediction.json");
    let mut record: Prediction = results::read(golden).expect("it is a prediction");
    record.of = Some("peak".to_owned());
    record.of_bytes = Some(64 << 30);
    let point = |local: &str, rtt_ns, slowdown_high| {
        let (local, slowdown) = (local.to_owned(), slowdown_high);
        Slowdown { local, rtt_ns, slowdown, slowdown_high, ..record.points[0].clone() }
    };
    record.points =
        vec![point("50%", 5_000, 1.04), point("25%", 5_000, 1.3), point("50%", 9_000, 1.2)];
    record.points.iter_mut().for_each(|point| point.seen_whole = true);
    let write = |name: &str, record: &Prediction| {
        let path = scratch(name);
        std::fs::write(&path, results::write(record)).expect("there is room");
        path.display().to_string()
    };
    let large = write("large.json", &record);
    let small = write("small.json", &Prediction { of_bytes: Some(16 << 30), ..record });
    let pool = |words: &[&str]| {
        let all = [&[env!("CARGO_BIN_EXE_afar"), "plan", "pool", "--predict", &large], words];
        Launch::new(all.concat()).run()
    };
    let words = ["--predict", &small, "--network", "rtt=5000ns", "--servers", "4", "--json", "-"];
    let sized: PoolSizing = results::read(&pool(&words).expect(0, "pool").text()).expect("sizes");
    assert_eq!(sized.programs.len(), 2, "the example's programs are none of them");
    let [one, _] = &sized.programs[..] else { panic!("{sized:?}") };
    assert!((0.48..0.5).contains(&one.local_min), "5 % is just below half local: {one:?}");
    assert_eq!((one.name.as_str(), sized.server_count), ("large", 8));
    let refused = |words: &[&str], wanted: &str| {
        let ended = pool(words);
        assert_eq!(ended.status, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
    };
    refused(&[], "several curves, which differ in rtt");
    refused(&["--network", "rtt=7us"], "no run with what where says");
    refused(&["--network", "rtt"], "write AXIS=VALUE");
    refused(&["--network", "rtt=5us", "--predict", &large], "is there twice");
    refused(&["--network", "rtt=5us", "--bound", "5"], "--bound: give a share, such as 5%");
    refused(&["--predict", "/dev/null", "--network", "rtt=5us"], "this is no prediction");
}

#[test]
fn bad_input_is_one_sentence() {
    let afar = env!("CARGO_BIN_EXE_afar");
    let cases: [(&[&str], i32, &str); 6] = [
        (&["predict"], 2, "PROGRAM"),
        (&["predict", "/nowhere"], 2, "check the path"),
        (&["predict", "/dev/null"], 2, "it is no Parquet file; give one, such as --record"),
        (&["predict", "--local", "0%", "/dev/null"], 2, "more than zero"),
        (&["predict", "--of", "1GiB", "--local", "1MiB", "/dev/null"], 2, "not a share"),
        (&["predict", "--", "/no/such/program"], 127, "not found"),
    ];
    for (words, status, wanted) in cases {
        let ended = Launch::new([afar].iter().chain(words)).run();
        assert_eq!(ended.status, status, "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(wanted), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    }
}

/// What is measured after the program has ended is interrupted as it is: by Ctrl-C, at once.
#[test]
fn an_interrupted_measurement_ends() {
    if !usable("bpf", "an_interrupted_measurement_ends") {
        return;
    }
    let record = scratch("interrupted.reuse");
    let _old = std::fs::remove_file(&record);
    let (afar, path) = (env!("CARGO_BIN_EXE_afar"), record.to_str().expect("a plain path"));
    let program = [afar, "workload", "sort", "--size", "8MiB"];
    let words = [&[afar, "predict", "--record", path, "--"][..], &program].concat();
    let mut running = Launch::new(words).start();
    running.wait_for("measurement 1 of");
    running.signal("INT");
    let ended = running.wait().expect(130, "it was interrupted while it measured");
    ended.leaves_nothing("an interrupted prediction");
    assert!(!record.exists(), "there is no prediction, and half of a record is none");
}
