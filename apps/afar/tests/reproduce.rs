//! `afar reproduce`: a figure from end to end, in moments, and an end by Ctrl-C.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use support::{Launch, skip, usable};
use test_support::Scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");

/// Where pictures and records go.
struct Directory(Scratch);

impl Directory {
    fn new(name: &str) -> Self {
        Self(Scratch::new(&format!("reproduce-{name}")))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("it was written")
    }

    fn launch(&self, figure: &str, flags: &[&str]) -> Launch {
        let words = [AFAR, "reproduce", figure, "--quick", "--scale", "0.016666", "--output"];
        let directory = self.0.to_str().expect("it is text");
        Launch::new(words.iter().copied().chain([directory]).chain(flags.iter().copied()))
    }
}

fn record(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

/// As records name them.
const WAYS: [&str; 3] = ["local", "nvme", "iscsi"];

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// The runs of a directory, by the name of their file.
fn whole_runs(runs: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(runs).expect("it is there").flatten();
    let named = entries.map(|entry| {
        let text = std::fs::read_to_string(entry.path()).expect("it is there");
        (entry.file_name().to_string_lossy().into_owned(), text)
    });
    named.collect()
}

#[test]
fn a_store_on_a_remote_drive_is_measured_once_and_leaves_nothing() {
    let test = "reproduce::klimovic_fig4";
    if sys::process::effective_user() != 0 || !Path::new("/dev/fuse").exists() {
        skip(test, "only root can mount, and with /dev/fuse");
        return;
    }
    let directory = Directory::new("klimovic-fig4");
    // So long that each load has answers on a machine that does other work, too.
    let launch = || directory.launch("klimovic-fig4", &["--duration", "400ms"]);
    let ended = launch().run();
    if ended.stderr.contains("install") || ended.stderr.contains("it needs root") {
        skip(test, ended.stderr.trim());
        return;
    }
    let what = "klimovic-fig4";
    assert!(directory.0.join("klimovic-fig4.json").exists(), "{what}: {}", ended.stderr);
    ended.leaves_nothing(what);
    let record = record(&directory.read("klimovic-fig4.json"));
    assert_eq!(record["bed"]["channels"], 1, "{record}");
    let turns = record["points"].as_array().expect("turns").clone();
    assert!(turns.len() >= 3, "{record}");
    for turn in &turns {
        assert!(number(&turn["peak"]["reads"]["per_s"]) > 0.0, "{turn}");
        assert!(number(&turn["unloaded"]["mean_us"]) > 0.0, "{turn}");
        let is_local = turn["over"] == "local";
        let target_us = number(&turn["peak"]["spent"]["target_us"]);
        assert!(if is_local { target_us == 0.0 } else { target_us > 0.0 }, "{turn}");
    }
    // Turns that are kept are not run again, and one that is gone is.
    let runs = directory.0.join("klimovic-fig4-quick.runs");
    let kept = whole_runs(&runs);
    std::fs::remove_file(runs.join("0-iscsi.json")).expect("it is there");
    launch().run().expect(0, "it goes on");
    let again = whole_runs(&runs);
    let same = |name: &&String| kept[*name] == again[*name];
    assert_eq!(kept.len(), again.len());
    assert_eq!(kept.keys().filter(same).count(), kept.len() - 1, "only one ran again");
}

#[test]
fn a_figure_is_a_table_a_record_and_a_picture() {
    let directory = Directory::new("whole");
    let launch = directory.launch("guz-fig7", &["--duration", "60ms"]);
    let ended = launch.run().expect(0, "afar reproduce");
    ended.leaves_nothing("afar reproduce");
    let shown = ended.text();
    for wanted in
        ["Guz et al., SYSTOR 2017", "83.5 / 95.2 / 145.8", "iSCSI is more than 5 % behind"]
    {
        assert!(shown.contains(wanted), "{wanted} is missing in {shown}");
    }
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 10, "a line for each load: {lines:?}");
    assert!(lines[0].starts_with("load 1 of 10: all it can, local"), "{lines:?}");
    let record = record(&directory.read("guz-fig7.json"));
    assert_eq!(record["schema"], "afar.reproduce/2");
    assert_eq!(record["interrupted"], false);
    assert_eq!(record["bed"]["channels"], 1);
    let points = &record["points"];
    for curve in points.as_array().expect("three of them") {
        for way in WAYS {
            let mean_us = number(&curve["latency"][way]["mean_us"]);
            assert!(mean_us >= 83.4, "{way}: no read is faster: {curve}");
        }
    }
    let picture = directory.read("guz-fig7.svg");
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<polyline").count(), 9);
}

