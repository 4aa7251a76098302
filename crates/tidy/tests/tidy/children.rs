//! One place starts afar as a child of afar.

use crate::Finding;
use crate::source::occurrences;
use crate::tree::{Role, RustFile};

/// The crate that starts afar.
const LAUNCH: &str = "launch";

/// Files elsewhere that start afar themselves. The table only shrinks: a row whose file does not
/// is an error as well. The benchmarks run their own program as a workload.
const KNOWN: [&str; 1] = ["crates/bench/src/context.rs"];

/// Reports files that find or name afar's own program, and stale rows.
pub(crate) fn check(files: &[RustFile]) -> Vec<Finding> {
    against(files, &KNOWN)
}

fn against(files: &[RustFile], known: &[&str]) -> Vec<Finding> {
    let elsewhere = files.iter().filter(|file| file.role == Role::Product && file.krate != LAUNCH);
    let starting: Vec<(&str, usize)> = elsewhere
        .filter_map(|file| Some((file.path.as_str(), file.source.line(first(file)?))))
        .collect();
    let new = starting.iter().filter(|(path, _)| !known.contains(path)).map(|(path, line)| {
        let remedy = "start afar by `launch`, which ends the child with its parent";
        Finding::new(path, *line, "afar as a child", remedy)
    });
    let is_stale = |row: &&&str| !starting.iter().any(|(path, _)| path == *row);
    let stale = known
        .iter()
        .filter(is_stale)
        .map(|path| Finding::new(path, 1, "afar as a child", "delete its row in children.rs"));
    new.chain(stale).collect()
}

/// Where a file first starts afar, if it does.
fn first(file: &RustFile) -> Option<usize> {
    let live = file.live();
    let finds = occurrences(live, "current_exe").into_iter().next();
    // Names stand in literals, which the code does not show.
    let named = ["\"/proc/self/exe\"", "Command::new(\"afar\")"];
    let text = &file.source.text;
    let is_live =
        |&at: &usize| live.as_bytes().get(at).is_some_and(|byte| !byte.is_ascii_whitespace());
    let names = named.iter().flat_map(|name| occurrences(text, name)).find(|at| {
        let line = text[..*at].rfind('\n').map_or(0, |end| end + 1);
        (line..=*at).any(|at| is_live(&at))
    });
    finds.into_iter().chain(names).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str, known: &[&str]) -> Vec<String> {
        let files = ["crates/a/src/b.rs", "crates/launch/src/lib.rs", "crates/a/tests/b.rs"];
        let files: Vec<_> = files.iter().map(|path| RustFile::new(path, text)).collect();
        against(&files, known).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn starting_afar_elsewhere_is_found() {
        for text in [
            "let me = std::env::current_exe();",
            "Command::new(\"afar\")",
            "const ME: &str = \"/proc/self/exe\";",
        ] {
            assert_eq!(paths(text, &[]), ["crates/a/src/b.rs"], "{text}");
        }
    }

    #[test]
    fn other_programs_and_comments_pass() {
        for text in [
            "Command::new(\"sh\")",
            "// \"/proc/self/exe\"",
            "#[cfg(test)]\nmod t { current_exe() }",
        ] {
            assert_eq!(paths(text, &[]), [""; 0], "{text}");
        }
    }

    #[test]
    fn table_allows_its_files_and_shrinks_with_them() {
        assert_eq!(paths("current_exe()", &["crates/a/src/b.rs"]), [""; 0]);
        assert_eq!(paths("", &["crates/a/src/b.rs"]), ["crates/a/src/b.rs"]);
    }
}
