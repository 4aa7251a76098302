//! Which crate may use which: a crate boundary is a grant of rights.

use crate::Finding;
use crate::tree::TextFile;

/// A crate, its layer, and the crates of this workspace it may depend on.
///
/// `[dev-dependencies]` may in addition name any crate of a lower layer, so crates of one layer
/// never meet, not even in tests.
struct Row {
    name: &'static str,
    layer: u8,
    may_use: MayUse,
    reason: &'static str,
}

enum MayUse {
    /// These and no others.
    Only(&'static [&'static str]),
    /// Every crate of a lower layer.
    AllBelow,
}

use MayUse::{AllBelow, Only};

/// What crates about disks may use, and these.
macro_rules! disk {
    ($($name:literal),*) => {
        &[$($name,)* "nvme", "scsi", "workload", "sys", "measure"]
    };
}

/// What every application may use, and these.
macro_rules! app {
    ($($name:literal),*) => {
        &[
            $($name,)*
            "console", "dispatch", "document", "experiment", "launch", "results", "chart", "sys",
            "measure",
        ]
    };
}

#[rustfmt::skip] // one row, one line
const ROWS: [Row; 48] = [
    row("tidy", 10, Only(&[]), "reads text; checks a tree that does not build"),
    row("bench", 9, AllBelow, "measures what the product ships"),
    row("afar", 8, AllBelow, "the applications meet here and nowhere else"),
    row("paper", 7, AllBelow, "a figure of a paper is made of what other applications do"),
    row("memory", 6, Only(app![
        "farmem", "blades", "swap", "paging", "afar-place", "planner", "records", "host",
        "backend", "nvme"
    ]), "far memory, and the blades it is on"),
    row("disk", 6, Only(app![
        "client", "target", "host", "diskload", "backend", "nvme", "scsi", "workload"
    ]), "remote flash"),
    row("torture", 6, Only(app![
        "client", "host", "diskload", "nvme", "scsi", "workload"
    ]), "hostile peers"),
    row("fabric", 6, Only(app!["netsim", "records", "workload"]), "the network in between"),
    row("plan", 6, Only(app!["planner", "records"]), "from demand to a bill"),
    row("kv", 6, Only(app![
        "load", "store", "jobs", "workload"
    ]), "key-value stores and batch programs"),
    row("sweep", 6, Only(app!["farmem", "paging", "workload"]), "repeats runs: asks them by flags"),
    row("report", 6, Only(app!["raster", "records"]), "shows records: knows no domain"),
    row("simworld", 6, Only(&["sys", "workload"]), "a world for tests: knows nobody in it"),
    row("target", 5, Only(disk!["backend"]), "serves disks: knows no host"),
    row("client", 5, Only(disk!["console", "host", "diskload"]), "what reaches targets shares"),
    row("diskload", 4, Only(disk!["backend", "host"]), "loads disks, wherever they are"),
    row("host", 3, Only(disk!["backend"]), "reaches disks: knows no target"),
    row("dispatch", 3, Only(&["console", "experiment", "launch", "sys"]), "moves names of points"),
    row("ladder", 3, Only(&[
        "console", "experiment", "launch", "results", "sys", "measure"
    ]), "runs far memory as a process: knows no paper"),
    row("document", 3, Only(&["console", "records", "measure"]), "reads what users write"),
    row("swap", 5, Only(&["farmem", "paging", "tables", "sys", "measure"]), "the kernel swaps"),
    row("farmem", 4, Only(&["blades", "paging", "tables", "sys", "measure"]), "meets them as data"),
    row("tables", 3, Only(&["paging", "sys", "measure"]), "words that two sides map"),
    row("blades", 3, Only(&["paging"]), "keeps pages: knows neither program nor network"),
    row("paging", 2, Only(&["measure"]), "which pages are local: no clock, no kernel"),
    row("backend", 2, Only(&["sys", "workload", "measure"]), "holds bytes: no network"),
    row("load", 2, Only(&["workload", "sys", "measure"]), "asks servers, times the answers"),
    row("store", 2, Only(&["sys", "measure"]), "answers clients: knows none of them"),
    row("jobs", 2, Only(&["workload", "measure"]), "computes in memory: no clock, no kernel"),
    row("netsim", 2, Only(&["workload", "measure"]), "simulates: no clock, no kernel"),
    row("planner", 2, Only(&["workload", "measure"]), "computes: runs nothing"),
    row("console", 2, Only(&["sys", "measure"]), "says results, ends commands: names no command"),
    row("launch", 2, Only(&["sys", "measure"]), "starts afar as a child: asks it by flags"),
    row("experiment", 2, Only(&["results", "workload", "sys", "measure"]), "repeats any runs"),
    row("results", 1, Only(&["measure"]), "records: written and read, and nothing else"),
    row("workload", 1, Only(&["measure"]), "says who asks for what: no clock, no kernel"),
    row("sys", 1, Only(&["measure"]), "the kernel, with no policy of any kind"),
    row("nvme", 1, Only(&["wire", "reservations"]), "bytes to commands and back: no sockets"),
    row("scsi", 1, Only(&["wire", "reservations"]), "as `nvme`: no sockets, no clock"),
    row("records", 1, Only(&["measure"]), "bulk files; alone because its dependencies are costly"),
    row("measure", 0, Only(&[]), "quantities: no files, no clock, no threads"),
    row("reservations", 0, Only(&[]), "who may use a device: no protocol, no clock, no files"),
    row("wire", 0, Only(&[]), "fields at fixed places: allocates nothing"),
    row("raster", 1, Only(&[]), "drawings to pixels; alone for its dependencies"),
    row("chart", 0, Only(&[]), "draws: values to text, no files"),
    row("farmem-preload", 0, Only(&[]), "loaded into the measured program: must stay tiny"),
    row("afar-place", 0, Only(&[]), "linked into the measured program: must stay tiny"),
    row("test-support", 0, Only(&[]), "what tests share: never shipped"),
];

