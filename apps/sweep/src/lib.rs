//! `afar sweep`: a matrix of runs, what it shows, and the requirement finder.
//!
//! ```text
//! file ─► matrix ─► trial ─► journal ─► findings ─► table, results::Findings
//!              find ─┘ ▲──────────────────┘
//! ```
//!
//! `afar run` and the native program run as processes. A sweep knows of far memory only through
//! flags and the `Run` record; intervals and verdicts are those of crate `experiment`.

mod file;
mod find;
mod flags;
mod gate;
mod json;
mod matrix;
mod plan;
mod progress;
mod row;
mod table;
mod time;
mod trial;
mod trouble;
mod whole;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use console::{Class, Classed, Failure, Line, Output, terminal};
use experiment::journal::{self, Header, Journal};
use experiment::{Looks, stats};
use results::live::SweepState;
use results::{CellKind as Kind, Findings, SWEEP_SCHEMA};

use console::machine;
pub use file::{Better, Sweep};
pub use flags::SweepFlags;
pub use matrix::Cell;
pub use row::Row;
pub use table::slowdown;
pub use trial::{Trials, clear_scratch};
pub use trouble::NotKept;
pub use whole::{in_block, waits};

use find::{Edge, Requirement};
use gate::{Closed, Gate, GateError};
use time::{clock, mean_s};

pub(crate) use experiment::journal::JournalError;
pub(crate) use file::FileError;

/// Why there is no sweep.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SweepError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{0}")]
    Start(#[from] sys::Error),
    #[error("--json - and --csv -: give one of them a file; only one can be on standard output")]
    TwoAnswers,
    #[error("--find {0}: give a share above 0, such as 5%")]
    Bound(String),
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error("{}: matrix has no values; give some, or use --find", path.display())]
    NoMatrix { path: PathBuf },
}

impl Classed for SweepError {
    fn class(&self) -> Class {
        match self {
            Self::Start(_) => Class::Failed,
            _ => Class::Usage,
        }
    }
}

