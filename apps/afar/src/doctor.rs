//! `afar doctor`: reports what this machine can do, what it lacks, and what killed runs have left.

mod checks;
mod leftovers;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use console::{Class, Failure, Output, Stream, Tone};
use results::doctor::{Check, Checkup, State};

use leftovers::Leftover;

/// Width of the column of names.
const NAME: usize = 24;

/// Say what this machine can do, and what would make it do more
///
/// Checks everything that afar uses, measures the shortest delay of each trap, and looks for what
/// runs that were killed have left behind. Exit status: 0 if afar run works here, 3 if not.
#[derive(Debug, Args)]
pub(crate) struct DoctorFlags {
    /// Write the answer as JSON; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each check, by the names of the record; - is standard output, which then has
    /// nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Remove what runs that were killed have left behind
    #[arg(long)]
    pub(crate) repair: bool,
}

/// Looks at this machine and prints what it found; with `--repair`, cleans up first.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn doctor(flags: &DoctorFlags) -> Result<ExitCode, Failure> {
    let [json, csv] = [&flags.json, &flags.csv].map(|path| Output::wanted(path.as_deref()));
    let (json, csv) = (json?, csv?);
    let mut leftovers = leftovers::find();
    if flags.repair {
        for leftover in &mut leftovers {
            leftover.remove();
        }
    }
    let (checks, usable) = checks::all();
    let record = || {
        results::write(&Checkup {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            usable,
            checks: checks.clone(),
            leftovers: leftovers.iter().map(Leftover::told).collect(),
        })
    };
    let rows = || console::csv_of(&serde_json::json!(checks), &["name", "state", "found"]);
    let forms: Vec<console::Form<'_>> = vec![(json, &record), (csv, &rows)];
    console::answer(|| table(&checks, usable, &leftovers), forms)?;
    Ok(if usable { ExitCode::SUCCESS } else { Class::Environment.into() })
}

// The report for people.
fn table(checks: &[Check], usable: bool, leftovers: &[Leftover]) -> String {
    let mut text = String::new();
    for check in checks {
        let (tone, state) = match check.state {
            State::Ok => (Tone::Good, "ok"),
            State::No => (Tone::Bad, "no"),
        };
        let state = console::tinted(Stream::Answer, tone, state);
        let _infallible = writeln!(text, "{:<NAME$}{state}  {}", check.name, check.found);
        if check.state == State::No {
            if let Some(what) = &check.needed_for {
                let _infallible = writeln!(text, "{:<NAME$}    needed for {what}", "");
            }
            if let Some(remedy) = &check.remedy {
                let _infallible = writeln!(text, "{:<NAME$}    fix: {remedy}", "");
            }
        }
    }
    let remaining = leftovers.iter().any(|leftover| !leftover.removed);
    let state = match (leftovers.is_empty(), remaining) {
        (true, _) => "ok  clean",
        (false, false) => "ok  cleaned up",
        (false, true) => "no",
    };
    let _infallible = writeln!(text, "{:<NAME$}{state}", "left by killed runs");
    for leftover in leftovers {
        let _infallible = writeln!(text, "{:<NAME$}    {leftover}", "");
    }
    if remaining {
        let _infallible = writeln!(text, "{:<NAME$}    fix: afar doctor --repair", "");
    }
    text.push_str(if usable {
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
        let check = Check::no("userfaultfd", "permission denied");
        let check = check.needed_for("--trap userfaultfd").fix("sudo setfacl");
        let indent = " ".repeat(NAME + 4);
        let text = table(std::slice::from_ref(&check), false, &[]);
        assert!(text.contains(&format!("{indent}needed for --trap userfaultfd\n")), "{text}");
        assert!(text.contains(&format!("{indent}fix: sudo setfacl\n")), "{text}");
        assert!(text.contains("left by killed runs     ok  clean\n"), "{text}");
        let right = Check { state: State::Ok, ..check };
        assert!(!table(&[right], true, &[]).contains("fix:"), "nothing to fix");
    }
}
