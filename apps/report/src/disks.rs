//! What `afar bench` has measured of several disks: each beside the first.

use chart::{Bar, Bars, BarsScale, short};
use results::Estimate;
use results::disks::{ComparedDisk, ComparedFigure, DiskComparison, DiskFigure, DiskVerdict};
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::words::exact;

/// The section of a record `afar.disks`.
pub(super) fn section(value: Value, _context: &Context) -> Result<Section, serde_json::Error> {
    let record: DiskComparison = results::read_body(value)?;
    let table = table(&record);
    let others = || record.disks.iter().skip(1);
    let mut section = Section {
        title: format!("{} disks under one load: {}", record.disks.len(), record.load),
        kind: "disks",
        answer: others().filter_map(sentence).collect(),
        verdicts: Some(table.clone()),
        warnings: warnings(&record),
        ..Section::default()
    };
    section.facts.push(("load".to_owned(), record.load.clone()));
    let blocks = format!("{} of {}, in shuffled order", record.block_count, record.repetitions);
    section.facts.push(("blocks".to_owned(), blocks));
    for disk in &record.disks {
        section.facts.push((format!("disk {}", disk.letter), disk.uri.clone()));
        section.figures.extend(disk.figures.iter().map(|of| figure(disk, of)));
    }
    section.pictures.extend(rates(&record));
    section.pictures.extend(ratios(&record));
    section.opens = !section.pictures.is_empty();
    (section.command, section.host) = (record.command, Some(record.host));
    Ok(section)
}

/// The name of a figure in a sentence.
const fn words(figure: DiskFigure) -> &'static str {
    match figure {
        DiskFigure::Iops => "requests per second",
        DiskFigure::BytesPerS => "bytes per second",
        DiskFigure::MeanUs => "mean",
        DiskFigure::P50Us => "p50",
        DiskFigure::P99Us => "p99",
        DiskFigure::P999Us => "p99.9",
    }
}

/// A sentence that compares a disk with the first; `None` without a ratio.
fn sentence(disk: &ComparedDisk) -> Option<String> {
    let of = |figure| {
        let one = disk.figure(figure)?;
        Some((one.ratio?, one.verdict?))
    };
    let verdict = |verdict: DiskVerdict| match verdict {
        DiskVerdict::Faster => "it is faster",
        DiskVerdict::Slower => "it is slower",
        DiskVerdict::Same => "the interval shows no difference",
        DiskVerdict::Undecided => "it is undecided, by too few blocks",
        DiskVerdict::Disturbed => "it is undecided, because the machine was disturbed",
    };
    let (rate, by_rate) = of(DiskFigure::Iops)?;
    let times = match (of(DiskFigure::MeanUs), of(DiskFigure::P99Us)) {
        (Some((mean, by_mean)), Some((p99, by_p99))) => format!(
            " A request takes {} times as long in the mean ({}), and {} times at p99 ({}).",
            mean.text(3),
            verdict(by_mean),
            p99.text(3),
            verdict(by_p99)
        ),
        _ => String::new(),
    };
    let ComparedDisk { letter, uri, .. } = disk;
    Some(format!(
        "{letter} ({uri}) answers {} times as many requests per second as A: {}.{times}",
        rate.text(3),
        verdict(by_rate)
    ))
}

/// Warnings of an early end, failures, disturbed runs and requests that were not made.
fn warnings(record: &DiskComparison) -> Vec<String> {
    let mut warnings = Vec::new();
    if record.interrupted {
        warnings.push("it was ended before its time".to_owned());
    }
    warnings.extend(record.failure.clone());
    for ComparedDisk { letter, runs, disturbed_count, first_disturbance, .. } in &record.disks {
        if let Some(why) = first_disturbance {
            let all = runs.len();
            warnings
                .push(format!("{letter}: {disturbed_count} of {all} runs were disturbed: {why}"));
        }
        let unmade: u64 = runs.iter().map(|run| run.unmade_count).sum();
        if unmade > 0 {
            warnings.push(format!("{letter}: {unmade} requests were due and could not be made"));
        }
    }
    warnings
}

/// A figure of a disk, with its interval.
fn figure(disk: &ComparedDisk, of: &ComparedFigure) -> Figure {
    let unit = match of.figure {
        DiskFigure::Iops => "/s",
        DiskFigure::BytesPerS => "B/s",
        _ => "µs",
    };
    let name = format!("{}, {}", disk.letter, words(of.figure));
    let figure = Figure::new(name, unit, of.value.median);
    let figure = if of.figure.is_rate() { figure.higher() } else { figure };
    match of.value.ends() {
        Some(ends) => figure.within(ends),
        None => figure,
    }
}

/// A row for each figure of each disk.
fn table(record: &DiskComparison) -> Table {
    let mut table = Table::new([
        "figure",
        "disk",
        "median",
        "low",
        "high",
        "by_A",
        "by_A_low",
        "by_A_high",
        "verdict",
    ]);
    let cells = |estimate: Option<Estimate>| {
        let ends = estimate.and_then(|estimate| estimate.ends());
        let all = [estimate.map(|of| of.median), ends.map(|ends| ends.0), ends.map(|ends| ends.1)];
        all.map(|value| value.map_or_else(String::new, exact))
    };
    for figure in DiskFigure::ALL {
        for disk in &record.disks {
            let Some(of) = disk.figure(figure) else { continue };
            let ([median, low, high], [by, by_low, by_high]) =
                (cells(Some(of.value)), cells(of.ratio));
            let verdict = of.verdict.map_or("", DiskVerdict::words).to_owned();
            let (name, letter) = (figure.name().to_owned(), disk.letter.clone());
            table.push([name, letter, median, low, high, by, by_low, by_high, verdict]);
        }
    }
    table
}

