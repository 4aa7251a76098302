//! Output: results as text and as a record.

use std::fmt::Write as _;

use console::{Stream, Tone, tinted};
use measure::{Bytes, Duration};
use results::torture::{Case, Felt, Params, Results, Torture, Verdict};

use super::case::told;
use super::plan::Plan;
use super::run::Outcome;

/// The indentation of further lines of a case.
const INDENT: &str = "        ";

/// The cases as plain text.
pub(super) fn list() -> String {
    super::rows().fold(String::new(), |mut text, row| {
        let writes = if row.writes { "; writes" } else { "" };
        let expected = told(row.expected);
        let _infallible = writeln!(text, "{:<5} {}: {expected}{writes}", row.name, row.what);
        text
    })
}

/// The cases as a table of Markdown.
pub(super) fn markdown() -> String {
    let head = "| case | what is sent | reaction | writes |\n|---|---|---|---|\n".to_owned();
    super::rows().fold(head, |mut text, row| {
        let writes = if row.writes { "yes" } else { "" };
        let expected = told(row.expected);
        let _infallible = writeln!(text, "| {} | {} | {expected} | {writes} |", row.name, row.what);
        text
    })
}

/// The lines before the first case.
pub(super) fn head(plan: &Plan) -> String {
    let mut text = format!("afar torture: {} cases at {}", plan.rows.len(), plan.address);
    if plan.site.quick {
        text += "; QUICK: a hundredth of the repetitions";
    }
    let skipped = plan.rows.iter().filter(|row| row.writes && !plan.allows_writes).count();
    if skipped > 0 {
        let _infallible =
            write!(text, "\n{skipped} of them may write and are SKIPPED without --allow-writes");
    } else if plan.allows_writes {
        text += "\nWHAT IS ON THE DISK IS LOST (--allow-writes)";
    }
    text + "\n\n"
}

/// The progress line while a case runs.
pub(super) fn progress(done: &[Outcome], name: &str) -> String {
    let wrong = done.iter().filter(|outcome| outcome.verdict == Verdict::Not).count();
    format!("{name}  {wrong} not as stated")
}

/// The lines about the results of a case.
pub(super) fn lines(outcome: &Outcome, calm: &Felt) -> String {
    let Outcome { row, verdict, findings, neighbour, elapsed, .. } = outcome;
    let tone = match verdict {
        Verdict::Not => Some(Tone::Bad),
        Verdict::AsStated => Some(Tone::Good),
        Verdict::Skipped | Verdict::NotOffered => None,
    };
    let word = loud(*verdict);
    let word = tone.map_or_else(|| word.to_owned(), |tone| tinted(Stream::Answer, tone, word));
    let mut text = format!("{:<6}  {word}: {}\n", row.name, row.what);
    for reason in outcome.reasons.iter().chain(&findings.worst) {
        let _infallible = writeln!(text, "{INDENT}{reason}");
    }
    let tried = findings.ways > 0;
    if tried && *verdict != Verdict::NotOffered {
        let seen: Vec<String> =
            findings.seen.iter().map(|(what, count)| format!("{what} ×{count}")).collect();
        let (expected, seen) = (told(row.expected), seen.join(", "));
        let _infallible = writeln!(text, "{INDENT}expected {expected}; saw {seen}");
    }
    if *verdict == Verdict::Skipped {
        return text;
    }
    let [p99, max, calm] = [neighbour.p99_ns, neighbour.max_ns, calm.p99_ns].map(Duration::from_ns);
    let errors = neighbour.error_count;
    let _infallible =
        write!(text, "{INDENT}neighbour {errors} errors, p99 {p99} (calm {calm}), most {max}; ");
    if let [Some(before), Some(after)] = outcome.resident_bytes.map(|bytes| bytes.map(Bytes::new)) {
        let _infallible = write!(text, "target {before}, then {after}; ");
    }
    let _infallible = writeln!(text, "{:.2} s", elapsed.as_secs_f64());
    text
}

/// The last line: how many cases have each verdict.
pub(super) fn summary(
    plan: &Plan,
    outcomes: &[Outcome],
    [interrupted, is_gone]: [bool; 2],
) -> String {
    let count =
        |verdict| outcomes.iter().filter(|outcome: &&Outcome| outcome.verdict == verdict).count();
    let mut text = format!(
        "\n{} as stated, {} NOT, {} not offered, {} skipped",
        count(Verdict::AsStated),
        count(Verdict::Not),
        count(Verdict::NotOffered),
        count(Verdict::Skipped),
    );
    if plan.site.quick {
        text += " (quick)";
    }
    let left = plan.rows.len() - outcomes.len();
    if interrupted {
        let _infallible = write!(text, "; interrupted, {left} not tried");
    }
    if is_gone {
        let last = outcomes.last().map_or("", |outcome| outcome.row.name);
        let _infallible =
            write!(text, "; THE TARGET TAKES NO CONNECTIONS SINCE {last}, {left} not tried");
    }
    text + "\n"
}

/// The record of the run.
pub(super) fn record(
    plan: &Plan,
    calm: &Felt,
    outcomes: &[Outcome],
    started_unix_ns: u64,
    [interrupted, is_gone]: [bool; 2],
) -> Torture {
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    Torture {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.collect(),
        started_unix_ns,
        seed: plan.site.seed,
        host: console::machine::describe(),
        params: Params {
            target: plan.address.clone(),
            neighbour: plan.neighbour_name.clone(),
            is_quick: plan.site.quick,
            allows_writes: plan.allows_writes,
            patience_ns: ns(plan.site.patience),
            processes: plan.pids.clone(),
        },
        results: Results {
            calm: calm.clone(),
            interrupted,
            target_is_gone: is_gone,
            cases: outcomes.iter().map(of_case).collect(),
        },
    }
}

/// The record of a case.
fn of_case(outcome: &Outcome) -> Case {
    let findings = &outcome.findings;
    Case {
        name: outcome.row.name.to_owned(),
        what: outcome.row.what.to_owned(),
        expected: told(outcome.row.expected),
        verdict: outcome.verdict,
        reasons: outcome.reasons.clone(),
        seen: findings.seen.clone(),
        way_count: findings.ways,
        wrong_count: findings.wrong,
        wrong: findings.worst.clone(),
        neighbour: outcome.neighbour.clone(),
        resident_before_bytes: outcome.resident_bytes[0],
        resident_after_bytes: outcome.resident_bytes[1],
        elapsed_ns: ns(outcome.elapsed),
    }
}

/// The results as CSV, a row for each case.
pub(super) fn csv(outcomes: &[Outcome]) -> String {
    let head = "case,verdict,ways,wrong,neighbour_p99_ns,neighbour_errors,elapsed_ns\n".to_owned();
    outcomes.iter().fold(head, |mut text, outcome| {
        let (findings, felt) = (&outcome.findings, &outcome.neighbour);
        let _infallible = writeln!(
            text,
            "{},{},{},{},{},{},{}",
            outcome.row.name,
            outcome.verdict.words(),
            findings.ways,
            findings.wrong,
            felt.p99_ns,
            felt.error_count,
            ns(outcome.elapsed),
        );
        text
    })
}

// The words of a verdict, in capitals if a user should look at it.
const fn loud(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Not => "NOT as stated",
        Verdict::Skipped => "SKIPPED",
        Verdict::AsStated | Verdict::NotOffered => verdict.words(),
    }
}

/// `time` in nanoseconds.
fn ns(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
