//! `afar plan cost`: what direct-attached and disaggregated flash cost.

mod answer;
mod file;
mod map;
mod picture;
mod record;
mod series;
mod table;

use std::process::ExitCode;

use console::{Failure, terminal};
use planner::cost::{CostError, Wedge, compare, sensitivity, usage};

use self::file::{EXAMPLE, Experiment};
use super::{Written, write};
use crate::flags::CostFlags;
use document::Source;

use answer::{Answer, Texts, key};

/// Runs `afar plan cost`.
///
/// # Errors
/// If the file or a setting is invalid, or a result cannot be written.
pub(super) fn cost(flags: &CostFlags) -> Result<ExitCode, Failure> {
    if flags.print {
        let text = match &flags.experiment {
            Some(path) => Source::read(path)?.text,
            None => EXAMPLE.to_owned(),
        };
        terminal::answer(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiment = Experiment::read(flags.experiment.as_deref(), &flags.set)?;
    let counted = if flags.map { map::of(&experiment, flags) } else { bill(&experiment) };
    let Texts { table, json, svg, csv } = counted.map_err(|source| experiment.wrong(source))?;
    let files = [(&flags.json, json), (&flags.svg, svg), (&flags.csv, csv)];
    let files = files.into_iter().map(|(path, text)| (path, text.into_bytes()));
    write(Written { table, files: files.collect() })
}

/// The bill as table, JSON and picture.
fn bill(experiment: &Experiment) -> Result<Texts, CostError> {
    let (model, tenants) = (&experiment.model, &experiment.tenants[..]);
    let bill = compare(model, tenants)?;
    let usage = usage(model, tenants, &bill)?;
    let sensitivity = sensitivity(model, tenants)?;
    let answer = Answer { bill, usage, sensitivity, wedge: Wedge::of(model)? };
    let json = results::write(&record::bill(experiment, &answer));
    let table = table::bill(experiment, &answer);
    let svg = picture::draw(experiment, &answer);
    Ok(Texts { table, json, svg, csv: String::new() })
}
