//! `afar loop`: a program under the delays that its own traffic makes.

use std::process::{Child, Command, Output};

use serde_json::Value;

use crate::{file, read, scratch, text};

fn closed(experiment: &str, output: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
    command.args(["loop", experiment, "--json", "-", "-o"]).arg(scratch(output));
    command.output().expect("the afar binary was built with this test")
}

const EXPERIMENT: &str = "[program]\ncommand = [\"afar\", \"workload\", \"sort\", \"--size\", \
                          \"4MiB\"]\nlocal = \"25%\"\nrepetitions = 1\nagree = \"30%\"\n\
                          [network]\nrate = \"40Gbps\"\nflows = 5000\n";

#[test]
fn delays_and_traffic_come_to_agree() {
    let output = closed(&file("loop.toml", EXPERIMENT), "loop");
    let said = text(&output.stderr);
    if said.contains("exit status: 3") {
        crate::skip("sim::loops", &said);
        return;
    }
    assert!(output.status.success(), "{said}");
    let record: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(record["agreed"], true);
    assert_eq!(record["network"]["traffic"], "blades");
    let rounds = record["rounds"].as_array().expect("a list");
    // By hand: a request, 2 x 40 B at 40 Gb/s, a header and three packets, (40 + 4500) B, and
    // 4 x 200 ns.
    assert_eq!(rounds[0]["page_p50_us"], 1.724);
    assert!(rounds.iter().all(|round| round["fetch_count"].as_u64() > Some(100)), "{record}");
    let kept = read(&scratch("loop").join("loop.json"));
    assert_eq!(kept.trim(), text(&output.stdout).trim());
    let profile = read(&scratch("loop").join("round-0.csv"));
    assert!(profile.starts_with("bytes,microseconds\n4096,"), "{profile}");
}

/// Ends with the test.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Whatever was measured, nothing is concluded from it.
#[test]
fn a_loop_beside_a_load_is_disturbed() {
    let quiet = "attempts = 1\nothers_max = \"1%\"\n[network]";
    let experiment = file("busy.toml", &EXPERIMENT.replace("[network]", quiet));
    let mut command = Command::new("sh");
    sys::process::die_with_caller(&mut command);
    let spinning = command.args(["-c", "while :; do :; done"]).spawn();
    let busy = Busy(spinning.expect("there is a shell"));
    let output = closed(&experiment, "busy");
    drop(busy);
    let said = text(&output.stderr);
    if said.contains("exit status: 3") {
        crate::skip("sim::loops", &said);
        return;
    }
    let record: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    for round in record["rounds"].as_array().expect("a list") {
        assert_eq!(round["verdict"], "disturbed", "{record}");
        assert_eq!(round["disturbed_count"], 1, "{record}");
        let why = round["first_disturbance"].as_str().expect("a sentence");
        assert!(why.contains("other programs") || why.contains("other guests"), "{why}");
    }
}

/// Bytes of flows between blades are those that the run fetched and wrote back.
#[test]
fn blades_move_what_programs_moved() {
    for workload in ["sort", "wordcount", "als", "pagerank"] {
        let [record, faults] = ["json", "parquet"].map(|ending| {
            let path = scratch(format!("moved-{workload}.{ending}"));
            path.display().to_string()
        });
        let afar = env!("CARGO_BIN_EXE_afar");
        let mut command = Command::new(afar);
        command.args(["run", "--local", "25%", "--json", &record, "--record", &faults, "--"]);
        command.args([afar, "workload", workload, "--size", "8MiB"]);
        let output = command.output().expect("the afar binary was built with this test");
        let said = text(&output.stderr);
        if output.status.code() == Some(3) {
            crate::skip("sim::loops", &said);
            return;
        }
        assert!(output.status.success(), "{workload}: {said}");
        let record: Value = serde_json::from_str(&read(record.as_ref())).expect("it is JSON");
        let bytes = |name: &str| record["results"][name].as_u64().expect("bytes");
        let moved = [bytes("fetched_bytes"), bytes("written_back_bytes")];
        let network = ["--topology", "single-switch", "--hosts", "3", "--nodes", "1"];
        let blades = ["--traffic", "blades", "--faults", &faults, "--flows", "1000000"];
        let rows = crate::answer(&[&network[..], &blades, &["--csv", "-"]].concat());
        let flows = ["read", "write"].map(|exchange| {
            let of = rows.lines().filter(|row| row.ends_with(exchange));
            of.filter_map(|row| row.split(',').nth(3)?.parse::<u64>().ok()).sum::<u64>()
        });
        for (flows, moved) in flows.into_iter().zip(moved) {
            let off = flows.abs_diff(moved);
            assert!(moved > 0 && off * 1000 <= moved, "{workload}: {flows} B, moved {moved}");
        }
    }
}

