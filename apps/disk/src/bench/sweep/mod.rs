//! `--sweep`: measures latency against load.
//!
//! ```text
//! closed loop: highest rate ─► open loops at shares of it, until latency explodes ─► points
//!                                       table, CSV, picture, record ◄───────────────────────┘
//! ```
//!
//! Output is computed from points alone, so that tests can make their own.

mod curve;
mod output;
mod point;

use std::process::ExitCode;

use console::layout::kilo;
use console::{Class, Failure, Output, terminal};

use super::error::BenchError;
use super::fio;
use super::job::Job;
use super::layout;
use super::plan::{Devices, Plan};
use super::run::{self, Phase, Ready};
use crate::bench::flags::BenchFlags;
use client::Session;
use document::per_second;

use curve::Curve;

/// Shares of the closed loop's rate that are always measured.
const SHARES: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
/// Further shares, measured until latency explodes.
const BEYOND: [f64; 6] = [1.0, 1.05, 1.1, 1.2, 1.35, 1.5];

/// Output files that the flags name.
struct Files {
    json: Option<Output>,
    csv: Option<Output>,
    svg: Option<Output>,
}

/// Runs `afar bench --sweep`.
///
/// # Errors
/// When the flags contradict one another, or the disk cannot be reached.
pub(super) fn sweep(flags: &BenchFlags, rates: &str) -> Result<ExitCode, Failure> {
    let rates = given(rates)?;
    let job = Job::of_flags(flags)?;
    let plan = Plan::resolve(&job, flags)?;
    let open = |path: &Option<_>| path.as_deref().map(Output::open).transpose();
    let [json, csv, svg] = [&flags.json, &flags.csv, &flags.svg].map(open);
    let files = Files { json: json?, csv: csv?, svg: svg? };
    let mut session = Session::new().map_err(BenchError::from)?;
    let ready = Ready::open(plan, &mut Devices::default())?;
    if flags.layout {
        layout::lay_out(&mut session, std::slice::from_ref(&ready))?;
    }
    let curve = measure(&mut session, &ready, rates)?;
    session.end_line();
    let interrupted = session.is_interrupted();
    write(flags, &ready, &curve, files, interrupted)?;
    if let Some(failure) = &curve.failure {
        return Err(Failure::shown(Class::Failed, failure.to_string()));
    }
    if interrupted {
        let until = match curve.points.len() {
            0 => " before anything was measured".to_owned(),
            1 => "; this is the point until then".to_owned(),
            count => format!("; these are the {count} points until then"),
        };
        terminal::say(&format!("afar bench: interrupted{until}\n"));
        return Ok(Class::Interrupted.into());
    }
    Ok(ExitCode::SUCCESS)
}

// The rates of `--sweep`, ascending; none if it has no value.
fn given(text: &str) -> Result<Vec<f64>, BenchError> {
    let words = text.split(',').filter(|_| !text.is_empty()).map(str::trim);
    let rate = |word| per_second(word).ok_or_else(|| BenchError::Sweep(text.to_owned()));
    let mut rates = words.map(rate).collect::<Result<Vec<f64>, _>>()?;
    rates.sort_by(f64::total_cmp);
    Ok(rates)
}

// Measures the points at `rates`, or else a closed loop and points at shares of its rate.
fn measure(session: &mut Session, ready: &Ready, rates: Vec<f64>) -> Result<Curve, BenchError> {
    let mut curve = Curve { closed: None, points: Vec::new(), failure: None };
    if !rates.is_empty() {
        let all = rates.len();
        session.expect("point", all);
        for (index, rate) in rates.into_iter().enumerate() {
            let name = format!("point {} of {all}", index + 1);
            if !curve.add(session, ready, &name, (None, rate))? {
                break;
            }
        }
        return Ok(curve);
    }
    let name = "closed loop";
    // How many points of `BEYOND` follow is not known yet.
    session.expect("point", 1 + SHARES.len());
    let closed = run::run_together(session, &[ready.named(name)], &[0], format!("{name}  "))?;
    let tally = &closed.outcomes[0].tally;
    let (most, failure) = (tally.per_second(), point::failure(tally));
    if session.is_interrupted() || failure.is_some() {
        return Ok(Curve { failure, ..curve });
    }
    curve.closed = Some(closed);
    session.end_part(&format!("{name}, {}/s", kilo(most)));
    for (index, share) in SHARES.into_iter().chain(BEYOND).enumerate() {
        if index >= SHARES.len() && curve.has_exploded() {
            break;
        }
        let name = format!("point {}, {:.0} %", index + 1, share * 100.0);
        if !curve.add(session, ready, &name, (Some(share), most * share))? {
            break;
        }
    }
    Ok(curve)
}

// Prints the table and writes the files.
fn write(
    flags: &BenchFlags,
    ready: &Ready,
    curve: &Curve,
    files: Files,
    interrupted: bool,
) -> Result<(), Failure> {
    let csv = || output::csv(&curve.points);
    let svg = || output::picture(ready, curve);
    let json = || fio::text(&record(flags, curve, interrupted));
    let text = || match curve.points.is_empty() {
        true => String::new(),
        false => output::text(ready, curve),
    };
    // Without anything to write, older files are left as they are.
    let has_points = !curve.points.is_empty();
    let files = Files {
        csv: files.csv.filter(|_| has_points),
        svg: files.svg.filter(|_| has_points),
        json: files.json.filter(|_| has_points || curve.closed.is_some()),
    };
    console::answer(text, vec![(files.csv, &csv), (files.svg, &svg), (files.json, &json)])
}

// The record: fio's JSON with a phase for each point, and the curve.
fn record(flags: &BenchFlags, curve: &Curve, interrupted: bool) -> serde_json::Value {
    let closed = curve.closed.iter();
    let phases: Vec<&Phase> = closed.chain(curve.points.iter().map(|point| &point.phase)).collect();
    let sweep = output::record(curve);
    fio::record(flags, &[], &phases, &[("sweep", sweep), ("interrupted", interrupted.into())])
}
