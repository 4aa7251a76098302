//! `afar load kv` against real servers: what it reports is what happened.

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::Duration;

use measure::{LoadResults, Run};
use support::{Ended, Launch, Running, installed};
use test_support::scratch;

/// A server of its own for each test, on a socket in the file system.
struct Server {
    running: Running,
    socket: PathBuf,
    scheme: &'static str,
}

impl Server {
    fn redis(name: &str) -> Self {
        let socket = scratch(format!("{name}.redis"));
        let path = socket.to_str().expect("paths here are text");
        let words = ["redis-server", "--port", "0", "--unixsocket", path, "--save", ""];
        let mut running = Launch::new(words).start();
        running.wait_for("ready to accept connections at");
        Self { running, socket, scheme: "redis+unix" }
    }

    fn memcached(name: &str, megabytes: &str) -> Self {
        let socket = scratch(format!("{name}.memcached"));
        let path = socket.to_str().expect("paths here are text");
        let words = ["memcached", "-u", "root", "-m", megabytes, "-s", path];
        let running = Launch::new(words).start();
        for _ in 0..1000 {
            if socket.exists() {
                break;
            }
            sleep(Duration::from_millis(5));
        }
        Self { running, socket, scheme: "memcached+unix" }
    }

    fn launch(&self, flags: &[&str]) -> Launch {
        let uri = format!("{}:{}", self.scheme, self.socket.display());
        let afar = [env!("CARGO_BIN_EXE_afar"), "load", "kv", &uri, "--json", "-"];
        Launch::new(afar.iter().chain(flags))
    }

    /// Runs a load that must end with `status`.
    fn load(&self, flags: &[&str], status: i32) -> LoadResults {
        results(&self.launch(flags).run().expect(status, &format!("{flags:?}")))
    }
}

fn results(ended: &Ended) -> LoadResults {
    let run: Run<LoadResults> = serde_json::from_slice(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}:\n{}", ended.text()));
    run.results
}

fn counts(results: &LoadResults) -> Vec<(&str, u64)> {
    let operations = results.operations.iter();
    operations.map(|of| (of.operation.as_str(), of.latency.count)).collect()
}

fn faults(results: &LoadResults) -> (u64, u64, u64) {
    let sum = |count: fn(&measure::LoadOperation) -> u64| {
        results.operations.iter().map(count).sum::<u64>()
    };
    (sum(|of| of.missing_count), sum(|of| of.refused_count), sum(|of| of.wrong_count))
}

#[test]
fn every_workload_finds_what_was_stored() {
    if !installed(&["redis-server", "memcached"], "load::every_workload") {
        return;
    }
    for server in [Server::redis("all"), Server::memcached("all", "256")] {
        // Scans of the last records reach beyond them, so not E.
        for workload in ["a", "b", "c", "d", "f"] {
            let flags = ["--fill", "--keys", "3000", "-w", workload, "-n", "20000", "--verify"];
            let more = ["--threads", "2", "--connections", "7", "--depth", "3"];
            let results = server.load(&[&flags[..], &more[..]].concat(), 0);
            assert_eq!(results.request_count, 20_000, "{workload}");
            assert_eq!(faults(&results), (0, 0, 0), "{workload}: {results:?}");
            assert_eq!(results.lost_count, 0);
        }
        let results = server.load(&["-w", "e", "-n", "2000", "--verify"], 0);
        let [(_, inserts), (_, scans)] = counts(&results)[..] else { panic!("{results:?}") };
        assert_eq!(inserts + scans, 2000);
        assert!((50..=150).contains(&inserts), "{inserts}");
        assert_eq!(faults(&results).2, 0);
    }
}

#[test]
fn requests_are_divided_and_the_mix_is_kept() {
    if !installed(&["redis-server"], "load::mix") {
        return;
    }
    let server = Server::redis("mix");
    let properties = scratch("workload.properties");
    let text = "recordcount=500\noperationcount=9999\nreadproportion=0.7\nupdateproportion=0.3\n\
        fieldcount=1\nfieldlength=40\nrequestdistribution=uniform\nthreadcount=9\n";
    fs::write(&properties, text).expect("the scratch directory can be written to");
    let file = properties.to_str().expect("paths here are text");
    let ended = server.launch(&["--fill", "-w", file, "-t", "4"]).run().expect(0, "properties");
    assert!(ended.stderr.contains("property threadcount has no effect"), "{}", ended.stderr);
    let results = results(&ended);
    let [("read", reads), ("update", updates)] = counts(&results)[..] else {
        panic!("{results:?}")
    };
    assert_eq!(reads + updates, 9999);
    assert!((6_800..7_200).contains(&reads), "{reads}");
    let length = redis_cli(&server, &["STRLEN", "user6284781860667377211"]);
    assert_eq!(length.trim(), "40");
}

