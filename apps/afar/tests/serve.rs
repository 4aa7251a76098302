//! `afar serve` with a file, looked at through its metrics, `afar top` and `afar discover`.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Launch, Running};
use test_support::scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";

/// A file that says what is served, and goes with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let file = Self(scratch(format!("{name}.toml")));
        file.write(text);
        file
    }

    // At once, as an editor replaces it.
    fn write(&self, text: &str) {
        fs::write(&self.0, text).expect("it can be written");
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

const FIXED: &str = "nvme = [\"127.0.0.1:0\"]\nshards = 2\nmetrics = \"127.0.0.1:0\"\n";

fn subsystem(name: &str, namespaces: &[(u32, &str)]) -> String {
    let namespaces = namespaces.iter().map(|(id, uri)| format!("{{ id = {id}, uri = \"{uri}\" }}"));
    let namespaces = namespaces.collect::<Vec<_>>().join(", ");
    format!(
        "[[subsystem]]\nname = \"nqn.2026-11.local.afar:{name}\"\nnamespaces = [ {namespaces} ]\n"
    )
}

/// A target that serves, where, and where its metrics are.
struct Target {
    running: Running,
    nvme: String,
    metrics: String,
}

impl Target {
    fn start(file: &File) -> Self {
        let (running, ready) = Launch::new([AFAR, "serve", &file.path()]).serve();
        let metrics = ready.metrics.expect("they are to be read").to_string();
        Self { running, nvme: ready.nvme[0].to_string(), metrics }
    }

    fn bench(&self, namespace: u32, flags: &[&str]) -> Launch {
        let uri = format!("nvme+tcp://{}/{NQN}/{namespace}", self.nvme);
        Launch::new([&[AFAR, "bench", &uri, "--json", "-"], flags].concat())
    }

    fn reads(&self, namespace: u32, flags: &[&str]) -> bool {
        self.bench(namespace, &[&["--requests", "10"], flags].concat()).run().status == 0
    }

    // Says that the file is another, and waits until that has come to something.
    fn reload(&self, is_done: impl Fn(&Self) -> bool, what: &str) {
        self.running.signal("HUP");
        self.awaits(is_done, what);
    }

    fn awaits(&self, is_done: impl Fn(&Self) -> bool, what: &str) {
        let began = Instant::now();
        while !is_done(self) {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}");
            sleep(Duration::from_millis(20));
        }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.metrics).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it takes that");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        text
    }

    fn metrics(&self) -> String {
        let text = self.ask("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
        let (head, body) = text.split_once("\r\n\r\n").expect("it has headers");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("text/plain; version=0.0.4"), "{head}");
        body.to_owned()
    }

    fn found(&self) -> Value {
        let ended = Launch::new([AFAR, "discover", &self.nvme, "--json", "-"]).run();
        serde_json::from_str(&ended.expect(0, "afar discover").text()).expect("it is JSON")
    }

    fn stop(self) -> String {
        self.running.signal("INT");
        let ended = self.running.wait().expect(0, "afar serve");
        ended.leaves_nothing("afar serve");
        ended.stderr
    }
}

/// The sum of what has a name and these labels.
fn sum(metrics: &str, name: &str, labels: &[&str]) -> f64 {
    let lines = metrics.lines().filter(|line| line.starts_with(&format!("{name}{{")));
    let lines = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
    let values = lines.map(|line| line.rsplit(' ').next().expect("it has a value"));
    values.map(|value| value.parse::<f64>().expect("a number")).sum()
}

