//! `afar torture` against `afar serve`: every case is as stated, nobody else notices, and the
//! command can say that one is not.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use launch::Ready;
use serde_json::Value;
use support::{Ended, Launch, Running, open_scratch};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NAME: &str = "2026-11.example:disk";
const LIMIT: Duration = Duration::from_secs(180);
/// What the target's limits below let its memory grow by, and what an allocator keeps.
const GROWTH_BYTES: u64 = 48 << 20;

/// A target of two disks, one of them for the neighbour. Gone when dropped.
struct Target {
    running: Running,
    ready: Ready,
    files: [PathBuf; 3],
}

impl Target {
    /// `disk` is the URI of the disk that is tried; a FILE in it is one of this target's own.
    fn start(test: &str, disk: &str, chap: &str) -> Self {
        let files = ["toml", "img", "secret"].map(|of| {
            let path = open_scratch(&format!("torture-{test}-{}.{of}", std::process::id()));
            let _old = fs::remove_file(&path);
            path
        });
        let disk = disk.replace("FILE", &files[1].display().to_string());
        let text = format!(
            "nvme = [\"127.0.0.1:0\"]\n\
             iscsi = [\"127.0.0.1:0\"]\n\
             shards = 2\n\
             limits = {{ handshake = \"3s\", stall = \"4s\", memory = \"16MiB\" }}\n\
             [[subsystem]]\n\
             nqn = \"nqn.{NAME}\"\niqn = \"iqn.{NAME}\"\n{chap}\n\
             namespaces = [{{ id = 1, uri = \"{disk}\" }}]\n\
             [[subsystem]]\n\
             nqn = \"nqn.{NAME}s\"\niqn = \"iqn.{NAME}s\"\n\
             namespaces = [{{ id = 1, uri = \"memory:16MiB\" }}]\n"
        );
        fs::write(&files[0], text).expect("there is room for temporary files");
        fs::write(&files[2], "a secret that is long").expect("there is room");
        let path = files[0].to_str().expect("paths here are text");
        let (running, ready) = Launch::new([AFAR, "serve", path]).limit(LIMIT).serve();
        Self { running, ready, files }
    }

    fn nvme(&self, name: &str) -> String {
        format!("nvme+tcp://{}/nqn.{name}/1", self.ready.nvme[0])
    }

    fn iscsi(&self, user: &str, name: &str) -> String {
        format!("iscsi://{user}{}/iqn.{name}/0", self.ready.iscsi[0])
    }

    fn secret(&self) -> &str {
        self.files[2].to_str().expect("paths here are text")
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        for path in &self.files {
            let _absent = fs::remove_file(path);
        }
    }
}

fn torture(uri: &str, neighbour: &str, flags: &[&str]) -> Ended {
    let words = [AFAR, "torture", uri, "--neighbour", neighbour, "--json", "-", "--quick"];
    let all = words.iter().chain(&["--patience", "30s"]).chain(flags);
    Launch::new(all).limit(LIMIT).run()
}

fn cases(ended: &Ended) -> Vec<Value> {
    let record: Value = serde_json::from_str(&ended.text()).expect("it is JSON");
    assert_eq!(record["schema"], "afar.torture/1");
    record["results"]["cases"].as_array().expect("a list").clone()
}

fn names(cases: &[Value], verdict: &str) -> BTreeSet<String> {
    let of = cases.iter().filter(|case| case["verdict"] == verdict);
    of.map(|case| case["name"].as_str().expect("a name").to_owned()).collect()
}

// All is as stated but for what this target does not offer.
fn check(ended: &Ended, count: usize, not_offered: &[&str]) {
    let cases = cases(ended);
    let wrong: Vec<&Value> = cases
        .iter()
        .filter(|case| case["verdict"] != "as stated" && case["verdict"] != "not offered")
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let expected: BTreeSet<String> = not_offered.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(names(&cases, "not offered"), expected);
    assert_eq!((ended.status, cases.len()), (0, count), "{}", ended.stderr);
    for case in &cases {
        assert_eq!(case["neighbour"]["error_count"], 0, "{case:#}");
        assert!(case["neighbour"]["read_count"].as_u64() > Some(0), "{case:#}");
    }
    let bytes = |case: &Value, of: &str| case[of].as_u64().expect("the target is on this machine");
    let before = bytes(&cases[0], "resident_before_bytes");
    let after = bytes(&cases[cases.len() - 1], "resident_after_bytes");
    assert!(after < before + GROWTH_BYTES, "{before} bytes, then {after}");
}

const NVME_COUNT: usize = 56;
const ISCSI_COUNT: usize = 55;
/// Hosts of NVMe/TCP cannot prove who they are here.
const NO_PROOF: [&str; 1] = ["N31"];
const CHAP: [&str; 6] = ["I33", "I34", "I35", "I37", "I38", "I39"];

// Over NVMe/TCP.
fn hosts(test: &str, disk: &str) {
    let target = Target::start(test, disk, "");
    let neighbour = target.nvme(&format!("{NAME}s"));
    let ended = torture(&target.nvme(NAME), &neighbour, &["--allow-writes"]);
    check(&ended, NVME_COUNT, &NO_PROOF);
    target.running.signal("INT");
}

// Over iSCSI.
fn initiators(test: &str, disk: &str) {
    let target = Target::start(test, disk, "");
    let neighbour = target.iscsi("", &format!("{NAME}s"));
    let ended = torture(&target.iscsi("", NAME), &neighbour, &["--allow-writes"]);
    check(&ended, ISCSI_COUNT, &CHAP);
    target.running.signal("INT");
}

