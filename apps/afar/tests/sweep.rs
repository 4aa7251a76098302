//! `afar sweep`: nothing lost, nothing run twice, and failures are results.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use results::{Requirements, Side, Standing, Verdict};
use serde_json::Value;
use support::{Ended, Launch, swap_usable, usable};
use test_support::Scratch;

/// An experiment in a directory of its own.
struct Experiment {
    directory: Scratch,
    file: PathBuf,
}

impl Experiment {
    fn new(name: &str, text: &str) -> Self {
        let directory = Scratch::new(&format!("experiment-{name}"));
        let file = directory.file("experiment.toml", text);
        Self { directory, file }
    }

    fn launch(&self, flags: &[&str]) -> Launch {
        let file = self.file.to_str().expect("paths here are text");
        let words = [env!("CARGO_BIN_EXE_afar"), "sweep", file];
        let launch = Launch::new(words.iter().chain(flags)).env("TMPDIR", self.directory.path());
        // A hundred runs, each with its calibration, on a machine that does more beside.
        launch.limit(Duration::from_secs(600))
    }

    fn run(&self, flags: &[&str], status: i32) -> Ended {
        let ended = self.launch(flags).run().expect(status, &format!("sweep {flags:?}"));
        ended.leaves_nothing("sweep");
        ended
    }

    /// Every run of the journal, by cell and block.
    fn rows(&self) -> BTreeMap<(String, u64), Value> {
        let runs = self.directory.join("experiment.sweep/runs");
        let mut rows = BTreeMap::new();
        for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let text = fs::read_to_string(entry.path()).expect("it is there");
            let row: Value = serde_json::from_str(&text).expect("every run is whole");
            let cell = row["cell"].as_str().expect("a name").to_owned();
            let twice = rows.insert((cell, row["block"].as_u64().expect("a number")), row);
            assert!(twice.is_none(), "run twice: {twice:?}");
        }
        rows
    }

    /// Directories that runs made for themselves and should have removed.
    fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.path()).expect("it is there").flatten();
        let paths = entries.map(|entry| entry.path());
        let is_ours = |path: &PathBuf| path.to_string_lossy().contains("afar-sweep-");
        paths.filter(is_ours).collect()
    }
}

/// Runs count whatever else the machine does meanwhile.
const ANYWHERE: &str = "attempts = 1\nstolen_max = \"100%\"\nothers_max = \"100%\"\n";
/// Has 12 MB of memory for a moment: with less nothing is told of a run.
const WEIGHT: &str = "head -c 12000000 /dev/zero | tail -c 12000000 >/dev/null";
const MATRIX: &str = "[matrix]\nlocal = [\"50%\", \"100%\"]\n";

/// Cells of that: one without huge pages only where there are some.
fn cell_count() -> usize {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    4 + usize::from(setting.is_ok_and(|setting| !setting.contains("[never]")))
}

#[test]
fn a_sweep_killed_at_any_moment_goes_on() {
    if !usable("bpf", "sweep::killed") {
        return;
    }
    let count = format!("echo x >> {{count}}; {WEIGHT}; sleep 0.05");
    // Every start is counted: none is because of what else the machine does.
    let text = format!(
        "repetitions = 3\nattempts = 1\n\
         [workload]\ncommand = [\"sh\", \"-c\", \"{count}\"]\n{MATRIX}"
    );
    let experiment = Experiment::new("killed", &text);
    let file = experiment.directory.join("count");
    let text = text.replace("{count}", file.to_str().expect("paths here are text"));
    fs::write(&experiment.file, text).expect("the scratch directory can be written to");
    let mut before = BTreeMap::new();
    for round in 0..40_u64 {
        let running = experiment.launch(&["--quiet"]).start();
        sleep(Duration::from_millis(70 + round * 37 % 200));
        running.signal("KILL");
        running.wait().leaves_nothing("a killed sweep");
        let rows = experiment.rows();
        assert!(before.iter().all(|(key, row)| rows.get(key) == Some(row)), "something was lost");
        before = rows;
    }
    experiment.run(&[], 0);
    assert!(experiment.left().is_empty(), "{:?}", experiment.left());
    let count = 3 * cell_count();
    assert_eq!(experiment.rows().len(), count);
    // Whatever ended was run once; what was killed in the middle was run again.
    let started = fs::read_to_string(file).expect("it was run").lines().count();
    assert!((count..=count + 41).contains(&started), "{started}");
    let started_before = started;
    let again = experiment.run(&["--csv", "-"], 0);
    assert_eq!(again.text().lines().count(), 1 + cell_count());
    let file = experiment.directory.join("count");
    let started = fs::read_to_string(file).expect("it was run").lines().count();
    assert_eq!(started, started_before, "a finished sweep runs nothing");
    // A run that is killed leaves its socket.
    let repair = [env!("CARGO_BIN_EXE_afar"), "doctor", "--repair"];
    Launch::new(repair).run().expect(0, "afar doctor --repair");
}

