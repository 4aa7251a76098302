//! Records of every kind: made by afar where that takes no rights and no time, and otherwise
//! written as it writes them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use experiment::journal::Header;
use records::{Fault, FaultKind, FaultWriter};
use results::plan::cost::Bill;
use results::prediction::{Fetches, Prediction, Slowdown};
use results::{
    CellKind, ClosedLoop, Estimate, Finding, Findings, Interval, LoopRound, Native, Requirement,
    Requirements, Side, Standing,
};
use serde_json::{Value, json};

use crate::{afar, stderr, text};

/// Faults of a record that is large to a browser.
pub(crate) const FAULTS: usize = 100_000;

/// One of every kind.
pub(crate) fn records(directory: &Path) -> Vec<PathBuf> {
    let mut all = vec![findings(directory), requirement(directory), run(directory)];
    all.extend([load(directory, "load", 1), closed_loop(directory), reproduced(directory)]);
    all.extend([prediction(directory), validation(directory), served(directory)]);
    all.extend([faults(directory, 3_000), sweep_directory(directory), sim_directory(directory)]);
    all.extend(plans(directory));
    let made: [(&str, &[&str]); 5] = [
        ("sort", &["workload", "sort", "--size", "1MiB", "--repetitions", "3"]),
        (
            "disk",
            &["bench", "memory:16MiB", "--rw", "randrw", "--requests", "2000", "--depth", "4"],
        ),
        ("disks", &["bench", "memory:16MiB", "null:", "memory:16MiB", "--requests", "300"]),
        ("curve", &["bench", "memory:16MiB", "--duration", "1s", "--sweep=2000,4000"]),
        ("sim", &["sim", "--topology", "single-switch", "--hosts", "4", "--flows", "200"]),
    ];
    all.extend(made.map(|(name, words)| written(directory, name, words)));
    all.push(transports(directory));
    all
}

/// What each plan says of its example.
pub(crate) fn plans(directory: &Path) -> Vec<PathBuf> {
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plan").join(name);
        path.display().to_string()
    };
    let now = directory.join("now.csv").display().to_string();
    asked(&["plan", "place", "--synthetic", "30", "--csv", &now]);
    let (place, admit, pool) = (example("place.toml"), example("admit.toml"), example("pool.toml"));
    let tenants = example("tenants.toml");
    let made: [(&str, &[&str]); 10] = [
        ("cost", &["plan", "cost"]),
        ("tenants", &["plan", "cost", &tenants]),
        ("map", &["plan", "cost", "--map"]),
        ("latency", &["plan", "latency"]),
        ("latency-met", &["plan", "latency", "--set", "sharing.load=70%"]),
        ("place", &["plan", "place", &place]),
        ("moved", &["plan", "place", "--synthetic", "30", "--now", &now, "--lose-server", "0"]),
        ("admit", &["plan", "admit", &admit]),
        ("pool", &["plan", "pool", &pool]),
        ("fleet", &["plan", "fleet", "--synthetic", "50"]),
    ];
    made.map(|(name, words)| written(directory, name, words)).to_vec()
}

/// What a command writes as JSON.
fn written(directory: &Path, name: &str, words: &[&str]) -> PathBuf {
    let path = directory.join(format!("{name}.json"));
    asked(&[words, &["--json", text(&path)]].concat());
    path
}

