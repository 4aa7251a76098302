//! What a sweep has found: slowdown against local memory, round trip and bandwidth.

use chart::{Axis, Cell, Heat, Kind, Look, Plot, Point, Series, short};
use results::{CellKind, Finding, Findings, Native, Verdict};
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::setting::{self, AxisOf, rest};
use super::words::{exact, percent};
use super::{allowed, need, network};
use results::validity::ALLOWED;

/// The most lines of one picture; the table has all of them.
const SERIES_MAX: usize = 7;
/// From this many cells with disturbed runs on, one warning stands for all.
const DISTURBED_MAX: usize = 4;
/// The most heat maps, one for each combination of the settings that are not on their axes.
const HEATS_MAX: usize = 6;

/// The section of a record `afar.findings`.
pub(super) fn section(value: Value, context: &Context) -> Result<Section, serde_json::Error> {
    Ok(of(results::read_body(value)?, context))
}

/// The section of the findings of a sweep, or of a prediction.
pub(super) fn of(mut findings: Findings, context: &Context) -> Section {
    let wholes = wholes(&findings.cells);
    leave_out_shared(&mut findings.cells);
    let of_kind = |kind| findings.cells.iter().filter(move |cell| cell.kind == kind);
    let far: Vec<&Finding> = of_kind(CellKind::Far).collect();
    let zeros: Vec<&Finding> = of_kind(CellKind::Zero).collect();
    let smalls: Vec<&Finding> = of_kind(CellKind::Small).collect();
    let program = program(&findings.workload, &context.name);
    let told = need::told(&program, &far, &zeros, context.bound);
    let mut section = Section {
        invalid: invalid(&far),
        title: format!("{program}: slowdown with far memory"),
        kind: "sweep",
        command: findings.command.clone(),
        host: Some(findings.host.clone()),
        answer: told.sentences,
        enough: told.allowed.map(|table| (table, allowed::NOTE)),
        verdicts: told.verdicts,
        warnings: warnings(&findings.cells),
        ..Section::default()
    };
    if far.is_empty() {
        section.answer.push(NONE_YET.to_owned());
    }
    for whole in wholes {
        section.answer.push(format!("A share of local memory is a share of {whole}."));
        section.facts.push(("shares of local memory".to_owned(), format!("of {whole}")));
    }
    if !findings.workload.is_empty() {
        let command = super::words::command(&findings.workload);
        section.facts.push(("program".to_owned(), command));
    }
    if let Some(Native { figure, metric, higher_is_better }) = &findings.native {
        let better = if *higher_is_better { "; more is better" } else { "" };
        let text = format!("{} {metric} (n = {}{better})", figure.text(4), figure.count);
        section.facts.push(("without afar".to_owned(), text));
    }
    section.pictures.extend(heats(&far, ("rtt", "local"), context.bound));
    section.opens = !section.pictures.is_empty();
    for axis in ["local", "rtt", "bandwidth"] {
        section.pictures.extend(lines(&far, axis, context.bound));
    }
    for axes in [("rtt", "bandwidth"), ("bandwidth", "local")] {
        section.pictures.extend(heats(&far, axes, context.bound));
    }
    if section.pictures.is_empty() && !far.is_empty() {
        section.pictures.push(only(&far, context.bound));
    }
    for cell in far.iter().chain(&zeros).chain(&smalls) {
        let Some(slowdown) = cell.slowdown else { continue };
        let name = match cell.kind {
            CellKind::Native => continue,
            CellKind::Small => "without afar and huge pages",
            CellKind::Zero => "afar by itself, all local",
            CellKind::Far => "slowdown",
        };
        let rest = rest(cell, &[]);
        let name = if rest.is_empty() { name.to_owned() } else { format!("{name}, {rest}") };
        let figure = Figure::new(name, "x", slowdown.median);
        section.figures.push(match slowdown.ends() {
            Some(ends) => figure.within(ends),
            None => figure,
        });
    }
    section
}

/// The answer of a sweep that was stopped at its beginning.
const NONE_YET: &str = "No run with far memory has ended yet; the same afar sweep goes on from \
                        where it was stopped.";

/// What shares of local memory are shares of.
fn wholes(cells: &[Finding]) -> Vec<String> {
    let far = cells.iter().filter(|cell| cell.kind == CellKind::Far);
    let mut wholes: Vec<String> = far.filter_map(Finding::share_told).collect();
    wholes.sort();
    wholes.dedup();
    wholes
}

