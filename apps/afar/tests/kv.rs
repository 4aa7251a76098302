//! `afar kv serve` on a real store: each command against a model, deaths, and what is refused.

mod support;

#[path = "kv/client.rs"]
mod client;
#[path = "kv/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use client::{Client, Reply};
use measure::{LoadResults, Run};
use server::{Server, installed, launch, own_mounts, record, resident};
use support::{Launch, kill};
use test_support::scratch;
use workload::Draw;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn bytes(draw: &mut Draw, most: u64) -> Vec<u8> {
    let length = draw.below(most + 1);
    (0..length).map(|_| u8::try_from(draw.below(256)).unwrap_or(0)).collect()
}

/// A command that is drawn, and what the model answers.
fn step(draw: &mut Draw, model: &mut Model) -> (Vec<Vec<u8>>, Reply) {
    let key = |draw: &mut Draw| format!("key{}", draw.below(40)).into_bytes();
    let keys = |draw: &mut Draw| (0..=draw.below(4)).map(|_| key(draw)).collect::<Vec<_>>();
    let words = |name: &str, rest: Vec<Vec<u8>>| [vec![name.as_bytes().to_vec()], rest].concat();
    match draw.below(6) {
        0 => {
            let key = key(draw);
            let value = model.get(&key).cloned();
            (words("GET", vec![key]), Reply::Bulk(value))
        }
        1 => {
            let (key, value) = (key(draw), bytes(draw, 300));
            model.insert(key.clone(), value.clone());
            (words("SET", vec![key, value]), Reply::Simple("OK".to_owned()))
        }
        2 | 3 => {
            let (key, more) = (key(draw), bytes(draw, 100));
            model.entry(key.clone()).or_default().extend_from_slice(&more);
            (words("APPEND", vec![key, more]), Reply::Simple("OK".to_owned()))
        }
        4 => {
            let keys = keys(draw);
            let values = keys.iter().map(|key| Reply::Bulk(model.get(key).cloned()));
            let values = values.collect();
            (words("MGET", keys), Reply::Array(values))
        }
        _ => {
            let keys = keys(draw);
            let count = keys.iter().filter(|key| model.remove(*key).is_some()).count();
            (words("DEL", keys), Reply::Integer(i64::try_from(count).unwrap_or(0)))
        }
    }
}

/// All that is there, by scans of a few keys each.
fn scanned(client: &mut Client, count: u64) -> Model {
    let mut found = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let count = count.to_string();
        let reply = client.ask(&[b"SCAN", &cursor, b"COUNT", count.as_bytes()]);
        let Reply::Array(parts) = reply else { panic!("{reply:?}") };
        let [Reply::Bulk(Some(next)), Reply::Array(keys)] = &parts[..] else { panic!("{parts:?}") };
        found.extend(keys.iter().map(|key| match key {
            Reply::Bulk(Some(key)) => key.clone(),
            key => panic!("{key:?}"),
        }));
        if next == b"0" {
            break;
        }
        cursor.clone_from(next);
    }
    assert!(found.is_sorted(), "{found:?}");
    let get = |key: Vec<u8>| match client.ask(&[b"GET", &key]) {
        Reply::Bulk(Some(value)) => (key, value),
        reply => panic!("{reply:?}"),
    };
    found.into_iter().map(get).collect()
}

#[test]
fn every_command_answers_as_a_map_does() {
    let ways: [&[&str]; 3] = [
        &[],
        &["--readers", "1", "--writers", "1", "--block-cache", "0"],
        &["--direct", "--sync", "--readers", "3", "--writers", "2"],
    ];
    for (seed, flags) in (1..).zip(ways) {
        let directory = scratch(format!("model{seed}"));
        let Some(server) = Server::start("kv::model", &directory, flags) else { return };
        let (mut draw, mut model) = (Draw::new(seed), Model::new());
        let mut client = server.client();
        let mut sent = 0;
        while sent < 2500 {
            // Some alone, some one behind the other before any is answered.
            let steps: Vec<_> = (0..=draw.below(20)).map(|_| step(&mut draw, &mut model)).collect();
            client.send(steps.iter().map(|(words, _)| words.as_slice()));
            for (words, wanted) in &steps {
                assert_eq!(&client.reply(), wanted, "seed {seed}, {words:?}");
            }
            sent += steps.len() as u64;
        }
        assert_eq!(scanned(&mut client, 1 + seed * 3), model, "seed {seed}");
        let asked = client.asked();
        let record = server.end();
        assert_eq!(record.results.command_count, asked);
        assert_eq!(record.results.connection_count, 1);
        assert_eq!(record.results.store.log_sync_count > 0, flags.contains(&"--sync"));
        assert_eq!(record.params.direct, flags.contains(&"--direct"));
        // A store that is opened again has what was there, merges included.
        let server = Server::start("kv::model", &directory, flags).expect("it was there before");
        assert_eq!(scanned(&mut server.client(), 1000), model, "seed {seed}, opened again");
        server.end();
    }
}

