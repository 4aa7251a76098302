//! What `afar reproduce` has measured beside a paper's numbers.

use std::collections::BTreeMap;

use results::reproduced::Reproduction;
use serde_json::Value;

use super::context::Context;
use super::section::{Section, Table};
use super::words::exact;

/// The section of a record `afar.reproduce`.
pub(super) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let record: Reproduction = results::read_body(value)?;
    let answer = record.verdicts.iter().map(|claim| {
        let judgement = match claim.holds {
            Some(true) => "Holds",
            Some(false) => "Does not hold here",
            None => "Undecided",
        };
        format!("{judgement}: {}", claim.text)
    });
    let mut section = Section {
        title: record.title,
        kind: "reproduction",
        answer: answer.collect(),
        verdicts: Some(flat(&record.points)),
        command: record.command,
        host: Some(record.host),
        ..Section::default()
    };
    let picture = format!("{}.svg, beside the record", record.figure);
    section.facts.push(("picture".to_owned(), picture));
    if record.interrupted {
        section.warnings.push("it was ended before its time".to_owned());
    }
    Ok(section)
}

/// Objects as rows, with a column for each of their numbers and texts.
pub(super) fn flat(points: &Value) -> Table {
    let mut table = Table::default();
    let mut rows: Vec<BTreeMap<String, String>> = Vec::new();
    let all: Vec<&Value> = match points {
        Value::Array(all) => all.iter().collect(),
        other => vec![other],
    };
    for point in all {
        let mut cells = Vec::new();
        flatten("", point, &mut cells);
        for (name, _) in &cells {
            if !table.columns.contains(name) {
                table.columns.push(name.clone());
            }
        }
        rows.push(cells.into_iter().collect());
    }
    let cell =
        |row: &BTreeMap<String, String>, name: &String| row.get(name).cloned().unwrap_or_default();
    table.rows =
        rows.iter().map(|row| table.columns.iter().map(|name| cell(row, name)).collect()).collect();
    table
}

/// Adds the numbers and texts within `value` to `cells`, each named by its path of keys.
fn flatten(name: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    let named = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| flatten(&named(key), value, cells));
        }
        // Lists within a point have a length of their own.
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                flatten(&named(&at.to_string()), value, cells);
            }
        }
        Value::Null => cells.push((name.to_owned(), String::new())),
        Value::String(text) => cells.push((name.to_owned(), text.clone())),
        other => {
            let text = other.as_f64().map_or_else(|| other.to_string(), exact);
            cells.push((name.to_owned(), text));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_become_rows_whatever_fields_they_have() {
        let table = flat(&json!([{"a": 1, "b": {"c": "x"}}, {"a": 2.5, "d": null}]));
        assert_eq!(table.columns, ["a", "b.c", "d"]);
        assert_eq!(table.rows, [["1", "x", ""], ["2.5", "", ""]]);
    }
}
