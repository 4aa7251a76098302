//! Builds the records of a sweep.

use experiment::journal::Header;
use results::{Finding, Findings, Native, Requirements, Side, Standing};

use super::file::Sweep;
use super::find::{Requirement, Step};

/// The record of all findings.
pub(crate) fn findings(
    header: &Header,
    sweep: &Sweep,
    native: Option<Native>,
    cells: Vec<Finding>,
) -> Findings {
    Findings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: header.command.clone(),
        started_unix_ns: header.started_unix_ns,
        host: header.host.clone(),
        workload: sweep.workload.command.clone(),
        native,
        cells,
    }
}

/// The record of requirements for a slowdown of at most `bound` (a ratio); `of_bytes` is the memory
/// that shares of local memory are shares of.
pub(crate) fn requirements(
    header: &Header,
    sweep: &Sweep,
    (bound, of_bytes): (f64, Option<u64>),
    requirements: &[Requirement],
) -> Requirements {
    let find = &sweep.find;
    let held = [
        ("engine", &find.engine),
        ("local", &find.local),
        ("of", &find.of),
        ("rtt", &find.rtt),
        ("bandwidth", &find.bandwidth),
    ];
    Requirements {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: header.command.clone(),
        started_unix_ns: header.started_unix_ns,
        host: header.host.clone(),
        workload: sweep.workload.command.clone(),
        seed: sweep.seed,
        slowdown_max: bound,
        held: held.map(|(axis, value)| (axis.to_owned(), value.clone())).into(),
        of_bytes,
        requirements: requirements.iter().map(requirement).collect(),
    }
}

/// The record of one requirement.
fn requirement(found: &Requirement) -> results::Requirement {
    let side = |side: &Option<(String, Step)>| {
        let (value, step) = side.as_ref()?;
        Some(Side { value: value.clone(), slowdown: step.slowdown })
    };
    let invalid = found.invalid.as_ref();
    results::Requirement {
        axis: found.axis.to_owned(),
        last_good: side(&found.good),
        first_bad: side(&found.bad),
        standing: if invalid.is_some() { Standing::Invalid } else { found.standing },
        invalid: invalid.map(|(value, why)| format!("at {value} {why}")),
    }
}

#[cfg(test)]
mod tests {
    use results::{Estimate, Interval};

    use super::*;

    #[test]
    fn a_requirement_has_both_sides() {
        let interval = Some(Interval { low: 0.9, high: 1.1, level: 0.93 });
        let slowdown = Some(Estimate { median: 1.0, interval, count: 5 });
        let good = Some(("5us".to_owned(), Step { slowdown, invalid: None }));
        let bad = Some(("10us".to_owned(), Step { slowdown: None, invalid: None }));
        let standing = Standing::Confirmed;
        let record = requirement(&Requirement { good, bad, standing, ..Requirement::new("rtt") });
        assert_eq!(record.last_good, Some(Side { value: "5us".to_owned(), slowdown }));
        assert_eq!(record.first_bad.map(|side| side.slowdown), Some(None));
        assert_eq!((record.standing, record.invalid), (Standing::Confirmed, None));
        let why = ("5us".to_owned(), "invalid: why".to_owned());
        let record = requirement(&Requirement::invalid("rtt", why));
        assert_eq!(record.invalid.as_deref(), Some("at 5us invalid: why"));
        assert_eq!((record.standing, record.last_good), (Standing::Invalid, None));
    }
}
