//! `afar sim --sensitivity`: what half and twice of each parameter do to the slowdown of a run.
//!
//! Each run has one knob with another value, and defaults that depend on that knob change with it.
//! All runs have the same flows unless the knob decides them. The run with another seed has other
//! flows of the same kind: a change smaller than its change may be chance.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use console::layout::{NONE, row, table};
use console::{Class, Failure, Output, Progress, terminal};
use measure::{BitsPerSec, Duration};
use results::Spread;
use results::sim::{Sensitivity, SensitivityRun};

use super::figures::figures;
use super::flags::SimFlags;
use super::kept::{self, Job};
use super::run::{self, Looker};
use super::setting::Settings;
use super::setup::Setup;
use super::variation::{self, Variation};
use super::{SimError, many, told};

/// The result of a run: slowdowns, or why there are none.
type Ran = Result<Spread, String>;

/// Runs `afar sim --sensitivity`; `said` is the text that tells experiments apart.
///
/// # Errors
/// If the run itself has no result, or results cannot be written.
pub(super) fn sensitivity(
    flags: &SimFlags,
    (settings, said): (&Settings, String),
) -> Result<ExitCode, Failure> {
    for (path, name) in flags.of_one_run() {
        if path.is_some() {
            let message = "it is for one run; --sensitivity has --json, --csv and a table";
            return Err(SimError::at(name, message).into());
        }
    }
    let title = told::title(settings, &Setup::new(settings)?);
    let csv = flags.csv.as_deref().map(Output::open).transpose()?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let run = |all| match &flags.output {
        Some(directory) => in_directory(flags, (directory, said), all),
        None => in_memory(flags, &all),
    };
    let Some(record) = study(settings, run)? else {
        return Ok(Class::Interrupted.into());
    };
    let (as_csv, as_json) = (|| rows(&record), || results::write(&record));
    console::answer(|| text(&title, &record), vec![(csv, &as_csv), (json, &as_json)])?;
    Ok(ExitCode::SUCCESS)
}

/// The record of the run and its variations, which `run` simulates; `None` if interrupted.
fn study(
    settings: &Settings,
    run: impl FnOnce(Vec<(String, Settings)>) -> Result<Option<Vec<Ran>>, Failure>,
) -> Result<Option<Sensitivity>, Failure> {
    let setup = Setup::new(settings)?;
    let variations = variation::all(settings, &setup);
    let other = |one: &Variation| match &one.other {
        Ok(other) => {
            let name = format!("{}={other}", one.knob);
            Some((name, settings.clone().with(one.knob, other)))
        }
        Err(_) => None,
    };
    let itself = std::iter::once(("as it is".to_owned(), settings.clone()));
    let all: Vec<(String, Settings)> = itself.chain(variations.iter().filter_map(other)).collect();
    let Some(ran) = run(all)? else { return Ok(None) };
    let mut ran = ran.into_iter();
    let failed = |message: String| SimError::at("--sensitivity", message);
    let unfinished = || Err("it did not end".to_owned());
    let slowdown = ran.next().unwrap_or_else(unfinished).map_err(failed)?;
    let mut runs: Vec<SensitivityRun> = variations
        .into_iter()
        .map(|Variation { knob, value, other }| {
            let (changed_to, result) = match other {
                Ok(other) => (Some(other), ran.next().unwrap_or_else(unfinished)),
                Err(why) => (None, Err(why)),
            };
            let (slowdown, failure) = match result {
                Ok(slowdown) => (Some(slowdown), None),
                Err(why) => (None, Some(why)),
            };
            let parameter = knob.replace('-', "_");
            SensitivityRun { parameter, value, changed_to, slowdown, failure }
        })
        .collect();
    let effect = |run: &SensitivityRun| -> [f64; 2] {
        let change = |other: f64, own: f64| (other / own - 1.0).abs();
        run.slowdown.map_or([-1.0; 2], |other| {
            [change(other.mean, slowdown.mean), change(other.p99, slowdown.p99)]
        })
    };
    runs.sort_by(|one, other| {
        let [one, other] = [effect(one), effect(other)];
        other[0].total_cmp(&one[0]).then(other[1].total_cmp(&one[1]))
    });
    let named = |(name, value): (&str, &str)| (name.replace('-', "_"), value.to_owned());
    let resolved = setup.resolved.iter().map(|(name, value)| (*name, value.as_str()));
    let settings = settings.all().chain(resolved).map(named).collect();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Some(Sensitivity { version, settings, slowdown, runs }))
}

