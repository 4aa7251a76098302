//! What a run says about itself: the record, the file of faults, the summary, the dry run.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use measure::{Run, RunResults};
use records::{FaultKind, FaultReader};

use crate::{AFAR, Scratch, afar, command, run, skip, stderr, stdout, text};

/// Four times as many pages as are local, touched in turn: under FIFO every touch is a fetch.
const PAGES: u64 = 2048;
const TOUCHES: u64 = 5000;
const LOCAL: &str = "2MiB";

fn probe(output: &Path) -> Vec<String> {
    let words = [
        "--",
        AFAR,
        "probe",
        &format!("--pages={PAGES}"),
        &format!("--touches={TOUCHES}"),
        &format!("--output={}", output.display()),
    ];
    words.map(str::to_owned).to_vec()
}

fn read(path: &Path) -> Run {
    let record = std::fs::read_to_string(path).unwrap();
    Run::<RunResults>::from_json(&record).unwrap()
}

#[test]
fn json_is_a_record_with_the_numbers_of_the_run() {
    let scratch = Scratch::new("cli");
    let json = scratch.join("run.json");
    let flags = ["--local", LOCAL, "--policy", "fifo", "--rtt", "50us", "--seed", "9"];
    let outputs = ["--json", text(&json)];
    let words = flags.iter().chain(&outputs).map(|&word| word.to_owned());
    let Some(output) = run("json", words.chain(probe(&scratch.join("probe.json")))) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = read(&json);
    assert_eq!((run.seed, run.params.rtt_ns), (9, 50_000));
    assert_eq!((run.params.policy.as_str(), run.params.local.as_str()), ("fifo", "2.0 MiB"));
    assert_eq!(run.params.local_bytes, Some(2 << 20));
    assert!(run.command.iter().any(|word| word == "probe"), "{:?}", run.command);
    assert!(run.host.memory_bytes > 0 && run.host.cpu_count > 0 && !run.host.kernel.is_empty());
    let results = run.results;
    assert_eq!((results.exit_status, results.signal), (Some(0), None));
    let figures = results.figures().unwrap();
    assert!(figures.faults.fetch_count >= TOUCHES, "{:?}", figures.faults);
    assert!(figures.faults.first_touch_count >= PAGES, "{:?}", figures.faults);
    assert_eq!(figures.fetched_bytes, figures.faults.fetch_count * 4096);
    // A histogram keeps three digits.
    let requested_ns = figures.fault_latency.requested.p50_ns;
    assert!((50_000..=50_050).contains(&requested_ns), "{requested_ns} ns");
    assert!(figures.fault_latency.achieved.p50_ns >= 50_000, "{:?}", figures.fault_latency);
    assert!(figures.elapsed_ns >= TOUCHES * 50_000, "{} ns", figures.elapsed_ns);
    assert!(figures.managed_peak_bytes >= PAGES * 4096);
    assert_eq!(results.calibration, None);
    assert!(results.images.iter().any(|image| image.managed));
    assert!(results.coverage.managed_bytes >= PAGES * 4096, "{:?}", results.coverage);
}

