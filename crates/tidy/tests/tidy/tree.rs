//! Which files there are, and what each is for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::orphans;
use crate::source::Source;

/// Where crates are: libraries, and the applications that the binary is made of.
const ROOTS: [&str; 2] = ["crates", "apps"];

/// The repository as the rules see it; paths are relative to its root and sorted.
pub(crate) struct Tree {
    /// Every text file.
    pub(crate) texts: Vec<TextFile>,
    /// The Rust files among them.
    pub(crate) rust: Vec<RustFile>,
    /// `crates/*/Cargo.toml` and `apps/*/Cargo.toml`.
    pub(crate) manifests: Vec<TextFile>,
}

/// A text file and its content.
#[derive(Clone)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// What a Rust file is compiled into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A library or a program.
    Product,
    /// `build.rs`.
    Build,
    /// Tests, benchmarks, examples; a module declared under `#[cfg(test)]`.
    Test,
}

/// A Rust file with the views the rules search in.
pub(crate) struct RustFile {
    pub(crate) path: String,
    /// The directory below `crates/` or `apps/`; empty outside.
    pub(crate) krate: String,
    pub(crate) role: Role,
    pub(crate) source: Source,
}

impl Tree {
    /// Reads the checkout this test was compiled in.
    pub(crate) fn read() -> Self {
        let root = root();
        let paths = git_files(&root).unwrap_or_else(|| walk(&root));
        Self::new(paths.iter().filter_map(|path| read_text(&root, path)).collect())
    }

    fn new(texts: Vec<TextFile>) -> Self {
        let is_rust = |file: &&TextFile| file.path.ends_with(".rs");
        let mut rust: Vec<RustFile> = texts
            .iter()
            .filter(is_rust)
            .map(|file| RustFile::new(&file.path, &file.text))
            .collect();
        for path in orphans::test_modules(&rust) {
            for file in rust.iter_mut().filter(|file| file.path == path) {
                file.role = Role::Test;
            }
        }
        let manifests = texts.iter().filter(|file| is_manifest(&file.path)).cloned().collect();
        Self { texts, rust, manifests }
    }
}

impl RustFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let mut parts = path.split('/');
        let is_crate = parts.next().is_some_and(|root| ROOTS.contains(&root));
        let krate = if is_crate { parts.next().unwrap_or("") } else { "" };
        let role = match parts.next() {
            Some("tests" | "benches" | "examples") => Role::Test,
            Some("build.rs") => Role::Build,
            _ => Role::Product,
        };
        let (path, krate) = (path.to_owned(), krate.to_owned());
        Self { path, krate, role, source: Source::new(text) }
    }

    /// Whether it is of an application: of a program that a person runs.
    pub(crate) fn is_app(&self) -> bool {
        self.path.starts_with("apps/")
    }

    /// The code that ships: nothing of it in a test.
    pub(crate) fn live(&self) -> &str {
        if self.role == Role::Test { "" } else { &self.source.live }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/tidy lies two levels below the root").to_owned()
}

/// Files git tracks or would track; `None` where there is no git or no repository.
fn git_files(root: &Path) -> Option<BTreeSet<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "-co", "--exclude-standard"]).current_dir(root);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let list = String::from_utf8(output.stdout).ok()?;
    let files: BTreeSet<String> =
        list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    (!files.is_empty()).then_some(files)
}

/// Every file below `root` but build products: an unpacked release has no repository to ask.
fn walk(root: &Path) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && !["target", ".git"].iter().any(|name| entry.file_name() == *name) {
                directories.push(path);
            } else if !is_directory && let Ok(relative) = path.strip_prefix(root) {
                files.insert(relative.to_string_lossy().into_owned());
            }
        }
    }
    files
}

/// `None` for what is not a text: symbolic links, removed files, bytes that are not UTF-8.
fn read_text(root: &Path, path: &str) -> Option<TextFile> {
    let full = root.join(path);
    fs::symlink_metadata(&full).ok().filter(fs::Metadata::is_file)?;
    let text = String::from_utf8(fs::read(&full).ok()?).ok().filter(|text| !text.contains('\0'))?;
    Some(TextFile { path: path.to_owned(), text })
}

fn is_manifest(path: &str) -> bool {
    let mut parts = path.split('/');
    let is_below = parts.next().is_some_and(|root| ROOTS.contains(&root));
    is_below && parts.nth(1) == Some("Cargo.toml") && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn role_follows_the_path() {
        let role = |path| RustFile::new(path, "").role;
        assert_eq!(role("crates/a/src/lib.rs"), Role::Product);
        assert_eq!(role("crates/a/build.rs"), Role::Build);
        assert_eq!(role("crates/a/tests/b/main.rs"), Role::Test);
        assert_eq!(RustFile::new("crates/a/src/lib.rs", "").krate, "a");
        assert_eq!(RustFile::new("apps/b/src/lib.rs", "").krate, "b");
        assert_eq!(RustFile::new("fuzz/b.rs", "").krate, "");
    }

    #[test]
    fn new_finds_test_modules_and_manifests() {
        let tree = Tree::new(vec![
            text("Cargo.toml", ""),
            text("crates/a/Cargo.toml", ""),
            text("apps/b/Cargo.toml", ""),
            text("apps/b/tests/Cargo.toml", ""),
            text("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod tests;\n"),
            text("crates/a/src/b.rs", ""),
            text("crates/a/src/tests.rs", "mod deep;"),
            text("crates/a/src/tests/deep.rs", ""),
        ]);
        let roles: Vec<_> = tree.rust.iter().map(|file| file.role).collect();
        assert_eq!(roles, [Role::Product, Role::Product, Role::Test, Role::Test]);
        assert_eq!(tree.manifests.len(), 2);
    }

    #[test]
    fn walk_agrees_with_git() {
        let root = root();
        let walked = walk(&root);
        assert!(walked.contains("crates/tidy/tests/tidy/tree.rs"));
        assert!(
            !walked.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/"))
        );
    }
}
