//! `afar bench`: what it says of a load, as people and fio's readers see it.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Launch, Running, installed};
use test_support::scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";

/// A target that serves, and its disk's URI.
fn serve(disk: &str) -> (Running, String) {
    let disk = format!("nqn.2026-11.local.afar:disk={disk}");
    let (target, ready) = Launch::new([AFAR, "serve", &disk, "--nvme", "127.0.0.1:0"]).serve();
    let uri = format!("nvme+tcp://{}/{NQN}", ready.nvme[0]);
    (target, uri)
}

fn stop(target: Running) {
    target.signal("INT");
    target.wait().expect(0, "afar serve").leaves_nothing("afar serve");
}

fn bench(words: &[&str]) -> Launch {
    Launch::new([AFAR, "bench"].iter().chain(words))
}

fn record(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// A file that goes with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let file = Self::absent(name);
        std::fs::write(&file.0, text).expect("there is room for temporary files");
        file
    }

    fn absent(name: &str) -> Self {
        Self(scratch(name))
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("it is text")
    }
}

fn fio(words: &[&str]) -> (bool, String) {
    let output = Command::new("fio").args(words).output().expect("fio is installed");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn processors_of_both_sides_are_accounted_for() {
    let (target, uri) = serve("memory:16MiB");
    let json = File::absent("processors.json");
    let words = [&uri, "--depth", "8", "--requests", "20000", "--json", json.name()];
    let ended = bench(&words).run().expect(0, "afar bench");
    let record = record(&std::fs::read_to_string(json.name()).expect("it was written"));
    let processors = &record["afar"]["phases"][0]["processors"];
    assert_eq!(processors["request_count"], 20_000);
    let process = &processors["target"]["processes"][0];
    assert_eq!((&process["pid"], &process["name"]), (&target.pid().into(), &"afar".into()));
    for side in ["own", "target"] {
        let side = &processors[side];
        let each_ns = number(&side["processor_ns_per_request"]);
        assert!(each_ns > 0.0, "{side}");
        let product = each_ns * number(&side["requests_per_processor_second"]) / 1e9;
        assert!((product - 1.0).abs() < 1e-6, "one is the other's inverse: {side}");
    }
    let job = &record["jobs"][0];
    assert!(number(&job["usr_cpu"]) + number(&job["sys_cpu"]) > 0.0, "{job}");
    assert!(number(&job["ctx"]) > 0.0);
    let line = format!("switches a request; afar, process {}", target.pid());
    assert!(ended.text().contains(&line), "{}", ended.text());
    stop(target);
}

#[test]
fn a_device_of_this_process_has_no_target() {
    let ended = bench(&["null:", "--requests", "1000", "--json", "-"]).run();
    let record = record(&ended.expect(0, "afar bench").text());
    let processors = &record["afar"]["phases"][0]["processors"];
    assert!(number(&processors["own"]["processor_ns_per_request"]) > 0.0);
    assert_eq!(processors["target"], Value::Null);
}

/// A job file for this disk, in the words that people use most.
fn usual(disk: &str) -> String {
    format!(
        "[global]\nfilename={disk}\nsize=4m\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\n\
         time_based\nruntime=1\n\
         [mixed]\nrw=randrw\nrwmixread=70\npercentile_list=50:99\n\
         [after]\nstonewall\nrw=read\nnumjobs=2\ngroup_reporting\n"
    )
}

/// Every path through objects; lists and what is named by numbers are ends.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    found.insert(path.to_owned());
    for (name, value) in value.as_object().into_iter().flatten() {
        let is_end = name == "bins" || name.ends_with("options");
        let path = format!("{path}/{name}");
        match is_end {
            true => drop(found.insert(path)),
            false => paths(value, &path, found),
        }
    }
}