#[test]
fn an_interrupted_sweep_says_so_and_goes_on() {
    if !usable("bpf", "sweep::interrupted") {
        return;
    }
    let text = format!(
        "repetitions = 2\n[workload]\n\
         command = [\"sh\", \"-c\", \"{WEIGHT}; sleep 0.2\"]\n{MATRIX}"
    );
    let experiment = Experiment::new("interrupted", &text);
    let running = experiment.launch(&[]).start();
    while experiment.rows().is_empty() {
        sleep(Duration::from_millis(20));
    }
    running.signal("INT");
    let ended = running.wait().expect(130, "an interrupted sweep");
    ended.leaves_nothing("an interrupted sweep");
    assert!(ended.stderr.contains("the same command goes on from there"), "{}", ended.stderr);
    let before = experiment.rows().len();
    let (cells, runs) = (cell_count(), 2 * cell_count());
    assert!((1..runs).contains(&before), "{before}");
    let plan = experiment.run(&["--dry-run"], 0).text();
    let first = format!("{cells} cells in 2 blocks: {runs} runs, {before} of them done\n");
    assert!(plan.starts_with(&first), "{plan}");
    assert!(plan.contains("time left: about "), "{plan}");
    let table = experiment.run(&["--table"], 0).text();
    assert_eq!(experiment.rows().len(), runs);
    assert!(table.contains("slowdown against local (of=peak)\n"), "{table}");
    assert_eq!(table.contains("\nnative without huge pages: "), cells == 5, "{table}");
    assert!(experiment.left().is_empty());
}

/// A workload whose figure is 100, and something else under afar, in 5 blocks.
fn gated(name: &str, figure: &str) -> Experiment {
    let experiment = Experiment::new(name, "");
    let count = experiment.directory.join("count");
    let count = count.to_str().expect("paths here are text");
    // Two cells run under afar in each block.
    let script = format!(
        "{WEIGHT}; f=100; if [ -n \\\"$AFAR_SUPERVISOR\\\" ]; then touch {count}; \
         b=$(($(wc -l < {count}) / 2)); echo x >> {count}; {figure}; fi; echo figure $f"
    );
    let text = format!(
        "{ANYWHERE}[workload]\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[metric]\n\
         pattern = \"figure ([0-9]+)\"\n[matrix]\nlocal = [\"50%\"]\n"
    );
    fs::write(&experiment.file, text).expect("the scratch directory can be written to");
    experiment
}

#[test]
fn a_gate_opens_only_for_what_is_decided_and_fast_enough() {
    if !usable("bpf", "sweep::gate") {
        return;
    }
    for (name, figure, status, said) in [
        ("within", "f=102", 0, ""),
        ("above", "f=120", 5, "--fail-above 5%: 1 of 1 cells are slower than that"),
        ("open", "f=$((100 + b % 2 * 20))", 6, "--fail-above 5%: 1 of 1 cells are not decided"),
        ("invalid", "[ $b = 3 ] && f=none; true", 1, "it printed no figure"),
    ] {
        let experiment = gated(name, figure);
        let ended = experiment.run(&["--fail-above", "5%", "--csv", "-"], status);
        assert!(ended.stderr.contains(said), "{name}: {}", ended.stderr);
        assert_eq!(ended.text().lines().count(), cell_count(), "the table comes anyway");
        // The answer of a sweep that has run is the same, and no gate is shut without one.
        experiment.run(&["--fail-above", "25%"], if status == 1 { 1 } else { 0 });
    }
}

/// A workload that does something else under afar.
fn spoilt(name: &str, timeout: &str, spoiler: &str, metric: &str) -> Experiment {
    let script =
        format!("{WEIGHT}; if [ -n \\\"$AFAR_SUPERVISOR\\\" ]; then {spoiler}; fi; echo figure 7");
    let text = format!(
        "repetitions = 1\ntimeout = \"{timeout}\"\n[workload]\ncommand = [\"sh\", \"-c\", \
         \"{script}\"]\n{metric}{MATRIX}"
    );
    Experiment::new(name, &text)
}

