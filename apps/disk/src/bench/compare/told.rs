//! The result of a comparison of disks: as a record, a table and CSV.

use ::experiment::{Ratios, stats};
use console::layout::{NONE, count, csv as rows_of, row, table};
use console::machine;
use results::Estimate;
use results::disks::{
    ComparedDisk, ComparedFigure, DiskComparison, DiskFigure, DiskRun, DiskVerdict,
};

use super::super::letters::LETTERS;
use super::super::run::Ready;
use super::super::summary::how;
use super::runs::Blocks;

/// The record of a comparison.
pub(super) fn record(
    blocks: &Blocks,
    disks: &[Ready],
    seed: u64,
    started_unix_ns: u64,
) -> DiskComparison {
    let uris: Vec<&str> = disks.iter().map(|disk| disk.target.as_str()).collect();
    DiskComparison {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns,
        seed,
        host: machine::describe(),
        load: how(&disks[0].job),
        repetitions: blocks.repetitions.into(),
        block_count: blocks.runs.first().map_or(0, |runs| runs.len() as u64),
        interrupted: blocks.interrupted,
        failure: blocks.failure.clone(),
        disks: compared(&blocks.runs, &uris),
    }
}

/// The figures of every disk, from `runs` by disk and block. All disks have the same blocks.
fn compared(runs: &[Vec<DiskRun>], uris: &[&str]) -> Vec<ComparedDisk> {
    let disk = |(number, runs): (usize, &Vec<DiskRun>), first: &[DiskRun]| {
        let beside = (number > 0).then_some(first);
        let figure = |figure| compared_by(figure, runs, beside);
        let disturbed = || runs.iter().filter_map(|run| run.disturbed.as_deref());
        ComparedDisk {
            letter: LETTERS[number].to_owned(),
            uri: uris[number].to_owned(),
            figures: DiskFigure::ALL.into_iter().filter_map(figure).collect(),
            runs: runs.clone(),
            disturbed_count: disturbed().count() as u64,
            first_disturbance: disturbed().next().map(str::to_owned),
        }
    };
    runs.iter().enumerate().map(|one| disk(one, &runs[0])).collect()
}

// One figure of a disk: its median, and its ratio to the same figure of the first disk. `None`
// without runs.
fn compared_by(
    figure: DiskFigure,
    runs: &[DiskRun],
    first: Option<&[DiskRun]>,
) -> Option<ComparedFigure> {
    let (value, _) = estimate(runs.iter().map(|run| (run, figure.of(run), None)))?;
    let pairs = first.into_iter().flatten().zip(runs);
    let pairs = pairs.map(|(one, run)| (run, figure.of(run) / figure.of(one), Some(one)));
    // If a figure of the first disk is 0, there is no ratio.
    let is_number = pairs.clone().all(|(_, ratio, _)| ratio.is_finite());
    let ratio = estimate(pairs).filter(|_| is_number);
    Some(ComparedFigure {
        figure,
        value,
        ratio: ratio.map(|(ratio, _)| ratio),
        verdict: ratio.map(|(ratio, is_disturbed)| figure.verdict(&ratio, is_disturbed)),
    })
}

// The median and interval of values, each of a run and perhaps of one of the first disk beside it.
// Disturbed ones count only if too few others are left; returns whether they do.
fn estimate<'a>(
    values: impl Iterator<Item = (&'a DiskRun, f64, Option<&'a DiskRun>)>,
) -> Option<(Estimate, bool)> {
    let mut all = Ratios::default();
    for (run, value, beside) in values {
        let others = beside.and_then(|one| one.disturbed.clone());
        let block = u32::try_from(run.block).unwrap_or(u32::MAX);
        all.add(block, value, run.disturbed.clone().or(others));
    }
    let (values, is_disturbed) = all.counting();
    stats::estimate(&values).map(|estimate| (estimate, is_disturbed))
}

/// The comparison as a table for people.
pub(super) fn text(record: &DiskComparison) -> String {
    let mut text = format!("\nafar: {} disks: {}\n", record.disks.len(), record.load);
    for disk in &record.disks {
        text += &format!("{}  {}\n", disk.letter, disk.uri);
    }
    let runs = record.disks.iter().flat_map(|disk| &disk.runs);
    let fewest = runs.clone().map(|run| run.request_count).min().unwrap_or(0);
    text += &format!(
        "{} in shuffled order (seed {}), {} requests in each run at least; medians and intervals\n",
        blocks(record.block_count),
        record.seed,
        count(fewest)
    );
    let head = ["", "disk", "median", "interval", "by A", "interval", "verdict"];
    let mut rows = vec![row(head)];
    for figure in DiskFigure::ALL {
        for disk in &record.disks {
            let name = if disk.letter == LETTERS[0] { title(figure) } else { "" };
            rows.extend(disk.figure(figure).map(|of| line(name, &disk.letter, of)));
        }
    }
    text += &format!("\n{}", table(&rows));
    text + &notes(record)
}