// fio itself runs the same file on the same disk: every field that it writes is in ours, with
// values that can be the same.
#[test]
fn the_record_has_all_that_fios_has() {
    if !installed(&["fio"], "the_record_has_all_that_fios_has") {
        return;
    }
    let disk = File::new("fields.img", "");
    let lengthened = std::fs::File::options().write(true).open(&disk.0);
    lengthened.and_then(|file| file.set_len(4 << 20)).expect("there is room");
    let job = File::new("fields.fio", &usual(disk.name()));
    let (is_good, theirs) = fio(&["--output-format=json+", job.name()]);
    assert!(is_good, "{theirs}");
    let theirs = record(&theirs[theirs.find('{').expect("an object")..]);
    let words = [job.name(), "--overwrite", "--json", "-", "--quiet"];
    let ours = record(&bench(&words).run().expect(0, "afar bench").text());
    for index in 0..2 {
        let [mut theirs_has, mut ours_has] = [BTreeSet::new(), BTreeSet::new()];
        let [theirs, ours] = [&theirs["jobs"][index], &ours["jobs"][index]];
        paths(theirs, "", &mut theirs_has);
        paths(ours, "", &mut ours_has);
        let missing: Vec<_> = theirs_has.difference(&ours_has).collect();
        assert_eq!(missing, Vec::<&String>::new(), "job {index}");
        for same in ["jobname", "groupid", "error", "job options", "latency_depth"] {
            assert_eq!(ours[same], theirs[same], "{same}");
        }
        let percentiles = |job: &Value| {
            let all = job["read"]["clat_ns"]["percentile"].as_object().expect("some").clone();
            all.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(percentiles(ours), percentiles(theirs));
    }
    // What fio says of the machine's disks is not read, and dates are numbers enough.
    let names = |value: &Value| -> BTreeSet<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    let missing: Vec<_> = names(&theirs).difference(&names(&ours)).cloned().collect();
    assert_eq!(missing, ["disk_util", "time"]);
}

#[test]
fn fio_takes_the_files_that_are_taken_here() {
    if !installed(&["fio"], "fio_takes_the_files_that_are_taken_here") {
        return;
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bench/phases.fio");
    let example = std::fs::read_to_string(example).expect("it is there");
    let quick = example.replace("runtime=10", "runtime=100ms").replace("ramp_time=1", "");
    let files = [
        usual("/nowhere/disk.img"),
        quick.replace("bs=1m", "bs=64k"),
        "[a]\nrw=randwrite\nsize=1m\nverify=crc32c\nthinktime=10\n".to_owned(),
        "[global]\nsize=8m\n[trim]\nrw=randtrim\nnumber_ios=9\n[rate]\nrate=1m\nruntime=50ms\n\
         time_based=1\n"
            .to_owned(),
        "; only\n[a b]\nkb_base=1000\nbs=4KiB\nsize=64KiB\nnew_group\nsync=1 # so\n".to_owned(),
    ];
    for (index, text) in files.iter().enumerate() {
        let file = File::new(&format!("taken-{index}.fio"), text);
        assert!(fio(&["--parse-only", file.name()]).0, "fio refuses {text}");
        let ended = if index == 0 {
            // There is no such disk.
            bench(&[file.name()]).run().expect(1, text)
        } else {
            bench(&["memory:16MiB", "--job", file.name()]).run().expect(0, text)
        };
        assert!(!ended.stderr.contains("option"), "{}", ended.stderr);
    }
}

#[test]
fn every_word_of_fios_is_known() {
    if !installed(&["fio"], "every_word_of_fios_is_known") {
        return;
    }
    let (_, help) = fio(&["--cmdhelp=all"]);
    let names = help.lines().filter_map(|line| line.split(':').next()).map(str::trim);
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    assert!(names.len() > 150, "{help}");
    for name in names {
        let file = File::new("word.fio", &format!("[a]\n{name}=wrong\n"));
        let ended = bench(&[file.name()]).run();
        assert_ne!(ended.status, 0, "{name}");
        assert!(!ended.stderr.contains("fio has no option"), "{name}: {}", ended.stderr);
    }
}

#[test]
fn jobs_run_together_or_after_one_another_and_are_reported_by_group() {
    let text = "[global]\nrw=randread\nruntime=60ms\ntime_based\n[a]\n[b]\nbs=8k\n\
                [c]\nstonewall\ngroup_reporting\n[d]\ngroup_reporting\nnumjobs=3\n\
                [e]\nnew_group\ngroup_reporting\n";
    let file = File::new("phases.fio", text);
    let json = File::absent("phases.json");
    let words = ["memory:16MiB", "--job", file.name(), "--json", json.name()];
    let ended = bench(&words).run().expect(0, "afar bench");
    let record = record(&std::fs::read_to_string(json.name()).expect("it was written"));
    let phases = record["afar"]["phases"].as_array().expect("a list");
    let names: Vec<_> = phases.iter().map(|phase| phase["jobs"].clone()).collect();
    assert_eq!(names, [serde_json::json!(["a", "b"]), serde_json::json!(["c", "d", "e"])]);
    let jobs = record["jobs"].as_array().expect("a list");
    let told: Vec<_> = jobs
        .iter()
        .map(|job| (job["jobname"].clone(), job["groupid"].clone(), job["afar"]["phase"].clone()))
        .collect();
    let expected = [("a", 0, 0), ("b", 0, 0), ("c", 1, 1), ("e", 2, 1)];
    assert_eq!(
        told,
        expected.map(|(name, group, phase)| (name.into(), group.into(), phase.into()))
    );
    assert_eq!(jobs[2]["afar"]["jobs"], serde_json::json!(["c", "d"]));
    // Four threads for 60 ms each.
    assert!(number(&jobs[2]["job_runtime"]) >= 240.0, "{}", jobs[2]["job_runtime"]);
    assert_eq!(jobs[1]["read"]["io_bytes"].as_u64().map(|bytes| bytes % 8192), Some(0));
    for wanted in ["afar: [a] memory:16MiB: randread", "[c] [d] as a group", "together\n"] {
        assert!(ended.text().contains(wanted), "{wanted}: {}", ended.text());
    }
    let all: f64 = jobs.iter().map(|job| number(&job["read"]["total_ios"])).sum();
    let counted: f64 = record["afar"]["request_count_by_second"]
        .as_array()
        .expect("a list")
        .iter()
        .map(number)
        .sum();
    assert_eq!(all, counted);
}

#[test]
fn what_is_written_is_verified_in_the_end() {
    let words = ["--rw", "randwrite", "--verify", "--requests", "500", "--json", "-"];
    let run = |disk: &str, status: i32, more: &[&str]| {
        let words = [&[disk], &words[..], more].concat();
        record(&bench(&words).run().expect(status, disk).text())["afar"].clone()
    };
    let kept = run("memory:16MiB", 0, &[]);
    assert!(number(&kept["checked_count"]) > 400.0, "{kept}");
    // Nothing that is written to it is there afterwards.
    let lost = run("null:16MiB", 1, &[]);
    assert_eq!(lost["lost_count"], lost["checked_count"]);
    assert!(number(&lost["lost_count"]) > 400.0, "{lost}");
    assert_eq!(run("null:16MiB", 0, &["--do-verify", "0"])["checked_count"], 0);
}

#[test]
fn a_file_is_made_for_what_writes_and_kept_from_what_would_overwrite() {
    let disk = File::absent("made.img");
    let text = format!(
        "[global]\nfilename={}\n[fill]\nrw=write\nsize=1m\nbs=64k\n\
         [read]\nstonewall\nsize=1m\n",
        disk.name()
    );
    let file = File::new("made.fio", &text);
    let ended = bench(&[file.name(), "--json", "-", "--quiet"]).run().expect(0, "afar bench");
    let record = record(&ended.text());
    let moved = |index: usize, way: &str| record["jobs"][index][way]["io_bytes"].clone();
    assert_eq!((moved(0, "write"), moved(1, "read")), ((1 << 20).into(), (1 << 20).into()));
    assert_eq!(disk.0.metadata().expect("it is there").len(), 1 << 20);
    let again = bench(&[file.name()]).run().expect(2, "a file that is there");
    let reason = "[fill]: rw write would overwrite file:";
    assert!(again.stderr.contains(reason), "{}", again.stderr);
    bench(&[file.name(), "--overwrite", "--quiet"]).run().expect(0, "afar bench --overwrite");
}

#[test]
fn reads_of_a_sparse_file_ask_its_medium_after_a_layout_or_a_fill() {
    use std::os::unix::fs::MetadataExt;
    let disk = File::absent("holes.img");
    let made = std::fs::File::create(&disk.0).expect("there is room");
    made.set_len(8 << 20).expect("it can grow");
    let uri = format!("file:{}", disk.name());
    let room = || disk.0.metadata().expect("it is there").blocks() * 512;
    let run = |words: &[&str], status: i32| {
        let words = [words, &["--requests", "100", "--json", "-"]].concat();
        bench(&words).run().expect(status, "afar bench")
    };
    let bare = run(&[&uri], 0);
    assert!(bare.stderr.contains("sparse: 0 % of it is on its medium"), "{}", bare.stderr);
    assert_eq!(record(&bare.text())["afar"]["is_laid_out"], false);
    let kept = run(&[&uri, "--layout"], 2);
    assert!(kept.stderr.contains("--layout would overwrite file:"), "{}", kept.stderr);
    let read_only = format!("{uri}?readonly");
    let kept = run(&[&read_only, "--layout", "--overwrite"], 2);
    assert!(kept.stderr.contains("leave ?readonly out"), "{}", kept.stderr);
    assert_eq!(room(), 0);
    // A part of it, and all of it. What is counted is the load.
    for (words, wanted) in [(&["--size", "1m", "--offset", "2m"][..], 1 << 20), (&[], 8 << 20)] {
        let ended = run(&[&[&uri, "--layout", "--overwrite"], words].concat(), 0);
        assert!(!ended.stderr.contains("sparse"), "{}", ended.stderr);
        let record = record(&ended.text());
        assert_eq!(record["afar"]["is_laid_out"], true);
        assert_eq!(record["jobs"][0]["read"]["total_ios"], 100);
        assert_eq!(record["jobs"][0]["write"]["total_ios"], 0);
        made.sync_all().expect("it is there");
        assert!((wanted..=wanted + (64 << 10)).contains(&room()), "{}", room());
    }
    let bytes = std::fs::read(&disk.0).expect("it is there");
    assert!(bytes.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)), "a hole is left");
    made.set_len(16 << 20).expect("it can grow");
    let filled = run(&[&format!("{uri}?fill")], 0);
    assert!(!filled.stderr.contains("sparse"), "{}", filled.stderr);
    assert!(room() >= 16 << 20, "{}", room());
    assert!(std::fs::read(&disk.0).expect("it is there").starts_with(&bytes), "the rest is kept");
    // A disk that refuses some of the writes is not laid out.
    let failing = format!("fault:write=eio@every=3:{uri}");
    let failed = run(&[&failing, "--layout", "--overwrite"], 1);
    assert!(failed.stderr.contains("writes were done: "), "{}", failed.stderr);
}

