//! Files with lists of values.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::{answer, file, json, read, refused, scratch, sim};

const EXPERIMENT: &str = "transport = [\"pfabric\", \"dctcp\", \"tcp\"]\nload = [\"30%\", 0.6]\n\
                          flows = 300\ntopology = \"single-switch\"\nhosts = 6\n";

/// Everything a sweep leaves that does not depend on time.
fn results(directory: &Path) -> [String; 2] {
    ["table.csv", "slowdown.svg"].map(|name| read(&directory.join(name)))
}

/// Every run that a sweep has kept, by its ID.
pub(crate) fn runs(directory: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(directory.join("runs")).expect("it is there").flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let id = name.strip_suffix(".json").filter(|id| !id.starts_with('.'))?;
        Some((id.to_owned(), read(&entry.path())))
    });
    named.collect()
}

/// The ID of each run that has begun, once for each time.
pub(crate) fn began(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory.join("log")).expect("it is there").flatten();
    let logs = entries.map(|entry| entry.path());
    let texts = logs.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let lines: String = texts.map(|path| read(&path)).collect();
    let entries = lines.lines().map(|line| -> Value {
        serde_json::from_str(line).expect("whoever ends writes whole lines")
    });
    let began = entries.filter(|entry| entry["event"] == "began");
    began.filter_map(|entry| Some(entry["id"].as_str()?.to_owned())).collect()
}

#[test]
fn a_sweep_gives_the_same_bytes_on_one_thread_and_two_and_after_an_interruption() {
    let path = file("experiment.toml", EXPERIMENT);
    let run = |name: &str, jobs: &str| {
        let directory = scratch(name);
        let output = directory.display().to_string();
        let said = answer(&[&path, "-o", &output, "--threads", jobs]);
        (directory, said.lines().filter(|line| !line.contains(&output)).collect::<String>())
    };
    for name in ["one-thread", "two-threads"] {
        let _none = std::fs::remove_dir_all(scratch(name));
    }
    let (directory, said) = run("one-thread", "1");
    let (other, same) = run("two-threads", "2");
    assert_eq!(said, same);
    assert_eq!(results(&directory), results(&other));
    assert!(said.contains("transport") && said.contains("p99.9"), "{said}");
    // Killed while it wrote the fourth run: that one and those after it are done, and no other.
    let whole = runs(&directory);
    assert_eq!(whole, runs(&other), "the same bytes of every run");
    assert_eq!(whole.len(), 6);
    let began = began(&directory);
    let wanted = results(&directory);
    for (number, (id, text)) in whole.iter().skip(3).enumerate() {
        let path = directory.join("runs").join(format!("{id}.json"));
        std::fs::remove_file(&path).expect("it is there");
        if number == 0 {
            let half = path.with_file_name(format!(".new-1-1-{id}.json"));
            std::fs::write(half, &text[..40]).expect("a file under target");
        }
    }
    let (_, again) = run("one-thread", "2");
    assert_eq!(again, said);
    assert_eq!(results(&directory), wanted);
    assert_eq!(runs(&directory), whole);
    let more = |id: &String| {
        let count = |of: &[String]| of.iter().filter(|other| *other == id).count();
        count(&crate::sweeps::began(&directory)) - count(&began)
    };
    let again: Vec<usize> = whole.keys().map(more).collect();
    assert_eq!(again, [0, 0, 0, 1, 1, 1], "what was there is not run again");
    // Another experiment does not go on from there.
    let other = file("other.toml", &EXPERIMENT.replace("300", "301"));
    refused(&[&other, "-o", &directory.display().to_string()], "another experiment");
}

#[test]
fn a_sweep_is_a_table_for_people_and_for_programs() {
    let path = file("formats.toml", EXPERIMENT);
    let output = scratch("formats").display().to_string();
    let csv = answer(&[&path, "-o", &output, "--csv", "-"]);
    let mut lines = csv.lines();
    let columns = lines.next().expect("a header").split(',').count();
    assert!(csv.starts_with("transport,load,over_bytes,to_bytes,count,mean"), "{csv}");
    assert!(lines.all(|line| line.split(',').count() == columns), "{csv}");
    // Of 300 flows a tenth at each end is not measured.
    let all = |line: &&str| line.contains(",,,240,");
    assert_eq!(csv.lines().filter(all).count(), 6, "{csv}");
    let record = json(&[&path, "-o", &output]);
    assert_eq!(record["runs"].as_array().map(Vec::len), Some(6));
    assert_eq!(record["runs"][1]["settings"]["load"], "0.6");
    let picture = read(&scratch("formats").join("slowdown.svg"));
    assert!(picture.contains("load 30%") && !picture.contains("NaN"), "{picture}");
    // Two groups of three bars, and three lines of means in each of two panels.
    assert_eq!(picture.matches("<polyline").count(), 2 * 2 * 3);
    refused(&[&path, "-o", &output, "--parquet", "x"], "--parquet: it is for one run");
    let wrong = file("wrong.toml", &EXPERIMENT.replace("0.6", "1.6"));
    refused(&[&wrong], "wrong.toml:2:16: load: \"1.6\": links carry 1 to 99 %");
}

#[test]
fn a_run_of_a_sweep_without_a_result_is_told_and_stops_no_other() {
    let mut rows = "start_ps,src,dst,bytes\n".to_owned();
    for flow in 0..2860 {
        rows += &format!("0,{},0,1460\n", flow % 143 + 1);
    }
    let list = file("storms.csv", &rows);
    let text = format!(
        "transport = [\"tcp\", \"pfabric\"]\nvariant = \"as-published-2016\"\n\
         traffic = \"{list}\"\n"
    );
    let path = file("storms.toml", &text);
    let _none = std::fs::remove_dir_all(scratch("storms"));
    let output = sim(&[&path, "-o", &scratch("storms").display().to_string()]);
    let said = crate::text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("transport=tcp: ") && said.contains("never finished"), "{said}");
    let pfabric = said.lines().find(|line| line.starts_with("pfabric")).expect("it has a line");
    assert!(!pfabric.contains('–'), "{said}");
}
