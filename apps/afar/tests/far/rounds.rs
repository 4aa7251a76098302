//! Rounds of a program that checks every byte (8 threads, fork, mremap, madvise, `MAP_FIXED`, exec)
//! while its pages are far: with what they are on left alone, with a blade killed, a path cut, and
//! without copies.
//!
//! `AFAR_FAR_ROUNDS` says how many: in a fifth of them a blade is killed, in a fifth a path is cut.
//! What is lost without a copy comes on top, as often.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use launch::Ready;

use crate::support::{Ended, Launch, Running, program, scratch};
use crate::{AFAR, LOCAL, is_usable};

/// In the suite.
const ROUNDS: u64 = 20;
/// How long a round goes on at least.
const LASTS: Duration = Duration::from_secs(5);
/// Rounds at a time.
const AT_ONCE: usize = 2;

/// What happens in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    /// One blade of three is killed; each page is on two.
    Killed,
    /// One of two paths to the blade is cut.
    Cut,
    /// The only blade is killed.
    Lost,
}

const KINDS: [Kind; 4] = [Kind::Nothing, Kind::Killed, Kind::Cut, Kind::Lost];

/// What a round is about.
struct Round {
    kind: Kind,
    seed: u64,
}

impl Round {
    fn name(&self) -> String {
        format!("far-round-{:?}-{}", self.kind, self.seed)
    }

    /// When in it something happens, in milliseconds: anywhere between the first pages that leave
    /// and its end.
    fn at(&self) -> Duration {
        Duration::from_millis(300 + self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 4200)
    }

    fn run(&self) {
        let name = self.name();
        let count = if self.kind == Kind::Killed { 3 } else { 1 };
        let mut blades: Vec<Served> = (0..count).map(Served::start).collect();
        let mut relay = None;
        let mut uris: Vec<String> = blades.iter().map(|blade| blade.uri(blade.address)).collect();
        if self.kind == Kind::Cut {
            let cut = Relay::to(blades[0].address);
            uris.push(blades[0].uri(cut.address));
            relay = Some(cut);
        }
        let far = uris.join(",");
        let mut flags = [&LOCAL[..], &["--far", &far, "--far-timeout", "2s"]].concat();
        if self.kind == Kind::Killed {
            flags.extend(["--replicas", "2"]);
        }
        let until = scratch(&format!("{name}.until"));
        let _none = std::fs::remove_file(&until);
        let running = stress(self.seed, &until).under_afar(&flags).start();
        let began = begun(&running);
        sleep(self.at());
        match self.kind {
            Kind::Nothing => {}
            Kind::Killed | Kind::Lost => {
                let which = usize::try_from(self.seed).unwrap_or(0) % blades.len();
                blades[which].kill();
            }
            Kind::Cut => relay.iter().for_each(Relay::cut),
        }
        sleep(LASTS.saturating_sub(began.elapsed()));
        if self.kind != Kind::Lost {
            std::fs::write(&until, "").expect("the scratch directory can be written to");
        }
        let ended = running.wait();
        self.judge(ended, &name);
        let _none = std::fs::remove_file(&until);
    }

    fn judge(&self, ended: Ended, name: &str) {
        assert!(!ended.stderr.contains("not so"), "{name}: wrong bytes: {}", ended.stderr);
        let status = if self.kind == Kind::Lost { 125 } else { 0 };
        ended.expect(status, name).leaves_nothing(name);
    }
}

/// Waits until the program runs: its blades were reached by then.
pub(crate) fn begun(running: &Running) -> Instant {
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let is_program = |pid: &str| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("keeps")
    };
    let asked = Instant::now();
    loop {
        let all = std::fs::read_to_string(&children).unwrap_or_default();
        // A run that has ended already is judged.
        if all.split_whitespace().any(is_program) || asked.elapsed() > LASTS * 6 {
            return Instant::now();
        }
        sleep(Duration::from_millis(2));
    }
}

/// The program, until a file is there.
pub(crate) fn stress(seed: u64, until: &std::path::Path) -> Launch {
    let path = program("keeps");
    let launch = Launch::new([path.as_os_str(), "all".as_ref()]);
    let launch = launch.env("KEEPS_SEED", seed.to_string()).env("KEEPS_UNTIL", until);
    let launch = launch.env("KEEPS_STEPS", "1000000000");
    // Beside children of little memory, libraries are much of what there is.
    launch.limit(Duration::from_secs(180)).unmanaged("its children are small")
}

/// A blade in a process of its own.
struct Served {
    running: Option<Running>,
    address: SocketAddr,
    number: usize,
}

impl Served {
    fn start(number: usize) -> Self {
        let disk = format!("nqn.2026-11.local.afar:round{number}=memory:256MiB");
        let words = [AFAR, "serve", &disk, "--nvme", "127.0.0.1:0"];
        let (running, Ready { nvme, .. }) = Launch::new(words).serve();
        Self { running: Some(running), address: nvme[0], number }
    }

    fn uri(&self, address: SocketAddr) -> String {
        format!("nvme+tcp://{address}/nqn.2026-11.local.afar:round{}", self.number)
    }

    fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal("KILL");
        }
    }
}

/// A way to a blade that can be cut.
struct Relay {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    listens: Option<JoinHandle<()>>,
}

impl Relay {
    fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (is_cut, open) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (ends, kept) = (Arc::clone(&is_cut), Arc::clone(&open));
        let listens = thread::spawn(move || {
            for near in listener.incoming() {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                let (Ok(near), Ok(far)) = (near, TcpStream::connect(target)) else { continue };
                relay(&near, &far, &kept);
                relay(&far, &near, &kept);
            }
        });
        Self { address, is_cut, open, listens: Some(listens) }
    }

    /// Ends all connections, and takes no more.
    fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        // Whoever waits for a connection looks.
        let _refused = TcpStream::connect(self.address);
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for stream in open {
            let _gone = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cut();
        if let Some(listens) = self.listens.take() {
            listens.join().expect("it has not failed");
        }
    }
}

/// Carries bytes one way, until an end closes.
fn relay(from: &TcpStream, to: &TcpStream, open: &Arc<Mutex<Vec<TcpStream>>>) {
    let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor is left");
    let (mut from, mut to) = (copy(from), copy(to));
    open.lock().unwrap_or_else(PoisonError::into_inner).push(copy(&from));
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok(count) = from.read(&mut bytes)
            && count > 0
            && to.write_all(&bytes[..count]).is_ok()
        {}
        let _gone = to.shutdown(Shutdown::Both);
    });
}

#[test]
fn no_round_finds_wrong_bytes() {
    if !is_usable("no_round_finds_wrong_bytes") {
        return;
    }
    let asked = std::env::var("AFAR_FAR_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: u64 = asked.unwrap_or(ROUNDS);
    let all: Vec<Round> = KINDS
        .into_iter()
        .flat_map(|kind| {
            let part = rounds.div_ceil(5);
            let count = if kind == Kind::Nothing { rounds.saturating_sub(2 * part) } else { part };
            (0..count).map(move |seed| Round { kind, seed })
        })
        .collect();
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let take = || usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(0);
                while let Some(round) = all.get(take()) {
                    round.run();
                }
            });
        }
    });
    println!("{} rounds, 0 wrong bytes", all.len());
}
