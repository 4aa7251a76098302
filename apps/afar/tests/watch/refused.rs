//! What cannot be watched, and how it ends.

use std::net::TcpListener;

use results::live::Watching;
use test_support::Scratch;

use crate::live::Watch;
use crate::support::{Ended, Launch};

fn watch(words: &[&str]) -> Ended {
    let all = [env!("CARGO_BIN_EXE_afar"), "watch"];
    Launch::new(all.iter().chain(words)).run()
}

#[test]
fn what_cannot_be_watched_is_refused_in_one_sentence() {
    let directory = Scratch::new("watch-refused");
    let empty = directory.path().to_str().expect("paths here are text");
    let file = directory.file("notes.txt", "x");
    let strange = directory.join("strange");
    std::fs::create_dir(&strange).expect("it is ours");
    std::fs::write(strange.join("sweep.json"), "{\"schema\": \"x/1\"}").expect("it is ours");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("a port").port().to_string();
    let free = format!("127.0.0.1:{}", test_support::free_port());
    let text = |path: &std::path::Path| path.to_str().expect("paths here are text").to_owned();
    let cases = [
        (vec![empty.to_owned()], 2, "it has no sweep.json, and no record yet; give the directory"),
        (vec![text(&file)], 2, "there is no such directory; give"),
        (vec!["no/such".to_owned()], 2, "no/such: there is no such directory; give"),
        (vec![text(&strange)], 2, "its sweep.json is of \"x/1\", which this afar does not know"),
        (vec!["nothing".to_owned()], 2, "nothing is no directory, no process id and no HOST:PORT"),
        (vec!["1".to_owned()], 1, "process 1 is no run of afar; afar ctl list shows them"),
        (
            vec![free.clone()],
            1,
            "check the address, and that afar serve was started with --metrics",
        ),
        (vec!["--port".to_owned(), port], 2, "give another --port, or none for any that is free"),
        (
            vec!["--bound".to_owned(), "5".to_owned()],
            2,
            "give a share above 0 with its sign, such as 5%",
        ),
    ];
    for (words, status, wanted) in cases {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ended = watch(&words);
        let said = &ended.stderr;
        assert_eq!(ended.status, status, "{words:?}: {said}");
        assert!(said.starts_with("afar watch: ") && said.contains(wanted), "{wanted}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(ended.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn it_ends_when_it_is_told_to_and_its_address_is_a_record() {
    for signal in ["INT", "TERM", "HUP"] {
        let watch = Watch::start(&[]);
        // Who watches does not keep it.
        let mut events = watch.events();
        events.wait_for(" on");
        watch.running.signal_group(signal);
        let ended = watch.running.wait().expect(0, signal);
        assert!(ended.stderr.is_empty(), "{}", ended.stderr);
        assert_eq!(ended.text().lines().count(), 1, "the address and nothing else");
    }
    let all = [env!("CARGO_BIN_EXE_afar"), "watch", "--json", "-"];
    let mut running = Launch::new(all).start();
    running.wait_for("}\n");
    let record: Watching = results::read(&running.output()).expect("a record and nothing else");
    assert_eq!(record.watched, "runs on this machine");
    assert!(record.url.starts_with("http://127.0.0.1:"), "{}", record.url);
    running.signal("INT");
    running.wait().expect(0, "watch --json -");
}