/// Why a sweep without any valid run with far memory is invalid; `None` if it has one.
fn invalid(far: &[&Finding]) -> Option<String> {
    if far.iter().any(|cell| cell.slowdown.is_some()) {
        return None;
    }
    far.iter().find_map(|cell| cell.first_invalid.clone())
}

/// Removes other settings, such as engine and policy, that are the same in all far cells.
fn leave_out_shared(cells: &mut [Finding]) {
    let axes: Vec<String> = cells.iter().flat_map(|cell| cell.settings.keys().cloned()).collect();
    // Shares of one thing and of another are no pair: what they are of stays in the names.
    let kept = ["local", "of", "rtt", "bandwidth"];
    for axis in axes.iter().filter(|axis| !kept.contains(&axis.as_str())) {
        let far = cells.iter().filter(|cell| cell.kind == CellKind::Far);
        let mut values: Vec<&str> = far.map(|cell| cell.value(axis)).collect();
        values.dedup();
        if values.len() == 1 {
            cells.iter_mut().for_each(|cell| _ = cell.settings.remove(axis));
        }
    }
}

/// The axis `of`, to leave out of names, if all cells have the same value; else `None`.
fn untold(far: &[&Finding]) -> Option<&'static str> {
    let mut values = far.iter().map(|cell| cell.value("of"));
    let first = values.next()?;
    values.all(|value| value == first).then_some("of")
}

/// The program's name, without its directory and flags; named after `file` if unknown.
pub(super) fn program(words: &[String], file: &str) -> String {
    let base = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    match words {
        [] => format!("the program of {file}"),
        [first, second, job, ..] if base(first) == "afar" && second == "workload" => {
            format!("afar workload {job}")
        }
        [first, ..] => base(first),
    }
}

/// A number of runs in words.
fn runs(count: u64) -> String {
    format!("{count} {}", if count == 1 { "run" } else { "runs" })
}

/// Warnings of failed, invalid and disturbed runs, exceeded budgets and outliers.
fn warnings(cells: &[Finding]) -> Vec<String> {
    let (mut warnings, mut outliers, mut disturbed) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        let rest = rest(cell, &[]);
        let name = match cell.kind {
            CellKind::Native => "the program without afar".to_owned(),
            CellKind::Small => "the program without afar and huge pages".to_owned(),
            _ if rest.is_empty() => "all local".to_owned(),
            _ => rest,
        };
        if let Some(why) = &cell.first_failure {
            warnings.push(format!("{} failed ({name}): {why}", runs(cell.failed_count)));
        }
        if let Some(why) = &cell.first_invalid {
            warnings.push(format!("{} of {name}: {why}", runs(cell.invalid_count)));
        }
        if let Some(why) = &cell.first_disturbance {
            disturbed.push(format!("{} of {name} disturbed: {why}", runs(cell.disturbed_count)));
        }
        if cell.allowed_count > 0 {
            warnings.push(format!("{} of {name}: {ALLOWED}", runs(cell.allowed_count)));
        }
        if cell.budget_exceeded_count > 0 {
            let count = runs(cell.budget_exceeded_count);
            warnings.push(format!("the budget of local memory was exceeded in {count} ({name})"));
        }
        if !cell.outliers.is_empty() {
            outliers.push(format!("{} of {name}", cell.outliers.len()));
        }
    }
    if let (Some(first), DISTURBED_MAX..) = (disturbed.first(), disturbed.len()) {
        let others = disturbed.len() - 1;
        let all = format!("{first}; and some of {others} other cells, which the tables name");
        disturbed = vec![all];
    }
    warnings.append(&mut disturbed);
    if !outliers.is_empty() {
        warnings.push(format!("outliers, which count all the same: {}", outliers.join("; ")));
    }
    warnings
}

/// A row for each cell: its values on `axes`, slowdown and verdict.
fn table(cells: &[&Finding], axes: &[&str], bound: f64) -> Table {
    let mut table =
        Table { columns: axes.iter().map(|axis| (*axis).to_owned()).collect(), ..Table::default() };
    let columns = [
        "other settings",
        "slowdown",
        "low",
        "high",
        "runs",
        "verdict",
        "beside zero",
        "fetches",
        "failed",
        "invalid",
    ];
    table.columns.extend(columns.map(str::to_owned));
    for cell in cells {
        let mut row: Vec<String> = axes.iter().map(|axis| cell.value(axis).to_owned()).collect();
        row.push(rest(cell, axes));
        let number = |value: Option<f64>| value.map_or_else(String::new, exact);
        let ends = cell.slowdown.and_then(|slowdown| slowdown.ends());
        row.push(number(cell.slowdown.map(|slowdown| slowdown.median)));
        row.extend([number(ends.map(|ends| ends.0)), number(ends.map(|ends| ends.1))]);
        row.push(cell.slowdown.map_or(0, |slowdown| slowdown.count).to_string());
        row.push(cell.verdict_beside(bound).words().to_owned());
        row.push(number(cell.slowdown_beside_zero.map(|slowdown| slowdown.median)));
        row.push(cell.fetch_count.map_or_else(String::new, |count| count.to_string()));
        row.push(cell.failed_count.to_string());
        row.push(cell.first_invalid.clone().unwrap_or_default());
        table.rows.push(row);
    }
    table
}

