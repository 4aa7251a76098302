//! Figures 2 to 5: degradation over network and local memory, against the same job without delays,
//! as the paper defines it. A delay here includes the engine's own work, so the run without delays
//! is the native one.

use chart::{PALETTE, Tick};
use console::layout::{NONE, table};
use serde_json::json;

use super::apps::{APPS, Class, Matrix, Seen, measure};
use super::place::{Place, Section};
use super::{claims, published};
use crate::flags::Options;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::report::{Report, Verdict};
use crate::{Measured, ReproduceError};

/// The lower end of the axis in percent, at which smaller degradations are drawn.
pub(super) const LEAST: f64 = 0.1;

/// Measures a figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When results cannot be written, or nothing ran.
pub(crate) fn run(flags: &Options, section: Section) -> Result<Option<Measured>, ReproduceError> {
    let Some(matrix) = measure(flags, section)? else { return Ok(None) };
    if matrix.is_empty() {
        return Ok(None);
    }
    Ok(Some(Measured {
        report: report(&matrix, section, flags.quick),
        described: matrix.describe(),
        bed: matrix.record(),
        is_interrupted: matrix.outcome.is_interrupted,
    }))
}

/// The title of a figure.
fn title(section: Section) -> String {
    let what = match section {
        Section::Fig2 => "Fig. 2: degradation by network, 25 % local",
        Section::Fig3 => "Fig. 3: degradation by bandwidth, 5 µs, 25 % local",
        Section::Fig4 => "Fig. 4: degradation by latency, 40 Gb/s, 25 % local",
        Section::Fig5 | Section::Fig6 | Section::Table3 => {
            "Fig. 5: degradation by local memory, 5 µs, 40 Gb/s"
        }
    };
    format!("{}, {what}", published::SOURCE)
}

/// The report of a figure.
fn report(matrix: &Matrix, section: Section, is_quick: bool) -> Report {
    let seen = &matrix.seen;
    let verdicts = match section {
        Section::Fig2 => claims::networks(seen, is_quick),
        Section::Fig3 => claims::bandwidths(seen, is_quick),
        Section::Fig4 => claims::latencies(seen, is_quick),
        Section::Fig5 | Section::Fig6 | Section::Table3 => claims::locals(seen, is_quick),
    };
    let caption: Vec<String> =
        verdicts.iter().map(Verdict::text).chain(matrix.left_out()).collect();
    let places = section.places(is_quick);
    Report {
        title: title(section),
        table: rows(seen, &places),
        picture: picture(seen, section, &places, &caption),
        verdicts,
        points: matrix.points(),
        paper: json!({
            "class_a_most": published::CLASS_A,
            "class_b_most": published::CLASS_B,
            "class_b_20_30_percent_local": published::CLASS_B_LOCAL,
            "logged_1_5_10_us_100_40_10_gbps": published::LOGGED,
        }),
    }
}

/// The table of degradations of each application in each cell, as text.
pub(super) fn rows(seen: &[Seen], places: &[Place]) -> String {
    let mut head = vec!["degradation".to_owned()];
    head.extend(seen.iter().map(|seen| seen.app.name.to_owned()));
    head.extend(["class A", "class B"].map(str::to_owned));
    let mut rows = vec![head];
    for &place in places {
        let shown = |share: Option<f64>| share.map_or_else(|| NONE.to_owned(), claims::percent);
        let mut row = vec![place.name()];
        row.extend(seen.iter().map(|seen| shown(seen.degradation(place))));
        let classes = [Class::A, Class::B].map(|class| shown(claims::mean(seen, class, place)));
        row.extend(classes);
        rows.push(row);
    }
    table(&rows)
        + "against the same run without far memory; class A: als, memcached; class B: pagerank, \
           sql, herd;\nword count and sort stand for jobs of both classes and are in neither mean\n"
}

/// The colour of an application, the same in every figure.
pub(super) fn colour(name: &str) -> &'static str {
    let at = APPS.iter().position(|app| app.name == name).unwrap_or(0);
    PALETTE[at % PALETTE.len()]
}

