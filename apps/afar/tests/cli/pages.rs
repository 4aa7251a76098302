//! Help, man pages and completions.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{Scratch, afar, stderr, stdout, text};

#[test]
fn help_of_every_command() {
    let commands: [&[&str]; 35] = [
        &[],
        &["run"],
        &["serve"],
        &["attach"],
        &["bench"],
        &["torture"],
        &["top"],
        &["discover"],
        &["ctl"],
        &["doctor"],
        &["version"],
        &["man"],
        &["completions"],
        &["plan"],
        &["plan", "admit"],
        &["plan", "cost"],
        &["plan", "latency"],
        &["plan", "place"],
        &["sim"],
        &["loop"],
        &["predict"],
        &["kv"],
        &["kv", "serve"],
        &["report"],
        &["probe"],
        &["man"],
        &["completions"],
        &["workload"],
        &["workload", "wordcount"],
        &["workload", "sort"],
        &["workload", "als"],
        &["workload", "pagerank"],
        &["workload", "sql"],
        &["workload", "kv"],
        &["workload", "list"],
    ];
    for command in commands {
        for flag in ["--help", "-h"] {
            let output = afar(command.iter().chain(&[flag]));
            assert_eq!(output.status.code(), Some(0), "{command:?}");
            assert!(stdout(&output).contains("Usage: afar"), "{command:?}");
            assert_eq!(stderr(&output), "", "{command:?}");
            let wide = |line: &&str| line.chars().count() > 100;
            assert_eq!(stdout(&output).lines().find(wide), None, "{command:?}");
        }
    }
}

#[test]
fn help_shows_what_users_need_and_hides_the_rest() {
    let help = stdout(&afar(["--help"]));
    for shown in [
        "run",
        "serve",
        "attach",
        "bench",
        "top",
        "discover",
        "workload",
        "ctl",
        "doctor",
        "version",
        "man",
        "completions",
    ] {
        assert!(help.contains(&format!("\n  {shown} ")), "{help}");
    }
    for hidden in ["probe", "keep"] {
        assert!(!help.contains(hidden), "{help}");
    }
    let help = stdout(&afar(["run", "--help"]));
    for wanted in ["4096 bytes, 4kB = 4000", "127 not found", "Example: afar run"] {
        assert!(help.contains(wanted), "{wanted} is missing in {help}");
    }
}

#[test]
fn version() {
    let expected = format!("afar {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&afar(["--version"])), expected);
    assert!(stdout(&afar(["version"])).starts_with(&expected));
    let about: results::about::About =
        results::read(&stdout(&afar(["version", "--json", "-"]))).expect("a record");
    assert!(about.is_optimized && about.compiler.starts_with("rustc 1."), "{about:?}");
    assert_eq!(about.target.split('-').next(), Some(std::env::consts::ARCH), "{about:?}");
}

// Of every golden of a record: a kind that is new is in the list, too.
#[test]
fn version_lists_every_record_that_is_written() {
    let about: results::about::About =
        results::read(&stdout(&afar(["version", "--json", "-"]))).expect("a record");
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut goldens = BTreeSet::new();
    for place in ["results/tests/golden", "measure/tests/golden"] {
        for entry in std::fs::read_dir(home.join(place)).expect("goldens") {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let record: serde_json::Value = serde_json::from_str(&text).unwrap();
            goldens.insert(record["schema"].as_str().expect("a schema").to_owned());
        }
    }
    let listed: BTreeSet<String> = about.records.iter().cloned().collect();
    assert_eq!(listed.len(), about.records.len(), "none is there twice: {about:?}");
    assert_eq!(goldens.difference(&listed).count(), 0, "{goldens:?} {listed:?}");
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = afar(["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = stdout(&output);
        for flag in ["one-way", "bandwidth", "userfaultfd", "s3fifo"] {
            assert!(script.contains(flag), "{flag} is missing for {shell}");
        }
    }
    assert_eq!(afar(["completions", "cmd.exe"]).status.code(), Some(2));
}

#[test]
fn man_pages_for_every_command() {
    let scratch = Scratch::new("cli");
    let directory = scratch.join("man");
    let output = afar(["man", text(&directory)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "afar-attach.1",
            "afar-bench.1",
            "afar-completions.1",
            "afar-ctl.1",
            "afar-discover.1",
            "afar-doctor.1",
            "afar-identify.1",
            "afar-kv-serve.1",
            "afar-kv.1",
            "afar-load-kv.1",
            "afar-load.1",
            "afar-loop.1",
            "afar-man.1",
            "afar-plan-admit.1",
            "afar-plan-cost.1",
            "afar-plan-fleet.1",
            "afar-plan-latency.1",
            "afar-plan-place.1",
            "afar-plan-pool.1",
            "afar-plan.1",
            "afar-predict.1",
            "afar-report.1",
            "afar-reproduce.1",
            "afar-run.1",
            "afar-serve.1",
            "afar-sim.1",
            "afar-sweep.1",
            "afar-top.1",
            "afar-torture.1",
            "afar-version.1",
            "afar-watch.1",
            "afar-workload-als.1",
            "afar-workload-kv.1",
            "afar-workload-list.1",
            "afar-workload-pagerank.1",
            "afar-workload-sort.1",
            "afar-workload-sql.1",
            "afar-workload-wordcount.1",
            "afar-workload.1",
            "afar.1"
        ]
    );
    let page = std::fs::read_to_string(directory.join("afar-run.1")).unwrap();
    assert!(page.contains(".TH afar-run 1") && page.contains("bandwidth"), "{page}");
    let nowhere = afar(["man", "/dev/null/man"]);
    assert_eq!(nowhere.status.code(), Some(2));
}
