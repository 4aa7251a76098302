//! What `afar predict` expects: how often pages are fetched with how much local memory, and how
//! slow that makes the program over which network; beside measured slowdowns, if there are some.

use std::collections::BTreeMap;

use chart::{Axis, Kind, Look, Plot, Point, Series};
use measure::{Bytes, LocalSize};
use results::prediction::{Facts, Fetches, Prediction, Slowdown};
use results::{CellKind, Estimate, Finding, Findings, Interval};
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::setting;
use super::sweep;
use super::words::{command, exact, percent, time_ns};
use results::validity::ALLOWED;

/// The kind of a section on a prediction; see [`against`].
pub(super) const KIND: &str = "prediction";

// A predicted slowdown in the form of a sweep's finding.
fn found(point: &Slowdown, of: Option<&str>, of_bytes: Option<u64>) -> Finding {
    let bandwidth = match point.bandwidth_bps {
        Some(rate) => format!("{}Gbps", exact(rate as f64 / 1e9)),
        None => "none".to_owned(),
    };
    let rtt = format!("{}us", exact(point.rtt_ns as f64 / 1e3));
    let Slowdown { slowdown: median, slowdown_low: low, slowdown_high: high, .. } = *point;
    let settings = [("local", point.local.clone()), ("rtt", rtt), ("bandwidth", bandwidth)];
    let settings = settings.map(|(axis, value)| (axis.to_owned(), value));
    let mut settings: BTreeMap<String, String> = settings.into();
    // A sweep names a fixed whole by its bytes.
    let of = match (of, of_bytes) {
        (Some("fixed"), Some(bytes)) => Some(bytes.to_string()),
        (of, _) => of.map(str::to_owned),
    };
    let is_share = matches!(point.local.parse(), Ok(LocalSize::Fraction(_)));
    settings.extend(of.filter(|_| is_share).map(|of| ("of".to_owned(), of)));
    // How often the interval of a prediction holds is not known.
    let interval = Some(Interval { low, high, level: 0.0 });
    let slowdown = Estimate { median, interval, count: 0 };
    let verdict = slowdown.verdict(1.0);
    let slowdown = Some(slowdown);
    Finding { slowdown, verdict, of_bytes, ..Finding::new(CellKind::Far, settings) }
}

/// The section of a record `afar.prediction`.
pub(super) fn section(value: Value, context: &Context) -> Result<Section, serde_json::Error> {
    let record: Prediction = results::read_body(value)?;
    let Facts { program, host, managed_peak_bytes, sampled_share, allowed, .. } = &record.profile;
    let findings = Findings {
        version: String::new(),
        command: Vec::new(),
        started_unix_ns: 0,
        host: host.clone(),
        workload: program.clone(),
        native: None,
        cells: record
            .points
            .iter()
            .map(|point| found(point, record.of.as_deref(), record.of_bytes))
            .collect(),
    };
    let mut section = sweep::of(findings, context);
    let name = sweep::program(program, &context.name);
    section.title = format!("{name}: slowdown predicted from one run");
    section.kind = KIND;
    section.host = Some(host.clone());
    if let Some(first) = section.answer.first_mut() {
        *first = format!("Predicted, not measured: {first}");
    }
    section.answer.push(format!(
        "It was made from one run with all of {} local, of whose pages {} were watched; alone the \
         program takes {}.",
        Bytes::new(*managed_peak_bytes),
        percent(*sampled_share),
        time_ns(record.alone_ns as f64)
    ));
    if record.curve.iter().any(|point| !point.seen_whole) {
        let what = "with the least local memory not every touch was seen: at least so many fetches";
        section.warnings.push(what.to_owned());
    }
    if !allowed.is_empty() {
        section.answer.insert(0, format!("{name}: {ALLOWED}: {}.", allowed.join("; ")));
    }
    section.facts = vec![
        ("program".to_owned(), command(program)),
        ("policy of the slowdowns".to_owned(), record.policy.clone()),
    ];
    section.pictures.extend(curve(&record.curve));
    Ok(section)
}

