//! Logical units of somebody else's iSCSI target: found, looked at, loaded and attached, through
//! kills of the target and through its silence.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use support::iscsi::{IQN, Portal, TARGET_USER, USER};
use support::{Ended, Launch, Running, installed, open_scratch, skip};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const PLAIN: [bool; 2] = [false, false];

fn afar(words: &[&str]) -> Launch {
    Launch::new([AFAR].iter().chain(words)).limit(Duration::from_secs(120))
}

fn record(ended: &Ended) -> Value {
    serde_json::from_str(&ended.text()).expect("it is JSON")
}

/// A load that writes and checks what it reads; its record.
fn verified(uri: &str, more: &[&str]) -> Value {
    let words = ["bench", uri, "--rw", "randrw", "--verify", "--json", "-", "--quiet"];
    record(&afar(&[&words, more].concat()).run().expect(0, &format!("{uri} {more:?}")))
}

#[test]
fn targets_and_their_units_are_found() {
    let Some(portal) = Portal::start("targets_and_their_units_are_found", PLAIN) else { return };
    let at = format!("iscsi://{}", portal.address());
    let found = record(&afar(&["discover", &at, "--json", "-"]).run().expect(0, "afar discover"));
    let target = &found["targets"][0];
    assert_eq!(
        (&target["target"], found["targets"].as_array().map(Vec::len)),
        (&IQN.into(), Some(1))
    );
    assert_eq!(target["portals"][0]["address"], portal.address());
    let any = format!("{at}/{IQN}");
    for uri in [&any, &portal.uri()] {
        let found = record(&afar(&["identify", "--json", "-", uri]).run().expect(0, uri));
        let unit = &found["units"][0];
        // Its logical unit 0 is no disk.
        assert_eq!((&unit["lun"], &unit["block_count"]), (&1.into(), &(64 << 11).into()), "{unit}");
        assert_eq!((&unit["block_bytes"], &unit["lbpu"]), (&512.into(), &true.into()));
    }
    for (uri, reason) in [
        (format!("{at}/{IQN}/0"), "logical unit 0 is no disk"),
        (format!("{at}/{IQN}/5"), "logical unit 5 is not there"),
        (format!("{at}/iqn.2026-11.example:other/1"), "there is no such target; afar discover"),
        (format!("{at}/{IQN}/1?connections=2"), "it grants a session 1 of 2 connections"),
    ] {
        let ended = afar(&["bench", &uri]).run().expect(1, &uri);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
}

#[test]
fn what_is_written_is_read_whatever_its_size() {
    let test = "what_is_written_is_read_whatever_its_size";
    for has_digests in [false, true] {
        let Some(portal) = Portal::start(test, [has_digests, false]) else { return };
        let digests: &[&str] =
            if has_digests { &["--header-digest", "--data-digest"] } else { &[] };
        // With its data, with more of it unasked, with some that is asked for, in several parts.
        for bytes in ["512", "4KiB", "64KiB", "128KiB", "1MiB", "4MiB"] {
            let more = ["--bs", bytes, "--depth", "4", "--threads", "2", "--requests", "200"];
            let found = verified(&portal.uri(), &[&more, digests].concat());
            let job = &found["jobs"][0];
            let count = |way: &str| job[way]["total_ios"].as_u64().expect("a number");
            assert_eq!(count("read") + count("write"), 400, "{bytes}");
        }
        let words = ["bench", &portal.uri(), "--rw", "randtrim", "--requests", "500"];
        afar(&[&words, digests].concat()).run().expect(0, "trims");
        let words = ["bench", &portal.uri(), "--rw", "randwrite", "--fua", "--requests", "500"];
        afar(&[&words, digests].concat()).run().expect(0, "forced writes");
    }
}

#[test]
fn a_target_without_digests_is_not_taken_where_they_are_required() {
    let test = "a_target_without_digests_is_not_taken_where_they_are_required";
    let Some(portal) = Portal::start(test, PLAIN) else { return };
    let ended = afar(&["bench", &portal.uri(), "--data-digest"]).run().expect(1, "no digests");
    let reason = "it does not use the digests that are required";
    assert!(ended.stderr.contains(reason), "{}", ended.stderr);
}

#[test]
fn both_ends_prove_who_they_are() {
    let test = "both_ends_prove_who_they_are";
    let Some(portal) = Portal::start(test, [false, true]) else { return };
    let uri = portal.uri().replace("iscsi://", &format!("iscsi://{}@", USER[0]));
    let mutual = format!("{uri}?target_user={}", TARGET_USER[0]);
    let secret = open_scratch(&format!("iscsi-secret-{}", std::process::id()));
    fs::write(&secret, format!("{}\n", USER[1])).expect("there is room");
    let file = ["--chap-secret", secret.to_str().expect("paths here are text")];
    let load = |uri: &str, more: &[&str]| {
        // tgt says that it has other algorithms, and does not know their answers.
        let words = ["bench", uri, "--requests", "100", "--chap-algs", "MD5"];
        afar(&[&words, more].concat())
    };
    load(&uri, &file).run().expect(0, "a secret in a file");
    load(&uri, &[]).env("LIBISCSI_CHAP_PASSWORD", USER[1]).run().expect(0, "in the environment");
    let target = |launch: Launch, secret: &str| launch.env("LIBISCSI_CHAP_TARGET_PASSWORD", secret);
    target(load(&mutual, &file), TARGET_USER[1]).run().expect(0, "both ends");
    for (launch, status, reason) in [
        (target(load(&mutual, &file), "a secret of others"), 1, "has not proved who it is"),
        (load(&uri, &[]).env("LIBISCSI_CHAP_PASSWORD", "a guess"), 1, "check both"),
        (load(&portal.uri(), &[]), 1, "check both"),
        (load(&uri, &[]), 2, "no secret of me is given; use --chap-secret FILE"),
        (load(&mutual, &file), 2, "no secret of it is given; use --chap-target-secret FILE"),
    ] {
        let ended = launch.run().expect(status, reason);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
    fs::remove_file(&secret).expect("it is there");
}

#[test]
fn a_target_that_is_killed_is_found_again() {
    let test = "a_target_that_is_killed_is_found_again";
    let Some(mut portal) = Portal::start(test, PLAIN) else { return };
    let uri = portal.uri();
    let words = ["bench", &uri, "--rw", "randrw", "--verify", "--depth", "8", "--duration", "3s"];
    let more = ["--ctrl-loss-tmo", "60s", "--json", "-"];
    let running = afar(&[&words[..], &more].concat()).start();
    for _ in 0..2 {
        sleep(Duration::from_millis(700));
        portal.kill();
        portal.restart();
    }
    let found = record(&running.wait().expect(0, "what was written is there"));
    let again = found["jobs"][0]["afar"]["reconnect_count"].as_u64();
    assert!(again.is_some_and(|count| count > 0), "{}", found["jobs"][0]["afar"]);
}

#[test]
fn a_target_that_is_silent_is_lost() {
    let test = "a_target_that_is_silent_is_lost";
    let Some(portal) = Portal::start(test, PLAIN) else { return };
    let words = ["bench", &portal.uri(), "--depth", "4", "--duration", "60s"];
    let running = afar(&words).start();
    sleep(Duration::from_millis(500));
    portal.running().signal("STOP");
    // It is asked whether it is there before.
    let ended = running.wait();
    portal.running().signal("CONT");
    let ended = ended.expect(1, "nobody answers");
    assert!(ended.text().contains("the connection was lost"), "{}", ended.text());
    assert!(ended.elapsed < Duration::from_secs(50), "{:?}", ended.elapsed);
}

/// A disk at a directory, which is as it was when this is dropped.
struct Attached {
    running: Option<Running>,
    directory: PathBuf,
}

impl Attached {
    /// None, loudly, where nothing can be mounted.
    fn at(uri: &str, test: &str) -> Option<Self> {
        if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
            skip(test, &format!("/dev/fuse: {error}"));
            return None;
        }
        let directory = open_scratch(&format!("iscsi-{test}-{}.mount", std::process::id()));
        fs::create_dir_all(&directory).expect("there is room for a directory");
        let at = directory.to_str().expect("paths here are text");
        let mut running = afar(&["attach", uri, at, "--keep-alive-tmo", "2s"]).start();
        running.wait_for("until Ctrl-C");
        Some(Self { running: Some(running), directory })
    }

    fn disk(&self) -> String {
        self.directory.join("disk").display().to_string()
    }

    fn detach(mut self) {
        let running = self.running.take().expect("it runs");
        running.signal("TERM");
        running.wait().expect(0, "afar attach").leaves_nothing("afar attach");
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if self.running.take().is_some() {
            Launch::new(["umount", "-l", &self.directory.display().to_string()]).run();
        }
        let _absent = fs::remove_dir(&self.directory);
    }
}

#[test]
fn an_attached_unit_takes_a_file_system() {
    let test = "an_attached_unit_takes_a_file_system";
    if !installed(&["mkfs.ext4", "e2fsck", "fallocate"], test) {
        return;
    }
    let Some(portal) = Portal::start(test, PLAIN) else { return };
    let Some(attached) = Attached::at(&portal.uri(), test) else { return };
    let disk = attached.disk();
    for words in [
        &["mkfs.ext4", "-q", "-F", &disk][..],
        &["e2fsck", "-f", "-n", &disk],
        &["fallocate", "-p", "-o", "16777300", "-l", "1000000", &disk],
    ] {
        Launch::new(words).run().expect(0, &format!("{words:?}"));
    }
    let file = File::open(&disk).expect("it is there");
    let mut hole = vec![1; 1_000_000];
    file.read_exact_at(&mut hole, 16_777_300).expect("it is inside");
    assert!(hole.iter().all(|&byte| byte == 0), "a hole is zeros");
    drop(file);
    attached.detach();
}

#[test]
fn an_attached_unit_outlives_its_target() {
    let test = "an_attached_unit_outlives_its_target";
    let Some(mut portal) = Portal::start(test, PLAIN) else { return };
    let Some(attached) = Attached::at(&portal.uri(), test) else { return };
    let disk = attached.disk();
    let writer = std::thread::spawn(move || {
        let file = File::options().read(true).write(true).open(disk).expect("it is there");
        for round in 0..3_u8 {
            for place in 0..600_u64 {
                let bytes = [round.wrapping_add(place.to_le_bytes()[0]); 4096];
                file.write_all_at(&bytes, place * 8192).expect("it waits for the target");
            }
            file.sync_all().expect("it waits for the target");
        }
        for place in 0..600_u64 {
            let mut bytes = [0; 4096];
            file.read_exact_at(&mut bytes, place * 8192).expect("it is there");
            assert_eq!(bytes, [2_u8.wrapping_add(place.to_le_bytes()[0]); 4096], "at {place}");
        }
    });
    for _ in 0..2 {
        sleep(Duration::from_millis(150));
        portal.kill();
        portal.restart();
    }
    writer.join().expect("what was written is there");
    attached.detach();
}
