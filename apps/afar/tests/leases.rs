//! Runs that share memory on a blade: each has its own, and what a killed run leaves is freed.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use launch::Ready;
use support::{Ended, Launch, Running, program, usable};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:blade";
const LOCAL: [&str; 4] = ["--local", "1MiB", "--trap", "userfaultfd"];
/// Many times what anything here takes.
const LONG: Duration = Duration::from_secs(60);
const ENDLESS: &str = "1000000000";

/// A blade in a process of its own.
struct Served {
    running: Running,
    uri: String,
    metrics: SocketAddr,
}

impl Served {
    fn start(disk: &str) -> Self {
        let disk = format!("{NQN}={disk}");
        let listens = ["--nvme", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
        let words = [&[AFAR, "serve", &disk][..], &listens].concat();
        let (running, Ready { nvme, metrics, .. }) = Launch::new(words).serve();
        let uri = format!("nvme+tcp://{}/{NQN}", nvme[0]);
        Self { running, uri, metrics: metrics.expect("they are to be read") }
    }

    /// Values of a metric, one for each of its samples whose labels have this.
    fn values(&self, name: &str, label: &str) -> Vec<f64> {
        let mut stream = TcpStream::connect(self.metrics).expect("it listens");
        let ask = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(ask).expect("it takes it");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let is_it = |line: &&str| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'))
                && line.contains(label)
        };
        let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse().ok());
        text.lines().filter(is_it).filter_map(value).collect()
    }

    fn sum(&self, name: &str) -> f64 {
        self.values(name, "").iter().sum()
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            let views = self.values("afar_view_bytes", "");
            assert!(began.elapsed() < LONG, "{what}: {views:?}\n{}", self.running.errors());
            sleep(Duration::from_millis(5));
        }
    }
}

fn keeps(seed: &str, steps: Option<&str>) -> Launch {
    let path = program("keeps");
    let launch = Launch::new([path.as_os_str(), "alone".as_ref()]).env("KEEPS_SEED", seed);
    let launch = launch.limit(Duration::from_secs(120)).unmanaged("its children are small");
    match steps {
        Some(steps) => launch.env("KEEPS_STEPS", steps),
        None => launch,
    }
}

fn start(launch: &Launch, uri: &str, flags: &[&str]) -> Running {
    launch.under_afar(&[&LOCAL[..], &["--far", uri], flags].concat()).start()
}

fn is_usable(test: &str) -> bool {
    usable("userfaultfd", &format!("leases::{test}"))
}

fn saw_no_wrong_bytes(ended: &Ended) {
    assert!(!ended.stderr.contains("not so"), "the program saw it: {}", ended.stderr);
}

/// Nothing says good-bye for a run that is killed: its lease ends, and not before.
#[test]
fn what_a_killed_run_leaves_is_freed() {
    let test = "what_a_killed_run_leaves_is_freed";
    if !is_usable(test) {
        return;
    }
    let blade = Served::start("lease:ttl=500ms,quota=64MiB:memory:128MiB");
    let run = start(&keeps("1", Some(ENDLESS)), &blade.uri, &[]);
    blade.wait_until("pages are there", |blade| blade.sum("afar_views_used_bytes") > 2e6);
    assert_eq!(blade.values("afar_views", "held"), [1.0]);
    let program = run.processes();
    run.signal("KILL");
    let killed = Instant::now();
    let ended = run.wait().expect(128 + 9, test);
    // Nothing of the program is left that could run another step.
    ended.leaves_nothing(test);
    assert!(program.len() > 1, "the program ran: {program:?}");
    saw_no_wrong_bytes(&ended);
    blade.wait_until("they are freed", |blade| blade.sum("afar_views_used_bytes") == 0.0);
    assert!(killed.elapsed() >= Duration::from_millis(500), "{:?}", killed.elapsed());
    assert_eq!(blade.sum("afar_views_ended_total"), 1.0);
    assert!(blade.sum("afar_views_freed_bytes_total") > 2e6);
    assert_eq!(blade.values("afar_view_bytes", ""), [0.0; 0]);
    // A run that ends by itself leaves nothing that a lease would have to end for.
    start(&keeps("2", None), &blade.uri, &[]).wait().expect(0, "the next run");
    blade.wait_until("its view ends", |blade| blade.values("afar_view_bytes", "").is_empty());
    assert_eq!(blade.sum("afar_views_ended_total"), 1.0);
}

#[test]
fn runs_at_once_do_not_see_one_another() {
    if !is_usable("runs_at_once_do_not_see_one_another") {
        return;
    }
    let blade = Served::start("lease:ttl=60s,quota=64MiB:memory:256MiB");
    let runs = ["3", "4", "5"].map(|seed| start(&keeps(seed, None), &blade.uri, &[]));
    blade.wait_until("all are there", |blade| {
        let views = blade.values("afar_view_bytes", "");
        views.len() == 3 && views.iter().all(|bytes| *bytes > 1e6)
    });
    for run in runs {
        saw_no_wrong_bytes(&run.wait().expect(0, "a run beside others"));
    }
    assert_eq!(blade.sum("afar_views_used_bytes"), 0.0, "each gave back what it had");
}

