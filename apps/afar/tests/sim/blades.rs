//! Traffic of a disaggregated datacenter, and the figure that is about it.

use std::process::Command;

use records::{Fault, FaultKind, FaultWriter};
use serde_json::Value;

use crate::{answer, file, read, refused, scratch, text};

/// Fetches of one page after another, a microsecond apart, with faults between that move nothing.
fn record(name: &str, count: u64) -> String {
    record_of(name, count, &[FaultKind::Fetch, FaultKind::FirstTouch])
}

/// A page of each of some kinds in turn.
fn record_of(name: &str, count: u64, kinds: &[FaultKind]) -> String {
    let fault = |page: u64| {
        let kind = kinds[usize::try_from(page).expect("few") % kinds.len()];
        Fault {
            time_ns: page * 1000,
            process_slot: 0,
            page,
            kind,
            write: false,
            thread: 1,
            wait_ns: 0,
            requested_ns: 0,
            measured_ns: 0,
        }
    };
    let path = scratch(name);
    let sink = std::fs::File::create(&path).expect("a file under target");
    let mut writer = FaultWriter::new(sink, &[]).expect("there is room");
    writer.write(&(0..count).map(fault).collect::<Vec<_>>()).expect("there is room");
    writer.finish().expect("there is room");
    path.display().to_string()
}

#[test]
fn what_programs_asked_of_memory_and_disks_becomes_flows_between_blades() {
    let faults = record("faults.parquet", 400);
    let blades = ["--traffic", "blades", "--faults", &faults, "--nodes", "4", "--csv", "-"];
    let flows = |more: &[&str]| -> Vec<Vec<u64>> {
        let rows = answer(&[&blades[..], more].concat());
        let number = |cell: &str| cell.parse().expect("a number");
        let row = |row: &str| row.split(',').take(4).map(number).collect();
        rows.lines().skip(1).map(row).collect()
    };
    // Nine racks have room for one cluster of 12 blades each: 9 clusters, 4 nodes, 200 fetches.
    let rack = flows(&[]);
    assert_eq!(rack.len(), 9 * 4 * 200);
    for flow in &rack {
        let &[_, src, dst, bytes] = &flow[..] else { panic!("{flow:?}") };
        assert_eq!((src / 16, bytes), (dst / 16, 4096), "{flow:?}");
        assert!((4..8).contains(&(src % 16)) && dst % 16 < 4, "from memory to compute: {flow:?}");
    }
    // Pages are spread evenly over the memory blades.
    let from = |host: u64| rack.iter().filter(|flow| flow[1] == host).count();
    assert_eq!([4, 5, 6, 7].map(from), [200; 4]);
    assert_eq!(rack[0][0], 0);
    let apart = flows(&["--scale", "datacenter", "--clusters", "2", "--flows", "300"]);
    assert_eq!(apart.len(), 300);
    assert!(apart.iter().any(|flow| flow[1] / 16 != flow[2] / 16));
    // Twice as fast is half as long.
    let end = |flows: &[Vec<u64>]| flows.iter().map(|flow| flow[0]).max();
    let fast = flows(&["--speed", "2"]);
    let (slow, fast) = (end(&rack).expect("flows"), end(&fast).expect("flows"));
    assert!(slow.abs_diff(2 * fast) < 4_000_000, "{slow} {fast}");
    let batched = flows(&["--batch", "10us"]);
    assert!(batched.len() < rack.len() / 2);
    let bytes = |flows: &[Vec<u64>]| flows.iter().map(|flow| flow[3]).sum::<u64>();
    assert_eq!(bytes(&batched), bytes(&rack));
}

