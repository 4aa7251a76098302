//! What a sweep says, as JSON.

use serde_json::{Map, Value, json};

use super::file::Sweep;
use super::find::{Requirement, Step};
use super::journal::Header;
use super::matrix::Kind;
use super::stats::Estimate;
use super::table::Finding;

/// Everything that the tables say, cell by cell.
pub(crate) fn findings(header: &Header, sweep: &Sweep, findings: &[Finding]) -> String {
    let cells: Vec<Value> = findings.iter().map(finding).collect();
    text(&json!({
        "schema": "afar.findings/2",
        "version": env!("CARGO_PKG_VERSION"),
        "command": header.command,
        "started_unix_ns": header.started_unix_ns,
        "host": header.host,
        "workload": sweep.workload.command,
        "cells": cells,
    }))
}

fn finding(finding: &Finding) -> Value {
    let settings = finding.cell.settings.iter();
    let settings: Map<String, Value> =
        settings.map(|(axis, value)| ((*axis).to_owned(), value.as_str().into())).collect();
    let outliers = finding.outliers.iter();
    let outliers: Vec<Value> =
        outliers.map(|(block, slowdown)| json!({"block": block, "slowdown": slowdown})).collect();
    json!({
        "kind": match finding.cell.kind {
            Kind::Native => "native",
            Kind::Zero => "zero",
            Kind::Far => "far",
        },
        "settings": settings,
        "slowdown": finding.slowdown.map(estimate),
        "outliers": outliers,
        "failed_count": finding.failed_count,
        "first_failure": finding.first_failure,
        "invalid_count": finding.invalid_count,
        "first_invalid": finding.first_invalid,
        "allowed_count": finding.allowed_count,
        "fetch_count": finding.fetch_count,
        "budget_exceeded_count": finding.exceeded_count,
    })
}

/// What a program needs to be slowed down by no more than `bound`, a ratio.
pub(crate) fn requirements(
    header: &Header,
    sweep: &Sweep,
    bound: f64,
    requirements: &[Requirement],
) -> String {
    let find = &sweep.find;
    let requirements: Vec<Value> = requirements.iter().map(requirement).collect();
    text(&json!({
        "schema": "afar.requirement/2",
        "version": env!("CARGO_PKG_VERSION"),
        "command": header.command,
        "started_unix_ns": header.started_unix_ns,
        "host": header.host,
        "workload": sweep.workload.command,
        "seed": sweep.seed,
        "slowdown_max": bound,
        "held": {
            "engine": find.engine,
            "local": find.local,
            "rtt": find.rtt,
            "bandwidth": find.bandwidth,
        },
        "requirements": requirements,
    }))
}

fn requirement(found: &Requirement) -> Value {
    let side = |side: &Option<(String, Step)>| {
        let (value, step) = side.as_ref()?;
        Some(json!({"value": value, "slowdown": step.slowdown.map(estimate)}))
    };
    json!({
        "axis": found.axis,
        "last_good": side(&found.good),
        "first_bad": side(&found.bad),
        "confirmed": found.confirmed,
        "invalid": found.invalid.as_ref().map(|(value, why)| format!("at {value} {why}")),
    })
}

fn estimate(Estimate { median, low, high, count }: Estimate) -> Value {
    json!({"median": median, "low": low, "high": high, "count": count})
}

fn text(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("plain data has a JSON form") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_has_both_sides() {
        let slowdown = Some(Estimate { median: 1.0, low: 0.9, high: 1.1, count: 5 });
        let good = Some(("5us".to_owned(), Step { slowdown, invalid: None }));
        let bad = Some(("10us".to_owned(), Step { slowdown: None, invalid: None }));
        let found = Requirement { good, bad, confirmed: true, ..Requirement::new("rtt") };
        let value = requirement(&found);
        assert_eq!(value["last_good"]["slowdown"]["high"], 1.1);
        assert_eq!(value["first_bad"], json!({"value": "10us", "slowdown": null}));
        assert_eq!((&value["confirmed"], &value["invalid"]), (&json!(true), &json!(null)));
        let why = ("5us".to_owned(), "invalid: why".to_owned());
        let value = requirement(&Requirement::invalid("rtt", why));
        assert_eq!(value["invalid"], "at 5us invalid: why");
        assert_eq!((&value["last_good"], &value["first_bad"]), (&json!(null), &json!(null)));
    }
}
