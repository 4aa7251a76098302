//! Runs programs with far memory, each in many cells, as `afar sweep` does. Figures share runs.
//!
//! ```text
//! programs × cells ─► blocks, shuffled ─► missing runs ─► trial ─► journal ─► Outcome
//! ```
//!
//! Journals are beside the pictures. So a figure that was interrupted continues, having lost only
//! the current run, and a figure finds the runs of another one.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use console::{Progress, terminal};
use experiment::journal::{Header, Journal};
use experiment::machine::{Measuring, class};
use experiment::stats;
use measure::Host;
use results::CellKind as Kind;
use serde_json::{Value, json};
use sys::event::Signals;

use super::ReproduceError;
use crate::flags::Options;
use console::machine;
use results::SWEEP_SCHEMA;
use results::validity::ALLOWED;
use sweep::{Better, Cell, NotKept, Row, Sweep, Trials, in_block, slowdown};

/// Seed of the orders within blocks.
const SEED: u64 = 1;
/// Blocks without `--quick` of a figure that takes minutes.
pub(super) const BLOCKS: u32 = 3;
/// With `--quick` no run begins after this time.
const QUICK: Duration = Duration::from_secs(95);

/// A program and the cells that a figure needs.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Its name, also that of its journal.
    pub(super) name: &'static str,
    /// The text of an experiment of `afar sweep`, without repetitions and matrix.
    pub(super) experiment: String,
    pub(super) cells: Vec<Cell>,
}

/// The runs of one program, by this command and by earlier ones.
#[derive(Debug, Clone)]
pub(super) struct Runs {
    pub(super) name: &'static str,
    better: Better,
    pub(super) rows: Vec<Row>,
}

/// The runs of all programs.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) runs: Vec<Runs>,
    pub(super) is_interrupted: bool,
    directory: PathBuf,
    repetitions: u32,
    /// How many runs the figure needs,
    all: usize,
    /// how many of them existed before,
    before: usize,
    /// and how many were left out for lack of time.
    left: usize,
}

