//! What a target did with hostile peers.

use measure::Host;
use serde::Deserialize;
use serde_json::Value;

use super::context::Context;
use super::section::{Figure, Section, Table};
use super::words::time_ns;

#[derive(Deserialize)]
struct Record {
    command: Vec<String>,
    seed: u64,
    host: Host,
    params: Params,
    results: Results,
}

#[derive(Deserialize)]
struct Params {
    target: String,
    is_quick: bool,
}

#[derive(Deserialize)]
struct Results {
    calm: Felt,
    interrupted: bool,
    target_is_gone: bool,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Felt {
    p99_ns: u64,
    max_ns: u64,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    what: String,
    expected: String,
    verdict: String,
    reasons: Vec<String>,
    wrong: Vec<String>,
    neighbour: Felt,
}

/// Reads `afar.torture/1`.
pub(super) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let Record { command, seed, host, params, results } = serde_json::from_value(value)?;
    let cases = &results.cases;
    let count = |verdict: &str| cases.iter().filter(|case| case.verdict == verdict).count();
    let wrong = count("not as stated");
    let mut table = Table::new(["case", "what is sent", "expected", "verdict", "neighbour_p99_us"]);
    for case in cases {
        let us = format!("{:.1}", case.neighbour.p99_ns as f64 / 1e3);
        let cells = [&case.name, &case.what, &case.expected, &case.verdict, &us];
        table.push(cells.map(Clone::clone));
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
    let not = cases.iter().filter(|case| case.verdict == "not as stated");
    let told = |case: &Case| {
        let why = case.reasons.iter().chain(&case.wrong).next().map_or("", String::as_str);
        format!("{} ({}): {why}", case.name, case.what)
    };
    let mut warnings: Vec<String> = not.map(told).collect();
    let untried = count("skipped") + count("not offered");
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
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_as_stated_comes_first() {
        let case = |name: &str, verdict: &str, max_ns: u64| {
            json!({
                "name": name, "what": "PLEN 0", "expected": "T1", "verdict": verdict,
                "reasons": [], "wrong": ["PLEN 0: C, not T1"],
                "neighbour": {"p99_ns": 90_000, "max_ns": max_ns},
            })
        };
        let record = json!({
            "schema": "afar.torture/1", "command": ["afar", "torture"], "seed": 1,
            "host": console::machine::describe(),
            "params": {"target": "nvme+tcp://a/b", "is_quick": true},
            "results": {
                "calm": {"p99_ns": 60_000, "max_ns": 70_000}, "interrupted": false,
                "target_is_gone": false,
                "cases": [case("N8", "not as stated", 5), case("N9", "as stated", 2_000_000)],
            },
        });
        let context = Context { bound: 1.1, name: String::new() };
        let section = section(record, &context).expect("it is one");
        assert!(section.answer[0].contains("1 cases otherwise"), "{:?}", section.answer);
        assert_eq!(section.warnings, ["N8 (PLEN 0): PLEN 0: C, not T1"]);
        assert_eq!(section.figures[1].value, 2000.0);
        assert_eq!(section.verdicts.expect("a table").rows.len(), 2);
    }
}
