//! Real programs: their output under afar is that of the native run, whatever is local and whoever
//! leaves.
//!
//! `AFAR_TEST_FULL=1` runs the full sizes as root, which takes the better part of an hour; with
//! `--nocapture` it shows how far it is.

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use support::{
    Launch, Running, full, installed, open_scratch, ordinary_user_usable, progress, scratch, usable,
};

const SHARES: [&str; 4] = ["10%", "25%", "50%", "100%"];
/// What an ordinary user gets by, with a trap that is ten times slower.
const ORDINARY_SHARES: [&str; 2] = ["50%", "100%"];
const POLICIES: [&str; 5] = ["fifo", "clock", "lru", "random", "s3fifo"];

#[test]
fn sort_under_every_policy() {
    if !installed(&["sort"], "programs::sort") {
        return;
    }
    let input = scratch("sort.in");
    let lines = if full() { 10_000_000_u64 } else { 50_000 };
    let number = |line: u64| line.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let text: String = (0..lines).map(|line| format!("{:016x} some\n", number(line))).collect();
    fs::write(&input, text).expect("the scratch directory can be written to");
    let launch = Launch::new(["sort", "--parallel=2"]).stdin(&input);
    every_share(&launch, "sort");
    every_policy(&launch, "sort");
    same(&launch, &["--local", "25%", "--prefetch", "next-4"], "sort");
}

#[test]
fn python_sorts_strings_under_every_policy() {
    if !installed(&["python3"], "programs::python") {
        return;
    }
    let count = if full() { 5_000_000 } else { 50_000 };
    let script = format!(
        "import hashlib\nx = [str(i * 7919 % 1000003) for i in range({count})]\nx.sort()\n\
         print(hashlib.sha256(''.join(x).encode()).hexdigest())"
    );
    let launch = Launch::new(["/usr/bin/python3", "-c", &script]);
    every_share(&launch, "python");
    every_policy(&launch, "python");
    same(&launch, &["--local", "25%", "--rtt", "2us", "--allow-below-floor"], "python");
    if !full() {
        // Half an hour and more at 70 us a fault.
        same(&launch, &["--local", "50%", "--trap", "userfaultfd"], "python");
    }
}

/// The time of arrival in a page's state wraps around after a second.
#[test]
fn a_page_fetched_ahead_long_ago_is_there() {
    if !installed(&["python3"], "programs::ahead") || !usable("bpf", "programs::ahead") {
        return;
    }
    let script = "import mmap, time\n\
        m = mmap.mmap(-1, 32 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n\
        for page in range(8192): m[page * 4096] = 1\n\
        times = []\n\
        for page in range(64, 576, 128):\n\
        \x20 m[page * 4096]\n\
        \x20 time.sleep(0.7)\n\
        \x20 start = time.perf_counter_ns()\n\
        \x20 m[(page + 1) * 4096]\n\
        \x20 times.append(time.perf_counter_ns() - start)\n\
        print(min(times))";
    let launch = Launch::new(["/usr/bin/python3", "-c", script]);
    let flags = ["--trap", "bpf", "--local", "16MiB", "--policy", "fifo", "--prefetch", "next-1"];
    let ended = launch.under_afar(&flags).run().expect(0, "a page fetched ahead");
    let ns: u64 = ended.text().trim().parse().expect("a number");
    assert!(ns < 5_000_000, "it took {ns} ns");
}

#[test]
fn node_builds_an_object_graph() {
    if !installed(&["node"], "programs::node") {
        return;
    }
    let nodes = if full() { "1000" } else { "40" };
    let script = source("graph.js");
    every_share(&Launch::new([Path::new("node"), &script, Path::new(nodes)]), "node");
}

#[test]
fn java_allocates_and_collects() {
    if !installed(&["java"], "programs::java") {
        return;
    }
    let rounds = if full() { "1000000" } else { "10000" };
    let script = source("Collect.java");
    let words = [Path::new("java"), Path::new("-Xmx1g"), &script, Path::new(rounds)];
    let mut launch = Launch::new(words);
    if !full() {
        launch =
            launch.unmanaged("what the virtual machine needs for itself is more than the heap");
    }
    every_share(&launch, "java");
}

#[test]
fn sqlite_joins_in_memory() {
    if !installed(&["sqlite3"], "programs::sqlite") {
        return;
    }
    let rows = if full() { 500_000 } else { 80_000 };
    let script = format!(
        "create table a as with recursive n(i) as (select 0 union all select i + 1 from n \
         where i < {rows}) select i, i * 7919 % 10007 as k, printf('row %d', i) as t from n;\n\
         create index on_k on a(k);\n\
         select count(*), sum(x.i * y.i % 97), max(x.t || y.t) from a x join a y on x.k = y.k \
         where x.i % 3 = 0;"
    );
    every_share(&Launch::new(["sqlite3", ":memory:", &script]), "sqlite");
}