fn record(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn namespaces_come_go_and_grow_under_load() {
    let of = |namespaces: &[(u32, &str)]| format!("{FIXED}{}", subsystem("disk", namespaces));
    let file = File::new("reload", &of(&[(1, "memory:16MiB"), (2, "null:1GiB")]));
    let target = Target::start(&file);
    let load = target
        .bench(1, &["--rw", "randrw", "--depth", "8", "--verify", "--duration", "600s"])
        .start();
    let doomed = target.bench(2, &["--depth", "8", "--duration", "600s"]).start();
    let busy = |target: &Target, id: u32| {
        let id = format!("namespace=\"{id}\"");
        sum(&target.metrics(), "afar_namespace_commands_total", &[&id]) > 1000.0
    };
    let began = Instant::now();
    while !busy(&target, 1) || !busy(&target, 2) {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", target.metrics());
        sleep(Duration::from_millis(20));
    }
    file.write(&of(&[(1, "memory:16MiB"), (3, "null:1MiB")]));
    target.reload(|target| target.reads(3, &[]), "a namespace comes");
    assert!(!target.reads(2, &[]), "a namespace goes");
    // A disk that goes under a load fails what comes after; its connections stay.
    doomed.signal("INT");
    let doomed = doomed.wait().expect(1, "a load whose disk is gone");
    let ended = record(&doomed.text());
    let own = &ended["afar"];
    let first = own["first_failure"].to_string();
    assert!(first.contains("refused with status 0x"), "{first}");
    assert_eq!(own["reconnect_count"], 0);
    let beyond = ["--offset", "1m"];
    assert!(!target.reads(3, &beyond), "beyond the end");
    file.write(&of(&[(1, "memory:16MiB"), (3, "null:2MiB")]));
    target.reload(|target| target.reads(3, &beyond), "a namespace grows");
    // What is wrong is said, and changes nothing.
    file.write(&of(&[(3, "null:2MiB"), (3, "null:4MiB")]));
    target.running.signal("HUP");
    sleep(Duration::from_millis(300));
    assert!(target.reads(1, &[]) && target.reads(3, &beyond), "everything stays");
    let same = of(&[(1, "memory:16MiB"), (3, "null:2MiB")]);
    file.write(&same.replace("shards = 2", "shards = 1"));
    target.running.signal("HUP");
    load.signal("INT");
    let record = record(&load.wait().expect(0, "a load whose disk stays").text());
    let own = &record["afar"];
    for wrong in ["lost_count", "misdirected_count", "torn_count", "stale_count"] {
        assert_eq!(own[wrong], 0, "{wrong}: {}", own["first_failure"]);
    }
    assert_eq!(own["reconnect_count"], 0);
    let said = target.stop();
    for line in [
        "namespace 3 is null:1MiB now",
        "namespace 2 is gone",
        "namespace 3 is there twice; give one another id; everything stays as it was",
        "shards cannot change while it runs",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn subsystems_come_and_go_and_are_discovered() {
    let disk = subsystem("disk", &[(1, "memory:1MiB")]);
    let other = subsystem("other", &[(1, "null:1MiB")]);
    let file = File::new("discover", &format!("{FIXED}{disk}"));
    let target = Target::start(&file);
    let found = target.found();
    // The first entry is what was asked.
    assert_eq!((&found["generation"], &found["record_count"]), (&1.into(), &2.into()));
    assert_eq!(found["entries"][0]["kind"], "this discovery subsystem");
    let entry = &found["entries"][1];
    assert_eq!((&entry["subsystem"], &entry["transport"]), (&NQN.into(), &"tcp".into()));
    let port = target.nvme.rsplit(':').next().expect("it has a port");
    assert_eq!((&entry["address"], &entry["port"]), (&"127.0.0.1".into(), &port.into()));
    let load = target.bench(1, &["--duration", "600s"]).start();
    sleep(Duration::from_millis(300));
    file.write(&format!("{FIXED}{disk}{other}"));
    target.reload(|target| target.found()["record_count"] == 3, "a subsystem comes");
    assert_eq!(target.found()["generation"], 2);
    // Who is not among those that are allowed neither finds it nor connects, and who has stays.
    let allowed = disk.replace("namespaces", "allow = [\"nqn.x\"]\nnamespaces");
    file.write(&format!("{FIXED}{allowed}{other}"));
    target.reload(|target| target.found()["record_count"] == 2, "hosts are no longer allowed");
    assert!(!target.reads(1, &[]), "it is not for this host");
    assert!(target.reads(1, &["--host", "nqn.x"]), "it is for this one");
    let words = [AFAR, "discover", &target.nvme, "--host", "nqn.x"];
    let table = Launch::new(words).run().expect(0, "afar discover").text();
    assert!(table.starts_with("SUBSYSTEM") && table.contains(NQN), "{table}");
    let count = || sum(&target.metrics(), "afar_namespace_commands_total", &[NQN]);
    let before = count();
    sleep(Duration::from_millis(300));
    assert!(count() > before, "who has connected goes on");
    file.write(&format!("{FIXED}{other}"));
    target.reload(|target| !target.metrics().contains(NQN), "a subsystem goes");
    let ended = load.wait().expect(1, "a load whose subsystem is gone");
    assert!(ended.text().contains("the connection was lost"), "{}", ended.text());
    let said = target.stop();
    assert!(said.contains(&format!("{NQN} is gone")), "{said}");
}

#[test]
fn metrics_count_what_a_load_says() {
    let disks = subsystem("disk", &[(1, "memory:16MiB"), (7, "null:1MiB")]);
    let file = File::new("metrics", &format!("{FIXED}{disks}"));
    let target = Target::start(&file);
    let flags = ["--rw", "randrw", "--threads", "2", "--depth", "4", "--requests", "5000"];
    let ended = target.bench(1, &flags).run().expect(0, "afar bench");
    let job = &record(&ended.text())["jobs"][0];
    let metrics = target.metrics();
    for operation in ["read", "write"] {
        let said = job[operation]["total_ios"].as_f64().expect("a number");
        let labels = ["namespace=\"1\"", &format!("operation=\"{operation}\"")];
        let counted = |name: &str| sum(&metrics, &format!("afar_namespace_{name}"), &labels);
        assert_eq!(counted("commands_total"), said);
        assert_eq!(counted("transferred_bytes_total"), said * 4096.0);
        assert_eq!(counted("latency_seconds_count"), said);
        assert!(counted("latency_seconds_sum") > 0.0);
        let inf = [&labels[..], &["le=\"+Inf\""]].concat();
        assert_eq!(sum(&metrics, "afar_namespace_latency_seconds_bucket", &inf), said);
    }
    assert_eq!(sum(&metrics, "afar_namespace_commands_total", &["namespace=\"7\""]), 0.0);
    assert_eq!(sum(&metrics, "afar_namespace_failures_total", &[]), 0.0);
    assert_eq!(sum(&metrics, "afar_namespace_in_flight_commands", &[]), 0.0);
    for shard in ["shard=\"0\"", "shard=\"1\""] {
        assert!(sum(&metrics, "afar_namespace_commands_total", &[shard]) > 1000.0, "{shard}");
        // Some milliseconds old.
        let is_busy = |target: &Target| {
            sum(&target.metrics(), "afar_shard_busy_seconds_total", &[shard]) > 0.0
        };
        target.awaits(is_busy, shard);
    }
    is_well_formed(&metrics);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("hello\r\n\r\n", "400"),
    ] {
        let answer = target.ask(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    target.stop();
}

// Every sample belongs to the family above it, each family is there once, and no sample is twice.
fn is_well_formed(metrics: &str) {
    let (mut families, mut samples) = (Vec::new(), std::collections::BTreeSet::new());
    let mut lines = metrics.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let name = help.split(' ').next().expect("it has a name").to_owned();
            let of = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
            let (typed, kind) = of.and_then(|of| of.split_once(' ')).expect("it has a type");
            assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{line}");
            assert_eq!(kind == "counter", typed.ends_with("_total"), "{line}");
            assert_eq!(typed, name);
            assert!(name.starts_with("afar_") && !families.contains(&name), "{line}");
            families.push(name);
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect("it has a value");
        assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
        assert!(sample.starts_with(families.last().expect("a family is first")), "{line}");
        assert!(samples.insert(sample.to_owned()), "{line}");
    }
    assert!(families.len() > 10, "{families:?}");
}

#[test]
fn top_shows_what_is_done() {
    let file = File::new("top", &format!("{FIXED}{}", subsystem("disk", &[(1, "memory:1MiB")])));
    let target = Target::start(&file);
    let load = target.bench(1, &["--depth", "4", "--duration", "600s"]).start();
    sleep(Duration::from_millis(300));
    let top = |flags: &[&str]| {
        let words = [&[AFAR, "top", &target.metrics, "--once", "--interval", "500ms"], flags];
        Launch::new(words.concat()).run().expect(0, "afar top").text()
    };
    let view = record(&top(&["--json", "-"]));
    let one = &view["namespaces"][0];
    let number = |value: &Value| value.as_f64().expect("a number");
    assert_eq!((&one["subsystem"], &one["namespace"]), (&NQN.into(), &1.into()));
    assert!(number(&view["interval_s"]) >= 0.5, "{view}");
    assert!(number(&one["read"]["iops"]) > 100.0, "{view}");
    let mb_per_s = number(&one["read"]["iops"]) * 4096.0 / 1e6;
    // Commands and bytes are looked at one after the other, and a few come in between.
    assert!((number(&one["read"]["mb_per_s"]) / mb_per_s - 1.0).abs() < 1e-3, "{view}");
    assert!(number(&one["p50_us"]) > 0.0, "{view}");
    assert!(number(&one["p99_us"]) >= number(&one["p50_us"]), "{view}");
    assert_eq!(one["write"]["p50_us"], Value::Null);
    let shards = view["shards"].as_array().expect("a list");
    assert_eq!(shards.len(), 3, "two, and the control thread");
    let connections: f64 = shards.iter().map(|shard| number(&shard["connections"])).sum();
    assert_eq!(connections, 2.0, "{view}");
    assert!(shards.iter().any(|shard| number(&shard["utilisation"]) > 0.0), "{view}");
    let table = top(&[]);
    assert!(table.starts_with("SUBSYSTEM") && table.contains(NQN), "{table}");
    assert!(table.contains("SHARD") && !table.contains('\x1b'), "{table}");
    // A pipe gets one table after another until it is enough.
    let words = [AFAR, "top", &target.metrics, "--interval", "100ms"];
    let mut live = Launch::new(words).start();
    live.wait_for("SHARD");
    live.signal("INT");
    live.wait().expect(0, "afar top that is told to end");
    load.signal("INT");
    load.wait().expect(0, "afar bench");
    target.stop();
}

// On a terminal it is as it was afterwards: another screen is left, the cursor is back.
#[test]
fn top_leaves_the_terminal_as_it_was() {
    let file = File::new("screen", &format!("{FIXED}{}", subsystem("disk", &[(1, "null:")])));
    let target = Target::start(&file);
    let command = format!("stty -a; {AFAR} top {} --interval 100ms; stty -a", target.metrics);
    let words = ["script", "-qefc", &command, "/dev/null"];
    let mut screen = Launch::new(words).env("TERM", "xterm").start();
    screen.wait_for("SHARD");
    let afar = screen.processes().into_iter().find(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "afar")
    });
    let pid = afar.expect("it runs").to_string();
    let status = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(status.expect("kill is there").success());
    let text = screen.wait().expect(0, "afar top on a terminal").text();
    let [enter, leave] = ["\x1b[?1049h", "\x1b[?1049l"].map(|part| text.find(part));
    assert!(enter.is_some() && enter < leave, "{text:?}");
    let end = &text[leave.expect("it is left")..];
    assert!(text.contains("\x1b[?25h") && text.contains("\x1b[?7h"), "{text:?}");
    let before = &text[..enter.expect("it is entered")];
    let settings = |text: &str| text[text.find("speed").expect("stty speaks")..].to_owned();
    assert_eq!(settings(before), settings(end));
    target.stop();
}

#[test]
fn what_cannot_be_is_said_in_one_sentence() {
    let disk = subsystem("disk", &[(1, "null:")]);
    let missing = subsystem("disk", &[(1, "file:/nowhere/disk")]);
    for (name, text, status, reason) in [
        ("key", format!("shard = 1\n{disk}"), 2, "unknown field `shard`, expected one of `nvme`"),
        ("nobody", "shards = 1\n".to_owned(), 2, "there is no [[subsystem]]"),
        ("syntax", "shards = \n".to_owned(), 2, "line 1: "),
        ("poll", format!("busy_poll = \"1s\"\n{disk}"), 2, "at most 1ms"),
        ("twice", format!("{disk}{disk}"), 2, "is there twice"),
        ("uri", subsystem("disk", &[(1, "disk:x")]), 2, "no device is called"),
        ("id", subsystem("disk", &[(0, "null:")]), 2, "identifiers are 1 to 1024"),
        ("absent", format!("{FIXED}{missing}"), 1, "check the path"),
        ("address", format!("nvme = [\"x\"]\n{disk}"), 2, "nvme: \"x\" is no place to listen"),
        (
            "taken",
            format!("{}{disk}", FIXED.replace("= \"127.0.0.1", "= \"192.0.2.1")),
            1,
            "metrics at",
        ),
    ] {
        let file = File::new(name, &text);
        let ended = Launch::new([AFAR, "serve", &file.path()]).run().expect(status, name);
        assert!(ended.stderr.contains(reason), "{name}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{name}: {}", ended.stderr);
        ended.leaves_nothing(name);
    }
    let file = File::new("beside", &disk);
    let path = file.path();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["serve", &path, "--shards", "1"], 2, "--shards cannot be beside it"),
        (&["serve", &path, "a=null:"], 2, "another DISK cannot be beside it"),
        (&["serve", "/nowhere/flash.toml"], 2, "give a file that can be read"),
        (&["serve", "a=null:", "--metrics", "nowhere"], 2, "write ADDRESS:PORT"),
        (&["top", "127.0.0.1:1", "--once"], 1, "Connection refused"),
        (&["top", "--interval", "1ms"], 2, "at least 100ms"),
        (&["discover", "127.0.0.1:1"], 1, "Connection refused"),
        (&["discover", "127.0.0.1:1", "--host", ""], 2, "223 bytes at most"),
        (&["discover"], 2, "is missing"),
    ];
    for (words, status, reason) in cases {
        let ended = Launch::new([&[AFAR], words].concat()).run();
        let ended = ended.expect(status, &format!("{words:?}"));
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{words:?}: {}", ended.stderr);
    }
}

