//! Files with lists of values.

use std::path::Path;

use crate::{answer, file, json, read, refused, scratch, sim};

const EXPERIMENT: &str = "transport = [\"pfabric\", \"dctcp\", \"tcp\"]\nload = [\"30%\", 0.6]\n\
                          flows = 300\ntopology = \"single-switch\"\nhosts = 6\n";

/// Everything a sweep leaves that does not depend on time.
fn results(directory: &Path) -> [String; 2] {
    ["table.csv", "slowdown.svg"].map(|name| read(&directory.join(name)))
}

#[test]
fn a_sweep_gives_the_same_bytes_on_one_thread_and_two_and_after_an_interruption() {
    let path = file("experiment.toml", EXPERIMENT);
    let run = |name: &str, jobs: &str| {
        let directory = scratch(name);
        let output = directory.display().to_string();
        let said = answer(&[&path, "-o", &output, "--jobs", jobs]);
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
    // Killed in the middle of the fourth line: that run is done again, and no other.
    let journal = directory.join("runs.jsonl");
    let whole = read(&journal);
    assert_eq!(whole.lines().count(), 6);
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    std::fs::write(&journal, &whole[..ends[2] + 40]).expect("a file under target");
    let wanted = results(&directory);
    let (_, again) = run("one-thread", "2");
    assert_eq!(again, said);
    assert_eq!(results(&directory), wanted);
    assert_eq!(read(&journal)[..ends[2]], whole[..ends[2]]);
    assert_eq!(read(&journal).lines().count(), 6);
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
