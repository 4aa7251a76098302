//! The swap engine: programs run under it as they do natively, their memory is where it should be,
//! and the host is as it was, whoever is killed.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Launch, Running, kill, program, scratch, swap_usable};

const SWAP: [&str; 2] = ["--engine", "swap"];
const SEED: u64 = 20_161_102;
/// A keeper has a swap device to empty.
const PATIENCE: Duration = Duration::from_secs(20);

// Swap space is the host's: what is left over must be of the run that was just looked at.
static ALONE: Mutex<()> = Mutex::new(());

fn alone(test: &str) -> Option<MutexGuard<'static, ()>> {
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let usable = swap_usable(&format!("swap::{test}"));
    // Of a test that has failed just now.
    let start = Instant::now();
    while !Host::now().journals.is_empty() && start.elapsed() < PATIENCE {
        sleep(Duration::from_millis(5));
    }
    usable.then_some(guard)
}

/// What a run may change on the host, and must put back.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    swaps: String,
    devices: Vec<String>,
    groups: Vec<String>,
    page_cluster: String,
    journals: Vec<String>,
}

impl Host {
    fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let names = |directory: &str, wanted: &str| {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.filter(|name| name.contains(wanted)).collect();
            names.sort();
            names
        };
        let devices = names("/sys/block", "zram").into_iter().map(|name| {
            let size = read(&format!("/sys/block/{name}/disksize"));
            format!("{name} {}", size.trim())
        });
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"];
        Self {
            swaps: read("/proc/swaps"),
            devices: devices.collect(),
            groups: roots.iter().flat_map(|root| names(root, "afar")).collect(),
            page_cluster: read("/proc/sys/vm/page-cluster"),
            journals: names("/run/afar", "swap"),
        }
    }

    #[track_caller]
    fn returns(&self, what: &str) {
        let start = Instant::now();
        loop {
            let now = Self::now();
            if now == *self {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{what}: {now:?} is not {self:?}");
            sleep(Duration::from_millis(5));
        }
    }
}

/// Runs a C program of the tests natively and under the engine; answers the record.
fn same_as_native(name: &str, flags: &[&str]) -> Value {
    same(&Launch::new([program(name)]), flags)
}

fn same(native: &Launch, flags: &[&str]) -> Value {
    let before = Host::now();
    let json = scratch(&format!("swap-{}.json", std::process::id()));
    let path = json.display().to_string();
    let flags: Vec<&str> = SWAP.iter().chain(flags).chain(&["--json", &path]).copied().collect();
    let wanted = native.clone().run().expect(0, "the native run");
    let ended = native.under_afar(&flags).run().expect(0, "the run under afar");
    assert_eq!(ended.text(), wanted.text());
    ended.leaves_nothing("swap");
    before.returns("a run that ended");
    let record = serde_json::from_slice(&fs::read(&json).expect("it was written"));
    let _gone = fs::remove_file(json);
    record.expect("it is JSON")
}

fn number(record: &Value, pointer: &str) -> u64 {
    let value = record.pointer(pointer).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("{pointer} in {record}"))
}

const MIB: u64 = 1 << 20;

#[test]
fn memory_beyond_the_budget_is_swapped_and_comes_back() {
    let Some(_alone) = alone("memory_beyond") else { return };
    let flags = ["--local", "8MiB", "--rtt", "3us", "--page-cluster", "0"];
    let record = same_as_native("cycle", &flags);
    assert_eq!(record["params"]["engine"], "swap");
    assert_eq!(record["params"]["page_cluster"], 0);
    assert_eq!(record["results"]["budget"]["held"], true);
    let batch = number(&record, "/results/budget/batch_bytes");
    assert!(
        batch <= 64 * 4096 * std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
    );
    assert!(number(&record, "/results/budget/peak_resident_bytes") <= 8 * MIB + batch);
    let fetched = number(&record, "/results/faults/fetch_count");
    // Three rounds over 8192 pages, of which fewer than 2048 are local.
    assert!(fetched > 3 * (8192 - 2048), "{fetched} fetches");
    assert!(number(&record, "/results/fetched_bytes") >= fetched * 4096);
    assert!(number(&record, "/results/written_back_bytes") > 0);
    // No fault is quicker than what was asked for.
    assert_eq!(number(&record, "/results/fault_latency/requested/p50_ns"), 3000);
    assert!(number(&record, "/results/fault_latency/total/min_ns") >= 3000);
    let logged = number(&record, "/results/fault_latency/requested/count");
    assert!(logged * 100 >= fetched * 95, "{logged} of {fetched} faults logged");
}

