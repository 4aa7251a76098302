//! The benchmark `policies`: whether eviction policies do what their names say, and how much the
//! choice matters.
//!
//! ```text
//! true      seeded sequence ─► bench accesses under afar run, each policy ─► fetches ─┐
//!                           └► the policy that knows every access ────────► misses ──┴► verdicts
//! programs  CPython and Redis under each policy
//! ```

mod accesses;
mod programs;
mod real;
mod sequence;
mod truth;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::PoliciesPart;
use crate::report::{Found, Report};

pub(crate) use accesses::accesses;

type Run = fn(&Context) -> Result<Found, Failure>;

/// Runs `parts`, or all of them if none is named.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context, parts: &[PoliciesPart]) -> Result<Report, Failure> {
    let wants = |part| parts.is_empty() || parts.contains(&part);
    let all: [(PoliciesPart, Run); 2] =
        [(PoliciesPart::True, real::run), (PoliciesPart::Programs, programs::run)];
    let wanted = all.into_iter().filter(|(part, _)| wants(*part));
    let found: Result<_, _> = wanted.map(|(_, run)| run(context)).collect();
    Ok(Report::of_parts("policies", found?))
}