/// What is fetched is read, what is written back is written, and both load the network: of 900
/// pages 300 each, for 2 nodes.
#[test]
fn pages_are_read_and_written_back() {
    let kinds = [FaultKind::Fetch, FaultKind::WriteBack, FaultKind::FirstTouch];
    let faults = record_of("both-ways.parquet", 900, &kinds);
    let blades = ["--traffic", "blades", "--faults", &faults, "--nodes", "2"];
    let network = ["--topology", "single-switch", "--hosts", "6"];
    for replay in ["recorded", "fitted"] {
        let wanted = ["--flows", "1200", "--replay", replay, "--csv", "-"];
        let rows = answer(&[&blades[..], &network, &wanted].concat());
        let bytes = |exchange: &str, is_right: fn(u32, u32) -> bool| -> u64 {
            let of = rows.lines().skip(1).filter_map(|row| {
                let cells: Vec<&str> = row.split(',').collect();
                let [src, dst] = [1, 2].map(|place| cells[place].parse().expect("a host"));
                let bytes: u64 = cells[3].parse().expect("bytes");
                (cells[9] == exchange && is_right(src, dst)).then_some(bytes)
            });
            of.sum()
        };
        let read = bytes("read", |src, dst| (2..4).contains(&src) && dst < 2);
        let written = bytes("write", |src, dst| src < 2 && (2..4).contains(&dst));
        assert_eq!(read + written, 4 * 300 * 4096, "{replay}: nothing else is moved");
        // Drawn flows begin anywhere in the gaps of their pairs, some of which are long.
        let least = if replay == "fitted" { 300 } else { 600 };
        assert!(read.min(written) >= least * 4096, "{replay}: {read} {written}");
    }
    // A profile is of what was waited for, and nobody waits for what is written back.
    let profile = ["--flows", "1200", "--delay-profile", "-"];
    let times = answer(&[&blades[..], &network, &profile].concat());
    assert_eq!(times.lines().count(), 1 + 600, "{times}");
}

/// Fitted flows have the rate of the record and its sizes, in as many clusters as fit.
#[test]
fn fitted_traffic_is_like_the_record() {
    let faults = record("fitted.parquet", 4000);
    let blades = ["--traffic", "blades", "--faults", &faults, "--nodes", "4", "--batch", "3us"];
    let network = ["--csv", "-", "--flows", "20000"];
    let flows = |more: &[&str]| -> Vec<Vec<u64>> {
        let rows = answer(&[&blades[..], &network, more].concat());
        let number = |cell: &str| cell.parse().expect("a number");
        let row = |row: &str| row.split(',').take(4).map(number).collect();
        rows.lines().skip(1).map(row).collect()
    };
    let (recorded, fitted) = (flows(&[]), flows(&["--replay", "fitted"]));
    let rate = |flows: &[Vec<u64>]| {
        let last = flows.last().expect("flows")[0];
        flows.len() as f64 / last as f64
    };
    assert!((rate(&fitted) / rate(&recorded) - 1.0).abs() < 0.05, "flows per time");
    let share = |flows: &[Vec<u64>], bytes: u64| {
        flows.iter().filter(|flow| flow[3] == bytes).count() as f64 / flows.len() as f64
    };
    for bytes in [4096, 8192] {
        let (one, other) = (share(&recorded, bytes), share(&fitted, bytes));
        assert!((one - other).abs() < 0.02, "{bytes}: {one}, fitted {other}");
    }
    assert!(fitted.iter().all(|flow| flow[1] / 16 == flow[2] / 16), "clusters are in racks");
    let racks: std::collections::BTreeSet<u64> = fitted.iter().map(|flow| flow[1] / 16).collect();
    assert_eq!(racks.len(), 9);
    assert_eq!(fitted, flows(&["--replay", "fitted"]));
    refused(
        &["--traffic", "blades", "--faults", &faults, "--replay", "x"],
        "--replay: there is no",
    );
}

/// A list in place of records: every cluster moves what the one of the list does.
#[test]
fn what_one_cluster_moved_can_be_a_list() {
    let rows = "start_us,src,dst,bytes\n0,2,0,4096\n5,0,4,8192\n9,3,1,512\n";
    let moves = file("moves.csv", rows);
    let blades = ["--traffic", "blades", "--moves", &moves, "--nodes", "2", "--csv", "-"];
    let flows = |more: &[&str]| -> Vec<Vec<u64>> {
        let rows = answer(&[&blades[..], more].concat());
        let number = |cell: &str| cell.parse().expect("a number");
        let row = |row: &str| row.split(',').take(4).map(number).collect();
        rows.lines().skip(1).map(row).collect()
    };
    // Two clusters of six blades in each of nine racks.
    let recorded = flows(&[]);
    assert_eq!(recorded.len(), 2 * 9 * 3);
    let place = |host: u64| host % 16 % 6;
    let mut kinds: Vec<[u64; 3]> =
        recorded.iter().map(|flow| [place(flow[1]), place(flow[2]), flow[3]]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, [[0, 4, 8192], [2, 0, 4096], [3, 1, 512]]);
    // Of a pair with one flow, the gap is the length of the list: three copies of each begin then.
    let fitted = ["--replay", "fitted", "--begin", "together", "--copies", "3", "--flows", "162"];
    let together = flows(&fitted);
    assert_eq!(together.len(), 3 * recorded.len());
    assert!(together.iter().all(|flow| flow[0] == 0), "{together:?}");
    refused(&["--traffic", "blades", "--moves", &moves, "--blocks", "x"], "--moves: they take");
    refused(&["--traffic", "blades", "--moves", &moves, "--nodes", "1"], "there is no host 4");
    refused(&[&blades[..], &["--copies", "2"]].concat(), "--copies: it says nothing with replay");
    let none = ["--replay", "fitted", "--copies", "0"];
    refused(&[&blades[..], &none].concat(), "--copies: ");
}

