//! `afar sim`: a network without hardware: who sends what over it, and how long that takes.
//!
//! ```text
//! flags, FILE ─► Experiment ─► Settings ─► Setup ─► netsim ─► Figures ─► table, JSON, CSV, Parquet
//!                          │                             └─► PortSeries ─► table, picture
//!                          ├─ kept: threads or engines, journal ─► sweep: table, CSV, picture
//!                          └─ variation ─► sensitivity: threads, or kept ─► table, JSON, CSV
//! ```

#[cfg(test)]
mod again;
mod blades;
mod blocks;
pub(crate) mod error;
mod exchange;
pub(crate) mod figures;
mod fitted;
pub(crate) mod flags;
mod kept;
mod knob;
pub(crate) mod knobs;
mod link_name;
mod list;
pub mod many;
mod outputs;
mod panels;
mod parameters;
mod pcap;
pub(crate) mod picture;
mod points;
mod ports;
pub(crate) mod progress;
mod repeated;
mod rounded;
mod row;
pub(crate) mod run;
mod sensitivity;
pub(crate) mod setting;
pub(crate) mod setup;
mod shares;
mod steady;
mod steps;
mod sweep;
mod table;
mod text;
pub(crate) mod told;
mod topology;
mod transfer;
mod transport;
mod transport_knobs;
mod variation;
mod window;

use std::process::ExitCode;

use console::{Class, Failure, Progress, terminal};
use dispatch::Place;
use measure::{Duration, Instant};
use records::FlowRow;

use crate::sim::flags::SimFlags;

use figures::rows;
use outputs::{Outputs, Results};
use run::Looker;
use setting::{Experiment, Settings};
use setup::Setup;

use text::read_text;

pub(crate) use error::SimError;
pub use points::points;

/// Runs `afar sim`.
///
/// # Errors
/// If the experiment is invalid, a flow never finishes, or a result cannot be written.
pub fn sim(flags: &SimFlags) -> Result<ExitCode, Failure> {
    if flags.list {
        terminal::answer(&knobs::list(&transport::list()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiment = Experiment::read(flags.experiment.as_deref(), &flags.knobs)?;
    let cells = experiment.cells();
    if flags.on != Place::Local && !flags.sensitivity && cells.len() == 1 {
        let message = "engines share out the runs of a sweep, and this is none; give lists";
        return Err(SimError::at("--on", message).into());
    }
    if flags.sensitivity || cells.len() > 1 {
        want_intervals(flags, false)?;
    }
    if flags.sensitivity {
        if flags.on != Place::Local && flags.output.is_none() {
            let message = "engines need a directory in which runs are kept; name one with --output";
            return Err(SimError::at("--on", message).into());
        }
        return match &cells[..] {
            [cell] => {
                let said = format!("{}--sensitivity\n", experiment.said());
                sensitivity::sensitivity(flags, (&cell.settings, said))
            }
            _ => {
                let message = format!("it varies one run, and these are {}", cells.len());
                Err(SimError::at("--sensitivity", message).into())
            }
        };
    }
    if cells.len() > 1 {
        return sweep::sweep(flags, &experiment, &cells);
    }
    let settings = &cells[0].settings;
    let runs = steady::runs(settings)?;
    want_intervals(flags, runs.len() == 1)?;
    if runs.len() > 1 {
        return repeated::repeated(flags, &cells[0], &runs);
    }
    one(flags, settings)
}

/// Refuses the flag `--every` where no output has intervals. A file may set it all the same.
fn want_intervals(flags: &SimFlags, is_one: bool) -> Result<(), SimError> {
    let has_some = [&flags.ports, &flags.svg, &flags.output].iter().any(|path| path.is_some());
    if (is_one && has_some) || !flags.knobs.0.iter().any(|(name, _)| *name == "every") {
        return Ok(());
    }
    Err(SimError::at(
        "--every",
        match is_one {
            true => "nothing that is written has intervals; add --ports FILE, or leave it out",
            false => "only one run has intervals, and these are several; leave it out",
        },
    ))
}

/// Runs one simulation, and writes its outputs.
fn one(flags: &SimFlags, settings: &Settings) -> Result<ExitCode, Failure> {
    let mut setup = Setup::new(settings)?;
    let every = every(settings)?;
    terminal::detail(|| {
        let all: Vec<String> = settings.all().map(|(name, of)| format!("{name}={of}")).collect();
        format!("simulates with {}", all.join(" "))
    });
    let (outputs, _directory) = Outputs::open(flags)?;
    setup.observe.every = outputs.want_ports().then_some(every);
    setup.observe.packets = outputs.wanted_packets();
    let signals = console::interrupts().map_err(SimError::from)?;
    let progress = Progress::new("run", 1);
    let run = match (Looker { signals: &signals, progress }).run(&setup) {
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
    let figures = figures::figures(&setup, &run.outcome);
    let rows = rows(fabric, flows, &run.outcome, *end);
    let title = told::title(settings, &setup);
    let ports = run.ports.as_ref().map(|series| ports::of(fabric, series, flows));
    let shares = shares::of(&figures, &measured(&setup, &rows));
    let record = told::record(settings, &setup, figures, run.cpu_ns, ports, shares);
    let files = outputs.filled(Results {
        setup: &setup,
        record: &record,
        title: title.clone(),
        rows: &rows,
        series: run.ports.as_ref(),
        trace: run.trace.as_ref(),
    })?;
    console::answer_bytes(|| told::text(&title, &record.figures, run.cpu_ns), files)?;
    Ok(ExitCode::SUCCESS)
}

/// The rows of flows that started in the measured time.
fn measured(setup: &Setup, rows: &[FlowRow]) -> Vec<FlowRow> {
    let is_within = |row: &&FlowRow| {
        let start = Instant::from_ps(row.flow.start_ps);
        setup.observe.span.is_none_or(|[from, to]| (from..to).contains(&start))
    };
    rows.iter().filter(is_within).copied().collect()
}

/// The length of the intervals of ports; an error if it is 0.
fn every(settings: &Settings) -> Result<Duration, SimError> {
    let every = document::delay(settings.text("every"));
    match every.map_err(|error| settings.wrong("every", error))? {
        Duration::ZERO => Err(settings.wrong("every", "intervals of no time; give 1us")),
        every => Ok(every),
    }
}
