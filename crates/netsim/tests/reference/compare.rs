//! What "the same" means.

use measure::Duration;
use netsim::{Ideal, Outcome, Protocol, Published, simulate_stranded};

use crate::case::{Case, Expected, name};

/// A nanosecond, and the rounding of the tables.
const EXACT_US: f64 = 0.001 + 1e-6;

/// At least this share of flows must match to a nanosecond.
pub(crate) fn assert_exact(case: &Case, transport: Published, share: f64) {
    let (outcome, expected) = run(case, transport);
    let mut same = 0;
    let mut first = None;
    for (index, expected) in expected.iter().enumerate() {
        let ours = fct_us(case, &outcome, index);
        let is_same = match (ours, expected.fct_us) {
            (Some(ours), Some(theirs)) => (ours - theirs).abs() <= EXACT_US,
            (None, None) => true,
            _ => false,
        };
        if is_same {
            same += 1;
        } else {
            let miss = (index, case.flows[index], ours, expected.fct_us);
            first.get_or_insert(miss);
        }
    }
    let got = f64::from(same) / expected.len() as f64;
    println!("{} {}: {:.2} % the same", case.name, name(transport), got * 100.0);
    assert!(got >= share, "{} {}: {got}, first {first:?}", case.name, name(transport));
}

/// Mean within 1 % (TCP 3 %), p99 within 5 %, each bin of sizes within 3 %, drops within 10 %.
pub(crate) fn assert_close(case: &Case, transport: Published) {
    let (outcome, expected) = run(case, transport);
    let ours: Vec<Option<f64>> = (0..case.flows.len())
        .map(|index| Some(fct_us(case, &outcome, index)? / case.ideal_us[index]))
        .collect();
    let theirs: Vec<Option<f64>> =
        expected.iter().zip(&case.ideal_us).map(|(row, ideal)| Some(row.fct_us? / ideal)).collect();
    let mean_limit = if transport == Published::Tcp { 0.03 } else { 0.01 };
    let mut checks = vec![
        ("mean".to_owned(), mean(&ours, |_| true), mean(&theirs, |_| true), mean_limit),
        ("p99".to_owned(), p99(&ours), p99(&theirs), 0.05),
    ];
    for (bin, from, to) in [
        ("to 10 KB", 0, 10_240),
        ("to 100 KB", 10_240, 102_400),
        ("to 1 MB", 102_400, 1 << 20),
        ("to 10 MB", 1 << 20, 10 << 20),
        ("beyond", 10 << 20, u64::MAX),
    ] {
        let within = |index: usize| (from..to).contains(&case.flows[index].bytes);
        let count = (0..case.flows.len()).filter(|&index| within(index)).count();
        if count >= 100 {
            checks.push((
                format!("{bin} ({count})"),
                mean(&ours, within),
                mean(&theirs, within),
                0.03,
            ));
        }
    }
    let drops = |total: u32| f64::from(total);
    let ours_dropped = outcome.records.iter().map(|record| record.data_drops).sum();
    let theirs_dropped = expected.iter().map(|row| row.drops).sum();
    checks.push(("drops".to_owned(), drops(ours_dropped), drops(theirs_dropped), 0.10));
    let mut failed = Vec::new();
    for (what, ours, theirs, limit) in checks {
        let off = if theirs == 0.0 { ours } else { ours / theirs - 1.0 };
        let line = format!(
            "{} {} {what}: {ours:.4} for {theirs:.4}, {:+.2} %",
            case.name,
            name(transport),
            off * 100.0
        );
        println!("{line}");
        if off.abs() > limit {
            failed.push(line);
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn run(case: &Case, transport: Published) -> (Outcome, &[Expected]) {
    let fabric = case.fabric(transport);
    let ideal = Ideal::new(&fabric);
    for (flow, ideal_us) in case.flows.iter().zip(&case.ideal_us) {
        let ours = us(ideal.acknowledged(flow));
        assert!((ours - ideal_us).abs() < 2e-6, "{flow:?}: ideal {ours} for {ideal_us}");
    }
    let protocol = Protocol::AsPublished2016(transport);
    let outcome = simulate_stranded(&fabric, protocol, &case.flows).expect("a case is sound");
    (outcome, &case.results[name(transport)])
}

fn fct_us(case: &Case, outcome: &Outcome, index: usize) -> Option<f64> {
    outcome.records[index].fct(&case.flows[index]).map(us)
}

fn us(duration: Duration) -> f64 {
    duration.as_ps() as f64 / 1e6
}

fn mean(values: &[Option<f64>], within: impl Fn(usize) -> bool) -> f64 {
    let chosen: Vec<f64> = values
        .iter()
        .enumerate()
        .filter(|(index, _)| within(*index))
        .filter_map(|(_, value)| *value)
        .collect();
    chosen.iter().sum::<f64>() / chosen.len() as f64
}

fn p99(values: &[Option<f64>]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().filter_map(|value| *value).collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() * 99 / 100]
}
