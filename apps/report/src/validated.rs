//! What `afar run --validate` has found: how far an emulated run is from one that is really far.

use chart::{Bar, Bars, BarsScale, short};
use results::{Agreement, Emulated, Estimate, Validation};
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::sweep::program;
use super::words::{command, exact, percent};

/// The section of a record `afar.validation`.
pub(super) fn section(value: Value, context: &Context) -> Result<Section, serde_json::Error> {
    let record: Validation = results::read_body(value)?;
    let program = program(started(&record.command), &context.name);
    let mut section = Section {
        title: format!("{program}: emulated beside really far"),
        kind: "validation",
        invalid: record.invalid.clone(),
        ..Section::default()
    };
    if let (Some(plain), Some(real)) = (record.emulated.first(), &record.real) {
        section.answer.push(format!(
            "With {} local and its pages on {}, {program} takes {} times its native time; emulated \
             it takes {} times what it takes then: it {}.",
            record.local,
            record.far,
            real.slowdown.text(3),
            plain.ratio.text(3),
            sentence(plain.agreement, &record)
        ));
        section.figures.push(figure("emulated by real", &plain.ratio));
        section.figures.push(figure("real slowdown", &real.slowdown));
    }
    for one in &record.emulated {
        if let Some(why) = &one.first_disturbance {
            let (name, count) = (&one.name, one.disturbed_count);
            section.warnings.push(format!("{name}: {count} pairs of runs were disturbed: {why}"));
        }
    }
    section.facts.push(("program".to_owned(), command(&record.command)));
    for (name, text) in [
        ("far memory", &record.far),
        ("local memory", &record.local),
        ("policy", &record.policy),
        ("prefetch", &record.prefetch),
    ] {
        section.facts.push((name.to_owned(), text.clone()));
    }
    section.pictures.extend((!record.emulated.is_empty()).then(|| ratios(&record)));
    Ok(section)
}

/// The words of the program, without `taskset -c` before them.
fn started(command: &[String]) -> &[String] {
    match command {
        [first, flag, _, rest @ ..] if first == "taskset" && flag == "-c" => rest,
        all => all,
    }
}

/// A figure with its interval.
fn figure(name: &str, estimate: &Estimate) -> Figure {
    let figure = Figure::new(name.to_owned(), "x", estimate.median);
    match estimate.ends() {
        Some(ends) => figure.within(ends),
        None => figure,
    }
}

/// The agreement of an emulation, in words.
fn sentence(agreement: Agreement, record: &Validation) -> String {
    let within = percent(record.within);
    match agreement {
        Agreement::Agrees => format!("agrees within {within}"),
        Agreement::Differs => format!("differs by more than {within}"),
        Agreement::Counts => {
            format!("moves other pages: by more than {}", percent(record.counts_within))
        }
        Agreement::Undecided => format!("is undecided whether it agrees within {within}"),
        Agreement::Insensitive => "is slowed down too little to tell".to_owned(),
        Agreement::Disturbed => "is undecided, because the machine was disturbed".to_owned(),
    }
}

/// The picture of emulated by real time, with the table of all emulations.
fn ratios(record: &Validation) -> Picture {
    let head = [
        "emulation",
        "waits",
        "seconds",
        "by_real",
        "low",
        "high",
        "fetch_ratio",
        "moved_ratio",
        "page_mean_us",
        "page_p50_us",
        "page_p99_us",
        "agreement",
    ];
    let mut table = Table::new(head);
    let mut bars = Vec::new();
    for one in &record.emulated {
        let Emulated { name, side, ratio, .. } = one;
        let end = |of: fn((f64, f64)) -> f64| {
            ratio.ends().map_or_else(String::new, |ends| exact(of(ends)))
        };
        table.push([
            name.clone(),
            side.wait.clone(),
            exact(side.seconds.median),
            exact(ratio.median),
            end(|ends| ends.0),
            end(|ends| ends.1),
            exact(one.fetch_ratio),
            exact(one.moved_ratio),
            exact(side.fetch.mean_us),
            exact(side.fetch.p50_us),
            exact(side.fetch.p99_us),
            one.agreement.words().to_owned(),
        ]);
        bars.push(Bar {
            name: name.clone(),
            parts: vec![ratio.median],
            interval: ratio.ends(),
            text: short(ratio.median),
        });
    }
    let title = "Time emulated by time really far";
    Picture {
        name: "validation".to_owned(),
        title: title.to_owned(),
        caption:
            "Each emulated run beside the real one of its block. Plain runs take what fetches \
                  took in a real run of its own; the others have one thing changed."
                .to_owned(),
        chart: Chart::Bars(Bars {
            title: title.to_owned(),
            unit: "emulated by real".to_owned(),
            label: short,
            parts: Vec::new(),
            bars,
            marks: vec![
                (1.0 - record.within, format!("−{}", percent(record.within))),
                (1.0 + record.within, format!("+{}", percent(record.within))),
            ],
            scale: BarsScale::Ratio,
        }),
        table,
    }
}