/// Runs `afar sweep`.
///
/// # Errors
/// When the experiment cannot be, or its results cannot be kept. Runs that fail are results.
pub fn sweep(flags: &SweepFlags) -> Result<ExitCode, Failure> {
    let (sweep, text) = Sweep::read(&flags.experiment).map_err(SweepError::from)?;
    let bound = flags.find.as_deref().map(bound).transpose()?;
    let gate = flags.fail_above.as_deref().map(|text| Gate::new(text, sweep.repetitions));
    let gate = gate.transpose().map_err(SweepError::from)?;
    let mut cells = matrix::cells(&sweep);
    // Where there are none, and in a search, it would say nothing.
    let has_huge_pages = bound.is_none() && sys::huge::may_be();
    cells.retain(|cell| cell.kind != Kind::Small || has_huge_pages);
    if bound.is_none() && cells.iter().all(|cell| cell.kind != Kind::Far) {
        return Err(SweepError::NoMatrix { path: flags.experiment.clone() }.into());
    }
    let directory = flags.output.clone().unwrap_or_else(|| beside(&flags.experiment));
    let header = Header { allow_unmanaged: flags.allow_unmanaged, ..header(&sweep, text, &cells) };
    if flags.print {
        let known = directory.join("sweep.json").exists();
        let rows = if known { open(&directory, &header)?.rows } else { Vec::new() };
        terminal::answer(&match &flags.find {
            Some(bound) => plan::search(&sweep, bound, &rows),
            None => plan::matrix(&sweep, &cells, &rows),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let outputs = outputs(flags)?;
    let signals = console::interrupts().map_err(SweepError::from)?;
    let afar = launch::program();
    clear_scratch();
    let mut run = Sweeping {
        trials: Trials {
            sweep: &sweep,
            allow_unmanaged: flags.allow_unmanaged,
            afar,
            signals: &signals,
        },
        header: &header,
        journal: open(&directory, &header)?,
        looks: find::looks(sweep.repetitions),
        line: if flags.quiet { None } else { Line::if_watched() },
        quiet: flags.quiet,
    };
    let done = match bound {
        None => run.matrix(&cells),
        Some(bound) => run.find(bound),
    };
    run.line = None;
    let answer = match done {
        Ok(found) => found,
        Err(Stopped::Failure(failure)) => return Err(failure),
        Err(Stopped::Interrupted) => {
            terminal::say(&format!(
                "afar sweep: interrupted; {} runs are kept in {}, and the same command goes on \
                 from there\n",
                run.journal.rows.len(),
                directory.display()
            ));
            return Ok(Class::Interrupted.into());
        }
    };
    let how = (flags, outputs, gate.as_ref());
    answered(how, (&header, &sweep), &cells, &run.journal.rows, answer)
}

// Where JSON and CSV go, if they are wanted.
fn outputs(flags: &SweepFlags) -> Result<[Option<Output>; 2], Failure> {
    let outputs = [&flags.json, &flags.csv].map(|path| Output::wanted(path.as_deref()));
    let [json, csv] = outputs;
    let outputs = [json?, csv?];
    match outputs.iter().flatten().filter(|output| output.is_stdout()).count() {
        2 => Err(SweepError::TwoAnswers.into()),
        _ => Ok(outputs),
    }
}

// Prints the answer of a search, or that of the matrix, and says how the runs ended.
fn answered(
    (flags, [json, csv], gate): (&SweepFlags, [Option<Output>; 2], Option<&Gate>),
    (header, sweep): (&Header, &Sweep),
    cells: &[Cell],
    rows: &[Row],
    answer: Option<[String; 2]>,
) -> Result<ExitCode, Failure> {
    let findings = table::findings(cells, rows, sweep.metric.better);
    let native = table::native(rows, &sweep.metric);
    let [text, record] = answer.unwrap_or_else(|| {
        let text = table::text(native.as_ref(), &findings);
        let record = json::findings(header, sweep, native, findings.clone());
        [text, results::write(&record)]
    });
    let (as_json, as_csv) = (|| record.clone(), || table::csv(&findings));
    console::answer(|| text, vec![(json, &as_json), (csv, &as_csv)])?;
    if let Some(disturbed) = disturbed(rows).filter(|_| !flags.quiet) {
        terminal::say(&disturbed);
    }
    ended(rows, gate.and_then(|gate| gate.closed(&findings)))
}

// What is slower for sure is so whatever the other runs came to; what is not decided comes last.
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

/// What the runs in the directory of a sweep say, as `afar sweep --json` has it: every cell that
/// has run, those that only --find has tried as well.
///
/// # Errors
/// A sentence, when the directory is not that of a sweep.
pub fn findings_of(directory: &Path) -> Result<Findings, String> {
    let (header, sweep, rows) = read(directory).map_err(|error| error.to_string())?;
    Ok(findings(&header, &sweep, &rows))
}

/// How far the sweep in a directory has come, and what its runs say so far.
///
/// # Errors
/// A sentence, when the directory is not that of a sweep.
pub fn state_of(directory: &Path) -> Result<SweepState, String> {
    let (header, sweep, rows) = read(directory).map_err(|error| error.to_string())?;
    let progress = progress::progress(&header, &sweep, &rows);
    Ok(SweepState { progress, findings: Some(findings(&header, &sweep, &rows)) })
}

fn read(directory: &Path) -> Result<(Header, Sweep, Vec<Row>), SweepError> {
    let (header, rows) = journal::read::<Row>(directory)?;
    let sweep = Sweep::of(&header.experiment, &directory.join("sweep.json"))?;
    Ok((header, sweep, rows))
}

fn findings(header: &Header, sweep: &Sweep, rows: &[Row]) -> Findings {
    let mut cells = matrix::cells(sweep);
    for row in rows {
        if let Some(cell) = Cell::named(&row.cell).filter(|cell| !cells.contains(cell)) {
            cells.push(cell);
        }
    }
    cells.retain(|cell| rows.iter().any(|row| row.cell == cell.name()));
    let findings = table::findings(&cells, rows, sweep.metric.better);
    json::findings(header, sweep, table::native(rows, &sweep.metric), findings)
}

fn open(directory: &Path, header: &Header) -> Result<Journal<Row>, SweepError> {
    Ok(Journal::open(directory, header)?)
}

fn bound(text: &str) -> Result<f64, SweepError> {
    gate::share(text).ok_or_else(|| SweepError::Bound(text.to_owned()))
}

// `experiment.toml` keeps its results in `experiment.sweep`.
fn beside(experiment: &Path) -> PathBuf {
    experiment.with_extension("sweep")
}

fn header(sweep: &Sweep, experiment: String, cells: &[Cell]) -> Header {
    Header {
        schema: SWEEP_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns: sys::clock::unix_ns(),
        seed: sweep.seed,
        host: machine::describe(),
        experiment,
        cells: cells.iter().map(Cell::name).collect(),
        allow_unmanaged: false,
    }
}

// What else the machine did, if that is worth a line.
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

enum Stopped {
    Interrupted,
    Failure(Failure),
}

impl From<NotKept> for Stopped {
    fn from(why: NotKept) -> Self {
        match why {
            NotKept::Interrupted => Self::Interrupted,
            NotKept::Journal(error) => Self::Failure(SweepError::from(error).into()),
        }
    }
}

/// Blocks of one confirmation: more than there are repetitions.
const CONFIRMING: u32 = 100_000;

struct Sweeping<'a> {
    trials: Trials<'a>,
    header: &'a Header,
    journal: Journal<Row>,
    /// When a step of the search is looked at.
    looks: Looks,
    line: Option<Line>,
    quiet: bool,
}

impl Sweeping<'_> {
    fn matrix(&mut self, cells: &[Cell]) -> Result<Option<[String; 2]>, Stopped> {
        let sweep = self.trials.sweep;
        let runs = cells.len() * sweep.repetitions as usize;
        for block in 0..sweep.repetitions {
            for index in self.in_block(cells, block) {
                let left = runs.saturating_sub(self.journal.rows.len());
                self.show(&cells[index], block, left);
                self.once(&cells[index], block)?;
            }
        }
        Ok(None)
    }

    // What was found, as text and as JSON.
    fn find(&mut self, bound: f64) -> Result<Option<[String; 2]>, Stopped> {
        let sweep = self.trials.sweep;
        let mut found = Vec::new();
        for (number, axis) in (0..).zip(find::SEARCHED) {
            let steps = find::steps(sweep, axis);
            found.push(match find::search(steps, bound, |value| self.step(axis, value, bound))? {
                Edge::At(edge) => self.confirm((number, axis), edge, bound)?,
                Edge::Invalid(value, why) => Requirement::invalid(axis, (value, why)),
            });
        }
        let of_bytes = self.journal.rows.iter().find_map(|row| row.of_bytes);
        let record = json::requirements(self.header, sweep, (bound, of_bytes), &found);
        let text = find::text(sweep, (bound, of_bytes), &found);
        Ok(Some([text, results::write(&record)]))
    }

    // Runs both sides of an edge again, and moves it until they lie on both sides of the bound.
    fn confirm(
        &mut self,
        (number, axis): (u32, &'static str),
        edge: usize,
        bound: f64,
    ) -> Result<Requirement, Stopped> {
        let sweep = self.trials.sweep;
        let steps = find::steps(sweep, axis);
        let mut edge = edge;
        let mut found = Requirement::new(axis);
        for turn in 0..find::MOVES {
            // Those of the search come before.
            let first = CONFIRMING * (1 + number * find::MOVES + turn);
            let good = edge.checked_sub(1).map(|index| &steps[index]);
            let sides: Vec<&String> = good.into_iter().chain(steps.get(edge)).collect();
            let cells: Vec<Cell> =
                sides.iter().map(|value| find::cell(sweep, axis, value)).collect();
            self.run_sides(&cells, first, bound)?;
            let blocks = || first..first + CONFIRMING;
            let judged: Vec<find::Step> =
                cells.iter().map(|cell| self.judge(cell, blocks(), bound).settled(bound)).collect();
            let invalid = sides
                .iter()
                .zip(&judged)
                .find_map(|(value, step)| Some(((*value).clone(), step.invalid.clone()?)));
            if let Some(step) = invalid {
                return Ok(Requirement::invalid(axis, step));
            }
            let mut judged = judged.into_iter();
            let good = good.map(|value| (value.clone(), judged.next()));
            let bad = steps.get(edge).map(|value| (value.clone(), judged.next()));
            let step = |side: Option<(String, Option<find::Step>)>| {
                side.and_then(|(value, step)| Some((value, step?)))
            };
            (found.good, found.bad) = (step(good), step(bad));
            let [good, bad] = [&found.good, &found.bad].map(|side| side.as_ref());
            let (good, bad) = (good.map(|side| &side.1), bad.map(|side| &side.1));
            match find::moved(edge, good, bad, bound) {
                None => {
                    found.standing = find::standing(good, bad, bound);
                    break;
                }
                Some(next) => edge = next,
            }
        }
        Ok(found)
    }

    // Runs cells beside the native one, in blocks from `first` on, until each can be judged.
    fn run_sides(&mut self, cells: &[Cell], first: u32, bound: f64) -> Result<(), Stopped> {
        let sweep = self.trials.sweep;
        let waiting = cells.iter().filter(|cell| waits(cell, &self.journal.rows));
        let mut zeros: Vec<Cell> = waiting.map(Cell::zero_of).collect();
        zeros.dedup();
        let all: Vec<Cell> = [Cell::NATIVE].iter().chain(&zeros).chain(cells).cloned().collect();
        for turn in 0..sweep.repetitions * find::PATIENCE {
            let blocks = first..first + CONFIRMING;
            let unsure = |cell: &Cell| self.judge(cell, blocks.clone(), bound).is_unsure(bound);
            if turn >= sweep.repetitions && !cells.iter().any(unsure) {
                break;
            }
            let block = first + turn;
            for index in self.in_block(&all, block) {
                self.show(&all[index], block, 0);
                self.once(&all[index], block)?;
            }
        }
        Ok(())
    }

    // Runs a step until it can be told on which side of the bound it is.
    fn step(&mut self, axis: &'static str, value: &str, bound: f64) -> Result<find::Step, Stopped> {
        let sweep = self.trials.sweep;
        let cell = find::cell(sweep, axis, value);
        for block in 0..sweep.repetitions * find::PATIENCE {
            let is_unsure = self.judge(&cell, 0..CONFIRMING, bound).is_unsure(bound);
            if block >= sweep.repetitions && !is_unsure {
                break;
            }
            self.show(&cell, block, 0);
            self.once(&Cell::NATIVE, block)?;
            if waits(&cell, &self.journal.rows) {
                self.once(&cell.zero_of(), block)?;
            }
            self.once(&cell, block)?;
        }
        Ok(self.judge(&cell, 0..CONFIRMING, bound).settled(bound))
    }

    // By the runs of these blocks.
    fn judge(&self, cell: &Cell, blocks: std::ops::Range<u32>, bound: f64) -> find::Step {
        let rows = self.journal.rows.iter().filter(|row| blocks.contains(&row.block));
        let rows: Vec<Row> = rows.cloned().collect();
        let estimate = |values: &[f64]| stats::estimate_at(values, &self.looks);
        let better = self.trials.sweep.metric.better;
        find::Step::of(&table::finding(cell, &rows, better, estimate), bound)
    }

    fn in_block(&self, cells: &[Cell], block: u32) -> Vec<usize> {
        let at = |index: usize| (&cells[index], self.journal.rows.as_slice());
        in_block(cells.len(), (self.trials.sweep.seed, block), at)
    }

    fn once(&mut self, cell: &Cell, block: u32) -> Result<(), Stopped> {
        let trouble = self.trials.keep(cell, block, &mut self.journal)?;
        if let Some(why) = trouble.filter(|_| !self.quiet) {
            let (name, block) = (cell.name(), block + 1);
            terminal::say(&format!("afar sweep: {name}, block {block}: {why}\n"));
        }
        Ok(())
    }

    fn show(&mut self, cell: &Cell, block: u32, left: usize) {
        let Some(line) = &mut self.line else { return };
        let time = mean_s(&self.journal.rows).filter(|_| left > 0);
        let time =
            time.map_or_else(String::new, |mean| format!("  {} left", clock(mean * left as f64)));
        let done = self.journal.rows.len();
        let all = if left > 0 { format!(" of {}", done + left) } else { String::new() };
        let (run, block) = (done + 1, block + 1);
        line.draw(&format!("afar  run {run}{all}  block {block}  {}{time}", cell.name()));
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
