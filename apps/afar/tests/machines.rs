//! Sweeps and the machines that run them: one measures at a time, and unequal ones are never
//! averaged.

mod support;

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use support::{Launch, usable};
use test_support::Scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");

/// Runs count whatever else the machine does meanwhile.
const HEAD: &str = "repetitions = 2\nattempts = 1\nstolen_max = \"100%\"\nothers_max = \"100%\"\n";
/// Has 12 MB of memory for a moment: with less nothing is told of a run.
const WEIGHT: &str = "head -c 12000000 /dev/zero | tail -c 12000000 >/dev/null";

/// An experiment, and a lock of its own.
struct Bench {
    home: Scratch,
    file: PathBuf,
}

impl Bench {
    fn new(name: &str, seconds: &str) -> Self {
        let home = Scratch::new(&format!("machines-{name}"));
        let command = format!("command = [\"sh\", \"-c\", \"{WEIGHT}; sleep {seconds}\"]");
        let text =
            format!("{HEAD}[workload]\n{command}\n[matrix]\nlocal = [\"50%\"]\nrtt = [\"40us\"]\n");
        let file = home.file("experiment.toml", &text);
        Self { home, file }
    }

    fn launch(&self, words: &[&str]) -> Launch {
        let launch = Launch::new(std::iter::once(AFAR).chain(words.iter().copied()));
        launch.env("AFAR_LOCK_DIR", self.home.path()).env("TMPDIR", self.home.path())
    }

    fn sweep(&self, flags: &[&str]) -> Launch {
        let file = self.file.to_str().expect("paths here are text");
        self.launch(&[&["sweep", file], flags].concat())
    }

    fn runs(&self, directory: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home.join(directory).join("runs"));
        let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| !path.to_string_lossy().contains("/.")).collect()
    }
}

#[test]
fn a_second_measurement_on_a_machine_is_refused() {
    if !usable("bpf", "machines::second") {
        return;
    }
    let bench = Bench::new("second", "0.3");
    let first = bench.sweep(&["--quiet"]).start();
    while bench.runs("experiment.sweep").is_empty() {
        sleep(Duration::from_millis(20));
    }
    let other = bench.home.join("other.sweep").display().to_string();
    let refused = bench.sweep(&["-o", &other]).run().expect(3, "a second sweep");
    let said = &refused.stderr;
    assert!(said.contains(" sweep ") && said.contains("experiment.toml"), "{said}");
    assert!(said.contains("measures on this machine"), "{said}");
    assert!(bench.runs("other.sweep").is_empty(), "it has measured nothing");
    // An engine's task is no exception: a point of the same directory.
    let directory = bench.home.join("experiment.sweep");
    let planned = fs::read_to_string(directory.join("points.jsonl")).expect("it was written");
    let last: Value = serde_json::from_str(planned.lines().last().expect("a point")).expect("JSON");
    let words = ["point", directory.to_str().expect("text"), last["id"].as_str().expect("text")];
    let refused = bench.launch(&words).run().expect(3, "a point");
    assert!(refused.stderr.starts_with("afar point: process "), "{}", refused.stderr);
    first.wait().expect(0, "the first sweep");
    // Whoever has ended holds it no more, however it ended.
    bench.sweep(&["-o", &other, "--quiet"]).run().expect(0, "the second sweep");
    bench.launch(&words).run().expect(0, "a point that is there");
}

#[test]
fn runs_on_unequal_machines_have_tables_of_their_own() {
    if !usable("bpf", "machines::classes") {
        return;
    }
    let bench = Bench::new("classes", "0");
    let text = bench.sweep(&["--table"]).run().expect(0, "a sweep").text();
    assert!(text.starts_with("native: ") && !text.contains("machines of the class"), "{text}");
    let runs = bench.runs("experiment.sweep");
    // The second block as another machine has run it, a hundred times slower.
    for path in &runs {
        let text = fs::read_to_string(path).expect("it is there");
        let mut row: Value = serde_json::from_str(&text).expect("every run is whole");
        let class = row["host_class"].as_str().expect("each run has its class");
        assert!(class.contains(" x") && class.contains("Linux "), "{class}");
        if row["block"] == 1 {
            row["host_class"] = "0 another machine".into();
            row["value"] = (row["value"].as_f64().expect("a figure") * 100.0).into();
            fs::write(path, row.to_string()).expect("it is ours");
        }
        let is_far = row["cell"].as_str().is_some_and(|cell| cell.starts_with("local"));
        assert!(!is_far || row["floor_ns"].as_u64() > Some(0), "calibrated where it ran: {row}");
    }
    let text = bench.sweep(&["--table"]).run().expect(0, "a sweep").text();
    assert_eq!(text.matches("machines of the class ").count(), 2, "{text}");
    assert_eq!(bench.runs("experiment.sweep").len(), runs.len(), "nothing ran");
    let json = bench.sweep(&["--json", "-"]).run().expect(0, "a sweep").text();
    let record: Value = serde_json::from_str(&json).expect("JSON");
    let cells = record["cells"].as_array().expect("a list");
    let counts = cells.iter().map(|cell| cell["slowdown"]["count"].as_u64());
    assert!(counts.clone().all(|count| count == Some(1)), "{json}");
    assert!(cells.iter().all(|cell| cell["settings"]["machine"].is_string()), "{json}");
    assert_eq!(record["native"], Value::Null, "of which class would it be?");
    // A search compares every run with every other.
    let refused = bench.sweep(&["--find", "5%"]).run().expect(2, "a search");
    assert!(refused.stderr.contains("--find compares on equal machines"), "{}", refused.stderr);
    let refused = bench.sweep(&["--find", "5%", "--on", "dask"]).run().expect(2, "a search");
    assert!(refused.stderr.contains("run it with --on local"), "{}", refused.stderr);
}
