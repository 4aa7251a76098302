//! `afar point`: what engines run, one point or several at a time.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::sweeps::{began, runs};
use crate::{answer, file, read, refused, scratch, text};

const EXPERIMENT: &str = "transport = [\"dctcp\", \"ndp\"]\nload = [\"30%\", \"60%\"]\n\
                          flows = 100\ntopology = \"single-switch\"\nhosts = 6\n";

fn point(directory: &Path, ids: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
    command.arg("point").arg(directory).args(ids).current_dir(scratch(""));
    command.output().expect("the afar binary was built with this test")
}

#[test]
fn points_have_the_bytes_of_their_sweep_and_run_once() {
    let path = file("points.toml", EXPERIMENT);
    let directory = scratch("points");
    let _none = std::fs::remove_dir_all(&directory);
    answer(&[&path, "-o", &directory.display().to_string()]);
    let whole = runs(&directory);
    let planned: Vec<Value> = read(&directory.join("points.jsonl"))
        .lines()
        .map(|line| serde_json::from_str(line).expect("a point"))
        .collect();
    let ids: Vec<&str> = planned.iter().filter_map(|point| point["id"].as_str()).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| whole.contains_key(*id)), "{ids:?}");
    for name in ["runs", "log"] {
        std::fs::remove_dir_all(directory.join(name)).expect("it is there");
    }
    std::fs::create_dir(directory.join("runs")).expect("there is room");
    let done = |ids: &[&str]| {
        let output = point(&directory, ids);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    };
    done(&ids[..1]);
    assert_eq!(runs(&directory).len(), 1);
    // Two that do the same at once, as an engine may have them.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| done(&ids));
        }
    });
    assert_eq!(runs(&directory), whole);
    let count = |id: &&str| began(&directory).iter().filter(|other| other == id).count();
    assert_eq!(count(&ids[0]), 1, "it was there");
    let before = began(&directory).len();
    done(&ids);
    assert_eq!(began(&directory).len(), before, "nothing is left to be run");
}

#[test]
fn points_and_engines_that_are_not_there_are_refused() {
    let directory = scratch("no-points");
    let _none = std::fs::remove_dir_all(&directory);
    let output = point(&directory, &["0"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).starts_with("afar point: "), "{}", text(&output.stderr));
    let path = file("one-point.toml", EXPERIMENT);
    answer(&[&path, "-o", &directory.display().to_string()]);
    let output = point(&directory, &["0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("has no point 0"), "{}", text(&output.stderr));
    refused(&["--on", "dask", "--flows", "10"], "--on: engines share out the runs of a sweep");
    let output = crate::sim(&[&path, "--on", "k8s"]);
    assert!(text(&output.stderr).contains("give local, dask"), "{}", text(&output.stderr));
}
