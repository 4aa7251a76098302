//! The benchmark `flash`: `afar serve` against a bare echo, tgt, and the disk itself.
//!
//! The target runs on the first processor and the load on the second.

mod echo;
mod iscsi;
mod network;
mod part;
pub(crate) mod serve;

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::FlashPart;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::Spread;

use part::{Column, Part};
use serve::{IscsiServer, Load, Run, SPIN, Server};

/// A device of a target, and a load on it.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    device: &'static str,
    load: Load,
    /// Least I/O per second of the target's processor time; `None` for no bound.
    bound: Option<f64>,
}

const fn case(
    name: &'static str,
    device: &'static str,
    [depth, jobs]: [u16; 2],
    bound: Option<f64>,
) -> Case {
    let load = Load { depth, jobs, spins: false, bytes: 4096 };
    Case { name, device, load, bound }
}

const THROUGHPUT: [Case; 5] = [
    case("memory, 32 deep", "memory:1GiB", [32, 1], Some(420_000.0)),
    case("memory, 128 deep", "memory:1GiB", [128, 1], Some(880_000.0)),
    case("null, 128 deep", "null:1GiB", [128, 1], Some(900_000.0)),
    case("memory, 64 connections 32 deep", "memory:1GiB", [32, 64], None),
    LARGE,
];

/// Reads of 128 KiB.
const LARGE: Case = Case {
    name: "memory, 128 KiB 32 deep",
    device: "memory:1GiB",
    load: Load { depth: 32, jobs: 1, spins: false, bytes: 128 << 10 },
    bound: None,
};

/// Runs `parts`, or all of them if none is named.
///
/// # Errors
/// When a program is missing or fails.
pub(crate) fn run(context: &Context, parts: &[FlashPart]) -> Result<Report, Failure> {
    let all = [
        FlashPart::Latency,
        FlashPart::Throughput,
        FlashPart::Disk,
        FlashPart::Iscsi,
        FlashPart::Network,
    ];
    let parts = if parts.is_empty() { &all[..] } else { parts };
    let (mut text, mut results, mut verdicts) = (String::new(), Map::new(), Vec::new());
    for part in parts {
        let (name, part) = match part {
            FlashPart::Latency => ("latency", latency(context)?),
            FlashPart::Throughput => ("throughput", throughput(context)?),
            FlashPart::Disk => ("disk", disk(context)?),
            FlashPart::Iscsi => ("iscsi", iscsi::run(context)?),
            FlashPart::Network => ("network", network::run(context)?),
        };
        text += &part.text;
        text.push('\n');
        results.insert(name.to_owned(), part.results);
        verdicts.extend(part.verdicts);
    }
    Ok(Report {
        name: "flash",
        settings: json!({"transport": "loopback", "target_processor": 0, "load_processor": 1}),
        results: Value::Object(results),
        text,
        verdicts,
    })
}

// The part `latency`: one read at a time against an echo of messages of the same sizes.
fn latency(context: &Context) -> Result<Part, Failure> {
    let mut table = Table::new(&["one at a time, median us", "echo", "afar", "ratio"]);
    let (mut results, mut verdicts) = (Map::new(), Vec::new());
    // The bound if the target spins: 11 us where an echo takes 8.
    for (name, spins, bound) in [("asleep", false, 1.15), ("spinning", true, 11.0 / 8.0)] {
        let busy_poll = if spins { SPIN } else { "0us" };
        let server = Server::start(context, "memory:1GiB", Some(busy_poll))?;
        let load = Load { depth: 1, jobs: 1, spins: true, bytes: 4096 };
        let kinds = [true, false];
        let runs = context.alternate(name, &kinds, |is_echo| {
            if *is_echo {
                echo::median_us(spins, context.size(20_000, 2000))
            } else {
                server.load(context, load).map(|run| run.p50_us)
            }
        })?;
        let ratio = Spread::ratio(&runs[1], &runs[0]);
        let (echo, ours) = (Spread::of(runs[0].clone()), Spread::of(runs[1].clone()));
        let what = format!("target {name}");
        table.row(vec![what.clone(), echo.show(1), ours.show(1), ratio.show(2)]);
        results.insert(
            name.to_owned(),
            json!({"echo_us": echo.json(), "afar_us": ours.json(), "ratio": ratio.json()}),
        );
        verdicts.push(Verdict {
            what: format!("{what}: median of a 4 KiB read over that of an echo"),
            value: ratio.median,
            bound: Bound::AtMost(bound),
            unit: "",
        });
    }
    let text = table.text()
        + "the client spins; the echo answers 72 bytes with 4144, as a read of 4 KiB does\n";
    Ok(Part { text, results: Value::Object(results), verdicts })
}