#[test]
fn updates_append_until_a_value_is_full() {
    if !installed(&["redis-server", "memcached", "redis-cli"], "load::append") {
        return;
    }
    for server in [Server::redis("append"), Server::memcached("append", "64")] {
        let flags = ["--fill", "--keys", "20", "--value-size", "100", "--distribution", "uniform"];
        let grows = ["--append", "90", "--append-limit", "1kB", "--reads", "25%", "--verify"];
        // One request at a time, so that a limit is one.
        let one = server.load(&[&flags[..], &grows, &["-c", "1", "-n", "8000"]].concat(), 0);
        assert_eq!(faults(&one), (0, 0, 0), "{one:?}");
        let [("read", reads), ("update", updates)] = counts(&one)[..] else { panic!("{one:?}") };
        assert_eq!(reads + updates, 8000);
        assert!((1_700..2_300).contains(&reads), "{reads}");
        if server.scheme == "redis+unix" {
            let keys = redis_cli(&server, &["KEYS", "*"]);
            let length = |key: &str| redis_cli(&server, &["STRLEN", key]).trim().parse::<u64>();
            let lengths: Vec<u64> =
                keys.lines().map(|key| length(key).expect("a number")).collect();
            assert_eq!(lengths.len(), 20);
            let is_grown = |length: &u64| (length - 100).is_multiple_of(90) && *length <= 1000;
            assert!(lengths.iter().all(is_grown), "{lengths:?}");
            // 300 updates of each record end anywhere between 100 and 1,000 bytes.
            assert!(lengths.iter().sum::<u64>() > 20 * 200, "{lengths:?}");
        }
        // Many at once: what is read is still what was stored.
        let many = ["-c", "8", "--depth", "4", "-t", "2", "-n", "8000"];
        let many = server.load(&[&flags[..], &grows, &many].concat(), 0);
        assert_eq!(faults(&many), (0, 0, 0), "{many:?}");
        // Values that have grown are not those of a load that replaces them.
        let plain = ["--keys", "20", "--value-size", "100", "--verify", "-n", "200"];
        assert!(faults(&server.load(&plain, 1)).2 > 0);
    }
}

#[test]
fn keys_have_the_size_that_was_asked_for() {
    if !installed(&["redis-server", "memcached", "redis-cli"], "load::key_size") {
        return;
    }
    for server in [Server::redis("keys"), Server::memcached("keys", "64")] {
        let flags = ["--fill", "--keys", "3000", "--key-size", "16", "-w", "a", "-n", "6000"];
        let results = server.load(&[&flags[..], &["--verify"]].concat(), 0);
        assert_eq!(faults(&results), (0, 0, 0), "{results:?}");
        if server.scheme == "redis+unix" {
            let keys = redis_cli(&server, &["KEYS", "*"]);
            assert_eq!(keys.lines().count(), 3000, "no two records have one key");
            assert!(keys.lines().all(|key| key.len() == 16 && key.starts_with("user")));
        }
        let short = server.launch(&["--keys", "3000", "--key-size", "8"]).run();
        let said = short.expect(2, "a key that is too short").stderr;
        assert!(said.contains("a key has from 9 bytes"), "{said}");
    }
}

#[test]
fn a_search_says_when_it_has_found_nothing() {
    if !installed(&["redis-server"], "load::slo") {
        return;
    }
    let server = Server::redis("slo");
    server.load(&["--fill", "--keys", "100", "-n", "1"], 0);
    let short = ["--keys", "100", "-d", "100ms", "--warm-up", "0ms", "--probe"];
    // Nothing is answered in no time, and everything within an hour.
    for (bound, rates, why) in [
        ("p50=1ns", "200..400", "even 200/s, the least of --slo-rates, does not hold"),
        ("mean=3600s", "200..400", "even 400/s, the most of --slo-rates, holds"),
    ] {
        let flags = ["--slo", bound, "--slo-rates", rates];
        let ended = server.launch(&[&short[..], &flags].concat()).run();
        let ended = ended.expect(4, bound);
        let results = results(&ended);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        let search = results.search.expect("there was one");
        assert!(search.invalid.is_some_and(|told| told.contains(why)));
        assert_eq!((search.found_per_s, search.interval_per_s), (None, None));
        assert!(search.tries.len() >= 3, "{:?}", search.tries);
        let agrees = |one: &measure::LoadTry| one.holds == (bound == "mean=3600s");
        assert!(search.tries.iter().all(agrees), "{:?}", search.tries);
        assert!(search.tries.iter().all(|one| one.probe_latency_ns.is_some()));
        // What is told is of the last try.
        assert_eq!(search.tries.last().map(|one| one.request_count), Some(results.request_count));
    }
    let both = server.launch(&["--slo", "p95=1ms", "--rate", "5"]).run().expect(2, "both");
    assert!(both.stderr.contains("--slo and --rate exclude each other"), "{}", both.stderr);
}