/// As a service manager starts it: with sockets that listen already, for hosts and for metrics, and
/// one to say that it is ready. Their ports are free ones, and are told there first.
const ACTIVATE: &str = "
import fcntl, os, socket, sys
ports, kept = [], []
for place in (0, 1):
    listening = socket.socket()
    listening.bind(('127.0.0.1', 0))
    listening.listen()
    ports.append(str(listening.getsockname()[1]))
    kept.append(fcntl.fcntl(listening.fileno(), fcntl.F_DUPFD, 10))
words = [word.replace('HOSTS', ports[0]).replace('METRICS', ports[1]) for word in sys.argv[1:]]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.sendto(' '.join(ports).encode(), os.environ['NOTIFY_SOCKET'])
fcntl.fcntl(manager.fileno(), fcntl.F_SETFD, fcntl.FD_CLOEXEC)
for place in (0, 1):
    os.dup2(kept[place], 3 + place)
    os.set_inheritable(3 + place, True)
os.environ.update(LISTEN_FDS='2', LISTEN_PID=str(os.getpid()))
os.execv(words[0], words)
";

#[test]
fn a_service_manager_opens_the_socket_and_hears_when_it_is_used() {
    use std::os::unix::net::UnixDatagram;
    if !support::installed(&["python3"], "serve::service") {
        return;
    }
    let path = scratch("notify");
    let manager = UnixDatagram::bind(&path).expect("it can be bound");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let serve = [AFAR, "serve", "--nvme", "127.0.0.1:HOSTS", "--metrics", "127.0.0.1:METRICS"];
    let words = ["python3", "-c", ACTIVATE].into_iter().chain(serve).chain(["disk=null:1MiB"]);
    let running = Launch::new(words).env("NOTIFY_SOCKET", &path).start();
    let hear = || {
        let mut bytes = [0; 64];
        let count = manager.recv(&mut bytes).expect("it says something");
        String::from_utf8_lossy(&bytes[..count]).trim().to_owned()
    };
    let ports = hear();
    let (hosts, metrics) = ports.split_once(' ').expect("two ports");
    assert_eq!(hear(), "READY=1");
    // Were it not these sockets, its own could not have been bound beside them.
    TcpStream::connect(format!("127.0.0.1:{hosts}")).expect("it listens");
    let text = scrape(&format!("127.0.0.1:{metrics}"));
    assert!(text.contains("afar_"), "{text}");
    running.signal("TERM");
    assert_eq!(hear(), "STOPPING=1");
    assert_eq!(running.wait().status, 0);
}

