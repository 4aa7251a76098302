//! `afar serve` and `afar bench`: disks over the network, through kills and to the last byte.

mod support;

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use support::{Launch, Running, progress};
use test_support::scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";
const IQN: &str = "iqn.2026-11.local.afar:disk";

/// A file that goes with the test.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str) -> Self {
        Self(scratch(name))
    }

    fn uri(&self) -> String {
        format!("nqn.2026-11.local.afar:disk=file:{}?size=64MiB", self.0.display())
    }

    /// When the file was last written.
    fn written(&self) -> SystemTime {
        let file = std::fs::metadata(&self.0).expect("the target has made it");
        file.modified().expect("Linux has this time")
    }

    /// Waits until the file has been written since then.
    fn wait_for_write(&self, since: SystemTime) {
        let began = Instant::now();
        while self.written() <= since {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing is put on the medium");
            sleep(Duration::from_millis(1));
        }
    }
}

/// A target that serves, and where.
fn serve(disk: &str, address: &str) -> (Running, String) {
    let (target, ready) = Launch::new([AFAR, "serve", disk, "--nvme", address]).serve();
    (target, ready.nvme[0].to_string())
}

/// As [`serve`], over iSCSI.
fn serve_iscsi(disk: &str, address: &str) -> (Running, String) {
    let (target, ready) = Launch::new([AFAR, "serve", disk, "--iscsi", address]).serve();
    (target, ready.iscsi[0].to_string())
}

fn bench(address: &str, flags: &[&str]) -> Launch {
    bench_uri(&format!("nvme+tcp://{address}/{NQN}"), flags)
}

fn bench_uri(uri: &str, flags: &[&str]) -> Launch {
    let words = [AFAR, "bench", uri, "--json", "-"].map(str::to_owned);
    Launch::new(words.into_iter().chain(flags.iter().map(|&flag| flag.to_owned())))
}

