//! `afar torture`: hostile peers for any target, beside a host that behaves well.
//!
//! ```text
//! flags ─► Site ─► rows ─┬► Case on a Wire ─► what was seen ─┬─► verdict ─► lines, JSON
//!                        └► Neighbour, memory ───────────────┘
//! ```
//!
//! Hostile PDUs are written byte by byte here and not by `nvme` or `scsi`, so that both ends do not
//! share a mistake. Cases are rows of tables, a file for each group. A case records the reactions
//! it has seen (`case::Seen`), each right if one of the row's `Want`s admits it.

mod case;
mod flags;
mod iscsi;
mod memory;
mod neighbour;
mod nvme;
mod plan;
mod rows;
mod run;
mod site;
mod table;
mod wire;

use std::process::ExitCode;

use console::{Class, Failure, Output, terminal};

use client::Session;
pub use flags::TortureFlags;

pub(crate) use plan::TortureError;

use plan::Plan;
use results::torture::Verdict;
use run::Outcome;

use rows::rows;

/// Runs `afar torture`.
///
/// # Errors
/// When the flags contradict one another, or the target cannot be reached at all.
pub fn torture(flags: &TortureFlags) -> Result<ExitCode, Failure> {
    if flags.list {
        let text = if flags.markdown { table::markdown() } else { table::list() };
        terminal::answer(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let json = Output::wanted(flags.json.as_deref())?;
    let csv = Output::wanted(flags.csv.as_deref())?;
    let mut session = Session::new().map_err(TortureError::from)?;
    let plan = Plan::resolve(flags)?;
    let started_unix_ns = sys::clock::unix_ns();
    let is_told = ![&json, &csv].into_iter().flatten().any(Output::is_stdout);
    let say = |text: String| if is_told { terminal::answer(&text) } else { Ok(()) };
    if !console::is_quiet() {
        say(table::head(&plan))?;
    }
    let calm = run::calm(&plan, &mut session)?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut is_gone = false;
    session.expect("case", plan.rows.len());
    for row in &plan.rows {
        let line = table::progress(&outcomes, row.name);
        let Some(outcome) = run::run(&plan, row, &mut session, &line)? else { break };
        session.end_drawn();
        let is_wrong = outcome.verdict == Verdict::Not;
        if !console::is_quiet() || is_wrong {
            say(table::lines(&outcome, &calm))?;
        }
        session.end_part(&format!("{} {}", row.name, outcome.verdict.words()));
        outcomes.push(outcome);
        // Stops if the target takes no connections any more.
        is_gone = is_wrong && !plan.site.takes_connections();
        if is_gone {
            break;
        }
    }
    session.end_line();
    let interrupted = session.is_interrupted();
    let ends = [interrupted, is_gone];
    let record = || results::write(&table::record(&plan, &calm, &outcomes, started_unix_ns, ends));
    let rows = || table::csv(&outcomes);
    let summary = || table::summary(&plan, &outcomes, ends);
    console::answer(summary, vec![(json, &record), (csv, &rows)])?;
    let wrong = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Not);
    let wrong: Vec<_> = wrong.map(|outcome| outcome.row.name).collect();
    match (&wrong[..], interrupted) {
        (_, true) => Ok(Class::Interrupted.into()),
        ([], false) => Ok(ExitCode::SUCCESS),
        (wrong, false) => Err(Failure::shown(
            Class::Failed,
            format!("the target did not do as stated: {}", wrong.join(", ")),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn cases_have_names_of_their_own() {
        let names: BTreeSet<&str> = rows().map(|row| row.name).collect();
        assert_eq!(names.len(), rows().count());
        assert!(nvme::rows().all(|row| row.name.starts_with('N')));
        assert!(iscsi::rows().all(|row| row.name.starts_with('I')));
        assert!(rows().all(|row| !row.expected.is_empty() && !row.what.contains('|')));
    }
}
