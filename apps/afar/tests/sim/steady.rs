//! Independent runs, and what is told of how sure they are.

use crate::{answer, file, json, read, refused, scratch, sim, text};

const QUICK: [&str; 8] =
    ["--topology", "single-switch", "--hosts", "16", "--sizes", "14600B", "--flows", "200"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&QUICK[..], more].concat()
}

#[test]
fn every_figure_of_several_runs_has_its_interval() {
    let said = answer(&with(&["--repetitions", "6", "--threads", "2"]));
    let all = said.lines().find(|line| line.starts_with("all")).expect("a line for all flows");
    assert!(all.contains("1200") && all.matches('[').count() == 4, "{all}");
    // Of 200 flows the last of a thousand is only the slowest.
    assert!(all.ends_with("[n too small: 6]"), "{all}");
    assert!(said.contains("the middle of 6 independent runs"), "{said}");
    let one = answer(&QUICK);
    assert!(one.contains("n too small: 1 of at least 6 runs; add --repetitions 6"), "{one}");
    let record = json(&with(&["--repetitions", "6", "--threads", "1"]));
    let mean = &record["figures"]["steady"]["slowdown"]["mean"];
    let [low, high] = ["low", "high"].map(|end| mean["interval"][end].as_f64().expect("an end"));
    let middle = record["figures"]["slowdown"]["mean"].as_f64().expect("a mean");
    assert!(1.0 < low && low < middle && middle < high, "{mean}");
    assert!(all.contains(&format!("{middle:.3} [{low:.3}, {high:.3}]")), "{all}: {mean}");
    // The record alone gives the same runs.
    let kept = file("steady.json", &record.to_string());
    assert_eq!(json(&[&kept])["figures"], record["figures"]);
}

#[test]
fn runs_of_a_sweep_are_told_together() {
    let text_of = "transport = [\"pfabric\", \"ndp\"]\ntopology = \"single-switch\"\nhosts = 16\n\
                   sizes = \"14600B\"\nflows = 200\nrepetitions = 6\n";
    let path = file("steady.toml", text_of);
    let directory = scratch("steady");
    let _none = std::fs::remove_dir_all(&directory);
    let output = directory.display().to_string();
    let csv = answer(&[&path, "-o", &output, "--csv", "-"]);
    let header: Vec<&str> = csv.lines().next().expect("a header").split(',').collect();
    let place = |name: &str| header.iter().position(|one| *one == name).expect("a column");
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == header.len() && row[place("runs")] == "6"));
    for row in rows.iter().filter(|row| row[place("over_bytes")].is_empty()) {
        let number = |name: &str| row[place(name)].parse::<f64>().expect("a number");
        assert!(number("mean_low") < number("mean") && number("mean") < number("mean_high"));
    }
    assert_eq!(crate::sweeps::runs(&directory).len(), 12);
    assert!(read(&directory.join("slowdown.svg")).contains("mean, with its interval"));
}

/// At 80 % 200 bytes and their headers take 93 % of a link, and with acknowledgements 109 %.
#[test]
fn a_load_that_is_not_carried_has_no_result() {
    let small = ["--sizes", "200B", "--load", "80%", "--flows", "4000", "--repetitions", "6"];
    let path = scratch("unsteady.json").display().to_string();
    let more = ["--topology", "single-switch", "--hosts", "8", "--json", &path];
    let output = sim(&[&small[..], &more].concat());
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(4), String::new()), "{said}");
    assert!(said.contains("the load is not carried: ") && said.contains("no result"), "{said}");
    refused(&with(&["--repetitions", "6", "--pcap", "x"]), "--pcap: it is for one run");
}