// Requests per second of every disk.
fn rates(record: &DiskComparison) -> Option<Picture> {
    let bar = |disk: &ComparedDisk| {
        let value = disk.figure(DiskFigure::Iops)?.value;
        Some(Bar {
            // The rest of a URI is longer than a label may be.
            name: format!("{} {}", disk.letter, disk.uri.split(':').next().unwrap_or_default()),
            parts: vec![value.median],
            interval: value.ends(),
            text: short(value.median),
        })
    };
    let bars: Vec<Bar> = record.disks.iter().filter_map(bar).collect();
    let title = "Requests per second of each disk";
    let caption = "Medians of the runs; whiskers are the intervals.";
    let chart = Bars {
        title: title.to_owned(),
        unit: "requests per second".to_owned(),
        label: short,
        parts: Vec::new(),
        bars,
        marks: Vec::new(),
        scale: BarsScale::Zero,
    };
    picture("disks", (title, caption), chart, record)
}

// Ratios of every figure to that of the first disk.
fn ratios(record: &DiskComparison) -> Option<Picture> {
    let bar = |figure: DiskFigure, disk: &ComparedDisk| {
        let ratio = disk.figure(figure)?.ratio.filter(|ratio| ratio.median > 0.0)?;
        Some(Bar {
            name: format!("{}, {}", words(figure), disk.letter),
            parts: vec![ratio.median],
            interval: ratio.ends().filter(|ends| ends.0 > 0.0),
            text: short(ratio.median),
        })
    };
    // With requests of one size, bytes say what requests say.
    let figures = DiskFigure::ALL.into_iter().filter(|figure| *figure != DiskFigure::BytesPerS);
    let bars = figures.flat_map(|figure| {
        record.disks.iter().filter_map(move |disk| bar(figure, disk)).collect::<Vec<_>>()
    });
    let title = "Each disk by the first";
    let caption = "Ratios of runs of the same block; whiskers are the intervals. Of requests per \
                   second more is better, of times less.";
    let chart = Bars {
        title: title.to_owned(),
        unit: "by A".to_owned(),
        label: short,
        parts: Vec::new(),
        bars: bars.collect(),
        marks: vec![(1.0, "same".to_owned())],
        scale: BarsScale::Ratio,
    };
    picture("by-first", (title, caption), chart, record)
}

/// A picture of bars with the table of all figures; `None` without bars.
fn picture(
    name: &str,
    (title, caption): (&str, &str),
    chart: Bars,
    record: &DiskComparison,
) -> Option<Picture> {
    (!chart.bars.is_empty()).then(|| Picture {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        chart: Chart::Bars(chart),
        table: table(record),
    })
}

#[cfg(test)]
mod tests {
    use results::Interval;

    use super::*;

    fn disk(letter: &str, ratio: Option<f64>) -> ComparedDisk {
        let estimate = |median: f64| {
            let interval = Some(Interval { low: median * 0.9, high: median, level: 0.9375 });
            Estimate { median, interval, count: 5 }
        };
        let figure = |figure: DiskFigure| {
            let ratio = ratio.map(estimate);
            let verdict = ratio.map(|ratio| figure.verdict(&ratio, false));
            ComparedFigure { figure, value: estimate(100.0), ratio, verdict }
        };
        ComparedDisk {
            letter: letter.to_owned(),
            uri: format!("memory:{letter}"),
            figures: DiskFigure::ALL.map(figure).to_vec(),
            runs: Vec::new(),
            disturbed_count: 2,
            first_disturbance: ratio.map(|_| "other programs".to_owned()),
        }
    }

    fn read() -> Section {
        let record = DiskComparison {
            version: String::new(),
            command: Vec::new(),
            started_unix_ns: 0,
            seed: 1,
            host: measure::Host::default(),
            load: "randread".to_owned(),
            repetitions: 5,
            block_count: 5,
            interrupted: false,
            failure: None,
            disks: vec![disk("A", None), disk("B", Some(0.5)), disk("C", Some(1.05))],
        };
        let text = results::write(&record);
        let context = Context { bound: 1.05, name: String::new() };
        let value = serde_json::from_str(&text).expect("it is JSON");
        section(value, &context).expect("it is one")
    }

    #[test]
    fn each_disk_has_a_sentence_that_says_which_is_faster() {
        let section = read();
        assert_eq!(section.answer.len(), 2);
        let wanted = "B (memory:B) answers 0.500 [0.450, 0.500] times as many requests per second \
                      as A: it is slower. A request takes 0.500 [0.450, 0.500] times as long in \
                      the mean (it is faster)";
        assert!(section.answer[0].starts_with(wanted), "{}", section.answer[0]);
        assert!(section.answer[1].contains("A: the interval shows no difference."), "{section:?}");
        assert_eq!(section.warnings[0], "B: 2 of 0 runs were disturbed: other programs");
        let rows = &section.verdicts.as_ref().expect("it has a table").rows;
        assert_eq!(rows.len(), 3 * DiskFigure::ALL.len());
        assert_eq!(rows[1], ["iops", "B", "100", "90", "100", "0.5", "0.45", "0.5", "slower"]);
    }

    #[test]
    fn pictures_have_a_bar_for_each_disk_and_for_each_ratio() {
        let section = read();
        let bars = |index: usize| match &section.pictures[index].chart {
            Chart::Bars(bars) => bars.bars.len(),
            _ => 0,
        };
        assert_eq!((bars(0), bars(1)), (3, 2 * (DiskFigure::ALL.len() - 1)));
        let rate = section.figures.iter().find(|one| one.name == "B, requests per second");
        assert_eq!(rate.and_then(|one| one.interval), Some((90.0, 100.0)));
    }
}