/// Crates that only `[dev-dependencies]` may name.
const FOR_TESTS: [&str; 2] = ["simworld", "test-support"];

const fn row(name: &'static str, layer: u8, may_use: MayUse, reason: &'static str) -> Row {
    Row { name, layer, may_use, reason }
}

/// Reports edges that the table does not list, and crates it does not know.
pub(crate) fn check(manifests: &[TextFile]) -> Vec<Finding> {
    manifests.iter().flat_map(|manifest| check_one(&manifest.path, &manifest.text)).collect()
}

fn check_one(path: &str, text: &str) -> Vec<Finding> {
    let name = path.split('/').nth(1).unwrap_or("");
    let Some(user) = find(name) else {
        let remedy = format!("give `{name}` a row, a layer and a reason in crates/tidy's deps.rs");
        return vec![Finding::new(path, 1, "unknown crate", remedy)];
    };
    let forbidden = |dependency: &Dependency| {
        let used = find(&dependency.name)?;
        (!may_use(user, used, dependency.is_dev)).then(|| {
            let remedy = if FOR_TESTS.contains(&used.name) {
                format!("`{}` is for tests: move it to [dev-dependencies]", used.name)
            } else {
                format!(
                    "`{name}` must not use `{}` ({name}: {}); pass data, or let `afar` \
                     join them",
                    used.name, user.reason
                )
            };
            Finding::new(path, dependency.line, "dependency edge", remedy)
        })
    };
    dependencies(text).iter().filter_map(forbidden).collect()
}

fn find(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

fn may_use(user: &Row, used: &Row, is_dev: bool) -> bool {
    let is_below = used.layer < user.layer;
    if FOR_TESTS.contains(&used.name) {
        return is_dev && is_below;
    }
    match user.may_use {
        AllBelow => is_below,
        Only(names) => names.contains(&used.name) || (is_dev && is_below),
    }
}

/// A dependency named in a manifest.
#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    /// The package, when it differs from the name it is used under.
    name: String,
    is_dev: bool,
    line: usize,
}