#[test]
fn runs_that_fail_are_reported_and_the_rest_goes_on() {
    if !usable("bpf", "sweep::failures") {
        return;
    }
    let pattern = "[metric]\npattern = \"figure ([0-9]+)\"\nbetter = \"higher\"\n";
    let cases = [
        ("fails", "60s", "echo oh no; exit 3", "exit status: 3: oh no"),
        // Runs without afar end well before.
        ("hangs", "4s", "sleep 1000", "it took longer than 4 s"),
        (
            "silent",
            "60s",
            "exec true",
            "it printed no figure above 0 that metric.pattern \"figure ([0-9]+)\" finds: it \
             printed nothing",
        ),
    ];
    for (name, timeout, spoiler, why) in cases {
        let experiment = spoilt(name, timeout, spoiler, pattern);
        let ended = experiment.run(&[], 1);
        let rows = experiment.rows();
        assert_eq!(rows.len(), cell_count(), "{name}");
        for ((cell, _), row) in rows {
            if cell == "native" || cell == "small" {
                assert_eq!(row["value"], 7.0);
            } else if cell.starts_with("local=50%") {
                // Nobody knows of what that is a half.
                let failure = row["failure"].as_str().expect("it did not run");
                assert!(
                    failure.contains(&format!("all memory local: {why}; mend that")),
                    "{failure}"
                );
                assert_eq!(row["of_bytes"], Value::Null, "{row}");
            } else {
                assert_eq!(row["failure"], *why, "{name}: {cell}");
            }
        }
        assert!(ended.text().contains(&format!("1 failed: {why}")), "{}", ended.text());
        assert!(ended.stderr.contains(&format!("block 1: {why}")), "{}", ended.stderr);
        assert!(experiment.left().is_empty());
    }
}

#[test]
fn a_server_is_loaded_when_it_is_ready_and_ended_afterwards() {
    if !usable("bpf", "sweep::server") || !support::installed(&["redis-server"], "sweep::server") {
        return;
    }
    let text = "repetitions = 1\ntimeout = \"60s\"\n[workload]\n\
        command = [\"redis-server\", \"--port\", \"{port}\", \"--save\", \"\",\n\
        \"--dir\", \"{dir}\"]\n\
        ready_tcp = \"127.0.0.1:{port}\"\n\
        load = [\"afar\", \"load\", \"kv\", \"redis://127.0.0.1:{port}\",\n\
        \"--fill\", \"--verify\",\n\
        \"--keys\", \"20000\", \"-n\", \"5000\", \"--json\", \"-\"]\n\
        [metric]\njson = \"/results/requests_per_s\"\nbetter = \"higher\"\n\
        [matrix]\nlocal = [\"25%\"]\nrtt = [\"20us\"]\n";
    let experiment = Experiment::new("server", text);
    let ended = experiment.run(&["--csv", "-"], 0);
    let rows = experiment.rows();
    let far = &rows[&("local=25% of=peak rtt=20us".to_owned(), 0)];
    assert!(far["fetch_count"].as_u64().expect("afar counted") > 100, "{far}");
    assert!(far["value"].as_f64() > Some(100.0));
    let slowdown =
        ended.text().lines().last().and_then(|line| line.split(',').nth(10)?.parse().ok());
    assert!(slowdown > Some(1.0_f64), "{}", ended.text());
    assert!(experiment.left().is_empty());
}