#[test]
fn stages_are_parts_of_a_read_over_each_way() {
    let directory = Directory::new("stages");
    let launch = directory.launch("guz-fig8", &["--duration", "60ms", "--json", "-"]);
    let ended = launch.run().expect(0, "guz-fig8");
    ended.leaves_nothing("guz-fig8");
    let record = record(&ended.text());
    let stages = &record["points"]["stages"];
    for way in WAYS {
        let read = &stages[way];
        // 80 µs of a channel, 1.28 of the interface, 2.22 of the command.
        let device = number(&read["device_us"]);
        assert!((83.4..84.0).contains(&device), "{way}: {stages}");
        let parts = ["host_us", "device_us", "late_us", "answer_us"];
        let sum: f64 = parts.iter().map(|part| number(&read[part])).sum();
        // A local read has no other; the mean is told in nanoseconds.
        let mean_us = number(&read["mean_us"]) + 0.01;
        assert!(sum <= mean_us, "{way}: stages are parts of it: {stages}");
    }
    for way in ["nvme", "iscsi"] {
        for part in ["host_us", "answer_us"] {
            assert!(number(&stages[way][part]) > 0.0, "{way}: {part} is counted: {stages}");
        }
    }
}

#[test]
fn the_other_figures_are_measured_too() {
    let directory = Directory::new("others");
    let figures =
        [("guz-fig2", "iops", 7), ("guz-fig3", "host_use", 6), ("guz-fig6", "latency", 9)];
    for (figure, measured, count) in figures {
        let launch = directory.launch(figure, &["--duration", "60ms", "--json", "-"]);
        let ended = launch.run().expect(0, figure);
        ended.leaves_nothing(figure);
        let record = record(&ended.text());
        let points = record["points"].as_array().expect("a list");
        assert_eq!(points.len(), count, "{record}");
        for way in WAYS {
            let is_measured = |point: &Value| point[measured][way][0] != Value::Null;
            assert!(points.iter().all(is_measured), "{figure}, {way}: {record}");
        }
        assert!(!record["verdicts"].as_array().expect("a list").is_empty(), "{record}");
    }
    let launch = directory.launch("guz-fig5", &["--duration", "60ms", "--quiet"]);
    let ended = launch.run().expect(0, "guz-fig5");
    assert_eq!((ended.text().as_str(), ended.stderr.as_str()), ("", ""));
    let record = record(&directory.read("guz-fig5.json"));
    let last = record["points"].as_array().and_then(|points| points.last());
    let last = last.expect("some");
    assert_eq!(last["processors"], 1, "{record}");
    assert!(number(&last["target_us"]["iscsi"][0]) > 0.0, "{record}");
}

#[test]
fn a_disk_of_the_users_takes_the_place_of_the_papers_and_is_only_read() {
    let directory = Directory::new("own-disk");
    let file = directory.0.join("disk.img");
    std::fs::write(&file, vec![7; 4 << 20]).expect("there is room");
    let disk = format!("file:{}", file.display());
    let output = directory.0.to_str().expect("it is text");
    let launch = |figure: &str, disk: &str| {
        let how = ["--quick", "--duration", "60ms", "--output", output, "--disk", disk];
        Launch::new([AFAR, "reproduce", figure].iter().copied().chain(how))
    };
    let ended = launch("guz-fig6", &disk).run().expect(0, "guz-fig6");
    ended.leaves_nothing("guz-fig6");
    let wanted = format!("drive: {disk}?readonly, as it is, not the paper's\n");
    assert!(ended.text().contains(&wanted), "{}", ended.text());
    let record = record(&directory.read("guz-fig6.json"));
    assert_eq!(record["bed"]["device"], format!("{disk}?readonly"));
    assert_eq!(record["bed"]["channels"], Value::Null, "nothing is emulated");
    for way in WAYS {
        let points = record["points"].as_array().expect("a list");
        let is_measured = |point: &Value| number(&point["latency"][way][0]["mean_us"]) > 0.0;
        assert!(points.len() == 9 && points.iter().all(is_measured), "{way}: {record}");
    }
    let bytes = std::fs::read(&file).expect("it is there");
    assert!(bytes.len() == 4 << 20 && bytes.iter().all(|byte| *byte == 7), "it was only read");
    for (figure, disk, wanted) in [
        ("guz-fig2", disk.as_str(), "--disk means nothing for guz-fig2: guz-fig6 alone is"),
        ("gao-fig7", "memory:4MiB", "--disk means nothing for gao-fig7: guz-fig6 alone is"),
        ("guz-fig6", "/dev/x", "--disk \"/dev/x\": it names no kind of device; a file or block"),
        ("guz-fig6", "nvme+tcp://127.0.0.1/nqn.x", "--disk \"nvme+tcp://127.0.0.1/nqn.x\": "),
    ] {
        let ended = launch(figure, disk).run().expect(2, figure);
        assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
    }
    let ended = launch("guz-fig6", "file:/nowhere/disk").run().expect(1, "it is not there");
    assert!(ended.stderr.contains("--disk file:/nowhere/disk?readonly: "), "{}", ended.stderr);
}

