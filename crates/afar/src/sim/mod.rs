//! `afar sim`: a network without hardware: who sends what over it, and how long that takes.
//!
//! ```text
//! flags, FILE ─► Experiment ─► Settings ─► Setup ─► netsim ─► Figures ─► table, JSON, CSV, Parquet
//!                          └─ many ─► sweep: threads, journal ─► table, CSV, picture
//! ```

mod blades;
mod blocks;
pub(crate) mod figures;
pub(crate) mod knobs;
mod list;
pub(crate) mod many;
pub(crate) mod picture;
pub(crate) mod run;
pub(crate) mod setting;
pub(crate) mod setup;
mod sweep;
mod table;
pub(crate) mod told;
mod topology;
mod transport;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use measure::Instant;
use sys::event::Signals;

use crate::failure::{Failure, INTERRUPTED};
use crate::flags::SimFlags;
use crate::live::Line;
use crate::output::Output;
use crate::plan::PlanError;
use crate::sweep::JournalError;
use crate::terminal;

use figures::{Figures, rows};
use run::Looker;
use setting::{Experiment, Settings};
use setup::Setup;

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimError {
    #[error("{}: {source}; give a file that can be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Record { path: PathBuf, source: records::RecordError },
    /// With a flag, or file, line and column.
    #[error("{place}: {message}")]
    At { place: String, message: String },
    #[error(transparent)]
    Text(#[from] PlanError),
    #[error(transparent)]
    Network(#[from] netsim::SimError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl SimError {
    /// Whether the user can mend it on the command line or in a file.
    pub(crate) const fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::System(_)
                | Self::Network(
                    netsim::SimError::Unfinished { .. } | netsim::SimError::Livelock { .. }
                )
        )
    }
}

pub(crate) const SIGINT: i32 = 2;
pub(crate) const SIGTERM: i32 = 15;

/// Runs `afar sim`.
///
/// # Errors
/// When the experiment cannot be, a flow never finishes, or a result cannot be written.
pub(crate) fn sim(flags: &SimFlags) -> Result<ExitCode, Failure> {
    if flags.list {
        terminal::answer(&knobs::list(&transport::list())).map_err(Failure::Stdout)?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiment = Experiment::read(flags.experiment.as_deref(), &flags.knobs)?;
    let cells = experiment.cells();
    if cells.len() > 1 {
        return sweep::sweep(flags, &experiment, &cells);
    }
    one(flags, &cells[0].settings)
}

/// Files of one run, opened before it.
struct Outputs {
    json: Vec<Output>,
    csv: Vec<Output>,
    profile: Option<Output>,
    parquet: Vec<PathBuf>,
    /// Whether something is written to standard output in place of the table.
    is_answered: bool,
}

fn one(flags: &SimFlags, settings: &Settings) -> Result<ExitCode, Failure> {
    let setup = Setup::new(settings)?;
    let outputs = Outputs::open(flags)?;
    let signals = Signals::receive(&[SIGINT, SIGTERM]).map_err(SimError::from)?;
    let line = if flags.quiet { None } else { Line::on_terminal() };
    let run = match (Looker { signals: &signals, line }).run(&setup) {
        Ok(run) => run,
        Err(netsim::SimError::Stopped { ended, total, at }) => {
            let at = at.saturating_since(Instant::ZERO);
            terminal::say(&format!(
                "afar sim: interrupted at {at} in the network, when {ended} of {total} flows had \
                 finished; there is no result\n"
            ));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(error) => return Err(SimError::from(error).into()),
    };
    let Setup { fabric, flows, end, .. } = &setup;
    let figures = Figures::of(fabric, flows, &run.outcome, *end);
    let record = crate::plan::json_text(&told::record(settings, &figures, run.cpu_ns));
    let is_answered = outputs.is_answered;
    outputs.write(&record, || rows(fabric, flows, &run.outcome, *end))?;
    if !is_answered && !flags.quiet {
        let title = told::title(settings, fabric.topology.host_count());
        terminal::answer(&told::text(&title, &figures, run.cpu_ns)).map_err(Failure::Stdout)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Outputs {
    fn open(flags: &SimFlags) -> Result<Self, Failure> {
        let mut json: Vec<PathBuf> = flags.json.iter().cloned().collect();
        let mut csv: Vec<PathBuf> = flags.csv.iter().cloned().collect();
        let mut parquet: Vec<PathBuf> = flags.parquet.iter().cloned().collect();
        let profile = flags.delay_profile.as_deref();
        let named = json.iter().chain(&csv).map(PathBuf::as_path).chain(profile);
        let is_answered = named.into_iter().any(|path| path.as_os_str() == "-");
        if let Some(directory) = &flags.output {
            fs::create_dir_all(directory).map_err(|source| Failure::output(directory, source))?;
            json.push(directory.join("result.json"));
            csv.push(directory.join("flows.csv"));
            parquet.push(directory.join("flows.parquet"));
        }
        for path in &parquet {
            // Written in one go later; that it can be is known now.
            drop(Output::open(path)?);
        }
        let open = |paths: &[PathBuf]| paths.iter().map(|path| Output::open(path)).collect();
        let opened: Result<Vec<Output>, Failure> = open(&json);
        Ok(Self {
            json: opened?,
            csv: csv.iter().map(|path| Output::open(path)).collect::<Result<_, _>>()?,
            profile: profile.map(Output::open).transpose()?,
            parquet,
            is_answered,
        })
    }

    fn write(
        self,
        record: &str,
        rows: impl FnOnce() -> Vec<records::FlowRow>,
    ) -> Result<(), Failure> {
        for output in self.json {
            output.write(record)?;
        }
        if self.csv.is_empty() && self.parquet.is_empty() && self.profile.is_none() {
            return Ok(());
        }
        let rows = rows();
        if !self.csv.is_empty() {
            let text = told::csv(&rows);
            for output in self.csv {
                output.write(&text)?;
            }
        }
        for path in &self.parquet {
            let unwritten = |source| Failure::Unwritten { path: path.clone(), source };
            let file = fs::File::create(path).map_err(unwritten)?;
            let notes = [("afar", env!("CARGO_PKG_VERSION"))];
            let written = records::write_flows(file, &notes, &rows);
            let written = written.map_err(|source| Failure::Record { path: path.clone(), source });
            written?.flush().map_err(unwritten)?;
        }
        if let (Some(output), Some(profile)) = (self.profile, told::profile(&rows)) {
            output.write(&profile.to_csv())?;
        }
        Ok(())
    }
}

fn read_text(path: &Path) -> Result<String, SimError> {
    fs::read_to_string(path)
        .map_err(|source| SimError::Unreadable { path: path.to_owned(), source })
}
