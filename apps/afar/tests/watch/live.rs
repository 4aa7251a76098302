//! Runs and targets, by the events that the page gets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Launch, Running, usable};

const LIMIT: Duration = Duration::from_secs(180);

/// An `afar watch`, and its address.
pub(crate) struct Watch {
    pub(crate) running: Running,
    pub(crate) url: String,
}

impl Watch {
    pub(crate) fn start(words: &[&str]) -> Self {
        let all = [env!("CARGO_BIN_EXE_afar"), "watch"];
        let mut running = Launch::new(all.iter().chain(words)).start();
        running.wait_for("?token=");
        running.wait_for("\n");
        let url = running.output().trim().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self { running, url }
    }

    /// The port and the token.
    pub(crate) fn parts(&self) -> (u16, &str) {
        let rest = self.url.strip_prefix("http://127.0.0.1:").expect("loopback");
        let (port, token) = rest.split_once("/?token=").expect("a token");
        (port.parse().expect("a port"), token)
    }

    pub(crate) fn events(&self) -> Events {
        let (port, token) = self.parts();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a time");
        let head = format!("GET /events?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it takes that");
        Events(BufReader::new(stream))
    }
}

/// The stream of events.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    /// Waits until the page says `wanted`; all of its sections then.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, wanted: &str) -> String {
        let start = Instant::now();
        let mut last = String::new();
        loop {
            assert!(start.elapsed() < LIMIT, "{wanted:?} does not come: {last}");
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).expect("it goes on"), 0, "{wanted}: {last}");
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data).expect("it is JSON");
            let parts = event["parts"].as_array().expect("parts").iter();
            let parts: String = parts.filter_map(Value::as_str).collect();
            last = format!("{}\n{parts}", event["state"].as_str().expect("a sentence"));
            if last.contains(wanted) {
                return last;
            }
        }
    }
}

/// A run of a program that sleeps, and that answers.
fn sleeper() -> Running {
    let words = ["timeout", "-s", "KILL", "170", "sleep", "160"];
    let run = Launch::new(words).unmanaged("nothing is concluded from a program that sleeps");
    let running = run.under_afar(&["--no-calibrate"]).start();
    let pid = running.pid().to_string();
    let start = Instant::now();
    while Launch::new([env!("CARGO_BIN_EXE_afar"), "ctl", &pid, "show"]).run().status != 0 {
        assert!(start.elapsed() < LIMIT, "the run does not answer: {}", running.errors());
        sleep(Duration::from_millis(50));
    }
    running
}

#[test]
fn a_run_that_ends_is_followed_by_the_next_of_its_program() {
    if !usable("bpf", "watch::run") {
        return;
    }
    let first = sleeper();
    let pid = first.pid();
    let watch = Watch::start(&[&pid.to_string()]);
    let mut events = watch.events();
    let page = events.wait_for("It has run for");
    assert!(page.contains(&format!("timeout (process id {pid})")), "{page}");
    assert!(page.contains("pages a second") && page.contains("stalls"), "{page}");
    // Two moments make a picture.
    events.wait_for("id=\"r1-memory\"");
    first.signal("TERM");
    let _ended = first.wait();
    let page = events.wait_for("is no run of afar");
    assert!(page.contains(&format!("timeout (process id {pid})")), "the last stays: {page}");
    let next = sleeper();
    let page = events.wait_for(&format!("timeout (process id {})", next.pid()));
    assert!(!page.contains(&format!("(process id {pid})")), "{page}");
    // Who watches all runs finds it as well.
    let all = Watch::start(&[]);
    all.events().wait_for(&format!("<td>{}</td>", next.pid()));
    next.signal("TERM");
    let _ended = next.wait();
}

/// Answers with the metrics of a target that has been up for ever longer; counts who asks.
fn metrics(listener: TcpListener, asked: Arc<AtomicUsize>) {
    for stream in listener.incoming() {
        let mut stream = stream.expect("somebody asks");
        let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut head = [0; 1024];
        let _some = stream.read(&mut head).expect("a request");
        let text = format!(
            "afar_uptime_seconds {number}\n\
             afar_host_transferred_bytes_total{{host=\"nqn.<greedy>\"}} {}\n\
             afar_host_commands_total{{host=\"nqn.<greedy>\"}} {number}\n\
             afar_host_transferred_bytes_total{{host=\"nqn.modest\"}} {}\n",
            number * 3_000_000,
            number * 1_000_000
        );
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        let _gone = stream.write_all(answer.as_bytes());
    }
}

#[test]
fn nothing_is_asked_while_nobody_watches() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port").to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = || asked.load(Ordering::SeqCst);
    let of_server = Arc::clone(&asked);
    std::thread::spawn(move || metrics(listener, of_server));
    let watch = Watch::start(&[&address]);
    sleep(Duration::from_millis(2500));
    assert_eq!(count(), 1, "whether it is there, and nothing since");
    let mut events = watch.events();
    let page = events.wait_for("nqn.&lt;greedy&gt; moves most: 3 MB/s, 75 % of all.");
    assert!(!page.contains("<greedy>"), "{page}");
    events.wait_for("id=\"r1-host-bytes\"");
    assert!(count() >= 3);
    drop(events);
    // It is found out by the next that is sent, and one look may be under way.
    sleep(Duration::from_millis(2500));
    let before = count();
    sleep(Duration::from_millis(2500));
    assert_eq!(count(), before, "nobody watches any more");
}

#[test]
fn a_target_is_started_again() {
    let metrics = format!("127.0.0.1:{}", test_support::free_port());
    let start = || {
        let words = [env!("CARGO_BIN_EXE_afar"), "serve", "--quiet", "disk=memory:16MiB"];
        let flags = ["--nvme", "127.0.0.1:0", "--metrics", &metrics, "--shards", "1"];
        Launch::new(words.iter().chain(&flags)).serve()
    };
    let (target, _) = start();
    let watch = Watch::start(&[&metrics]);
    let mut events = watch.events();
    let page = events.wait_for("The target answers");
    assert!(page.contains("No host is connected.") && page.contains("<td>disk 1</td>"), "{page}");
    target.signal("TERM");
    target.wait().expect(0, "serve");
    let page = events.wait_for("goes on when the target answers");
    assert!(page.contains("<td>disk 1</td>"), "the last stays: {page}");
    let (target, _) = start();
    events.wait_for("The target answers");
    target.signal("TERM");
    target.wait().expect(0, "serve");
}
