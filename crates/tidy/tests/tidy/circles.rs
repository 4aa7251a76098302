//! Modules of a crate import one another in one direction.
//!
//! ```text
//! files ─► names each file uses ─► file that defines each name ─► strongly connected components
//! ```
//!
//! A file uses what it imports and what it names by a path: `crate::a::B`, `super::B`, `self::B`
//! and `child::B`. A name that its parent only imports is followed to the definition, so a facade
//! joins nobody.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::tree::{Role, RustFile};

/// Circles that are let be, each with its files without `crates/` and `.rs`: none. The table only
/// shrinks: a row that names more files than its circle has is an error as well.
const KNOWN: [&[&str]; 0] = [];

/// Reports files that import one another in a circle, and rows of the table that are too long.
pub(crate) fn check(files: &[RustFile]) -> Vec<Finding> {
    against(&circles(files), &KNOWN)
}

fn against(found: &[BTreeSet<String>], known: &[&[&str]]) -> Vec<Finding> {
    let known: Vec<BTreeSet<&str>> =
        known.iter().map(|row| row.iter().copied().collect()).collect();
    let is_known = |circle: &&BTreeSet<String>| {
        known.iter().any(|row| circle.iter().all(|file| row.contains(file.as_str())))
    };
    let new = found.iter().filter(|circle| !is_known(circle)).map(|circle| {
        let names: Vec<&str> = circle.iter().map(String::as_str).collect();
        let remedy = format!(
            "{} files import one another: {}; move what they share below both",
            names.len(),
            names.join(" ")
        );
        Finding::new(&path(names[0]), 1, "import circle", remedy)
    });
    let stale = known.iter().flat_map(|row| row.iter().map(move |file| (row, file)));
    let is_stale = |(row, file): &(&BTreeSet<&str>, &&str)| {
        let is_in = |circle: &BTreeSet<String>| {
            circle.contains(**file) && circle.iter().all(|one| row.contains(one.as_str()))
        };
        !found.iter().any(is_in)
    };
    let stale = stale.filter(is_stale).map(|(_, file)| {
        let remedy = "is in no circle any more; delete it from the table in circles.rs";
        Finding::new(&path(file), 1, "import circle", remedy)
    });
    new.chain(stale).collect()
}

fn path(name: &str) -> String {
    match name.starts_with("apps/") {
        true => format!("{name}.rs"),
        false => format!("crates/{name}.rs"),
    }
}

/// The name of a module: the segments of its path in the crate.
type Module = Vec<String>;

/// The modules of one crate and what they refer to.
struct Graph<'a> {
    modules: BTreeMap<Module, &'a RustFile>,
    /// By module: the names it imports, which its children see too, and where they come from.
    imports: BTreeMap<Module, Vec<(String, Module)>>,
}

/// Every circle of every crate, as sets of file names.
fn circles(files: &[RustFile]) -> Vec<BTreeSet<String>> {
    let crates: BTreeSet<&str> = files.iter().map(|file| file.krate.as_str()).collect();
    let of_crate = |krate: &&str| Graph::new(files, krate).circles();
    crates.iter().filter(|krate| !krate.is_empty()).flat_map(of_crate).collect()
}

impl<'a> Graph<'a> {
    fn new(files: &'a [RustFile], krate: &str) -> Self {
        let own = files.iter().filter(|file| file.krate == krate && file.role == Role::Product);
        let modules: BTreeMap<Module, &RustFile> =
            own.filter_map(|file| Some((module(&file.path)?, file))).collect();
        let mut graph = Self { modules, imports: BTreeMap::new() };
        for (module, file) in &graph.modules {
            let imports = imports(file.live()).into_iter();
            let named = imports.filter_map(|import| Some((import.name()?, import.path)));
            graph.imports.insert(module.clone(), named.collect());
        }
        graph
    }