/// A cell with far memory.
pub(super) fn far(settings: &[(&'static str, &str)]) -> Cell {
    let settings = settings.iter().map(|&(axis, value)| (axis, value.to_owned())).collect();
    Cell::far(settings)
}

/// Runs the missing cells of `programs`, whose journals are in the directory of `set`, in
/// `quick_blocks` blocks with `--quick` and `blocks` without.
///
/// # Errors
/// When results cannot be written, or no program ran with far memory.
pub(super) fn run(
    flags: &Options,
    (set, [quick_blocks, blocks]): (&str, [u32; 2]),
    programs: &[Program],
) -> Result<Outcome, ReproduceError> {
    let signals = console::interrupts()?;
    let _measuring = Measuring::begin()?;
    sweep::clear_scratch();
    // Repeating disturbed runs takes time.
    let (pace, repetitions, attempts) =
        if flags.quick { ("quick", quick_blocks, 1) } else { ("full", blocks, 3) };
    let directory = flags.output.join(format!("{set}-{pace}.runs"));
    let head =
        format!("repetitions = {repetitions}\nattempts = {attempts}\nstolen_max = \"10%\"\n");
    let host = machine::describe();
    let allow = flags.allow_unmanaged;
    let open =
        programs.iter().map(|program| Opened::new(program, (&head, allow), &directory, &host));
    let opened = open.collect::<Result<Vec<_>, _>>()?;
    let mut running = Running {
        opened,
        signals,
        repetitions,
        deadline: flags.quick.then(|| Instant::now() + QUICK),
        progress: Progress::new("run", 0),
        left: 0,
    };
    let all = programs.iter().map(|program| program.cells.len()).sum::<usize>();
    let all = all * repetitions as usize;
    let before = all - running.missing();
    let is_interrupted = !running.run()?;
    let left = running.left;
    running.progress.close();
    let runs: Vec<Runs> = running.opened.into_iter().map(Opened::close).collect();
    if let Some(why) = nothing(&runs).filter(|_| !is_interrupted) {
        return Err(ReproduceError::NothingRan(why));
    }
    Ok(Outcome { runs, is_interrupted, directory, repetitions, all, before, left })
}

/// Checks that programs are on PATH, given with their Debian packages.
///
/// # Errors
/// When a program is missing; names the first one.
pub(super) fn check(programs: &[(&'static str, &'static str)]) -> Result<(), ReproduceError> {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let has = |program: &str| {
        std::env::split_paths(&directories).any(|directory| directory.join(program).is_file())
    };
    let missing = programs.iter().find(|(program, _)| !has(program));
    missing.map_or(Ok(()), |&(program, package)| Err(ReproduceError::Missing { program, package }))
}

/// The header of a program's journal.
fn header(sweep: &Sweep, experiment: String, host: Host, allow_unmanaged: bool) -> Header {
    Header {
        schema: SWEEP_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns: sys::clock::unix_ns(),
        seed: sweep.seed,
        host,
        experiment,
        // Several figures share the journal, each with cells of its own.
        cells: Vec::new(),
        allow_unmanaged,
    }
}

// Why no run under afar has a figure; `None` if one has.
fn nothing(runs: &[Runs]) -> Option<String> {
    let far = |runs: &Runs| runs.rows.iter().any(|row| row.cell != "native" && row.value.is_some());
    if runs.iter().any(far) {
        return None;
    }
    let first = runs.iter().find_map(|runs| Some(format!("{}: {}", runs.name, runs.failure()?)));
    Some(first.unwrap_or_else(|| "there was no time for any".to_owned()))
}

/// A program with its open journal.
struct Opened<'a> {
    program: &'a Program,
    sweep: Sweep,
    allow_unmanaged: bool,
    journal: Journal<Row>,
}

impl<'a> Opened<'a> {
    /// Opens the journal of a program; an error if it has runs of another class of machines.
    fn new(
        program: &'a Program,
        (head, allow_unmanaged): (&str, bool),
        directory: &Path,
        host: &Host,
    ) -> Result<Self, ReproduceError> {
        let text = format!("{head}{}", program.experiment);
        let sweep = Sweep::own(&text);
        let header = header(&sweep, text, host.clone(), allow_unmanaged);
        let directory = directory.join(program.name);
        let journal = Journal::<Row>::open(&directory, &header)?;
        let mut classes = journal.rows.iter().filter_map(|row| row.host_class.clone());
        if let Some(class) = classes.find(|other| *other != class(host)) {
            let directory = directory.display().to_string();
            return Err(ReproduceError::OtherMachine { directory, class });
        }
        Ok(Self { program, sweep, allow_unmanaged, journal })
    }

    /// Closes the journal. Returns its runs.
    fn close(self) -> Runs {
        let Self { program, sweep, journal, .. } = self;
        Runs { name: program.name, better: sweep.metric.better, rows: journal.rows }
    }
}

/// The programs while they run.
struct Running<'a> {
    opened: Vec<Opened<'a>>,
    signals: Signals,
    repetitions: u32,
    deadline: Option<Instant>,
    progress: Progress,
    left: usize,
}