#[test]
fn values_that_grow_go_on_growing_from_try_to_try() {
    if !installed(&["redis-server", "redis-cli"], "load::slo_growth") {
        return;
    }
    let server = Server::redis("slo_growth");
    let store = ["--fill", "--keys", "5", "--value-size", "100", "--reads", "0%", "-c", "1"];
    let grows = ["--append", "90", "--append-limit", "1kB", "--distribution", "uniform"];
    let search = ["--slo", "mean=3600s", "--slo-rates", "500..500", "-d", "150ms"];
    server.load(&[&store[..], &grows, &search, &["--warm-up", "0ms"]].concat(), 4);
    let keys = redis_cli(&server, &["KEYS", "*"]);
    for key in keys.lines() {
        let length: u64 = redis_cli(&server, &["STRLEN", key]).trim().parse().expect("a number");
        assert!(length <= 1000, "{key} has {length}");
    }
}

#[test]
fn a_probe_is_counted_apart() {
    if !installed(&["redis-server", "redis-cli"], "load::probe") {
        return;
    }
    let server = Server::redis("probe");
    let flags = ["--fill", "--keys", "300", "-n", "30000", "-t", "2", "-c", "8", "--depth", "4"];
    let results = server.load(&[&flags[..], &["--probe", "--verify"]].concat(), 0);
    assert_eq!(results.request_count, 30_000);
    let probe = results.probe.expect("it was asked for");
    assert!(probe.request_count > 10, "{probe:?}");
    assert_eq!(probe.operations.len(), 1);
    assert_eq!(probe.operations[0].latency.count, probe.request_count);
    // The server has seen the requests of both, and none twice.
    let stats = redis_cli(&server, &["INFO", "commandstats"]);
    let calls = stats.split_once("cmdstat_get:calls=").expect("there were reads").1;
    let calls: u64 = calls.split(',').next().expect("a word").parse().expect("a number");
    assert_eq!(calls, 30_000 + probe.request_count);
    let without = server.load(&["--keys", "300", "-n", "100"], 0);
    assert_eq!(without.probe, None);
}

#[test]
fn what_was_not_stored_is_found() {
    if !installed(&["redis-server", "redis-cli"], "load::wrong") {
        return;
    }
    let server = Server::redis("wrong");
    server.load(&["--fill", "--keys", "10", "-n", "1"], 0);
    // The name of record 0, and another record's value.
    let other = redis_cli(&server, &["GET", "user8517097267634966620"]);
    assert!(!other.trim().is_empty(), "the name of record 1 is another");
    redis_cli(&server, &["SET", "user6284781860667377211", other.trim_end_matches('\n')]);
    let flags = ["--keys", "10", "-n", "1000", "--distribution", "uniform"];
    let results = server.load(&[&flags[..], &["--verify"]].concat(), 1);
    assert!((50..200).contains(&faults(&results).2), "{results:?}");
    let trouble = results.first_trouble.unwrap_or_default();
    assert_eq!(trouble, "wrong value: record 0 holds what belongs elsewhere");
    // Who does not look does not see.
    assert_eq!(faults(&server.load(&flags, 0)), (0, 0, 0));
    redis_cli(&server, &["DEL", "user6284781860667377211"]);
    assert!(faults(&server.load(&flags, 0)).0 > 50);
}

#[test]
fn a_server_that_refuses_is_reported() {
    if !installed(&["redis-server", "redis-cli"], "load::refused") {
        return;
    }
    let server = Server::redis("refused");
    redis_cli(&server, &["CONFIG", "SET", "maxmemory", "1"]);
    let results = server.load(&["-w", "a", "--keys", "100", "-n", "1000"], 1);
    let (_, refused, _) = faults(&results);
    assert!((400..600).contains(&refused), "{results:?}");
    let trouble = results.first_trouble.unwrap_or_default();
    assert!(trouble.starts_with("refused: OOM command not allowed"), "{trouble}");
}

