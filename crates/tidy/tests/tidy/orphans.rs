//! Every Rust file is a module of something.
//!
//! A file nobody declares is not compiled, not linted and not tested, yet reads as if it were.

use std::collections::BTreeSet;

use crate::Finding;
use crate::source::occurrences;
use crate::tree::{Role, RustFile};

/// Reports files under `src/` and below a test's directory that no parent declares.
pub(crate) fn check(files: &[RustFile]) -> Vec<Finding> {
    let orphan = |file: &&RustFile| !is_root(&file.path) && parents(files, file).is_empty();
    files.iter().filter(orphan).map(finding).collect()
}

/// The files that are compiled for tests only because of how they are declared: under
/// `#[cfg(test)]`, or by a file that is itself one of these.
pub(crate) fn test_modules(files: &[RustFile]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for file in files.iter().filter(|file| file.role == Role::Product && !is_root(&file.path)) {
            let parents = parents(files, file);
            let is_test = |parent: &&RustFile| {
                found.contains(&parent.path) || !declares(&parent.source.live, stem(&file.path))
            };
            if !parents.is_empty() && parents.iter().all(is_test) {
                found.insert(file.path.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn finding(file: &RustFile) -> Finding {
    let remedy = format!(
        "no file declares it, so it is not compiled; write `mod {};` in its parent or delete it",
        stem(&file.path)
    );
    Finding::new(&file.path, 1, "orphan file", remedy)
}

/// Whether cargo itself finds the file: the root of a crate, a program, a test or a build script.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(2).collect();
    match parts.as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", _] | ["src", "bin", _, "main.rs"] => true,
        ["tests" | "benches" | "examples", _] => true,
        ["tests" | "benches" | "examples", _, "main.rs"] => true,
        // Files that are not below a crate's src or tests directory are data to these rules.
        ["src" | "tests" | "benches" | "examples", ..] => false,
        _ => true,
    }
}

/// The files that declare `file` as a module or include it by path.
fn parents<'a>(files: &'a [RustFile], file: &RustFile) -> Vec<&'a RustFile> {
    let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let scope = match name {
        "mod.rs" => directory.rsplit_once('/').map_or("", |(above, _)| above),
        _ => directory,
    };
    let is_parent = |parent: &&RustFile| {
        let by_place = parent.path.strip_suffix(".rs") == Some(scope)
            || parent.path.rsplit_once('/').is_some_and(|(at, name)| {
                at == scope && (["lib.rs", "main.rs", "mod.rs"].contains(&name) || is_test(parent))
            });
        let by_path = parent.krate == file.krate && includes(&parent.source.text, name);
        parent.path != file.path
            && ((by_place && declares(&parent.source.code, stem(&file.path))) || by_path)
    };
    files.iter().filter(is_parent).collect()
}

/// `tests/one.rs` is a crate root and looks for its modules beside itself.
fn is_test(file: &RustFile) -> bool {
    file.role == Role::Test && is_root(&file.path)
}

fn declares(code: &str, stem: &str) -> bool {
    !occurrences(code, &format!("mod {stem};")).is_empty()
}

/// `#[path = "…/name.rs"]` or `include!("…/name.rs")`.
fn includes(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let quoted = line.contains(&format!("/{name}\"")) || line.contains(&format!("\"{name}\""));
        quoted && (line.contains("path = ") || line.contains("include"))
    })
}

/// The name of the module a path holds.
fn stem(path: &str) -> &str {
    let path = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orphans(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| RustFile::new(path, text)).collect();
        check(&files).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn declared_passes() {
        let files = [
            ("crates/a/build.rs", ""),
            ("crates/a/src/lib.rs", "mod b;\npub mod c;\n#[path = \"odd/e.rs\"]\nmod odd;"),
            ("crates/a/src/b.rs", "mod d;"),
            ("crates/a/src/b/d.rs", ""),
            ("crates/a/src/c/mod.rs", ""),
            ("crates/a/src/odd/e.rs", ""),
            ("crates/a/tests/one.rs", "mod common;"),
            ("crates/a/tests/common/mod.rs", ""),
            ("crates/a/tests/two/main.rs", "mod part;"),
            ("crates/a/tests/two/part.rs", ""),
        ];
        assert_eq!(orphans(&files), [""; 0]);
    }

    #[test]
    fn undeclared_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "// mod b;\nmod bb;"),
            ("crates/a/src/b.rs", ""),
            ("crates/a/src/c/bb.rs", ""),
            ("crates/a/tests/two/main.rs", ""),
            ("crates/a/tests/two/part.rs", ""),
        ];
        let expected = ["crates/a/src/b.rs", "crates/a/src/c/bb.rs", "crates/a/tests/two/part.rs"];
        assert_eq!(orphans(&files), expected);
    }

    #[test]
    fn test_modules_are_those_only_tests_see() {
        let files = [
            RustFile::new("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod tests;"),
            RustFile::new("crates/a/src/b.rs", ""),
            RustFile::new("crates/a/src/tests.rs", ""),
        ];
        assert_eq!(test_modules(&files), BTreeSet::from(["crates/a/src/tests.rs".to_owned()]));
    }
}
