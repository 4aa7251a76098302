//! `afar plan cost`: what direct-attached and disaggregated flash cost.

mod file;
mod json;
mod map;
mod picture;
mod series;
mod table;

use std::process::ExitCode;

use planner::cost::{
    Comparison, CostError, Knob, Sensitivity, Usage, Wedge, compare, sensitivity, usage,
};

use self::file::{EXAMPLE, Experiment};
use super::source::Source;
use super::{Written, write};
use crate::failure::Failure;
use crate::flags::CostFlags;
use crate::terminal;

/// Everything that is said of a bill.
struct Answer {
    bill: Comparison,
    usage: Vec<Usage>,
    sensitivity: Vec<Sensitivity>,
    wedge: Wedge,
}

/// Runs `afar plan cost`.
///
/// # Errors
/// When the file or a setting cannot be, or a result cannot be written.
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

/// One answer in several forms; those that make no sense are empty.
struct Texts {
    table: String,
    json: String,
    svg: String,
    csv: String,
}

fn bill(experiment: &Experiment) -> Result<Texts, CostError> {
    let (model, tenants) = (&experiment.model, &experiment.tenants[..]);
    let bill = compare(model, tenants)?;
    let usage = usage(model, tenants, &bill)?;
    let sensitivity = sensitivity(model, tenants)?;
    let answer = Answer { bill, usage, sensitivity, wedge: Wedge::of(model)? };
    let json = json::bill(experiment, &answer);
    let table = table::bill(experiment, &answer);
    let svg = picture::draw(experiment, &answer);
    Ok(Texts { table, json, svg, csv: String::new() })
}

/// The key a knob has in a file.
fn key(knob: Knob) -> String {
    match knob {
        Knob::FlashPrice => "price.flash".to_owned(),
        Knob::ComputePrice => "price.compute".to_owned(),
        Knob::TaxPrice => "price.tax".to_owned(),
        Knob::Drop => "remote.drop".to_owned(),
        Knob::Demand(dimension) => format!("demand.{dimension}"),
        Knob::Server(dimension) => format!("server.{dimension}"),
    }
}
