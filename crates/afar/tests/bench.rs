//! `afar bench`: what it says of a load, as people and fio's readers see it.

mod support;

use serde_json::Value;
use support::{Launch, Running};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";

/// A target that serves, and its disk's URI.
fn serve(disk: &str) -> (Running, String) {
    let disk = format!("disk={disk}");
    let mut target = Launch::new([AFAR, "serve", &disk, "--nvme", "127.0.0.1:0"]).start();
    target.wait_for("nvme connect");
    let output = target.output();
    let address = output.split("serving at ").nth(1).and_then(|rest| rest.split(' ').next());
    let uri = format!("nvme+tcp://{}/{NQN}", address.expect("it says where"));
    (target, uri)
}

fn stop(target: Running) {
    target.signal("INT");
    target.wait().expect(0, "afar serve").leaves_nothing("afar serve");
}

fn bench(words: &[&str]) -> Launch {
    Launch::new([AFAR, "bench"].iter().chain(words))
}

fn record(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
fn processors_of_both_sides_are_accounted_for() {
    let (target, uri) = serve("memory:16MiB");
    let words = [&uri, "--iodepth", "8", "--number_ios", "20000", "--json", "-"];
    let ended = bench(&words).run().expect(0, "afar bench");
    let record = record(&ended.text());
    let processors = &record["afar"]["processors"];
    assert_eq!(processors["request_count"], 20_000);
    let process = &processors["target"]["processes"][0];
    assert_eq!((&process["pid"], &process["name"]), (&target.pid().into(), &"afar".into()));
    for side in ["own", "target"] {
        let side = &processors[side];
        let each_ns = number(&side["processor_ns_per_request"]);
        assert!(each_ns > 0.0, "{side}");
        let product = each_ns * number(&side["requests_per_processor_second"]) / 1e9;
        assert!((product - 1.0).abs() < 1e-6, "one is the other's inverse: {side}");
    }
    let job = &record["jobs"][0];
    assert!(number(&job["usr_cpu"]) + number(&job["sys_cpu"]) > 0.0, "{job}");
    assert!(number(&job["ctx"]) > 0.0);
    let line = format!("switches a request; afar, process {}", target.pid());
    assert!(ended.stderr.contains(&line), "{}", ended.stderr);
    stop(target);
}

#[test]
fn a_device_of_this_process_has_no_target() {
    let ended = bench(&["null:", "--number_ios", "1000", "--json", "-"]).run();
    let record = record(&ended.expect(0, "afar bench").text());
    let processors = &record["afar"]["processors"];
    assert!(number(&processors["own"]["processor_ns_per_request"]) > 0.0);
    assert_eq!(processors["target"], Value::Null);
}
