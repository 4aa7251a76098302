//! Memory that is far for real: every byte is what the program wrote, whoever has it meanwhile, and
//! a blade that has lost it ends the program.

mod kills;
mod order;
mod rounds;
#[path = "../support/mod.rs"]
mod support;

use std::thread::sleep;
use std::time::{Duration, Instant};

use launch::Ready;
use serde_json::Value;
use support::{Ended, Launch, Running, installed, program, scratch, usable};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:blade";
const MEMORY: &str = "memory:1GiB";
const LOCAL: [&str; 2] = ["--local", "1MiB"];
/// Threads that wait sleep; or they spin first.
const TRAPS: [&str; 2] = ["userfaultfd", "bpf"];

/// A blade in a process of its own.
fn serve(disk: &str) -> (Running, String) {
    let words = [AFAR, "serve", &format!("{NQN}={disk}"), "--nvme", "127.0.0.1:0"];
    let (running, Ready { nvme, .. }) = Launch::new(words).serve();
    let uri = format!("nvme+tcp://{}/{NQN}", nvme[0]);
    (running, uri)
}

fn keeps(case: &str, seed: &str) -> Launch {
    let path = program("keeps");
    let launch = Launch::new([path.as_os_str(), case.as_ref()]).env("KEEPS_SEED", seed);
    // Beside a child of little memory, libraries are much of what there is.
    launch.limit(Duration::from_secs(120)).unmanaged("its children are small")
}

fn far(launch: &Launch, uri: &str, name: &str) -> (Ended, Value) {
    far_by("auto", launch, uri, name)
}

fn far_by(trap: &str, launch: &Launch, uri: &str, name: &str) -> (Ended, Value) {
    let record = scratch(&format!("far-{name}.json"));
    let path = record.display().to_string();
    let flags = [&LOCAL[..], &["--trap", trap, "--far", uri, "--json", &path]].concat();
    let ended = launch.under_afar(&flags).run();
    let text = std::fs::read_to_string(&record).unwrap_or_default();
    (ended, serde_json::from_str(&text).unwrap_or_default())
}

fn is_usable(test: &str) -> bool {
    usable("userfaultfd", &format!("far::{test}"))
}

#[test]
fn a_program_finds_what_it_wrote() {
    const TEST: &str = "far::a_program_finds_what_it_wrote";
    if !is_usable("a_program_finds_what_it_wrote") {
        return;
    }
    let (blade, uri) = serve("memory:256MiB");
    let cases = [
        ("alone", "1", MEMORY),
        ("together", "2", MEMORY),
        ("and_executes", "3", MEMORY),
        ("alone", "4", &*uri),
        ("together", "5", &uri),
        ("and_executes", "6", &uri),
    ];
    let usable_traps = TRAPS.into_iter().filter(|trap| usable(trap, TEST));
    for (trap, (case, seed, uri)) in usable_traps.flat_map(|trap| cases.map(|case| (trap, case))) {
        let name = format!("keeps-{case}-{seed}-{trap}");
        let (ended, record) = far_by(trap, &keeps(case, seed), uri, &name);
        ended.expect(0, &name).leaves_nothing(&name);
        let faults = &record["results"]["faults"];
        let fetched = faults["fetch_count"].as_u64().expect("it is counted");
        assert!(fetched > 2000, "{name}: {fetched} pages fetched: {faults}");
        let told = record["params"]["far"].as_str();
        let wanted = if uri == MEMORY { "memory:1073741824" } else { uri };
        assert_eq!(told, Some(wanted));
        assert_eq!(record["params"]["trap"].as_str(), Some(trap));
        let spins = &record["results"]["mechanism"]["spins"];
        match trap {
            "bpf" => {
                assert!(spins["answered_count"].as_u64().expect("it is counted") > 0, "{name}");
                assert_eq!(record["params"]["spin_max_ns"].as_u64(), Some(30_000), "{name}");
            }
            _ => assert!(spins.is_null(), "{name}: {spins}"),
        }
    }
    drop(blade);
}