/// The caption of a picture with whiskers.
fn caption(cells: &[&Finding]) -> String {
    let counts = cells.iter().filter_map(|cell| cell.slowdown).map(|slowdown| slowdown.count);
    if counts.clone().all(|count| count == 0) {
        return "Whiskers: the interval of the prediction.".to_owned();
    }
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let runs = if least == most { least.to_string() } else { format!("{least} to {most}") };
    format!(
        "Median of the ratios to the program without afar in the same block of runs; whiskers: \
         an interval that holds the true median in at least 93 % of experiments; n = {runs}."
    )
}

// The caption of a picture without whiskers.
fn median(cells: &[&Finding]) -> &'static str {
    match cells.iter().filter_map(|cell| cell.slowdown).all(|slowdown| slowdown.count == 0) {
        true => "As predicted.",
        false => "Median of the ratios to the program without afar in the same block of runs.",
    }
}

/// The picture of slowdown against one axis; `None` if there is no line to draw.
fn lines(far: &[&Finding], axis: &'static str, bound: f64) -> Option<Picture> {
    let AxisOf { axis: x, values } =
        setting::axis_of(axis, far.iter().map(|cell| cell.value(axis)));
    if values.len() < 2 {
        return None;
    }
    let mut series: Vec<Series> = Vec::new();
    for cell in far {
        let Some(slowdown) = cell.slowdown else { continue };
        let Some((_, x)) = values.iter().find(|(text, _)| text == cell.value(axis)) else {
            continue;
        };
        let interval = slowdown.ends();
        let point = Point { x: *x, y: slowdown.median, interval };
        let without: Vec<&str> = [axis].into_iter().chain(untold(far)).collect();
        let name = rest(cell, &without);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name, points: vec![point], look: Look::Line }),
        }
    }
    // One point is no line.
    series.retain(|series| series.points.len() > 1);
    for one in &mut series {
        one.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    if series.is_empty() {
        return None;
    }
    let left_out = series.len().saturating_sub(SERIES_MAX);
    series.truncate(SERIES_MAX);
    let title = format!("Slowdown against {}", setting::name(axis));
    let mut caption = caption(far);
    if left_out > 0 {
        caption += &format!(" {left_out} further combinations are in the table only.");
    }
    Some(Picture {
        name: format!("slowdown-{axis}"),
        title: title.clone(),
        caption,
        chart: Chart::Plot(Plot {
            title,
            x,
            y: Axis::new("slowdown", Kind::Either).showing(&[1.0]),
            series,
            bounds: vec![(bound, format!("{} slower", percent(bound - 1.0)))],
            marks: Vec::new(),
        }),
        table: table(far, &[axis], bound),
    })
}

/// Heat maps of slowdown over two axes, one for each combination of the other settings.
fn heats(far: &[&Finding], axes: (&'static str, &'static str), bound: f64) -> Vec<Picture> {
    let values = |axis| setting::axis_of(axis, far.iter().map(|cell| cell.value(axis))).values;
    let (columns, mut rows) = (values(axes.0), values(axes.1));
    if columns.len() < 2 || rows.len() < 2 {
        return Vec::new();
    }
    // The largest value is at the top, as in a plot.
    rows.reverse();
    let mut groups: Vec<(String, Vec<&Finding>)> = Vec::new();
    for cell in far {
        let without: Vec<&str> = [axes.0, axes.1].into_iter().chain(untold(far)).collect();
        let rest = rest(cell, &without);
        match groups.iter_mut().find(|group| group.0 == rest) {
            Some(group) => group.1.push(cell),
            None => groups.push((rest, vec![cell])),
        }
    }
    // A search leaves scattered cells: maps that are at most half full are not drawn.
    groups.retain(|(_, cells)| cells.len() * 2 > columns.len() * rows.len());
    let groups = groups.into_iter().take(HEATS_MAX).enumerate();
    groups.map(|group| heat(group, axes, (&columns, &rows), bound)).collect()
}