/// What `afar run` was told, by the record that each run of a sweep leaves.
#[test]
fn a_share_is_a_fixed_amount_whatever_comes_in_between() {
    if !usable("bpf", "sweep::share") {
        return;
    }
    let text = |of: &str| {
        format!(
            "{ANYWHERE}repetitions = 3\n[workload]\ncommand = [\"sh\", \"-c\", \"{WEIGHT}\"]\n\
             [matrix]\nlocal = [\"25%\", \"50%\"]\n{of}"
        )
    };
    let experiment = Experiment::new("share", &text(""));
    // Interrupted at once: what the first run with all memory local has told stays so.
    let running = experiment.launch(&["--quiet"]).start();
    while experiment.rows().len() < 2 {
        sleep(Duration::from_millis(20));
    }
    running.signal("INT");
    running.wait().expect(130, "an interrupted sweep").leaves_nothing("an interrupted sweep");
    let first = |rows: &BTreeMap<(String, u64), Value>| {
        rows.get(&("zero".to_owned(), 0)).and_then(|row| row["managed_peak_bytes"].as_u64())
    };
    let before = first(&experiment.rows());
    let table = experiment.run(&["--table"], 0).text();
    let rows = experiment.rows();
    let whole = first(&rows).expect("it ran");
    assert!(whole > 12_000_000, "{whole}");
    assert!(before.is_none_or(|before| before == whole), "{before:?}");
    for (local, share) in [("25%", 4), ("50%", 2)] {
        for block in 0..3 {
            let row = &rows[&(format!("local={local} of=peak"), block)];
            assert_eq!(
                (&row["of_bytes"], &row["local_bytes"]),
                (&whole.into(), &(whole / share).into())
            );
            // Memory of all processes is shared by all.
            assert!(row["fetch_count"].is_u64(), "{row}");
        }
    }
    let line = table.lines().find(|line| line.starts_with("of=peak: "));
    let line = line.unwrap_or_else(|| panic!("{table}"));
    assert!(line.ends_with("(the most it used), in its first run with all memory local"), "{line}");
    let report = [env!("CARGO_BIN_EXE_afar"), "report"];
    let directory = experiment.directory.join("experiment.sweep");
    let directory = directory.to_str().expect("paths here are text");
    let said = Launch::new(report.iter().chain(&[directory])).run().expect(0, "a report").text();
    assert!(said.contains("A share of local memory is a share of "), "{said}");
    assert!(said.contains("(the most it used)."), "{said}");

    let live = Experiment::new("live", &text("of = [\"live\"]\n").replace("= 3", "= 1"));
    let json = live.run(&["--json", "-"], 0).text();
    let found: results::Findings = results::read(&json).expect("findings");
    let far: Vec<_> = found.cells.iter().filter(|cell| cell.share_of().is_some()).collect();
    assert_eq!(far.len(), 2);
    for cell in far {
        assert_eq!((cell.value("of"), cell.of_bytes, cell.local_bytes), ("live", None, None));
    }
    let table = live.run(&["--table"], 0).text();
    assert!(table.contains("what is in use at each moment (live footprint)\n"), "{table}");
}

#[test]
fn a_requirement_is_bracketed() {
    if !usable("bpf", "sweep::find") {
        return;
    }
    // 8 MiB touched page by page: some 5 times slower at 20 us, 25 or more at 500.
    let probe = env!("CARGO_BIN_EXE_afar");
    let text = format!(
        "{ANYWHERE}[workload]\ncommand = [\"{probe}\", \"probe\", \"--pages\", \"2048\", \
         \"--touches\", \"700\"]\n[find]\nlocal = \"50%\"\nrtt = \"500us\"\nbandwidth = \"none\"\n\
         local_steps = [\"100%\", \"50%\"]\nrtt_steps = [\"20us\", \"500us\"]\n\
         bandwidth_steps = [\"none\", \"100Mbps\"]\n"
    );
    let experiment = Experiment::new("find", &text);
    let table = experiment.run(&["--find", "1200%"], 0).text();
    let line = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{table}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(line("rtt at most").starts_with("rtt at most 20us"), "{table}");
    assert!(line("rtt at most").contains(" 500us "), "{table}");
    assert!(line("local at least").starts_with("local at least 100%"), "{table}");
    assert!(line("bandwidth at least").starts_with("bandwidth at least none of the"), "{table}");
    assert!(!table.contains("CONFIRMED") && !table.contains("UNDECIDED"), "{table}");
    // Nothing is left to be run; the same answer comes as data.
    let runs = experiment.rows().len();
    let answer = experiment.run(&["--find", "1200%", "--json", "-"], 0).text();
    assert_eq!(experiment.rows().len(), runs);
    let answer: Requirements = results::read(&answer).expect("it is a requirement");
    assert_eq!(answer.requirements[0].axis, "rtt");
    assert_eq!(answer.requirements[0].standing, Standing::Confirmed);
    let verdict = |side: &Option<Side>| {
        let slowdown = side.as_ref().and_then(|side| side.slowdown).expect("it was run");
        slowdown.verdict(answer.slowdown_max)
    };
    assert_eq!(verdict(&answer.requirements[0].last_good), Verdict::Within);
    assert_eq!(verdict(&answer.requirements[0].first_bad), Verdict::Beyond);
    let directory = experiment.directory.join("experiment.sweep").display().to_string();
    let words = ["plan", "latency", "--sweep", &directory, "--json", "-"];
    let told = Launch::new([probe].iter().chain(&words)).run().expect(0, "plan latency").text();
    let told: results::plan::latency::RoundTrips = results::read(&told).expect("it is a record");
    let target = told.targets.last().expect("what the sweep has found is the last");
    assert_eq!((target.name.as_str(), target.rtt_ns), ("experiment", 20_000.0), "{told:?}");
}