#[test]
fn append_grows_without_reading() {
    let directory = scratch("grows");
    let Some(server) = Server::start("kv::append", &directory, &[]) else { return };
    let mut client = server.client();
    for number in 0..100_u8 {
        let reply = client.ask(&[b"APPEND", b"user", &[number; 100]]);
        assert_eq!(reply, Reply::Simple("OK".to_owned()));
    }
    let wanted: Vec<u8> = (0..100_u8).flat_map(|number| [number; 100]).collect();
    assert_eq!(client.ask(&[b"GET", b"user"]), Reply::Bulk(Some(wanted.clone())));
    server.kill();
    let server = Server::start("kv::append", &directory, &[]).expect("it was there before");
    assert_eq!(server.client().ask(&[b"GET", b"user"]), Reply::Bulk(Some(wanted)));
    let record = server.end();
    let names: Vec<_> = record.results.operations.iter().map(|of| &of.operation[..]).collect();
    assert_eq!(names, ["get"]);
}

/// Sets and appends until the server is gone; what was acknowledged, and what was under way.
fn journal(server: &Server, name: &str, is_over: &AtomicBool) -> (Model, Vec<u8>) {
    let mut client = server.client();
    let mut model = Model::new();
    for number in 0_u64.. {
        let key = format!("{name}-{}", number % 50).into_bytes();
        let more = format!("{number},").into_bytes();
        let word: &[u8] = if number % 3 == 0 { b"SET" } else { b"APPEND" };
        let Some(reply) = client.try_ask(&[word, &key, &more]) else {
            is_over.store(true, Ordering::Relaxed);
            return (model, key);
        };
        assert_eq!(reply, Reply::Simple("OK".to_owned()));
        let value = model.entry(key).or_default();
        if number % 3 == 0 {
            value.clear();
        }
        value.extend_from_slice(&more);
    }
    unreachable!("the server is killed before");
}

