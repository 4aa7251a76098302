//! `afar report`: every kind of record that afar writes becomes a page that asks nothing of any
//! host, and what is no record is refused in one sentence.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod browser;
mod made;
mod markup;

use test_support::{Scratch, skip};

use made::{FAULTS, hostile, records};

fn afar(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
    // Nothing here is measured, and hinders none of those beside it.
    let locks = Scratch::new("report-locks");
    command.env("AFAR_LOCK_DIR", locks.path());
    command.args(words).output().expect("afar is built")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn page(words: &[&str], path: &Path) -> String {
    let mut all = vec!["report"];
    all.extend(words);
    all.extend(["-o", text(path)]);
    let output = afar(&all);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    fs::read_to_string(path).expect("it was written")
}

#[test]
fn every_kind_of_record_becomes_a_page() {
    let directory = Scratch::new("report-every");
    let made = records(&directory);
    let mut kinds = BTreeSet::new();
    for record in &made {
        let html = page(&[text(record)], &directory.join("page.html"));
        markup::check(&html).unwrap_or_else(|why| panic!("{}: {why}", record.display()));
        let kind = html.split("<p class=\"source\">").nth(1).expect("it has a section");
        kinds.insert(kind.split(" record").next().unwrap_or_default().to_owned());
        assert!(html.contains("class=\"lead\""), "{}: no answer", record.display());
    }
    // And all of them in one.
    let paths: Vec<&str> = made.iter().map(|path| text(path)).collect();
    let html = page(&paths, &directory.join("all.html"));
    markup::check(&html).expect("a page of many");
    assert!(kinds.len() >= 18, "{kinds:?}");
    for wanted in ["NaN", "inf,", "undefined"] {
        let drawings: String =
            html.split("<svg").skip(1).map(|one| &one[..one.find("</svg").unwrap_or(0)]).collect();
        assert!(!drawings.contains(wanted), "{wanted}");
    }
}

#[test]
fn pictures_and_json_have_the_same_content() {
    let directory = Scratch::new("report-outputs");
    let sweep = made::findings(&directory);
    let (svg, png, json) = (directory.join("svg"), directory.join("png"), directory.join("r.json"));
    let words = ["report", text(&sweep), "--svg", text(&svg), "--json", text(&json)];
    let output = afar(&words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    let names = |directory: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(directory).expect("it was made").filter_map(Result::ok);
        let stem = |path: PathBuf| path.file_stem().expect("a file").to_string_lossy().into_owned();
        entries.map(|entry| stem(entry.path())).collect()
    };
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&json).expect("it was written")).expect("JSON");
    assert_eq!(record["schema"], "afar.report/1");
    let pictures = record["sections"][0]["pictures"].as_array().expect("pictures");
    let told: BTreeSet<String> =
        pictures.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect();
    assert_eq!(names(&svg), told);
    assert!(told.contains("slowdown-local"), "{told:?}");
    let output = afar(&["report", text(&sweep), "--png", text(&png)]);
    if stderr(&output).contains("no font") {
        skip("pictures_and_json_have_the_same_content", &stderr(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(names(&png), told);
    for entry in fs::read_dir(&png).expect("it was made").filter_map(Result::ok) {
        let bytes = fs::read(entry.path()).expect("it was written");
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.len() > 5_000);
    }
}

#[test]
fn without_a_file_the_answer_is_printed() {
    let directory = Scratch::new("report-answer");
    let output = afar(&["report", text(&made::findings(&directory))]);
    let said = String::from_utf8(output.stdout).expect("text");
    for wanted in [
        "redis-server stays within 5 % of its speed with 25 % of its memory local, on a network \
         with a round trip of at most 2 µs and at least 40 Gb/s; less local memory was not tried.",
        "A share of local memory is a share of 512.0 MiB (the most it used).",
        "one rack, RDMA, network interface beside the processor",
        "fast enough",
        "too slow",
    ] {
        assert!(said.contains(wanted), "{wanted} is missing in {said}");
    }
    let output = afar(&["report", "--format", "md", text(&made::findings(&directory))]);
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.starts_with("### ") && said.contains("\n**redis-server stays within"), "{said}");
    assert!(said.contains("\n|---|---:|") && said.contains("fast enough"), "{said}");
    let strict = afar(&["report", text(&made::findings(&directory)), "--bound", "0.5%"]);
    let said = String::from_utf8(strict.stdout).expect("text");
    assert!(said.contains("within 0.5 % of its speed with 75 % of its memory local"), "{said}");
}

/// Each page has the numbers that the plan of the example has computed.
#[test]
fn plans_say_what_they_have_found() {
    let directory = Scratch::new("report-plans");
    let wanted = [
        ("cost", "they cost 812500 $ where servers with flash of their own cost 960000 $, 15.4 %"),
        ("tenants", "The verdict turns if price.tax is above 3510.539 (it is 300)."),
        ("map", "In 69 of 100 combinations of growth pools cost less than flash in servers."),
        ("latency", "class B (3 µs) is met by RDMA, intra-rack, 100 Gb/s, RDMA + NIC integration"),
        ("latency-met", "class B (3 µs) is met by RDMA + NIC integration, intra-rack, 100 Gb/s."),
        ("place", "7 tenants fit on 7 servers; no placement needs fewer."),
        ("moved", "To get there from 1 servers, 30 tenants' data move, 1.71 TiB in all: 15049 s"),
        ("admit", "logs may not: a second bursty writer would be beside a promised tail."),
        ("pool", "A pool pays: 256 GiB per server and 3 TiB in the pool cost 64192 $"),
        ("fleet", "50 tenants on 1 machines over 24 hours; hour 0 is the busiest."),
    ];
    let plans = made::plans(&directory);
    assert_eq!(plans.len(), wanted.len());
    for (path, (name, sentence)) in plans.iter().zip(wanted) {
        assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(name));
        let said = String::from_utf8(afar(&["report", text(path)]).stdout).expect("text");
        assert!(said.contains(sentence), "{sentence} is missing in {said}");
    }
    // A record of which a field is not known is not half-read.
    let bill = fs::read_to_string(&plans[0]).expect("it was written");
    let more = directory.join("more.json");
    fs::write(&more, bill.replacen('{', "{\"savings\": 1,", 1)).expect("a file under target");
    refused(&[text(&more)], "cannot be read as \"afar.plan.cost/1\": unknown field `savings`");
}

