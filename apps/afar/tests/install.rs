//! `scripts/install` and `scripts/package`: what they put where, and that they take it away again.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{installed, open_scratch};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
/// The image's first stage has what builds the program; its second gets what that has installed.
const IMAGE: [&str; 3] = [
    "RUN scripts/install-deps build",
    "RUN DESTDIR=/out scripts/install /usr/local",
    "COPY --from=build /out/usr/local /usr/local",
];
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What there is beside the program.
const PLACES: [&str; 9] = [
    "bin/afar",
    "share/man/man1/afar.1.gz",
    "share/man/man1/afar-run.1.gz",
    "share/bash-completion/completions/afar",
    "share/zsh/site-functions/_afar",
    "share/fish/vendor_completions.d/afar.fish",
    "share/doc/afar/examples/redis.toml",
    "share/doc/afar/guide/run.md",
    "lib/systemd/system/afar.service",
];

fn empty(name: &str) -> PathBuf {
    let path = open_scratch(&format!("install-{name}-{}", std::process::id()));
    let _old = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the scratch directory can be written to");
    path
}

/// What a script prints, and its status.
fn run(script: &str, words: &[&str]) -> (String, Option<i32>) {
    let path = format!("{ROOT}/scripts/{script}");
    let output = Command::new(path).args(words).env_remove("DESTDIR").output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

fn prints(program: &Path, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().expect("it starts");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn files(root: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

#[test]
fn everything_is_installed_and_removed() {
    let prefix = empty("prefix");
    let root = prefix.to_str().expect("a plain name");
    // Somebody else's.
    let other = prefix.join("share/man/man1/other.1");
    fs::create_dir_all(other.parent().expect("it has one")).expect("there is room");
    fs::write(&other, "").expect("there is room");
    for _again in 0..2 {
        let (text, status) = run("install", &["--binary", AFAR, root]);
        assert_eq!(status, Some(0), "{text}");
    }
    for place in PLACES {
        assert!(prefix.join(place).metadata().is_ok_and(|file| file.len() > 0), "no {place}");
    }
    let version = prints(&prefix.join("bin/afar"), &["--version"]);
    assert_eq!(version, prints(Path::new(AFAR), &["--version"]));
    let completion = prefix.join("share/bash-completion/completions/afar");
    let asked = format!("source {}; complete -p afar", completion.display());
    assert!(prints(Path::new("bash"), &["-c", &asked]).contains("afar"));
    let unit = fs::read_to_string(prefix.join("lib/systemd/system/afar.service"));
    assert!(unit.expect("it is there").contains(&format!("ExecStart={root}/bin/afar serve")));
    let (text, status) = run("install", &["--remove", root]);
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(files(&prefix), [other], "nothing but what was there before");
    let (text, status) = run("install", &["--remove", root]);
    assert!(status == Some(1) && text.contains("nothing is installed"), "{text}");
    fs::remove_dir_all(&prefix).expect("it is ours");
}

#[test]
fn mistakes_change_nothing() {
    let prefix = empty("mistakes");
    let root = prefix.to_str().expect("a plain name");
    for words in
        [&["--binary", "/nowhere", root][..], &["--binary"], &["--all", root], &[root, "b"]]
    {
        let (text, status) = run("install", words);
        assert!(status == Some(2) && text.contains("usage: scripts/install"), "{words:?}: {text}");
    }
    assert_eq!(files(&prefix), Vec::<PathBuf>::new());
    fs::remove_dir_all(&prefix).expect("it is ours");
}

#[test]
fn packages_have_the_same_and_the_debug_information() {
    if !installed(&["dpkg-deb", "objcopy"], "install::packages") {
        return;
    }
    let directory = empty("package");
    let root = directory.to_str().expect("a plain name");
    let (text, status) = run("package", &["--binary", AFAR, root]);
    assert_eq!(status, Some(0), "{text}");
    let made: Vec<&str> = text.lines().collect();
    let [package, symbols] = made[..] else { panic!("two packages: {text}") };
    for (package, name) in [(package, "afar"), (symbols, "afar-dbgsym")] {
        assert_eq!(prints(Path::new("dpkg-deb"), &["-f", package, "Package"]).trim(), name);
        let into = directory.join(name);
        let into = into.to_str().expect("a plain name");
        prints(Path::new("dpkg-deb"), &["-x", package, into]);
    }
    let depends = prints(Path::new("dpkg-deb"), &["-f", package, "Depends"]);
    assert!(depends.starts_with("libc6 (>= 2."), "{depends}");
    let usr = directory.join("afar/usr");
    for place in PLACES {
        assert!(usr.join(place).metadata().is_ok_and(|file| file.len() > 0), "no {place}");
    }
    let unit = fs::read_to_string(usr.join("lib/systemd/system/afar.service"));
    assert!(unit.expect("it is there").contains("ExecStart=/usr/bin/afar serve"));
    let program = usr.join("bin/afar");
    assert_eq!(prints(&program, &["--version"]), prints(Path::new(AFAR), &["--version"]));
    assert!(directory.join("afar-dbgsym/usr/lib/debug/usr/bin/afar.debug").exists());
    fs::remove_dir_all(&directory).expect("it is ours");
}

/// What can be said of an image without building one: its steps are those that are tried above,
/// with a Rust that is new enough, and without what was built outside.
#[test]
fn an_image_is_made_of_the_same_steps() {
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).expect(name);
    let recipe = read("Containerfile");
    for step in IMAGE {
        assert_eq!(recipe.lines().filter(|line| *line == step).count(), 1, "{step}");
    }
    let base = recipe.lines().find_map(|line| line.split_once("/rust:")).expect("a base").1;
    let rust = base.split('-').next().expect("a version");
    let deps = read("scripts/install-deps");
    let needed = deps.lines().find_map(|line| line.strip_prefix("RUST_MINIMUM="));
    assert_eq!(Some(rust), needed, "the Rust of the image, and that of scripts/install-deps");
    // A program of a later Debian does not start on an earlier one.
    let debian = base.split(['-', ' ']).nth(1).expect("a Debian");
    assert!(recipe.contains(&format!("/debian:{debian}-slim")), "{recipe}");
    for list in [".containerignore", ".dockerignore"] {
        assert!(read(list).lines().any(|line| line == "target"), "{list}");
    }
}