/// The picture of the miss ratio against local memory, by policy; `None` without points.
fn curve(all: &[Fetches]) -> Option<Picture> {
    let setting::AxisOf { axis: x, values } =
        setting::axis_of("local", all.iter().map(|one| one.local.as_str()));
    let mut table = Table::new(["local", "policy", "miss_ratio", "fetches", "seen_whole"]);
    let mut series: Vec<Series> = Vec::new();
    for one in all {
        table.push([
            one.local.clone(),
            one.policy.clone(),
            exact(one.miss_ratio),
            exact(one.fetch_count.round()),
            one.seen_whole.to_string(),
        ]);
        let place = values.iter().find(|(text, _)| *text == one.local);
        let Some((_, x)) = place else { continue };
        let point = Point { x: *x, y: one.miss_ratio * 100.0, interval: None };
        match series.iter_mut().find(|series| series.name == one.policy) {
            Some(series) => series.points.push(point),
            None => {
                let (name, points) = (one.policy.clone(), vec![point]);
                series.push(Series { name, points, look: Look::Line });
            }
        }
    }
    for one in &mut series {
        one.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let title = "Miss ratio against local memory".to_owned();
    (!series.is_empty()).then(|| Picture {
        name: "miss-ratio".to_owned(),
        title: title.clone(),
        caption: "Fetches as a share of the touches of pages that were seen, by eviction policy."
            .to_owned(),
        chart: Chart::Plot(Plot {
            title,
            x,
            y: Axis::new("fetches, % of touches", Kind::Linear).showing(&[0.0]),
            series,
            bounds: Vec::new(),
            marks: Vec::new(),
        }),
        table,
    })
}

/// The section of predicted against measured slowdowns; `None` unless a prediction and a sweep have
/// settings in common.
pub(super) fn against(sections: &[(String, Section)]) -> Option<(String, Section)> {
    let of = |kind: &str| sections.iter().find(|(_, section)| section.kind == kind);
    let ((one, predicted), (other, measured)) = (of(KIND)?, of("sweep")?);
    let pairs: Vec<(&Figure, &Figure)> = predicted
        .figures
        .iter()
        .filter_map(|figure| {
            let is_it = |other: &&Figure| other.name == figure.name;
            Some((figure, measured.figures.iter().find(is_it)?))
        })
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let mut errors: Vec<f64> =
        pairs.iter().map(|(one, other)| (one.value - other.value).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let meet = |(one, other): &&(&Figure, &Figure)| {
        let ends = one.interval.zip(other.interval);
        ends.is_some_and(|(one, other)| one.0 <= other.1 && other.0 <= one.1)
    };
    let section = Section {
        title: "Predicted against measured".to_owned(),
        kind: "prediction and sweep",
        answer: vec![
            format!(
                "Over {} settings that both have, the predicted slowdown is off by {} in the \
                 median and by {} at most.",
                pairs.len(),
                exact(errors[errors.len() / 2]),
                exact(errors[errors.len() - 1])
            ),
            format!("In {} of them the intervals of both meet.", pairs.iter().filter(meet).count()),
        ],
        pictures: vec![scatter(&pairs)],
        ..Section::default()
    };
    Some((format!("{one} and {other}"), section))
}

/// The picture of measured against predicted slowdowns, with its table.
fn scatter(pairs: &[(&Figure, &Figure)]) -> Picture {
    let mut table = Table::new([
        "setting",
        "predicted",
        "low",
        "high",
        "measured",
        "measured low",
        "measured high",
        "error",
    ]);
    let mut points = Vec::new();
    for (one, other) in pairs {
        let ends = [one, other].map(|figure| {
            figure.interval.map_or_else(Default::default, |(low, high)| [exact(low), exact(high)])
        });
        let [[low, high], [least, most]] = ends;
        let (value, measured) = (exact(one.value), exact(other.value));
        let error = exact(one.value - other.value);
        table.push([one.name.clone(), value, low, high, measured, least, most, error]);
        points.push(Point { x: one.value, y: other.value, interval: other.interval });
    }
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    let ends = |of: fn(f64, f64) -> f64| {
        points.iter().flat_map(|point| [point.x, point.y]).reduce(of).unwrap_or(1.0)
    };
    let (low, high) = (ends(f64::min), ends(f64::max));
    let equal = Series::new("as predicted", Look::Curve, vec![(low, low), (high, high)]);
    let measured = Series { name: "measured".to_owned(), points, look: Look::Dots };
    let title = "Slowdown, predicted against measured".to_owned();
    Picture {
        name: "predicted-measured".to_owned(),
        title: title.clone(),
        caption: "A dot for each setting, with the interval of what was measured.".to_owned(),
        chart: Chart::Plot(Plot {
            title,
            x: Axis::new("predicted slowdown", Kind::Either),
            y: Axis::new("measured slowdown", Kind::Either),
            series: vec![measured, equal],
            bounds: Vec::new(),
            marks: Vec::new(),
        }),
        table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_told_as_a_sweep_is_and_held_against_one() {
        let golden = include_str!("../../../crates/results/tests/golden/prediction.json");
        let mut record: Prediction = results::read(golden).expect("it is a prediction");
        let point = |rtt_ns, slowdown: f64| Slowdown {
            local: "25%".to_owned(),
            rtt_ns,
            bandwidth_bps: Some(40_000_000_000),
            slowdown,
            slowdown_low: slowdown - 0.01,
            slowdown_high: slowdown + 0.01,
            seen_whole: true,
        };
        record.points = vec![point(3_000, 1.02), point(10_000, 1.2)];
        let record = serde_json::from_str(&results::write(&record)).expect("it is JSON");
        let context = Context { bound: 1.05, name: String::new() };
        let predicted = section(record, &context).expect("it is one");
        assert!(predicted.answer[0].starts_with(
            "Predicted, not measured: sort stays within 5 % of its speed with 25 % of its \
             memory local, on"
        ));
        assert_eq!((predicted.warnings.len(), predicted.pictures.len()), (1, 2));
        let measured = Slowdown { slowdown_low: 1.02, slowdown_high: 1.06, ..point(3_000, 1.04) };
        let swept = |of| {
            let mut cell = found(&measured, Some(of), None);
            cell.settings.insert("engine".to_owned(), "arena".to_owned());
            sweep::of(sweep::tests::of_cells(vec![cell]), &context)
        };
        let whole = "A share of local memory is a share of 1.0 GiB (the most it used).";
        assert!(predicted.answer.iter().any(|one| one == whole), "{:?}", predicted.answer);
        let sections = [("p".to_owned(), predicted), ("s".to_owned(), swept("peak"))];
        let (_, both) = against(&sections).expect("they have a setting in common");
        assert!(both.answer[0].contains("off by 0.02 in the median"), "{:?}", both.answer);
        assert!(both.answer[1].starts_with("In 1 of them"));
        assert!(against(&sections[..1]).is_none());
        let [predicted, _] = sections;
        let other = [predicted, ("s".to_owned(), swept("live"))];
        assert!(against(&other).is_none(), "shares of other wholes are no pair");
    }
}
