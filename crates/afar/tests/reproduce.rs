//! `afar reproduce`: a figure from end to end, in moments, and an end by Ctrl-C.

mod support;

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use support::{Launch, open_scratch};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");

/// A directory of its own, gone when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = open_scratch(&format!("reproduce-{name}"));
        let _old = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("it was written")
    }

    fn launch(&self, figure: &str, flags: &[&str]) -> Launch {
        let words = [AFAR, "reproduce", figure, "--quick", "--scale", "0.016666", "--output"];
        let directory = self.0.to_str().expect("it is text");
        Launch::new(words.iter().copied().chain([directory]).chain(flags.iter().copied()))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _absent = std::fs::remove_dir_all(&self.0);
    }
}

fn record(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn a_figure_is_a_table_a_record_and_a_picture() {
    let directory = Directory::new("whole");
    let launch = directory.launch("guz-fig7", &["--runtime", "60ms"]);
    let ended = launch.run().expect(0, "afar reproduce");
    ended.leaves_nothing("afar reproduce");
    let shown = ended.text();
    for wanted in ["Guz et al., SYSTOR 2017", "83.5 / 95.2 / 145.8", "iSCSI is not served yet"] {
        assert!(shown.contains(wanted), "{wanted} is missing in {shown}");
    }
    assert_eq!(ended.stderr, "", "no line is drawn where there is no terminal");
    let record = record(&directory.read("guz-fig7.json"));
    assert_eq!(record["schema"], "afar.reproduce/1");
    assert_eq!(record["interrupted"], false);
    assert_eq!(record["bed"]["channels"], 1);
    let points = &record["points"];
    let number = |value: &Value| value.as_f64().expect("a number");
    for curve in points["curves"].as_array().expect("three of them") {
        for way in ["local", "remote"] {
            assert!(number(&curve[way]["mean_us"]) >= 83.4, "no read is faster: {curve}");
        }
    }
    let stages = &points["stages"];
    for way in ["local", "remote"] {
        // 80 µs of a channel, 1.28 of the interface, 2.22 of the command.
        let device = number(&stages[way]["device_us"]);
        assert!((83.4..84.0).contains(&device), "{way}: {stages}");
    }
    let parts = ["host_us", "device_us", "late_us", "answer_us"];
    let sum: f64 = parts.iter().map(|part| number(&stages["remote"][part])).sum();
    assert!(sum < number(&stages["remote"]["mean_us"]), "stages are parts of it: {stages}");
    let picture = directory.read("guz-fig7.svg");
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<polyline").count(), 6);
}

#[test]
fn the_other_figures_are_measured_too() {
    let directory = Directory::new("others");
    for (figure, points) in [("guz-fig2", 6), ("guz-fig6", 9)] {
        let launch = directory.launch(figure, &["--runtime", "60ms", "--json", "-"]);
        let ended = launch.run().expect(0, figure);
        ended.leaves_nothing(figure);
        let record = record(&ended.text());
        assert_eq!(record["points"].as_array().map(Vec::len), Some(points), "{record}");
        assert!(!record["verdicts"].as_array().expect("a list").is_empty(), "{record}");
    }
    let launch = directory.launch("guz-fig5", &["--runtime", "60ms", "--quiet"]);
    let ended = launch.run().expect(0, "guz-fig5");
    assert_eq!((ended.text().as_str(), ended.stderr.as_str()), ("", ""));
    let record = record(&directory.read("guz-fig5.json"));
    let last = record["points"].as_array().and_then(|points| points.last());
    assert_eq!(last.expect("some")["processors"], 1, "{record}");
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_leaves_no_target() {
    let directory = Directory::new("interrupted");
    let launch = directory.launch("guz-fig2", &["--runtime", "1s"]).start();
    // The first mix has been measured, local and remote, and the second has begun.
    sleep(Duration::from_millis(4_000));
    launch.signal_group("INT");
    let ended = launch.wait().expect(130, "afar reproduce");
    ended.leaves_nothing("afar reproduce");
    assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
    let record = record(&directory.read("guz-fig2.json"));
    assert_eq!(record["interrupted"], true);
    let count = record["points"].as_array().map_or(0, Vec::len);
    assert!((1..6).contains(&count), "{record}");
}

#[test]
fn what_is_no_figure_is_bad_usage() {
    let directory = Directory::new("usage");
    for flags in [["--scale", "2"], ["--scale", "0"], ["--busy-poll", "2ms"]] {
        let words = [AFAR, "reproduce", "guz-fig2"].into_iter().chain(flags);
        Launch::new(words).run().expect(2, "afar reproduce");
    }
    directory.launch("guz-fig99", &[]).run().expect(2, "afar reproduce");
    let words = [AFAR, "reproduce", "guz-fig2", "--output", "/dev/null/x"];
    let ended = Launch::new(words).run().expect(2, "afar reproduce");
    assert!(ended.stderr.contains("check the path"), "{}", ended.stderr);
}