type Values = [(String, f64)];

/// One heat map of slowdown over two axes.
fn heat(
    (index, (rest, cells)): (usize, (String, Vec<&Finding>)),
    axes: (&'static str, &'static str),
    (columns, rows): (&Values, &Values),
    bound: f64,
) -> Picture {
    let most = cells.iter().filter_map(|cell| cell.slowdown).map(|one| one.median);
    let most = most.fold(2.0 * bound - 1.0, f64::max);
    let cell = |row: &str, column: &str| {
        let is_it = |cell: &&&Finding| cell.value(axes.0) == column && cell.value(axes.1) == row;
        let cell = cells.iter().find(is_it)?;
        let slowdown = cell.slowdown?;
        let depth = slowdown.median.max(1.0).ln() / most.ln();
        let verdict = cell.verdict_beside(bound);
        let is_doubtful = !matches!(verdict, Verdict::Within | Verdict::Beyond);
        let text = format!("{:.2}{}", slowdown.median, if is_doubtful { "?" } else { "" });
        Some(Cell { depth, text, is_within: verdict == Verdict::Within, is_doubtful })
    };
    let row = |(row, _): &(String, f64)| {
        (row.clone(), columns.iter().map(|(column, _)| cell(row, column)).collect())
    };
    let rows: Vec<(String, Vec<Option<Cell>>)> = rows.iter().map(row).collect();
    let mut all = rows.iter().flat_map(|(_, cells)| cells.iter().flatten());
    let hatched = all.any(|cell| cell.is_doubtful).then(|| "undecided or disturbed".to_owned());
    let round_trips = || columns.iter().filter_map(|(text, _)| setting::rtt_ns(text)).collect();
    let marks = if axes.0 == "rtt" { network::marks(round_trips()) } else { Vec::new() };
    let told = if marks.is_empty() { String::new() } else { network::marks_told() };
    let given = if rest.is_empty() { String::new() } else { format!(" ({rest})") };
    let names = (setting::name(axes.0), setting::name(axes.1));
    let title = format!("Slowdown against {} and {}{given}", names.0, names.1);
    Picture {
        name: format!("slowdown-{}-{}-{}", axes.0, axes.1, index + 1),
        title: title.clone(),
        caption: format!(
            "{} The thick line is the edge of what is surely at most {} slower; hatched, with ?: \
             undecided or disturbed.{told}",
            median(&cells),
            percent(bound - 1.0)
        ),
        chart: Chart::Heat(Heat {
            title,
            axes: (names.0.to_owned(), names.1.to_owned()),
            columns: columns.iter().map(|(column, _)| column.clone()).collect(),
            rows,
            hatched,
            marks,
            edge: Some(format!("edge of {} slower", percent(bound - 1.0))),
            key: vec![(0.0, "as fast".to_owned()), (1.0, format!("{} times as slow", short(most)))],
        }),
        table: table(&cells, &[axes.0, axes.1], bound),
    }
}

