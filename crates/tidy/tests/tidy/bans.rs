//! Calls that compile but are wrong here, each with what to write instead.

use crate::Finding;
use crate::source::occurrences;
use crate::tree::{Role, RustFile};

/// Crates beside the applications whose code is a program that a person runs.
const PROGRAMS: [&str; 2] = ["bench", "tidy"];

/// Crates that print and exit: `console` for the product, `test-support` for tests.
const PRINTERS: [&str; 4] = ["console", "bench", "tidy", "test-support"];

/// Crates whose results depend on their inputs and nothing else.
const PURE: [&str; 9] =
    ["measure", "workload", "jobs", "wire", "reservations", "nvme", "scsi", "netsim", "planner"];

/// Crates whose results are computed by walking collections.
const ORDERED: [&str; 2] = ["netsim", "planner"];

/// Where a ban holds.
enum Scope {
    /// Everywhere, tests included.
    Everywhere,
    /// Everywhere but in tests.
    Live,
    /// Libraries: not in tests, build scripts or the crates that are programs.
    Libraries,
    /// Not in tests, build scripts or the crates that print.
    Silent,
    /// These crates, tests included.
    All(&'static [&'static str]),
    /// These crates, but not their tests.
    LiveIn(&'static [&'static str]),
}

/// A banned call and its replacement.
struct Ban {
    call: &'static str,
    scope: Scope,
    remedy: &'static str,
}

#[rustfmt::skip] // one row, one line
const BANS: [Ban; 16] = [
    ban("thread::sleep", Scope::Libraries, "wait on a timer or an event the caller can cancel"),
    ban("println!", Scope::Silent, "return the text; only `console` prints"),
    ban("eprintln!", Scope::Silent, "return an error or a warning; only `console` prints"),
    ban("print!", Scope::Silent, "return the text; only `console` prints"),
    ban("eprint!", Scope::Silent, "return an error or a warning; only `console` prints"),
    ban("stdout()", Scope::Silent, "use `console::terminal` or `console::Screen`"),
    ban("stderr()", Scope::Silent, "use `console::terminal` or `console::Line`"),
    ban("process::exit", Scope::Silent, "return an error: exiting skips every destructor"),
    ban("todo!", Scope::Everywhere, "write it, or return an error that says what is missing"),
    ban("unimplemented!", Scope::Everywhere, "return an error that says what is missing"),
    ban("dbg!", Scope::Everywhere, "delete it, or assert what you wanted to see"),
    ban("Instant::now", Scope::All(&PURE), "take the time as an argument"),
    ban("SystemTime::now", Scope::All(&PURE), "take the time as an argument"),
    ban("HashMap", Scope::LiveIn(&ORDERED), "use BTreeMap: results must not depend on hash order"),
    ban("HashSet", Scope::LiveIn(&ORDERED), "use BTreeSet: results must not depend on hash order"),
    ban(".unwrap()", Scope::Live, "return an error, or `expect` with the invariant that holds"),
];

/// Reports every banned call in its scope.
pub(crate) fn check(file: &RustFile) -> Vec<Finding> {
    BANS.iter().flat_map(|ban| ban.check(file)).collect()
}

const fn ban(call: &'static str, scope: Scope, remedy: &'static str) -> Ban {
    Ban { call, scope, remedy }
}

impl Ban {
    fn check(&self, file: &RustFile) -> Vec<Finding> {
        let krate = file.krate.as_str();
        let is_built = file.role != Role::Build;
        let is_program = file.is_app() || PROGRAMS.contains(&krate);
        let code = match self.scope {
            Scope::Everywhere => &file.source.code,
            Scope::Live => file.live(),
            Scope::Libraries if is_built && !is_program => file.live(),
            Scope::Silent if is_built && !PRINTERS.contains(&krate) => file.live(),
            Scope::All(crates) if crates.contains(&krate) => &file.source.code,
            Scope::LiveIn(crates) if crates.contains(&krate) => file.live(),
            _ => "",
        };
        let remedy = |at| {
            let remedy = format!("`{}`: {}", self.call, self.remedy);
            Finding::new(&file.path, file.source.line(at), "banned call", remedy)
        };
        occurrences(code, self.call).into_iter().map(remedy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&RustFile::new(path, text));
        findings.into_iter().map(|finding| finding.line).collect()
    }

    /// (call, a path where it is banned, a path where it is not).
    #[rustfmt::skip] // one row, one line
    const CASES: [(&str, &str, &str); 13] = [
        ("std::thread::sleep(d)", "crates/farmem/src/a.rs", "crates/farmem/tests/a.rs"),
        ("println!()", "apps/afar/src/a.rs", "crates/console/src/a.rs"),
        ("eprintln!()", "crates/farmem/src/a.rs", "crates/farmem/build.rs"),
        ("print!()", "crates/farmem/src/a.rs", "crates/bench/src/a.rs"),
        ("eprint!()", "crates/sys/src/a.rs", "crates/tidy/src/a.rs"),
        ("stdout()", "apps/afar/src/a.rs", "crates/console/src/a.rs"),
        ("stderr()", "crates/sys/src/a.rs", "apps/afar/tests/a.rs"),
        ("process::exit(1)", "apps/afar/src/main.rs", "crates/bench/src/main.rs"),
        ("Instant::now()", "crates/netsim/tests/a.rs", "crates/sys/src/a.rs"),
        ("SystemTime::now()", "crates/workload/src/a.rs", "crates/sys/src/a.rs"),
        ("HashMap::new()", "crates/netsim/src/a.rs", "crates/netsim/tests/a.rs"),
        ("HashSet::new()", "crates/planner/src/a.rs", "crates/nvme/src/a.rs"),
        ("x.unwrap()", "apps/afar/src/a.rs", "apps/afar/tests/a.rs"),
    ];

    #[test]
    fn calls_are_banned_in_their_scope_only() {
        for (call, banned, allowed) in CASES {
            let text = format!("\nfn f() {{ {call} }}\n");
            assert!(lines(banned, &text).contains(&2), "{call} in {banned}");
            assert_eq!(lines(allowed, &text), [], "{call} in {allowed}");
        }
    }

    #[test]
    fn unfinished_work_is_banned_in_tests_too() {
        for call in ["todo!()", "unimplemented!()", "dbg!(x)"] {
            assert_eq!(lines("apps/afar/tests/a.rs", call), [1], "{call}");
        }
    }

    #[test]
    fn unit_tests_comments_and_strings_are_not_calls() {
        let text = "// x.unwrap()\nf(\"dbg!\");\n#[cfg(test)]\nmod tests { fn f() { x.unwrap() } }";
        assert_eq!(lines("crates/farmem/src/a.rs", text), []);
    }

    #[test]
    fn other_calls_pass() {
        let text = "x.unwrap_or(1); writeln!(f); MyInstant::now(); thread::sleeper();";
        assert_eq!(lines("crates/netsim/src/a.rs", text), []);
    }

    #[test]
    fn cases_cover_the_table() {
        let covered = |ban: &&Ban| {
            let everywhere = matches!(ban.scope, Scope::Everywhere);
            everywhere || CASES.iter().any(|(call, _, _)| call.contains(ban.call))
        };
        assert_eq!(BANS.iter().filter(covered).count(), BANS.len());
    }
}
