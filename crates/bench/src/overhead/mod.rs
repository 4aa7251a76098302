//! The benchmark `overhead`: the cost of afar without a delay.

mod asked;
mod fault;
mod local;
mod mmap;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::Part;
use crate::report::{Found, Report};

pub(crate) use asked::asks;
pub(crate) use local::rate;

type Run = fn(&Context) -> Result<Found, Failure>;

/// Runs `parts`, or all of them if none is named.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context, parts: &[Part]) -> Result<Report, Failure> {
    let wants = |part| parts.is_empty() || parts.contains(&part);
    let all: [(Part, Run); 3] =
        [(Part::Fault, fault::run), (Part::Local, local::run), (Part::Mmap, mmap::run)];
    let wanted = all.into_iter().filter(|(part, _)| wants(*part));
    let found: Result<_, _> = wanted.map(|(_, run)| run(context)).collect();
    Ok(Report::of_parts("overhead", found?))
}