#[test]
fn what_hosts_do_is_said_and_can_be_scraped() {
    let file = File::new("events", &format!("{FIXED}{}", subsystem("disk", &[(1, "memory:1MiB")])));
    let target = Target::start(&file);
    assert!(target.reads(1, &["--host", "nqn.2026-11.example:tester"]));
    let mut stream = TcpStream::connect(&target.nvme).expect("it listens");
    stream.write_all(&[0xff; 256]).expect("it takes that");
    let lines = [
        "afar_host_events_total{host=\"nqn.2026-11.example:tester\",event=\"login\"} 1",
        "afar_host_events_total{host=\"nqn.2026-11.example:tester\",event=\"logout\"} 1",
        "afar_host_events_total{host=\"\",event=\"violation\"} 1",
        "afar_host_commands_total{host=\"nqn.2026-11.example:tester\"} 10",
    ];
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let text = scrape(&target.metrics);
        let missing = lines.iter().find(|line| !text.contains(**line));
        let Some(missing) = missing else { break };
        assert!(Instant::now() < deadline, "{missing}: {text}");
        sleep(Duration::from_millis(50));
    }
    // Lines of a moment come together.
    sleep(Duration::from_secs(1));
    target.running.signal("TERM");
    let ended = target.running.wait();
    assert_eq!(ended.status, 0);
    for line in ["logout: nqn.2026-11.example:tester at 127.0.0.1:", "violation: 127.0.0.1:"] {
        assert!(ended.stderr.contains(line), "{line}: {}", ended.stderr);
    }
}

fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n").expect("it takes that");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}