#[test]
fn a_static_program_is_managed() {
    let Some(_alone) = alone("a_static_program") else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cycle.c");
    let path = scratch("cycle-static");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-static", "-pthread", "-o"]).arg(&path).arg(&source);
    assert!(cc.status().expect("cc is installed").success());
    let native = Launch::new([&path]);
    let record = same(&native, &["--local", "8MiB"]);
    assert!(number(&record, "/results/faults/fetch_count") > 3 * (8192 - 2048));
}

#[test]
fn a_tree_of_processes_shares_one_budget() {
    let Some(_alone) = alone("a_tree") else { return };
    let cycle = program("cycle").display().to_string();
    let script = format!("{cycle} & {cycle}; wait");
    let native = Launch::new(["sh", "-c", &script]);
    let record = same(&native, &["--local", "25%"]);
    assert_eq!(record["params"]["budget_scope"], "tree");
    let images = record["results"]["images"].as_array().expect("there are some");
    let cycles = images.iter().filter(|image| image["name"] == "cycle").count();
    assert_eq!(cycles, 2, "{images:?}");
}

#[test]
fn pages_read_ahead_share_a_round_trip() {
    let Some(_alone) = alone("pages_read_ahead") else { return };
    // A page takes 819.2 ns at 40 Gb/s.
    let link =
        ["--local", "24MiB", "--rtt", "10us", "--bandwidth", "40Gbps", "--link", "per-fault"];
    let run =
        |pages: &str| same_as_native("shared", &[&link[..], &["--page-cluster", pages]].concat());
    let alone = run("0");
    assert_eq!(number(&alone, "/results/faults/prefetch_count"), 0);
    assert!(number(&alone, "/results/fault_latency/requested/max_ns").abs_diff(10_819) < 50);
    let ahead = run("3");
    // The child's pages, all but those of the first cluster.
    let came = number(&ahead, "/results/faults/prefetch_count");
    assert!(came > 8192, "{came} pages came ahead");
    // Eight and the one that was wanted: one round trip and as many transfers, not a second trip.
    let longest = number(&ahead, "/results/fault_latency/requested/max_ns");
    assert!((11_638..20_000).contains(&longest), "{longest}");
}

#[test]
fn status_and_signals_are_the_programs() {
    let Some(_alone) = alone("status") else { return };
    let before = Host::now();
    for (script, status) in [("exit 7", 7), ("kill -TERM $$", 128 + 15)] {
        Launch::new(["sh", "-c", script]).under_afar(&SWAP).run().expect(status, script);
    }
    let mut run = busy(&[]);
    run.wait_for("ready");
    run.signal("TERM");
    run.wait().expect(128 + 15, "a run that was asked to end").leaves_nothing("it");
    let mut run = busy(&[]);
    run.wait_for("ready");
    run.signal_group("INT");
    run.wait().expect(128 + 2, "an interrupt from the terminal").leaves_nothing("it");
    before.returns("runs that ended by signals");
}

#[test]
fn what_cannot_be_run_leaves_the_host_alone() {
    let Some(_alone) = alone("what_cannot_be_run") else { return };
    let before = Host::now();
    let refused = |words: &[&str], flags: &[&str], status: i32| {
        let flags: Vec<&str> = SWAP.iter().chain(flags).copied().collect();
        let ended = Launch::new(words).under_afar(&flags).run();
        let stderr = ended.expect(status, &format!("{words:?}")).stderr;
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        before.returns(&format!("{words:?}"));
        stderr
    };
    assert!(refused(&["/no/such/program"], &[], 127).contains("not found"));
    assert!(refused(&["true"], &["--local", "4000KiB"], 2).contains("less than the 4.0 MiB"));
    assert!(refused(&["true"], &["--rtt", "2ms"], 2).contains("more than the 1.0 ms"));
}

#[test]
fn kill_at_any_time_leaves_nothing() {
    let Some(_alone) = alone("kill_at_any_time") else { return };
    let before = Host::now();
    let mut state = SEED;
    for round in 0..100 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let run = busy(&["--page-cluster", "0"]);
        // From before the keeper runs to well after the program has begun.
        sleep(Duration::from_micros((state >> 33) % 150_000));
        run.signal("KILL");
        let what = format!("round {round} of seed {SEED}");
        run.wait().expect(128 + 9, &what).leaves_nothing(&what);
        before.returns(&what);
    }
    // Each has left its socket.
    let repaired = doctor(&["--repair"]);
    assert!(!repaired.contains("not removed"), "{repaired}");
}

