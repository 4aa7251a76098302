//! iSCSI: afar's target beside tgt, each loaded by libiscsi's iscsi-perf and by afar's initiator.

use serde_json::{Map, Value};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Bound, Table, Verdict};
use crate::stats::Spread;

use super::part::{Column, Part};
use super::serve::{IscsiServer, Load, Run, Server, Tgt};

/// A target and an initiator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    name: &'static str,
    is_ours: bool,
    by_afar: bool,
    /// Whether the initiator polls for answers; iscsi-perf cannot.
    spins: bool,
}

const fn pair(name: &'static str, is_ours: bool, by_afar: bool, spins: bool) -> Pair {
    Pair { name, is_ours, by_afar, spins }
}

const PAIRS: [Pair; 5] = [
    pair("tgt, iscsi-perf", false, false, false),
    pair("afar, iscsi-perf", true, false, false),
    pair("tgt, afar bench", false, true, false),
    pair("afar, afar bench", true, true, false),
    pair("afar, afar bench spinning", true, true, true),
];

/// Runs this part.
///
/// # Errors
/// When a program is missing or fails.
pub(super) fn run(context: &Context) -> Result<Part, Failure> {
    let mut table = Table::new(&[
        "random reads of 4 KiB, iSCSI",
        "IOPS",
        "us a request",
        "target us per I/O",
        "I/O per target second",
    ]);
    let ours = Server::start_iscsi(context, "memory:1GiB")?;
    let idle = ours.idle(2)?;
    let tgt = Tgt::start(context)?;
    let (mut results, mut verdicts) = (Map::new(), Vec::new());
    for depth in [1, 32] {
        let what = format!("{depth} deep");
        let runs = context.alternate(&what, &PAIRS, |pair| {
            let target: &dyn IscsiServer = if pair.is_ours { &ours } else { &tgt };
            let load = Load { depth, jobs: 1, spins: pair.spins, bytes: 4096 };
            match pair.by_afar {
                true => target.load_by_afar(context, load),
                false => target.load_by_libiscsi(context, depth),
            }
        })?;
        for (pair, runs) in PAIRS.iter().zip(&runs) {
            let one = Column::of(runs);
            let us = Spread::of(runs.iter().map(|run| run.p50_us));
            let name = format!("{}, {what}", pair.name);
            table.row(vec![
                name.clone(),
                one.iops.show(0),
                us.show(1),
                one.target_us.show(2),
                one.per_second.show(0),
            ]);
            results.insert(name, one.json());
        }
        verdicts.extend(judge(depth, &runs));
    }
    verdicts.push(Verdict {
        what: "idle target with a portal: share of a processor".to_owned(),
        value: idle,
        bound: Bound::AtMost(0.0),
        unit: "",
    });
    let text = table.text()
        + "iscsi-perf says no latency: of one at a time it is the time of each on average; of afar \
           bench it is the median\n";
    Ok(Part { text, results: Value::Object(results), verdicts })
}

// The verdicts of one depth. Each compares the medians of two pairs.
fn judge(depth: u16, runs: &[Vec<Run>]) -> Vec<Verdict> {
    let of = |index: usize, field: fn(&Run) -> f64| -> Vec<f64> {
        runs[index].iter().map(field).collect()
    };
    let ratio = |one: usize, other: usize, field: fn(&Run) -> f64| {
        Spread::ratio(&of(one, field), &of(other, field)).median
    };
    let verdict = |what: &str, value: f64, bound: Bound| Verdict {
        what: format!("{depth} deep: {what}"),
        value,
        bound,
        unit: "",
    };
    let iops: fn(&Run) -> f64 = |run| run.iops;
    let per_second: fn(&Run) -> f64 = |run| 1e6 / run.target_us.max(1e-9);
    if depth == 1 {
        let us: fn(&Run) -> f64 = |run| run.p50_us;
        return vec![
            verdict("iscsi-perf's time over tgt's", ratio(1, 0, us), Bound::AtMost(0.6)),
            verdict("afar bench's time over tgt's", ratio(3, 2, us), Bound::AtMost(0.6)),
        ];
    }
    vec![
        verdict("iscsi-perf's IOPS over tgt's", ratio(1, 0, iops), Bound::AtLeast(3.0)),
        verdict("afar bench's IOPS over tgt's", ratio(3, 2, iops), Bound::AtLeast(3.0)),
        verdict(
            "I/O per target second over tgt's, iscsi-perf",
            ratio(1, 0, per_second),
            Bound::AtLeast(3.0),
        ),
        verdict(
            "I/O per target second, iscsi-perf",
            Spread::of(of(1, per_second)).median,
            Bound::AtLeast(210_000.0),
        ),
        // The best variant of each initiator.
        verdict("our initiator's IOPS over libiscsi's", ratio(4, 1, iops), Bound::AtLeast(1.5)),
    ]
}
