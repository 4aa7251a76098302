//! Slowdown curves as `afar sweep` writes them: its record (`--json`) or its table (`--csv`); or as
//! `afar predict --json` does.
//!
//! Where a slowdown has an interval, its upper end counts: a bound is a promise.

use std::path::Path;

use document::DocumentError;
use planner::pool::Curve;
use results::{CellKind, Estimate, Finding, Findings, Verdict};

use super::predicted::{self, Point, is_same};
use document::Source;
use document::csv::rows;

/// Reads the curve of the cells in which axes have the values of `held`.
///
/// # Errors
/// If there is no such curve, or several.
pub(super) fn read(path: &Path, held: &[(&str, &str)]) -> Result<Curve, DocumentError> {
    let source = Source::read(path)?;
    let is_json = source.text.trim_start().starts_with('{');
    let points = match predicted::read(&source) {
        Ok(record) => predicted::points(&source, &record),
        Err(_) if is_json => of_record(&source),
        Err(_) => of_table(&source),
    };
    of(&source, points?, held)
}

/// A share of memory, as a percentage or a number up to 1.
///
/// # Errors
/// A message, if `text` is no share.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("\"{text}\": a share is from 0% to 100%; write e.g. 50%"))
}

/// The curve of the points in which axes have the values of `held`.
///
/// # Errors
/// As [`read`].
pub(super) fn of(
    source: &Source,
    all: Vec<Point>,
    held: &[(&str, &str)],
) -> Result<Curve, DocumentError> {
    let wrong = |at: usize, message: String| source.wrong(&(at..at), message);
    let holds = |point: &Point| {
        held.iter().all(|(axis, value)| {
            point
                .axes
                .iter()
                .any(|(name, found)| name == axis && is_same(axis, found, value.trim()))
        })
    };
    let points: Vec<Point> = all.into_iter().filter(holds).collect();
    let mut read: Vec<(f64, f64)> = Vec::new();
    for point in &points {
        let local = share(&point.local).map_err(|message| wrong(point.at, message))?;
        if let Some(other) =
            points.iter().find(|one| one.local == point.local && !std::ptr::eq(*one, point))
        {
            let axis = point.axes.iter().find(|one| !other.axes.contains(one));
            let (axis, value) = axis.map_or(("an axis", ""), |(axis, value)| (axis, value));
            let message = format!(
                "there are several curves, which differ in {axis}; choose one, such as where = \
                 [\"{axis}={value}\"] (--network {axis}={value})"
            );
            return Err(wrong(point.at, message));
        }
        read.push((local, point.slowdown));
    }
    if read.is_empty() {
        let message = match held {
            [] => "there is no run with memory far away in it; sweep local".to_owned(),
            _ => "there is no run with what where says; give values that were swept".to_owned(),
        };
        return Err(wrong(0, message));
    }
    Curve::new(read).map_err(|error| wrong(0, error.to_string()))
}

/// The points in a record of `afar sweep --json`.
fn of_record(source: &Source) -> Result<Vec<Point>, DocumentError> {
    let record: Findings = results::read(&source.text).map_err(|error| DocumentError::At {
        place: source.name.clone(),
        message: format!("{error}; give what afar sweep --json or afar predict --json has written"),
    })?;
    let mut points = Vec::new();
    for cell in &record.cells {
        let (CellKind::Far, Some(slowdown)) = (cell.kind, cell.slowdown) else { continue };
        let Some(local) = cell.settings.get("local") else { continue };
        let axes = cell.settings.iter().filter(|(name, _)| *name != "local");
        let axes = axes.map(|(name, value)| (name.clone(), value.clone())).collect();
        let slowdown = vouched(cell, slowdown).map_err(|why| source.wrong(&(0..0), why))?;
        points.push(Point { at: 0, local: local.clone(), axes, slowdown });
    }
    Ok(points)
}

// The upper end of a slowdown's interval; an error if it has none, is disturbed or implausible.
fn vouched(cell: &Finding, slowdown: Estimate) -> Result<f64, String> {
    let settings = cell.settings.iter().map(|(axis, value)| format!("{axis}={value}"));
    let name = settings.collect::<Vec<_>>().join(" ");
    if let Verdict::Disturbed | Verdict::Implausible = cell.verdict {
        let why = cell.verdict.words();
        return Err(format!("the slowdown of {name} is {why}; run it again on a quiet machine"));
    }
    slowdown.ends().map(|(_, high)| high).ok_or_else(|| {
        let count = slowdown.count;
        format!("the slowdown of {name} has {count} runs, too few for an interval: repeat 5 times")
    })
}

