//! What a target did with hostile peers.

use results::torture::{Case, Torture, Verdict};
use serde_json::Value;

use super::context::Context;
use super::section::{Figure, Section, Table};
use super::words::time_ns;

/// The section of a record `afar.torture`.
pub(super) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let Torture { command, seed, host, params, results, .. } = results::read_body(value)?;
    let cases = &results.cases;
    let count = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
    let wrong = count(Verdict::Not);
    let mut table = Table::new(["case", "what is sent", "expected", "verdict", "neighbour_p99_us"]);
    for case in cases {
        let us = format!("{:.1}", case.neighbour.p99_ns as f64 / 1e3);
        let cells = [&case.name, &case.what, &case.expected, case.verdict.words(), &us];
        table.push(cells.map(str::to_owned));
    }
    let first = match wrong {
        0 => format!("{} reacts to all cases that were tried as it should.", params.target),
        _ => format!("{} reacts to {wrong} cases otherwise than it should.", params.target),
    };
    let longest = cases.iter().map(|case| case.neighbour.max_ns).max().unwrap_or(0);
    let calm = results.calm.p99_ns as f64;
    let second = format!(
        "A host that behaves well waited for {} at most; in calm, 99 of 100 reads took {}.",
        time_ns(longest as f64),
        time_ns(calm)
    );
    let not = cases.iter().filter(|case| case.verdict == Verdict::Not);
    let told = |case: &Case| {
        let why = case.reasons.iter().chain(&case.wrong).next().map_or("", String::as_str);
        format!("{} ({}): {why}", case.name, case.what)
    };
    let mut warnings: Vec<String> = not.map(told).collect();
    let untried = count(Verdict::Skipped) + count(Verdict::NotOffered);
    if untried > 0 {
        warnings.push(format!("{untried} cases were skipped or not offered"));
    }
    if results.target_is_gone {
        warnings.insert(0, "the target takes no connections any more".to_owned());
    }
    if results.interrupted {
        warnings.push("it was ended before its time".to_owned());
    }
    let pace = if params.is_quick { "a hundredth" } else { "all" };
    Ok(Section {
        title: format!("Hostile peers at {}", params.target),
        kind: "torture",
        answer: vec![first, second],
        verdicts: Some(table),
        warnings,
        facts: vec![
            ("repetitions".to_owned(), pace.to_owned()),
            ("seed".to_owned(), seed.to_string()),
        ],
        figures: vec![
            Figure::new("cases not as stated", "", wrong as f64),
            Figure::new("neighbour, longest read", "µs", longest as f64 / 1e3),
        ],
        command,
        host: Some(host),
        ..Section::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_stated_comes_first() {
        let golden = include_str!("../../../crates/results/tests/golden/torture.json");
        let record = serde_json::from_str(golden).expect("it is JSON");
        let context = Context { bound: 1.1, name: String::new() };
        let section = section(record, &context).expect("it is one");
        assert!(section.answer[0].contains("1 cases otherwise"), "{:?}", section.answer);
        assert_eq!(
            section.warnings,
            ["N8 (PLEN 0): PLEN 0: C, not T1", "1 cases were skipped or not offered"]
        );
        assert_eq!(section.figures[1].value, 2000.0);
        assert_eq!(section.verdicts.expect("a table").rows.len(), 3);
    }
}