#[test]
fn make_builds_a_project() {
    if !installed(&["make", "gcc"], "programs::make") {
        return;
    }
    let directory = open_scratch("project");
    fs::create_dir_all(&directory).expect("the scratch directory can be written to");
    let files = if full() { 30 } else { 6 };
    let write = |name: String, text: String| {
        fs::write(directory.join(name), text).expect("the scratch directory can be written to");
    };
    for file in 0..files {
        let own = (0..600).map(|n| format!("int g{file}_{n}(int x) {{ return x * {n}; }}\n"));
        let own: String = own.collect();
        let text =
            format!("#include <stdio.h>\n{own}int f{file}(int x) {{ return x * {file} + 1; }}\n");
        write(format!("f{file}.c"), text);
    }
    let list = |f: &dyn Fn(usize) -> String| (0..files).map(f).collect::<String>();
    let declared = list(&|file| format!("int f{file}(int);\n"));
    let sum = list(&|file| format!("+ f{file}(3)"));
    let main =
        format!("#include <stdio.h>\n{declared}int main(void) {{ printf(\"%d\\n\", 0 {sum}); }}\n");
    write("main.c".into(), main);
    let objects = list(&|file| format!(" f{file}.o"));
    let rules = format!("all: main.o{objects}\n\tgcc -o all $^\n\t./all\n");
    write("Makefile".into(), rules);
    everyone_may_write(&directory);
    let path = directory.display();
    let script = format!("make -s -C {path} -j2 -B 2>&1");
    every_share(&Launch::new(["sh", "-c", &script]), "make");
}

#[test]
fn memcached_keeps_what_four_clients_store() {
    if !installed(&["memcached"], "programs::memcached") || !usable("bpf", "programs::memcached") {
        return;
    }
    for user in users("programs::memcached") {
        let port = free_port();
        let words = [
            "memcached",
            "-m",
            "1024",
            "-t",
            "4",
            "-U",
            "0",
            "-u",
            "root",
            "-l",
            "127.0.0.1",
            "-p",
            &port,
        ];
        let started = Instant::now();
        let server = user.launch(&Launch::new(words)).start();
        let keys = if full() { 100_000 } else { 3_000 };
        scope(|scope| {
            for client in 0..4 {
                let port = &port;
                scope.spawn(move || store_and_check(port, client, keys));
            }
        });
        server.signal("TERM");
        server.wait().leaves_nothing("memcached");
        if full() {
            progress(&format!("memcached {user:?}: {} ms", started.elapsed().as_millis()));
        }
    }
}

#[test]
fn redis_saves_a_snapshot_under_writes() {
    let needed = ["redis-server", "redis-cli", "redis-benchmark"];
    if !installed(&needed, "programs::redis") || !usable("bpf", "programs::redis") {
        return;
    }
    for (number, user) in users("programs::redis").into_iter().enumerate() {
        let directory = open_scratch(&format!("redis-{number}"));
        let _old = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("the scratch directory can be written to");
        everyone_may_write(&directory);
        let started = Instant::now();
        let (port, server) = redis(&directory, Some(user));
        let keys = if full() { "500000" } else { "20000" };
        redis_cli(&port, &["DEBUG", "POPULATE", keys]);
        // Nobody writes yet, so the digest is that of the moment of the fork. Not in one
        // transaction: Redis puts a fork asked for in a transaction off.
        let digest = redis_cli(&port, &["DEBUG", "DIGEST"]).trim().to_owned();
        let answer = redis_cli(&port, &["BGSAVE"]);
        assert_eq!((digest.len(), answer.trim()), (40, "Background saving started"));
        let writes = ["-p", &port, "-t", "set", "-n", "10000", "-r", "1000", "-q"];
        let load = Command::new("redis-benchmark").args(writes).output();
        assert!(load.expect("it is installed").status.success());
        while redis_cli(&port, &["INFO", "persistence"]).contains("rdb_bgsave_in_progress:1") {
            sleep(Duration::from_millis(20));
        }
        assert_ne!(redis_cli(&port, &["DEBUG", "DIGEST"]).trim(), digest, "nothing was written");
        server.signal("KILL");
        server.wait().leaves_nothing("redis");
        let (port, copy) = redis(&directory, None);
        assert_eq!(redis_cli(&port, &["DEBUG", "DIGEST"]).trim(), digest, "{user:?}");
        drop(copy);
        if full() {
            progress(&format!("redis {user:?}: {} ms", started.elapsed().as_millis()));
        }
    }
}