/// Who waits for a fork may find that its page has left meanwhile, and a region that moves takes
/// pages along that are being unmapped: bytes are right, and the budget holds.
#[test]
fn pages_leave_while_a_process_forks_and_moves_its_memory() {
    const TEST: &str = "far::pages_leave_while_a_process_forks_and_moves_its_memory";
    if !is_usable("pages_leave_while_a_process_forks_and_moves_its_memory") {
        return;
    }
    for trap in TRAPS.into_iter().filter(|trap| usable(trap, TEST)) {
        for seed in ["7", "8", "9"] {
            let name = format!("far-forks-{seed}-{trap}");
            let record = scratch(&format!("{name}.json")).display().to_string();
            // A page may be the next to leave as soon as it is touched.
            let flags = ["--local", "128KiB", "--policy", "random", "--trap", trap];
            let flags = [&flags[..], &["--far", MEMORY, "--json", &record]].concat();
            let launch = keeps("and_forks", seed).env("KEEPS_STEPS", "1500");
            launch.under_afar(&flags).run().expect(0, &name).leaves_nothing(&name);
            let text = std::fs::read_to_string(&record).expect("afar writes its record");
            let record: Value = serde_json::from_str(&text).expect("a record is JSON");
            let results = &record["results"];
            let fetched = results["faults"]["fetch_count"].as_u64().expect("it is counted");
            assert!(fetched > 2000, "{name}: {fetched} pages fetched");
            assert_eq!(results["budget"]["held"], true, "{name}: {:#}", results["budget"]);
        }
    }
}

/// The blade has what was only read: it is sent once, and again where one word of it has changed.
#[test]
fn what_is_only_read_is_sent_once() {
    const PAGES: u64 = 4096;
    const ROUNDS: u64 = 6;
    if !is_usable("what_is_only_read_is_sent_once") {
        return;
    }
    let (blade, uri) = serve("memory:64MiB");
    for (name, uri) in [("reads-memory", MEMORY), ("reads-nvme", &*uri)] {
        let path = program("reads");
        let launch = Launch::new([path.as_os_str(), ROUNDS.to_string().as_ref()]);
        let (ended, record) = far(&launch, uri, name);
        ended.expect(0, name).leaves_nothing(name);
        let results = &record["results"];
        let fetched = results["faults"]["fetch_count"].as_u64().expect("it is counted");
        let sent = results["written_back_bytes"].as_u64().expect("it is counted") / 4096;
        assert!(fetched >= PAGES * ROUNDS, "{name}: {fetched} pages fetched");
        assert!(sent >= PAGES * 9 / 10, "{name}: {sent} pages sent: {results:#}");
        assert!(sent <= PAGES * 11 / 10, "{name}: {sent} pages sent of {fetched} that left");
    }
    drop(blade);
}

