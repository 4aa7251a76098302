//! The report of Table 5's figure: the ladder, the times of a request, and the parts of a fetch.

use console::layout::{NONE, row, table};
use ladder::{Cell, Direction, Rung, Runs, Seen, TimeOf, Way, cell, fetch, p50_us, rate};
use results::Estimate;
use serde_json::{Value, json};

use super::published;
use super::table5_picture::picture;
use crate::report::{Report, Verdict};

/// Most time that a fetch over NVMe/TCP takes beyond a bare echo, in microseconds: where a thread
/// may spin for its page,
const BEYOND_SPINNING_US: f64 = 10.0;
/// and where it sleeps.
const BEYOND_ASLEEP_US: f64 = 25.0;
const PARTS: &str = "\
parts: medians of differences of the medians of two runs in one block; percentiles are not taken
from each other, as that of a sum is no sum of percentiles
least: some touches find their page local; a run of which more than 5 % did is invalid
";

/// Times of a touch or an answer, in the order of the table: name, and its value of a run.
pub(super) const TIMES: [(&str, TimeOf); 7] = [
    ("least", |seen| seen.min_ns),
    ("average", |seen| seen.mean_ns),
    ("median", |seen| seen.p50_ns),
    ("90th", |seen| seen.p90_ns),
    ("99th", |seen| seen.p99_ns),
    ("99.5th", |seen| seen.p995_ns),
    ("longest", |seen| seen.max_ns),
];
/// The paper's request has the times at these places.
pub(super) const PAPER_TIMES: [usize; 5] = [0, 1, 2, 5, 6];

/// The cells whose times are shown, with their names.
const TIMED: [(&str, Cell); 5] = [
    ("fetch, --far memory", fetch(Way::Memory)),
    ("fetch, --far nvme+tcp", fetch(Way::Nvme)),
    ("fetch, --engine swap (zram)", fetch(Way::Swap)),
    ("bare TCP echo of 4 KiB", Cell::Echo),
    ("the kernel's minor fault", Cell::Minor),
];

/// The report of all runs; `spins`: whether threads may spin for a page.
pub(super) fn report(runs: &Runs, spins: bool) -> Report {
    let verdicts = verdicts(runs, spins);
    let caption: Vec<String> = verdicts.iter().map(Verdict::text).collect();
    let [least, mean, median, p995, most] = published::RDMA_NS;
    Report {
        title: title(),
        table: tables(runs),
        picture: picture(&title(), runs, &caption),
        verdicts,
        points: points(runs),
        paper: json!({
            "ladder_gbytes_per_s": published::LADDER,
            "rdma_request_ns": {
                "min": least, "mean": mean, "median": median, "p99.5": p995, "max": most,
            },
            "swap_software_ns": published::SWAP_NS,
        }),
    }
}

fn title() -> String {
    format!("{}, §5.1 and Table 5: a request to far memory, and the ladder", published::SOURCE)
}

/// Median and interval as text.
fn text(estimate: Option<Estimate>, decimals: usize) -> String {
    estimate.map_or_else(|| NONE.to_owned(), |estimate| estimate.text(decimals))
}

/// The tables as text.
fn tables(runs: &Runs) -> String {
    let mut all = String::new();
    for (direction, name) in Direction::ALL.into_iter().zip(["GB/s in", "GB/s out"]) {
        all += &table(&ladder(runs, direction, name));
        all.push('\n');
    }
    all += &table(&times(runs));
    all.push('\n');
    all += &table(&parts(runs));
    all += PARTS;
    for way in Way::ALL {
        if let Some(why) = runs.absence(way) {
            all += &format!("{} is absent here: {why}\n", way.told());
        }
        if let Some(share) = runs.expired(way) {
            let percent = share * 100.0;
            all += &format!("{percent:.1} % of spins for a page of {} expired\n", way.told());
        }
    }
    for (cell, why) in runs.failures() {
        all += &format!("{cell}, failed at least once: {why}\n");
    }
    all
}