#[test]
fn the_ladder_is_climbed_in_networks_of_its_own() {
    let directory = Directory::new("ladder");
    let launch = directory.launch("klimovic-fig3", &["--duration", "60ms", "--json", "-"]);
    let ended = launch.run();
    let whys = ["only root may", "is not on PATH", "make networks"];
    if whys.iter().any(|why| ended.stderr.contains(why)) {
        return skip("the_ladder_is_climbed_in_networks_of_its_own", &ended.stderr);
    }
    let ended = ended.expect(0, "klimovic-fig3");
    ended.leaves_nothing("klimovic-fig3");
    let record = record(&ended.text());
    assert_eq!(record["schema"], "afar.reproduce/2");
    let points = record["points"].as_array().expect("a list");
    for rung in ["one-worker", "many-workers", "offloads", "jumbo", "affinity", "nvme"] {
        let of_rung = points.iter().filter(|point| point["rung"] == rung);
        let tenants: Vec<_> = of_rung
            .filter(|point| point["iops"][0].as_f64().is_some_and(|iops| iops > 0.0))
            .map(|point| point["tenants"].as_u64())
            .collect();
        assert_eq!(tenants, [1, 3, 6].map(Some), "{rung}: {record}");
    }
    let links = std::fs::read_to_string("/proc/net/dev").expect("there are some");
    assert!(!links.contains("afar0"), "the machine's own network is as it was: {links}");
}

#[test]
fn a_drive_is_shared_by_writers_and_by_readers() {
    let directory = Directory::new("sharing");
    let launch = directory.launch("klimovic-sharing", &["--duration", "300ms", "--json", "-"]);
    let ended = launch.run().expect(0, "klimovic-sharing");
    ended.leaves_nothing("klimovic-sharing");
    let record = record(&ended.text());
    let points = record["points"].as_array().expect("a list");
    for case in ["direct", "alone", "two", "three", "readers"] {
        let of_case: Vec<_> = points.iter().filter(|point| point["case"] == case).collect();
        assert_eq!(of_case.len(), 4, "{case}: {record}");
        for point in of_case {
            assert!(number(&point["latency"][0]["mean_us"]) >= 83.4, "{case}: {point}");
        }
    }
    assert_eq!(record["bed"]["channels"], 1, "{record}");
    assert!(directory.read("klimovic-sharing.svg").contains("<polyline"));
}

#[test]
fn runs_of_programs_are_kept_and_not_made_twice() {
    if !usable("bpf", "reproduce::programs") {
        return;
    }
    let directory = Directory::new("programs");
    let ended = directory.launch("dime-fig3", &["--json", "-"]).run().expect(0, "dime-fig3");
    ended.leaves_nothing("dime-fig3");
    let first = record(&ended.text());
    assert_eq!(first["schema"], "afar.reproduce/2");
    assert_eq!(first["interrupted"], false);
    let points = first["points"].as_array().expect("a list");
    assert_eq!(points.len(), 8, "{first}");
    for point in points {
        // A fault is held for as long as was asked; what it costs besides was measured before.
        let (asked_ns, seen_ns) = (number(&point["asked_us"]) * 1e3, number(&point["p50_ns"]));
        assert!(seen_ns > asked_ns * 0.5, "{point}");
    }
    let runs = directory.0.join("dime-fig3-quick.runs/touches/runs");
    let kept = whole_runs(&runs);
    // Three blocks, or fewer where the machine was so busy that the minute and a half was over.
    let count = kept.len();
    assert!((8..=24).contains(&count), "{kept:?}");
    let picture = directory.read("dime-fig3.svg");
    assert!(picture.starts_with("<svg") && picture.contains("DiME, mean"), "{picture}");

    // Killed before the last was there: that run is made again, and no other.
    let (last, _) = kept.last_key_value().expect("there are some");
    std::fs::remove_file(runs.join(last)).expect("it is there");
    let ended = directory.launch("dime-fig3", &[]).run().expect(0, "dime-fig3");
    let there = format!("{} of them were there", count - 1);
    assert!(ended.text().contains(&there), "{}", ended.text());
    let again = whole_runs(&runs);
    let is_as_before = |(name, text): (&String, &String)| name == last || again[name] == *text;
    assert!(kept.iter().all(is_as_before) && again.len() >= count, "{again:?}");
}

