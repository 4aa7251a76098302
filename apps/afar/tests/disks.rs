//! `afar bench` of several disks: the same load on each, in blocks, and what is said of it.

mod support;

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use support::{Launch, Running};
use test_support::Scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";
const IQN: &str = "iqn.2026-11.local.afar:disk/0";

fn bench(words: &[&str]) -> Launch {
    Launch::new([AFAR, "bench"].iter().chain(words))
}

/// A target that serves a disk, and its URIs over NVMe/TCP and iSCSI.
fn serve(disk: &str) -> (Running, [String; 2]) {
    let disk = format!("{NQN}={disk}");
    let flags = ["--nvme", "127.0.0.1:0", "--iscsi", "127.0.0.1:0"];
    let (target, ready) = Launch::new([AFAR, "serve", &disk].iter().chain(&flags)).serve();
    let nvme = format!("nvme+tcp://{}/{NQN}", ready.nvme[0]);
    let iscsi = format!("iscsi://{}/{IQN}", ready.iscsi[0]);
    (target, [nvme, iscsi])
}

fn record(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// When each disk ran, block by block.
fn turns(record: &Value) -> Vec<Vec<u64>> {
    let of = |run: &Value| run["turn"].as_u64().expect("a number");
    list(&record["disks"]).iter().map(|disk| list(&disk["runs"]).iter().map(of).collect()).collect()
}

#[test]
fn rows_of_a_load_have_the_figures_of_its_record() {
    let scratch = Scratch::new("rows");
    let json = scratch.join("load.json").display().to_string();
    let words = ["memory:16MiB", "--rw", "randrw", "--duration", "200ms", "--json", &json];
    let rows = bench(&[&words[..], &["--csv", "-"]].concat()).run().expect(0, "a load").text();
    let job = &record(&std::fs::read_to_string(&json).expect("it was written"))["jobs"][0];
    let lines: Vec<&str> = rows.lines().collect();
    assert!(lines[0].starts_with("jobname,phase,operation,total_ios,io_bytes,"), "{rows}");
    let percentile = ",lat_ns_percentile_99.000000";
    assert!(lines[0].contains(percentile) && !lines[0].contains("bins"), "{rows}");
    assert_eq!(lines.len(), 3, "a row for each operation: {rows}");
    for (line, name) in lines[1..].iter().zip(["read", "write"]) {
        let of = &job[name];
        assert!(number(&of["total_ios"]) > 0.0, "{of}");
        let jobname = job["jobname"].as_str().expect("text");
        let wanted = format!("{jobname},0,{name},{},{},", of["total_ios"], of["io_bytes"]);
        assert!(line.starts_with(&wanted), "{line}, not {wanted}");
    }
}

// A file of this machine and the same file behind a target, which all only read, and it once more.
#[test]
fn a_drive_is_compared_with_itself_behind_a_target_in_every_form() {
    let scratch = Scratch::new("disks");
    let file = scratch.join("disk.img");
    std::fs::write(&file, vec![7; 8 << 20]).expect("there is room");
    let local = format!("file:{}?readonly", file.display());
    let (target, [nvme, iscsi]) = serve(&local);
    let csv = scratch.join("disks.csv").display().to_string();
    let disks = [local.as_str(), &nvme, &iscsi, &local];
    let how = ["--requests", "300", "--seed", "3", "--json", "-", "--csv", &csv];
    let ended = bench(&[&disks[..], &how].concat()).run().expect(0, "four disks");
    let whole = record(&ended.text());
    assert_eq!(whole["schema"], "afar.disks/1");
    assert_eq!((&whole["repetitions"], &whole["block_count"]), (&5.into(), &5.into()));
    let disks_told = list(&whole["disks"]);
    for (disk, (letter, uri)) in disks_told.iter().zip(["A", "B", "C", "D"].into_iter().zip(disks))
    {
        assert_eq!((&disk["letter"], &disk["uri"]), (&letter.into(), &uri.into()));
        assert!(list(&disk["runs"]).iter().all(|run| run["request_count"] == 300), "{disk}");
        assert_eq!(list(&disk["figures"]).len(), 6, "{disk}");
        for figure in list(&disk["figures"]) {
            let value = &figure["value"];
            let ends = [&value["interval"]["low"], &value["median"], &value["interval"]["high"]];
            assert!(ends.map(number).is_sorted() && number(ends[0]) > 0.0, "{figure}");
            assert_eq!(figure["ratio"].is_null(), letter == "A", "{figure}");
            assert_eq!(figure["verdict"].is_null(), letter == "A", "{figure}");
        }
    }
    // Each disk has a turn of its own in each block, and orders differ.
    let all = turns(&whole);
    let orders: BTreeSet<Vec<u64>> =
        (0..5).map(|block| all.iter().map(|of| of[block]).collect()).collect();
    assert!(orders.len() > 1, "{orders:?}");
    for order in &orders {
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 4, "{orders:?}");
    }
    let rows = std::fs::read_to_string(&csv).expect("it was written");
    assert_eq!(rows.lines().count(), 1 + 4 * 6, "{rows}");
    let median = number(&disks_told[1]["figures"][0]["value"]["median"]);
    assert!(rows.contains(&format!("\nB,{nvme},iops,{median},")), "{rows}");
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("run ")).collect();
    assert_eq!(lines.len(), 20, "a line for each run: {lines:?}");
    assert!(lines[0].starts_with("run 1 of 20: block 1: "), "{lines:?}");
    // The same seed has the same orders.
    let how = ["--requests", "20", "--seed", "3", "--json", "-"];
    let again = bench(&[&disks[..], &how].concat()).run().expect(0, "four disks again");
    assert_eq!(turns(&record(&again.text())), all);
    let bytes = std::fs::read(&file).expect("it is there");
    assert!(bytes.len() == 8 << 20 && bytes.iter().all(|byte| *byte == 7), "it was only read");
    target.signal("INT");
    target.wait().expect(0, "afar serve").leaves_nothing("afar serve");
}

