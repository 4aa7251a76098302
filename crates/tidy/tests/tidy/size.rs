//! How much a reader must hold at once.

use crate::Finding;
use crate::source::{body, newlines, occurrences};
use crate::tree::RustFile;

/// Characters; a diff of two such lines still fits a wide screen, as rustfmt is told.
const LINE_WIDTH: usize = 100;

/// Lines from `fn` to its closing brace: a function is seen whole or it is two functions.
const FUNCTION_LINES: usize = 70;

/// Lines of a file without its unit tests: one subject per file.
const FILE_LINES: usize = 500;

/// Reports lines, functions and files above their limits.
pub(crate) fn check(file: &RustFile) -> Vec<Finding> {
    let mut findings = wide_lines(file);
    findings.extend(long_functions(file));
    findings.extend(long_file(file));
    findings
}

fn wide_lines(file: &RustFile) -> Vec<Finding> {
    let lines = file.source.text.lines().enumerate();
    lines
        .map(|(index, line)| (index + 1, line.chars().count()))
        .filter(|&(_, width)| width > LINE_WIDTH)
        .map(|(line, width)| {
            let remedy = format!("{width} columns; break the line at {LINE_WIDTH}");
            Finding::new(&file.path, line, "line width", remedy)
        })
        .collect()
}

fn long_functions(file: &RustFile) -> Vec<Finding> {
    let code = &file.source.code;
    let is_named = |&at: &usize| !code[at + 2..].trim_start().starts_with('(');
    let lengths = occurrences(code, "fn").into_iter().filter(is_named).filter_map(|start| {
        let (_, end) = body(code, start)?;
        Some((file.source.line(start), newlines(&code[start..end]) + 1))
    });
    lengths
        .filter(|&(_, length)| length > FUNCTION_LINES)
        .map(|(line, length)| {
            let remedy =
                format!("{length} lines; split it: at most {FUNCTION_LINES} are read at once");
            Finding::new(&file.path, line, "function length", remedy)
        })
        .collect()
}

/// A module of unit tests is not counted, whether it stands in the file or in its own.
fn long_file(file: &RustFile) -> Option<Finding> {
    let source = &file.source;
    let is_unit_tests = file.path.contains("/src/") && file.live().is_empty();
    let length = source.text.lines().count() - source.test_lines;
    let remedy = format!("{length} lines without unit tests; split it: at most {FILE_LINES}");
    (length > FILE_LINES && !is_unit_tests)
        .then(|| Finding::new(&file.path, FILE_LINES + 1, "file length", remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let findings = check(&RustFile::new(path, text));
        findings.into_iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "x();\n".repeat(lines - 2))
    }

    #[test]
    fn line_width_counts_characters() {
        assert_eq!(rules("a.rs", &"é".repeat(LINE_WIDTH)), []);
        assert_eq!(rules("a.rs", &format!("\n{}", "é".repeat(101))), [(2, "line width")]);
    }

    #[test]
    fn function_length_counts_from_fn_to_brace() {
        assert_eq!(rules("a.rs", &function(FUNCTION_LINES)), []);
        let long = format!("type F = fn(u8);\n{}", function(FUNCTION_LINES + 1));
        assert_eq!(rules("a.rs", &long), [(2, "function length")]);
    }

    #[test]
    fn function_length_ignores_declarations() {
        let text = format!("trait T {{\n    fn f();\n{}}}\n", "const X: u8;\n".repeat(80));
        assert_eq!(rules("a.rs", &text), []);
    }

    #[test]
    fn file_length_leaves_out_unit_tests() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "use x;\n".repeat(90));
        let full = "const X: u8 = 0;\n".repeat(FILE_LINES);
        assert_eq!(rules("a.rs", &format!("{full}{tests}")), []);
        assert_eq!(rules("a.rs", &format!("{full}\n{tests}")), [(501, "file length")]);
    }

    #[test]
    fn file_length_leaves_out_files_of_unit_tests() {
        let mut file = RustFile::new("crates/a/src/tests.rs", &"use x;\n".repeat(900));
        assert_eq!(check(&file).len(), 1);
        file.role = crate::tree::Role::Test;
        assert_eq!(check(&file), []);
    }
}