/// Pages that are fetched ahead are there when they are touched, or on their way; the program finds
/// what it wrote.
#[test]
fn pages_are_fetched_ahead() {
    const PAGES: u64 = 4096;
    const ROUNDS: u64 = 6;
    if !is_usable("pages_are_fetched_ahead") {
        return;
    }
    let (blade, uri) = serve("memory:64MiB");
    for (name, uri, prefetch) in [
        ("ahead-memory", MEMORY, "next-8"),
        ("ahead-nvme", &*uri, "next-8"),
        ("ahead-stride", &*uri, "stride-16"),
    ] {
        let path = program("reads");
        let launch = Launch::new([path.as_os_str(), ROUNDS.to_string().as_ref()]);
        let record = scratch(&format!("far-{name}.json"));
        let told = record.display().to_string();
        let own = ["--far", uri, "--prefetch", prefetch, "--json", &told];
        launch.under_afar(&[&LOCAL[..], &own].concat()).run().expect(0, name).leaves_nothing(name);
        let text = std::fs::read_to_string(&record).expect("the run has a record");
        let record: Value = serde_json::from_str(&text).expect("it is JSON");
        let faults = &record["results"]["faults"];
        let count = |what: &str| faults[what].as_u64().expect("it is counted");
        let (fetched, ahead) = (count("fetch_count"), count("prefetch_count"));
        assert!(fetched + ahead >= PAGES * (ROUNDS - 1), "{name}: {faults:#}");
        // Where frames are free, which other programs delay: eight of nine at most.
        assert!(ahead * 3 > fetched, "{name}: {fetched} fetched, {ahead} ahead: {faults:#}");
    }
    let faults = ["--local", "1MiB", "--far", &uri, "--prefetch", "next-32"];
    let launch =
        keeps("together", "13").under_afar(&[&["--trap", "userfaultfd"][..], &faults].concat());
    launch.run().expect(0, "pages ahead of random ones").leaves_nothing("ahead of random ones");
    drop(blade);
}

/// Their output is that of the native run, with a quarter of their memory here, or of 4 MiB.
#[test]
fn programs_say_what_they_say_natively() {
    if !is_usable("programs_say_what_they_say_natively") {
        return;
    }
    let input = scratch("far-sort.in");
    let number = |line: u64| line.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let text: String = (0..30_000).map(|line| format!("{:016x} some\n", number(line))).collect();
    std::fs::write(&input, text).expect("the scratch directory can be written to");
    let python = "import hashlib\nx = [str(i * 7919 % 1000003) for i in range(20000)]\nx.sort()\n\
                  print(hashlib.sha256(''.join(x).encode()).hexdigest())";
    let sql = "create table a as with recursive n(i) as (select 0 union all select i + 1 from n \
               where i < 20000) select i, i * 7919 % 10007 as k, printf('row %d', i) as t from n;\
               create index on_k on a(k); select count(*), sum(x.i * y.i % 97), max(x.t || y.t) \
               from a x join a y on x.k = y.k where x.i % 3 = 0;";
    let perl = "my %h; $h{$_ * 7919 % 100003} = \"v$_\" for 0 .. 9000; my $s = 0; \
                $s = ($s * 31 + length($h{$_}) + $_) % 1000000007 for sort keys %h; \
                print \"$s\\n\"";
    let awk = "BEGIN { for (i = 0; i < 20000; i++) a[i] = \"v\" i; s = 0; \
               for (i = 0; i < 20000; i++) s = (s * 31 + length(a[i]) + i) % 1000003; print s }";
    let file = input.display().to_string();
    let programs: [(&str, Vec<&str>); 5] = [
        ("sort", vec!["sort", "--parallel=2", &file]),
        ("python3", vec!["/usr/bin/python3", "-c", python]),
        ("sqlite3", vec!["sqlite3", ":memory:", sql]),
        ("perl", vec!["perl", "-e", perl]),
        ("awk", vec!["awk", awk]),
    ];
    let (blade, uri) = serve("memory:256MiB");
    for (name, words) in programs {
        if !installed(&[name], &format!("far::{name}")) {
            continue;
        }
        let launch = Launch::new(words).limit(Duration::from_secs(120));
        let native = launch.clone().run().expect(0, name).text();
        let flags = ["--trap", "userfaultfd", "--local", "25%", "--of", "4MiB", "--far", &uri];
        let ended = launch.unmanaged("it is small").under_afar(&flags).run().expect(0, name);
        assert_eq!(ended.text(), native, "{name}");
    }
    drop(blade);
}

