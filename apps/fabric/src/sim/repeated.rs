//! Independent runs of one simulation on all processors, and their figures together.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use console::{Class, Directory, Failure, Output, Progress, terminal};
use results::Figures;

use super::figures::figures;
use super::row::Row;
use super::run::{self, Looker};
use super::setting::{Cell, Settings};
use super::setup::Setup;
use super::{SimError, many, steady, table, told};
use crate::sim::flags::SimFlags;

/// Runs `runs`, which differ in their seeds, and reports their figures together.
///
/// # Errors
/// If a run has no result, the network is in no steady state, or a file is for one run alone.
pub(super) fn repeated(
    flags: &SimFlags,
    cell: &Cell,
    runs: &[Settings],
) -> Result<ExitCode, Failure> {
    refuse_one_run(flags, runs.len())?;
    let settings = &cell.settings;
    let setup = Setup::new(&runs[0])?;
    let _directory = flags.output.as_deref().map(Directory::make).transpose()?;
    let json = outputs(flags)?;
    let csv = Output::wanted(flags.csv.as_deref())?;
    let signals = console::interrupts().map_err(SimError::from)?;
    let progress = Progress::new("run", runs.len());
    let mut looker = Looker { signals: &signals, progress };
    let Some((figures, cpu_ns)) = all(runs, many::threads(flags.threads), &mut looker)? else {
        terminal::say("afar sim: interrupted; there is no result\n");
        return Ok(Class::Interrupted.into());
    };
    drop(looker);
    if let Some(why) = steady::unsteady(&figures) {
        return Err(SimError::Unsteady(why).into());
    }
    let record = told::record(settings, &setup, figures, cpu_ns, None, Vec::new());
    let as_json = || results::write(&record);
    let forms = json.into_iter().map(|output| (Some(output), &as_json as &dyn Fn() -> String));
    let text = || told::text(&told::title(settings, &setup), &record.figures, cpu_ns);
    let row = Row { cell: cell.name(), figures: Some(record.figures.clone()), failure: None };
    let rows = || table::csv(&[(cell, &row)]);
    console::answer(text, forms.chain([(csv, &rows as &dyn Fn() -> String)]).collect())?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses flags that only a single run can have.
fn refuse_one_run(flags: &SimFlags, count: usize) -> Result<(), SimError> {
    for (path, name) in flags.of_one_run() {
        if path.is_some() {
            let message = format!(
                "it is for one run, and these are {count}; give --json or --csv, or --repetitions 1"
            );
            return Err(SimError::at(name, message));
        }
    }
    Ok(())
}

/// Opens the JSON files.
fn outputs(flags: &SimFlags) -> Result<Vec<Output>, Failure> {
    let mut paths: Vec<_> = flags.json.iter().cloned().collect();
    if let Some(directory) = &flags.output {
        paths.push(directory.join("result.json"));
    }
    paths.iter().map(|path| Output::open(path)).collect::<Result<_, _>>()
}

/// The figures of all runs together, and their processor time in ns; `None` if interrupted.
fn all(
    runs: &[Settings],
    threads: usize,
    looker: &mut Looker<'_>,
) -> Result<Option<(Figures, u64)>, SimError> {
    let work = |number: usize, stop: &AtomicBool| -> Result<_, SimError> {
        let setup = Setup::new(&runs[number])?;
        match run::run(&setup, &mut |_| !stop.load(Ordering::Relaxed)) {
            Ok(run) => Ok(Some((figures(&setup, &run.outcome), run.cpu_ns))),
            Err(netsim::SimError::Stopped { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    };
    let mut done: Vec<Option<(Figures, u64)>> = vec![None; runs.len()];
    let name = |number: usize| format!("seed={}", runs[number].text("seed"));
    let is_whole = many::run(runs.len(), threads, (looker, name), work, |number, ran| {
        done[number] = Some(ran);
        Ok(())
    })?;
    let (all, cpu_ns): (Vec<Figures>, Vec<u64>) = done.into_iter().flatten().unzip();
    Ok(is_whole.then(|| (steady::of_runs(&all), cpu_ns.iter().sum())))
}