#[test]
fn what_is_wrong_in_a_job_file_is_said_with_its_line() {
    let cases = [
        ("[a]\nbz=4k\n", ":2: fio has no option \"bz\"; did you mean bs?"),
        ("[a]\nnrfiles=4\n", ":2: fio's nrfiles is not supported; remove it and write a section"),
        ("\n[a]\nbs=1000\n", ":2: [a]: bs 1000 B: this disk takes multiples of 512 B"),
        ("[a]\noffset=1t\n", ":1: [a]: offset 1.0 TiB: this disk has 1.0 MiB"),
        ("[a]\nverify=md5\n", ":1: [a]: verify with requests that only read"),
        ("[a]\nbs=${NOT_SET}\n", ":2: ${NOT_SET} is not set"),
        ("[a]\nfilename=file:\n", ":1: [a]: \"file:\": no path"),
        (
            "[global]\nruntime=1\n[a]\nrw=randrw\nverify=md5\n[b]\nrw=randwrite\n",
            ":3: [a]: it verifies what [b] writes at the same time",
        ),
    ];
    for (text, reason) in cases {
        let file = File::new("wrong.fio", text);
        let ended = bench(&["memory:1MiB", "--job", file.name()]).run().expect(2, text);
        assert!(ended.stderr.contains(reason), "{text}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    let file = File::new("right.fio", "[a]\nruntime=10ms\ntime_based\nioengine=psync\n");
    let ended = bench(&["--job", file.name(), "null:"]).run().expect(0, "a note is no error");
    let note = ":4: ioengine=psync has no effect: requests go afar's own way\n";
    assert!(ended.stderr.contains(note), "{}", ended.stderr);
    let ended = bench(&["--job", file.name()]).run().expect(2, "without a disk");
    assert!(ended.stderr.contains("no disk is named"), "{}", ended.stderr);
    let ended = bench(&[file.name(), "--rw", "read"]).run().expect(2, "both");
    assert!(ended.stderr.contains("--rw is for a load without a job file"), "{}", ended.stderr);
    bench(&["null:", "--job", "/nowhere.fio"]).run().expect(2, "no such file");
}

#[test]
fn ctrl_c_says_which_jobs_have_not_run() {
    let text = "[a]\nruntime=600\ntime_based\n[b]\nstonewall\n[c]\n";
    let file = File::new("interrupted.fio", text);
    let json = File::absent("interrupted.json");
    let load = bench(&["null:", "--job", file.name(), "--json", json.name()]).start();
    std::thread::sleep(std::time::Duration::from_millis(300));
    load.signal_group("INT");
    let ended = load.wait().expect(0, "afar bench");
    let record = record(&std::fs::read_to_string(json.name()).expect("it was written"));
    assert_eq!(record["afar"]["interrupted"], true);
    assert_eq!(record["jobs"].as_array().map(Vec::len), Some(1));
    assert!(ended.text().contains("not run            b, c\n"), "{}", ended.text());
}

/// A channel of the paper's drive: a read takes 83.5 µs at least.
const CHANNEL: &str = "model:pm1725*0.016666:memory:16MiB";

#[test]
fn a_sweep_is_a_curve_in_every_form() {
    let [csv, svg] = [File::absent("sweep.csv"), File::absent("sweep.svg")];
    let quick = [CHANNEL, "--sweep", "--duration", "100ms", "--warm-up", "20ms"];
    let files = ["--csv", csv.name(), "--svg", svg.name(), "--json", "-"];
    let ended = bench(&[&quick[..], &files].concat()).run().expect(0, "afar bench --sweep");
    let record = record(&ended.text());
    let sweep = &record["afar"]["sweep"];
    let most = number(&sweep["closed_loop_per_s"]);
    let points = sweep["points"].as_array().expect("a list");
    assert!((10..=16).contains(&points.len()), "{sweep}");
    for (index, point) in points.iter().enumerate() {
        let share = number(&point["load_share"]);
        assert!((number(&point["offered_per_s"]) / most / share - 1.0).abs() < 1e-9, "{point}");
        let latencies = ["p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns"];
        let latencies = latencies.map(|name| number(&point[name]));
        assert!(latencies.is_sorted() && latencies[0] >= 83_000.0, "{point}");
        assert!(number(&point["request_count"]) > 0.0, "{point}");
        // The closed loop is the first job.
        let job = &record["jobs"][index + 1];
        assert_eq!(job["read"]["total_ios"], point["request_count"]);
        assert_eq!(job["afar"]["rate_per_s"], point["offered_per_s"]);
    }
    assert_eq!(record["jobs"][0]["jobname"], "closed loop");
    let rows = std::fs::read_to_string(&csv.0).expect("it was written");
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), points.len() + 1);
    assert_eq!(rows[0][..3], ["load_share", "offered_per_s", "achieved_per_s"]);
    for (row, point) in rows[1..].iter().zip(points) {
        for (name, cell) in rows[0].iter().zip(row) {
            let value = if cell.is_empty() { Value::Null } else { cell.parse().expect("a number") };
            assert_eq!(value, point[*name], "{name}");
        }
    }
    let drawn = std::fs::read_to_string(&svg.0).expect("it was written");
    assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n") && !drawn.contains("NaN"));
    assert_eq!(drawn.matches("<polyline").count(), 2);
    assert_eq!(drawn.matches("<circle").count(), 2 * points.len());
}