impl Running<'_> {
    /// How many runs the journals lack.
    fn missing(&self) -> usize {
        let lacks = |opened: &Opened<'_>| {
            let cells = opened.program.cells.iter();
            let lacks = |cell: &Cell| {
                let has = |block: &u32| opened.journal.has(*block, &cell.name());
                (0..self.repetitions).filter(|block| !has(block)).count()
            };
            cells.map(lacks).sum::<usize>()
        };
        self.opened.iter().map(lacks).sum()
    }

    /// Runs everything that is missing. Returns false if it was interrupted.
    fn run(&mut self) -> Result<bool, ReproduceError> {
        let cells = self.opened.iter().enumerate().flat_map(|(number, opened)| {
            opened.program.cells.iter().map(move |cell| (number, cell.clone()))
        });
        let cells: Vec<(usize, Cell)> = cells.collect();
        self.progress.restart("run", self.missing(), 0);
        for block in 0..self.repetitions {
            let mut order = in_block(cells.len(), (SEED, block), |index| {
                let (number, cell) = &cells[index];
                (cell, self.opened[*number].journal.rows.as_slice())
            });
            if self.deadline.is_some() {
                // Native runs first: without them the others have no slowdown.
                order.sort_by_key(|&index| cells[index].1.kind != Kind::Native);
            }
            for index in order {
                let (number, cell) = &cells[index];
                if self.opened[*number].journal.has(block, &cell.name()) {
                    continue;
                }
                if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
                    self.left += 1;
                    continue;
                }
                if !self.once(*number, cell, block)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Runs one cell in a block. Returns false if it was interrupted.
    fn once(&mut self, number: usize, cell: &Cell, block: u32) -> Result<bool, ReproduceError> {
        let opened = &mut self.opened[number];
        let name = opened.program.name;
        self.progress.show(&format!("{name}  {}", cell.name()));
        let trials = Trials {
            sweep: &opened.sweep,
            allow_unmanaged: opened.allow_unmanaged,
            afar: launch::program(),
            signals: &self.signals,
        };
        match trials.keep(cell, block, &mut opened.journal) {
            Ok(trouble) => {
                self.progress.end(&format!("{name} {}", cell.name()));
                if let Some(why) = trouble {
                    terminal::note(&format!("afar reproduce: {name}, {}: {why}\n", cell.name()));
                }
                Ok(true)
            }
            Err(NotKept::Interrupted) => Ok(false),
            Err(NotKept::Journal(error)) => Err(error.into()),
        }
    }
}

impl Runs {
    /// The valid runs of a cell.
    fn of<'a>(&'a self, cell: &Cell) -> impl Iterator<Item = &'a Row> {
        let name = cell.name();
        // An invalid run does not count in any way, not even its time.
        self.rows.iter().filter(move |row| row.cell == name && row.invalid.is_none())
    }

    /// The median of a number over the runs of a cell; `None` if there is none.
    fn middle(&self, cell: &Cell, of: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
        stats::median(&mut self.of(cell).filter_map(of).collect::<Vec<_>>())
    }

    /// The median figure of a cell.
    pub(super) fn value(&self, cell: &Cell) -> Option<f64> {
        self.middle(cell, |row| row.value)
    }

    /// The median of a further number of a cell, by its index.
    pub(super) fn further(&self, cell: &Cell, index: usize) -> Option<f64> {
        self.middle(cell, |row| row.further.get(index).copied().flatten())
    }

    /// The median number of fetched pages.
    pub(super) fn fetches(&self, cell: &Cell) -> Option<f64> {
        self.middle(cell, |row| row.fetch_count.map(|count| count as f64))
    }

    /// The largest peak of managed memory, in bytes.
    pub(super) fn peak_bytes(&self, cell: &Cell) -> Option<u64> {
        self.of(cell).filter_map(|row| row.managed_peak_bytes).max()
    }

    /// The median time of runs, their start included, in seconds.
    pub(super) fn elapsed_s(&self, cell: &Cell) -> Option<f64> {
        self.middle(cell, |row| Some(row.elapsed_ns as f64 / 1e9))
    }

    /// The median over blocks of the slowdown against the native run of the block.
    pub(super) fn slowdown(&self, cell: &Cell) -> Option<f64> {
        self.middle(cell, |row| self.beside_native(row))
    }

    /// The smallest and the largest of those slowdowns.
    pub(super) fn slowdowns(&self, cell: &Cell) -> Option<[f64; 2]> {
        let ratios = self.of(cell).filter_map(|row| self.beside_native(row));
        ratios
            .map(|ratio| [ratio, ratio])
            .reduce(|[low, high], [ratio, _]| [low.min(ratio), high.max(ratio)])
    }

    /// The slowdown of a run against the native run of its block.
    fn beside_native(&self, row: &Row) -> Option<f64> {
        let native = self.of(&Cell::NATIVE).find(|native| native.block == row.block)?;
        Some(slowdown(row.value?, native.value?, self.better))
    }

    /// Why the first run without a figure has none; `None` if all have one.
    pub(super) fn failure(&self) -> Option<&str> {
        self.rows.iter().find_map(Row::trouble)
    }
}

impl Outcome {
    /// The runs of a program.
    pub(super) fn of(&self, name: &str) -> Option<&Runs> {
        self.runs.iter().find(|runs| runs.name == name)
    }

    /// A description of the runs, in lines.
    pub(super) fn describe(&self) -> String {
        let mut text = format!(
            "{} runs of afar in {} blocks, kept in {}",
            self.all - self.left,
            self.repetitions,
            self.directory.display()
        );
        if self.before > 0 {
            text += &format!("\n{} of them were there; remove it to run them anew", self.before);
        }
        if self.left > 0 {
            text += &format!(
                "\n{} more did not fit into the time of --quick; the same command goes on",
                self.left
            );
        }
        for runs in &self.runs {
            if let Some(why) = runs.failure() {
                text += &format!("\n{}: some runs have no figure: {why}", runs.name);
            }
            let disturbed: Vec<&String> =
                runs.rows.iter().filter_map(|row| row.disturbed.as_ref()).collect();
            if let Some(why) = disturbed.first() {
                let (count, all) = (disturbed.len(), runs.rows.len());
                text += &format!("\n{}: {count} of {all} runs were disturbed: {why}", runs.name);
            }
            if runs.rows.iter().any(|row| row.allowed) {
                text += &format!("\n{}: {ALLOWED}", runs.name);
            }
        }
        text
    }

