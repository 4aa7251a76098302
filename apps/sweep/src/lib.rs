//! `afar sweep`: a matrix of runs, its findings, and the requirement finder.
//!
//! ```text
//! file ─► matrix ─► trial ─► journal ─► machines ─► findings ─► table, results::Findings
//!    │         find ─┘ ▲──────────────────┘  ▲
//!    └─► plan ─► dispatch ─► points of it ───┘
//! ```
//!
//! `afar run` and the native program run as processes. A sweep knows of far memory only through
//! flags and the `Run` record; intervals and verdicts are those of crate `experiment`.

mod error;
mod file;
mod find;
mod flags;
mod gate;
mod json;
mod machines;
mod matrix;
mod plan;
mod points;
mod programs;
mod progress;
mod row;
mod sweeping;
mod table;
mod time;
mod trial;
mod trouble;
mod whole;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use console::{Class, Failure, Output, Progress, terminal};
use dispatch::{Place, Points};
use experiment::journal::{self, Header, Journal};
use experiment::machine::{Measuring, class};
use results::live::SweepState;
use results::{CellKind as Kind, Findings, SWEEP_SCHEMA};

use console::machine;
pub use file::{Better, Sweep};
pub use flags::SweepFlags;
pub use matrix::Cell;
pub use points::points;
pub use row::Row;
use sys::event::Signals;
pub use table::slowdown;
pub use trial::{Trials, clear_scratch};
pub use trouble::NotKept;
pub use whole::{in_block, waits};

use error::SweepError;
use gate::{Closed, Gate};
use sweeping::{Stopped, Sweeping};