/// What comes of it depends on this machine; that all of it is there does not.
#[test]
fn figure_8_of_gao_et_al() {
    let directory = scratch("fig8");
    let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
    command.args(["reproduce", "gao-fig8", "--quick", "--json", "-", "-o"]).arg(&directory);
    // Other tests measure nothing either.
    let lock = scratch("fig8-lock");
    std::fs::create_dir_all(&lock).expect("the scratch directory can be written to");
    command.env("AFAR_LOCK_DIR", &lock);
    let output = command.output().expect("the afar binary was built with this test");
    let said = text(&output.stderr);
    if said.contains("exit status: 3") {
        crate::skip("sim::loops", &said);
        return;
    }
    assert!(output.status.success(), "{said}");
    let record: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let points = record["points"].as_array().expect("a list");
    assert_eq!((points.len(), record["verdicts"].as_array().map(Vec::len)), (16, Some(12)));
    let us = |point: &Value| point["page_mean_us"].as_f64().expect("a time");
    let mean = |page: &Value| page["mean_us"].as_f64().expect("a time");
    for point in points {
        let alone = us(&point["idle"]);
        // A page that is asked for, alone, in a rack: a request, 2 x 40 B, a header and three
        // packets, (40 + 4500) B, and 2 x (10 + 210) ns: 16 + 908 + 440 ns at 40 Gb/s,
        // 6.4 + 363.2 + 440 at 100. Between racks 4 x 400 ns more, and four headers at four times
        // the rate: 2.972 and 2.4128 us. Of clusters across the datacenter some pairs are in one
        // rack, if not all.
        let (low, high) = match (point["rate"].as_str(), point["scale"].as_str()) {
            (Some("40Gbps"), Some("rack")) => (1.363, 1.365),
            (Some("100Gbps"), Some("rack")) => (0.809, 0.811),
            (Some("40Gbps"), _) => (1.363, 2.973),
            _ => (0.809, 2.413),
        };
        assert!((low..=high).contains(&alone), "{point}");
        let rounds = point["rounds"].as_array().expect("a list");
        // No page is faster than the same page alone; of the first round these are the idle ones.
        assert!(rounds.iter().all(|round| us(round) >= mean(&round["alone"])), "{point}");
        assert!(!rounds.is_empty() && mean(&rounds[0]["alone"]) == alone, "{point}");
        let reads = mean(&point["without_write_backs"]["page"]);
        assert!(reads >= alone, "{point}");
    }
    // What a fault costs is measured in the first run with delays, and never again.
    let calibration = |path: &str| {
        let record = read(&directory.join("gao-fig8").join(path));
        let record: Value = serde_json::from_str(&record).expect("it is JSON");
        record["results"]["calibration"].clone()
    };
    let first = calibration("wordcount/calibrated.json");
    assert!(first["floor_ns"].as_u64() > Some(0), "{first}");
    assert_eq!(calibration("pagerank/run.json"), first);
    let picture = read(&directory.join("gao-fig8.svg")).replace("</text>\n", " ");
    assert!(!picture.contains("NaN"));
    assert!(picture.contains("100Gbps rack") && picture.contains("without write-backs it is"));
}

#[test]
fn what_is_no_experiment_is_refused() {
    let refused = |name: &str, text_of: &str, wanted: &str| {
        let output = closed(&file(name, text_of), "refused");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("afar loop: ") && said.contains(wanted), "{said}");
    };
    let with = |from: &str, to: &str| EXPERIMENT.replace(from, to);
    refused("knob.toml", &with("rate", "rat"), "knob.toml:7:1: there is no knob \"rat\"; did you");
    refused("local.toml", &with("25%", "125%"), "local.toml:3:9: ");
    refused("often.toml", &with("repetitions = 1", "repetitions = 0"), "often.toml:4:15: \"0\"");
    refused("load.toml", &with("flows = 5000", "load = \"50%\""), "load: it says nothing with");
    refused("none.toml", "[network]\n", "missing field `program`");
}
