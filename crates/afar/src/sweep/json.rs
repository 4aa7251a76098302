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
        "schema": "afar.findings/1",
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
        "schema": "afar.requirement/1",
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
        let good = Some(("5us".to_owned(), Step { slowdown }));
        let bad = Some(("10us".to_owned(), Step { slowdown: None }));
        let found = Requirement { axis: "rtt", good, bad, confirmed: true };
        let value = requirement(&found);
        assert_eq!(value["last_good"]["slowdown"]["high"], 1.1);
        assert_eq!(value["first_bad"], json!({"value": "10us", "slowdown": null}));
        assert_eq!(value["confirmed"], true);
    }
}