fn blocks(number: u64) -> String {
    if number == 1 { "1 block".to_owned() } else { format!("{number} blocks") }
}

// The heading of a figure, with its unit.
const fn title(figure: DiskFigure) -> &'static str {
    match figure {
        DiskFigure::Iops => "IOPS",
        DiskFigure::BytesPerS => "MB/s",
        DiskFigure::MeanUs => "mean, µs",
        DiskFigure::P50Us => "p50, µs",
        DiskFigure::P99Us => "p99, µs",
        DiskFigure::P999Us => "p99.9, µs",
    }
}

// A row of the table: one figure of one disk.
fn line(name: &str, letter: &str, of: &ComparedFigure) -> Vec<String> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
    let number = |value: f64| match of.figure {
        DiskFigure::Iops => count(value.round() as u64),
        DiskFigure::BytesPerS => format!("{:.1}", value / 1e6),
        _ => format!("{value:.1}"),
    };
    let ratio = |value: f64| format!("{value:.3}");
    let none = || NONE.to_owned();
    let interval = |estimate: &Estimate, number: &dyn Fn(f64) -> String| {
        let text = |(low, high)| format!("{} to {}", number(low), number(high));
        estimate.ends().map_or_else(none, text)
    };
    vec![
        name.to_owned(),
        letter.to_owned(),
        number(of.value.median),
        interval(&of.value, &number),
        of.ratio.map_or_else(none, |by| ratio(by.median)),
        of.ratio.map_or_else(none, |by| interval(&by, &ratio)),
        of.verdict.map_or_else(none, |verdict| verdict.words().to_owned()),
    ]
}

// Lines below the table: undecided verdicts, disturbed runs, requests that were not made.
fn notes(record: &DiskComparison) -> String {
    let mut notes = String::new();
    let verdicts = record.disks.iter().flat_map(|disk| &disk.figures);
    if verdicts.clone().any(|of| of.verdict == Some(DiskVerdict::Undecided)) {
        notes += "undecided: an interval needs 5 blocks\n";
    }
    for ComparedDisk { letter, runs, disturbed_count, first_disturbance, .. } in &record.disks {
        if let Some(why) = first_disturbance {
            let all = runs.len();
            notes += &format!("{letter}: {disturbed_count} of {all} runs were disturbed: {why}\n");
        }
        let unmade: u64 = runs.iter().map(|run| run.unmade_count).sum();
        if unmade > 0 {
            let unmade = count(unmade);
            notes += &format!("{letter}: {unmade} requests were due and could not be made\n");
        }
    }
    if notes.is_empty() { notes } else { format!("\n{notes}") }
}

/// The comparison as CSV: a row for each figure of each disk.
pub(super) fn csv(record: &DiskComparison) -> String {
    let head = [
        "disk",
        "uri",
        "figure",
        "median",
        "low",
        "high",
        "ratio",
        "ratio_low",
        "ratio_high",
        "level",
        "count",
        "verdict",
        "disturbed_count",
    ];
    let mut rows = vec![row(head)];
    for disk in &record.disks {
        for ComparedFigure { figure, value, ratio, verdict } in &disk.figures {
            let number = |value: Option<f64>| value.map_or_else(String::new, |one| one.to_string());
            let end = |of: Option<Estimate>, end: fn((f64, f64)) -> f64| {
                number(of.and_then(|of| of.ends()).map(end))
            };
            let value = Some(*value);
            rows.push(vec![
                disk.letter.clone(),
                disk.uri.clone(),
                figure.name().to_owned(),
                number(value.map(|of| of.median)),
                end(value, |ends| ends.0),
                end(value, |ends| ends.1),
                number(ratio.map(|of| of.median)),
                end(*ratio, |ends| ends.0),
                end(*ratio, |ends| ends.1),
                number(ratio.or(value).and_then(|of| of.interval).map(|of| of.level)),
                ratio.or(value).map_or(0, |of| of.count).to_string(),
                verdict.map_or_else(String::new, |verdict| verdict.words().to_owned()),
                disk.disturbed_count.to_string(),
            ]);
        }
    }
    rows_of(rows)
}