/// The rows of the ladder in one direction.
fn ladder(runs: &Runs, direction: Direction, name: &str) -> Vec<Vec<String>> {
    let names = [name].into_iter().chain(Rung::ALL.map(Rung::told)).map(str::to_owned);
    let mut rows = vec![names.collect()];
    for way in Way::ALL {
        let rates = Rung::ALL.map(|rung| text(runs.estimate(cell(way, rung, direction), rate), 3));
        rows.push([way.told().to_owned()].into_iter().chain(rates).collect());
    }
    let theirs = published::LADDER.map(|rate| format!("{rate:.1}"));
    let name = "the paper's device, RDMA at 56 Gb/s".to_owned();
    rows.push([name].into_iter().chain(theirs).collect());
    rows
}

/// The rows of times of single pages.
fn times(runs: &Runs) -> Vec<Vec<String>> {
    let names = ["one page at a time; µs"].into_iter().chain(TIMES.map(|(name, _)| name));
    let mut rows = vec![names.map(str::to_owned).collect::<Vec<_>>()];
    for (name, cell) in TIMED {
        let told = |of: fn(&Seen) -> u64| {
            let median = runs.estimate(cell, |seen| of(seen) as f64 / 1e3);
            median.map_or_else(|| NONE.to_owned(), |of| format!("{:.2}", of.median))
        };
        rows.push([name.to_owned()].into_iter().chain(TIMES.map(|(_, of)| told(of))).collect());
    }
    let mut theirs = vec!["the paper's request".to_owned()];
    theirs.resize(1 + TIMES.len(), NONE.to_owned());
    for (place, ns) in PAPER_TIMES.into_iter().zip(published::RDMA_NS) {
        theirs[1 + place] = format!("{:.2}", ns / 1e3);
    }
    rows.push(theirs);
    rows
}

/// A part of a fetch: its name, and its median time in microseconds.
type Part = (&'static str, Option<Estimate>);

// The parts of a fetch over NVMe/TCP, and what is beside them for scale.
fn all_parts(runs: &Runs) -> [Part; 5] {
    let fetches = [Way::Nvme, Way::Memory].map(fetch);
    let less = |one: &Seen, other: &Seen| p50_us(one) - p50_us(other);
    [
        ("a fetch over NVMe/TCP", runs.estimate(fetch(Way::Nvme), p50_us)),
        ("= trap, supervisor and copy", runs.estimate(fetch(Way::Memory), p50_us)),
        ("+ network and target", runs.paired(fetches, less)),
        ("beside: a bare TCP echo", runs.estimate(Cell::Echo, p50_us)),
        ("beside: a minor fault", runs.estimate(Cell::Minor, p50_us)),
    ]
}

/// The rows of the parts of a fetch.
fn parts(runs: &Runs) -> Vec<Vec<String>> {
    let mut rows = vec![row(["parts", "µs, median"])];
    rows.extend(all_parts(runs).map(|(name, of)| vec![name.to_owned(), text(of, 2)]));
    let [_, _, median, ..] = published::RDMA_NS;
    let software = published::SWAP_NS / 1e3;
    rows.push(row(["the paper's request to its device", &format!("{:.2}", median / 1e3)]));
    rows.push(row(["the paper's software of a swap, at least", &format!("{software:.2}")]));
    rows
}

/// What the runs say, for the record.
fn points(runs: &Runs) -> Value {
    let seen = |cell: Cell| -> Value {
        let figure = |of: fn(&Seen) -> u64| runs.estimate(cell, |seen| of(seen) as f64);
        let times: Vec<Value> = TIMES.map(|(name, of)| json!([name, figure(of)])).into();
        let rate = match cell {
            Cell::Far(_) => runs.estimate(cell, rate),
            Cell::Echo | Cell::Minor => None,
        };
        json!({"cell": cell.name(), "gbytes_per_s": rate, "times_ns": times})
    };
    let cells: Vec<Value> = Cell::all().into_iter().map(seen).collect();
    let parts = all_parts(runs).map(|(name, us)| json!({"part": name, "us": us}));
    let absent: Vec<Value> = Way::ALL
        .into_iter()
        .filter_map(|way| Some(json!({"way": way.name(), "why": runs.absence(way)?})))
        .collect();
    let failed: Vec<Value> =
        runs.failures().map(|(cell, why)| json!({"cell": cell, "why": why})).collect();
    json!({"cells": cells, "parts": parts, "absent": absent, "failed": failed})
}

/// A verdict on whether an interval lies below a bound, or with `above` above it.
fn judged(estimate: &Estimate, (above, bound): (bool, f64), claim: String, why: &str) -> Verdict {
    const FEW: &str = "there are too few runs";
    const HELD: &str = "the interval holds the bound, so it cannot discriminate";
    match estimate.ends() {
        None => Verdict::undecided(claim, FEW),
        Some((low, high)) if low <= bound && bound <= high => Verdict::undecided(claim, HELD),
        Some((low, _)) => Verdict::because((low > bound) == above, claim, why),
    }
}

fn verdicts(runs: &Runs, spins: bool) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for way in Way::ALL {
        verdicts.extend([0, 1].into_iter().filter_map(|rung| climbed(runs, way, rung)));
    }
    let less = |one: &Seen, other: &Seen| p50_us(one) - p50_us(other);
    if let Some(more) = runs.paired([fetch(Way::Nvme), Cell::Echo], less) {
        let (bound, how) = match spins {
            true => (BEYOND_SPINNING_US, "spins"),
            false => (BEYOND_ASLEEP_US, "sleeps"),
        };
        let claim = format!(
            "a fetch over NVMe/TCP takes {} µs more than a bare echo of {} µs in the same run; \
             {bound:.0} µs at most for a thread that {how}",
            more.text(1),
            text(runs.estimate(Cell::Echo, p50_us), 1)
        );
        let why = "a fault of a virtual machine costs much by itself";
        verdicts.push(judged(&more, (false, bound), claim, why));
    }
    verdicts.extend(beside_native(runs));
    verdicts
}