/// The `[dependencies]`, `[dev-dependencies]` and `[build-dependencies]` of a manifest, also
/// those under `[target.…]` and those with a section of their own.
fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        let new =
            |name: &str, is_dev| Dependency { name: name.to_owned(), is_dev, line: index + 1 };
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = header.rsplit('.').map(|part| part.trim_matches('"').to_owned()).collect();
            if let [name, kind, ..] = section.as_slice()
                && kind.ends_with("dependencies")
            {
                found.push(new(name, kind.starts_with("dev")));
            }
        } else if let Some((key, value)) = line.split_once('=') {
            let key = key.split('.').next().unwrap_or(key).trim().trim_matches('"');
            match section.as_slice() {
                [kind, ..] if kind.ends_with("dependencies") => {
                    found.push(new(renamed(value).unwrap_or(key), kind.starts_with("dev")));
                }
                [_, kind, ..] if kind.ends_with("dependencies") && key == "package" => {
                    found.push(new(value.trim().trim_matches('"'), kind.starts_with("dev")));
                }
                _ => {}
            }
        }
    }
    found
}

/// The package in `{ package = "name", … }`.
fn renamed(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("package")?;
    rest.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, text: &str) -> Vec<usize> {
        let findings = check_one(&format!("crates/{name}/Cargo.toml"), text);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn table_is_a_stack_of_layers() {
        for row in &ROWS {
            if let Only(names) = row.may_use {
                for name in names {
                    let used = find(name).expect("a crate that may be used has a row");
                    assert!(used.layer < row.layer, "{} uses {name}", row.name);
                }
            }
        }
    }

    #[test]
    fn edges_of_the_table_pass() {
        let text =
            "[dependencies]\nmeasure.workspace = true\nsys = { path = \"../sys\" }\nlibc = \"1\"\n";
        assert_eq!(lines("farmem", text), []);
        assert_eq!(lines("afar", text), []);
    }

    #[test]
    fn edges_outside_the_table_are_found() {
        assert_eq!(lines("measure", "[dependencies]\nsys.workspace = true\n"), [2]);
        assert_eq!(lines("farmem", "[dependencies]\nx = { package = \"nvme\" }\n"), [2]);
        assert_eq!(lines("farmem", "[dependencies.netsim]\nworkspace = true\n"), [1]);
        assert_eq!(lines("nvme", "[build-dependencies]\nsys.workspace = true\n"), [2]);
        assert_eq!(lines("afar", "[dependencies]\nbench.workspace = true\n"), [2]);
        let target = "[target.'cfg(unix)'.dependencies]\n\"backend\" = \"1\"\n";
        assert_eq!(lines("netsim", target), [2]);
        let table = "[dependencies.x]\npackage = \"afar\"\n";
        assert_eq!(lines("plan", "[dependencies]\nfabric.workspace = true\n"), [2]);
        assert_eq!(lines("paper", "[dependencies]\nfabric.workspace = true\n"), []);
        assert_eq!(lines("planner", table), [2]);
    }

    #[test]
    fn edges_of_tests_may_reach_any_lower_layer() {
        assert_eq!(lines("netsim", "[dev-dependencies]\nnvme.workspace = true\n"), []);
        assert_eq!(lines("netsim", "[dev-dependencies]\nbackend.workspace = true\n"), [2]);
        assert_eq!(lines("measure", "[dev-dependencies]\nworkload.workspace = true\n"), [2]);
    }

    #[test]
    fn crates_for_tests_are_dependencies_of_tests_only() {
        for name in FOR_TESTS {
            let of = |kind: &str| format!("[{kind}]\n{name}.workspace = true\n");
            assert_eq!(lines("afar", &of("dev-dependencies")), []);
            assert_eq!(lines("bench", &of("dev-dependencies")), []);
            for kind in ["dependencies", "build-dependencies", "target.x.dependencies"] {
                assert_eq!(lines("afar", &of(kind)), [2], "{kind}");
            }
            assert!(ROWS.iter().any(|row| row.name == name), "{name} has no row");
        }
    }

    #[test]
    fn crates_without_a_row_are_found() {
        assert_eq!(lines("stranger", ""), [1]);
    }

    #[test]
    fn sections_of_other_kinds_are_not_dependencies() {
        assert_eq!(dependencies("[package]\nmeasure = 1\n[features]\nsys = []\n"), []);
    }
}