/// Who runs a server, and with how much local memory.
#[derive(Debug, Clone, Copy)]
enum User {
    Root(&'static str),
    Ordinary(&'static str),
}

impl User {
    fn launch(self, launch: &Launch) -> Launch {
        match self {
            Self::Root(share) => launch.under_afar(&["--trap", "bpf", "--local", share]),
            Self::Ordinary(share) => launch.as_ordinary_user(&["--local", share]),
        }
    }
}

fn users(test: &str) -> Vec<User> {
    let mut users = SHARES.map(User::Root).to_vec();
    if with_ordinary_user(test) {
        users.extend(ORDINARY_SHARES.map(User::Ordinary));
    }
    users
}

// The full sizes are too much for a trap that takes 70 us a fault.
fn with_ordinary_user(test: &str) -> bool {
    !full() && ordinary_user_usable(test)
}

fn everyone_may_write(directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let files = fs::read_dir(directory).expect("it exists").flatten().map(|entry| entry.path());
    for path in files.chain([directory.to_owned()]) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
}

fn redis(directory: &Path, user: Option<User>) -> (String, Running) {
    let port = free_port();
    let directory = directory.to_str().expect("paths here are text");
    let words = ["redis-server", "--port", &port, "--dir", directory, "--save", "", "--daemonize"];
    let words = words.iter().chain(&["no", "--enable-debug-command", "yes"]);
    let mut launch = Launch::new(words);
    if let Some(user) = user {
        launch = user.launch(&launch);
    }
    let mut server = launch.start();
    server.wait_for("Ready to accept connections");
    (port, server)
}

fn redis_cli(port: &str, words: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", port]).args(words).output();
    String::from_utf8_lossy(&output.expect("it is installed").stdout).into_owned()
}

fn store_and_check(port: &str, client: u32, keys: u32) {
    let mut connection = (0..200).find_map(|_| {
        sleep(Duration::from_millis(25));
        TcpStream::connect(format!("127.0.0.1:{port}")).ok()
    });
    let connection = connection.as_mut().expect("the server accepts within five seconds");
    let mut answers = BufReader::new(connection.try_clone().expect("a socket can be shared"));
    let mut ask = |request: String, lines: usize| {
        connection.write_all(request.as_bytes()).expect("the server is there");
        let mut answer = String::new();
        for _ in 0..lines {
            answers.read_line(&mut answer).expect("the server answers");
        }
        answer
    };
    let value = |key: u32| format!("{key:08}").repeat(100);
    for key in 0..keys {
        let stored = ask(format!("set {client}.{key} 0 0 800\r\n{}\r\n", value(key)), 1);
        assert_eq!(stored, "STORED\r\n");
    }
    for key in 0..keys {
        let got = ask(format!("get {client}.{key}\r\n"), 3);
        assert_eq!(got.lines().nth(1), Some(value(key).as_str()), "key {key} of {client}");
    }
}

fn free_port() -> String {
    test_support::free_port().to_string()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn every_share(launch: &Launch, name: &str) {
    for share in SHARES {
        same(launch, &["--trap", "bpf", "--local", share], name);
    }
    if with_ordinary_user(&format!("programs::{name}")) {
        for share in ORDINARY_SHARES {
            compare(launch, name, share, |launch| launch.as_ordinary_user(&["--local", share]));
        }
    }
}

fn every_policy(launch: &Launch, name: &str) {
    for policy in POLICIES {
        same(launch, &["--local", "25%", "--policy", policy], name);
    }
}

fn same(launch: &Launch, flags: &[&str], name: &str) {
    if !usable("bpf", &format!("programs::{name}")) {
        return;
    }
    compare(launch, name, &format!("{flags:?}"), |launch| launch.under_afar(flags));
}

fn compare(launch: &Launch, name: &str, how: &str, under: impl Fn(&Launch) -> Launch) {
    let limit = Duration::from_secs(if full() { 1800 } else { 60 });
    let launch = launch.clone().limit(limit);
    let started = Instant::now();
    let expected = launch.clone().run().expect(0, name).stdout;
    let native = started.elapsed();
    let ended = under(&launch).run().expect(0, &format!("{name} {how}"));
    if full() {
        let far = started.elapsed() - native;
        progress(&format!("{name} {how}: {} ms, native {}", far.as_millis(), native.as_millis()));
    }
    assert!(ended.stdout == expected, "{name} {how}: other output:\n{:.2000}", ended.text());
    ended.leaves_nothing(name);
}