// The picture where no axis has two values: a dot for each cell.
fn only(far: &[&Finding], bound: f64) -> Picture {
    let names = far.iter().map(|cell| rest(cell, &[]));
    let points = far.iter().enumerate().filter_map(|(at, cell)| {
        let slowdown = cell.slowdown?;
        let interval = slowdown.ends();
        Some(Point { x: at as f64, y: slowdown.median, interval })
    });
    let series = Series { name: String::new(), points: points.collect(), look: Look::Dots };
    Picture {
        name: "slowdown".to_owned(),
        title: "Slowdown".to_owned(),
        caption: caption(far),
        chart: Chart::Plot(Plot {
            title: "Slowdown".to_owned(),
            x: Axis::new("settings", Kind::Named(names.collect())),
            y: Axis::new("slowdown", Kind::Either).showing(&[1.0]),
            series: vec![series],
            bounds: vec![(bound, format!("{} slower", percent(bound - 1.0)))],
            marks: Vec::new(),
        }),
        table: table(far, &[], bound),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use measure::Host;
    use results::{Estimate, Interval};

    use super::*;

    /// A cell whose slowdown is known to within 0.003.
    pub(crate) fn cell(kind: CellKind, settings: &[(&str, &str)], median: f64) -> Finding {
        let owned = settings.iter().map(|&(axis, value)| (axis.to_owned(), value.to_owned()));
        let interval = Interval { low: median - 0.003, high: median + 0.003, level: 0.9375 };
        let slowdown = Some(Estimate { median, interval: Some(interval), count: 5 });
        Finding { slowdown, fetch_count: Some(7), ..Finding::new(kind, owned.collect()) }
    }

    pub(crate) fn of_cells(cells: Vec<Finding>) -> Findings {
        Findings {
            version: "0.1.0".to_owned(),
            command: vec!["afar".to_owned(), "sweep".to_owned(), "redis.toml".to_owned()],
            started_unix_ns: 0,
            host: Host::default(),
            workload: ["/usr/bin/redis-server", "--port", "0"].map(str::to_owned).to_vec(),
            native: None,
            cells,
        }
    }

    /// A program that fetches at every local memory below 75 %, at the price of the round trip.
    fn findings() -> Findings {
        let mut cells =
            vec![Finding::new(CellKind::Native, BTreeMap::new()), cell(CellKind::Zero, &[], 1.01)];
        for (share, weight) in [("25%", 0.02), ("50%", 0.01), ("75%", 0.0)] {
            for (rtt, us) in [("2us", 2.0), ("5us", 5.0), ("20us", 20.0)] {
                for (bandwidth, factor) in [("10Gbps", 1.5), ("40Gbps", 1.0)] {
                    let settings = [("local", share), ("rtt", rtt), ("bandwidth", bandwidth)];
                    cells.push(cell(CellKind::Far, &settings, 1.001 + weight * us * factor));
                }
            }
        }
        of_cells(cells)
    }

    #[test]
    fn pictures_are_of_the_axes_that_have_several_values() {
        let context = Context { bound: 1.05, name: "x".to_owned() };
        let section = of(findings(), &context);
        let names: Vec<&str> = section.pictures.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "slowdown-rtt-local-1",
                "slowdown-rtt-local-2",
                "slowdown-local",
                "slowdown-rtt",
                "slowdown-bandwidth",
                "slowdown-rtt-bandwidth-1",
                "slowdown-rtt-bandwidth-2",
                "slowdown-rtt-bandwidth-3",
                "slowdown-bandwidth-local-1",
                "slowdown-bandwidth-local-2",
                "slowdown-bandwidth-local-3",
            ]
        );
        assert_eq!(section.title, "redis-server: slowdown with far memory");
        assert!(section.opens, "the first picture is the answer");
        let opening = section.pictures[0].chart.draw().svg;
        // 1.56 and 2.56 µs, 3.32 to 6.22 µs beside columns of 2, 5 and 20 µs.
        assert!(opening.contains(">1</text>") && opening.contains(">6</text>"), "{opening}");
        assert!(section.pictures[0].caption.contains("1: one rack, RDMA, network interface"));
        assert_eq!(section.pictures[0].table.rows.len(), 9);
        assert_eq!(section.figures.len(), 19);
        // With 25 % local, 2 µs at 40 Gb/s are within the bound and everything around is not.
        let drawn = section.pictures[5].chart.draw();
        assert_eq!(drawn.svg.matches("stroke-width=\"3\"").count(), 2 + 1, "{}", drawn.svg);
    }

    #[test]
    fn invalid_cells_are_told_and_a_sweep_of_nothing_else_has_no_answer() {
        let context = Context { bound: 1.05, name: "x".to_owned() };
        let invalidate = |all: bool| {
            let mut findings = findings();
            for cell in findings.cells.iter_mut().filter(|cell| cell.kind == CellKind::Far) {
                if all || cell.value("local") == "25%" {
                    (cell.slowdown, cell.verdict) = (None, Verdict::Invalid);
                    cell.invalid_count = 5;
                    cell.first_invalid = Some("invalid: it ran natively".to_owned());
                }
            }
            of(findings, &context).silenced()
        };
        let some = invalidate(false);
        assert!(some.invalid.is_none());
        let is_told = |warning: &String| warning.ends_with(": invalid: it ran natively");
        assert!(some.warnings.iter().any(is_told), "{:?}", some.warnings);
        let row = &some.pictures[0].table.rows[0];
        assert_eq!(row.last().map(String::as_str), Some("invalid: it ran natively"));
        let all = invalidate(true);
        assert_eq!(all.answer[0], "invalid: it ran natively.");
        assert!(all.pictures.is_empty() && all.figures.is_empty() && all.verdicts.is_none());
    }

    #[test]
    fn programs_are_called_as_people_call_them() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(program(&words("/usr/bin/redis-server --port 0"), ""), "redis-server");
        assert_eq!(program(&words("afar workload sql --query 3a"), ""), "afar workload sql");
        assert_eq!(program(&[], "x.json"), "the program of x.json");
    }
}
