//! A sweep in a browser, from its first run to its last.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::Scratch;

use crate::browser::{Browser, find};
use crate::live::Watch;
use crate::support::{Launch, Running, skip, usable};

/// So many runs end, however often one was disturbed; the others wait for a file.
const HELD: usize = 3;

struct Sweep {
    directory: Scratch,
}

impl Sweep {
    fn new() -> Self {
        let directory = Scratch::new("watch-sweep");
        let (runs, go) = (directory.join("experiment.sweep/runs"), directory.join("go"));
        // Has 12 MB of memory for a moment: with less nothing is told of a run.
        let script = format!(
            "n=$(ls {runs} | wc -l); if [ $n -ge {HELD} ]; then while [ ! -e {go} ]; do sleep \
             0.05; done; fi; head -c 12000000 /dev/zero | tail -c 12000000 >/dev/null",
            runs = runs.display(),
            go = go.display()
        );
        let text = format!(
            "repetitions = 2\nattempts = 1\nstolen_max = \"100%\"\nothers_max = \"100%\"\n\
             [workload]\ncommand = [\"sh\", \"-c\", \"{script}\"]\n\
             [matrix]\nlocal = [\"50%\", \"100%\"]\nrtt = [\"5us\"]\n"
        );
        directory.file("experiment.toml", text);
        Self { directory }
    }

    fn start(&self) -> Running {
        let file = self.directory.join("experiment.toml");
        let words = [env!("CARGO_BIN_EXE_afar"), "sweep", "--quiet"];
        let file = file.to_str().expect("paths here are text");
        Launch::new(words.iter().chain(&[file])).env("TMPDIR", self.directory.path()).start()
    }

    fn output(&self) -> PathBuf {
        self.directory.join("experiment.sweep")
    }

    /// Runs of the whole sweep, once it has begun.
    fn run_count(&self) -> usize {
        let start = Instant::now();
        let runs = self.output().join("runs");
        while fs::read_dir(&runs).map_or(0, Iterator::count) == 0 {
            assert!(start.elapsed() < Duration::from_secs(180), "the sweep does not begin");
            sleep(Duration::from_millis(20));
        }
        let head = fs::read_to_string(self.output().join("sweep.json")).expect("it has begun");
        let head: Value = serde_json::from_str(&head).expect("it is JSON");
        2 * head["cells"].as_array().expect("cells").len()
    }
}

#[test]
fn cells_are_shown_as_they_finish_whatever_happens() {
    let name = "watch::cells";
    let Some(program) = find() else {
        skip(name, "not installed: chromium");
        return;
    };
    if !usable("bpf", name) {
        return;
    }
    let sweep = Sweep::new();
    let running = sweep.start();
    let count = sweep.run_count();
    let all = format!("All {count} runs are done.");
    let output = sweep.output();
    let watch = Watch::start(&[output.to_str().expect("paths here are text")]);
    let mut browser = Browser::open(&program, &watch.url);
    let text = browser.wait_for(&format!("{HELD} of {count} runs are done."));
    assert!(text.contains("waits") && text.contains("local=50% of=peak rtt=5us"), "{text}");
    // The sweep is interrupted and goes on.
    running.signal("INT");
    running.wait().expect(130, "an interrupted sweep");
    let running = sweep.start();
    fs::write(sweep.directory.join("go"), "").expect("it is ours");
    let text = browser.wait_for(&all);
    assert!(!text.contains("waits") && text.contains("2\u{a0}of 2"), "{text}");
    running.wait().expect(0, "the same sweep");
    // The pictures of the report, drawn by the browser.
    browser.wait_for("slowdown with far memory");
    let drawn = browser.run("document.querySelectorAll('figure svg path, figure svg line').length");
    assert!(drawn.as_u64() > Some(10), "{drawn}");
    // What is watched goes away and comes back, too.
    let aside = sweep.directory.join("aside");
    fs::rename(&output, &aside).expect("it is ours");
    let text = browser.wait_for("there is no such directory");
    assert!(text.contains("slowdown with far memory"), "the last stays: {text}");
    fs::rename(&aside, &output).expect("it is ours");
    browser.wait_for(&all);
    alone(&watch, &mut browser);
    again(watch, &mut browser);
}

// Nothing was asked of anybody else, nothing was forbidden to the page, and something could be.
fn alone(watch: &Watch, browser: &mut Browser) {
    let (port, _) = watch.parts();
    let own = format!("http://127.0.0.1:{port}/");
    let outside: Vec<_> = browser.requests.iter().filter(|url| !is_inside(url, &own)).collect();
    assert!(outside.is_empty(), "{outside:?}");
    assert!(browser.requests.iter().any(|url| url.contains("/events?")), "it did ask");
    assert_eq!(browser.complaints, Vec::<String>::new());
    browser.run("new Image().src = 'http://127.0.0.1:1/'");
    let forbidden = |text: &String| text.contains("Content Security Policy");
    let start = Instant::now();
    while !browser.complaints.iter().any(forbidden) {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", browser.complaints);
        let _text = browser.text();
    }
}

// The watch itself ends, and another begins at the same port: this page is none of its.
fn again(watch: Watch, browser: &mut Browser) {
    let (port, _) = watch.parts();
    watch.running.signal("INT");
    watch.running.wait().expect(0, "watch");
    browser.wait_for("afar watch does not answer");
    let next = Watch::start(&["--port", &port.to_string()]);
    browser.wait_for("afar watch refuses this page");
    let text = browser.text();
    assert!(text.contains("slowdown with far memory"), "what was shown stays: {text}");
    browser.run(&format!("location.href = {:?}", next.url));
    browser.wait_for("runs on this machine");
}

fn is_inside(url: &str, own: &str) -> bool {
    url.starts_with(own) || url.starts_with("data:") || url == "about:blank"
}
