//! `afar plan latency`: what a round trip consists of, and which targets it meets.

mod file;

use std::path::Path;
use std::process::ExitCode;

use console::{
    Failure,
    layout::{NONE, row, table},
    terminal,
};
use document::DocumentError;
use measure::{BitsPerSec, Duration};
use planner::latency::{Group, LatencyError, RoundTrip, Sharing};
use records::Column;
use results::plan::latency as record;
use results::{Requirements, Standing};

use self::file::{EXAMPLE, Experiment, Target};
use super::grid::{self, Grid};
use super::picture::{Bar, Bars, bars};
use super::{PlanError, Written, when, write};
use crate::flags::LatencyFlags;
use document::Source;

/// A way to fetch a page.
struct Way<'a> {
    design: &'a Group,
    scope: &'a Group,
    /// The round trip at each rate.
    trips: Vec<(BitsPerSec, RoundTrip)>,
}

/// Runs `afar plan latency`.
///
/// # Errors
/// If the file or a setting is invalid, or a result cannot be written.
pub(super) fn latency(flags: &LatencyFlags) -> Result<ExitCode, Failure> {
    if flags.print {
        let text = match &flags.experiment {
            Some(path) => Source::read(path)?.text,
            None => EXAMPLE.to_owned(),
        };
        terminal::answer(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut experiment = Experiment::read(flags.experiment.as_deref(), &flags.set)?;
    for path in &flags.sweep {
        experiment.targets.push(requirement(path)?);
    }
    let paths = paths(&experiment)
        .map_err(|source| PlanError::Latency { place: experiment.name.clone(), source })?;
    write(Written {
        table: text(&experiment, &paths),
        files: vec![
            when(&flags.json, || results::write(&recorded(&experiment, &paths))),
            (&flags.csv, grid::bytes(&flags.csv, || Ok(rows(&recorded(&experiment, &paths))))?),
            when(&flags.svg, || picture(&experiment, &paths)),
        ],
    })
}

/// Every design in every scope, with its round trips.
fn paths(experiment: &Experiment) -> Result<Vec<Way<'_>>, LatencyError> {
    let mut paths = Vec::new();
    for design in &experiment.designs {
        for (scope, &trunks) in experiment.scopes.iter().zip(&experiment.trunks) {
            let mut trips = Vec::new();
            for &rate in &experiment.rates {
                let transmission = match experiment.packets {
                    Some(packets) => packets.transmission(experiment.page, rate, trunks),
                    None => rate.transfer_time(experiment.page),
                };
                let groups = [design, scope];
                let trip = RoundTrip::of(&groups, transmission, rate, &experiment.sharing)?;
                trips.push((rate, trip));
            }
            paths.push(Way { design, scope, trips });
        }
    }
    Ok(paths)
}

/// The round trip that a program needs, from a record of `afar sweep --find`: a file of `--json`,
/// or the directory of the sweep.
fn requirement(path: &Path) -> Result<Target, DocumentError> {
    let file = path.join(results::REQUIREMENTS_FILE);
    let is_directory = path.is_dir();
    if is_directory && !file.exists() {
        let message = "no requirement was found in this sweep; run afar sweep --find 5% on it";
        let place = path.display().to_string();
        return Err(DocumentError::At { place, message: message.to_owned() });
    }
    let source = Source::read(if is_directory { &file } else { path })?;
    let wrong = |what: String| source.wrong(&(0..0), what);
    let record: Requirements = results::read(&source.text).map_err(|error| DocumentError::At {
        place: source.name.clone(),
        message: format!("{error}; give what afar sweep --find --json has printed"),
    })?;
    let none = || wrong("no round trip was found to be short enough".to_owned());
    let found = record.requirements.iter().find(|one| one.axis == "rtt").ok_or_else(none)?;
    if let Some(why) = &found.invalid {
        return Err(wrong(format!("no round trip was found: {why}")));
    }
    if found.standing != Standing::Confirmed {
        let what = "the round trip that was found is not confirmed; search again with more \
                    repetitions, or on a quieter machine";
        return Err(wrong(what.to_owned()));
    }
    let value = &found.last_good.as_ref().ok_or_else(none)?.value;
    let rtt = value.parse().map_err(|error| wrong(format!("rtt: {error}")))?;
    let name = path.file_stem().map_or_else(String::new, |name| name.display().to_string());
    Ok(Target { name, rtt })
}

/// A time in microseconds, as text.
fn us(time: Duration) -> String {
    format!("{:.2}", time.as_ns_f64() / 1e3)
}

/// The readable table of parts and totals, and which targets are met.
fn text(experiment: &Experiment, paths: &[Way<'_>]) -> String {
    let mut head = vec!["µs".to_owned()];
    head.extend(paths.iter().map(|path| path.design.name.clone()));
    let mut second = vec![String::new()];
    second.extend(paths.iter().map(|path| path.scope.name.clone()));
    let mut rows = vec![head, second];
    let mut names: Vec<&str> = Vec::new();
    for component in paths.iter().flat_map(|path| parts(path)) {
        if !names.contains(&component.name.as_str()) {
            names.push(&component.name);
        }
    }
    for name in names {
        let mut cells = vec![name.to_owned()];
        cells.extend(paths.iter().map(|path| {
            let part = parts(path).find(|part| part.name == name && part.count > 0);
            part.map_or_else(
                || NONE.to_owned(),
                |part| format!("{} x {}", us(part.each), part.count),
            )
        }));
        rows.push(cells);
    }
    let is_shared = experiment.sharing != Sharing::Alone;
    for (index, rate) in experiment.rates.iter().enumerate() {
        let mut line = |name: String, figure: fn(&RoundTrip) -> Duration| {
            let mut cells = vec![name];
            cells.extend(paths.iter().map(|path| us(figure(&path.trips[index].1))));
            rows.push(cells);
        };
        line(format!("transmission at {rate}"), |trip| trip.transmission);
        if is_shared {
            line(format!("mean wait at {rate}"), |trip| trip.wait);
        }
        line(format!("total at {rate}"), RoundTrip::total);
    }
    let mut text = table(&rows);
    text += "\n";
    text += &targets(experiment, paths);
    if experiment.is_papers {
        text += PAPERS;
    }
    text
}

const PAPERS: &str = "
These are Gao et al. 2016, Table 4. For RDMA and NIC integration between racks at 100 Gb/s their
text (§3.3) has 3.59 µs; the components of the table add up to 3.65.
";

/// The parts of a way: those of its design, then those of its scope.
fn parts<'a>(path: &Way<'a>) -> impl Iterator<Item = &'a planner::latency::Component> + use<'a> {
    path.design.components.iter().chain(&path.scope.components)
}

/// The table of the rates at which each way meets each target.
fn targets(experiment: &Experiment, paths: &[Way<'_>]) -> String {
    if experiment.targets.is_empty() {
        return String::new();
    }
    let mut rows = vec![row(["met at", "scope"])];
    rows[0].extend(experiment.targets.iter().map(|one| format!("{} ({})", one.name, one.rtt)));
    for path in paths {
        let mut cells = vec![path.design.name.clone(), path.scope.name.clone()];
        for target in &experiment.targets {
            let met = path.trips.iter().filter(|(_, trip)| trip.total() <= target.rtt);
            let rates: Vec<String> = met.map(|(rate, _)| rate.to_string()).collect();
            cells.push(if rates.is_empty() { NONE.to_owned() } else { rates.join(", ") });
        }
        rows.push(cells);
    }
    table(&rows)
}

/// A bar for each path and rate, with the names of components as its parts.
fn picture(experiment: &Experiment, paths: &[Way<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for component in paths.iter().flat_map(|path| parts(path)) {
        if component.count > 0 && !names.contains(&component.name.as_str()) {
            names.push(&component.name);
        }
    }
    let mut drawn = Vec::new();
    for path in paths {
        for (rate, trip) in &path.trips {
            let us = |time: Duration| time.as_ns_f64() / 1e3;
            let of = |name: &&str| -> f64 {
                let same = parts(path).filter(|part| part.name == **name);
                same.map(|part| us(part.each) * f64::from(part.count)).sum()
            };
            let mut all: Vec<f64> = names.iter().map(of).collect();
            all.extend([us(trip.transmission), us(trip.wait)]);
            let meets = |target: &Target| trip.total() <= target.rtt;
            drawn.push(Bar {
                name: format!("{}, {}, {rate}", path.design.name, path.scope.name),
                parts: all,
                label: self::us(trip.total()),
                is_chosen: !experiment.targets.is_empty() && experiment.targets.iter().all(meets),
            });
        }
    }
    names.extend(["transmission", "mean wait"]);
    bars(&Bars {
        title: "Round trips by their parts",
        unit: "µs",
        parts: names,
        bars: drawn,
        note: "▸ meets every target",
    })
}

/// The table for CSV: a row for each way and rate.
fn rows(record: &record::RoundTrips) -> Grid {
    let paths = || record.paths.iter();
    let text = |of: fn(&record::Path) -> String| Column::Text(paths().map(of).collect());
    let time = |of: fn(&record::Path) -> f64| {
        Column::Text(paths().map(|path| of(path).to_string()).collect())
    };
    vec![
        ("design", text(|path| path.design.clone())),
        ("scope", text(|path| path.scope.clone())),
        ("rate_bps", Column::Numbers(paths().map(|path| path.rate_bps).collect())),
        ("fixed_ns", time(|path| path.fixed_ns)),
        ("transmission_ns", time(|path| path.transmission_ns)),
        ("wait_ns", time(|path| path.wait_ns)),
        ("total_ns", time(|path| path.total_ns)),
        ("meets", text(|path| path.meets.join(" "))),
    ]
}

/// The record of all round trips.
fn recorded(experiment: &Experiment, paths: &[Way<'_>]) -> record::RoundTrips {
    let path = |path: &Way<'_>, rate: BitsPerSec, trip: &RoundTrip| {
        let met = experiment.targets.iter().filter(|target| trip.total() <= target.rtt);
        record::Path {
            design: path.design.name.clone(),
            scope: path.scope.name.clone(),
            rate_bps: rate.get(),
            fixed_ns: trip.fixed.as_ns_f64(),
            transmission_ns: trip.transmission.as_ns_f64(),
            wait_ns: trip.wait.as_ns_f64(),
            total_ns: trip.total().as_ns_f64(),
            meets: met.map(|target| target.name.clone()).collect(),
        }
    };
    let all = paths.iter().flat_map(|way| {
        let path = &path;
        way.trips.iter().map(move |(rate, trip)| path(way, *rate, trip))
    });
    let targets = experiment.targets.iter();
    let targets =
        targets.map(|one| record::Target { name: one.name.clone(), rtt_ns: one.rtt.as_ns_f64() });
    record::RoundTrips {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        page_bytes: experiment.page.get(),
        targets: targets.collect(),
        paths: all.collect(),
    }
}
