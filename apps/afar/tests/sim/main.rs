//! `afar sim`: what it prints and writes, and input that cannot be.

mod blades;
mod loops;
mod outputs;
mod pages;
mod points;
mod steady;
mod sweeps;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use test_support::{scratch, skip};

fn sim(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
    command.arg("sim").args(arguments).current_dir(scratch(""));
    command.output().expect("the afar binary was built with this test")
}

fn answer(arguments: &[&str]) -> String {
    let output = sim(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn json(arguments: &[&str]) -> Value {
    let all = [arguments, &["--json", "-"]].concat();
    serde_json::from_str(&answer(&all)).expect("it is JSON")
}

fn refused(arguments: &[&str], wanted: &str) {
    let output = sim(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("afar sim: "), "{said}");
    assert!(said.contains(wanted), "{wanted} is missing in {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file(name: &str, text: &str) -> String {
    let path = scratch(name);
    std::fs::write(&path, text).expect("a file under target");
    path.display().to_string()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it was written")
}

const SMALL: [&str; 6] = ["--topology", "single-switch", "--hosts", "4", "--flows", "50"];

#[test]
fn the_table_says_what_was_simulated_and_how_it_went() {
    let said = answer(&SMALL);
    for wanted in [
        "pfabric on single-switch, 4 hosts; poisson, sizes imc10, load 60%, seed 1",
        "flow size",
        "p99.9",
        "\nall ",
        "goodput",
        " of hosts' links, 60.0 % asked for, from ",
        "utilisation",
        "drops",
        "deepest queue",
        "for each packet",
        "packets per second of processor time",
    ] {
        assert!(said.contains(wanted), "{wanted} is missing in {said}");
    }
}

/// One flow of three packets between the first hosts of two racks at 40 Gb/s: 2.532 µs until its
/// sender knows, the ideal time of the simulator of 2016. Its last ACK takes 0.82 µs.
#[test]
fn a_flow_alone_takes_its_ideal_time() {
    let list = file("alone.csv", "start_ns,src,dst,bytes\n5,0,16,4380\n");
    let of = |more: &[&str]| {
        let rows = answer(&[&["--traffic", &list, "--csv", "-"], more].concat());
        rows.lines().nth(1).expect("a flow").to_owned()
    };
    assert_eq!(of(&["--end", "acknowledged"]), "5000,0,16,4380,2532000,2532000,1,3,0,one-way");
    assert_eq!(of(&[]), "5000,0,16,4380,1712000,1712000,1,3,0,one-way");
    let published = of(&["--variant", "as-published-2016"]);
    assert_eq!(published, "5000,0,16,4380,2532000,2532000,1,3,0,one-way");
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let of = |name: &str, seed: &str| {
        let directory = scratch(name);
        let path = directory.display().to_string();
        answer(&[&SMALL[..], &["--seed", seed, "-o", &path]].concat());
        let mut record: Value =
            serde_json::from_str(&read(&directory.join("result.json"))).unwrap();
        record["speed"] = Value::Null;
        let parquet = std::fs::read(directory.join("flows.parquet")).expect("it was written");
        (record, read(&directory.join("flows.csv")), parquet)
    };
    let one = of("one", "3");
    assert_eq!(one, of("again", "3"));
    assert_ne!(one.1, of("other", "4").1);
    assert_eq!(one.0["schema"], "afar.sim/1");
    assert_eq!(one.0["settings"]["load"], "60%");
    assert_eq!(one.0["settings"]["seed"], "3");
    assert_eq!(one.0["settings"].get("racks"), None, "a single switch has none");
    assert_eq!(one.0["figures"]["slowdown"]["count"], 40, "a tenth before, and a tenth after");
}

/// A record is an experiment: the run that it is of.
#[test]
fn a_record_runs_again() {
    let path = scratch("again.json").display().to_string();
    let homa = ["--transport", "homa", "--exchange", "read", "--unscheduled", "4"];
    answer(&[&SMALL[..], &homa, &["--json", &path, "-q"]].concat());
    let first: Value = serde_json::from_str(&read(Path::new(&path))).expect("it is JSON");
    let again = json(&[&path]);
    assert_eq!((&again["settings"], &again["figures"]), (&first["settings"], &first["figures"]));
    // Its switch has four ports, whose buffers are one.
    assert_eq!(first["settings"]["buffer"], "147456B");
    assert_eq!(first["settings"]["unscheduled"], "4");
    assert_eq!(json(&[&path, "--seed", "9"])["settings"]["seed"], "9");
    let other = file("other.json", "{}");
    refused(&[&other], "other.json: it ");
    refused(&["--transport", "homa", "--window", "3"], "--window: it says nothing with transport");
    let published = ["--variant", "as-published-2016", "--timeout", "1us"];
    refused(&published, "--timeout: it says nothing with variant as-published-2016");
}

#[test]
fn written_flows_can_be_read_again() {
    let (csv, parquet) = (scratch("again.csv"), scratch("again.parquet"));
    let paths = [csv.display().to_string(), parquet.display().to_string()];
    answer(&[&SMALL[..], &["--csv", &paths[0], "--parquet", &paths[1], "-q"]].concat());
    for path in &paths {
        let network = ["--topology", "single-switch", "--hosts", "4", "--csv", "-"];
        let again = answer(&[&network[..], &["--traffic", path]].concat());
        assert_eq!(again, read(&csv), "{path}");
    }
}

/// Every sender's packets have arrived when the receiver's link has carried them all: the first
/// packet's header and way, then all packets of all senders.
#[test]
fn an_incast_takes_as_long_as_the_last_link() {
    let record = json(&[
        "--topology",
        "single-switch",
        "--hosts",
        "9",
        "--traffic",
        "incast",
        "--senders",
        "8",
        "--size",
        "14600B",
        "--buffer",
        "none",
        "--transport",
        "tcp",
    ]);
    let wire_ps = 8 * 10 * 1500 * 200;
    let end_ps = record["figures"]["end_ps"].as_u64().expect("a number");
    assert!(end_ps >= wire_ps, "{end_ps}");
    assert_eq!(record["figures"]["deepest"]["link"], "switch 0 to host 0");
    assert_eq!(record["figures"]["slowdown"]["count"], 8);
}

#[test]
fn patterns_and_shapes() {
    let count = |arguments: &[&str]| json(arguments)["figures"]["slowdown"]["count"].clone();
    let small = ["--topology", "fat-tree", "--arity", "4", "--size", "3000B"];
    let with = |more: &[&str]| count(&[&small[..], more].concat());
    assert_eq!(with(&["--traffic", "permutation"]), 16);
    assert_eq!(with(&["--traffic", "all-to-all"]), 240);
    assert_eq!(with(&["--traffic", "bursts", "--burst", "3", "--flows", "96"]), 96);
    for transport in ["pfabric", "phost", "fastpass", "ndp", "homa", "dctcp", "tcp"] {
        let record = json(&["--transport", transport, "--flows", "40", "--load", "0.2"]);
        assert_eq!(record["figures"]["slowdown"]["count"], 32, "{transport}");
    }
    for transport in ["pfabric", "phost", "fastpass", "dctcp", "tcp"] {
        let flags = ["--transport", transport, "--variant", "as-published-2016"];
        let record = json(&[&flags[..], &["--flows", "40", "--load", "0.2"]].concat());
        assert_eq!(record["figures"]["slowdown"]["count"], 40, "{transport}");
    }
}

#[test]
fn a_file_of_cables() {
    let cables = "[[cable]]\nfrom = \"host 0-2\"\nto = \"switch 0\"\nrate = \"10Gbps\"\n\
                  delay = \"1us\"\n[[cable]]\nfrom = \"host 3-5\"\nto = \"switch 1\"\n\
                  rate = \"10Gbps\"\ndelay = \"1us\"\n[[cable]]\nfrom = \"switch 0\"\n\
                  to = \"switch 1-2\"\nrate = \"40Gbps\"\ndelay = \"3us\"\ndelay_back = \"4us\"\n\
                  [[cable]]\nfrom = \"switch 2\"\nto = \"switch 1\"\nrate = \"40Gbps\"\n\
                  delay = \"3us\"\n";
    let path = file("cables.toml", cables);
    let list = file("across.csv", "start_us,src,dst,bytes\n0,0,3,1460\n");
    let rows = answer(&["--topology", &path, "--traffic", &list, "--csv", "-"]);
    // Headers of 40 B at 10 and 40 Gb/s, a packet of 1500 B at 10 Gb/s, and 1 + 3 + 1 µs.
    let ps = 32_000 + 8_000 + 1_200_000 + 5_000_000;
    assert!(rows.contains(&format!("0,0,3,1460,{ps},{ps},1,")), "{rows}");
    refused(
        &["--topology", &file("none.toml", &cables.replace("host 3-5", "host x"))],
        "none.toml:7:8: \"host x\": write host 3",
    );
    refused(
        &["--topology", &file("apart.toml", &cables.replace("switch 1-2", "switch 3"))],
        "--topology: switch 1 has no way to switch 0",
    );
    refused(&["--topology", &path, "--rate", "10Gbps"], "--rate: it says nothing with topology");
}

#[test]
fn a_profile_of_delays_is_taken_by_run() {
    let path = scratch("profile.csv");
    let path = path.display().to_string();
    let pages = ["--sizes", "4KiB", "--delay-profile", &path, "-q"];
    // Data that nobody asked for is over in half of the time of a page.
    refused(&[&SMALL[..], &pages[..]].concat(), "--delay-profile: no flow is read");
    answer(&[&SMALL[..], &pages[..], &["--exchange", "read"]].concat());
    let written = read(Path::new(&path));
    assert!(written.starts_with("bytes,microseconds\n4096,"), "{written}");
    assert_eq!(written.lines().count(), 51);
    // A program that does not exist is looked for when everything else has been understood.
    let run = |profile: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
        let flags = ["run", "--local", "25%", "--profile", profile, "--", "/no/such/program"];
        text(&command.args(flags).output().expect("afar runs").stderr)
    };
    assert!(run(&path).contains("/no/such/program"), "{}", run(&path));
    assert!(run("/no/such/profile").contains("read the delay profile"));
}

#[test]
fn what_cannot_be_is_refused() {
    refused(&["--load", "120%"], "--load: \"120%\": links carry 1 to 99 %");
    refused(&["--load", "100%"], "--load: ");
    refused(&["--transport", "udp"], "--transport: there is no transport \"udp\"; give pfabric");
    refused(&["--variant", "x"], "--variant: there is no variant \"x\"");
    refused(&["--traffic", "rain"], "--traffic: there is no traffic \"rain\"");
    refused(&["--topology", "ring"], "--topology: there is no topology \"ring\"");
    refused(&["--traffic", "incast", "--receiver", "144"], "--receiver: \"144\": give");
    refused(&["--traffic", "permutation", "--size", "0"], "--size: a flow of no bytes");
    refused(&["--topology", "fat-tree", "--arity", "5"], "--arity: ");
    refused(&["--topology", "fat-tree", "--racks", "5"], "--racks: it says nothing with topology");
    refused(
        &["--variant", "as-published-2016", "--racks", "5"],
        "--racks: as-published-2016 has 9",
    );
    refused(&["--buffer", "1000B"], "a port of 1000 B does not hold a packet of 1500 B");
    refused(&["--delay", "1us,2us"], "--delay: \"1us,2us\": give one time, or four");
    refused(&["--seed", "x"], "--seed: ");
    refused(&["/no/such/file.toml"], "/no/such/file.toml: ");
    refused(
        &[&file("slip.toml", "seed = 1\nlod = 2\n")],
        "slip.toml:2:1: there is no knob \"lod\"",
    );
    refused(&["--sizes", "/no/such/sizes"], "/no/such/sizes: ");
    let sizes = |name: &str, text: &str, wanted: &str| {
        refused(&["--sizes", &file(name, text)], wanted);
    };
    sizes("words.txt", "# bytes share\n100 0.5\nmany 1\n", "words.txt:3:1: \"many\" is no number");
    sizes("falls.txt", "200 0.5\n100 1\n", "falls.txt:2:1: sizes must be above 0");
    sizes("open.txt", "200 0.5\n300 0.9\n", "open.txt:2:1: a distribution of sizes ends at 0.9");
    let list = |name: &str, row: &str, wanted: &str| {
        let text = format!("start_ps,src,dst,bytes\n0,1,2,1460\n{row}\n");
        refused(&["--traffic", &file(name, &text)], wanted);
    };
    list("host.csv", "0,1,144,5", "host.csv:3:5: there is no host 144; hosts are 0 to 143");
    list("empty.csv", "0,1,2,0", "empty.csv:3:7: a flow of no bytes");
    list("word.csv", "0,one,2,5", "word.csv:3:3: \"one\" is no src");
    refused(&["--traffic", &file("not.parquet", "start_ps\n")], "not.parquet: read the record");
    refused(&["--traffic", "/no/such/flows.csv"], "/no/such/flows.csv: ");
}

#[test]
fn flows_that_never_finish_are_no_result() {
    // TCP of 2016 does not try again when the first of its packets is lost.
    let mut rows = "start_ps,src,dst,bytes\n".to_owned();
    for src in 1..144 {
        for _ in 0..20 {
            rows += &format!("0,{src},0,1460\n");
        }
    }
    let list = file("storm.csv", &rows);
    let flags = ["--transport", "tcp", "--variant", "as-published-2016", "--traffic", &list];
    let output = sim(&[&flags[..], &["--json", "-"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("flows never finished"), "{}", text(&output.stderr));
}

#[test]
fn list_explains_every_knob() {
    let said = answer(&["--list"]);
    for wanted in ["36864B", "Gao et al. 2016, §4.2", "hosts-per-rack", "Transports:", "dctcp"] {
        assert!(said.contains(wanted), "{wanted} is missing in {said}");
    }
    for (knob, source) in [
        ("window", "pFabric, NDP"),
        ("timeout-min", "Linux 200 ms"),
        ("unscheduled", "Montazeri"),
        ("mtu", "Gao et al. 2016"),
    ] {
        let mut lines = said.lines().filter(|line| line.split(' ').next() == Some(knob));
        assert!(lines.any(|line| line.contains(source)), "{knob} of {source}");
    }
    let help = answer(&["--help"]);
    for line in said.lines().skip(1).take_while(|line| !line.is_empty()) {
        let knob = line.split(' ').next().expect("a name");
        assert!(help.contains(&format!("--{knob} ")), "{knob}");
    }
}

#[test]
fn ctrl_c_says_what_was_finished() {
    use std::io::Read as _;
    use std::time::{Duration, Instant};

    let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
    command.args(["sim", "--flows", "1M", "--sizes", "web-search", "--json", "-"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("afar runs");
    // Until it simulates, a signal would end it before it listens.
    let status = format!("/proc/{}/status", child.id());
    let listens = || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let blocked = text.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let mask = u64::from_str_radix(blocked.unwrap_or("0").trim(), 16);
        mask.is_ok_and(|mask| mask & 2 != 0)
    };
    let until = Instant::now() + Duration::from_secs(120);
    while !listens() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    let mut said = String::new();
    child.stderr.take().expect("it is a pipe").read_to_string(&mut said).expect("it is text");
    let mut printed = String::new();
    child.stdout.take().expect("it is a pipe").read_to_string(&mut printed).expect("it is text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{said}");
    assert!(said.contains("interrupted at") && said.contains("of 1000000 flows"), "{said}");
    assert_eq!(printed, "");
}