/// Runs `afar sweep`.
///
/// # Errors
/// When the experiment is invalid, or results cannot be written. A failed run is a result.
pub fn sweep(flags: &SweepFlags) -> Result<ExitCode, Failure> {
    let (sweep, text) = Sweep::read(&flags.experiment).map_err(SweepError::from)?;
    let bound = flags.find.as_deref().map(bound).transpose()?;
    let gate = flags.fail_above.as_deref().map(|text| Gate::new(text, sweep.repetitions));
    let gate = gate.transpose().map_err(SweepError::from)?;
    let mut cells = matrix::cells(&sweep);
    // The cell without huge pages is of no use in a search, or on a machine without huge pages.
    let has_huge_pages = bound.is_none() && sys::huge::may_be();
    cells.retain(|cell| cell.kind != Kind::Small || has_huge_pages);
    if bound.is_none() && cells.iter().all(|cell| cell.kind != Kind::Far) {
        return Err(SweepError::NoMatrix { path: flags.experiment.clone() }.into());
    }
    let directory = flags.output.clone().unwrap_or_else(|| beside(&flags.experiment));
    let header = Header { allow_unmanaged: flags.allow_unmanaged, ..header(&sweep, text, &cells) };
    if flags.dry_run {
        let known = directory.join(journal::HEADER).exists();
        let rows = if known { open(&directory, &header)?.rows } else { Vec::new() };
        terminal::answer(&match &flags.find {
            Some(bound) => plan::search(&sweep, bound, &rows),
            None => plan::matrix(&sweep, &cells, &rows),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let outputs = outputs(flags)?;
    terminal::detail(|| {
        let (of, cells) = (sweep.repetitions, cells.len());
        format!("{cells} cells, {of} runs of each; kept in {}", directory.display())
    });
    let signals = console::interrupts().map_err(SweepError::from)?;
    let (rows, answer) = match (&flags.on, bound) {
        (Place::Local, _) => here(flags, (&directory, &header), (&sweep, &cells), bound, &signals)?,
        (place, Some(_)) => return Err(SweepError::FindElsewhere(place.clone()).into()),
        (_, None) => elsewhere(flags, (&directory, &header), (&sweep, &cells), &signals)?,
    };
    let Some(answer) = answer else {
        terminal::say(&format!(
            "afar sweep: interrupted; {} kept in {}, and the same command goes on from there\n",
            if rows.len() == 1 {
                "1 run is".to_owned()
            } else {
                format!("{} runs are", rows.len())
            },
            directory.display()
        ));
        return Ok(Class::Interrupted.into());
    };
    let how = (outputs, gate.as_ref());
    answered(how, (&header, &sweep), &cells, rows, answer)
}

/// The result of a search as text and as JSON; `None` for a matrix, whose result follows from rows.
type Answer = Option<[String; 2]>;
/// All runs, and the answer; `None` if the user has interrupted the sweep.
type Ran = (Vec<Row>, Option<Answer>);

/// Runs the sweep on this machine, and keeps other measurements off it meanwhile.
fn here(
    flags: &SweepFlags,
    (directory, header): (&Path, &Header),
    (sweep, cells): (&Sweep, &[Cell]),
    bound: Option<f64>,
    signals: &Signals,
) -> Result<Ran, Failure> {
    if !directory.join(journal::HEADER).exists() {
        check_programs(flags, sweep)?;
    }
    let _measuring = Measuring::begin().map_err(SweepError::from)?;
    clear_scratch();
    let afar = launch::program();
    let allow_unmanaged = flags.allow_unmanaged;
    let journal = open(directory, header)?;
    if bound.is_none() {
        journal.plan(&points::plan(header, sweep, cells)).map_err(SweepError::from)?;
    } else {
        check_machines(directory, &journal.rows, &class(&header.host))?;
    }
    let mut run = Sweeping {
        trials: Trials { sweep, allow_unmanaged, afar, signals },
        header,
        looks: find::looks(sweep.repetitions),
        progress: shown(&journal, sweep, cells, bound.is_some()),
        journal,
        told: HashMap::new(),
    };
    let done = match bound {
        None => run.matrix(cells),
        Some(bound) => run.find(bound),
    };
    match done {
        Ok(found) => {
            // A copy in the directory of the sweep.
            if let Some([_, record]) = &found {
                Output::open(&directory.join(results::REQUIREMENTS_FILE))?.write(record)?;
            }
            Ok((run.journal.rows, Some(found)))
        }
        Err(Stopped::Failure(failure)) => Err(failure),
        Err(Stopped::Interrupted) => Ok((run.journal.rows, None)),
    }
}

/// The progress display; the number of runs of a search is not known.
fn shown(journal: &Journal<Row>, sweep: &Sweep, cells: &[Cell], is_search: bool) -> Progress {
    let runs = cells.len() * sweep.repetitions as usize;
    let mut progress = match is_search {
        true => Progress::without_end("run"),
        false => Progress::new("run", runs),
    };
    progress = progress.after(journal.rows.len());
    progress.expect(time::mean_s(&journal.rows));
    progress
}

/// Runs the sweep on other machines, through an engine such as Dask.
fn elsewhere(
    flags: &SweepFlags,
    (directory, header): (&Path, &Header),
    (sweep, cells): (&Sweep, &[Cell]),
    signals: &Signals,
) -> Result<Ran, Failure> {
    let mut journal = open(directory, header)?;
    let plan = points::plan(header, sweep, cells);
    journal.plan(&plan).map_err(SweepError::from)?;
    let (count, jobs, are_measured) = (plan.len(), None, true);
    let points = Points { place: &flags.on, directory, count, jobs, are_measured };
    let progress = Progress::new("run", count).after(journal.rows.len());
    let is_whole = dispatch::send(&points, signals, progress).map_err(SweepError::from)?;
    journal.read_on().map_err(SweepError::from)?;
    Ok((journal.rows, is_whole.then_some(None)))
}

/// Checks before the first run that the programs of the experiment exist.
fn check_programs(flags: &SweepFlags, sweep: &Sweep) -> Result<(), SweepError> {
    programs::missing(sweep).map_or(Ok(()), |(key, name)| {
        let (path, name) = (flags.experiment.clone(), name.to_owned());
        Err(SweepError::NoProgram { path, key, name })
    })
}

/// Checks that all runs of a search are from machines of this one's class, because it compares
/// them.
fn check_machines(directory: &Path, rows: &[Row], own: &str) -> Result<(), SweepError> {
    let mut classes = rows.iter().filter_map(|row| row.host_class.as_deref());
    let other = classes.find(|class| *class != own).map(str::to_owned);
    other.map_or(Ok(()), |class| {
        let (path, own) = (directory.to_owned(), own.to_owned());
        Err(SweepError::OtherMachine { path, class, own })
    })
}

// The outputs for JSON and CSV; `None` if not requested.
fn outputs(flags: &SweepFlags) -> Result<[Option<Output>; 2], Failure> {
    let outputs = [&flags.json, &flags.csv].map(|path| Output::wanted(path.as_deref()));
    let [json, csv] = outputs;
    Ok([json?, csv?])
}

// Prints the result of a search or a matrix. Returns the exit status.
fn answered(
    ([json, csv], gate): ([Option<Output>; 2], Option<&Gate>),
    (header, sweep): (&Header, &Sweep),
    cells: &[Cell],
    mut rows: Vec<Row>,
    answer: Answer,
) -> Result<ExitCode, Failure> {
    // Sorted, so that the output does not depend on the order of runs.
    rows.sort_by(|one, other| (one.block, &one.cell).cmp(&(other.block, &other.cell)));
    let rows = &rows;
    let groups = machines::groups(sweep, cells, rows, &class(&header.host));
    let text = machines::text(&groups);
    let (native, findings) = machines::together(groups);
    let [text, record] = answer.unwrap_or_else(|| {
        let record = json::findings(header, sweep, native, findings.clone());
        [text, results::write(&record)]
    });
    let (as_json, as_csv) = (|| record.clone(), || table::csv(&findings));
    console::answer(|| text, vec![(json, &as_json), (csv, &as_csv)])?;
    if let Some(disturbed) = disturbed(rows) {
        terminal::note(&disturbed);
    }
    ended(rows, gate.and_then(|gate| gate.closed(&findings)))
}

// The exit status: a cell above the bound comes first, then invalid and failed runs, then undecided
// cells.
fn ended(rows: &[Row], closed: Option<Closed>) -> Result<ExitCode, Failure> {
    if let Some(above @ Closed::Above { .. }) = closed {
        return Err(above.into());
    }
    let is_invalid = rows.iter().any(|row| row.invalid.is_some());
    if is_invalid || rows.iter().any(|row| row.value.is_none()) {
        let class = if is_invalid { Class::Invalid } else { Class::Failed };
        return Ok(class.into());
    }
    closed.map_or(Ok(ExitCode::SUCCESS), |open| Err(open.into()))
}

/// The findings of a sweep's directory, as of `afar sweep --json`: every cell that has run,
/// including those that only --find has run.
///
/// # Errors
/// When the directory is not that of a sweep; the error is a sentence.
pub fn findings_of(directory: &Path) -> Result<Findings, String> {
    let (header, sweep, rows) = read(directory).map_err(|error| error.to_string())?;
    Ok(findings(&header, &sweep, &rows))
}

/// The progress and the findings so far of a sweep's directory.
///
/// # Errors
/// When the directory is not that of a sweep; the error is a sentence.
pub fn state_of(directory: &Path) -> Result<SweepState, String> {
    let (header, sweep, rows) = read(directory).map_err(|error| error.to_string())?;
    let progress = progress::progress(&header, &sweep, &rows);
    Ok(SweepState { progress, findings: Some(findings(&header, &sweep, &rows)) })
}

/// Reads the header, the experiment and all runs of a sweep's directory.
fn read(directory: &Path) -> Result<(Header, Sweep, Vec<Row>), SweepError> {
    let (header, rows) = journal::read::<Row>(directory)?;
    let sweep = Sweep::of(&header.experiment, &directory.join(journal::HEADER))?;
    Ok((header, sweep, rows))
}

/// The findings of every cell that has run.
fn findings(header: &Header, sweep: &Sweep, rows: &[Row]) -> Findings {
    let mut cells = matrix::cells(sweep);
    for row in rows {
        if let Some(cell) = Cell::named(&row.cell).filter(|cell| !cells.contains(cell)) {
            cells.push(cell);
        }
    }
    cells.retain(|cell| rows.iter().any(|row| row.cell == cell.name()));
    let groups = machines::groups(sweep, &cells, rows, &class(&header.host));
    let (native, findings) = machines::together(groups);
    json::findings(header, sweep, native, findings)
}

/// Opens or creates the journal in a sweep's directory.
fn open(directory: &Path, header: &Header) -> Result<Journal<Row>, SweepError> {
    Ok(Journal::open(directory, header)?)
}

/// The value of `--find` as a ratio of run times.
fn bound(text: &str) -> Result<f64, SweepError> {
    gate::share(text).ok_or_else(|| SweepError::Bound(text.to_owned()))
}

// The default directory of results: `experiment.sweep` for `experiment.toml`.
fn beside(experiment: &Path) -> PathBuf {
    experiment.with_extension("sweep")
}

/// The header of the journal of a new sweep.
fn header(sweep: &Sweep, experiment: String, cells: &[Cell]) -> Header {
    Header {
        schema: SWEEP_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns: sys::clock::unix_ns(),
        seed: sweep.seed,
        host: machine::describe(),
        experiment: experiment + &marks(sweep),
        cells: cells.iter().map(Cell::name).collect(),
        allow_unmanaged: false,
    }
}

// Comments for the experiment's text that mark the contents of its profile files.
fn marks(sweep: &Sweep) -> String {
    let profiles = sweep.matrix.axis("profile").iter();
    let mark = |path: &String| journal::mark(Path::new(path)).unwrap_or_default();
    profiles.map(|path| format!("\n# {path:?} has the bytes of {}\n", mark(path))).collect()
}

// A note on disturbed and repeated runs; `None` if there are none.
fn disturbed(rows: &[Row]) -> Option<String> {
    let repeated = rows.iter().filter(|row| row.repeated_count > 0).count();
    let first = rows.iter().find_map(|row| row.disturbed.as_ref());
    let disturbed = rows.iter().filter(|row| row.disturbed.is_some()).count();
    let all = rows.len();
    match first {
        Some(why) => Some(format!(
            "afar sweep: {disturbed} of {all} runs were disturbed, the first because {why}; \
             nothing is concluded from them beside undisturbed ones: run it on a quiet machine\n"
        )),
        None if repeated > 0 => Some(format!(
            "afar sweep: {repeated} of {all} runs were repeated because the machine had other \
             work; those kept were not disturbed\n"
        )),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_shares() {
        assert_eq!(bound("5%").ok(), Some(1.05));
        assert_eq!(bound("150 %").ok(), Some(2.5));
        for wrong in ["5", "0%", "-1%", "x%", "%"] {
            assert!(bound(wrong).is_err(), "{wrong}");
        }
    }
}