#[test]
fn requests_that_arrive_during_a_pause_are_late() {
    if !installed(&["redis-server"], "load::pause") {
        return;
    }
    let server = Server::redis("pause");
    let paused = |flags: &[&str]| {
        let load = server.launch(&[&["-d", "3s", "--keys", "1000"], flags].concat());
        scope(|scope| {
            let load = scope.spawn(move || load.run().expect(0, "a load over a pause"));
            sleep(Duration::from_millis(1000));
            server.running.signal("STOP");
            // Half a second more than one: wherever it begins, one second has few answers.
            sleep(Duration::from_millis(1500));
            server.running.signal("CONT");
            results(&load.join().expect("the load ends"))
        })
    };
    server.load(&["--fill", "--keys", "1000", "-n", "1"], 0);
    let open = paused(&["--rate", "1000", "--spacing", "even", "-c", "4"]);
    let closed = paused(&["-c", "4"]);
    // The second of the pause shows as one, and no request is counted in two of them.
    for results in [&open, &closed] {
        let seconds = &results.request_count_by_second;
        assert_eq!(seconds.iter().sum::<u64>(), results.request_count, "{seconds:?}");
        let (least, most) = (seconds[..3].iter().min(), seconds.iter().max());
        assert!(least.zip(most).is_some_and(|(least, most)| least * 2 < *most), "{seconds:?}");
    }
    let (open, closed) = (&open.operations[0].latency, &closed.operations[0].latency);
    // Half of all requests arrived in the pause; each waited for the rest of it. A tenth of all
    // therefore waited for more than 1.1 s.
    assert!((2_990..=3_000).contains(&open.count), "{open:?}");
    assert!(open.p90_ns > 900_000_000, "{open:?}");
    assert!(open.max_ns > 1_300_000_000, "{open:?}");
    // Only four requests were on their way when the pause began: the closed loop hardly sees it.
    assert!(closed.max_ns > 1_300_000_000, "{closed:?}");
    assert!(closed.p99_ns < 600_000_000, "{closed:?}");
}

#[test]
fn an_interrupted_load_says_what_it_had() {
    if !installed(&["redis-server"], "load::interrupt") {
        return;
    }
    let server = Server::redis("interrupt");
    server.load(&["--fill", "-n", "1"], 0);
    let running = server.launch(&["-d", "600s"]).start();
    sleep(Duration::from_millis(700));
    running.signal("INT");
    let results = results(&running.wait().expect(0, "an interrupted load"));
    assert!(results.interrupted && results.request_count > 100, "{results:?}");
    assert_eq!(results.lost_count, 0);
}

#[test]
fn a_server_that_dies_or_sleeps_costs_its_requests_only() {
    if !installed(&["redis-server"], "load::dies") {
        return;
    }
    let server = Server::redis("dies");
    server.load(&["--fill", "-n", "1"], 0);
    server.running.signal("STOP");
    let results_of = |flags: &[&str]| server.load(&[flags, &["-c", "3"]].concat(), 1);
    let slept = results_of(&["-d", "30s", "--timeout", "200ms"]);
    assert_eq!((slept.lost_count, slept.failed_connection_count), (3, 3), "{slept:?}");
    assert_eq!(slept.first_trouble.as_deref(), Some("no answer within 200 ms"));
    server.running.signal("CONT");
    let dying = server.launch(&["-d", "30s", "-c", "3"]).start();
    sleep(Duration::from_millis(700));
    server.running.signal("KILL");
    let died = results(&dying.wait().expect(1, "a load whose server dies"));
    assert_eq!(died.failed_connection_count, 3, "{died:?}");
    assert!(died.request_count > 100 && (1..=3).contains(&died.lost_count), "{died:?}");
}

#[test]
fn bad_input_is_one_sentence() {
    let cases: [(&[&str], &str); 13] = [
        (&["http://x"], "http://x is not a server; write redis://HOST:PORT"),
        (&["redis://x", "-w", "g"], "--workload g: No such file or directory"),
        (&["redis://x", "-w", "/dev/null", "--rate", "0"], "--rate 0: give requests per second"),
        (&["redis://x", "--theta", "1"], "--theta 1: the skew is between 0 and 1"),
        (&["redis://x", "--threads", "9", "-c", "8"], "--connections 8 for --threads 9"),
        (&["redis://x", "--value-size", "1GiB"], "a value has at most 512 MiB"),
        (&["redis://x", "--keys", "0"], "--keys"),
        (&["redis://x", "--spacing", "even"], "--rate"),
        (&["redis://x", "--duration", "5"], "a time needs a unit"),
        (&["redis://x", "--reads", "101%"], "--reads 101%: give a share from 0% to 100%"),
        (&["redis://x", "--append-limit", "1kB"], "--append"),
        (&["redis://x", "--append", "0"], "--append 0 to --value-size 1000"),
        (&["redis://x", "--append", "1", "--append-limit", "1000"], "a limit of 1001 bytes"),
    ];
    for (flags, sentence) in cases {
        let words = [env!("CARGO_BIN_EXE_afar"), "load", "kv"];
        let ended = Launch::new(words.iter().chain(flags)).run().expect(2, &format!("{flags:?}"));
        assert!(ended.stderr.contains(sentence), "{flags:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{flags:?}");
    }
}

fn redis_cli(server: &Server, words: &[&str]) -> String {
    let socket = server.socket.to_str().expect("paths here are text");
    let output = Command::new("redis-cli").args(["-s", socket]).args(words).output();
    String::from_utf8_lossy(&output.expect("it is installed").stdout).into_owned()
}