#[test]
fn a_prediction_stands_beside_what_was_measured() {
    let directory = Scratch::new("report-predicted");
    let (sweep, prediction) = (made::findings(&directory), made::prediction(&directory));
    let html = page(&[text(&prediction), text(&sweep)], &directory.join("both.html"));
    markup::check(&html).expect("a page");
    assert!(html.contains("Over 9 settings that both have"), "no comparison");
    assert!(html.contains("id=\"r3-predicted-measured\""));
}

#[test]
fn two_records_are_compared_figure_by_figure() {
    let directory = Scratch::new("report-compare");
    let (one, other) = (made::load(&directory, "one", 1), made::load(&directory, "other", 2));
    let html = page(&["--compare", text(&one), text(&other)], &directory.join("both.html"));
    markup::check(&html).expect("a page");
    assert!(html.contains("<td>2</td>") && html.contains("B is better"), "no ratio");
    let same = page(&["--compare", text(&one), text(&one)], &directory.join("same.html"));
    assert!(same.contains("no difference that the intervals show"));
    let sweep = made::findings(&directory);
    refused(&["--compare", text(&one), text(&sweep)], "is a load record and");
    refused(
        &["--compare", text(&one)],
        "--compare: give two records of the same kind, or up to 26, not 1",
    );
}

fn refused(words: &[&str], wanted: &str) {
    let mut all = vec!["report"];
    all.extend(words);
    let output = afar(&all);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
    let said = stderr(&output);
    assert!(said.starts_with("afar report: ") && said.contains(wanted), "{wanted}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn what_is_no_record_is_refused_in_one_sentence() {
    let directory = Scratch::new("report-refused");
    let file = |name: &str, content: &[u8]| {
        let path = directory.join(name);
        fs::write(&path, content).expect("a file under target");
        path
    };
    let cases = [
        (file("empty", b""), "neither JSON nor Parquet"),
        (file("cut.parquet", b"PAR1 and nothing"), "it may be cut short"),
        (file("x.json", b"{\"schema\": \"afar.run/9\"}"), "has schema \"afar.run/9\""),
        (file("y.json", b"{\"schema\": \"afar.run/2\"}"), "cannot be read as \"afar.run/2\""),
        (file("z.json", b"{\"fio version\": \"3\"}"), "missing field `jobs`"),
        (file("w.json", b"{}"), "has no \"schema\" field"),
        (directory.join("nowhere"), "No such file"),
        (directory.to_path_buf(), "a directory without sweep.json or result.json"),
    ];
    let target = directory.join("page.html");
    for (path, wanted) in cases {
        refused(&[text(&path), "-o", text(&target)], wanted);
    }
    assert!(!target.exists(), "nothing is half-written");
    let sweep = made::findings(&directory);
    refused(
        &[text(&sweep), "--bound", "5"],
        "--bound 5: give a share above 0 with its sign, such as 5%",
    );
    refused(&[text(&sweep), "-o", "/no/such/directory/x"], "open /no/such/directory/x for writing");
}

#[test]
fn hostile_names_stay_names() {
    let directory = Scratch::new("report-hostile");
    for record in hostile(&directory) {
        let html = page(
            &[text(&record), "--title", "</title><script>alert(1)"],
            &directory.join("h.html"),
        );
        markup::check(&html).unwrap_or_else(|why| panic!("{}: {why}", record.display()));
        assert!(!html.contains("<script>alert") && !html.contains("<img"), "{}", record.display());
        assert!(html.contains("&lt;script&gt;alert"), "{}", record.display());
    }
}

#[test]
fn a_hundred_thousand_faults_make_a_small_page() {
    let directory = Scratch::new("report-large");
    let faults = made::faults(&directory, FAULTS);
    let html = page(&[text(&faults)], &directory.join("page.html"));
    markup::check(&html).expect("a page");
    let told = "200 of 100,000 rows are shown; the CSV has the first 1,000, and the record all.";
    assert!(html.contains(told));
    assert!(html.len() <= 1_100_000, "{} bytes", html.len());
    // What the browser draws does not grow with the faults.
    let marks = html.matches("<rect").count() + html.matches("<circle").count();
    assert!(marks < 8_000, "{marks}");
}

/// Looks at pages as people do; screenshots are left beside them.
#[test]
fn pages_open_in_a_browser_without_an_error_or_a_request() {
    let Some(browser) = browser::find() else {
        skip(
            "pages_open_in_a_browser_without_an_error_or_a_request",
            "no chromium on PATH; install it, e.g. scripts/install-deps test",
        );
        return;
    };
    let directory = Scratch::new("report-browser");
    let mut made = records(&directory);
    made.extend(hostile(&directory));
    let paths: Vec<&str> = made.iter().map(|path| text(path)).collect();
    let all = directory.join("all.html");
    page(&paths, &all);
    let large = directory.join("large.html");
    page(&[text(&made::faults(&directory, FAULTS))], &large);
    for path in [&all, &large] {
        browser::check(&browser, path);
    }
}