    fn circles(&self) -> Vec<BTreeSet<String>> {
        let edges: BTreeMap<&Module, BTreeSet<Module>> =
            self.modules.iter().map(|(module, file)| (module, self.uses(module, file))).collect();
        let reach = |from: &Module| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<&Module> = edges[from].iter().collect();
            while let Some(module) = next.pop() {
                if seen.insert(module.clone()) {
                    next.extend(&edges[module]);
                }
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            self.modules.keys().map(|module| (module, reach(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, others) in &reached {
            let back = |other: &&Module| reached[*other].contains(*module);
            let circle: BTreeSet<String> =
                others.iter().filter(back).map(|other| self.name(other)).collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }

    /// `netsim/src/net/mod` for the module `net` of `netsim`.
    fn name(&self, module: &Module) -> String {
        let path = &self.modules[module].path;
        path.trim_start_matches("crates/").trim_end_matches(".rs").to_owned()
    }

    /// The other modules that a file uses.
    fn uses(&self, module: &Module, file: &RustFile) -> BTreeSet<Module> {
        let imported = imports(file.live()).into_iter().map(|import| import.path);
        let named = imported.chain(paths(file.live()));
        let resolved = named.filter_map(|path| self.resolve(module, &path, 0));
        resolved.filter(|other| other != module).collect()
    }

    /// The module that defines what `path` names in `module`; `None` for other crates.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        let ups = path.iter().take_while(|segment| *segment == "super").count();
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => (module[..module.len().checked_sub(ups)?].to_vec(), &path[ups..]),
            child if self.modules.contains_key(&below(module, child)) => (module.clone(), path),
            _ => return None,
        };
        while let Some((child, after)) = rest.split_first()
            && self.modules.contains_key(&below(&at, child))
        {
            (at, rest) = (below(&at, child), after);
        }
        let name = rest.first();
        let imports = self.imports.get(&at).filter(|_| depth < IMPORTS_MAX);
        let named = imports.into_iter().flatten().filter(|(import, _)| Some(import) == name);
        let origin = named.filter_map(|(_, path)| self.resolve(&at, path, depth + 1)).next();
        origin.or_else(|| self.modules.contains_key(&at).then_some(at))
    }
}

/// Imports of imports that are followed.
const IMPORTS_MAX: usize = 8;

fn below(module: &[String], child: &str) -> Module {
    [module, &[child.to_owned()]].concat()
}

/// The module that a file below a crate's `src` holds.
fn module(path: &str) -> Option<Module> {
    let (_, path) = path.split_once("/src/")?;
    let path = path.strip_suffix(".rs")?;
    let mut segments: Module = path.split('/').map(str::to_owned).collect();
    if segments.first().is_some_and(|first| first == "bin") {
        return None;
    }
    let is_root = path == "lib" || path == "main";
    if is_root || segments.last().is_some_and(|last| last == "mod") {
        segments.pop();
    }
    Some(segments)
}

/// One name that a `use` brings in.
struct Import {
    path: Module,
    alias: Option<String>,
}

impl Import {
    /// The name others see; `None` for a glob.
    fn name(&self) -> Option<String> {
        self.alias.clone().or_else(|| self.path.last().filter(|name| *name != "*").cloned())
    }
}

/// Every name of every `use` in `code`.
fn imports(code: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    for at in crate::source::occurrences(code, "use") {
        let Some(end) = code[at..].find(';') else { continue };
        let tree = code[at + "use".len()..at + end].trim();
        for leaf in leaves(tree) {
            let (path, alias) = match leaf.split_once(" as ") {
                Some((path, alias)) => (path, Some(alias.trim().to_owned())),
                None => (leaf.as_str(), None),
            };
            let path = path.split("::").map(|segment| segment.trim().to_owned()).collect();
            imports.push(Import { path, alias });
        }
    }
    imports
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d` and `a::c::e`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else {
        return vec![tree.trim().to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(leaves).map(|leaf| format!("{}{leaf}", before.trim())).collect()
}

/// Every path of two or more segments in `code`, whatever it names, but what trees of imports have
/// in common, and those that say who may see an item: `pub(in crate::a)`.
fn paths(code: &str) -> Vec<Module> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut paths = Vec::new();
    let mut is_scope = false;
    let mut rest = code;
    while let Some(start) = rest.find(is_word) {
        let gap = &rest[..start];
        rest = &rest[start..];
        let mut path = Module::new();
        loop {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            path.push(rest[..end].to_owned());
            rest = &rest[end..];
            match rest.strip_prefix("::") {
                Some(after) if after.starts_with(is_word) => rest = after,
                _ => break,
            }
        }
        let was_scope = is_scope;
        is_scope = path == ["in"] && gap.ends_with('(');
        let begins = !gap.ends_with("::") && !gap.ends_with('.');
        let is_import = rest.starts_with("::{");
        if begins && !was_scope && !is_import && path.len() > 1 {
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| RustFile::new(&format!("crates/a/src/{name}.rs"), text))
            .collect();
        circles(&files).into_iter().map(|circle| circle.into_iter().collect()).collect()
    }

    #[test]
    fn circle_of_imports_is_found() {
        let files = [
            ("lib", "mod b; mod c; mod d;"),
            ("b", "use std::io;\nuse crate::{c::{C, D}, d::X};\nstruct B;"),
            ("c", "fn f(b: super::b::B) {}\nstruct C; struct D;"),
            ("d", "struct X;"),
        ];
        assert_eq!(found(&files), [["a/src/b", "a/src/c"]]);
    }

    #[test]
    fn circle_of_parent_and_child_is_found() {
        let files = [
            ("lib", "mod b;"),
            ("b/mod", "mod c;\nuse c::run;\npub struct E;"),
            ("b/c", "use super::E;\npub fn run() -> E { E }"),
        ];
        assert_eq!(found(&files), [["a/src/b/c", "a/src/b/mod"]]);
        let files = [("lib", "mod b; fn f() { b::g() } struct R;"), ("b", "use crate::R;")];
        assert_eq!(found(&files), [["a/src/b", "a/src/lib"]]);
        let files = [("lib", "mod b; fn f() { b::g() }"), ("b", "pub(in crate::x) fn g() {}")];
        assert_eq!(found(&files), [[""; 0]; 0]);
    }

    #[test]
    fn re_export_is_no_import_of_the_facade() {
        let files = [
            ("lib", "mod b;"),
            ("b/mod", "mod c; mod e;\npub(crate) use e::{E as F, G};\nfn f() { c::run(); }"),
            ("b/c", "use crate::b::{F, G};\npub fn run() -> F { F }"),
            ("b/e", "pub struct E; pub struct G;"),
        ];
        assert_eq!(found(&files), [[""; 0]; 0]);
    }

    #[test]
    fn tests_and_comments_import_nothing() {
        let files = [
            ("lib", "mod b; mod c;"),
            ("b", "use crate::c::C; struct B;"),
            ("c", "// use crate::b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }\nstruct C;"),
        ];
        assert_eq!(found(&files), [[""; 0]; 0]);
    }

    #[test]
    fn table_allows_its_circles_and_shrinks_with_them() {
        let circle = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let rules = |found: &[BTreeSet<String>], known: &[&[&str]]| {
            let findings = against(found, known);
            findings.into_iter().map(|finding| finding.path).collect::<Vec<_>>()
        };
        assert_eq!(rules(&[circle(&["b", "c"])], &[&["b", "c"]]), [""; 0]);
        assert_eq!(rules(&[circle(&["b", "c", "d"])], &[&["b", "c"]]).len(), 3);
        assert_eq!(rules(&[circle(&["b", "c"])], &[&["b", "c", "d"]]), ["crates/d.rs"]);
        assert_eq!(rules(&[], &[&["b", "c"]]), ["crates/b.rs", "crates/c.rs"]);
    }
}