#[test]
fn few_blocks_are_told_of_and_decide_nothing() {
    let words = ["memory:4MiB", "null:", "--requests", "50", "--repetitions", "3"];
    let ended = bench(&words).run().expect(0, "three blocks");
    let shown = ended.text();
    let note = "afar bench: --repetitions 3: an interval needs 5 at least, and nothing is decided";
    assert!(ended.stderr.contains(note), "{}", ended.stderr);
    for wanted in [
        "afar: 2 disks: randread of 4.0 KiB, closed loop, depth 1\nA  memory:4MiB\nB  null:\n",
        "3 blocks in shuffled order (seed 1), 50 requests in each run at least",
    ] {
        assert!(shown.contains(wanted), "{wanted} is missing in {shown}");
    }
    assert!(!shown.contains("faster") && !shown.contains("slower"), "{shown}");
}

#[test]
fn ctrl_c_keeps_whole_blocks_and_says_so_if_there_are_none() {
    let scratch = Scratch::new("disks");
    let json = scratch.join("none.json");
    let path = json.display().to_string();
    let load = bench(&["memory:4MiB", "null:", "--duration", "60s", "--json", &path]).start();
    sleep(Duration::from_millis(500));
    load.signal_group("INT");
    let ended = load.wait().expect(130, "afar bench");
    let wanted = "afar bench: interrupted before every disk had run, so there is no result\n";
    assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
    assert!(!json.exists() && ended.text().is_empty(), "{}", ended.text());
    // So few runs that each has a line.
    let quick = ["--duration", "300ms", "--warm-up", "0ms", "--repetitions", "10", "--json", "-"];
    let mut load = bench(&[&["memory:4MiB", "null:"][..], &quick].concat()).start();
    load.wait_for("block 2: ");
    load.signal_group("INT");
    let ended = load.wait().expect(130, "afar bench");
    let kept = record(&ended.text());
    let count = kept["block_count"].as_u64().expect("a number");
    assert!((1..10).contains(&count) && kept["interrupted"] == true, "{count}");
    for disk in list(&kept["disks"]) {
        assert_eq!(list(&disk["runs"]).len() as u64, count);
    }
}

#[test]
fn a_disk_that_fails_ends_it_with_its_name() {
    let disk = "fault:read=eio@every=300:memory:16MiB";
    let words = ["memory:16MiB", disk, "--requests", "500"];
    let ended = bench(&words).run().expect(1, "a disk that fails");
    let wanted = format!("afar bench: B ({disk}): 1 requests failed: read at byte");
    assert!(ended.stderr.contains(&wanted), "{}", ended.stderr);
    assert_eq!(ended.text(), "", "no block was whole");
}

#[test]
fn what_is_for_one_disk_is_bad_usage_for_several() {
    let scratch = Scratch::new("disks");
    let (job, file) = (scratch.join("a.fio"), scratch.join("disk.img"));
    std::fs::write(&job, "[a]\nrw=read\n").expect("there is room");
    std::fs::write(&file, vec![0; 1 << 20]).expect("there is room");
    let (job, file) = (job.display().to_string(), format!("file:{}", file.display()));
    let both = ["null:", "memory:4MiB"];
    let cases: [(&[&str], &str); 8] = [
        (&["--sweep"], "--sweep is for one disk, and 2 are named; leave it out, or name one disk"),
        (&["--verify", "--rw", "randrw"], "--verify is for one disk, and 2 are named"),
        (&["--job", &job], "jobs of a file are for one disk, and 2 are named; name one disk, or"),
        (&[&job], "jobs of a file are for one disk, and 3 are named"),
        (&[&file, "--rw", "randwrite"], "would overwrite file:"),
        (&["--svg", "x.svg"], "--svg needs --sweep"),
        (&["--repetitions", "0"], "--repetitions"),
        (&["null:"; 7], "9 disks: at most 8 are compared; leave some out"),
    ];
    for (words, reason) in cases {
        let words = [&both[..], words].concat();
        let ended = bench(&words).run().expect(2, &format!("{words:?}"));
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    let words = ["null:", "--repetitions", "5"];
    let ended = bench(&words).run().expect(2, "there is one disk");
    assert!(ended.stderr.contains("--repetitions needs several disks; add"), "{}", ended.stderr);
}

#[test]
fn one_comparison_at_a_time_is_measured_on_a_machine() {
    let locks = Scratch::new("disks");
    let both = ["null:", "memory:4MiB", "--duration", "60s"];
    let mut first = bench(&both).env("AFAR_LOCK_DIR", locks.path()).start();
    let lock = locks.join("afar-measures");
    while !lock.exists() && first.is_running() {
        sleep(Duration::from_millis(5));
    }
    let taken = || std::fs::read_to_string(&lock).is_ok_and(|text| text.ends_with('\n'));
    while !taken() && first.is_running() {
        sleep(Duration::from_millis(5));
    }
    let second = bench(&both).env("AFAR_LOCK_DIR", locks.path()).run();
    let second = second.expect(3, "somebody measures");
    assert!(second.stderr.contains("measures on this machine, and two"), "{}", second.stderr);
    first.signal_group("INT");
    first.wait().expect(130, "afar bench");
}