#[test]
fn rates_of_a_sweep_can_be_given() {
    let words = ["memory:16MiB", "--sweep=2k,500", "--duration", "60ms", "--spacing", "even"];
    let ended = bench(&words).run().expect(0, "afar bench --sweep");
    let text = ended.text();
    let rows: Vec<&str> = text.lines().filter(|row| !row.is_empty()).collect();
    assert!(rows[0].starts_with("afar: memory:16MiB: randread of 4.0 KiB, open loop, depth 64"));
    assert!(rows[1].starts_with("load  offered/s"), "{rows:?}");
    let offered: Vec<_> =
        rows[2..].iter().filter_map(|row| row.split_whitespace().nth(1)).collect();
    assert_eq!(offered, ["500", "2,000"], "{rows:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "a line for each point: {lines:?}");
    assert!(lines[0].starts_with("point 1 of 2: 0.5k/s"), "{lines:?}");
}

#[test]
fn a_sweep_that_ends_early_keeps_its_points() {
    let rates = "--sweep=1k,2k,3k,4k,5k,6k";
    let csv = File::absent("early.csv");
    let words = [CHANNEL, rates, "--duration", "400ms", "--json", "-", "--csv", csv.name()];
    let load = bench(&words).start();
    std::thread::sleep(std::time::Duration::from_millis(1800));
    load.signal_group("INT");
    let ended = load.wait().expect(130, "afar bench --sweep");
    let record = record(&ended.text());
    let count = record["afar"]["sweep"]["points"].as_array().map_or(0, Vec::len);
    assert!((1..6).contains(&count), "{record}");
    assert_eq!(record["afar"]["interrupted"], true);
    let rows = std::fs::read_to_string(&csv.0).expect("it was written");
    assert_eq!(rows.lines().count(), 1 + count);
    assert!(ended.stderr.contains("points until then"), "{}", ended.stderr);
    // What fails is no point.
    let disk = "fault:read=eio@every=300:memory:16MiB";
    let words = [disk, "--sweep=1k,8k", "--duration", "200ms", "--warm-up", "0ms", "--json", "-"];
    let ended = bench(&words).run().expect(1, "a disk that fails");
    let failed: Value = serde_json::from_str(&ended.text()).expect("it is JSON");
    assert_eq!(failed["afar"]["sweep"]["points"].as_array().map(Vec::len), Some(1), "{failed}");
    assert!(ended.stderr.contains("requests failed: read at byte"), "{}", ended.stderr);
}

#[test]
fn what_no_load_can_be_is_bad_usage() {
    let cases: [(&[&str], &str); 4] = [
        (&["null:", "--duration", "0"], "--duration 0: no request would be timed; give a time"),
        (&["nvme://127.0.0.1/nqn.x"], "it begins neither with nvme+tcp:// nor with iscsi://"),
        (&["http://127.0.0.1/"], "http://127.0.0.1/: it begins neither with nvme+tcp://"),
        (&["/tmp/disk.img"], "a file or block device is file:/tmp/disk.img; otherwise write"),
    ];
    for (words, reason) in cases {
        let ended = bench(words).run().expect(2, &format!("{words:?}"));
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
    }
    let words = ["nvme+tcp://127.0.0.1:9/nqn.x"];
    let ended = bench(&words).run().expect(1, "nobody listens there");
    assert!(ended.stderr.contains("; check the address, and that a target"), "{}", ended.stderr);
}

#[test]
fn what_a_sweep_cannot_be_is_bad_usage() {
    let job = File::new("no-sweep.fio", "[a]\nrw=read\n");
    let cases: [(&[&str], &str); 5] = [
        (&["null:", "--sweep=fast"], "--sweep=fast: give rates"),
        (&["null:", "--sweep=1k,,2k"], "--sweep=1k,,2k: give rates"),
        (&["null:", "--sweep", "--rate-iops", "5k"], "exclude each other"),
        (&["null:", "--sweep", "--verify"], "exclude each other"),
        (&[job.name(), "--sweep"], "--sweep is for a load without a job file"),
    ];
    for (words, reason) in cases {
        let ended = bench(words).run().expect(2, &format!("{words:?}"));
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
    }
}
