//! `afar reproduce`: figures of papers, measured or simulated here beside what the papers print.
//!
//! ```text
//! flags ─► Session (live line, Ctrl-C) ─► Bed (drive, scale, three ways) ─► guz::figN
//!                            table, verdicts, picture, record ◄─ Report ◄── points ──┤
//! flags ─► sim::Settings ─► netsim on all processors ──────────────────► gao::figN ──┤
//! flags ─► programs × cells ─► runs of afar, kept in journals ─────► dime, gao::figN ──┘
//! ```
//!
//! A figure measures points and then computes everything else from them, so that tests can compute
//! it from other points.
//!
//! A verdict is computed from points alone, and names its criterion.

mod bed;
mod command;
mod dime;
mod error;
mod figure;
mod flags;
mod gao;
mod guz;
mod klimovic;
mod measured;
mod plot;
mod programs;
mod report;
mod session;
mod store;
mod target;
mod touches;
mod validation;
mod way;
mod whole;

use std::path::Path;
use std::process::ExitCode;

use console::{Class, Directory, Failure, Output, terminal};
use measure::Duration;
use results::reproduced::{Claim, Reproduction};

use console::machine;

pub use command::ReproduceFlags;
use measured::Measured;
use report::Verdict;

pub(crate) use error::ReproduceError;

const BUSY_POLL_MOST: Duration = Duration::from_ms(1);

/// Runs `afar reproduce`.
///
/// # Errors
/// When the drive, the target or the files cannot be made, or a request fails.
pub fn reproduce(flags: &ReproduceFlags) -> Result<ExitCode, Failure> {
    let ReproduceFlags { figure, options, .. } = flags;
    // The command line has a figure, or --list.
    let Some(figure) = figure else {
        terminal::answer(&command::list())?;
        return Ok(ExitCode::SUCCESS);
    };
    if options.busy_poll > BUSY_POLL_MOST {
        return Err(ReproduceError::BusyPoll(options.busy_poll).into());
    }
    if options.disk.is_some() && !figure.takes_disk() {
        return Err(ReproduceError::NoDisk(figure.name).into());
    }
    // Before anything is made.
    options.disk.as_deref().map(bed::own_disk).transpose()?;
    let directory = &options.output;
    let _made = Directory::make(directory)?;
    let name = figure.name;
    let paths = ["svg", "json"].map(|ending| directory.join(format!("{name}.{ending}")));
    let [picture, record] = paths.each_ref().map(|path| Output::open(path));
    let (picture, record) = (picture?, record?);
    let [json, csv] = [&options.json, &options.csv].map(|path| Output::wanted(path.as_deref()));
    let (json, csv) = (json?, csv?);
    let measured = figure.measure(options)?;
    let Some(measured) = measured else { return Ok(nothing(name)) };
    let report = &measured.report;
    let text = results::write(&whole(name, &measured));
    let (drawn, written) = (|| report.picture.clone(), || text.clone());
    let rows = || console::csv_of(&report.points, &[]);
    let forms: Vec<console::Form<'_>> =
        vec![(Some(picture), &drawn), (Some(record), &written), (json, &written), (csv, &rows)];
    console::answer(|| told(&measured, &paths[0]), forms)?;
    if measured.is_interrupted {
        terminal::say(&format!("afar reproduce: {name}: interrupted; this is what was measured\n"));
        return Ok(Class::Interrupted.into());
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports an interruption before any result.
fn nothing(name: &str) -> ExitCode {
    terminal::say(&format!("afar reproduce: {name}: interrupted before anything was measured\n"));
    Class::Interrupted.into()
}

/// The output of a figure as text.
fn told(Measured { report, described, .. }: &Measured, picture: &Path) -> String {
    let mut text = format!("\n{}\n{described}\n\n", report.title);
    text += &report.table;
    text.push('\n');
    for verdict in &report.verdicts {
        text += &format!("{}\n", verdict.text());
    }
    text + &format!("picture: {}\n", picture.display())
}

/// The record of a figure.
fn whole(name: &str, measured: &Measured) -> Reproduction {
    let report = &measured.report;
    let claim = |verdict: &Verdict| Claim { holds: verdict.decided(), text: verdict.claim.clone() };
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    Reproduction {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        figure: name.to_owned(),
        title: report.title.clone(),
        command: command.collect(),
        unix_ns: sys::clock::unix_ns(),
        host: machine::describe(),
        bed: measured.bed.clone(),
        points: report.points.clone(),
        paper: report.paper.clone(),
        verdicts: report.verdicts.iter().map(claim).collect(),
        interrupted: measured.is_interrupted,
    }
}