// The part `throughput`: random reads and their processor time, tgt beside.
fn throughput(context: &Context) -> Result<Part, Failure> {
    let mut table = Table::new(&[
        "random reads of 4 KiB",
        "IOPS",
        "target us per I/O",
        "I/O per target second",
        "host us per I/O",
    ]);
    let (mut results, mut verdicts) = (Map::new(), Vec::new());
    let mut cost = Vec::new();
    let tgt = serve::Tgt::start(context)?;
    let peer = context.alternate("tgt, 32 deep", &[()], |()| tgt.load_by_libiscsi(context, 32))?;
    drop(tgt);
    let peer = Column::of(&peer[0]);
    table.row(vec![
        "tgt (iSCSI), tmpfs, 32 deep".to_owned(),
        peer.iops.show(0),
        peer.target_us.show(2),
        peer.per_second.show(0),
        "–".to_owned(),
    ]);
    results.insert("tgt".to_owned(), peer.json());
    for case in THROUGHPUT {
        let server = Server::start(context, case.device, None)?;
        let runs = context.alternate(case.name, &[()], |()| server.load(context, case.load))?;
        let ours = Column::of(&runs[0]);
        table.row(vec![
            case.name.to_owned(),
            ours.iops.show(0),
            ours.target_us.show(2),
            ours.per_second.show(0),
            ours.host_us.show(2),
        ]);
        results.insert(case.name.to_owned(), ours.json());
        if let Some(bound) = case.bound {
            verdicts.push(Verdict {
                what: format!("{}: I/O per second of the target's processor time", case.name),
                value: ours.per_second.median,
                bound: Bound::AtLeast(bound),
                unit: "",
            });
        }
        cost.push((case.name, ours));
    }
    let of = |name: &str| cost.iter().find(|(other, _)| *other == name).map(|(_, one)| one);
    if let (Some(one), Some(many)) = (of(THROUGHPUT[0].name), of(THROUGHPUT[3].name)) {
        verdicts.push(Verdict {
            what: "64 connections: target time per I/O over that of one".to_owned(),
            value: many.target_us.median / one.target_us.median,
            bound: Bound::AtMost(1.15),
            unit: "",
        });
        verdicts.push(Verdict {
            what: "32 deep: host time per I/O".to_owned(),
            value: one.host_us.median,
            bound: Bound::AtMost(2.9),
            unit: "us",
        });
    }
    Ok(Part { text: table.text(), results: Value::Object(results), verdicts })
}

// The part `disk`: a file on this machine's disk, read locally and over the network.
fn disk(context: &Context) -> Result<Part, Failure> {
    let mut table = Table::new(&["4 KiB random reads of the disk", "here", "remote", "ratio"]);
    let path = context.fresh("img");
    serve::fill(&path, context.size(1 << 30, 64 << 20))?;
    let uri = format!("file:{}", path.display());
    let (mut results, mut verdicts) = (Map::new(), Vec::new());
    for (depth, spins) in [(1, false), (32, false), (32, true)] {
        let server = Server::start(context, &uri, spins.then_some(SPIN))?;
        let load = Load { depth, jobs: 1, spins, bytes: 4096 };
        let kinds = [true, false];
        let runs = context.alternate("the disk", &kinds, |is_local| {
            if *is_local { serve::local(context, &uri, load) } else { server.load(context, load) }
        })?;
        let iops = |runs: &[Run]| runs.iter().map(|run| run.iops).collect::<Vec<_>>();
        let (here, remote) = (iops(&runs[0]), iops(&runs[1]));
        let ratio = Spread::ratio(&remote, &here);
        let name = format!("{depth} deep{}", if spins { ", both ends spinning" } else { "" });
        let (here, remote) = (Spread::of(here), Spread::of(remote));
        table.row(vec![format!("IOPS, {name}"), here.show(0), remote.show(0), ratio.show(2)]);
        results.insert(
            name.clone(),
            json!({"local": here.json(), "remote": remote.json(), "ratio": ratio.json()}),
        );
        // Only spinning has a bound, because peers are always measured spinning.
        if spins {
            verdicts.push(Verdict {
                what: format!("{name}: IOPS of the remote disk over those of the same here"),
                value: ratio.median,
                bound: Bound::AtLeast(0.85),
                unit: "",
            });
        }
    }
    Ok(Part { text: table.text(), results: Value::Object(results), verdicts })
}