/// A processor that waits with interrupts off answers nobody: no packet, no timer, and no other
/// processor that unmaps a page.
#[test]
fn interrupts_are_let_in_while_a_thread_waits() {
    const CALLER: &str = "interrupts_are_let_in_while_a_thread_waits";
    let scratch = Scratch::new("cli");
    let json = scratch.join("run.json");
    let flags = ["--trap", "bpf", "--wait", "spin", "--no-calibrate", "--rtt", "200us"];
    let more = ["--local", LOCAL, "--policy", "fifo", "--json", text(&json)];
    let words = flags.iter().chain(&more).map(|&word| word.to_owned());
    let words = words.chain(probe(&scratch.join("probe.json")));
    let output = afar(["run".to_owned()].into_iter().chain(words));
    if output.status.code() == Some(3) {
        return skip(CALLER, &stderr(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = read(&json);
    assert_eq!((run.params.trap.as_str(), run.params.wait.as_str()), ("bpf", "spin"));
    let figures = run.results.figures().unwrap();
    assert!(figures.faults.fetch_count >= TOUCHES, "{:?}", figures.faults);
    assert!(figures.fault_latency.achieved.p50_ns >= 200_000, "{:?}", figures.fault_latency);
    let own = figures.mechanism;
    assert!(own.interrupts_off_max_ns > 0, "{own:?}");
    // The machine below may stop a processor at any time, and here that may be often.
    assert!(own.interrupts_off_long_count < TOUCHES / 4, "{own:?}");
}

/// A thread that sleeps leaves its processor to others; that takes the other trap.
#[test]
fn who_is_to_sleep_does() {
    let scratch = Scratch::new("cli");
    let json = scratch.join("run.json");
    let flags = ["--wait", "sleep", "--rtt", "50us", "--local", LOCAL, "--json", text(&json)];
    let words = flags.map(str::to_owned).into_iter().chain(probe(&scratch.join("probe.json")));
    let Some(output) = run("sleep", words) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = read(&json);
    assert_eq!((run.params.trap.as_str(), run.params.wait.as_str()), ("userfaultfd", "sleep"));
    assert_eq!(run.results.figures().unwrap().mechanism.interrupts_off_max_ns, 0);
}

#[test]
fn memory_that_is_given_back_does_not_count_twice() {
    let scratch = Scratch::new("cli");
    let json = scratch.join("run.json");
    // Three buffers, one after another, of a size that allocators give back at once.
    let sort = ["--", AFAR, "workload", "sort", "--size", "32MiB", "--repetitions", "3"];
    for local in ["100%", "90%"] {
        let flags = ["--local", local, "--json", text(&json)];
        if run("peak", flags.iter().chain(&sort)).is_none() {
            return;
        }
        let results = read(&json).results;
        let figures = results.figures().unwrap();
        let peak = figures.managed_peak_bytes;
        assert!((32 << 20..40 << 20).contains(&peak), "{local}: {peak} B");
        assert!(figures.faults.first_touch_count >= 3 * 32 * 256, "{local}: {:?}", figures.faults);
    }
}

#[test]
fn json_to_standard_output_follows_the_programs() {
    let Some(output) = run("json", ["-q", "--json", "-", "--", "echo", "first"]) else {
        return;
    };
    let text = stdout(&output);
    let record = text.strip_prefix("first\n").expect("the program's output comes first");
    assert_eq!(Run::<RunResults>::from_json(record).unwrap().results.exit_status, Some(0));
}

#[test]
fn calibration_is_part_of_the_record() {
    let scratch = Scratch::new("cli");
    let json = scratch.join("run.json");
    let flags = ["run", "-q", "--rtt", "900us", "--json", text(&json), "--", "true"];
    let output = afar(flags);
    if output.status.code() == Some(3) {
        return skip("calibration", &stderr(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let calibration = read(&json).results.calibration.expect("it was calibrated");
    assert!((100..900_000).contains(&calibration.floor_ns), "{calibration:?}");
    // None, if other programs have slowed the processor down meanwhile.
    assert!(calibration.constant_ns < 900_000, "{calibration:?}");
}

#[test]
fn record_has_a_row_for_each_fault() {
    let scratch = Scratch::new("cli");
    let (json, faults) = (scratch.join("run.json"), scratch.join("faults.parquet"));
    let flags = ["-q", "--local", LOCAL, "--policy", "fifo", "--rtt", "20us"];
    let outputs = ["--json", text(&json), "--record", text(&faults)];
    let words = flags.iter().chain(&outputs).map(|&word| word.to_owned());
    let Some(output) = run("record", words.chain(probe(&scratch.join("probe.json")))) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let counts = read(&json).results.figures().unwrap().faults;
    let mut reader = FaultReader::new(File::open(&faults).unwrap()).unwrap();
    assert_eq!(reader.note("schema"), Some("afar.faults/1"));
    let mut rows = Vec::new();
    while let Some(group) = reader.next_group().unwrap() {
        rows.extend(group);
    }
    let of_kind = |kind| rows.iter().filter(|row| row.kind == kind).count() as u64;
    assert_eq!(of_kind(FaultKind::Fetch), counts.fetch_count);
    assert_eq!(of_kind(FaultKind::FirstTouch), counts.first_touch_count);
    assert_eq!(of_kind(FaultKind::Soft), counts.soft_count);
    assert_eq!(of_kind(FaultKind::Prefetch), counts.prefetch_count);
    let timed = rows.iter().filter(|row| row.kind == FaultKind::Fetch && row.measured_ns > 0);
    assert!(timed.clone().count() > 0);
    assert!(timed.clone().all(|row| row.requested_ns >= 20_000), "at least the round trip");
}

#[test]
fn record_is_finished_when_the_program_is_terminated() {
    let scratch = Scratch::new("cli");
    let (faults, ready) = (scratch.join("faults.parquet"), scratch.join("ready"));
    // Memory first: with hardly any nothing is told of a run.
    let weight = "head -c 20000000 /dev/zero | tail -c 20000000 >/dev/null";
    let script = format!("{weight}; touch {}; exec sleep 50", ready.display());
    let mut afar = Command::new(AFAR);
    afar.args(["run", "--record", text(&faults), "--", "timeout", "55", "sh", "-c", &script]);
    let child = afar.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !ready.exists() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    if ready.exists() {
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }
    let output = child.wait_with_output().unwrap();
    if output.status.code() == Some(3) {
        return skip("record_is_finished", &stderr(&output));
    }
    assert_eq!(output.status.signal(), None);
    assert!(ready.exists(), "{}", stderr(&output));
    // timeout(1) passes the signal on and ends with it, or says 124.
    assert!(matches!(output.status.code(), Some(143 | 124)), "{}", stderr(&output));
    assert!(stderr(&output).contains("local memory"), "the summary: {}", stderr(&output));
    let mut reader = FaultReader::new(File::open(&faults).unwrap()).unwrap();
    assert!(reader.row_count() > 0 && reader.next_group().unwrap().is_some());
}

#[test]
fn summary_says_how_it_went_and_is_plain_when_piped() {
    let scratch = Scratch::new("cli");
    let flags = ["--local", LOCAL, "--policy", "fifo", "--rtt", "300us"].map(str::to_owned);
    let words = flags.into_iter().chain(probe(&scratch.join("probe.json")));
    let Some(output) = run("summary", words) else {
        return;
    };
    let said = stderr(&output);
    for wanted in [
        "ended with status 0 after ",
        "\nlocal memory  2.0 MiB of ",
        "\nbudget        ",
        "\nlink          rtt 300.0 µs\n",
        "\nfaults        ",
        "\ntraffic       ",
        "\ncoverage      ",
        "\nfetch, µs           mean       p50       p95       p99     p99.9       max\n",
        "\nrequested          300.",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is missing in {said}");
    }
    // It ran for more than a second, and still no live line.
    assert!(!said.contains(['\r', '\x1b']), "{said}");
    assert!(said.lines().count() <= 24, "more than a screen: {said}");
}

#[test]
fn live_line_on_a_terminal_only_while_it_runs() {
    let shell = format!("{AFAR} run --no-calibrate -q -- true && {AFAR} run -- sleep 2");
    let mut script = Command::new("timeout");
    script.args(["-s", "KILL", "60", "script", "-qec", &shell, "/dev/null"]);
    let Ok(output) = script.env("TERM", "xterm").stdin(Stdio::null()).output() else {
        return skip("live_line", "no script(1)");
    };
    if !output.status.success() {
        return skip("live_line", "no trap, or no script(1)");
    }
    let shown = stdout(&output);
    assert!(shown.contains(" faults/s"), "{shown:?}");
    let (_, after) = shown.rsplit_once(" faults/s").unwrap();
    assert!(after.contains("\x1b[J\r\n"), "erased before the summary: {after:?}");
    assert!(after.contains("sleep ended with status 0"), "{after:?}");
}

#[test]
fn dry_run_resolves_and_runs_nothing() {
    let scratch = Scratch::new("cli");
    let marker = scratch.join("started");
    let flags = ["run", "--dry-run", "--like", "dime", "--one-way", "3us", "--local", "25%"];
    let tier = ["--of", "2GiB", "--tier", "name=slow,rtt=20us,bandwidth=10Gbps"];
    let program = ["--", "touch", text(&marker)];
    let output = afar(flags.iter().chain(&tier).chain(&program));
    if output.status.code() == Some(3) {
        return skip("dry_run", &stderr(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!marker.exists());
    let resolved: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(resolved["schema"], "afar.experiment/1");
    let params = &resolved["params"];
    assert_eq!((&params["rtt_ns"], &params["link"]), (&6000.into(), &"per-fault".into()));
    assert_eq!(params["policy"], "fifo");
    assert_eq!(params["local_bytes"], 512 << 20);
    assert_eq!(params["tiers"][0]["bandwidth_bps"], 10_000_000_000_u64);
    assert_eq!(resolved["program"][0], "touch");
}

#[test]
fn an_older_record_outlives_a_run_that_fails() {
    let scratch = Scratch::new("cli");
    let json = scratch.file("run.json", b"older");
    let output = afar(["run", "--json", text(&json), "--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(std::fs::read(&json).unwrap(), b"older");
}

#[test]
fn results_that_cannot_be_written_are_our_failure() {
    for flag in ["--json", "--record"] {
        let Some(output) = run("full disk", ["-q", flag, "/dev/full", "--", "true"]) else {
            return;
        };
        assert_eq!(output.status.code(), Some(125), "{flag}");
        let said = stderr(&output);
        assert!(said.contains("/dev/full") && said.contains("check the space"), "{said}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let commands: [&[&str]; 4] = [
        &["run", "--help"],
        &["completions", "bash"],
        &["ctl", "list"],
        &["run", "-q", "--json", "-", "--", "true"],
    ];
    for arguments in commands {
        let mut child = command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 3)), "{arguments:?}: {status}");
    }
}

#[test]
fn tables_are_rows_with_units_in_their_names() {
    let scratch = Scratch::new("cli");
    let device = stdout(&afar(["plan", "admit", "--print"]));
    let device = scratch.file("device.toml", device.as_bytes());
    for (words, head) in [
        (&["plan", "admit", text(&device)][..], "name,tokens_per_sec,p95_us,admitted,reason"),
        (&["workload", "sort", "--size=1MiB"], "repetition,elapsed_ns,checksum"),
    ] {
        let output = afar([words, &["--csv", "-"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let rows = stdout(&output);
        assert_eq!(rows.lines().next(), Some(head), "{words:?}");
        assert!(rows.lines().count() > 1, "{rows}");
    }
    let few = ["sim", "--topology=single-switch", "--hosts=4", "--flows=50", "--load=20%"];
    let output = afar(few.iter().chain(&["--sizes=4KiB", "--repetitions=6", "--csv", "-"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("over_bytes,to_bytes,count"), "{}", stdout(&output));
}
