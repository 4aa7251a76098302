//! `afar attach`: a namespace of a target as a file, with file systems on it, through kills of the
//! target, until it is detached.

mod local;
#[path = "../support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Ended, Launch, Running, installed, open_scratch, skip};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";
const MIB: u64 = 1 << 20;

/// A target of one file, which is gone when dropped.
struct Target {
    image: PathBuf,
    address: String,
    running: Option<Running>,
}

impl Target {
    /// None, loudly, where nothing can be mounted.
    fn start(test: &str) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse");
        if let Err(error) = device {
            skip(test, &format!("/dev/fuse: {error}"));
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            skip(test, "only root can mount");
            return None;
        }
        let image = open_scratch(&format!("attach-{test}-{}", std::process::id()));
        let mut target = Self { image, address: "127.0.0.1:0".to_owned(), running: None };
        target.restart();
        Some(target)
    }

    fn restart(&mut self) {
        let disk = format!("nqn.2026-11.local.afar:disk=file:{}?size=64MiB", self.image.display());
        let words = [
            AFAR,
            "serve",
            &disk,
            "nqn.2026-11.local.afar:null=null:64MiB",
            "--nvme",
            &self.address,
        ];
        let (running, ready) = Launch::new(words).serve();
        self.address = ready.nvme[0].to_string();
        self.running = Some(running);
    }

    fn kill(&mut self) {
        let running = self.running.take().expect("it runs");
        running.signal("KILL");
        running.wait().leaves_nothing("a killed target");
    }

    fn uri(&self, name: &str) -> String {
        format!("nvme+tcp://{}/nqn.2026-11.local.afar:{name}", self.address)
    }

    fn attach(&self, flags: &[&str]) -> Attached {
        let directory = self.image.with_extension("mount");
        fs::create_dir_all(&directory).expect("there is room for a directory");
        let (uri, at) = (self.uri("disk"), directory.to_str().expect("paths here are text"));
        let words = [&[AFAR, "attach", &uri, at], flags].concat();
        let mut running = Launch::new(words).limit(Duration::from_secs(120)).start();
        running.wait_for("until Ctrl-C");
        Attached { running: Some(running), directory }
    }

    fn stop(mut self) {
        let running = self.running.take().expect("it runs");
        running.signal("INT");
        running.wait().expect(0, "afar serve");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _absent = fs::remove_file(&self.image);
    }
}

/// A disk at a directory, which is as it was when this is dropped.
struct Attached {
    running: Option<Running>,
    directory: PathBuf,
}

impl Attached {
    fn disk(&self) -> String {
        self.directory.join("disk").display().to_string()
    }

    fn open(&self) -> File {
        File::options().read(true).write(true).open(self.disk()).expect("it is there")
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("it is there");
        mounts.contains(&format!(" {} ", self.directory.display()))
    }

    fn signal(&self, signal: &str) {
        self.running.as_ref().expect("it runs").signal(signal);
    }

    /// Waits until it has written `text`.
    fn says(&mut self, text: &str) {
        self.running.as_mut().expect("it runs").wait_for(text);
    }

    fn wait(&mut self) -> Ended {
        self.running.take().expect("it runs").wait()
    }