#[test]
fn engines_are_compared_each_with_a_baseline_of_its_own() {
    if !usable("bpf", "sweep::engines") || !swap_usable("sweep::engines") {
        return;
    }
    let probe = env!("CARGO_BIN_EXE_afar");
    let text = format!(
        "repetitions = 1\n[workload]\ncommand = [\"{probe}\", \"probe\", \"--pages\", \"8192\"]\n\
         [matrix]\nengine = [\"arena\", \"swap\"]\nlocal = [\"8MiB\"]\nrtt = [\"20us\"]\n"
    );
    let experiment = Experiment::new("engines", &text);
    let answer = experiment.run(&["--json", "-"], 0).text();
    let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
    let cells = answer["cells"].as_array().expect("there are some");
    let find = |kind: &str, engine: &str| {
        let mut cells = cells.iter();
        let is_it = |cell: &&Value| cell["kind"] == kind && cell["settings"]["engine"] == engine;
        cells.find(is_it).unwrap_or_else(|| panic!("{kind} {engine}: {answer}"))
    };
    let rows = experiment.rows();
    let value = |cell: &str| rows[&(cell.to_owned(), 0)]["value"].as_f64().expect("it ran");
    for engine in ["arena", "swap"] {
        assert_eq!(find("zero", engine)["fetch_count"], 0);
        // The default engine is not named.
        let (zero, far) = match engine {
            "arena" => ("zero", "local=8MiB rtt=20us"),
            _ => ("zero engine=swap", "engine=swap local=8MiB rtt=20us"),
        };
        assert!(find("far", engine)["fetch_count"].as_u64() > Some(1000), "{answer}");
        for (kind, cell) in [("zero", zero), ("far", far)] {
            let slowdown = find(kind, engine)["slowdown"]["median"].as_f64().expect("it ran");
            let of_rows = value(cell) / value("native");
            assert!((slowdown / of_rows - 1.0).abs() < 1e-9, "{kind} {engine}: {answer}");
        }
    }
    assert!(experiment.left().is_empty());
}

#[test]
fn bad_input_is_one_sentence_and_starts_nothing() {
    let refused = |name: &str, text: &str, flags: &[&str], sentence: &str| {
        let experiment = Experiment::new(name, text);
        let ended = experiment.run(flags, 2);
        assert!(ended.stderr.contains(sentence), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(experiment.rows().is_empty());
    };
    let least = "[workload]\ncommand = [\"true\"]\n";
    refused("bad-0", least, &[], "matrix has no values; give some, or use --find");
    refused("bad-1", "[wrkload]", &[], "line 1: unknown field `wrkload`");
    refused("bad-2", &format!("{least}[matrix]\nlocal = [\"0\"]"), &[], "matrix.local: \"0\"");
    refused(
        "bad-3",
        least,
        &["--find", "5"],
        "--find 5: give a share above 0 with its sign, such as 5%",
    );
    let empty = format!("{least}[matrix]\nlocal = []");
    refused("bad-5", &empty, &[], "line 4: an empty list; give values, or leave the key out");
    let gone = "[workload]\ncommand = [\"no-such-program\"]\n[matrix]\nrtt = [\"5us\"]";
    refused("bad-6", gone, &[], "workload.command: no-such-program: not found on this machine");
    let text = format!("{least}[matrix]\nrtt = [\"5us\"]");
    refused("bad-7", &text, &["-o", "/dev/null"], "/dev/null: File exists (os error 17); it is no");
    let file = Path::new("/no/such/experiment.toml");
    let words = [env!("CARGO_BIN_EXE_afar"), "sweep", file.to_str().expect("text")];
    let ended = Launch::new(words).run().expect(2, "a missing file");
    assert!(ended.stderr.contains("/no/such/experiment.toml: No such file"), "{}", ended.stderr);
    let text = format!("repetitions = 1\n{least}{MATRIX}");
    let experiment = Experiment::new("bad-4", &text);
    let results = experiment.directory.join("experiment.sweep");
    fs::create_dir_all(&results).expect("it is ours");
    fs::write(results.join("sweep.json"), "{}").expect("it is ours");
    let ended = experiment.run(&[], 2);
    assert!(ended.stderr.contains("has the results of another experiment"), "{}", ended.stderr);
}
