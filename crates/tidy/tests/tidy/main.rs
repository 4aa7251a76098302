//! The rules of the source tree, held by `cargo test -p tidy`.
//!
//! `Tree` (which files there are) → `Source` (what is code, comment, string, test) → one module
//! per family of rules → findings, printed as `path:line: rule: remedy`. Each module opens with
//! its table: to change a rule, change a row and its reason.

mod tree;

mod source;

mod bans;
mod children;
mod circles;
mod crates;
mod deps;
mod fields;
mod guide;
mod orphans;
mod promises;
mod schemas;
mod size;
mod text;
mod unsafety;

use std::fmt;

use tree::Tree;

/// One place that breaks one rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the root of the repository.
    path: String,
    /// First line is 1.
    line: usize,
    /// The rule's short name.
    rule: &'static str,
    /// What to do about it.
    remedy: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, remedy: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.remedy)
    }
}

/// Applies every rule to every file; the answer is sorted by path and line.
fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.texts {
        findings.extend(text::check(&file.path, &file.text));
    }
    for file in &tree.rust {
        findings.extend(size::check(file));
        findings.extend(unsafety::check(file));
        findings.extend(bans::check(file));
    }
    let of_many = [
        orphans::check,
        circles::check,
        crates::check,
        fields::check,
        children::check,
        schemas::check,
    ];
    for check in of_many {
        findings.extend(check(&tree.rust));
    }
    findings.extend(deps::check(&tree.manifests));
    findings.extend(promises::check(tree));
    findings.extend(guide::check(tree));
    findings.sort();
    findings
}

#[test]
fn the_tree_is_tidy() {
    let tree = Tree::read();
    assert!(
        tree.rust.iter().any(|file| file.path == "crates/tidy/tests/tidy/main.rs"),
        "the list of files must contain this one, or nothing is being checked"
    );
    let findings = check(&tree);
    let report: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    assert!(findings.is_empty(), "{} findings:\n{report}", findings.len());
}

#[test]
fn finding_reads_like_a_compiler_message() {
    let finding = Finding::new("crates/farmem/src/lib.rs", 7, "line width", "break the line");
    assert_eq!(finding.to_string(), "crates/farmem/src/lib.rs:7: line width: break the line");
}
