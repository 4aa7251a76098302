//! Unsafe code has few addresses and every block gives its reason.

use crate::Finding;
use crate::source::{Source, occurrences};
use crate::tree::RustFile;

/// The crates that may hold unsafe code, and why each must.
const UNSAFE_CRATES: [(&str, &str); 3] = [
    ("sys", "the only crate that talks to the kernel; it hands out safe handles"),
    ("farmem-preload", "runs inside the measured program, below its allocator"),
    ("afar-place", "places the program's own memory by raw address"),
];

/// Spelt so that the word is data here.
const KEYWORD: &str = "unsafe";

/// Reports unsafe code outside its crates, and blocks without a `// SAFETY:` comment.
pub(crate) fn check(file: &RustFile) -> Vec<Finding> {
    let is_allowed = UNSAFE_CRATES.iter().any(|(krate, _)| *krate == file.krate);
    let source = &file.source;
    let mut findings = Vec::new();
    for at in occurrences(&source.code, KEYWORD) {
        let line = source.line(at);
        if !is_allowed {
            let remedy = "move it into `sys` behind a safe function";
            findings.push(Finding::new(&file.path, line, "unsafe outside its crates", remedy));
        } else if needs_reason(&source.code[at + KEYWORD.len()..]) && !has_reason(source, line) {
            let remedy = "say above it in a `// SAFETY:` comment why its requirements hold";
            findings.push(Finding::new(&file.path, line, "unsafe without a reason", remedy));
        }
    }
    findings
}

/// Blocks and trait implementations take a duty on; `unsafe fn` and `unsafe trait` hand one out.
fn needs_reason(after: &str) -> bool {
    let after = after.trim_start();
    after.starts_with('{') || after.starts_with("impl")
}

/// Looks at the line itself, then upwards through the same statement and the comment above it.
fn has_reason(source: &Source, line: usize) -> bool {
    let codes: Vec<&str> = source.code.lines().collect();
    let comments: Vec<&str> = source.comments.lines().collect();
    let states = |index: usize| comments.get(index).is_some_and(|text| text.contains("SAFETY:"));
    let mut index = line - 1;
    let mut in_comment = false;
    while !states(index) {
        let Some(above) = index.checked_sub(1) else {
            return false;
        };
        let (code, comment) = (codes[above].trim(), comments[above].trim());
        let is_comment = code.is_empty() && !comment.is_empty();
        let is_attribute = code.starts_with("#[");
        let ends_statement = code.is_empty() || code.ends_with([';', '{', '}', ',']);
        let is_same_statement = !in_comment && !ends_statement;
        if !is_comment && !is_attribute && !is_same_statement {
            return false;
        }
        in_comment |= is_comment;
        index = above;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(krate: &str, text: &str) -> Vec<(usize, &'static str)> {
        let findings = check(&RustFile::new(&format!("crates/{krate}/src/lib.rs"), text));
        findings.into_iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn crates_are_few() {
        let text = "// SAFETY: x\nunsafe { f() }\n";
        assert_eq!(rules("sys", text), []);
        assert_eq!(rules("farmem", text), [(2, "unsafe outside its crates")]);
        assert_eq!(rules("farmem", "#![deny(unsafe_code)]\n// unsafe\n\"unsafe\""), []);
    }

    #[test]
    fn reason_is_above_the_statement() {
        let passing = [
            "// SAFETY: x\nunsafe { f() }",
            "// SAFETY: x\n// and y\nlet z =\n    unsafe { f() };",
            "// SAFETY: x\n#[inline]\nunsafe impl Send for X {}",
            "unsafe { f() } // SAFETY: x",
            "unsafe fn f();",
            "unsafe extern \"C\" {}",
        ];
        for text in passing {
            assert_eq!(rules("sys", text), [], "{text}");
        }
    }

    #[test]
    fn reason_of_another_statement_does_not_count() {
        let failing = [
            "unsafe { f() }",
            "// SAFETY: x\nf();\nunsafe { f() }",
            "// SAFETY: x\n\nunsafe { f() }",
            "// why not\nunsafe impl Send for X {}",
            "\"SAFETY: x\";\nunsafe { f() }",
        ];
        for text in failing {
            let rules = rules("sys", text);
            let names: Vec<_> = rules.iter().map(|(_, rule)| *rule).collect();
            assert_eq!(names, ["unsafe without a reason"], "{text}");
        }
    }
}