/// A program whose pages nobody has any more ends; it never finds zeros, nor what was there before.
#[test]
fn a_blade_that_is_gone_ends_the_program() {
    let test = "a_blade_that_is_gone_ends_the_program";
    if !is_usable(test) {
        return;
    }
    let (blade, uri) = serve("memory:256MiB");
    let endless = keeps("alone", "7").env("KEEPS_STEPS", "1000000000");
    let flags = [&LOCAL[..], &["--far", &uri, "--far-timeout", "1s"]].concat();
    let running = endless.under_afar(&flags).start();
    rounds::begun(&running);
    sleep(Duration::from_millis(500));
    let began = Instant::now();
    blade.signal("KILL");
    let ended = running.wait().expect(125, "a run whose blade is gone");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert!(ended.stderr.contains(&format!("--far {uri}")), "{}", ended.stderr);
    assert!(ended.stderr.contains("the program was ended"), "{}", ended.stderr);
    ended.leaves_nothing(test);
    drop(blade);
}

/// Pages that the device says it has, and has not.
#[test]
fn a_blade_that_loses_writes_is_found_out() {
    let test = "a_blade_that_loses_writes_is_found_out";
    if !is_usable(test) {
        return;
    }
    // A device that writes nothing and reads zeros.
    let (blade, uri) = serve("null:256MiB");
    let (ended, _) = far(&keeps("alone", "8"), &uri, "lost");
    let ended = ended.expect(125, "a blade without a memory");
    assert!(ended.stderr.contains("the blade has lost it"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("not so"), "the program saw it: {}", ended.stderr);
    ended.leaves_nothing(test);
    drop(blade);
}

#[test]
fn a_blade_that_is_full_says_so() {
    if !is_usable("a_blade_that_is_full_says_so") {
        return;
    }
    let (ended, _) = far(&keeps("alone", "9"), "memory:1MiB", "full");
    let ended = ended.expect(125, "a blade of 256 pages");
    assert!(
        ended.stderr.contains("the blade is full: it has room for 256 pages"),
        "{}",
        ended.stderr
    );
}

/// With copies on two of three blades, the program goes on without one of them, and finds what it
/// wrote: one that is killed, and one that has begun anew and is empty.
#[test]
fn one_blade_of_several_is_done_without() {
    let test = "one_blade_of_several_is_done_without";
    if !is_usable(test) {
        return;
    }
    for begins_anew in [false, true] {
        let name = if begins_anew { "anew" } else { "killed" };
        let blades = [0, 1, 2].map(|number| {
            let nqn = format!("{NQN}{number}");
            let words = [AFAR, "serve", &format!("{nqn}=memory:128MiB"), "--nvme", "127.0.0.1:0"];
            let (running, Ready { nvme, .. }) = Launch::new(words).serve();
            (Some(running), nvme[0].to_string(), nqn)
        });
        let uris = blades.each_ref().map(|(_, at, nqn)| format!("nvme+tcp://{at}/{nqn}"));
        let record = scratch(&format!("far-copies-{name}.json"));
        let path = record.display().to_string();
        let uri = uris.join(",");
        let own = ["--far", &uri, "--replicas", "2", "--far-timeout", "2s", "--json", &path];
        let flags = [&LOCAL[..], &own].concat();
        let until = scratch(&format!("far-copies-{name}.until"));
        let _none = std::fs::remove_file(&until);
        let endless = keeps("alone", "11").env("KEEPS_STEPS", "1000000000");
        let mut running = endless.env("KEEPS_UNTIL", &until).under_afar(&flags).start();
        // On a busy machine the blades are reached late.
        rounds::begun(&running);
        sleep(Duration::from_millis(500));
        let [(mut killed, at, nqn), second, third] = blades;
        killed.iter().for_each(|blade| blade.signal("KILL"));
        drop(killed.take());
        let again = begins_anew.then(|| {
            let words = [AFAR, "serve", &format!("{nqn}=memory:128MiB"), "--nvme", &at];
            Launch::new(words).serve()
        });
        running.wait_for("is out, and the run goes on without it");
        std::fs::write(&until, "").expect("the scratch directory can be written to");
        let ended = running.wait().expect(0, name);
        let text = std::fs::read_to_string(&record).expect("the run has a record");
        let record: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(record["params"]["replicas"].as_u64(), Some(2), "{name}");
        let warnings = record["results"]["warnings"].as_array().expect("there are some");
        let is_said = |one: &Value| {
            let told = one.as_str().unwrap_or_default();
            told.contains(&uris[0]) && told.contains("is out, and the run goes on without it")
        };
        assert!(warnings.iter().any(is_said), "{name}: {warnings:?}");
        ended.leaves_nothing(name);
        drop((again, second, third));
    }
}

/// A namespace that is named at two addresses is one blade, and a path of it may be cut.
#[test]
fn a_blade_has_several_paths() {
    let test = "a_blade_has_several_paths";
    if !is_usable(test) {
        return;
    }
    let words = [AFAR, "serve", &format!("{NQN}=memory:256MiB"), "--nvme", "127.0.0.1:0"];
    let words = [&words[..], &["--nvme", "127.0.0.1:0"]].concat();
    let (blade, Ready { nvme, .. }) = Launch::new(words).serve();
    let uri = format!("nvme+tcp://{}/{NQN},nvme+tcp://{}/{NQN}", nvme[0], nvme[1]);
    let (ended, record) = far(&keeps("together", "12"), &uri, "paths");
    ended.expect(0, test).leaves_nothing(test);
    assert_eq!(record["params"]["far"].as_str(), Some(&*uri));
    // Named by two names it is refused: copies on it would be one.
    let twice = format!("nvme+tcp://{0}/{NQN},nvme+tcp://{0}/{NQN}/1", nvme[0]);
    let words = [AFAR, "run", "--far", &twice, "--replicas", "2", "--", "true"];
    let ended = Launch::new(words).run().expect(3, "one disk");
    assert!(ended.stderr.contains("are one disk; name it once, or another"), "{}", ended.stderr);
    drop(blade);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let refused = |flags: &[&str], wanted: &str| {
        let words = [&[AFAR, "run"], flags, &["--", "true"]].concat();
        let ended = Launch::new(words).run().expect(2, wanted);
        assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
    };
    refused(&["--far", MEMORY, "--rtt", "5us"], "--rtt");
    refused(&["--far", MEMORY, "--spin-max", "2ms"], "is not from 1us to 1ms");
    let asleep = ["--far", MEMORY, "--spin-max", "9us", "--trap", "userfaultfd"];
    refused(&asleep, "--spin-max 9.0 µs: with --trap userfaultfd or --wait sleep no thread spins");
    refused(&["--spin-max", "9us"], "--far");
    refused(&["--far", MEMORY, "--supervisor-cpu", "8000"], "afar may not use that processor");
    refused(&["--far", MEMORY, "--engine", "swap"], "--far with --engine swap");
    refused(&["--far", "memory:12"], "smaller than a page");
    refused(&["--far", "nvme+tcp://somewhere"], "no subsystem is named");
    refused(&["--far", "memry:1GiB"], "write memory:SIZE[?delay=TIME], or nvme+tcp://HOST");
    refused(&["--far", "memory:much"], "write memory:SIZE[?delay=TIME], or nvme+tcp://HOST");
    refused(&["--far-timeout", "1s"], "--far");
    refused(&["--replicas", "2"], "--far");
    refused(&["--far", MEMORY, "--replicas", "2"], "--replicas 2 needs as many blades");
    let one = "nvme+tcp://127.0.0.1:1/nqn.x,nvme+tcp://127.0.0.1:2/nqn.x";
    refused(&["--far", one, "--replicas", "2"], "--far names 1");
    let nobody = [AFAR, "run", "--far", "nvme+tcp://127.0.0.1:1/nqn.x", "--", "true"];
    let ended = Launch::new(nobody).run().expect(3, "nobody is there");
    assert!(ended.stderr.contains("127.0.0.1:1"), "{}", ended.stderr);
}
