//! A crate is read by one person in one week.

use std::collections::BTreeMap;

use crate::Finding;
use crate::tree::{Role, RustFile};

/// Lines of a crate without its tests.
const CRATE_LINES: usize = 12_000;

/// Crates above the limit, each with a ceiling of its own. A ceiling only comes down: one that is
/// further above its crate than [`SLACK`] is an error as well.
const KNOWN: [(&str, usize); 0] = [];

/// What all applications share stays small, and the binary only joins them.
const TOGETHER: [(&[&str], usize); 2] =
    [(&["console", "document", "experiment", "launch", "results"], 7_000), (&["afar"], 1_200)];

/// Lines that a crate may lie below its ceiling.
const SLACK: usize = 1_000;

/// Reports crates above their limit, and ceilings that are too high.
pub(crate) fn check(files: &[RustFile]) -> Vec<Finding> {
    let lengths = lengths(files);
    let together = TOGETHER.iter().filter_map(|(crates, most)| together(&lengths, crates, *most));
    against(&lengths, &KNOWN).into_iter().chain(together).collect()
}

/// Crates that have more lines together than they may.
fn together(lengths: &BTreeMap<&str, usize>, crates: &[&str], most: usize) -> Option<Finding> {
    let lines: usize = crates.iter().filter_map(|krate| lengths.get(krate)).sum();
    let names = crates.join(" + ");
    let remedy = format!("{names}: {lines} lines without tests, at most {most}; move some out");
    (lines > most).then(|| Finding::new("Cargo.toml", 1, "crate length", remedy))
}

/// Lines by crate.
fn lengths(files: &[RustFile]) -> BTreeMap<&str, usize> {
    let mut lengths = BTreeMap::new();
    let product = files.iter().filter(|file| file.role == Role::Product && !file.krate.is_empty());
    for file in product {
        let source = &file.source;
        let lines = source.text.lines().count().saturating_sub(source.test_lines);
        *lengths.entry(file.krate.as_str()).or_default() += lines;
    }
    lengths
}

fn against(lengths: &BTreeMap<&str, usize>, known: &[(&str, usize)]) -> Vec<Finding> {
    let ceiling = |krate: &str| {
        let row = known.iter().find(|row| row.0 == krate);
        row.map_or(CRATE_LINES, |row| row.1)
    };
    let finding = |krate: &str, remedy| {
        Finding::new(&format!("crates/{krate}/Cargo.toml"), 1, "crate length", remedy)
    };
    let long = lengths.iter().filter(|&(krate, &lines)| lines > ceiling(krate));
    let long = long.map(|(krate, lines)| {
        let most = ceiling(krate);
        finding(krate, format!("{lines} lines without tests; split it: at most {most}"))
    });
    let stale = known.iter().filter_map(|&(krate, most)| {
        let lines = lengths.get(krate).copied().unwrap_or(0);
        let remedy = format!("{lines} lines; lower its ceiling of {most} in crates.rs");
        (lines + SLACK < most || lines <= CRATE_LINES).then(|| finding(krate, remedy))
    });
    long.chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: usize, known: &[(&str, usize)]) -> usize {
        against(&BTreeMap::from([("a", lines)]), known).len()
    }

    #[test]
    fn crate_above_the_limit_is_found() {
        assert_eq!((found(CRATE_LINES, &[]), found(CRATE_LINES + 1, &[])), (0, 1));
    }

    #[test]
    fn ceiling_comes_down_with_its_crate() {
        let known = [("a", 20_000)];
        assert_eq!((found(20_000, &known), found(19_000, &known)), (0, 0));
        assert_eq!((found(20_001, &known), found(18_999, &known)), (1, 1));
        assert_eq!(found(11_500, &[("a", 12_100)]), 1);
        assert_eq!(against(&BTreeMap::new(), &known).len(), 1);
    }

    #[test]
    fn crates_are_counted_together() {
        let lengths = BTreeMap::from([("a", 3), ("b", 4), ("c", 9)]);
        assert_eq!(together(&lengths, &["a", "b"], 7), None);
        assert!(together(&lengths, &["a", "b"], 6).is_some());
    }

    #[test]
    fn tests_are_not_counted() {
        let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        let files = [
            RustFile::new("crates/a/src/lib.rs", text),
            RustFile::new("crates/a/tests/b.rs", "fn f() {}\n"),
        ];
        assert_eq!(lengths(&files), BTreeMap::from([("a", 1)]));
    }
}