#[test]
fn what_was_acknowledged_is_there_after_a_death() {
    let directory = scratch("death");
    let mut draw = Draw::new(11);
    for round in 0..4 {
        let Some(server) = Server::start("kv::death", &directory, &["--sync"]) else { return };
        let is_over = AtomicBool::new(false);
        let journals = thread::scope(|scope| {
            let journal = |thread| {
                scope.spawn({
                    let (server, is_over) = (&server, &is_over);
                    move || journal(server, &format!("{round}-{thread}"), is_over)
                })
            };
            let writers: Vec<_> = (0..4).map(journal).collect();
            let mut watcher = server.client();
            // Until it has done some, whatever that takes here.
            let wanted = 200 + draw.below(300);
            while commands(&mut watcher) < wanted {}
            assert!(!is_over.load(Ordering::Relaxed), "round {round}: it ended by itself");
            server.running.signal("KILL");
            writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(server.running.wait().status, 137);
        let server = Server::start("kv::death", &directory, &["--sync"]).expect("as before");
        let mut client = server.client();
        for (model, under_way) in &journals {
            assert!(model.values().map(Vec::len).sum::<usize>() > 0);
            for (key, value) in model {
                let Reply::Bulk(Some(found)) = client.ask(&[b"GET", key]) else {
                    panic!("round {round}: {} is lost", String::from_utf8_lossy(key));
                };
                // The one that was under way may have been done, too.
                assert!(&found == value || key == under_way, "round {round}: {key:?}");
            }
        }
        assert!(server.end().results.store.log_sync_count <= 1);
    }
}

fn commands(client: &mut Client) -> u64 {
    let info = info(client);
    info["total_commands_processed"].parse().expect("a number")
}

fn info(client: &mut Client) -> BTreeMap<String, String> {
    let Reply::Bulk(Some(text)) = client.ask(&[b"INFO"]) else { panic!("INFO has an answer") };
    let text = String::from_utf8(text).expect("it is text");
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn each_write_is_synced_before_its_answer_where_that_is_asked_for() {
    for is_synced in [true, false] {
        let directory = scratch(if is_synced { "synced" } else { "unsynced" });
        let flags: &[&str] = if is_synced { &["--sync"] } else { &[] };
        let Some(server) = Server::start("kv::sync", &directory, flags) else { return };
        let mut client = server.client();
        for number in 1..=20_u64 {
            client.ask(&[b"APPEND", b"a", b"b"]);
            let synced: u64 = info(&mut client)["log_sync_count"].parse().expect("a number");
            assert_eq!(synced, if is_synced { number } else { 0 });
        }
        server.end();
    }
}

#[test]
fn what_is_refused_is_told_and_hurts_nobody() {
    let Some(server) = Server::start("kv::refused", &scratch("refused"), &[]) else { return };
    let mut other = server.client();
    assert_eq!(other.ask(&[b"SET", b"a", b"1"]), Reply::Simple("OK".to_owned()));
    let mut client = server.client();
    let long = vec![b'k'; (64 << 10) + 1];
    let refused: [(&[&[u8]], &str); 6] = [
        (&[b"LPUSH", b"a", b"1"], "ERR unknown command 'LPUSH'"),
        (&[b"GET"], "ERR wrong number of arguments for 'get' command"),
        (&[b"SET", b"a"], "ERR wrong number of arguments for 'set' command"),
        (&[b"SCAN", b"x"], "ERR value is not an integer or out of range: 'x'"),
        (&[b"SCAN", b"7"], "ERR invalid cursor"),
        (&[b"GET", &long], "ERR a key has at most 65536 bytes, not 65537"),
    ];
    for (words, wanted) in refused {
        let reply = client.ask(words);
        assert!(matches!(&reply, Reply::Error(text) if text.starts_with(wanted)), "{reply:?}");
    }
    // The connection goes on: these were commands of the protocol.
    assert_eq!(client.ask(&[b"PING"]), Reply::Simple("PONG".to_owned()));
    let violations: [(&[u8], &str); 3] = [
        (b"GET a\r\n", "ERR Protocol error: expected '*' and a number, got 'GET a\\r'"),
        (b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$16777217\r\n", "ERR Protocol error: a word has at most"),
        (b"*99999999\r\n", "ERR Protocol error: a request has at most 65537 words"),
    ];
    for (bytes, wanted) in violations {
        let mut client = server.client();
        client.send_bytes(bytes);
        let reply = client.reply();
        assert!(matches!(&reply, Reply::Error(text) if text.starts_with(wanted)), "{reply:?}");
        assert!(client.is_ended(), "nothing that follows can be understood");
    }
    // Half of a command, and then nobody.
    let mut client = server.client();
    client.send_bytes(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n12");
    drop(client);
    assert_eq!(other.ask(&[b"GET", b"a"]), Reply::Bulk(Some(b"1".to_vec())));
    let results = server.end().results;
    assert_eq!((results.refused_count, results.violation_count), (6, 3));
    let first = results.first_violation.expect("it is kept");
    assert!(first.starts_with("expected '*'"), "{first}");
}

#[test]
fn a_cursor_is_good_for_the_connection_that_was_given_it_last() {
    let Some(server) = Server::start("kv::cursor", &scratch("cursor"), &[]) else { return };
    let (mut one, mut other) = (server.client(), server.client());
    for key in [b"a", b"b", b"c"] {
        one.ask(&[b"SET", key, b""]);
    }
    let cursor = |reply: Reply| match reply {
        Reply::Array(parts) => match &parts[0] {
            Reply::Bulk(Some(cursor)) => cursor.clone(),
            part => panic!("{part:?}"),
        },
        reply => panic!("{reply:?}"),
    };
    let first = cursor(one.ask(&[b"SCAN", b"0", b"COUNT", b"1"]));
    assert!(matches!(other.ask(&[b"SCAN", &first]), Reply::Error(_)));
    let second = cursor(one.ask(&[b"SCAN", &first, b"COUNT", b"1"]));
    assert_ne!(first, second);
    assert!(matches!(one.ask(&[b"SCAN", &first]), Reply::Error(_)));
    assert_eq!(cursor(one.ask(&[b"SCAN", &second])), b"0");
    server.end();
}

#[test]
fn a_store_has_one_server() {
    let directory = scratch("one");
    let Some(server) = Server::start("kv::one", &directory, &[]) else { return };
    let ended = launch(&directory, "127.0.0.1:0", &[]).run().expect(1, "the second");
    let wanted = format!(
        "afar kv serve: serve {}: another process has this store open, or this one has it twice; \
         end it, or give another directory\n",
        directory.display()
    );
    assert_eq!(ended.stderr, wanted);
    let listening = launch(&scratch("other"), &server.address, &[]).run();
    let ended = listening.expect(1, "the address is taken");
    assert!(ended.stderr.contains("Address already in use"), "{}", ended.stderr);
    assert_eq!(server.client().ask(&[b"PING"]), Reply::Simple("PONG".to_owned()));
    server.end();
    Server::start("kv::one", &directory, &[]).expect("it is free").end();
}

#[test]
fn bad_usage_is_told() {
    let file = scratch("file");
    std::fs::write(&file, "no directory").unwrap();
    let wrong = launch(&scratch("x"), "nowhere", &[]).run().expect(2, "no address");
    assert!(wrong.stderr.contains("--listen nowhere: no place to listen"), "{}", wrong.stderr);
    if installed("kv::usage") {
        let ended = launch(&file, "127.0.0.1:0", &[]).run().expect(1, "a file");
        assert!(ended.stderr.contains("give a directory"), "{}", ended.stderr);
    }
}

#[test]
fn without_the_library_the_package_is_named() {
    // One that is a file of no bytes is as good as none.
    let hidden: Vec<PathBuf> = ["/usr/lib/x86_64-linux-gnu", "/usr/lib", "/usr/local/lib"]
        .iter()
        .flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("/librocksdb.so"))
        .collect();
    let hide = |path: &PathBuf| format!("mount --bind /dev/null $(readlink -f {})", path.display());
    let script = hidden.iter().map(hide).chain(["true".to_owned()]).collect::<Vec<_>>();
    let script = script.join(" && ");
    let Some(launch) = own_mounts("kv::absent", &script, &scratch("absent")) else { return };
    let ended = launch.run().expect(3, "no library");
    let (begin, end) = ("RocksDB's library cannot be used here: ", "apt-get install librocksdb7.8");
    assert!(ended.stderr.contains(begin) && ended.stderr.contains(end), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(!scratch("absent").exists(), "nothing is left of what did not begin");
}

/// Changes what is in every table of a store, from its first byte on.
fn spoil(directory: &Path) {
    let files = std::fs::read_dir(directory).expect("the store").flatten().map(|one| one.path());
    let tables: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|of| of == "sst")).collect();
    assert!(!tables.is_empty(), "what was written is in tables");
    for table in tables {
        let file = std::fs::File::options().write(true).open(table).expect("a table");
        std::os::unix::fs::FileExt::write_all_at(&file, &[0x55; 1000], 0).expect("it is ours");
    }
}

#[test]
fn what_the_store_has_not_done_is_an_error() {
    let directory = scratch("spoilt");
    let Some(server) = Server::start("kv::spoilt", &directory, &[]) else { return };
    let mut client = server.client();
    assert_eq!(client.ask(&[b"SET", b"a", &[7; 4000]]), Reply::Simple("OK".to_owned()));
    server.end();
    // Opened again, RocksDB has what was in the log in a table.
    let flags = ["--block-cache", "0"];
    let server = Server::start("kv::spoilt", &directory, &flags).expect("as before");
    let mut client = server.client();
    assert_eq!(client.ask(&[b"GET", b"a"]), Reply::Bulk(Some(vec![7; 4000])));
    spoil(&directory);
    for words in [&[b"GET", &b"a"[..]], &[b"MGET", &b"a"[..]], &[b"DEL", &b"a"[..]]] {
        let reply = client.ask(words);
        let is_told = |text: &str| text.starts_with("ERR Corruption: ");
        assert!(matches!(&reply, Reply::Error(text) if is_told(text)), "{words:?}: {reply:?}");
    }
    // It answers on.
    assert_eq!(client.ask(&[b"SET", b"b", b"1"]), Reply::Simple("OK".to_owned()));
    assert_eq!(client.ask(&[b"GET", b"b"]), Reply::Bulk(Some(b"1".to_vec())));
    let results = server.ended(1).results;
    assert!(results.first_error.expect("it is kept").starts_with("Corruption: "));
    let errors = results.operations.iter().map(|of| of.error_count).sum::<u64>();
    assert_eq!((errors, results.command_count), (3, 3));
}

#[test]
fn work_is_processor_time_of_each_command() {
    const COUNT: u64 = 300;
    let processor = |work: &str| {
        let directory = scratch(format!("work{work}"));
        let server = Server::start("kv::work", &directory, &["--work", work])?;
        let mut client = server.client();
        (0..COUNT).for_each(|_| drop(client.ask(&[b"GET", b"a"])));
        Some(server.end().results.processor_ns)
    };
    let Some(with) = processor("1ms") else { return };
    assert!(with >= COUNT * 1_000_000, "{with}");
}

#[test]
fn a_load_finds_what_it_stored() {
    let Some(server) = Server::start("kv::load", &scratch("load"), &[]) else { return };
    let uri = format!("redis://{}", server.address);
    let mut count = 1;
    for workload in ["a", "b", "c", "d", "f", "e"] {
        let afar = [env!("CARGO_BIN_EXE_afar"), "load", "kv", &uri, "--fill", "--verify"];
        let flags = ["-w", workload, "-n", "3000", "--keys", "800", "--value-size", "300"];
        let more = ["--json", "-", "--connections", "9", "--depth", "3"];
        let load = Launch::new(afar.iter().chain(&flags).chain(&more));
        let ended = load.run().expect(0, workload);
        let run: Run<LoadResults> = serde_json::from_slice(&ended.stdout).expect("a record");
        assert_eq!(run.results.request_count, 3000, "{workload}");
        count += 2 * 9;
    }
    let results = server.end().results;
    assert_eq!((results.refused_count, results.violation_count), (0, 0));
    assert_eq!(results.connection_count, count - 1);
    assert!(results.operations.iter().all(|of| of.error_count == 0));
}

#[test]
fn a_client_that_does_not_read_holds_nobody_up() {
    let Some(server) = Server::start("kv::silent", &scratch("silent"), &["--readers", "2"]) else {
        return;
    };
    let mut client = server.client();
    assert_eq!(client.ask(&[b"SET", b"a", &[7; 1 << 20]]), Reply::Simple("OK".to_owned()));
    // 3 × 400 MB of answers that nobody takes.
    let mut silent: Vec<_> = (0..3).map(|_| server.client()).collect();
    for one in &mut silent {
        let words = [b"GET".to_vec(), b"a".to_vec()];
        one.send((0..400).map(|_| words.as_slice()));
    }
    for _ in 0..50 {
        assert_eq!(client.ask(&[b"GET", b"a"]), Reply::Bulk(Some(vec![7; 1 << 20])));
    }
    let resident = resident(&server);
    assert!(resident < 200 << 20, "{resident} bytes");
    // And when it is ended, it does not wait for them.
    server.end();
}

#[test]
fn a_request_to_end_is_as_good_as_ctrl_c() {
    let Some(server) = Server::start("kv::end", &scratch("end"), &[]) else { return };
    let mut client = server.client();
    assert_eq!(client.ask(&[b"SET", b"a", b"1"]), Reply::Simple("OK".to_owned()));
    kill("TERM", &server.running.processes()[0].to_string());
    let record = record(&server.running.wait().expect(0, "SIGTERM"));
    assert_eq!(record.results.command_count, 1);
    assert!(client.is_ended());
}
