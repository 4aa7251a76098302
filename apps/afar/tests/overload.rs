//! Too much of something: memory, addresses, faults. The program fails as it would without afar, or
//! goes on with the right bytes; nothing hangs, and nothing is left on the host.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use support::{Launch, TRAPS, installed, scratch, skip, usable};

const SIGKILL: i32 = 128 + 9;

#[test]
fn faults_beyond_the_log_are_found_again() {
    let test = "overload::log";
    if !usable("bpf", test) || !installed(&["python3"], test) {
        return;
    }
    // More pages than the log has entries, touched while nobody reads it.
    let script = "import mmap, time\n\
        pages = 90000\n\
        memory = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n\
        print('mapped', flush=True)\n\
        time.sleep(1)\n\
        for page in range(pages): memory[page * 4096 + page % 4096] = page % 251\n\
        print('touched', flush=True)\n\
        time.sleep(1)\n\
        print(all(memory[p * 4096 + p % 4096] == p % 251 for p in range(pages)), flush=True)\n";
    let record = scratch("overload.json");
    let json = record.to_str().expect("paths here are text");
    let flags = ["--trap", "bpf", "--local", "64MiB", "--json", json];
    let launch = Launch::new(["/usr/bin/python3", "-c", script]);
    let mut run = launch.under_afar(&flags).limit(Duration::from_secs(60)).start();
    run.wait_for("mapped");
    run.signal("STOP");
    run.wait_for("touched");
    run.signal("CONT");
    let ended = run.wait().expect(0, "log");
    assert_eq!(ended.text(), "mapped\ntouched\nTrue\n");
    ended.leaves_nothing("log");
    let said = fs::read_to_string(&record).expect("the record was written");
    assert!(said.contains("the log was full"), "{said}");
    let run: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    let fetched = run["results"]["faults"]["fetch_count"].as_u64();
    assert!(fetched > Some(70_000), "found again, so evicted, so fetched: {fetched:?}");
}

#[test]
fn half_a_terabyte_in_pieces_is_managed() {
    if !installed(&["python3"], "overload::pieces") {
        return;
    }
    let script = "import mmap\n\
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000\n\
        kept = [mmap.mmap(-1, 8 << 30, flags=flags) for _ in range(64)]\n\
        for number, memory in enumerate(kept): memory[0] = memory[-1] = number\n\
        first, last = [memory[0] for memory in kept], [memory[-1] for memory in kept]\n\
        print(first == last == list(range(64)))\n\
        kept.clear()\n\
        again = mmap.mmap(-1, 64 << 30, flags=flags)\n\
        again[0] = 8\n\
        print(again[0], again[-1])\n";
    let record = scratch("beyond.json");
    let json = record.to_str().expect("paths here are text");
    for trap in TRAPS.into_iter().filter(|trap| usable(trap, "overload::pieces")) {
        let launch = Launch::new(["/usr/bin/python3", "-c", script]);
        let flags = ["--trap", trap, "--local", "50%", "--json", json];
        let ended = launch.under_afar(&flags).run().expect(0, trap);
        assert_eq!(ended.text(), "True\n8 0\n", "{trap}: {}", ended.stderr);
        ended.leaves_nothing(trap);
        assert_eq!(lost(&record), 0, "{trap}");
        assert!(faults(&record, "first_touch_count") >= 2 * 64 + 2, "{trap}");
    }
}

/// A page here and there in more memory than there are tables for: what goes unmanaged is counted,
/// and once the memory is given back there are tables again.
#[test]
fn a_full_table_is_counted_and_nothing_of_it_is_lost() {
    if !installed(&["python3"], "overload::table") {
        return;
    }
    let text = fs::read_to_string("/proc/meminfo").expect("there is /proc");
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("it says");
    let kib: u64 = total.trim().trim_end_matches("kB").trim().parse().expect("a number");
    let leaves = (kib >> 11) * 2;
    if leaves > 1 << 17 {
        return skip("overload::table", "the machine has too much memory to fill its tables");
    }
    let (pieces, again) = (leaves + 17_500, 20_000);
    let script = format!(
        "import mmap\n\
         flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000\n\
         for pieces in ({pieces}, {again}):\n \
         memory = mmap.mmap(-1, pieces << 21, flags=flags)\n \
         for piece in range(pieces): memory[piece << 21] = piece % 251\n \
         print(all(memory[piece << 21] == piece % 251 for piece in range(pieces)))\n \
         memory.close()\n"
    );
    let record = scratch("table.json");
    let json = record.to_str().expect("paths here are text");
    for trap in TRAPS.into_iter().filter(|trap| usable(trap, "overload::table")) {
        let launch = Launch::new(["/usr/bin/python3", "-c", &script]);
        let launch = launch.unmanaged("what is beyond the tables stays local");
        let flags = ["--trap", trap, "--local", "100%", "--json", json];
        let ended = launch.under_afar(&flags).run();
        assert_eq!(ended.text(), "True\nTrue\n", "{trap}: {}", ended.stderr);
        let (lost, touched) = (lost(&record), faults(&record, "first_touch_count"));
        assert!(lost > 0 && lost <= pieces - leaves, "{trap}: {lost} of {pieces}");
        assert!(touched + lost >= pieces + again, "{trap}: {touched} and {lost}");
    }
}

fn results(record: &Path) -> serde_json::Value {
    let said = fs::read_to_string(record).expect("the record was written");
    let run: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    run["results"].clone()
}

fn faults(record: &Path, field: &str) -> u64 {
    results(record)["faults"][field].as_u64().expect("a count")
}

// Touches that could not be managed.
fn lost(record: &Path) -> u64 {
    let lost = results(record)["coverage"]["lost"].clone();
    let counts = lost.as_array().into_iter().flatten().filter_map(|one| one["count"].as_u64());
    counts.sum()
}

#[test]
fn memory_limit_of_the_program_kills_it() {
    if !installed(&["python3"], "overload::memory") {
        return;
    }
    let group = match MemoryGroup::new(64 << 20) {
        Ok(group) => group,
        Err(error) => return skip("overload::memory", &format!("no control group: {error}")),
    };
    let procs = group.0.join("cgroup.procs");
    let script = format!(
        "echo $$ > {} && exec /usr/bin/python3 -c 'b = bytearray(300 << 20); print(len(b))'",
        procs.display()
    );
    let launch = Launch::new(["sh", "-c", &script]);
    launch.clone().run().expect(SIGKILL, "native");
    for trap in TRAPS.into_iter().filter(|trap| usable(trap, "overload::memory")) {
        let ended = launch.under_afar(&["--trap", trap, "--local", "25%"]).run();
        let ended = ended.expect(SIGKILL, trap);
        assert_eq!(ended.text(), "");
        ended.leaves_nothing(trap);
    }
}

/// A control group whose members may use so much memory. Removed when dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn new(bytes: u64) -> std::io::Result<Self> {
        let name = format!("afar-test.{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory");
        let (path, limit) = if first.is_dir() {
            (first.join(name), "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup").join(name), "memory.max")
        };
        fs::create_dir(&path)?;
        let group = Self(path);
        fs::write(group.0.join(limit), bytes.to_string())?;
        Ok(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Its last member may still be on its way out.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