fn record(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn stop(target: Running) {
    target.signal("INT");
    target.wait().expect(0, "afar serve").leaves_nothing("afar serve");
}

#[test]
fn a_target_killed_at_any_moment_loses_nothing_that_it_answered() {
    let uri = |address: &str| format!("nvme+tcp://{address}/{NQN}");
    killed("killed", serve, uri);
}

#[test]
fn a_target_killed_at_any_moment_loses_nothing_over_iscsi() {
    let uri = |address: &str| format!("iscsi://{address}/{IQN}/0?connections=2");
    killed("killed-iscsi", serve_iscsi, uri);
}

// Kills what `serve` starts, again and again, under a load that verifies.
fn killed(name: &str, serve: fn(&str, &str) -> (Running, String), uri: impl Fn(&str) -> String) {
    let rounds: u64 = if support::full() { 1000 } else { 100 };
    let disk = Disk::new(name);
    let (mut target, address) = serve(&disk.uri(), "127.0.0.1:0");
    let flags = ["--rw", "randrw", "--verify", "--depth", "16", "--threads", "2"];
    let flags = [&flags[..], &["--duration", "600s", "--ctrl-loss-tmo", "60s"]].concat();
    let load = bench_uri(&uri(&address), &flags).limit(Duration::from_secs(400)).start();
    let began = Instant::now();
    for round in 0..rounds {
        sleep(Duration::from_millis(20 + round * 37 % 100));
        target.signal("KILL");
        target.wait().leaves_nothing("a killed target");
        (target, _) = serve(&disk.uri(), &address);
    }
    // It finds the last one, too.
    sleep(Duration::from_millis(500));
    load.signal("INT");
    let ended = load.wait().expect(0, "afar bench");
    let record = record(&ended.text());
    let own = &record["afar"];
    for wrong in ["lost_count", "misdirected_count", "torn_count", "stale_count"] {
        assert_eq!(own[wrong], 0, "{wrong}: {}", own["first_failure"]);
    }
    let job = &record["jobs"][0];
    let count = |of: &str| job[of]["total_ios"].as_u64().expect("a number");
    let found = own["reconnect_count"].as_u64().expect("a number");
    assert!(found >= rounds / 2, "it was lost and found {found} times");
    assert!(count("read") > 1000 && count("write") > 1000, "{job}");
    progress(&format!(
        "flash: {name}: {rounds} kills in {:.0?}: {} reads, {} writes, none wrong\n",
        began.elapsed(),
        count("read"),
        count("write")
    ));
    stop(target);
}

// The device forgets what it has not flushed when its process dies: SIGKILL is a power failure.
#[test]
fn a_target_killed_at_any_moment_keeps_what_it_has_flushed() {
    let uri = |address: &str| format!("nvme+tcp://{address}/{NQN}");
    let rounds = if support::full() { 1000 } else { 60 };
    let kept = forgets("forgets", "volatile:1MiB", serve, uri, ["--fsync", "16"], rounds);
    assert_eq!(kept, 0, "blocks that were promised are gone");
    // Forced writes are promised one by one.
    let forced = forgets("forgets-fua", "volatile:1MiB", serve, uri, ["--fua", "--quiet"], 20);
    assert_eq!(forced, 0, "blocks that were forced are gone");
}

#[test]
fn a_target_killed_at_any_moment_keeps_what_it_has_flushed_over_iscsi() {
    let uri = |address: &str| format!("iscsi://{address}/{IQN}/0");
    let rounds = if support::full() { 500 } else { 40 };
    let fsync = ["--fsync", "16"];
    let kept = forgets("forgets-iscsi", "volatile:1MiB", serve_iscsi, uri, fsync, rounds);
    assert_eq!(kept, 0, "blocks that were promised are gone");
}

// The tests above would see a flush that does nothing.
#[test]
fn a_device_that_lies_about_flushes_is_found_out() {
    let uri = |address: &str| format!("nvme+tcp://{address}/{NQN}");
    let device = "fault:flush=skip:volatile:1MiB";
    assert!(forgets("lies", device, serve, uri, ["--fsync", "16"], 20) > 0, "it forgets, too");
}

// Kills a device of this kind so many times under a load that verifies; blocks that were wrong.
fn forgets(
    name: &str,
    device: &str,
    serve: fn(&str, &str) -> (Running, String),
    uri: impl Fn(&str) -> String,
    promises: [&str; 2],
    rounds: u64,
) -> u64 {
    let disk = Disk::new(name);
    let named = disk.uri().replacen("=file:", &format!("={device}:file:"), 1);
    let (mut target, address) = serve(&named, "127.0.0.1:0");
    let flags = ["--rw", "randrw", "--rwmixread", "30", "--verify", "--depth", "16", "--size=8m"];
    let flags = [&flags[..], &["--duration", "600s", "--ctrl-loss-tmo", "60s"], &promises].concat();
    let load = bench_uri(&uri(&address), &flags).limit(Duration::from_secs(400)).start();
    let keeps = !device.starts_with("fault:flush=skip");
    for round in 0..rounds {
        let before = disk.written();
        sleep(Duration::from_millis(20 + round * 37 % 100));
        // On a busy machine it may have promised nothing yet that a kill could break.
        if keeps {
            disk.wait_for_write(before);
        }
        target.signal("KILL");
        target.wait().leaves_nothing("a killed target");
        (target, _) = serve(&named, &address);
    }
    sleep(Duration::from_millis(500));
    load.signal("INT");
    let ended = load.wait();
    let record = record(&ended.text());
    let own = &record["afar"];
    let number = |of: &Value| of.as_u64().expect("a number");
    let reopened = number(&own["reopen_count"]);
    assert!(reopened >= rounds / 2, "it was opened anew {reopened} times");
    let job = &record["jobs"][0];
    let counts = ["read", "write", "sync"].map(|of| number(&job[of]["total_ios"]));
    // Of reads and writes one a kill: a busy machine does little between two, and writes that are
    // forced wait for a disk. Of flushes fewer: some end in the moment of a kill, unanswered. At
    // this rate, too, a device that lies is found out.
    assert!(counts[0] > rounds && counts[1] > rounds, "{counts:?}");
    assert!(counts[2] > rounds / 2 || promises[0] != "--fsync", "{counts:?}");
    let wrong = ["lost_count", "misdirected_count", "torn_count", "stale_count"];
    let wrong = wrong.map(|of| number(&own[of]));
    let [reads, writes, flushes] = counts;
    progress(&format!(
        "flash: {name}: {rounds} kills, {reopened} seen: {reads} reads, {writes} writes, \
         {flushes} flushes; lost, misdirected, torn, stale: {wrong:?}\n"
    ));
    stop(target);
    wrong.iter().sum()
}

#[test]
fn what_is_sent_without_a_copy_arrives_whole() {
    let words = [AFAR, "serve", "nqn.2026-11.local.afar:disk=memory:64MiB", "--zero-copy", "4KiB"];
    let ways = ["--nvme", "127.0.0.1:0", "--iscsi", "127.0.0.1:0"];
    let (target, ready) = Launch::new(words.iter().chain(&ways)).serve();
    let nvme = format!("nvme+tcp://{}/{NQN}", ready.nvme[0]);
    let iscsi = format!("iscsi://{}/{IQN}", ready.iscsi[0]);
    for uri in [&nvme, &iscsi] {
        let flags = ["--rw", "randrw", "--verify", "--bs", "64k", "--depth", "16"];
        let flags = [&flags[..], &["--requests", "400"]].concat();
        let record = record(&bench_uri(uri, &flags).run().expect(0, uri).text());
        let job = &record["jobs"][0];
        assert!(job["read"]["total_ios"].as_u64().is_some_and(|count| count > 100), "{job}");
        for wrong in ["failure_count", "lost_count", "misdirected_count", "torn_count"] {
            assert_eq!(record["afar"][wrong], 0, "{uri}: {wrong}");
        }
    }
    // Peers that take nothing more do not keep the target.
    let flags = ["--bs", "128k", "--depth", "64", "--duration", "600s"];
    let loads = [&nvme, &iscsi].map(|uri| bench_uri(uri, &flags).start());
    sleep(Duration::from_millis(400));
    loads.iter().for_each(|load| load.signal("STOP"));
    sleep(Duration::from_millis(100));
    let began = Instant::now();
    stop(target);
    progress(&format!("flash: two peers that had stopped: gone in {:.1?}\n", began.elapsed()));
    for load in loads {
        load.signal("KILL");
        load.wait();
    }
}

#[test]
fn a_load_that_is_interrupted_says_what_it_has_measured() {
    let (target, address) = serve("nqn.2026-11.local.afar:disk=memory:16MiB", "127.0.0.1:0");
    let load = bench(&address, &["--depth", "4", "--duration", "600s"]).start();
    sleep(Duration::from_millis(300));
    load.signal_group("INT");
    let ended = load.wait().expect(0, "afar bench");
    ended.leaves_nothing("afar bench");
    let record = record(&ended.text());
    assert_eq!(record["afar"]["interrupted"], true);
    let read = &record["jobs"][0]["read"];
    assert!(read["iops"].as_f64().expect("a number") > 0.0);
    let bins = read["lat_ns"]["bins"].as_object().expect("bins by nanoseconds");
    let counted: u64 = bins.values().filter_map(Value::as_u64).sum();
    assert_eq!(Some(counted), read["total_ios"].as_u64(), "every read is in one of them");
    stop(target);
}

// An open loop times requests from when they were due: a target that pauses for a second is late
// for all that were due meanwhile.
#[test]
fn a_pause_of_the_target_is_in_the_latencies() {
    let (target, address) = serve("nqn.2026-11.local.afar:disk=memory:16MiB", "127.0.0.1:0");
    let flags = ["--rate-iops", "1k", "--spacing", "even", "--duration", "3s", "--depth", "8"];
    let load = bench(&address, &flags).start();
    sleep(Duration::from_millis(1000));
    target.signal("STOP");
    sleep(Duration::from_millis(1000));
    target.signal("CONT");
    let ended = load.wait().expect(0, "afar bench");
    let record = record(&ended.text());
    let latency = &record["jobs"][0]["read"]["lat_ns"];
    let percentile = |p: &str| latency["percentile"][p].as_u64().expect("a number");
    // A third of the requests were due while it stood still, half of them for half a second.
    assert!(percentile("90.000000") > 400_000_000, "{latency}");
    assert!(latency["max"].as_u64().expect("a number") > 900_000_000, "{latency}");
    stop(target);
}

#[test]
fn a_subsystem_that_is_not_there_can_be_looked_for() {
    let (target, address) = serve("nqn.2026-11.local.afar:disk=null:", "127.0.0.1:0");
    let uri = format!("nvme+tcp://{address}/nqn.2026-11.local.afar:disc");
    let ended = Launch::new([AFAR, "bench", &uri]).run().expect(1, "another name");
    let remedy = format!("afar discover {address} lists");
    assert!(ended.stderr.contains(&remedy), "{}", ended.stderr);
    stop(target);
}

#[test]
fn an_idle_target_does_nothing() {
    let (target, address) = serve("nqn.2026-11.local.afar:disk=memory:16MiB", "127.0.0.1:0");
    // It has been at work, and its host is still there.
    bench(&address, &["--requests", "1000"]).run().expect(0, "afar bench");
    sleep(Duration::from_millis(200));
    let read = |file: &str| {
        std::fs::read_to_string(format!("/proc/{}/{file}", target.pid())).expect("it is there")
    };
    let ticks = || {
        let stat = read("stat");
        let fields = stat.rsplit(')').next().expect("after the name").split_whitespace();
        fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum::<u64>()
    };
    let before = ticks();
    sleep(Duration::from_secs(1));
    assert!(ticks() - before <= 1, "it is busy");
    let status = read("status");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("it is there");
    let kib: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    // The device itself, which was read and not written, takes nothing.
    assert!(kib <= 16 << 10, "{line}");
    stop(target);
}

#[test]
fn a_file_that_grows_is_larger_to_hosts_after_a_hangup() {
    let disk = Disk::new("grows");
    let (target, address) = serve(&disk.uri(), "127.0.0.1:0");
    let beyond = ["--offset", "64m", "--requests", "10"];
    bench(&address, &beyond).run().expect(2, "beyond the end");
    let file = std::fs::File::options().write(true).open(&disk.0).expect("it is there");
    file.set_len(128 << 20).expect("it can grow");
    target.signal("HUP");
    let began = Instant::now();
    while bench(&address, &beyond).run().status != 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "it has not grown");
    }
    stop(target);
}

