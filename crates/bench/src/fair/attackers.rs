//! A child process of the benchmark that plays all attackers: idle, stalled, deaf and greedy hosts.

use std::io::Result;
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::failure::Failure;
use crate::flags::AttackersFlags;
use crate::progress;

use super::host::{Host, Way};
use super::initiator::Session;
use super::link;

/// Idle NVMe hosts, with a controller and 49 I/O queues each.
const IDLE_HOSTS: u16 = 150;
/// Idle iSCSI initiators, with 50 sessions each.
const IDLE_INITIATORS: u16 = 50;
/// Connections of each of them.
const EACH: u16 = 50;
const DISCOVERING: u16 = 1024;
/// Hosts that stall in writes, and as many that do not read; half of each are initiators.
const STALLED: u16 = 16;
const COMMANDS: u16 = 100;
/// Stalled and deaf hosts reconnect after this time, because the target disconnects them at some
/// time.
const ANEW: Duration = Duration::from_secs(5);
/// Time between two changes of a registration.
const CHANGE: Duration = Duration::from_millis(10);
/// Time between two checks whether the attack is over.
const PAUSE: Duration = Duration::from_millis(100);
/// Rate of a slow link: 100 Mb/s.
const SLOW_BYTES_PER_S: u64 = 12_500_000;

/// The target of all attackers.
struct Aim {
    nvme: Way,
    iscsi: std::net::SocketAddr,
    target: String,
}

impl Aim {
    // Opens the idle connections.
    fn idle(&self) -> Result<Vec<TcpStream>> {
        let mut streams = Vec::new();
        for host in 0..IDLE_HOSTS {
            let name = format!("nqn.2026-11.example:idle{host}");
            streams.extend(Host::connect(&self.nvme, &name, EACH - 1)?.into_streams());
        }
        for initiator in 0..IDLE_INITIATORS {
            let name = format!("iqn.2026-11.example:idle{initiator}");
            for number in 0..EACH {
                let session = Session::log_in(self.iscsi, &self.target, &name, number)?;
                streams.push(session.into_stream());
            }
        }
        Ok(streams)
    }

    // Opens connections to the discovery controller.
    fn discovering(&self) -> Result<Vec<TcpStream>> {
        let host = |number| format!("nqn.2026-11.example:looking{}", number / 64);
        (0..DISCOVERING).map(|number| Host::discover(&self.nvme, &host(number))).collect()
    }

    // Connects hosts and sessions that stall in writes, or do not read (`writes` false). They stay
    // connected until the result is dropped.
    fn stalled(&self, writes: bool) -> Result<(Vec<Host>, Vec<Session>)> {
        let what = if writes { "stalled" } else { "deaf" };
        let hosts = (0..STALLED / 2).map(|number| {
            let name = format!("nqn.2026-11.example:{what}{number}");
            let mut host = Host::connect(&self.nvme, &name, 1)?;
            host.begin(COMMANDS, writes)?;
            Ok(host)
        });
        let hosts = hosts.collect::<Result<_>>()?;
        let sessions = (0..STALLED / 2).map(|number| {
            let name = format!("iqn.2026-11.example:{what}{number}");
            let mut session = Session::log_in(self.iscsi, &self.target, &name, 0)?;
            session.begin(COMMANDS, writes)?;
            Ok(session)
        });
        Ok((hosts, sessions.collect::<Result<_>>()?))
    }
}

/// The hidden command `attackers`: connects all attackers, writes the addresses of the slow links
/// into a file, and attacks until the file is removed. Then prints a record with failures.
///
/// # Errors
/// When an attacker cannot connect at the start.
pub(crate) fn run(flags: &AttackersFlags) -> std::result::Result<(), Failure> {
    let failed = |source| Failure::Talk { server: "afar serve", source };
    sys::process::allow_descriptors(16_384);
    let aim = Aim {
        nvme: Way { address: flags.nvme, subsystem: flags.nqn.clone() },
        iscsi: flags.iscsi,
        target: flags.iqn.clone(),
    };
    let idle = aim.idle().map_err(failed)?;
    let looking = if flags.idle_only { Vec::new() } else { aim.discovering().map_err(failed)? };
    let links = [aim.nvme.address, aim.iscsi]
        .map(|address| link::start(address, SLOW_BYTES_PER_S).map(|own| own.to_string()));
    let [nvme, iscsi] = links;
    let links = [nvme.map_err(failed)?, iscsi.map_err(failed)?].join(" ");
    let began = Instant::now();
    let is_over = AtomicBool::new(false);
    let changes = AtomicU64::new(0);
    let failures = AtomicU64::new(0);
    std::thread::scope(|scope| {
        if !flags.idle_only {
            scope.spawn(|| hold(&aim, &is_over, &failures));
            scope.spawn(|| reserve(&aim, &is_over, &changes, &failures));
        }
        tell(&flags.ready, &links)?;
        // The parent reads the file, and removes it at the end.
        while flags.ready.exists() {
            sleep(PAUSE);
        }
        is_over.store(true, Ordering::Relaxed);
        Ok::<(), Failure>(())
    })?;
    let record = json!({
        "idle": idle.len(),
        "discovering": looking.len(),
        "changes_per_s": changes.into_inner() as f64 / began.elapsed().as_secs_f64(),
        "failures": failures.into_inner(),
    });
    progress::answer(&format!("{record}\n"));
    Ok(())
}

// Writes a file atomically.
fn tell(path: &Path, text: &str) -> std::result::Result<(), Failure> {
    let part = path.with_extension("part");
    std::fs::write(&part, text).map_err(Failure::file("write", &part))?;
    std::fs::rename(&part, path).map_err(Failure::file("rename", &part))
}

// Holds stalled and deaf connections until the attack is over.
fn hold(aim: &Aim, is_over: &AtomicBool, failures: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        let held = [true, false].map(|writes| aim.stalled(writes));
        let failed = held.iter().filter(|one| one.is_err()).count();
        failures.fetch_add(failed as u64, Ordering::Relaxed);
        let until = Instant::now() + ANEW;
        while Instant::now() < until && !is_over.load(Ordering::Relaxed) {
            sleep(PAUSE);
        }
    }
}

// Changes the key of a registration again and again until the attack is over.
fn reserve(aim: &Aim, is_over: &AtomicBool, changes: &AtomicU64, failures: &AtomicU64) {
    let name = "nqn.2026-11.example:reserving";
    let Ok(mut host) = Host::connect(&aim.nvme, name, 1) else {
        failures.fetch_add(1, Ordering::Relaxed);
        return;
    };
    for key in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        match host.register(key, key + 1) {
            Ok(()) => changes.fetch_add(1, Ordering::Relaxed),
            Err(_) => failures.fetch_add(1, Ordering::Relaxed),
        };
        sleep(CHANGE);
    }
}