/// What the paper's simulator said a page takes, of the traffic of a Spark word count (its mean
/// over all flows of 4 KiB, which Fig. 8 fed back to programs). Their clusters are drawn as they
/// drew them: from distributions by pair, three times over, all of which begin in a burst. What
/// the first flows meet depends on their number, which they do not say.
#[test]
fn pages_take_what_was_published() {
    let Some(directory) = std::env::var_os("AFAR_ORACLE_DIR") else {
        crate::skip("oracle::pages", "AFAR_ORACLE_DIR does not name a directory with network/");
        return;
    };
    let directory = std::path::Path::new(&directory).join("network");
    let (moves, published) = (moves(&directory), published(&directory));
    let drawn = ["--traffic", "blades", "--replay", "fitted", "--begin", "together"];
    let drawn = [&drawn[..], &["--copies", "3", "--flows", "50000", "--moves", &moves]].concat();
    let variant = ["--variant", "as-published-2016", "--delay", "10ns,400ns,400ns,210ns"];
    for (rate, scale, published, bound) in published {
        let completion_us = |seed: &str| {
            let network = ["--rate", &rate, "--scale", &scale, "--seed", seed, "--csv", "-"];
            let rows = answer(&[&drawn[..], &variant, &network].concat());
            mean_of_pages(&rows) / 1e6
        };
        let means = ["1", "2", "3"].map(completion_us);
        let off = means.iter().sum::<f64>() / means.len() as f64 / published - 1.0;
        println!("{rate} {scale}: {means:.3?} us, published {published}: {:+.1} %", off * 100.0);
        assert!(off.abs() <= bound, "{rate} {scale}: {means:?} us, published {published}");
    }
}

/// Flows between 15 blades as a list that `--moves` takes; times begin at 0.
fn moves(directory: &std::path::Path) -> String {
    let flows = directory.join("traces/ddc_flows_15blades.csv.gz");
    let output = Command::new("gzip").arg("-dc").arg(&flows).output().expect("gzip runs");
    assert!(output.status.success(), "{} can be read", flows.display());
    let text = text(&output.stdout);
    let row = |row: &str| {
        let (time, rest) = row.split_once(',').expect("columns");
        (time.parse::<i64>().expect("a time"), rest.to_owned())
    };
    let rows: Vec<(i64, String)> = text.lines().skip(1).map(row).collect();
    let first = rows.iter().map(|(time, _)| *time).min().expect("flows");
    let mut list = "start_us,src,dst,bytes,kind\n".to_owned();
    for (time, rest) in rows {
        list.push_str(&format!("{},{rest}\n", time - first));
    }
    file("published-moves.csv", &list)
}

/// Rate, scale, microseconds, and how far off they may be.
fn published(directory: &std::path::Path) -> Vec<(String, String, f64, f64)> {
    let text = read(&directory.join("osdi16_published_pfabric_fct.csv"));
    let row = |row: &str| {
        let cells: Vec<&str> = row.split(',').collect();
        let rate = cells[0].replace('g', "Gbps");
        let scale = cells[1].replace("dc", "datacenter");
        let bound = if cells[..2] == ["100g", "dc"] { 0.03 } else { 0.08 };
        (rate, scale, cells[3].parse().expect("a time"), bound)
    };
    let of_words = |row: &&str| row.split(',').nth(2) == Some("wordcount");
    let rows: Vec<_> = text.lines().filter(of_words).map(row).collect();
    assert_eq!(rows.len(), 4);
    rows
}

/// Picoseconds; of the flows of as many packets of 1460 bytes as a page has.
fn mean_of_pages(rows: &str) -> f64 {
    let times = rows.lines().skip(1).filter_map(|row| {
        let cells: Vec<&str> = row.split(',').collect();
        let is_page = cells[3].parse::<u64>().expect("bytes").div_ceil(1460) == 3;
        is_page.then(|| cells[4].parse::<f64>().expect("a time"))
    });
    let (count, sum) = times.fold((0.0, 0.0), |(count, sum), time| (count + 1.0, sum + time));
    sum / count
}