#[cfg(test)]
mod tests {
    use measure::Host;

    use super::*;
    use crate::bench::compare::runs::tests::run;

    fn runs(all: &[f64]) -> Vec<DiskRun> {
        (1..).zip(all).map(|(block, iops)| run(block, *iops)).collect()
    }

    fn told(runs: &[Vec<DiskRun>]) -> DiskComparison {
        DiskComparison {
            version: String::new(),
            command: Vec::new(),
            started_unix_ns: 0,
            seed: 1,
            host: Host::default(),
            load: "randread".to_owned(),
            repetitions: 5,
            block_count: runs[0].len() as u64,
            interrupted: false,
            failure: None,
            disks: compared(runs, &["memory:1GiB", "nvme+tcp://x/nqn", "iscsi://x/iqn/0"]),
        }
    }

    // A machine that gets slower from block to block, with disks that do not differ, or do.
    #[test]
    fn ratios_are_of_runs_of_one_block() {
        let drifts = [1000.0, 800.0, 600.0, 400.0, 200.0];
        let record = told(&[runs(&drifts), runs(&drifts), runs(&drifts.map(|iops| iops * 0.9))]);
        let of = |disk: usize, figure| record.disks[disk].figure(figure).expect("it is there");
        let same = of(1, DiskFigure::Iops);
        assert_eq!(same.ratio.and_then(|ratio| ratio.ends()), Some((1.0, 1.0)));
        assert_eq!(same.verdict, Some(DiskVerdict::Same));
        assert_eq!(of(1, DiskFigure::Iops).value.ends(), Some((200.0, 1000.0)));
        assert_eq!(of(2, DiskFigure::Iops).verdict, Some(DiskVerdict::Slower));
        assert_eq!(of(2, DiskFigure::P99Us).verdict, Some(DiskVerdict::Slower));
        let first = of(0, DiskFigure::Iops);
        assert_eq!((first.ratio, first.verdict), (None, None), "it is beside nothing");
        assert_eq!(of(1, DiskFigure::P999Us).ratio, None, "by 0");
    }

    #[test]
    fn four_blocks_decide_nothing_and_disturbed_runs_neither() {
        let [fast, slow] = [[1000.0; 5], [500.0; 5]].map(|all| runs(&all));
        let verdict = |record: &DiskComparison| record.disks[1].figures[0].verdict;
        assert_eq!(verdict(&told(&[fast.clone(), slow.clone()])), Some(DiskVerdict::Slower));
        let few = told(&[fast[..4].to_vec(), slow[..4].to_vec()]);
        assert_eq!(verdict(&few), Some(DiskVerdict::Undecided));
        assert!(text(&few).ends_with("\nundecided: an interval needs 5 blocks\n"), "{few:?}");
        // That of the first disk disturbs every pair of its block.
        let mut disturbed = fast;
        disturbed[2].disturbed = Some("other programs".to_owned());
        let record = told(&[disturbed, slow]);
        assert_eq!(verdict(&record), Some(DiskVerdict::Disturbed));
        assert!(text(&record).ends_with("\nA: 1 of 5 runs were disturbed: other programs\n"));
    }

    #[test]
    fn a_table_and_rows_have_every_figure_of_every_disk() {
        let record = told(&[[1e5; 5], [2e5; 5], [25.0; 5]].map(|all| runs(&all)));
        let shown = text(&record);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{shown}");
        for wanted in [
            "A  memory:1GiB",
            "5 blocks in shuffled order (seed 1), 100 requests in each run at least",
            "100,000 to 100,000",
        ] {
            assert!(shown.contains(wanted), "{wanted} is missing in\n{shown}");
        }
        for wanted in [
            "B 200,000 200,000 to 200,000 2.000 2.000 to 2.000 faster",
            "p99, µs A 20.0 20.0 to 20.0 – – –",
        ] {
            let is_it = |line: &&str| line.split_whitespace().eq(wanted.split(' '));
            assert!(lines.iter().any(is_it), "{wanted} is missing in\n{shown}");
        }
        let rows = csv(&record);
        assert_eq!(rows.lines().count(), 1 + 3 * DiskFigure::ALL.len());
        let row = "B,nvme+tcp://x/nqn,iops,200000,200000,200000,2,2,2,0.9375,5,faster,0\n";
        assert!(rows.contains(row), "{rows}");
    }
}