// Whether a rung of the ladder carries more than the one below it.
fn climbed(runs: &Runs, way: Way, below: usize) -> Option<Verdict> {
    let rungs = [Rung::ALL[below + 1], Rung::ALL[below]];
    let cells = rungs.map(|rung| cell(way, rung, Direction::In));
    let ratio = runs.paired(cells, |one, other| rate(one) / rate(other))?;
    let [high, low] = cells.map(|cell| text(runs.estimate(cell, rate), 2));
    let [theirs_low, theirs_high] = [published::LADDER[below], published::LADDER[below + 1]];
    let claim = format!(
        "{}: {} is {} of {}, {low} to {high} GB/s in; more than 1 is asked, and the paper has \
         {:.1}, {theirs_low} to {theirs_high}",
        way.told(),
        rungs[0].told(),
        ratio.text(2),
        rungs[1].told(),
        theirs_high / theirs_low
    );
    let why = "what is left is work for each page, which no request can share";
    Some(judged(&ratio, (true, 1.0), claim, why))
}

// Whether a request costs no more beside a bare echo than the paper's beside native RDMA.
fn beside_native(runs: &Runs) -> Option<Verdict> {
    let fetches = [Way::Nvme, Way::Memory].map(fetch);
    let request = runs.paired(fetches, |one, other| p50_us(one) - p50_us(other))?;
    let echo = runs.estimate(Cell::Echo, p50_us)?;
    let bound = published::NATIVE_RATIO * echo.median;
    let claim = format!(
        "network and target take {} µs of it, at most {} times a bare echo of {:.1} µs, as the \
         paper's request beside native RDMA",
        request.text(1),
        published::NATIVE_RATIO,
        echo.median
    );
    let why = "supervisor and target share a processor";
    Some(judged(&request, (false, bound), claim, why))
}

#[cfg(test)]
mod tests {
    use experiment::noise::Noise;
    use ladder::{Moved, Turn};

    use super::*;

    // Runs with a rate and a median time for each cell, a little more in each of five blocks.
    fn runs(figures: &[(Cell, f64, f64)]) -> Runs {
        let whole = |value: f64| std::time::Duration::from_secs_f64(value).as_secs();
        let mut runs = Runs::default();
        for &(cell, rate, p50_us) in figures {
            for block in 0..5_u32 {
                let more = 1.0 + f64::from(block) / 100.0;
                let (elapsed_ns, wanted_bytes) = (1_000_000_000, whole(rate * more * 1e9));
                let spins = Some([1, 4]);
                let moved = Moved { elapsed_ns, wanted_bytes, spins, ..Moved::default() };
                let p50_ns = whole(p50_us * more * 1e3);
                let seen = Seen { p50_ns, moved: Some(moved), ..Seen::default() };
                let noise = Noise::default();
                runs.add(cell, block, Turn { seen, noise, disturbed: None });
            }
        }
        runs
    }

