//! A schema stands once, at the type of its record.
//!
//! A second place that names it is a second writer or a reader of its own, which goes on with what
//! the record was when the type changes.

use std::collections::BTreeMap;

use crate::Finding;
use crate::tree::{Role, RustFile};

/// Crates that are programs for those who work on afar.
const TOOLS: [&str; 2] = ["bench", "tidy"];

/// Reports schemas that more than one place names, and records that are put together by hand.
pub(crate) fn check(files: &[RustFile]) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<(&RustFile, usize)>> = BTreeMap::new();
    let product =
        |file: &&RustFile| file.role == Role::Product && !TOOLS.contains(&file.krate.as_str());
    for file in files.iter().filter(product) {
        for (at, schema) in schemas(file) {
            places.entry(schema).or_default().push((file, at));
        }
    }
    let finding = |file: &RustFile, at: usize, remedy: String| {
        Finding::new(&file.path, file.source.line(at), "schema", remedy)
    };
    let mut findings = Vec::new();
    for (schema, places) in places {
        for (file, at) in places.iter().skip(1) {
            let remedy =
                format!("`{schema}` stands in {} too; name its constant", places[0].0.path);
            findings.push(finding(file, *at, remedy));
        }
        for (file, at) in places {
            if before(&file.source.text, at).ends_with("\"schema\":") {
                let remedy = format!("`{schema}` is written by hand; give the record a type");
                findings.push(finding(file, at, remedy));
            }
        }
    }
    findings
}

fn before(text: &str, at: usize) -> &str {
    text[..at].trim_end()
}

/// The schemas that a file names outside its tests, and where.
fn schemas(file: &RustFile) -> Vec<(usize, &str)> {
    let text = &file.source.text;
    let is_live = |at: usize| {
        // Literals are blank in all views, so the code before one tells.
        let last = before(&file.source.code, at).len().checked_sub(1);
        last.is_some_and(|last| {
            file.source.code.as_bytes()[last] == file.live().as_bytes()[last]
                && file.source.comments.as_bytes()[at] == b' '
        })
    };
    let literals = text.match_indices("\"afar.").filter(|&(at, _)| is_live(at));
    let named = |(at, _): (usize, &str)| {
        let literal = text[at + 1..].split('"').next()?;
        let (name, version) = literal.rsplit_once('/')?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || b"._-".contains(&byte));
        let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
        (is_name && is_number).then_some((at, literal))
    };
    literals.filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(texts: &[&str]) -> Vec<String> {
        let file =
            |(at, text): (usize, &&str)| RustFile::new(&format!("crates/c{at}/src/a.rs"), text);
        let files: Vec<RustFile> = texts.iter().enumerate().map(file).collect();
        check(&files).into_iter().map(|finding| finding.remedy).collect()
    }

    #[test]
    fn schema_at_its_type_alone_passes() {
        let one = "const SCHEMA: &str = \"afar.run/2\"; // \"afar.run/2\"\n#[cfg(test)]\nmod tests \
                   { fn f() { g(\"afar.run/2\"); } }";
        assert!(
            findings(&[one, "const OTHER: &str = \"afar.sim/1\"; f(\"afar.toml\");"]).is_empty()
        );
    }

    #[test]
    fn second_place_and_record_by_hand_are_found() {
        let one = "const SCHEMA: &str = \"afar.run/2\";";
        let found = findings(&[one, "fn f() { is(\"afar.run/2\") }"]);
        assert_eq!(found, ["`afar.run/2` stands in crates/c0/src/a.rs too; name its constant"]);
        let found = findings(&["fn f() { json!({\"schema\": \"afar.x/1\"}) }"]);
        assert_eq!(found, ["`afar.x/1` is written by hand; give the record a type"]);
    }
}
