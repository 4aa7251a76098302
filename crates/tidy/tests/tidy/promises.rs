//! The tests that promises name are there.
//!
//! A promise whose test was renamed or deleted would be kept by nothing.

use std::collections::BTreeSet;

use crate::Finding;
use crate::tree::Tree;

/// Pages whose tables name tests in code quotes.
const PAGES: [&str; 2] = ["docs/promises.md", "docs/conformance.md"];
/// Underscores that tell the name of a test from other names.
const UNDERSCORES: usize = 3;

/// Reports tests that a page names and that are not there.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let there = functions(tree.rust.iter().map(|file| file.source.text.as_str()));
    let pages = tree.texts.iter().filter(|file| PAGES.contains(&file.path.as_str()));
    pages.flat_map(|page| missing(&page.path, &page.text, &there)).collect()
}

fn functions<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let named = |text: &'a str| {
        let rests = text.match_indices("fn ").map(move |(at, found)| &text[at + found.len()..]);
        rests.filter_map(|rest| rest.split(['(', '<']).next())
    };
    texts.flat_map(named).collect()
}

fn missing(path: &str, text: &str, there: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, row) in (1..).zip(text.lines()).filter(|(_, row)| row.starts_with('|')) {
        for name in row.split('`').skip(1).step_by(2).flat_map(str::split_whitespace) {
            let name = name.rsplit("::").next().unwrap_or(name);
            let is_test = name.matches('_').count() >= UNDERSCORES
                && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
            if is_test && !there.contains(name) {
                let remedy = format!("no test is called `{name}`; name the one that there is");
                findings.push(Finding::new(path, line, "promise", remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_without_its_test_is_found() {
        let there = functions(["#[test]\nfn what_is_sent_comes() {}"].into_iter());
        let found = |row: &str| missing("docs/promises.md", row, &there).len();
        assert_eq!(found("| it comes | `target flash what_is_sent_comes` |"), 0);
        assert_eq!(found("| it comes | `target a::tests::what_is_sent_comes` |"), 0);
        assert_eq!(found("| it comes | `target flash what_is_sent_goes` |"), 1);
        assert_eq!(found("`what_is_sent_goes`, outside of a table"), 0);
        assert_eq!(found("| `max_segments` | `flash` |"), 0, "no test");
    }
}
