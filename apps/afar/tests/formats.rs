//! docs/formats.md: every record and table that afar writes, field by field, made from the types
//! that write them. `AFAR_BLESS=1 cargo test -p afar --test formats` writes the page.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use measure::{LoadResults, Results, Run, RunResults, WorkloadResults};
use records::{FAULTS_SCHEMA, Fault, FlowRow};
use results::about::About;
use results::disks::DiskComparison;
use results::doctor::Checkup;
use results::live::Watching;
use results::order::PageOrder;
use results::plan::admit::Admission;
use results::plan::cost::Bill;
use results::plan::cost_map::CostMap;
use results::plan::fleet::FleetDemand;
use results::plan::latency::RoundTrips;
use results::plan::place::Placement;
use results::plan::pool::PoolSizing;
use results::prediction::Prediction;
use results::report::Report;
use results::reproduced::Reproduction;
use results::served::KvServed;
use results::sim::{Sensitivity, Simulation, Simulations};
use results::torture::Torture;
use results::{ClosedLoop, Findings, Record, Requirements, Validation};
use schemars::{JsonSchema, schema_for};
use serde_json::Value;
use support::Launch;

const HEAD: &str = "\
# Records and tables: every field

A command that has `--json` writes a record: JSON whose first field, `schema`, names its kind and
version. A reader refuses a version it does not know, and so do other commands of afar. A name ends
in its unit (`_ns`, `_bytes`, `_us`, `_ps`, `_bps`), and values are never scaled; what has no unit
is a number of things or a ratio. `[]` is each element of a list, `.*` each value of a map. Python
has the same as tables ([python](guide/python.md)).

`afar bench` writes the JSON of fio 3, with the names and units that fio documents.

This page is made from the program's own types.
";

/// A record: its schema, the command that writes it, and its type as JSON Schema.
type Row = (&'static str, &'static str, Value);

fn own<R: Record + JsonSchema>(command: &'static str) -> Row {
    (R::SCHEMA, command, schema_for!(R).to_value())
}

