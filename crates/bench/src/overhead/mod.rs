//! What afar costs where it delays nothing.

mod fault;
mod found;
mod local;
mod mmap;

use serde_json::{Map, Value};

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::Part;
use crate::report::Report;

pub(crate) use local::rate;

use found::Found;

type Run = fn(&Context) -> Result<Found, Failure>;

/// Runs `parts`, or all of them if none is named.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context, parts: &[Part]) -> Result<Report, Failure> {
    let wants = |part| parts.is_empty() || parts.contains(&part);
    let mut report = Report {
        name: "overhead",
        settings: Value::Null,
        results: Value::Null,
        text: String::new(),
        verdicts: Vec::new(),
    };
    let (mut settings, mut results) = (Map::new(), Map::new());
    let all: [(Part, Run); 3] =
        [(Part::Fault, fault::run), (Part::Local, local::run), (Part::Mmap, mmap::run)];
    for (_, run) in all.iter().filter(|(part, _)| wants(*part)) {
        let found = run(context)?;
        settings.insert(found.name.to_owned(), found.settings);
        results.insert(found.name.to_owned(), found.results);
        if !report.text.is_empty() {
            report.text.push('\n');
        }
        report.text.push_str(&found.text);
        report.verdicts.extend(found.verdicts);
    }
    report.settings = settings.into();
    report.results = results.into();
    Ok(report)
}
