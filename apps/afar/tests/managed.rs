//! Every process image is managed, whatever its user, root, namespaces, environment and loader.
//!
//! The program (`programs/touch.c`) writes to 64 MiB, twice, in pages of which a quarter are local:
//! the second time every page comes from far memory. So the number of fetches says whether its
//! memory was managed, and the record says what each image had.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

mod support;

use support::{Launch, TRAPS, installed, open_scratch, program, scratch, skip, usable};

const PAGES: u64 = 64 << 8;
const LOCAL: &str = "16MiB";
const SMALL: &str = "it asks what threads may do, and has hardly any memory";

/// The program where every user can execute it, linked statically or not.
fn everybodys(name: &str, flags: &[&str]) -> PathBuf {
    everybodys_by("cc", name, flags)
}

/// The same by another compiler.
fn everybodys_by(compiler: &str, name: &str, flags: &[&str]) -> PathBuf {
    static BUILT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let path = open_scratch(name);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if built.contains(&path) {
        return path;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/touch.c");
    let fresh = open_scratch(&format!("{name}.{}", std::process::id()));
    let mut cc = Command::new(compiler);
    cc.args(flags).args(["-O1", "-o"]).args([&fresh, &source]);
    assert!(cc.status().expect("the compiler is installed").success());
    // Another test may be running the old one.
    std::fs::rename(&fresh, &path).expect("both are in the same directory");
    built.push(path.clone());
    path
}

/// Runs `words` under afar with every trap and checks that the program's memory was managed.
#[track_caller]
fn managed(test: &str, words: &[&str]) {
    for trap in TRAPS {
        if !usable(trap, test) {
            continue;
        }
        let what = format!("{test} ({trap})");
        let record = run(&what, trap, words);
        let results = &record["results"];
        let fetched = results["faults"]["fetch_count"].as_u64().expect("a count");
        assert!(fetched >= PAGES, "{what}: {fetched} of {PAGES} pages were fetched\n{results:#}");
        assert_eq!(results["valid"], true, "{what}: {:#}", results["invalid"]);
        let share = results["coverage"]["share"].as_f64().expect("memory was seen");
        assert!(share >= 0.95, "{what}: {share} of the memory was managed\n{results:#}");
    }
}

fn run(what: &str, trap: &str, words: &[&str]) -> Value {
    let path = scratch(&format!("{}.json", what.replace(' ', "-")));
    let json = path.to_str().expect("a plain name");
    let flags = ["--no-calibrate", "--trap", trap, "--local", LOCAL, "--json", json];
    let ended = Launch::new(words).under_afar(&flags).run();
    assert!(ended.text().contains("touched"), "{what}: {}\n{}", ended.text(), ended.stderr);
    assert_eq!(ended.stderr, "", "{what}: nothing is said on the program's terminal");
    let ended = ended.expect(0, what);
    ended.leaves_nothing(what);
    let text = std::fs::read_to_string(&path).expect("the record was written");
    serde_json::from_str(&text).expect("a record")
}

fn is_root(test: &str) -> bool {
    let root = sys::process::effective_user() == 0;
    if !root {
        skip(test, "needs root");
    }
    root
}

fn dynamic() -> String {
    everybodys("touch", &[]).to_str().expect("a plain name").to_owned()
}

// Wherever the program is: anywhere, below 4 GiB, or without a loader.
#[test]
fn static_data() {
    for kind in ["-pie", "-no-pie", "-static"] {
        let program = everybodys(&format!("touch-static-data{kind}"), &["-DSTATIC", kind]);
        managed("static_data", &[program.to_str().expect("a plain name")]);
    }
}

// Another C library, whose loader is the library itself, and the same without a loader.
#[test]
fn programs_of_musl() {
    if installed(&["musl-gcc"], "programs_of_musl") {
        for kind in ["-pie", "-static"] {
            let program = everybodys_by("musl-gcc", &format!("touch-musl{kind}"), &[kind]);
            managed("programs_of_musl", &[program.to_str().expect("a plain name")]);
        }
    }
}

// It is fetched wherever it goes.
#[test]
fn memory_that_moves_below_4_gib() {
    let program = everybodys("touch-moved", &["-DMOVED"]);
    managed("memory_that_moves_below_4_gib", &[program.to_str().expect("a plain name")]);
}

#[test]
fn an_empty_environment() {
    managed("an_empty_environment", &["env", "-i", &dynamic()]);
}

#[test]
fn another_user() {
    if is_root("another_user") && installed(&["setpriv"], "another_user") {
        let words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", &dynamic()];
        managed("another_user", &words);
    }
}

#[test]
fn another_user_by_su() {
    if is_root("another_user_by_su") && installed(&["su"], "another_user_by_su") {
        managed("another_user_by_su", &["su", "-s", "/bin/sh", "nobody", "-c", &dynamic()]);
    }
}

// As an entry point of a container does: it drops its rights within the process that executes.
#[test]
fn a_process_that_drops_its_user_and_executes() {
    if is_root("a_process_that_drops_its_user_and_executes") {
        let words = [program("rights"), dynamic().into()];
        let words = words.each_ref().map(|word| word.to_str().expect("a plain name"));
        managed("a_process_that_drops_its_user_and_executes", &[words[0], "run", words[1]]);
    }
}

#[test]
fn a_preload_of_its_own() {
    let script = format!("LD_PRELOAD=libm.so.6 {}; true", dynamic());
    managed("a_preload_of_its_own", &["sh", "-c", &script]);
}

#[test]
fn a_process_namespace() {
    if is_root("a_process_namespace") {
        managed("a_process_namespace", &["unshare", "--pid", "--fork", "--mount-proc", &dynamic()]);
    }
}

#[test]
fn a_mount_namespace_and_another_root() {
    if is_root("a_mount_namespace_and_another_root") {
        let root = open_scratch("root");
        std::fs::create_dir_all(&root).expect("there is room for temporary files");
        let statically = everybodys("touch-static", &["-static"]);
        std::fs::copy(statically, root.join("touch")).expect("there is room");
        let root = root.to_str().expect("a plain name");
        let words = ["unshare", "--mount", "chroot", root, "/touch"];
        managed("a_mount_namespace_and_another_root", &words);
    }
}

// The kernel counts pages of the program's own file, half as many as it has of memory, as shared
// memory there. Data that it may write to become managed, while afar counts.
#[test]
fn a_program_on_a_tmpfs() {
    if !is_root("a_program_on_a_tmpfs") {
        return;
    }
    const FLAGS: &[&str] = &["-DFILE_DATA", "-static", "-DFILE_BYTES=33554432"];
    for (name, flags) in [("touch-constants", &FLAGS[1..]), ("touch-data", FLAGS)] {
        let program = everybodys(name, flags);
        let place = open_scratch("tmpfs");
        std::fs::create_dir_all(&place).expect("there is room for temporary files");
        let (program, place) = (program.display(), place.display());
        let script = format!("mount -t tmpfs none {place} && cp {program} {place} && exec {place}");
        let script = format!("{script}/{name}");
        managed("a_program_on_a_tmpfs", &["unshare", "--mount", "sh", "-c", &script]);
    }
}

#[test]
fn a_network_namespace() {
    if is_root("a_network_namespace") {
        managed("a_network_namespace", &["unshare", "--net", &dynamic()]);
    }
}

#[test]
fn a_short_lived_descendant() {
    let script = format!("sleep 0.2; (sleep 0.1; {}) & wait", dynamic());
    managed("a_short_lived_descendant", &["sh", "-c", &script]);
}

#[test]
fn a_shell_that_executes() {
    managed("a_shell_that_executes", &["sh", "-c", &format!("exec {}", dynamic())]);
}

#[test]
fn a_shell_that_executes_a_static_program() {
    let program = everybodys("touch-exec-static", &["-static"]);
    let script = format!("exec {}", program.display());
    managed("a_shell_that_executes_a_static_program", &["sh", "-c", &script]);
}

#[test]
fn a_static_program() {
    let program = everybodys("touch-alone-static", &["-static"]);
    managed("a_static_program", &[program.to_str().expect("a plain name")]);
}

// Neither a C library nor a loader: the language's own runtime makes every system call.
#[test]
fn a_shell_that_executes_a_go_program() {
    const TEST: &str = "a_shell_that_executes_a_go_program";
    if installed(&["go"], TEST) {
        let program = open_scratch("touch-go");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/touch.go");
        let mut go = Command::new("go");
        go.args(["build", "-o"]).args([&program, &source]);
        go.envs([("CGO_ENABLED", "0"), ("GO111MODULE", "off"), ("GOFLAGS", "")]);
        assert!(go.status().expect("go is installed").success());
        managed(TEST, &["sh", "-c", &format!("exec {}", program.display())]);
    }
}

// Its parent's memory is remote to it, too. Nobody but the children fetches anything here.
#[test]
fn children_that_share_the_memory() {
    managed("children_that_share_the_memory", &[&dynamic(), "by children"]);
}

#[test]
fn a_traced_program() {
    if installed(&["strace"], "a_traced_program") {
        managed("a_traced_program", &["strace", "-f", "-o", "/dev/null", &dynamic()]);
    }
}

// The helper is a thread of the program: what it may do, whoever takes over the program may do.
#[test]
fn the_helper_has_no_right_that_the_program_does_not_have() {
    if !is_root("the_helper_has_no_right_that_the_program_does_not_have") {
        return;
    }
    let rights = program("rights");
    for trap in TRAPS {
        if usable(trap, "the_helper_has_no_right_that_the_program_does_not_have") {
            let flags = ["--no-calibrate", "--trap", trap];
            let launch = Launch::new([rights.as_os_str(), "look".as_ref()]).unmanaged(SMALL);
            launch.under_afar(&flags).run().expect(0, trap);
        }
    }
}

// Whoever greets without having been entered is nobody's helper.
#[test]
fn a_forged_greeting_is_refused() {
    let rights = program("rights");
    for trap in TRAPS {
        if usable(trap, "a_forged_greeting_is_refused") {
            let flags = ["--no-calibrate", "--trap", trap];
            let launch = Launch::new([rights.as_os_str(), "forge".as_ref()]).unmanaged(SMALL);
            launch.under_afar(&flags).run().expect(0, trap);
        }
    }
}