    /// How many runs `is` accepts.
    fn count(&self, is: fn(&Row) -> bool) -> usize {
        self.runs.iter().flat_map(|runs| &runs.rows).filter(|row| is(row)).count()
    }

    /// The numbers of runs for the record.
    pub(super) fn record(&self) -> Value {
        json!({
            "repetitions": self.repetitions,
            "runs": self.all - self.left,
            "runs_before": self.before,
            "runs_left": self.left,
            "runs_invalid": self.count(|row| row.invalid.is_some()),
            "runs_allowed": self.count(|row| row.allowed),
            "runs_disturbed": self.count(|row| row.disturbed.is_some()),
            "directory": self.directory.display().to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(block: u32, cell: &Cell, value: f64) -> Row {
        Row {
            block,
            cell: cell.name(),
            value: Some(value),
            further: vec![Some(value * 2.0), None],
            fetch_count: Some(7),
            ..Row::default()
        }
    }

    #[test]
    fn medians_are_over_blocks_and_slowdowns_block_by_block() {
        let cell = far(&[("local", "25%"), ("rtt", "5us")]);
        assert_eq!(cell.name(), "local=25% of=peak rtt=5us");
        // The machine is twice as slow in the second block, and slower yet in the third.
        let mut rows = Vec::new();
        for (block, pace) in [(0, 1.0), (1, 2.0), (2, 5.0)] {
            rows.push(ran(block, &Cell::NATIVE, pace));
            rows.push(ran(block, &cell, if block == 2 { 4.0 } else { 3.0 } * pace));
        }
        let runs = Runs { name: "x", better: Better::Lower, rows };
        assert_eq!((runs.value(&cell), runs.slowdown(&cell)), (Some(6.0), Some(3.0)));
        assert_eq!(runs.slowdowns(&cell), Some([3.0, 4.0]));
        assert_eq!((runs.further(&cell, 0), runs.further(&cell, 1)), (Some(12.0), None));
        assert_eq!(runs.fetches(&cell), Some(7.0));
        assert_eq!(runs.value(&far(&[("local", "10%")])), None);
        let turned = Runs { better: Better::Higher, ..runs };
        assert_eq!(turned.slowdown(&cell), Some(1.0 / 3.0));
        assert_eq!(turned.slowdowns(&cell), Some([0.25, 1.0 / 3.0]));
    }

    #[test]
    fn an_invalid_run_is_in_no_figure() {
        let cell = far(&[("local", "25%")]);
        let mut rows = vec![ran(0, &Cell::NATIVE, 1.0), ran(0, &cell, 2.0), ran(1, &cell, 9.0)];
        rows[2] = rows[2].clone().invalidated("invalid: it ran natively".to_owned());
        rows[2].elapsed_ns = 5_000_000_000;
        let runs = Runs { name: "x", better: Better::Lower, rows };
        assert_eq!((runs.value(&cell), runs.fetches(&cell)), (Some(2.0), Some(7.0)));
        assert_eq!(runs.elapsed_s(&cell), Some(0.0), "of the first alone");
        assert_eq!(runs.failure(), Some("invalid: it ran natively"));
        let only = runs.rows.into_iter().filter(|row| row.value.is_none()).collect();
        let runs = [Runs { name: "x", better: Better::Lower, rows: only }];
        assert_eq!(nothing(&runs).as_deref(), Some("x: invalid: it ran natively"));
    }

    #[test]
    fn runs_that_all_failed_are_an_error_with_the_first_reason() {
        let failed = |cell: &str, value| Row {
            cell: cell.to_owned(),
            value,
            failure: value.is_none().then(|| "no right".to_owned()),
            ..Row::default()
        };
        let runs = |rows| [Runs { name: "redis", better: Better::Higher, rows }];
        let native_only = runs(vec![failed("native", Some(1.0)), failed("local=10%", None)]);
        assert_eq!(nothing(&native_only).as_deref(), Some("redis: no right"));
        assert_eq!(nothing(&runs(vec![failed("local=10%", Some(1.0))])), None);
    }
}