/// The points in a table of `afar sweep --csv`.
fn of_table(source: &Source) -> Result<Vec<Point>, DocumentError> {
    let mut rows = rows(&source.text);
    let header = rows.next().unwrap_or_default();
    let header: Vec<&str> = header.cells().map(|(_, name)| name).collect();
    let column = |name: &str| header.iter().position(|one| *one == name);
    let (Some(local), Some(median)) = (column("local"), column("slowdown")) else {
        let message = "there are no columns local and slowdown; name them in the first line";
        return Err(source.wrong(&(0..0), message));
    };
    // Columns of a sweep's table that are no axes.
    let figures = [
        "cell",
        "local",
        "slowdown",
        "low",
        "high",
        "level",
        "count",
        "verdict",
        "beside_zero",
        "failed",
        "invalid",
        "disturbed",
        "allowed",
        "outliers",
        "fetches",
        "budget_exceeded",
    ];
    let mut points = Vec::new();
    for row in rows {
        let found: Vec<(usize, &str)> = row.cells().collect();
        if found.len() != header.len() {
            let message = format!("a row has {} cells, as the first line has", header.len());
            return Err(source.wrong(&(row.at..row.at), message));
        }
        let is_far = column("cell").is_none_or(|cell| found[cell].1 == "far");
        if !is_far || found[median].1.is_empty() {
            continue;
        }
        if let Some((at, verdict)) = column("verdict").map(|verdict| found[verdict])
            && ["disturbed", "implausible"].iter().any(|word| verdict.starts_with(word))
        {
            let message = format!("this slowdown is {verdict}; run it again on a quiet machine");
            return Err(source.wrong(&(at..at), message));
        }
        let (at, text) = found[column("high").unwrap_or(median)];
        if text.is_empty() {
            let message = "this slowdown has no interval: repeat its runs 5 times".to_owned();
            return Err(source.wrong(&(at..at), message));
        }
        let slowdown = text.parse().map_err(|_| {
            let message = format!("\"{text}\": a slowdown is a number; write e.g. 1.05");
            source.wrong(&(at..at), message)
        })?;
        let axes = header.iter().zip(&found).filter(|(name, _)| !figures.contains(name));
        let axes = axes.map(|(name, (_, value))| ((*name).to_owned(), (*value).to_owned()));
        let (at, local) = found[local];
        points.push(Point { at, local: local.to_owned(), axes: axes.collect(), slowdown });
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use measure::Host;
    use results::Interval;

    use super::*;

    fn table(text: &str, held: &[(&str, &str)]) -> Result<u64, String> {
        let source = Source { name: "s.csv".to_owned(), text: text.to_owned() };
        let curve = of_table(&source).and_then(|points| of(&source, points, held));
        curve.map(|curve| curve.least_ppm(0.1)).map_err(|error| error.to_string())
    }

    #[test]
    fn tables_of_sweeps_are_curves() {
        assert_eq!(table("local,slowdown\n50%,1.1\n25%,1.3\n", &[]), Ok(500_000));
        let sweep = "cell,rtt,local,slowdown,low,high,count\nnative,,,1,1,1,5\n\
                     far,5us,50%,1.05,1.0,1.1,5\nfar,5us,25%,1.3,1.2,1.5,5\n\
                     far,9us,50%,1.2,1.2,1.3,5\nfar,5us,10%,,,,0\n";
        assert_eq!(table(sweep, &[("rtt", "5us")]), Ok(500_000));
        let quoted = "cell,env,local,slowdown\nfar,\"A=1,B=2\",50%,1.1\nfar,\"A=1,B=2\",25%,1.3\n";
        assert_eq!(table(quoted, &[("env", "A=1,B=2")]), Ok(500_000));
        let several = table(sweep, &[]).expect_err("there are two");
        assert!(several.contains("s.csv:3:9: there are several curves, which differ in rtt"));
        assert!(table(sweep, &[("rtt", "7us")]).expect_err("none").contains("where says"));
        assert!(table("a,b\n", &[]).expect_err("none").contains("no columns local and slowdown"));
        assert!(table("local,slowdown\n1GiB,1\n", &[]).expect_err("none").contains("s.csv:2:1:"));
        assert!(table("local,slowdown\n50%,x\n", &[]).expect_err("none").contains("s.csv:2:5:"));
        assert!(table("local,slowdown\n50%,nan\n", &[]).expect_err("none").contains("slowdowns"));
    }

    #[test]
    fn records_of_sweeps_are_curves() {
        let cell = |local: &str, slowdown| {
            let settings = [("local", local), ("rtt", "5us")];
            let owned = settings.map(|(axis, value)| (axis.to_owned(), value.to_owned()));
            Finding { slowdown, ..Finding::new(CellKind::Far, owned.into()) }
        };
        let interval = Some(Interval { low: 1.0, high: 1.1, level: 0.94 });
        let sure = Estimate { median: 1.0, interval, count: 5 };
        let cells = vec![cell("50%", Some(sure)), cell("25%", None)];
        let record = |cells| Findings {
            version: String::new(),
            command: Vec::new(),
            started_unix_ns: 0,
            host: Host::default(),
            workload: Vec::new(),
            native: None,
            cells,
        };
        let text = results::write(&record(cells));
        let source = Source { name: "s.json".to_owned(), text: text.to_owned() };
        let points = of_record(&source).expect("it is one");
        let curve = of(&source, points, &[]).expect("it is one");
        assert_eq!(curve.least_ppm(0.1), 500_000);
        let few = Estimate { interval: None, count: 2, ..sure };
        let doubtful = Finding { verdict: Verdict::Disturbed, ..cell("50%", Some(sure)) };
        for (cell, why) in [(cell("50%", Some(few)), "has 2 runs"), (doubtful, "disturbed")] {
            let text = results::write(&record(vec![cell]));
            let source = Source { name: "s.json".to_owned(), text };
            let error = of_record(&source).expect_err("nothing to build on").to_string();
            assert!(error.contains(why), "{error}");
        }
        let other = Source { text: "{}".to_owned(), ..source };
        assert!(of_record(&other).expect_err("it is none").to_string().contains("no record of a"));
    }
}
