//! `afar serve` sleeps when nobody asks it for anything, with all that it is beside a target.

mod support;

use std::thread::sleep;
use std::time::Duration;

use support::Launch;
use sys::usage::{Usage, of_process};
use test_support::scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";
const WHILE: Duration = Duration::from_millis(300);
/// Whiles of which one has to be quiet: a busy machine disturbs some of them, a thread that wakes
/// again and again each.
const WHILES: usize = 20;
const PROCESSOR_NS_MAX: u64 = 30_000_000;

#[test]
fn an_idle_server_sleeps() {
    let file = scratch("idle.toml");
    let text = format!(
        "nvme = [\"127.0.0.1:0\"]\niscsi = [\"127.0.0.1:0\"]\nmetrics = \"127.0.0.1:0\"\n\
         shards = 2\n[[subsystem]]\nname = \"{NQN}\"\n\
         namespaces = [{{ id = 1, uri = \"memory:4MiB\" }}]\n"
    );
    std::fs::write(&file, text).expect("it can be written");
    let (running, ready) = Launch::new([AFAR, "serve", &file.display().to_string()]).serve();
    let uri = format!("nvme+tcp://{}/{NQN}/1", ready.nvme[0]);
    assert_eq!(Launch::new([AFAR, "bench", &uri, "--requests", "50"]).run().status, 0);
    let used_in_a_while = || {
        let now = || of_process(running.pid()).expect("it runs");
        let before = now();
        sleep(WHILE);
        now().since(&before)
    };
    let is_quiet =
        |used: &Usage| used.voluntary_switches == 0 && used.processor_ns() <= PROCESSOR_NS_MAX;
    let mut whiles = (0..WHILES).map(|_| used_in_a_while());
    assert!(whiles.any(|used| is_quiet(&used)), "it never slept: {:?}", used_in_a_while());
    assert_eq!(Launch::new([AFAR, "bench", &uri, "--requests", "50"]).run().status, 0);
    drop(running);
    let _gone = std::fs::remove_file(file);
}
