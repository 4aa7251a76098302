//! What a target keeps of a flood: the memory of ten thousand connections that nobody uses comes
//! back when they have gone.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use launch::{Child, Ready, ServeSpec};
use test_support::{Scratch, skip};

const TEST: &str = "idle::memory_comes_back";
const NQN: &str = "nqn.2026-11.example:disk";
const IQN: &str = "iqn.2026-11.example:disk";
/// For all of them to connect, or for memory to come back.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is left may be so much more than what was there.
const LEFT_MAX: f64 = 1.10;
/// What they take is so much at least, or they were not there.
const TAKEN_MIN_BYTES: f64 = 20e6;

fn resident_bytes(target: &Child) -> f64 {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", target.id()));
    let statm = statm.expect("it goes on");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.expect("the kernel's own format") * 4096.0
}

// A load over each protocol, so that what any needs is there before the flood.
fn load(afar: &Path, ready: &Ready) {
    let nvme = format!("nvme+tcp://{}/{NQN}", ready.nvme[0]);
    let iscsi = format!("iscsi://{}/{IQN}/0", ready.iscsi[0]);
    for uri in [nvme, iscsi] {
        let mut bench = Command::new(afar);
        bench.args(["bench", &uri, "--quiet", "--rw", "randrw", "--requests", "20000"]);
        let ended = bench.args(["--depth", "16"]).output().expect("it can be started");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[test]
fn memory_comes_back_when_ten_thousand_idle_connections_have_gone() {
    let bench = Path::new(env!("CARGO_BIN_EXE_bench"));
    let afar = bench.with_file_name("afar");
    if !afar.is_file() {
        return skip(TEST, "afar has not been built beside bench");
    }
    let anywhere = || vec!["127.0.0.1:0".parse().expect("an address")];
    let spec = ServeSpec {
        disks: vec![(NQN.to_owned(), "memory:16MiB".to_owned())],
        nvme: anywhere(),
        iscsi: anywhere(),
        ..ServeSpec::default()
    };
    let served = spec.start(Command::new(&afar)).expect("it serves");
    let (target, ready) = (&served.child, &served.ready);
    load(&afar, ready);
    std::thread::sleep(Duration::from_secs(3));
    let before = resident_bytes(target);

    let scratch = Scratch::new("idle");
    let sign = scratch.join("ready");
    let mut crowd = Command::new(bench);
    crowd.args(["attackers", "--idle-only", "--nqn", NQN, "--iqn", IQN, "--ready"]).arg(&sign);
    crowd.args(["--nvme", &ready.nvme[0].to_string(), "--iscsi", &ready.iscsi[0].to_string()]);
    let mut crowd = Child::start({
        crowd.stdout(Stdio::null());
        crowd
    })
    .expect("it can be started");
    let begun = Instant::now();
    while !sign.exists() {
        assert!(begun.elapsed() < PATIENCE, "they connect");
        std::thread::sleep(Duration::from_millis(50));
    }
    let taken = resident_bytes(target) - before;
    assert!(taken > TAKEN_MIN_BYTES, "ten thousand connections took {taken} bytes");
    std::fs::remove_file(&sign).expect("they are all there");
    assert!(crowd.finish().expect("it is ours").success());

    let left = || resident_bytes(target) / before;
    let begun = Instant::now();
    while left() > LEFT_MAX {
        assert!(begun.elapsed() < PATIENCE, "{:.3} of {before} bytes are left", left());
        std::thread::sleep(Duration::from_millis(50));
    }
}
