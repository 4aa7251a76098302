//! `afar serve --ready-fd`: one line for whoever waits for a target.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;

use support::Launch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");

#[test]
fn ready_fd_gets_one_line_once_it_serves() {
    let words = [AFAR, "serve", "--quiet", "disk=null:1MiB", "--shards", "2"];
    let ways = ["--nvme", "127.0.0.1:0", "--iscsi", "127.0.0.1:0"];
    let (running, ready) = Launch::new(words.iter().chain(&ways)).serve();
    assert_eq!((ready.nvme.len(), ready.iscsi.len(), ready.metrics), (1, 1, None));
    for address in ready.nvme.iter().chain(&ready.iscsi) {
        TcpStream::connect(address).expect("it listens");
    }
    let threads = fs::read_dir(format!("/proc/{}/task", running.pid())).expect("it runs");
    let names = threads.flatten().map(|entry| {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        (entry.file_name().to_string_lossy().into_owned(), name.trim().to_owned())
    });
    let names: BTreeMap<String, String> = names.collect();
    let shards = ready.shards.iter().map(|number| names[&number.to_string()].as_str());
    assert_eq!(shards.collect::<Vec<_>>(), ["afar-shard-0", "afar-shard-1"]);
    running.signal("TERM");
    let said = running.wait().expect(0, "afar serve").text();
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn ready_fd_that_is_not_open_is_refused() {
    let words = [AFAR, "serve", "disk=null:1MiB", "--nvme", "127.0.0.1:0", "--ready-fd", "999"];
    let ended = Launch::new(words).run().expect(2, "afar serve");
    assert!(ended.stderr.contains("--ready-fd 999"), "{}", ended.stderr);
    let words = [AFAR, "serve", "disk=null:1MiB", "--ready-fd", "1"];
    Launch::new(words).run().expect(2, "afar serve");
}