/// Runs all without storing results; `None`, with a message, if interrupted.
fn in_memory(flags: &SimFlags, all: &[(String, Settings)]) -> Result<Option<Vec<Ran>>, Failure> {
    let signals = console::interrupts().map_err(SimError::from)?;
    let progress = Progress::new("run", all.len());
    let mut looker = Looker { signals: &signals, progress };
    let ran = on_threads(all, many::threads(flags.threads), &mut looker)?;
    drop(looker);
    if ran.is_none() {
        terminal::say("afar sim: interrupted; there is no result\n");
    }
    Ok(ran)
}

/// Runs all on threads; `None` if interrupted.
fn on_threads(
    all: &[(String, Settings)],
    threads: usize,
    looker: &mut Looker<'_>,
) -> Result<Option<Vec<Ran>>, SimError> {
    let mut ran: Vec<Option<Ran>> = vec![None; all.len()];
    let work = |number: usize, stop: &AtomicBool| Ok::<_, SimError>(one(&all[number].1, stop));
    let name = |number: usize| all[number].0.clone();
    let is_whole = many::run(all.len(), threads, (looker, name), work, |number, result| {
        ran[number] = Some(result);
        Ok(())
    })?;
    Ok(is_whole.then(|| ran.into_iter().flatten().collect()))
}

/// Runs all, here or on an engine, and stores each result in `directory`; `None` if interrupted.
fn in_directory(
    flags: &SimFlags,
    (directory, said): (&Path, String),
    all: Vec<(String, Settings)>,
) -> Result<Option<Vec<Ran>>, Failure> {
    let mut ran: Vec<Option<Ran>> = Vec::new();
    let mut jobs = Vec::new();
    for (cell, (name, settings)) in all.into_iter().enumerate() {
        // Invalid settings are a failure without a run.
        match Setup::new(&settings) {
            Ok(_) => {
                jobs.push(Job { cell, name, settings });
                ran.push(None);
            }
            Err(error) => ran.push(Some(Err(error.to_string()))),
        }
    }
    let Some(rows) = kept::all(flags, (directory, said), &jobs)? else { return Ok(None) };
    for (job, row) in jobs.iter().zip(rows) {
        let failure = row.failure.unwrap_or_default();
        ran[job.cell] = Some(row.figures.map(|figures| figures.slowdown).ok_or(failure));
    }
    Ok(Some(ran.into_iter().flatten().collect()))
}