// Both at once, for they mostly wait for a target of their own to lose its patience.
fn peers(device: &str, disk: &str) {
    let [nvme, iscsi] = ["nvme", "iscsi"].map(|protocol| format!("{protocol}-{device}"));
    thread::scope(|scope| {
        scope.spawn(|| hosts(&nvme, disk));
        scope.spawn(|| initiators(&iscsi, disk));
    });
}

#[test]
fn hostile_peers_of_a_file_are_reacted_to_as_stated() {
    peers("file", "file:FILE?size=32MiB");
}

#[test]
fn hostile_peers_of_memory_are_reacted_to_as_stated() {
    peers("memory", "memory:32MiB?block=4096");
}

#[test]
fn initiators_that_prove_nothing_are_reacted_to_as_stated() {
    let chap = "chap = { user = \"me\", secret = \"a secret that is long\" }";
    let target = Target::start("chap", "memory:32MiB", chap);
    let neighbour = target.iscsi("", &format!("{NAME}s"));
    let flags = ["--allow-writes", "--chap-secret", target.secret()];
    let ended = torture(&target.iscsi("me@", NAME), &neighbour, &flags);
    check(&ended, ISCSI_COUNT, &[]);
    target.running.signal("INT");
}

/// Passes everything on but what ends a connection: nobody is told why, and nothing is closed.
fn indulgent(target: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    let address = listener.local_addr().expect("it has one");
    thread::spawn(move || {
        for near in listener.incoming() {
            let near = near.expect("it is open");
            let far = TcpStream::connect(target).expect("it listens");
            let ways = [(near.try_clone(), far.try_clone()), (Ok(far), Ok(near))];
            for (from, to) in ways {
                let (from, to) = (from.expect("open"), to.expect("open"));
                thread::spawn(move || pass(from, to));
            }
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        // C2HTermReq: its type, and 24 bytes of header.
        let ends = bytes[0] == 0x03 && bytes[2] == 24;
        if !ends && to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
    // Held until the test is over.
    loop {
        thread::park();
    }
}

#[test]
fn a_target_that_lets_everything_pass_is_not_as_stated() {
    let target = Target::start("indulgent", "memory:16MiB", "");
    let address = indulgent(target.ready.nvme[0]);
    let uri = format!("nvme+tcp://{address}/nqn.{NAME}/1");
    let neighbour = target.nvme(&format!("{NAME}s"));
    let ended = torture(&uri, &neighbour, &["--case", "N2,N17,N39"]);
    let cases = cases(&ended);
    let of = |verdict| names(&cases, verdict).into_iter().collect::<Vec<_>>();
    assert_eq!((of("as stated"), of("not as stated")), (vec!["N2".into()], vec!["N17".into()]));
    assert_eq!(of("skipped"), ["N39"], "it may write");
    assert_eq!(ended.status, 1, "{}", ended.stderr);
    let seen = &cases[1]["seen"];
    assert_eq!(seen["nothing in time"], 2, "{seen}");
    target.running.signal("INT");
}

#[test]
fn what_cannot_be_tried_is_said() {
    let run = |words: &[&str]| Launch::new([&[AFAR, "torture"], words].concat()).run();
    let nowhere = "nvme+tcp://127.0.0.1:1/nqn.2026-11.example:none";
    let ended = run(&[nowhere, "--case", "I1"]).expect(2, "a case of the other protocol");
    assert!(ended.stderr.contains("--case I1: there is no such case"), "{}", ended.stderr);
    let ended = run(&[nowhere]).expect(1, "nobody listens");
    assert!(ended.stderr.contains("connect a well-behaved host first: "), "{}", ended.stderr);
    run(&["file:/dev/null"]).expect(2, "a file");
    run(&[]).expect(2, "nothing");
    run(&[nowhere, "--patience", "1ms"]).expect(2, "no patience");
}

#[test]
fn interrupted_it_says_what_was_seen() {
    let target = Target::start("interrupted", "memory:16MiB", "");
    let uri = target.nvme(NAME);
    let words = [AFAR, "torture", &uri, "--case", "N2,N18", "--json"];
    let path = open_scratch(&format!("torture-{}.json", std::process::id()));
    let json = path.to_str().expect("paths here are text");
    let mut run = Launch::new(words.iter().chain(&[json])).limit(LIMIT).start();
    run.wait_for("N2 ");
    run.signal("INT");
    let ended = run.wait();
    let record: Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("it is written")).expect("JSON");
    let _gone = fs::remove_file(&path);
    assert_eq!((ended.status, &record["results"]["interrupted"]), (130, &Value::Bool(true)));
    assert_eq!(record["results"]["cases"][0]["verdict"], "as stated");
    assert!(ended.text().contains("interrupted, 1 not tried"), "{}", ended.text());
    let words = [AFAR, "torture", &uri, "--case", "N2", "--quick", "--csv", "-"];
    let rows = Launch::new(words).limit(LIMIT).run().expect(0, "--csv").text();
    assert!(rows.starts_with("case,verdict,ways,") && rows.contains("\nN2,as stated,"), "{rows}");
    assert_eq!(rows.lines().count(), 2, "a row for each case, and nothing else: {rows}");
    target.running.signal("INT");
}

#[test]
fn the_documentation_has_all_cases() {
    let ended = Launch::new([AFAR, "torture", "--list", "--markdown"]).run().expect(0, "--list");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/torture.md");
    let page = fs::read_to_string(path).expect("it is there");
    let table = page.split("\n\n").find(|part| part.starts_with("| case |"));
    let table = table.expect("it has a table").trim_end();
    assert_eq!(table, ended.text().trim_end(), "docs/torture.md has the table of --markdown");
}
