//! `afar serve --iscsi` and initiators that are not ours: libiscsi's conformance suite over every
//! kind of device, with and without digests, and QEMU's block driver.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use support::{Launch, Running, installed, progress};
use test_support::scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const TARGET: &str = "iqn.2026-11.local.afar:disk";
const LIMIT: Duration = Duration::from_secs(180);

/// A target with one disk and two portals.
struct Target {
    running: Running,
    portals: Vec<String>,
}

impl Target {
    fn start(what: &str, flags: &[&str]) -> Self {
        let portals = ["--iscsi", "127.0.0.1:0", "--iscsi", "127.0.0.1:0"];
        let words = [&[AFAR, "serve", what], &portals[..], flags].concat();
        Self::of(&words)
    }

    fn of(words: &[&str]) -> Self {
        let (running, ready) = Launch::new(words).limit(LIMIT).serve();
        let portals = ready.iscsi.iter().map(ToString::to_string).collect();
        Self { running, portals }
    }

    fn uri(&self, portal: usize) -> String {
        format!("iscsi://{}/{TARGET}/0", self.portals[portal])
    }

    fn stop(self) {
        self.running.signal("INT");
        self.running.wait().expect(0, "afar serve").leaves_nothing("afar serve");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths here are text")
}

/// Why tests of the suite are not for this target: what it does not have, and need not have.
const NOT_HERE: [&str; 11] = [
    "--allow-sanitize flag is not set",
    "EXTENDEDCOPY is not implemented",
    "RECEIVE_COPY_RESULTS is not implemented",
    "RECEIVECOPYRESULT is not implemented",
    "READDEFECTDATA10 is not implemented",
    "READDEFECTDATA12 is not implemented",
    "Logical unit is not removable",
    "Media is not removable",
    "Logical unit is not write-protected",
    // WRITE SAME(10) with UNMAP, and physical blocks larger than logical ones.
    "Logical unit does not have LBPWS10",
    "LBPPB < 2",
];
/// Tests of the suite that may find something missing: tgt leaves 65 out, SPDK 121.
const SKIPPED_MAX: usize = 40;

/// What came of the suite: tests that were run, and those that have skipped something, by reason.
fn outcome(text: &str) -> (usize, usize, BTreeMap<String, usize>) {
    let summary = text.lines().rev().find(|line| line.trim_start().starts_with("tests "));
    let numbers: Vec<usize> = summary
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [_, ran, passed, ..] = numbers[..] else { panic!("no summary:\n{text}") };
    assert_eq!(ran, passed, "{text}");
    let mut reasons = BTreeMap::new();
    let mut skipped = 0;
    for test in text.split("Test: ").skip(1) {
        let mut has_skipped = false;
        for line in test.lines().filter(|line| line.contains("[SKIPPED]")) {
            let reason = line.trim().trim_start_matches("[SKIPPED] ");
            let known = NOT_HERE.iter().find(|known| reason.contains(*known));
            let known = known.unwrap_or_else(|| panic!("skipped without reason: {line}"));
            *reasons.entry((*known).to_owned()).or_default() += 1;
            has_skipped = true;
        }
        skipped += usize::from(has_skipped);
    }
    (ran, skipped, reasons)
}

fn conforms(name: &str, disk: &str) {
    let test = format!("iscsi::{name}");
    if !installed(&["iscsi-test-cu"], &test) {
        return;
    }
    let target = Target::start(&format!("nqn.2026-11.local.afar:disk={disk}"), &[]);
    for digest in ["none", "crc32c"] {
        let uris = [0, 1].map(|portal| format!("{}?header_digest={digest}", target.uri(portal)));
        let words = ["iscsi-test-cu", "-d", "-n", "-t", "ALL", &uris[0], &uris[1]];
        let ended = Launch::new(words).limit(LIMIT).run().expect(0, "iscsi-test-cu");
        let (ran, skipped, reasons) = outcome(&ended.text());
        assert!(ran >= 230, "{ran} tests were run");
        assert!(skipped <= SKIPPED_MAX, "{skipped} tests skip: {reasons:?}");
        progress(&format!("iscsi-test-cu: {name}, {digest}: {ran} passed, {skipped} skip some\n"));
    }
    target.stop();
}

#[test]
fn memory_conforms() {
    conforms("memory", "memory:64MiB");
}

#[test]
fn files_conform() {
    let image = scratch("image");
    conforms("file", &format!("file:{}?size=64MiB", image.display()));
}

#[test]
fn large_blocks_conform() {
    conforms("blocks", "memory:64MiB?block=4096");
}

/// Bytes that nothing else would write, and that do not come again.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(&mut next).flatten().take(bytes).collect()
}