#[test]
fn doctor_puts_back_what_a_killed_keeper_has_left() {
    let Some(_alone) = alone("doctor") else { return };
    let before = Host::now();
    let mut state = SEED;
    for round in 0..10 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut run = busy(&["--page-cluster", "1"]);
        if round == 0 {
            run.wait_for("ready");
        } else {
            sleep(Duration::from_micros((state >> 33) % 150_000));
        }
        // The keeper first, so that it does not see its run end.
        let (keepers, others) = keepers(&run);
        for pid in keepers.iter().chain(&others) {
            kill("KILL", &pid.to_string());
        }
        let what = format!("round {round} of seed {SEED}");
        // It may have noticed that its keeper is gone before it was killed itself.
        run.wait().leaves_nothing(&what);
        // A keeper that is in the kernel ends when it comes back from there; until then it is one.
        keepers.iter().for_each(|&pid| wait_for_end(pid, &what));
        if round == 0 {
            assert_ne!(Host::now(), before, "{what}: nobody is left to put it back");
            let found = doctor(&[]);
            assert!(found.contains("changes to this host by process"), "{found}");
            assert!(found.contains("vm.page-cluster, which was "), "{found}");
        }
        let repaired = doctor(&["--repair"]);
        assert!(!repaired.contains("not removed"), "{what}: {repaired}");
        before.returns(&format!("{what}, where doctor said: {repaired}"));
        let found = doctor(&[]);
        assert!(found.contains("ok  clean"), "{what}: {found}");
    }
}

#[test]
fn runs_at_once_have_their_own_budgets_and_delays() {
    let Some(_alone) = alone("runs_at_once") else { return };
    let before = Host::now();
    let cycle = program("cycle");
    let start = |name: &str, rtt: &str| {
        let json = scratch(&format!("swap-at-once-{name}.json"));
        let path = json.display().to_string();
        let flags = [&SWAP[..], &["--local", "8MiB", "--rtt", rtt, "--json", &path]].concat();
        let launch = Launch::new([&cycle]);
        (launch.under_afar(&flags).start(), json)
    };
    let runs = [start("near", "2us"), start("far", "40us")];
    for ((run, json), rtt_ns) in runs.into_iter().zip([2000, 40_000]) {
        run.wait().expect(0, "two runs at once").leaves_nothing("two runs at once");
        let text = fs::read_to_string(&json).expect("it was written");
        let record: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(number(&record, "/results/fault_latency/requested/p50_ns"), rtt_ns);
        assert_eq!(record["results"]["budget"]["held"], true);
        let _gone = fs::remove_file(json);
    }
    before.returns("two runs at once");
}

#[test]
fn the_setting_of_one_run_is_not_changed_by_another() {
    let Some(_alone) = alone("the_setting") else { return };
    let before = Host::now();
    let mut first = busy(&["--page-cluster", "0"]);
    first.wait_for("ready");
    let flags = [&SWAP[..], &["--page-cluster", "5"]].concat();
    let second = Launch::new(["true"]).under_afar(&flags).run().expect(3, "the second");
    assert!(second.stderr.contains("vm.page-cluster is set by another run"), "{}", second.stderr);
    assert_eq!(Host::now().page_cluster.trim(), "0");
    first.signal("TERM");
    first.wait().expect(128 + 15, "the first");
    before.returns("both");
}

#[test]
fn a_running_run_can_be_changed() {
    let Some(_alone) = alone("a_running_run") else { return };
    let mut run = busy(&["--rtt", "2us"]);
    run.wait_for("ready");
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_afar"));
    let pid = run.pid().to_string();
    ctl.args(["ctl", "--json", "-", &pid, "set", "local=16MiB", "rtt=9us"]);
    let answer = ctl.output().expect("it runs");
    let state: Value = serde_json::from_slice(&answer.stdout).expect("it is JSON");
    assert_eq!(state.pointer("/tiers/0/rtt_ns").and_then(Value::as_u64), Some(9000), "{state}");
    run.signal("TERM");
    run.wait().expect(128 + 15, "the run");
}

fn busy(flags: &[&str]) -> Running {
    let flags: Vec<&str> = [&SWAP[..], &["--local", "8MiB"], flags].concat();
    let launch = Launch::new([program("busy")]).limit(Duration::from_secs(30));
    launch.under_afar(&flags).limit(Duration::from_secs(30)).start()
}

// Processes of the run: those that keep swap space, and all others.
fn keepers(run: &Running) -> (Vec<u32>, Vec<u32>) {
    run.processes().into_iter().partition(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command == b"afar\0keep\0"
    })
}

#[track_caller]
fn wait_for_end(pid: u32, what: &str) {
    let start = Instant::now();
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    while !(stat().is_empty() || stat().contains(") Z ")) {
        assert!(start.elapsed() < PATIENCE, "{what}: {}", stat());
        sleep(Duration::from_millis(5));
    }
}

fn doctor(flags: &[&str]) -> String {
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_afar"));
    let output = doctor.arg("doctor").args(flags).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