fn run<R: Results + JsonSchema>(command: &'static str) -> Row
where
    R::Params: JsonSchema,
{
    (R::SCHEMA, command, schema_for!(Run<R>).to_value())
}

fn all() -> Vec<Row> {
    let mut rows = vec![
        own::<About>("version"),
        own::<Admission>("plan admit"),
        own::<Bill>("plan cost"),
        own::<Checkup>("doctor"),
        own::<ClosedLoop>("loop"),
        own::<CostMap>("plan cost --map"),
        own::<Findings>("sweep"),
        own::<DiskComparison>("bench URI URI"),
        own::<FleetDemand>("plan fleet"),
        own::<KvServed>("kv serve"),
        run::<LoadResults>("load"),
        own::<PageOrder>("run --remember"),
        own::<Placement>("plan place"),
        own::<PoolSizing>("plan pool"),
        own::<Prediction>("predict"),
        own::<Report>("report"),
        own::<Reproduction>("reproduce"),
        own::<Requirements>("sweep --find"),
        own::<RoundTrips>("plan latency"),
        run::<RunResults>("run"),
        own::<Sensitivity>("sim --sensitivity"),
        own::<Simulation>("sim"),
        own::<Simulations>("sim"),
        own::<Torture>("torture"),
        own::<Validation>("run --validate"),
        own::<Watching>("watch"),
        run::<WorkloadResults>("workload"),
    ];
    rows.sort_by_key(|row| row.0);
    rows
}

#[test]
fn the_page_of_formats_is_what_is_written() {
    let rows = all();
    let words = [env!("CARGO_BIN_EXE_afar"), "version", "--json", "-"];
    let about = Launch::new(words).run().expect(0, "version").text();
    let about: About = results::read(&about).expect("a record is a record");
    let written: BTreeSet<&str> = about.records.iter().map(String::as_str).collect();
    assert_eq!(rows.iter().map(|row| row.0).collect::<BTreeSet<_>>(), written);

    let mut text = HEAD.to_owned();
    for (schema, command, value) in &rows {
        let _infallible = writeln!(text, "\n## {schema}\n\nWritten by `afar {command}`.\n");
        Fields { root: value, text: &mut text, variant: None }.object(value, "");
    }
    for (title, value) in [
        (format!("Faults: {FAULTS_SCHEMA}, Parquet"), schema_for!(Fault).to_value()),
        ("Flows of a simulation, Parquet".to_owned(), schema_for!(FlowRow).to_value()),
    ] {
        let _infallible = writeln!(text, "\n## {title}\n\nA column for each field.\n");
        Fields { root: &value, text: &mut text, variant: None }.object(&value, "");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    if std::env::var_os("AFAR_BLESS").is_some() {
        std::fs::write(&path, &text).expect("there is room for it");
    }
    let kept = std::fs::read_to_string(&path).expect("a page; AFAR_BLESS=1 makes it");
    assert!(kept == text, "docs/formats.md: AFAR_BLESS=1 cargo test -p afar --test formats");
    let bare = text.lines().find(|line| line.trim_end().ends_with("):"));
    assert_eq!(bare, None, "a field without a description");
}

/// Writes the fields of an object as a list, those within others by their paths.
struct Fields<'a> {
    root: &'a Value,
    text: &'a mut String,
    /// The one of several kinds of object that has the fields.
    variant: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn object(&mut self, of: &'a Value, path: &str) {
        let of = self.resolved(of);
        let required: Vec<&str> =
            of["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, field) in of["properties"].as_object().into_iter().flatten() {
            if field["const"].is_null() {
                self.field(field, &format!("{path}{name}"), required.contains(&name.as_str()));
            }
        }
        let variants: Vec<&Value> = of["oneOf"].as_array().into_iter().flatten().collect();
        if let Some((tag, _)) = variants.first().and_then(|first| tag_of(first)) {
            let names: Vec<&str> =
                variants.iter().filter_map(|one| tag_of(one)).map(|tag| tag.1).collect();
            let kinds =
                names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" or ");
            let _infallible =
                writeln!(self.text, "- `{path}{tag}` ({kinds}): Which of these it is.");
        }
        for variant in variants {
            let before = self.variant;
            self.variant = tag_of(variant).map(|tag| tag.1).or(before);
            self.object(variant, path);
            self.variant = before;
        }
        for parts in ["anyOf", "allOf"] {
            of[parts].as_array().into_iter().flatten().for_each(|part| self.object(part, path));
        }
    }

    fn field(&mut self, field: &'a Value, path: &str, is_required: bool) {
        let (inner, is_null) = without_null(field);
        let of = self.resolved(inner);
        let words = [field, inner, of].iter().find_map(|one| one["description"].as_str());
        let optional = if is_required && !is_null { "" } else { ", may be missing" };
        let optional = if is_null && is_required { ", may be null" } else { optional };
        let kind = self.kind(of);
        let words = without_links(words.unwrap_or_default());
        let variant = self.variant.map(|name| format!(", of \"{name}\"")).unwrap_or_default();
        let _infallible = writeln!(self.text, "- `{path}` ({kind}{optional}{variant}): {words}");
        self.parts(of, path);
    }

    // What is within an object, the elements of a list or the values of a map.
    fn parts(&mut self, of: &'a Value, path: &str) {
        if of["items"].is_object() {
            return self.parts(self.resolved(&of["items"]), &format!("{path}[]"));
        }
        if of["additionalProperties"].is_object() {
            let values = self.resolved(without_null(&of["additionalProperties"]).0);
            return self.parts(values, &format!("{path}.*"));
        }
        self.object(of, &format!("{path}."));
    }

    fn kind(&self, of: &'a Value) -> String {
        let named = |one: &Value| one["const"].as_str().map(|text| format!("\"{text}\""));
        let values = of["enum"].as_array().map(|all| {
            all.iter().filter_map(|one| one.as_str().map(|text| format!("\"{text}\""))).collect()
        });
        let variants: Option<Vec<String>> = values.or_else(|| {
            let all = of["oneOf"].as_array()?;
            all.iter().map(named).collect()
        });
        if let Some(all) = variants {
            return all.join(" or ");
        }
        if of["items"].is_object() {
            return format!("list of {}", plural(&self.kind(self.resolved(&of["items"]))));
        }
        if of["additionalProperties"].is_object() {
            return "map".to_owned();
        }
        let kind = match &of["type"] {
            Value::Array(all) => all.iter().filter_map(Value::as_str).find(|one| *one != "null"),
            one => one.as_str(),
        };
        match kind {
            Some("integer") => "integer",
            Some("number") => "number",
            Some("boolean") => "true or false",
            Some("string") => "text",
            Some("array") => "list",
            Some(_) => "object",
            None if of["properties"].is_object() || of["oneOf"].is_array() => "object",
            None => "any",
        }
        .to_owned()
    }

    fn resolved(&self, of: &'a Value) -> &'a Value {
        let Some(name) = of["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else {
            return of;
        };
        &self.root["$defs"][name]
    }
}

// The links of a comment lead to types, which are no pages; what is `None` is missing in JSON.
fn without_links(words: &str) -> String {
    let words = words.replace("\n\n", " ").replace('\n', " ").replace("`None`", "missing");
    let mut parts = words.split("](crate::").map(str::to_owned).collect::<Vec<_>>();
    for part in parts.iter_mut().skip(1) {
        *part = part.split_once(')').map_or("", |(_, rest)| rest).to_owned();
    }
    parts.concat().replace("[`", "`").replace("`]", "`")
}

// The field that says of which kind an object is, and what it says.
fn tag_of(variant: &Value) -> Option<(&str, &str)> {
    let fields = variant["properties"].as_object()?;
    fields.iter().find_map(|(name, field)| Some((name.as_str(), field["const"].as_str()?)))
}

// `Option<T>` is `anyOf` of `T` and null, or a list of types with null.
fn without_null(of: &Value) -> (&Value, bool) {
    let is_null = |one: &Value| one["type"] == "null";
    if let Some([one, other]) = of["anyOf"].as_array().map(Vec::as_slice)
        && is_null(other)
    {
        return (one, true);
    }
    let has_null = of["type"].as_array().is_some_and(|all| all.iter().any(|one| one == "null"));
    (of, has_null)
}

fn plural(kind: &str) -> String {
    match kind {
        "text" => "texts".to_owned(),
        "integer" | "number" | "object" | "list" => format!("{kind}s"),
        other => other.to_owned(),
    }
}
