//! An object keeps its fields to itself.

use crate::Finding;
use crate::source::{body, occurrences};
use crate::tree::{Role, RustFile};

/// Fields of one struct that other modules may reach. A struct above this is a bag that any
/// module changes, and its methods state no law.
const VISIBLE_FIELDS: usize = 12;

/// Structs that are let be above the limit: crate, name, visible fields. None; a row that is
/// larger than its struct is an error as well.
const KNOWN: [(&str, &str, usize); 0] = [];

/// Reports structs that change themselves and show too many fields, and stale rows.
pub(crate) fn check(files: &[RustFile]) -> Vec<Finding> {
    against(files, &KNOWN)
}

/// A struct and where it stands.
struct Struct<'a> {
    file: &'a RustFile,
    name: &'a str,
    line: usize,
    visible: usize,
}

fn against(files: &[RustFile], known: &[(&str, &str, usize)]) -> Vec<Finding> {
    let changing = |one: &Struct<'_>| {
        let beside = files.iter().filter(|file| file.krate == one.file.krate);
        beside.into_iter().any(|file| changes_itself(file.live(), one.name))
    };
    let wide: Vec<Struct<'_>> = files
        .iter()
        .filter(|file| file.role == Role::Product)
        .flat_map(structs)
        .filter(|one| one.visible > VISIBLE_FIELDS && changing(one))
        .collect();
    let limit = |one: &Struct<'_>| {
        let row = known.iter().find(|row| (row.0, row.1) == (one.file.krate.as_str(), one.name));
        row.map_or(VISIBLE_FIELDS, |row| row.2)
    };
    let wider = wide.iter().filter(|one| one.visible > limit(one)).map(|one| {
        let remedy = format!(
            "`{}` shows {} fields to other modules, at most {}; give groups of them an owner",
            one.name,
            one.visible,
            limit(one)
        );
        Finding::new(&one.file.path, one.line, "visible fields", remedy)
    });
    let is_stale = |row: &&(&str, &str, usize)| {
        !wide.iter().any(|one| {
            (row.0, row.1) == (one.file.krate.as_str(), one.name) && row.2 == one.visible
        })
    };
    let stale = known.iter().filter(is_stale).map(|(krate, name, _)| {
        let remedy = format!("`{name}` shows fewer fields; correct its row in fields.rs");
        Finding::new(&format!("crates/{krate}"), 1, "visible fields", remedy)
    });
    wider.chain(stale).collect()
}

/// The structs with named fields in a file.
fn structs(file: &RustFile) -> Vec<Struct<'_>> {
    let code = file.live();
    let named = |at: usize| {
        let name = word(code[at + "struct".len()..].trim_start());
        let (open, close) = body(code, at)?;
        let visible = code[open..close].lines().filter(|line| is_visible(line)).count();
        (!name.is_empty()).then(|| Struct { file, name, line: file.source.line(at), visible })
    };
    occurrences(code, "struct").into_iter().filter_map(named).collect()
}

fn is_visible(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("pub ") || line.starts_with("pub(")
}

/// Whether `code` has a method of `name` that takes `&mut self`.
fn changes_itself(code: &str, name: &str) -> bool {
    occurrences(code, "impl").into_iter().any(|at| {
        let Some((open, close)) = body(code, at) else { return false };
        let of = subject(&code[at + "impl".len()..open]);
        of == name && !occurrences(&code[open..close], "&mut self").is_empty()
    })
}

/// The type that an inherent `impl` is of; empty for an implementation of a trait.
fn subject(head: &str) -> &str {
    let head = head.trim_start();
    let mut depth = 0_usize;
    let generics = head.char_indices().find(|&(_, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let after = match (head.starts_with('<'), generics) {
        (true, Some((end, _))) => head[end + 1..].trim_start(),
        _ => head,
    };
    if occurrences(after, "for").is_empty() { word(after) } else { "" }
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(visible: usize, implementation: &str) -> Vec<RustFile> {
        let fields: String =
            (0..visible).map(|at| format!("    pub(crate) f{at}: Vec<u8>,\n")).collect();
        let text = format!("struct S<'a> {{\n{fields}    own: &'a u8,\n}}\n");
        let file = |name, text: &str| RustFile::new(&format!("crates/a/src/{name}.rs"), text);
        vec![file("lib", &text), file("b", implementation)]
    }

    const OBJECT: &str = "impl<'a> S<'a> {\n    fn f(&mut self) {}\n}\n";

    #[test]
    fn object_with_too_many_visible_fields_is_found() {
        assert_eq!(against(&planted(12, OBJECT), &[]), []);
        let findings = against(&planted(13, OBJECT), &[]);
        assert_eq!((findings.len(), findings[0].rule), (1, "visible fields"));
    }

    #[test]
    fn value_may_show_its_fields() {
        for value in ["", "impl S<'_> { fn f(&self) {} }", "impl Iterator for S { &mut self }"] {
            assert_eq!(against(&planted(20, value), &[]), [], "{value}");
        }
    }

    #[test]
    fn table_allows_its_rows_and_shrinks_with_them() {
        assert_eq!(against(&planted(14, OBJECT), &[("a", "S", 14)]), []);
        assert_eq!(against(&planted(15, OBJECT), &[("a", "S", 14)]).len(), 2);
        assert_eq!(against(&planted(13, OBJECT), &[("a", "S", 14)]).len(), 1);
        assert_eq!(against(&planted(1, OBJECT), &[("a", "S", 14)]).len(), 1);
    }
}