#[test]
fn what_cannot_be_is_said_in_one_sentence() {
    let cases: [(&[&str], i32, &str); 14] = [
        (&["serve"], 2, "<DISK> is missing"),
        (&["serve", "a=null:", "--allow", "me"], 2, "--allow \"me\": the name of an NVMe host"),
        (&["serve", "a=null:", "--limit", "memory=1"], 2, "limit memory \"1\": give 1.0 MiB to"),
        (&["serve", "null:"], 2, "write NAME=URI"),
        (&["serve", "a=null:", "a=null:"], 2, "two disks have this name"),
        (&["serve", "a=disk:x"], 2, "no device is called \"disk\""),
        (&["serve", "a=file:/nowhere/disk"], 1, "check the path"),
        (&["serve", "a=null:", "--nvme", "nowhere"], 2, "write ADDRESS:PORT"),
        (&["serve", "a=null:", "--nvme", "192.0.2.1:4420"], 1, "listen for NVMe/TCP hosts"),
        (&["bench", "null:", "--bs", "1000"], 2, "multiples of 512 B"),
        (&["bench", "null:", "--verify"], 2, "only read"),
        (&["bench", "null:", "--rate-iops", "fast"], 2, "5000, 5k or 1.5M"),
        (&["bench", "file:/etc/hostname", "--rw", "randwrite"], 2, "--overwrite"),
        (&["bench", "nvme+tcp://127.0.0.1:1/nqn.x:y"], 1, "Connection refused"),
    ];
    for (words, status, reason) in cases {
        let ended = Launch::new([&[AFAR], words].concat()).run();
        let ended = ended.expect(status, &format!("{words:?}"));
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
        ended.leaves_nothing("a refusal");
    }
}