    /// Ends well, and leaves nothing.
    fn detach(mut self) {
        self.signal("TERM");
        self.wait().expect(0, "afar attach").leaves_nothing("afar attach");
        assert!(!self.is_mounted());
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        drop(self.running.take());
        if self.is_mounted() {
            Launch::new(["umount", "-l", path(&self.directory)]).run();
        }
        let _absent = fs::remove_dir(&self.directory);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("paths here are text")
}

fn run(words: &[&str]) -> Ended {
    Launch::new(words).run().expect(0, &format!("{words:?}"))
}

/// A child that another test has just forked has this one's files until it executes something, and
/// `umount` gives up at once.
fn unmount(directory: &Path) {
    let mut tries = 0;
    loop {
        let ended = Launch::new(["umount", path(directory)]).run();
        tries += 1;
        if tries == 50 || !ended.stderr.contains("target is busy") {
            ended.expect(0, "umount");
            return;
        }
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_disk_takes_a_file_system() {
    let test = "a_disk_takes_a_file_system";
    if !installed(&["mkfs.ext4", "e2fsck", "dd", "fallocate"], test) {
        return;
    }
    let Some(target) = Target::start(test) else { return };
    let attached = target.attach(&[]);
    let disk = attached.disk();
    assert_eq!(fs::metadata(&disk).expect("it is there").len(), 64 * MIB);
    assert_eq!(fs::read_dir(&attached.directory).expect("it is there").count(), 1);
    run(&["mkfs.ext4", "-q", "-F", &disk]);
    run(&["e2fsck", "-f", "-n", &disk]);
    // As it was written, so it is on the target.
    let mut bytes = vec![0; 8 << 20];
    let mut random = File::open("/dev/urandom").expect("it is there");
    random.read_exact(&mut bytes).expect("it has enough");
    let source = target.image.with_extension("bytes");
    fs::write(&source, &bytes).expect("there is room");
    let [from, to] = [format!("if={}", source.display()), format!("of={disk}")];
    run(&["dd", &from, &to, "bs=1M", "seek=16", "oflag=direct", "conv=notrunc,fsync"]);
    fs::remove_file(&source).expect("it is there");
    let image = File::open(&target.image).expect("it is there");
    let mut stored = vec![0; bytes.len()];
    image.read_exact_at(&mut stored, 16 * MIB).expect("it is that long");
    assert!(stored == bytes, "what the target has");
    // Holes are zeros, wherever they begin.
    let (offset, length) = ("16777300", "1000000");
    for mode in ["--punch-hole", "--zero-range"] {
        let mut file = attached.open();
        file.write_all_at(&bytes, 16 * MIB).expect("it can");
        run(&["fallocate", mode, "--keep-size", "-o", offset, "-l", length, &disk]);
        let mut read = vec![1; bytes.len()];
        file.seek(SeekFrom::Start(16 * MIB)).expect("it can");
        file.read_exact(&mut read).expect("it can");
        let mut wanted = bytes.clone();
        wanted[84..1_000_084].fill(0);
        assert!(read == wanted, "{mode}");
    }
    attached.detach();
    target.stop();
}

// What a block device does with what a file would do.
#[test]
fn a_disk_keeps_its_size() {
    let Some(target) = Target::start("a_disk_keeps_its_size") else { return };
    let attached = target.attach(&[]);
    let mut file = attached.open();
    file.write_all_at(b"some", 3).expect("any byte can be written");
    file.write_all_at(b"bytes", 64 * MIB - 5).expect("up to the end");
    drop(File::create(attached.disk()).expect("O_TRUNC is no error"));
    assert_eq!(fs::metadata(attached.disk()).expect("it is there").len(), 64 * MIB);
    let mut read = [0; 8];
    file.read_exact_at(&mut read, 0).expect("it can");
    assert_eq!(read, *b"\0\0\0some\0");
    file.seek(SeekFrom::End(-2)).expect("it can");
    assert_eq!(file.read(&mut read).expect("it ends there"), 2);
    assert_eq!(file.read(&mut read).expect("it has ended"), 0);
    assert_eq!(file.write_at(b"xyz", 64 * MIB - 1).expect("one fits"), 1);
    let beyond = file.write(b"xyz").expect_err("nothing fits");
    assert_eq!(beyond.kind(), std::io::ErrorKind::StorageFull);
    drop(file);
    attached.detach();
    target.stop();
}

#[test]
fn a_loop_device_is_made_of_a_disk() {
    let test = "a_loop_device_is_made_of_a_disk";
    if !installed(&["mkfs.ext4", "losetup", "mount"], test) {
        return;
    }
    let free = Launch::new(["losetup", "-f"]).run();
    if free.status != 0 {
        return skip(test, &format!("no loop device: {}", free.stderr.trim()));
    }
    let Some(target) = Target::start(test) else { return };
    let mut attached = target.attach(&[]);
    run(&["mkfs.ext4", "-q", "-F", &attached.disk()]);
    let within = target.image.with_extension("within");
    fs::create_dir_all(&within).expect("there is room for a directory");
    let mounted = Launch::new(["mount", "-o", "loop", &attached.disk(), path(&within)]).run();
    mounted.expect(0, "mount -o loop");
    let file = within.join("file");
    let text = vec![b'x'; 5 << 20];
    let mut written = File::create(&file).expect("there is room");
    written.write_all(&text).and_then(|()| written.sync_all()).expect("there is room");
    drop(written);
    // It is in use: that is said, and nothing happens.
    attached.signal("INT");
    attached.says("is in use; end what uses it");
    assert!(attached.is_mounted());
    assert!(fs::read(&file).expect("it is there") == text);
    unmount(&within);
    run(&["e2fsck", "-f", "-n", &attached.disk()]);
    fs::remove_dir(&within).expect("it is empty");
    attached.detach();
    target.stop();
}

#[test]
fn what_is_written_outlasts_kills_of_the_target() {
    let test = "what_is_written_outlasts_kills_of_the_target";
    let Some(mut target) = Target::start(test) else { return };
    // So that blocks are free again soon that were being written.
    let attached = target.attach(&["--keep-alive-tmo", "1s"]);
    let uri = format!("file:{}", attached.disk());
    let flags = ["--rw", "randrw", "--verify", "--overwrite", "--depth", "8", "--threads", "2"];
    let words = [&[AFAR, "bench", &uri, "--json", "-", "--duration", "600s"], &flags[..]].concat();
    let load = Launch::new(words).limit(Duration::from_secs(300)).start();
    for round in 0..if support::full() { 200 } else { 20 } {
        sleep(Duration::from_millis(100 + round * 37 % 200));
        target.kill();
        target.restart();
    }
    sleep(Duration::from_millis(1000));
    load.signal("INT");
    let record: Value =
        serde_json::from_str(&load.wait().expect(0, "afar bench").text()).expect("it is JSON");
    let own = &record["afar"];
    for wrong in ["lost_count", "misdirected_count", "torn_count", "stale_count", "failure_count"] {
        assert_eq!(own[wrong], 0, "{wrong}: {}", own["first_failure"]);
    }
    let count = |of: &str| record["jobs"][0][of]["total_ios"].as_u64().expect("a number");
    assert!(count("read") > 100 && count("write") > 100, "{own}");
    attached.detach();
    target.stop();
}

#[test]
fn it_is_detached_by_whoever_does() {
    let Some(target) = Target::start("it_is_detached_by_whoever_does") else { return };
    for signal in ["INT", "TERM", "HUP"] {
        let mut attached = target.attach(&[]);
        attached.signal(signal);
        attached.wait().expect(0, signal).leaves_nothing(signal);
        assert!(!attached.is_mounted(), "{signal}");
    }
    let mut attached = target.attach(&["--header-digest", "--data-digest"]);
    unmount(&attached.directory);
    attached.wait().expect(0, "umount").leaves_nothing("umount");
    // Whoever has it open keeps it.
    let mut attached = target.attach(&[]);
    let file = attached.open();
    attached.signal("INT");
    attached.says("is in use; end what uses it");
    assert!(attached.is_mounted());
    file.write_all_at(b"still", 0).expect("it is there");
    drop(file);
    attached.signal("INT");
    attached.wait().expect(0, "afar attach");
    target.stop();
}

#[test]
fn a_target_that_stays_away_fails_what_waits() {
    let Some(mut target) = Target::start("a_target_that_stays_away_fails_what_waits") else {
        return;
    };
    let mut attached = target.attach(&["--ctrl-loss-tmo", "1s"]);
    let file = attached.open();
    file.write_all_at(b"there", 0).expect("it is there");
    target.kill();
    let failed = file.write_all_at(b"gone", 0).expect_err("nobody is there");
    assert_eq!(failed.raw_os_error(), Some(5), "EIO");
    assert_eq!(file.sync_all().expect_err("nobody is there").raw_os_error(), Some(5));
    drop(file);
    attached.signal("INT");
    let ended = attached.wait().expect(1, "afar attach");
    for text in ["no way to the disk for 1", "may not be on the medium: the connection was lost"] {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
    assert!(!attached.is_mounted());
    // Told twice, it does not wait either.
    target.restart();
    let mut attached = target.attach(&[]);
    target.kill();
    attached.signal("INT");
    while attached.is_mounted() {
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(200));
    attached.signal("INT");
    let ended = attached.wait().expect(1, "afar attach");
    assert!(ended.stderr.contains("told to end"), "{}", ended.stderr);
}

// Whether the doctor has unmounted it; `None` if it did not find it.
fn mount_left(flags: &[&str], directory: &Path) -> Option<bool> {
    let words = [&[AFAR, "doctor", "--json", "-"], flags].concat();
    let ended = Launch::new(words).run();
    let report: Value = serde_json::from_str(&ended.text()).expect("it is JSON");
    let all = report["leftovers"].as_array().expect("a list");
    let left = all.iter().find(|left| left["what"]["path"] == path(directory))?;
    assert_eq!(left["what"]["kind"], "mount");
    left["removed"].as_bool()
}

#[test]
fn doctor_unmounts_what_a_killed_attach_has_left() {
    let test = "doctor_unmounts_what_a_killed_attach_has_left";
    let Some(target) = Target::start(test) else { return };
    let mut attached = target.attach(&[]);
    let directory = attached.directory.clone();
    assert_eq!(mount_left(&[], &directory), None, "it is served");
    attached.signal("KILL");
    attached.wait().leaves_nothing("a killed attach");
    assert!(attached.is_mounted());
    let ended = Launch::new([AFAR, "attach", &target.uri("disk"), path(&directory)]).run();
    let ended = ended.expect(1, "attach where one was killed");
    assert!(ended.stderr.contains("afar doctor --repair unmounts it"), "{}", ended.stderr);
    assert_eq!(mount_left(&[], &directory), Some(false), "found");
    assert_eq!(mount_left(&["--repair"], &directory), Some(true), "unmounted");
    assert_eq!(mount_left(&[], &directory), None, "gone");
    assert!(!attached.is_mounted());
    target.stop();
}

#[test]
fn what_cannot_be_is_said_in_one_sentence() {
    let Some(target) = Target::start("what_cannot_be_is_said") else { return };
    let attached = target.attach(&[]);
    let (uri, null, absent) = (target.uri("disk"), target.uri("null"), target.uri("absent"));
    let directory = target.image.with_extension("other");
    fs::create_dir_all(&directory).expect("there is room for a directory");
    let (at, taken, file) = (path(&directory), path(&attached.directory), path(&target.image));
    let cases: [(&[&str], i32, &str); 11] = [
        (&["attach", &uri], 2, "<DIR> is missing"),
        (&["attach", "disk", at], 2, "write nvme+tcp://HOST[:PORT]/NQN[/NSID]"),
        (&["attach", &uri, "/nowhere/at/all"], 2, "make it with mkdir"),
        (&["attach", &uri, file], 2, "it is no directory"),
        (&["attach", &uri, taken], 2, "a disk is attached there"),
        (&["attach", &absent, at], 1, "afar discover 127.0.0.1"),
        (&["attach", "nvme+tcp://127.0.0.1:1/nqn.x:y", at], 1, "Connection refused"),
        (&["attach", &uri, at, "--path", &null], 1, "its subsystem is another than"),
        (&["attach", &uri, at, "--keep-alive-tmo", "1ms"], 2, "give 1s to 3600s"),
        (&["attach", &uri, at, "--queues", "0"], 2, "--queues"),
        (&["identify", "disk"], 2, "write nvme+tcp://HOST[:PORT]/NQN[/NSID]"),
    ];
    for (words, status, reason) in cases {
        let ended = Launch::new([&[AFAR], words].concat()).run();
        let ended = ended.expect(status, &format!("{words:?}"));
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{words:?}: {}", ended.stderr);
        ended.leaves_nothing("a refusal");
    }
    // As on a machine without the device.
    let script = "mount -t tmpfs none /dev && exec \"$@\"";
    let words = ["unshare", "--mount", "sh", "-c", script, "sh", AFAR, "attach", &uri, at];
    let ended = Launch::new(words).run().expect(3, "no device");
    assert!(ended.stderr.contains("modprobe fuse"), "{}", ended.stderr);
    fs::remove_dir(&directory).expect("nothing is there");
    attached.detach();
    target.stop();
}

#[test]
fn a_controller_is_identified() {
    let Some(target) = Target::start("a_controller_is_identified") else { return };
    let uri = target.uri("disk");
    let said = run(&[AFAR, "identify", &uri, "--json", "-"]).text();
    let said: Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!((&said["subnqn"], &said["mn"]), (&NQN.into(), &"afar".into()));
    let namespace = &said["namespaces"][0];
    assert_eq!((&namespace["nsid"], &namespace["lbads"]), (&1.into(), &9.into()));
    assert_eq!(namespace["nsze"], 64 * MIB / 512);
    let uuid = namespace["uuid"].as_str().expect("it has one").to_owned();
    assert_eq!(uuid.len(), 36);
    let table = run(&[AFAR, "identify", &uri]).text();
    for text in ["mn         afar", &format!("subnqn     {NQN}"), "nsid       1", &uuid] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let began = Instant::now();
    let absent = Launch::new([AFAR, "identify", &target.uri("absent")]).run();
    let absent = absent.expect(1, "no such subsystem");
    assert!(absent.stderr.contains("afar discover"), "{}", absent.stderr);
    assert!(began.elapsed() < Duration::from_secs(30));
    target.stop();
}