/// The slowdowns of one run, or why it has none; `None` if it was stopped.
fn one(settings: &Settings, stop: &AtomicBool) -> Option<Ran> {
    let setup = match Setup::new(settings) {
        Ok(setup) => setup,
        Err(error) => return Some(Err(error.to_string())),
    };
    match run::run(&setup, &mut |_| !stop.load(Ordering::Relaxed)) {
        Ok(run) => Some(Ok(figures(&setup, &run.outcome).slowdown)),
        Err(netsim::SimError::Stopped { .. }) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

/// The readable table; the parameter that changes the mean most comes first.
fn text(title: &str, record: &Sensitivity) -> String {
    let Sensitivity { slowdown, runs, .. } = record;
    let mut rows = vec![row(["parameter", "is", "changed to", "mean", "", "p99", ""])];
    let mut failures = String::new();
    for run in runs {
        let SensitivityRun { parameter, value, changed_to, slowdown: other, failure } = run;
        let name = parameter.replace('_', "-");
        let to = changed_to.as_deref().unwrap_or(NONE);
        if let Some(other) = other {
            let change = |other: f64, own: f64| format!("{:+.1} %", (other / own - 1.0) * 100.0);
            let [mean, p99] = [other.mean, other.p99].map(|value| format!("{value:.3}"));
            let changes = [change(other.mean, slowdown.mean), change(other.p99, slowdown.p99)];
            let [mean_change, p99_change] = changes;
            let cells = [&name, &shown(value), &shown(to), &mean, &mean_change, &p99, &p99_change];
            rows.push(cells.map(String::clone).to_vec());
        } else {
            let why = failure.as_deref().unwrap_or_default();
            let tried =
                changed_to.as_ref().map_or_else(String::new, |to| format!(" {}", shown(to)));
            let _infallible = writeln!(failures, "not run: {name}{tried}: {why}");
        }
    }
    let Spread { mean, p99, count, .. } = slowdown;
    format!(
        "{title}\n\nslowdown of {count} flows: mean {mean:.3}, p99 {p99:.3}; and with one \
         parameter changed:\n{}seed: another draw of the same traffic; what changes less may be \
         chance\n{failures}",
        table(&rows)
    )
}

/// A value as people write it: times and rates in a unit of their size.
fn shown(value: &str) -> String {
    let one = |text: &str| {
        let bps = text.strip_suffix("bps").and_then(|number| number.parse().ok());
        match (bps, text.parse::<Duration>()) {
            (Some(bps), _) => BitsPerSec::new(bps).to_string(),
            (None, Ok(time)) => time.to_string(),
            (None, Err(_)) => text.to_owned(),
        }
    };
    value.split(',').map(one).collect::<Vec<_>>().join(",")
}

/// The CSV: a line for each run, the one without a change first.
fn rows(record: &Sensitivity) -> String {
    let mut text = "parameter,value,changed_to,count,mean,p50,p99,p999,failure\n".to_owned();
    let quoted = |cell: &str| cell.replace([',', '\n'], ";");
    let figures = |spread: &Spread| {
        let Spread { count, mean, p50, p99, p999 } = spread;
        format!("{count},{mean},{p50},{p99},{p999}")
    };
    let _infallible = writeln!(text, ",,,{},", figures(&record.slowdown));
    for run in &record.runs {
        let SensitivityRun { parameter, value, changed_to, slowdown, failure } = run;
        let to = quoted(changed_to.as_deref().unwrap_or_default());
        let figures = slowdown.as_ref().map_or_else(|| ",,,,".to_owned(), figures);
        let why = quoted(failure.as_deref().unwrap_or_default());
        let _infallible = writeln!(text, "{parameter},{},{to},{figures},{why}", quoted(value));
    }
    text
}

#[cfg(test)]
mod tests {
    use sys::event::Signals;

    use super::*;

    fn small(transport: &str) -> Settings {
        let settings = Settings::default().with("topology", "single-switch").with("hosts", "8");
        let settings = settings.with("transport", transport).with("sizes", "30000B");
        settings.with("flows", "300").with("load", "70%")
    }

    fn studied(settings: &Settings, threads: usize) -> Sensitivity {
        let signals = Signals::receive(&[]).expect("no signals");
        let mut looker = Looker { signals: &signals, progress: Progress::unseen("run") };
        let run = |all: Vec<_>| Ok(on_threads(&all, threads, &mut looker)?);
        study(settings, run).expect("it can be").expect("nobody interrupts")
    }

    /// Each row is the run that its own settings give, whichever thread ran it, and the rows are in
    /// the order of their effect.
    #[test]
    fn rows_are_runs_of_their_own_by_effect() {
        let settings = small("dctcp");
        let record = studied(&settings, 2);
        assert_eq!(record, studied(&settings, 1));
        let stop = AtomicBool::new(false);
        let again = |settings: &Settings| one(settings, &stop).expect("nobody stops it");
        assert_eq!(again(&settings), Ok(record.slowdown));
        let mut last = f64::INFINITY;
        let mut seen = 0;
        for run in &record.runs {
            let Some(slowdown) = run.slowdown else { continue };
            let knob = super::super::knobs::find(&run.parameter.replace('_', "-")).expect("a knob");
            let to = run.changed_to.as_deref().expect("it was run");
            assert_eq!(again(&settings.clone().with(knob.name, to)), Ok(slowdown), "{run:?}");
            let effect = (slowdown.mean / record.slowdown.mean - 1.0).abs();
            assert!(effect <= last, "{run:?} after one of {last}");
            (last, seen) = (effect, seen + 1);
        }
        assert!(seen > 15, "{seen} of {}", record.runs.len());
        let most = record.runs[0].slowdown.expect("it was run").mean / record.slowdown.mean - 1.0;
        assert!(most.abs() > 0.05, "nothing matters: {:?}", record.runs[0]);
    }

    #[test]
    fn values_are_as_people_write_them() {
        assert_eq!(shown("22500000ps"), "22.5 µs");
        assert_eq!(shown("5ns,200ns"), "5.0 ns,200.0 ns");
        assert_eq!(shown("20000000000bps"), BitsPerSec::from_gbps(20).to_string());
        assert_eq!([shown("36864B"), shown("40Gbps"), shown("12")], ["36864B", "40Gbps", "12"]);
    }

    #[test]
    fn what_cannot_be_tried_says_why() {
        let record = studied(&small("homa"), 2);
        let text = text("title", &record);
        for line in [
            "not run: levels 16: --levels: \"16\": give a whole number from 2 to 8",
            "not run: overcommitment: 0 cannot be halved",
            "not run: host-buffer: no limit cannot be doubled",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is missing in {text}");
        }
        let lines = rows(&record);
        assert_eq!(lines.lines().count(), record.runs.len() + 2);
        let commas = |line: &str| line.matches(',').count();
        assert!(lines.lines().all(|line| commas(line) == 8), "{lines}");
        let sorted = record.runs.iter().position(|run| run.slowdown.is_none());
        let first = sorted.expect("some cannot be run");
        assert!(record.runs[first..].iter().all(|run| run.slowdown.is_none()), "{text}");
    }
}
