//! `afar kv serve` as tests start it, and end it.

use std::path::Path;

use results::served::KvServed;
use test_support::{scratch, skip};

use crate::client::Client;
use crate::support::{Ended, Launch, Running};

/// A server of its own; what it writes as a record is its answer.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) address: String,
}

impl Server {
    /// Nothing, loudly, where RocksDB is not installed.
    pub(crate) fn start(test: &str, directory: &Path, flags: &[&str]) -> Option<Self> {
        if !installed(test) {
            return None;
        }
        let mut running = launch(directory, "127.0.0.1:0", flags).start();
        running.wait_for("until Ctrl-C");
        let told = running.errors();
        let address = told.split_once("is served at ").expect("it says where").1;
        let address = address.split(' ').next().expect("a word").to_owned();
        Some(Self { running, address })
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.address)
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn end(self) -> KvServed {
        self.ended(0)
    }

    pub(crate) fn ended(self, status: i32) -> KvServed {
        self.running.signal("INT");
        record(&self.running.wait().expect(status, "afar kv serve"))
    }

    /// Ends it as a machine that fails does.
    pub(crate) fn kill(self) {
        self.running.signal("KILL");
        assert_eq!(self.running.wait().status, 137);
    }
}

pub(crate) fn launch(directory: &Path, address: &str, flags: &[&str]) -> Launch {
    let directory = directory.to_str().expect("paths here are text");
    let afar = [env!("CARGO_BIN_EXE_afar"), "kv", "serve", directory];
    let common = ["--listen", address, "--json", "-"];
    Launch::new(afar.iter().chain(&common).chain(flags))
}

pub(crate) fn record(ended: &Ended) -> KvServed {
    results::read(&String::from_utf8_lossy(&ended.stdout))
        .unwrap_or_else(|error| panic!("{error}:\n{}", ended.text()))
}

/// Whether RocksDB can be used here. If not, the test is counted as skipped.
pub(crate) fn installed(test: &str) -> bool {
    let directory = scratch("installed");
    let settings = sys::rocks::Settings {
        directory: directory.clone(),
        block_cache_bytes: 0,
        write_buffer_bytes: None,
        direct: false,
        sync: false,
    };
    match sys::rocks::Store::open(&settings) {
        Err(error @ sys::rocks::StoreError::Library(_)) => {
            skip(test, &error.to_string());
            false
        }
        _ => true,
    }
}

/// Runs a command of a shell in a mount namespace of its own, where that is allowed.
pub(crate) fn own_mounts(test: &str, script: &str, directory: &Path) -> Option<Launch> {
    let can = std::process::Command::new("unshare").args(["-m", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        skip(test, "no mount namespace: unshare -m fails");
        return None;
    }
    let directory = directory.to_str().expect("paths here are text");
    let afar = env!("CARGO_BIN_EXE_afar");
    let serve = format!("exec {afar} kv serve {directory} --listen 127.0.0.1:0 --json -");
    Some(Launch::new(["unshare", "-m", "sh", "-c", &format!("{script} && {serve}")]))
}

pub(crate) fn resident(server: &Server) -> u64 {
    let pid = server.running.processes()[0];
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}