fn asked(words: &[&str]) {
    let output = afar(words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
}

fn write(directory: &Path, name: &str, value: &Value) -> PathBuf {
    let path = directory.join(format!("{name}.json"));
    fs::write(&path, value.to_string()).expect("a file under target");
    path
}

fn host() -> Value {
    json!({"kernel": "6.1", "cpu_model": "X 9", "cpu_count": 2, "memory_bytes": 1 << 30,
        "thp": "madvise", "clocksource": "tsc", "virtualised": true, "governor": null,
        "mitigations": null})
}

/// A sweep of a program that slows down by the round trip and the memory it lacks.
pub(crate) fn findings(directory: &Path) -> PathBuf {
    write(directory, "findings", &findings_of("/usr/bin/redis-server", "arena"))
}

fn findings_of(program: &str, engine: &str) -> Value {
    let cell = |kind, settings: &[(&str, &str)], median: f64| {
        let owned = settings.iter().map(|&(axis, value)| (axis.to_owned(), value.to_owned()));
        let interval = Interval { low: median, high: median + 0.003, level: 0.9375 };
        let slowdown = Estimate { median: median + 0.0015, interval: Some(interval), count: 5 };
        let (slowdown, verdict) = (Some(slowdown), slowdown.verdict(1.0));
        Finding {
            slowdown,
            verdict,
            fetch_count: Some(1000),
            ..Finding::new(kind, owned.collect())
        }
    };
    let mut cells = vec![cell(CellKind::Native, &[], 1.0), cell(CellKind::Zero, &[], 1.012)];
    for (local, weight) in [("25%", 0.018), ("50%", 0.009), ("75%", 0.0005)] {
        for (rtt, us) in [("2us", 2.0), ("5us", 5.0), ("20us", 20.0)] {
            for (bandwidth, factor) in [("10Gbps", 1.6), ("40Gbps", 1.0)] {
                let settings = [
                    ("engine", engine),
                    ("local", local),
                    ("of", "peak"),
                    ("rtt", rtt),
                    ("bandwidth", bandwidth),
                ];
                let far = cell(CellKind::Far, &settings, 1.0 + weight * us * factor);
                cells.push(Finding { of_bytes: Some(512 << 20), ..far });
            }
        }
    }
    let seconds = Estimate { median: 2.5, interval: None, count: 2 };
    json(&results::write(&Findings {
        version: "0.1.0".to_owned(),
        command: ["afar", "sweep", "x.toml"].map(str::to_owned).to_vec(),
        started_unix_ns: 1,
        host: serde_json::from_value(host()).expect("it is a machine"),
        workload: [program, "--port", "{port}"].map(str::to_owned).to_vec(),
        native: Some(Native {
            figure: seconds,
            metric: "seconds".to_owned(),
            higher_is_better: false,
        }),
        cells,
    }))
}

fn of_golden<R: results::Record>(text: &str) -> R {
    results::read(text).expect("it is a record")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn requirement(directory: &Path) -> PathBuf {
    let side = |value: &str, median: f64| {
        let interval = Interval { low: median - 0.01, high: median + 0.01, level: 0.93 };
        let slowdown = Estimate { median, interval: Some(interval), count: 5 };
        Some(Side { value: value.to_owned(), slowdown: Some(slowdown) })
    };
    let one = |axis: &str, last_good: Option<Side>, first_bad| {
        let sure = last_good.is_some();
        Requirement {
            axis: axis.to_owned(),
            last_good,
            first_bad,
            standing: if sure { Standing::Confirmed } else { Standing::Undecided },
            invalid: None,
        }
    };
    let held = [
        ("engine", "arena"),
        ("local", "25%"),
        ("of", "peak"),
        ("rtt", "5us"),
        ("bandwidth", "40Gbps"),
    ];
    let record = Requirements {
        version: "0.1.0".to_owned(),
        command: Vec::new(),
        started_unix_ns: 1,
        host: serde_json::from_value(host()).expect("it is a machine"),
        workload: vec!["redis-server".to_owned()],
        seed: 1,
        slowdown_max: 1.05,
        held: held.map(|(axis, value)| (axis.to_owned(), value.to_owned())).into(),
        of_bytes: Some(512 << 20),
        requirements: vec![
            one("rtt", side("3us", 1.02), side("5us", 1.09)),
            one("bandwidth", side("40Gbps", 1.03), side("10Gbps", 1.3)),
            one("local", None, side("100%", 1.06)),
        ],
    };
    write(directory, "requirement", &json(&results::write(&record)))
}

/// What the sweep of [`findings`] might have been expected to find.
pub(crate) fn prediction(directory: &Path) -> PathBuf {
    let mut record: Prediction =
        of_golden(include_str!("../../../../crates/results/tests/golden/prediction.json"));
    let fetches = Fetches { seen_whole: true, ..record.curve[0].clone() };
    let (mut points, mut curve) = (Vec::new(), Vec::new());
    for (local, weight) in [("25%", 0.017), ("50%", 0.01), ("75%", 0.001)] {
        curve.push(Fetches { local: local.to_owned(), miss_ratio: weight, ..fetches.clone() });
        for us in [2_u64, 5, 20] {
            let slowdown = 1.0 + weight * us as f64;
            points.push(Slowdown {
                local: local.to_owned(),
                rtt_ns: us * 1000,
                bandwidth_bps: Some(40_000_000_000),
                slowdown,
                slowdown_low: slowdown - 0.01,
                slowdown_high: slowdown + 0.01,
                seen_whole: true,
            });
        }
    }
    record.profile.program = vec!["redis-server".to_owned()];
    record.profile.host = serde_json::from_value(host()).expect("it is a machine");
    (record.curve, record.points) = (curve, points);
    write(directory, "prediction", &json(&results::write(&record)))
}

fn run_of(program: &str, warning: &str) -> Value {
    let golden = include_str!("../../../../crates/measure/tests/golden/run.json");
    let mut run: Value = serde_json::from_str(golden).expect("it is JSON");
    run["command"] = json!(["afar", "run", "--local", "25%", "--", program]);
    run["results"]["warnings"] = json!([warning]);
    let bins: Vec<(u64, u64)> = (1..200).map(|at| (at * 100, 400 / at + 1)).collect();
    run["results"]["fault_latency"]["total_bins"] = json!(bins);
    run["results"]["fault_latency"]["total"]["count"] = json!(1000);
    run
}

fn run(directory: &Path) -> PathBuf {
    write(directory, "run", &run_of("/usr/bin/sort", "one processor was busy"))
}

/// A load that did so many times as much.
pub(crate) fn load(directory: &Path, name: &str, factor: u64) -> PathBuf {
    let run = measure::Run::<measure::LoadResults> {
        schema: "afar.load/1".to_owned(),
        version: "0.1.0".to_owned(),
        command: ["afar", "load", "kv"].map(str::to_owned).to_vec(),
        started_unix_ns: 1,
        seed: 1,
        host: serde_json::from_value(host()).expect("a host"),
        params: measure::LoadParams { target: "redis://h".to_owned(), ..Default::default() },
        results: measure::LoadResults {
            request_count: 5000,
            requests_per_s: (1000 * factor) as f64,
            request_count_by_second: [990, 1010, 1005, 995, 400]
                .map(|number| number * factor)
                .to_vec(),
            operations: vec![measure::LoadOperation {
                operation: "read".to_owned(),
                latency: measure::LatencySummary {
                    count: 5000,
                    min_ns: 9_000,
                    mean_ns: 21_000,
                    p50_ns: 20_000,
                    p90_ns: 30_000,
                    p95_ns: 40_000,
                    p99_ns: 90_000,
                    p999_ns: 400_000,
                    max_ns: 2_000_000,
                },
                ..Default::default()
            }],
            ..Default::default()
        },
    };
    let path = directory.join(format!("{name}.json"));
    fs::write(&path, run.to_json()).expect("a file under target");
    path
}

fn closed_loop(directory: &Path) -> PathBuf {
    let round = |median: f64| {
        let interval = Interval { low: median - 0.01, high: median + 0.01, level: 0.9375 };
        LoopRound {
            seconds: median,
            slowdown: Estimate { median, interval: Some(interval), count: 5 },
            verdict: None,
            disturbed_count: 0,
            first_disturbance: None,
            fetch_count: 5000,
            page_mean_us: 4.2,
            page_p50_us: 3.9,
            page_p99_us: 19.0,
            flow_slowdown: 1.4,
        }
    };
    let network = [("transport", "pfabric"), ("topology", "leaf-spine")];
    let record = ClosedLoop {
        version: "0.1.0".to_owned(),
        command: ["afar", "workload", "wordcount"].map(str::to_owned).to_vec(),
        local: "25%".to_owned(),
        of: Some("peak".to_owned()),
        of_bytes: Some(512 << 20),
        network: network.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect(),
        invalid: None,
        allowed: false,
        zero_seconds: Some(1.0),
        rounds: [1.03, 1.09, 1.08].map(round).to_vec(),
        agreed: false,
    };
    write(directory, "loop", &json(&results::write(&record)))
}

fn served(directory: &Path) -> PathBuf {
    let golden = include_str!("../../../../crates/results/tests/golden/kv-serve.json");
    write(directory, "kv-serve", &json(golden))
}

fn validation(directory: &Path) -> PathBuf {
    let golden = include_str!("../../../../crates/results/tests/golden/validation.json");
    write(directory, "validation", &json(golden))
}

fn reproduced(directory: &Path) -> PathBuf {
    let golden = include_str!("../../../../crates/results/tests/golden/reproduce.json");
    let mut value = json(golden);
    value["host"] = host();
    write(directory, "reproduced", &value)
}

/// So many faults over two seconds.
pub(crate) fn faults(directory: &Path, count: usize) -> PathBuf {
    let path = directory.join("faults.parquet");
    let notes = [("schema", "afar.faults/1"), ("command", "afar run --record x -- sort")];
    let file = File::create(&path).expect("a file under target");
    let mut writer = FaultWriter::new(file, &notes).expect("there is room");
    let fault = |at: usize| {
        let at = at as u64;
        let page = at * 2_654_435_761 % 20_011;
        let kind = if at.is_multiple_of(9) { FaultKind::FirstTouch } else { FaultKind::Fetch };
        let measured_ns = 5_000 + u32::try_from(page % 3_000).expect("small");
        Fault {
            time_ns: at * 2_000_000_000 / count as u64,
            process_slot: 0,
            page,
            kind,
            write: at.is_multiple_of(3),
            thread: 7,
            wait_ns: 10,
            requested_ns: 5_000,
            measured_ns,
        }
    };
    writer.write(&(0..count).map(fault).collect::<Vec<_>>()).expect("there is room");
    writer.finish().expect("there is room");
    path
}

/// The directory of a sweep that was killed while it wrote a run.
fn sweep_directory(directory: &Path) -> PathBuf {
    let path = directory.join("killed.sweep");
    let runs = path.join("runs");
    fs::create_dir_all(&runs).expect("a directory under target");
    let experiment = "[workload]\ncommand = [\"sort\"]\n[matrix]\nlocal = [\"25%\", \"50%\"]\n";
    let head = json!({"schema": "afar.sweep/4", "version": "0.1.0", "command": ["afar", "sweep"],
        "started_unix_ns": 1, "seed": 1, "host": host(), "experiment": experiment,
        "cells": ["native"]});
    fs::write(path.join("sweep.json"), head.to_string()).expect("a file under target");
    let head: Header = serde_json::from_value(head).expect("it is one");
    for block in 0..3 {
        for (cell, value) in [("native", 1.0), ("zero", 1.01), ("local=25%", 1.3), ("rtt=9us", 1.4)]
        {
            let noise = json!({"stolen": 0.0, "others": 0.0, "pressure": 0.0,
                "preempted_count": 0});
            let row = json!({"block": block, "cell": cell, "value": value, "failure": null,
                "further": [], "invalid": null, "noise": noise, "disturbed": null,
                "repeated_count": 0,
                "allowed": false, "started_unix_ns": 1, "elapsed_ns": 1, "fetch_count": 3,
                "fetch_p50_ns": 5000, "managed_peak_bytes": 1, "unmanaged_bytes": 1,
                "budget_held": true});
            let name = format!("{}.json", head.id(block, cell));
            fs::write(runs.join(name), row.to_string()).expect("a file under target");
        }
    }
    fs::write(runs.join(".new-1-1-ab.json"), "{\"block\":3,\"ce").expect("a file under target");
    path
}

fn sim_directory(directory: &Path) -> PathBuf {
    let path = directory.join("simulated");
    asked(&[
        "sim",
        "--topology",
        "single-switch",
        "--hosts",
        "4",
        "--flows",
        "500",
        "-o",
        text(&path),
    ]);
    path
}

fn transports(directory: &Path) -> PathBuf {
    let experiment = directory.join("transports.toml");
    let settings = "transport = [\"pfabric\", \"dctcp\"]\nload = [\"30%\", 0.6]\nflows = 300\n\
                    topology = \"single-switch\"\nhosts = 6\n";
    fs::write(&experiment, settings).expect("a file under target");
    let path = directory.join("transports.json");
    let output = directory.join("transports.sim");
    asked(&["sim", text(&experiment), "-o", text(&output), "--quiet", "--json", text(&path)]);
    path
}

/// Records whose names want to be markup.
pub(crate) fn hostile(directory: &Path) -> Vec<PathBuf> {
    let name = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>\n\u{1}";
    let mut run = run_of(name, name);
    run["host"]["cpu_model"] = json!(name);
    let cost = written(directory, "cost-of-hostile", &["plan", "cost"]);
    let cost = fs::read_to_string(&cost).expect("it was written");
    let mut cost: Bill = results::read(&cost).expect("it is a bill");
    name.clone_into(&mut cost.currency);
    name.clone_into(&mut cost.tenants[0].name);
    let points = json!({"schema": "afar.reproduce/2", "version": "0.1.0", "figure": name,
        "title": name, "command": [name], "unix_ns": 1, "host": host(), "bed": {}, "paper": {},
        "interrupted": true, "points": [{name: name}],
        "verdicts": [{"holds": false, "text": name}]});
    vec![
        write(directory, "hostile-findings", &findings_of(name, name)),
        write(directory, "hostile-run", &run),
        write(directory, "hostile-cost", &json(&results::write(&cost))),
        write(directory, "hostile-figure", &points),
    ]
}
