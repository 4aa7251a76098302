//! The progress of a sweep's directory, for live views.

use experiment::journal::Header;
use results::CellKind as Kind;
use results::live::{CellProgress, Progress};

use super::file::{Metric, Sweep};
use super::matrix::Cell;
use super::row::Row;

/// The progress of a sweep, in total and by cell.
pub(crate) fn progress(header: &Header, sweep: &Sweep, rows: &[Row]) -> Progress {
    let is_far = |name: &String| Cell::named(name).is_some_and(|cell| cell.kind == Kind::Far);
    // A search runs other cells, and an unknown number of them.
    let is_matrix = header.cells.iter().any(is_far)
        && rows.iter().all(|row| row.block < sweep.repetitions && header.cells.contains(&row.cell));
    let runs_of = is_matrix.then_some(u64::from(sweep.repetitions));
    let mut names: Vec<&str> = Vec::new();
    let asked = header.cells.iter().filter(|_| is_matrix).map(String::as_str);
    for name in asked.chain(rows.iter().map(|row| row.cell.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Progress {
        run_count: rows.len() as u64,
        runs_of: runs_of.map(|count| count * names.len() as u64),
        metric: metric(&sweep.metric),
        cells: names.into_iter().map(|name| cell(name, runs_of, rows)).collect(),
    }
}

/// The name of the figure.
fn metric(metric: &Metric) -> String {
    metric
        .pattern
        .as_ref()
        .or(metric.json.as_ref())
        .map_or_else(|| "seconds".to_owned(), Clone::clone)
}

/// The progress of one cell.
fn cell(name: &str, runs_of: Option<u64>, rows: &[Row]) -> CellProgress {
    let mut cell = CellProgress::new(name, runs_of);
    for row in rows.iter().filter(|row| row.cell == name) {
        cell.add(row.value, row.trouble());
    }
    cell
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use measure::Host;

    const MATRIX: &str = "repetitions = 2\n[workload]\ncommand = [\"true\"]\n\
                          [matrix]\nlocal = [\"50%\"]\n";
    const FAR: &str = "local=50% of=peak";

    fn told(cells: &[&str], rows: &[Row]) -> Progress {
        let sweep = Sweep::of(MATRIX, Path::new("x")).expect("it is one");
        let header = Header {
            schema: String::new(),
            version: String::new(),
            command: Vec::new(),
            started_unix_ns: 0,
            seed: 1,
            host: Host::default(),
            experiment: MATRIX.to_owned(),
            cells: cells.iter().map(|&cell| cell.to_owned()).collect(),
            allow_unmanaged: false,
        };
        progress(&header, &sweep, rows)
    }

    fn row(block: u32, cell: &str, value: Option<f64>) -> Row {
        let failure = value.is_none().then(|| "it ended with status 1".to_owned());
        Row { block, cell: cell.to_owned(), value, failure, ..Row::default() }
    }

    #[test]
    fn cells_count_their_runs() {
        let rows = [row(0, "native", Some(2.0)), row(0, FAR, Some(3.0)), row(1, FAR, None)];
        let told = told(&["native", "zero", FAR], &rows);
        assert_eq!((told.run_count, told.runs_of), (3, Some(6)));
        let counts: Vec<_> = told.cells.iter().map(|one| (&*one.name, one.run_count)).collect();
        assert_eq!(counts, [("native", 1), ("zero", 0), (FAR, 2)]);
        let far = &told.cells[2];
        assert_eq!((far.last_value, far.trouble_count, far.runs_of), (Some(3.0), 1, Some(2)));
        assert_eq!(far.last_trouble.as_deref(), Some("it ended with status 1"));
    }

    #[test]
    fn a_search_has_no_end_that_is_known() {
        let rows = [row(0, "native", Some(2.0)), row(0, "local=25% of=peak", Some(3.0))];
        let told = told(&["native", "zero", FAR], &rows);
        assert_eq!((told.run_count, told.runs_of), (2, None));
        let names: Vec<_> = told.cells.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["native", "local=25% of=peak"], "nobody waits for the others");
    }
}
