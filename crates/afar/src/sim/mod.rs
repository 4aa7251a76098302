//! `afar sim`: a network without hardware: who sends what over it, and how long that takes.
//!
//! ```text
//! flags, FILE ─► Experiment ─► Settings ─► Setup ─► netsim ─► Figures ─► table, JSON, CSV, Parquet
//!                          │                             └─► PortSeries ─► table, picture
//!                          └─ many ─► sweep: threads, journal ─► table, CSV, picture
//! ```

mod blades;
mod blocks;
pub(crate) mod figures;
mod fitted;
pub(crate) mod knobs;
mod list;
pub(crate) mod many;
mod outputs;
mod panels;
mod pcap;
pub(crate) mod picture;
mod ports;
pub(crate) mod run;
pub(crate) mod setting;
pub(crate) mod setup;
mod shares;
mod steps;
mod sweep;
mod table;
pub(crate) mod told;
mod topology;
mod transport;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use measure::{Duration, Instant};
use sys::event::Signals;

use crate::failure::{Class, Classed, Failure};
use crate::flags::SimFlags;
use crate::live::Line;
use crate::plan::PlanError;
use crate::sweep::JournalError;
use crate::terminal;

use figures::{Figures, rows};
use outputs::{Outputs, Results};
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

impl Classed for SimError {
    fn class(&self) -> Class {
        use netsim::SimError::{Livelock, Unfinished};
        match self {
            Self::System(_) | Self::Network(Unfinished { .. } | Livelock { .. }) => Class::Failed,
            _ => Class::Usage,
        }
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
        terminal::answer(&knobs::list(&transport::list()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiment = Experiment::read(flags.experiment.as_deref(), &flags.knobs)?;
    let cells = experiment.cells();
    if cells.len() > 1 {
        return sweep::sweep(flags, &experiment, &cells);
    }
    one(flags, &cells[0].settings)
}

fn one(flags: &SimFlags, settings: &Settings) -> Result<ExitCode, Failure> {
    let mut setup = Setup::new(settings)?;
    let every = every(settings)?;
    let outputs = Outputs::open(flags)?;
    setup.observe.every = outputs.want_ports().then_some(every);
    setup.observe.packets = outputs.wanted_packets();
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
            return Ok(Class::Interrupted.into());
        }
        Err(error) => return Err(SimError::from(error).into()),
    };
    let Setup { fabric, flows, end, .. } = &setup;
    let figures = Figures::of(fabric, flows, &run.outcome, *end);
    let rows = rows(fabric, flows, &run.outcome, *end);
    let is_answered = outputs.is_answered;
    let title = told::title(settings, fabric.topology.host_count());
    outputs.write(Results {
        setup: &setup,
        record: told::record(settings, &figures, run.cpu_ns),
        title: title.clone(),
        rows: &rows,
        shares: &shares::of(&figures, &rows),
        series: run.ports.as_ref(),
        trace: run.trace.as_ref(),
    })?;
    if !is_answered && !flags.quiet {
        terminal::answer(&told::text(&title, &figures, run.cpu_ns))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How long intervals of ports are.
fn every(settings: &Settings) -> Result<Duration, SimError> {
    let every = crate::setting::delay(settings.text("every"));
    match every.map_err(|error| settings.wrong("every", error))? {
        Duration::ZERO => Err(settings.wrong("every", "intervals of no time; give 1us")),
        every => Ok(every),
    }
}

fn read_text(path: &Path) -> Result<String, SimError> {
    fs::read_to_string(path)
        .map_err(|source| SimError::Unreadable { path: path.to_owned(), source })
}