#[test]
fn disks_are_read_and_written_as_blkparse_has_it() {
    let trace = "  0,0    0        1     0.000000000  4711  Q   R 8 + 8 [afar]\n\
                 \u{20} 0,0    0        2     0.000083500  4711  C   R 8 + 8 [0]\n\
                 \u{20} 0,0    0        3     0.000100000  4711  Q  WF 1000 + 24 [afar]\n\
                 \u{20} 0,0    0        4     0.000200000  4711  Q  FF [afar]\n\
                 CPU0 (trace):\n Reads Queued: 1, 4KiB\n";
    let path = file("blocks.txt", trace);
    let network = ["--topology", "single-switch", "--hosts", "3", "--nodes", "1"];
    let blades = ["--traffic", "blades", "--csv", "-", "--blocks"];
    let rows = answer(&[&network[..], &blades, &[&path]].concat());
    let mut pairs: Vec<String> = rows
        .lines()
        .skip(1)
        .map(|row| row.split(',').skip(1).take(3).collect::<Vec<_>>().join(","))
        .collect();
    pairs.sort();
    assert_eq!(pairs, ["0,2,12288", "2,0,4096"]);
    let wrong = file("wrong.txt", &trace.replace("8 + 8 [afar]", "x + 8 [afar]"));
    refused(&[&network[..], &blades, &[&wrong]].concat(), "wrong.txt:1:1: a time, sector or count");
    refused(&["--traffic", "blades"], "--traffic: blades need records");
    refused(&["--faults", "x"], "--faults: it says nothing with traffic poisson");
    let many = ["--nodes", "6", "--traffic", "blades", "--blocks", &path];
    refused(&many, "--nodes: a cluster of 6 nodes has 18 blades");
}

/// What comes of it depends on what programs do on this machine; that all of it is there does not.
#[test]
fn figure_7_of_gao_et_al() {
    let directory = scratch("fig7");
    let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
    command.args(["reproduce", "gao-fig7", "--quick", "--json", "-", "-o"]).arg(&directory);
    // Other tests measure nothing either.
    let lock = scratch("fig7-lock");
    std::fs::create_dir_all(&lock).expect("the scratch directory can be written to");
    command.env("AFAR_LOCK_DIR", &lock);
    let output = command.output().expect("afar runs");
    let said = text(&output.stderr);
    if said.contains("exit status: 3") {
        crate::skip("sim::blades", &said);
        return;
    }
    assert!(output.status.success(), "{said}");
    let record: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    // Of four programs in racks and across the datacenter: seven transports, five of them as
    // published in 2016, too; and pFabric both ways without batches.
    let points = record["points"].as_array().expect("a list");
    assert_eq!(points.len(), 4 * 2 * (7 + 5 + 2));
    for point in points {
        let number = |name: &str| point[name].as_f64().expect("a number");
        assert!((0.0..1.0).contains(&number("load")) && number("load") > 0.0, "{point}");
        // No flow is faster than alone, by one measure in both halves.
        let slowdowns = point["slowdowns"].as_array().expect("a list");
        assert_eq!(slowdowns.len(), 5, "one for each seed");
        assert!(slowdowns.iter().all(|one| one.as_f64() >= Some(1.0)), "{point}");
        assert!(point["slowdown"]["interval"].is_object(), "five seeds have one: {point}");
    }
    let verdicts = record["verdicts"].as_array().expect("a list");
    let words = |verdict: &Value| verdict["text"].as_str().unwrap_or("").to_owned();
    let near = verdicts.iter().filter(|verdict| words(verdict).contains("4 KiB take")).count();
    assert_eq!((verdicts.len(), near), (6, 2));
    let picture = read(&directory.join("gao-fig7.svg"));
    // Its caption has several lines, each an element.
    let said: Vec<&str> =
        picture.split('<').filter_map(|part| Some(part.split_once('>')?.1.trim())).collect();
    let said = said.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    for wanted in ["hollow: as published in 2016", "Not tested: ", "datacenter at 40Gbps"] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!picture.contains("NaN"));
    // What its flows are is a file, whose writes and reads anyone can send again.
    let list = directory.join("gao-fig7/sort/rack-batches-seed-1.csv").display().to_string();
    let rows = answer(&["--traffic", &list, "--transport", "homa", "--csv", "-"]);
    assert_eq!(rows.lines().count(), 1 + 1_000);
}