#[test]
fn a_quota_and_a_full_memory_end_the_program_with_a_remedy() {
    if !is_usable("a_quota_and_a_full_memory_end_the_program_with_a_remedy") {
        return;
    }
    let blade = Served::start("lease:ttl=60s,quota=1MiB:memory:64MiB");
    let ended = start(&keeps("6", None), &blade.uri, &[]).wait().expect(125, "a small quota");
    let full =
        "the blade is full: it has room for 256 pages of 4 KiB; give a larger one (or quota)";
    assert!(ended.stderr.contains(full), "{}", ended.stderr);
    saw_no_wrong_bytes(&ended);
    // Each may have all of it, and there is room for one of them.
    let blade = Served::start("lease:ttl=60s:memory:6MiB");
    let mut runs = ["7", "8"].map(|seed| {
        let run = start(&keeps(seed, Some(ENDLESS)), &blade.uri, &[]);
        blade.wait_until("it has pages", |blade| blade.sum("afar_views_used_bytes") > 2e6);
        run
    });
    let began = Instant::now();
    let place = loop {
        if let Some(place) = runs.iter_mut().position(|run| !run.is_running()) {
            break place;
        }
        assert!(began.elapsed() < LONG, "{:?}", blade.values("afar_view_bytes", ""));
        sleep(Duration::from_millis(5));
    };
    let [first, second] = runs;
    let (over, _other) = if place == 0 { (first, second) } else { (second, first) };
    let ended = over.wait().expect(125, "a memory that others have");
    let full = "the blade is full: this run and others have all of its memory; give it more";
    assert!(ended.stderr.contains(full), "{}", ended.stderr);
    saw_no_wrong_bytes(&ended);
    blade.wait_until("it has refused a write", |blade| {
        blade.sum("afar_views_refused_writes_total") >= 1.0
    });
}

/// A namespace that all hosts see is for one run, until that gives it up or loses it.
#[test]
fn a_second_run_is_kept_out_of_a_whole_namespace() {
    if !is_usable("a_second_run_is_kept_out_of_a_whole_namespace") {
        return;
    }
    let blade = Served::start("memory:64MiB");
    let bytes = |blade: &Served| blade.sum("afar_namespace_transferred_bytes_total");
    let first = start(&keeps("9", Some(ENDLESS)), &blade.uri, &[]);
    blade.wait_until("the first is there", |blade| bytes(blade) > 1e6);
    let refused = |what: &str| {
        let ended = start(&keeps("10", None), &blade.uri, &[]).wait().expect(3, what);
        assert!(ended.stderr.contains("another run has it (host "), "{}", ended.stderr);
        assert!(ended.stderr.contains("--far-take takes it"), "{}", ended.stderr);
    };
    refused("a second run");
    let takes = || start(&keeps("11", Some(ENDLESS)), &blade.uri, &["--far-take"]);
    let second = takes();
    let ended = first.wait().expect(125, "the first, whose blade was taken");
    assert!(ended.stderr.contains("another run or host has taken it"), "{}", ended.stderr);
    saw_no_wrong_bytes(&ended);
    let before = bytes(&blade);
    blade.wait_until("the second is there", |blade| bytes(blade) > before + 1e6);
    refused("beside the second");
    second.signal("KILL");
    saw_no_wrong_bytes(&second.wait().expect(128 + 9, "the second"));
    refused("after one that was killed");
    let third = start(&keeps("12", None), &blade.uri, &["--far-take"]);
    saw_no_wrong_bytes(&third.wait().expect(0, "the third"));
    // It gave it up.
    let fourth = start(&keeps("13", None), &blade.uri, &[]);
    saw_no_wrong_bytes(&fourth.wait().expect(0, "the fourth"));
}

#[test]
fn what_cannot_be_leased_is_refused() {
    let refused = |words: &[&str], wanted: &str| {
        let ended = Launch::new([&[AFAR, "serve"], words].concat()).run().expect(2, wanted);
        assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
    };
    refused(&["a=lease:ttl=9s:file:/x"], "only memory:SIZE can be leased");
    refused(&["a=lease:quota=2MiB:memory:1MiB"], "4 KiB to the 1.0 MiB of the memory");
    refused(&["a=fault:read=eio:lease:ttl=9s:memory:1MiB"], "fault cannot stand around a lease");
    let beside = ["a=lease:ttl=9s:memory:1MiB", "--iscsi", "127.0.0.1:0"];
    refused(&beside, "is for NVMe hosts alone; serve it without iSCSI");
}