#[test]
fn a_ladder_of_far_memory_is_climbed_once() {
    if !usable("bpf", "reproduce::gao_table5") {
        return;
    }
    let directory = Directory::new("gao-table5");
    let launch = || directory.launch("gao-table5", &["--duration", "30ms", "--json", "-"]);
    let ended = launch().run().expect(0, "gao-table5");
    ended.leaves_nothing("gao-table5");
    let first = record(&ended.text());
    assert_eq!(first["schema"], "afar.reproduce/2");
    let cells = first["points"]["cells"].as_array().expect("a list");
    let steps = ["single", "merged", "asynchronous"];
    for way in ["memory", "nvme"] {
        for cell in
            steps.iter().flat_map(|step| ["in", "out"].map(|to| format!("{way}-{step}-{to}")))
        {
            let found = cells.iter().find(|one| one["cell"] == cell.as_str()).expect("it ran");
            assert!(number(&found["gbytes_per_s"]["median"]) > 0.0, "{cell}: {first}");
        }
    }
    // Swap is measured, or there is a reason: another program may swap as well.
    let is_swap = |one: &&Value| one["cell"].as_str().is_some_and(|cell| cell.starts_with("swap"));
    let mut swaps = cells.iter().filter(is_swap);
    let is_measured = swaps.all(|one| one["gbytes_per_s"]["median"].as_f64().is_some());
    let has_reason = ["absent", "failed"].map(|why| first["points"][why] != serde_json::json!([]));
    assert_ne!(is_measured, has_reason.contains(&true), "{first}");
    for part in first["points"]["parts"].as_array().expect("a list") {
        assert!(part["us"]["median"].as_f64().is_some(), "{part}");
    }
    // Runs that are kept are not made again, and one that is gone is.
    let runs = directory.0.join("gao-table5-quick.runs");
    let kept = whole_runs(&runs);
    std::fs::remove_file(runs.join("0-nvme-single-in.json")).expect("it is there");
    let second = record(&launch().run().expect(0, "it goes on").text());
    assert_eq!(second["bed"]["runs_before"].as_u64(), Some(kept.len() as u64 - 2), "{second}");
    let again = whole_runs(&runs);
    let same = |name: &&String| kept[*name] == again[*name];
    assert_eq!(kept.keys().filter(same).count(), kept.len() - 1, "only one ran again");
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_leaves_no_target() {
    let directory = Directory::new("interrupted");
    let launch = directory.launch("guz-fig2", &["--duration", "600ms"]).start();
    // The first mix has been measured over all ways, and another has begun.
    sleep(Duration::from_millis(4_000));
    launch.signal_group("INT");
    let ended = launch.wait().expect(130, "afar reproduce");
    ended.leaves_nothing("afar reproduce");
    assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
    let record = record(&directory.read("guz-fig2.json"));
    assert_eq!(record["interrupted"], true);
    let count = record["points"].as_array().map_or(0, Vec::len);
    assert!((1..7).contains(&count), "{record}");
}

#[test]
fn what_is_no_figure_is_bad_usage() {
    let directory = Directory::new("usage");
    for flags in [["--scale", "2"], ["--scale", "0"], ["--busy-poll", "2ms"]] {
        let words = [AFAR, "reproduce", "guz-fig2"].into_iter().chain(flags);
        Launch::new(words).run().expect(2, "afar reproduce");
    }
    directory.launch("guz-fig99", &[]).run().expect(2, "afar reproduce");
    let words = [AFAR, "reproduce", "guz-fig2", "--output", "/dev/null/x"];
    let ended = Launch::new(words).run().expect(2, "afar reproduce");
    assert!(ended.stderr.contains("give a directory"), "{}", ended.stderr);
}
