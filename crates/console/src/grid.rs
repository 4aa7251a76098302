//! A table of a record as CSV: a column for each field, with the field's name.

use serde_json::{Map, Value};

use crate::layout;

type Cells = Vec<(String, String)>;

/// The CSV of `table`, with a heading: columns `leading` first, then others in order of appearance.
/// Fields of an inner object are columns such as `latency_p50_ns`. A list of objects has a row for
/// each; if an object has several lists, column `part` has the name of the row's list.
#[must_use]
pub fn csv_of(table: &Value, leading: &[&str]) -> String {
    let mut rows = Vec::new();
    add(table, &Cells::new(), &mut rows);
    let is_there =
        |name: &&&str| rows.is_empty() || rows.iter().flatten().any(|(column, _)| column == *name);
    let mut columns: Vec<String> =
        leading.iter().filter(is_there).map(|name| (*name).to_owned()).collect();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    let line = |row: &Cells| -> Vec<String> {
        let cell = |name| row.iter().find(|(column, _)| column == name);
        columns.iter().map(|name| cell(name).map_or("", |(_, cell)| cell).to_owned()).collect()
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    layout::csv(std::iter::once(columns).chain(lines))
}

// Appends the rows of a value. Each has the cells of the objects around the value, `around`, too.
fn add(value: &Value, around: &Cells, rows: &mut Vec<Cells>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| add(one, around, rows)),
        Value::Object(object) => {
            let (mut cells, mut lists) = (around.clone(), Vec::new());
            fields(object, "", &mut cells, &mut lists);
            for (name, list) in &lists {
                let mut cells = cells.clone();
                if lists.len() > 1 {
                    cells.push(("part".to_owned(), name.clone()));
                }
                add(list, &cells, rows);
            }
            if lists.is_empty() {
                rows.push(cells);
            }
        }
        value => rows.push([around.clone(), vec![("value".to_owned(), plain(value))]].concat()),
    }
}

/// Sorts the fields of an object, with `prefix` in their names, into cells and lists of rows.
fn fields<'a>(
    object: &'a Map<String, Value>,
    prefix: &str,
    cells: &mut Cells,
    lists: &mut Vec<(String, &'a Value)>,
) {
    for (name, value) in object {
        let name = format!("{prefix}{name}");
        match value {
            Value::Array(list) if list.is_empty() => {}
            Value::Object(inner) => fields(inner, &format!("{name}_"), cells, lists),
            Value::Array(list) if list.iter().any(Value::is_object) => lists.push((name, value)),
            value => cells.push((name, plain(value))),
        }
    }
}

// The text of a cell; elements of a list are separated by spaces.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(" "),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_a_table_with_the_names_of_its_fields() {
        let table = json!([
            { "name": "a, b", "latency": { "p50_ns": 5, "max_ns": 9 }, "found": null },
            { "name": "c", "latency": { "p50_ns": 7 }, "ends": [1, 2], "ok": true },
        ]);
        assert_eq!(
            csv_of(&table, &["name", "none", "latency_p50_ns"]),
            "name,latency_p50_ns,found,latency_max_ns,ends,ok\n\"a, b\",5,,9,,\nc,7,,,1 2,true\n"
        );
    }

    #[test]
    fn lists_within_say_whose_they_are() {
        let table = json!({ "seed": 1, "b": [{ "x": 2 }], "a": [{ "x": 3 }, { "x": 4 }] });
        let text = csv_of(&table, &["part", "x"]);
        assert_eq!(text, "part,x,seed\na,3,1\na,4,1\nb,2,1\n");
        assert_eq!(csv_of(&json!([{ "of": [{ "x": 1 }], "y": 2 }]), &[]), "y,x\n2,1\n");
        assert_eq!(csv_of(&json!([]), &["x"]), "x\n", "what there would be");
        assert_eq!(csv_of(&json!([{ "x": 1, "of": [] }]), &[]), "x\n1\n");
    }
}