    // Rates in of the three rungs of a way, and the median time of a single fetch.
    fn way(way: Way, rates: [f64; 3], p50_us: f64) -> [(Cell, f64, f64); 3] {
        [0, 1, 2].map(|rung| (cell(way, Rung::ALL[rung], Direction::In), rates[rung], p50_us))
    }

    fn all(rates: [f64; 3], fetch_us: f64, echo_us: f64) -> Runs {
        let beside = [(Cell::Echo, 0.0, echo_us), (Cell::Minor, 0.0, 0.5)];
        let memory = way(Way::Memory, rates, 4.0);
        runs(&[&memory[..], &way(Way::Nvme, rates, fetch_us), &beside].concat())
    }

    fn decided(runs: &Runs, spins: bool) -> Vec<Option<bool>> {
        verdicts(runs, spins).iter().map(Verdict::decided).collect()
    }

    #[test]
    fn each_rung_is_to_carry_more_than_the_one_below() {
        let yes = Some(true);
        let good = all([0.2, 0.6, 1.0], 20.0, 12.0);
        assert_eq!(decided(&good, true), [yes, yes, yes, yes, yes, yes]);
        let turned = all([0.6, 0.2, 1.0], 20.0, 12.0);
        assert_eq!(decided(&turned, true)[..3], [Some(false), yes, Some(false)]);
        let [first, ..] = &verdicts(&turned, true)[..] else { panic!("there are some") };
        assert!(first.claim.contains("0.61 [0.60, 0.62] to 0.20 [0.20, 0.21] GB/s"), "{first:?}");
        // Equal rates are no order.
        let equal = all([0.2, 0.2, 0.2], 20.0, 12.0);
        assert_eq!(decided(&equal, true)[..2], [None, None]);
    }

    #[test]
    fn a_fetch_is_judged_beside_the_echo_of_its_run() {
        let rates = [0.2, 0.6, 1.0];
        let last = |runs: &Runs, spins| decided(runs, spins)[4..].to_vec();
        assert_eq!(last(&all(rates, 30.0, 12.0), true), [Some(false), Some(false)]);
        assert_eq!(last(&all(rates, 30.0, 12.0), false), [Some(true), Some(false)]);
        // Four percent of the difference on each side of the bound.
        assert_eq!(last(&all(rates, 21.8, 12.0), true), [None, Some(true)]);
    }

    #[test]
    fn runs_without_a_pair_decide_nothing_and_absence_has_a_reason() {
        let mut some = runs(&way(Way::Memory, [0.2, 0.6, 1.0], 4.0));
        some.lacks(Way::Swap, "no zram".to_owned());
        some.fails(Cell::Echo, "no loopback".to_owned());
        assert_eq!(decided(&some, true), [Some(true), Some(true)]);
        let report = report(&some, true);
        let absent = "--engine swap (zram) is absent here: no zram";
        assert!(report.table.contains(absent), "{}", report.table);
        assert!(report.table.contains("echo, failed at least once: no loopback"));
        assert_eq!(report.points["absent"][0]["why"], "no zram");
        assert!(
            report.table.contains("\n25.0 % of spins for a page of --far memory "),
            "{}",
            report.table
        );
    }

    #[test]
    fn tables_have_the_paper_beside_ours() {
        let report = report(&all([0.2, 0.6, 1.0], 20.0, 12.0), true);
        let line = |begin: &str| {
            let found = report.table.lines().find(|line| line.starts_with(begin));
            found.unwrap_or_else(|| panic!("{begin}: {}", report.table)).to_owned()
        };
        let words = |begin| line(begin).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words("the paper's device"), "the paper's device, RDMA at 56 Gb/s 0.8 2.6 3.3");
        assert_eq!(
            words("the paper's request  "),
            "the paper's request 3.39 3.49 3.44 – – 4.55 12.25"
        );
        assert_eq!(words("+ network"), "+ network and target 16.32 [16.00, 16.64]");
        assert_eq!(words("= trap"), "= trap, supervisor and copy 4.08 [4.00, 4.16]");
    }
}
