//! `afar doctor`: what this machine can do, what would make it do more, and what was left behind.

mod check;
mod checks;
mod leftovers;

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use console::{Class, Failure, terminal};
use serde::Serialize;

use leftovers::Leftover;

use check::{Check, State};

/// Width of the column of names.
const NAME: usize = 24;

/// Say what this machine can do, and what would make it do more
///
/// Checks everything that afar uses, measures the shortest delay of each trap, and looks for what
/// runs that were killed have left behind. Exit status: 0 if afar run works here, 3 if not.
#[derive(Debug, Args)]
pub(crate) struct DoctorFlags {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Remove what runs that were killed have left behind
    #[arg(long)]
    pub(crate) repair: bool,
}

/// Everything that was found, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: &'static str,
    usable: bool,
    checks: Vec<Check>,
    leftovers: Vec<Leftover>,
}

/// Looks at this machine and prints what it found; with `--repair`, cleans up first.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn doctor(flags: &DoctorFlags) -> Result<ExitCode, Failure> {
    let mut leftovers = leftovers::find();
    if flags.repair {
        for leftover in &mut leftovers {
            leftover.remove();
        }
    }
    let (checks, usable) = checks::all();
    let report = Report {
        schema: "afar.doctor/1",
        version: env!("CARGO_PKG_VERSION"),
        usable,
        checks,
        leftovers,
    };
    let text = if flags.json {
        let mut text = serde_json::to_string_pretty(&report).expect("plain data has a JSON form");
        text.push('\n');
        text
    } else {
        table(&report)
    };
    terminal::answer(&text)?;
    Ok(if usable { ExitCode::SUCCESS } else { Class::Environment.into() })
}

fn table(report: &Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let state = match check.state {
            State::Ok => "ok",
            State::No => "no",
        };
        let _infallible = writeln!(text, "{:<NAME$}{state}  {}", check.name, check.found);
        if check.state == State::No {
            if let Some(what) = check.needed_for {
                let _infallible = writeln!(text, "{:<NAME$}    needed for {what}", "");
            }
            if let Some(remedy) = &check.remedy {
                let _infallible = writeln!(text, "{:<NAME$}    fix: {remedy}", "");
            }
        }
    }
    let remaining = report.leftovers.iter().any(|leftover| !leftover.removed);
    let state = match (report.leftovers.is_empty(), remaining) {
        (true, _) => "ok  clean",
        (false, false) => "ok  cleaned up",
        (false, true) => "no",
    };
    let _infallible = writeln!(text, "{:<NAME$}{state}", "left by killed runs");
    for leftover in &report.leftovers {
        let _infallible = writeln!(text, "{:<NAME$}    {leftover}", "");
    }
    if remaining {
        let _infallible = writeln!(text, "{:<NAME$}    fix: afar doctor --repair", "");
    }
    text.push_str(if report.usable {
        "\nafar run works here.\n"
    } else {
        "\nafar run does not work here: neither bpf nor userfaultfd can be used.\n"
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_says_what_is_wrong_and_how_to_fix_it() {
        let check = |state| Check {
            name: "userfaultfd",
            state,
            found: "permission denied".to_owned(),
            needed_for: Some("--trap userfaultfd"),
            remedy: Some("sudo setfacl".to_owned()),
        };
        let mut report = Report {
            schema: "afar.doctor/1",
            version: "0",
            usable: false,
            checks: vec![check(State::No)],
            leftovers: Vec::new(),
        };
        let indent = " ".repeat(NAME + 4);
        let text = table(&report);
        assert!(text.contains(&format!("{indent}needed for --trap userfaultfd\n")), "{text}");
        assert!(text.contains(&format!("{indent}fix: sudo setfacl\n")), "{text}");
        assert!(text.contains("left by killed runs     ok  clean\n"), "{text}");
        report.checks = vec![check(State::Ok)];
        assert!(!table(&report).contains("fix:"), "nothing to fix");
    }
}