#[test]
fn qemu_copies_there_and_back() {
    if !installed(&["qemu-img"], "iscsi::qemu") {
        return;
    }
    let driver = Path::new("/usr/lib/x86_64-linux-gnu/qemu/block-iscsi.so");
    if !driver.exists() {
        support::skip("iscsi::qemu", "QEMU has no iSCSI driver here");
        return;
    }
    let [source, back] = ["source", "back"].map(scratch);
    let mut bytes = noise(24 << 20);
    // Holes, so that it unmaps and asks where blocks are.
    bytes[5 << 20..9 << 20].fill(0);
    fs::write(&source, &bytes).expect("there is room");
    let target = Target::start("nqn.2026-11.local.afar:disk=memory:24MiB", &[]);
    let uri = target.uri(0);
    let img = |words: &[&str]| {
        let words = [&["qemu-img"], words].concat();
        Launch::new(&words).limit(LIMIT).run().expect(0, "qemu-img");
    };
    img(&["convert", "-n", "-f", "raw", "-O", "raw", text(&source), &uri]);
    img(&["compare", "-f", "raw", "-F", "raw", text(&source), &uri]);
    img(&["convert", "-f", "raw", "-O", "raw", &uri, text(&back)]);
    assert!(fs::read(&back).expect("it was written") == bytes, "it came back otherwise");
    target.stop();
}

const CHAP: &str = "chap = { user = \"initiator\", secret = \"sesame, open up\", \
    target_user = \"target\", target_secret = \"another sesame\" }\n";

#[test]
fn who_may_log_in_is_checked() {
    if !installed(&["iscsi-inq", "iscsi-ls"], "iscsi::chap") {
        return;
    }
    let text = format!(
        "iscsi = [\"127.0.0.1:0\"]\n\
         discovery_chap = {{ user = \"finder\", secret = \"find them all\" }}\n\
         [[subsystem]]\nname = \"nqn.2026-11.local.afar:disk\"\n{CHAP}\
         namespaces = [{{ id = 1, uri = \"memory:16MiB\" }}, {{ id = 3, uri = \"null:1GiB\" }}]\n\
         [[subsystem]]\nname = \"nqn.2026-11.local.afar:other\"\n\
         allow = [\"iqn.2026-11.org.example:friend\"]\n\
         namespaces = [{{ id = 1, uri = \"null:1GiB\" }}]\n"
    );
    let toml = scratch("chap.toml");
    fs::write(&toml, text).expect("there is room");
    let target = Target::of(&[AFAR, "serve", toml.to_str().expect("paths here are text")]);
    let portal = &target.portals[0];
    let inquire = |user: &str, name: &str, initiator: &str| {
        let uri = format!("iscsi://{user}{portal}/iqn.2026-11.local.afar:{name}/0");
        Launch::new(["iscsi-inq", "-i", initiator, &uri]).limit(LIMIT).run().status
    };
    let (friend, stranger) = ("iqn.2026-11.org.example:friend", "iqn.2026-11.org.example:other");
    assert_eq!(inquire("initiator%sesame, open up@", "disk", stranger), 0);
    assert_ne!(inquire("initiator%sesame, open it@", "disk", stranger), 0);
    assert_ne!(inquire("", "disk", stranger), 0);
    assert_eq!(inquire("", "other", friend), 0);
    assert_ne!(inquire("", "other", stranger), 0);
    let list = |user: &str| {
        let uri = format!("iscsi://{user}{portal}");
        Launch::new(["iscsi-ls", "-i", stranger, &uri]).limit(LIMIT).run()
    };
    assert!(!list("").text().contains("local.afar"), "nobody who has not proved who it is");
    let list = list("finder%find them all@").expect(0, "iscsi-ls").text();
    assert!(list.contains("local.afar:disk") && !list.contains("local.afar:other"), "{list}");
    target.stop();
    let _absent = fs::remove_file(toml);
}