fn picture(seen: &[Seen], section: Section, places: &[Place], caption: &[String]) -> String {
    let charts = [
        ("class A, and what stands for both; %", [Class::A, Class::Both]),
        ("class B; %", [Class::B, Class::B]),
    ]
    .map(|(title, classes)| {
        let shown = seen.iter().filter(|seen| classes.contains(&seen.app.class));
        Chart {
            title: title.to_owned(),
            x: axis(section, places),
            y: Axis::decades("", LEAST, most(seen)),
            series: shown.flat_map(|seen| lines(seen, section, places)).collect(),
        }
    });
    let caption: Vec<String> = notes(&charts).into_iter().chain(caption.iter().cloned()).collect();
    // Fig. 2 has its charts one above the other, as in the paper, because its axis has many names.
    let columns = if section == Section::Fig2 { 1 } else { 2 };
    draw(&title(section), &charts, columns, &caption)
}

// A legend of special marks in the charts; `None` if there are none.
fn notes(charts: &[Chart]) -> Option<String> {
    let series = || charts.iter().flat_map(|chart| &chart.series);
    let mut notes = Vec::new();
    if series().any(|series| series.kind == Kind::Theirs) {
        notes.push(
            "Hollow and dashed: logged by the paper's authors, of the application that a workload \
             stands in for.",
        );
    }
    if series().flat_map(|series| &series.points).any(|(_, percent)| *percent < LEAST) {
        notes.push("No degradation is drawn at the lower end.");
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

// A power of ten above all degradations, in percent.
pub(super) fn most(seen: &[Seen]) -> f64 {
    let points = seen.iter().flat_map(|seen| &seen.points);
    let most = points.map(|point| point.degradation * 100.0).fold(100.0, f64::max);
    10_f64.powf(most.log10().ceil())
}

// The horizontal axis of a figure.
fn axis(section: Section, places: &[Place]) -> Axis {
    let values = |of: fn(&Place) -> u32| -> Vec<f64> {
        places.iter().map(|place| f64::from(of(place))).collect()
    };
    match section {
        Section::Fig2 => {
            let name = |place: &Place| format!("{}/{}", place.rtt_us, place.gbps);
            let names: Vec<String> = places.iter().map(name).collect();
            Axis::names("µs / Gb/s", &names)
        }
        Section::Fig3 => Axis::marks("bandwidth, Gb/s", &values(|place| place.gbps)),
        Section::Fig4 => Axis::marks("latency (round trip), µs", &values(|place| place.rtt_us)),
        Section::Fig5 | Section::Fig6 | Section::Table3 => {
            let ticks: Vec<Tick> =
                (0..=5).map(|tick| (f64::from(tick * 20), format!("{}", tick * 20))).collect();
            Axis { ticks, ..Axis::from_zero("local memory, %", 100.0) }
        }
    }
}

// The position of a cell on the horizontal axis.
fn at(section: Section, number: usize, place: Place) -> f64 {
    match section {
        Section::Fig2 => number as f64 + 1.0,
        Section::Fig3 => f64::from(place.gbps),
        Section::Fig4 => f64::from(place.rtt_us),
        Section::Fig5 | Section::Fig6 | Section::Table3 => f64::from(place.local),
    }
}

// The series of an application: measured here, and logged by the authors.
fn lines(seen: &Seen, section: Section, places: &[Place]) -> Vec<Series> {
    let name = seen.app.name;
    let line = |of: &dyn Fn(Place) -> Option<f64>| -> Vec<(f64, f64)> {
        let all = places.iter().enumerate();
        all.filter_map(|(number, &place)| Some((at(section, number, place), of(place)? * 100.0)))
            .collect()
    };
    let series = |name: &str, points, kind| Series {
        name: name.to_owned(),
        colour: colour(seen.app.name),
        points,
        kind,
    };
    let ours = series(name, line(&|place| seen.degradation(place)), Kind::Ours);
    let theirs = series("", line(&|place| published::logged(name, place)), Kind::Theirs);
    [ours, theirs].into_iter().filter(|series| !series.points.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::seen_by;
    use super::*;

    #[test]
    fn pictures_have_every_point_and_the_papers() {
        for (section, theirs) in [(Section::Fig2, 36), (Section::Fig3, 12), (Section::Fig5, 0)] {
            let places = section.places(false);
            let seen = seen_by(section, |_, place| (f64::from(place.rtt_us) / 10.0, 1.0));
            let drawn = picture(&seen, section, &places, &[]);
            assert_eq!(drawn.matches("<circle").count(), 7 * places.len() + theirs, "{section:?}");
            assert!(!drawn.contains("NaN"), "{section:?}");
            assert_eq!(rows(&seen, &places).matches("local").count(), places.len());
        }
    }
}
