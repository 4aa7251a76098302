//! The report as JSON: answers, figures, and the table behind every picture.

use serde_json::{Value, json};

use super::Report;
use super::section::{Better, Picture, Section, Table};

/// The whole text.
pub(super) fn text(report: &Report) -> String {
    let sections = report.sections.iter().map(|(name, one)| section(name, one));
    results::json_text(&json!({
        "schema": "afar.report/1",
        "version": env!("CARGO_PKG_VERSION"),
        "title": report.title,
        "command": report.command,
        "sections": sections.collect::<Vec<_>>(),
    }))
}

fn section(name: &str, section: &Section) -> Value {
    let figures = section.figures.iter().map(|one| {
        json!({
            "name": one.name,
            "unit": one.unit,
            "value": one.value,
            "low": one.interval.map(|ends| ends.0),
            "high": one.interval.map(|ends| ends.1),
            "better": match one.better {
                Better::Lower => "lower",
                Better::Higher => "higher",
            },
        })
    });
    let facts = section.facts.iter().map(|(name, value)| json!({"name": name, "value": value}));
    json!({
        "record": name,
        "kind": section.kind,
        "title": section.title,
        "command": section.command,
        "host": section.host,
        "valid": section.invalid.is_none(),
        "answer": section.answer,
        "enough": section.enough.as_ref().map(|(enough, _)| table(enough)),
        "verdicts": section.verdicts.as_ref().map(table),
        "warnings": section.warnings,
        "facts": facts.collect::<Vec<_>>(),
        "figures": figures.collect::<Vec<_>>(),
        "pictures": section.pictures.iter().map(picture).collect::<Vec<_>>(),
    })
}

fn picture(picture: &Picture) -> Value {
    json!({
        "name": picture.name,
        "title": picture.title,
        "caption": picture.caption,
        "table": table(&picture.table),
    })
}

fn table(table: &Table) -> Value {
    json!({"columns": table.columns, "rows": table.rows, "rows_of_record": table.cut_from})
}
