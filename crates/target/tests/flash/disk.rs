//! A namespace as a disk, through everything that happens to connections and targets.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration as StdDuration;

use backend::{Backend, Failure, FileBackend, Opening, Operation, Request};
use host::{Disk, DiskConfig, DiskEvent, DiskPath, HostConfig, HostError, NvmeUri};
use measure::Duration;
use nvme::Digests;
use target::{Kind, Limits, Namespace, Subsystem, Target, TargetConfig};
use workload::Draw;

use crate::Scratch;
use crate::proxy::Proxy;
use crate::remote::{self, NAME, memory, nqn};

/// Ten times what anything here takes.
pub(crate) const LONG: StdDuration = StdDuration::from_secs(60);

pub(crate) fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

pub(crate) fn serve(
    backend: &Arc<dyn Backend>,
    address: Option<SocketAddr>,
    identity: &str,
) -> Target {
    serve_at(backend, vec![address.unwrap_or_else(any_port)], identity)
}

pub(crate) fn serve_at(
    backend: &Arc<dyn Backend>,
    nvme: Vec<SocketAddr>,
    identity: &str,
) -> Target {
    let namespace = Namespace::new(1, Arc::clone(backend), crate::identity(identity));
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    let config = TargetConfig {
        nvme,
        shards: 2,
        busy_poll: Duration::from_us(0),
        traces: false,
        limits: Limits::default(),
        ..TargetConfig::default()
    };
    Target::start(&config, vec![subsystem]).expect("it can listen")
}

pub(crate) fn config(addresses: &[SocketAddr]) -> DiskConfig {
    config_of(addresses, &host())
}

/// Who reaches disks here.
pub(crate) fn host() -> HostConfig {
    HostConfig {
        host: nqn("nqn.2026-11.example:host"),
        host_id: [7; 16],
        keep_alive_ms: 1000,
        digests: Digests { header: false, data: false },
    }
}

pub(crate) fn uri(address: &SocketAddr) -> NvmeUri {
    format!("nvme+tcp://{address}/{NAME}").parse().expect("it is one")
}

pub(crate) fn config_of(addresses: &[SocketAddr], host: &HostConfig) -> DiskConfig {
    let path = |address| DiskPath::Nvme(uri(address), host.clone());
    DiskConfig {
        paths: addresses.iter().map(path).collect(),
        queues: 4,
        depth: 16,
        reconnect_delay: Duration::from_ms(100),
        loss_timeout: Duration::from_ms(60_000),
        io_timeout: Duration::from_ms(30_000),
        trusts_identity: false,
    }
}

/// What has happened to a disk, as text.
pub(crate) struct Events(Receiver<String>);

impl Events {
    /// Waits until something happens whose text has this in it.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_for_each(&[text]);
    }

    /// The same for several, in any order.
    pub(crate) fn wait_for_each(&self, texts: &[&str]) {
        let (mut left, mut all) = (texts.to_vec(), Vec::new());
        while !left.is_empty() {
            let event = self.0.recv_timeout(LONG);
            let event = event.unwrap_or_else(|_| panic!("{left:?} are not among {all:?}"));
            left.retain(|text| !event.contains(text));
            all.push(event);
        }
    }
}

pub(crate) fn attach(config: DiskConfig) -> Result<(Disk, Events), HostError> {
    let (sender, events): (Sender<String>, _) = channel();
    let observer = move |event: DiskEvent<'_>| {
        let _gone = sender.send(format!("{event:?}"));
    };
    Ok((Disk::attach(config, Box::new(observer))?, Events(events)))
}

fn byte(number: u64) -> u8 {
    number.to_le_bytes()[0] | 1
}

#[test]
fn any_bytes_are_read_and_written_as_in_memory() {
    let backend = memory();
    let target = serve(&backend, None, "test");
    for digests in [false, true] {
        let digests = Digests { header: digests, data: digests };
        let config = config_of(target.addresses(), &HostConfig { digests, ..host() });
        let (disk, _events) = attach(config).expect("it is there");
        let size = disk.geometry().bytes();
        let mut held = vec![0; usize::try_from(size).expect("it is small")];
        disk.zero(0, size, true).expect("it can");
        let mut draw = Draw::new(5);
        for round in 0..600 {
            // Small ones, some of which are whole blocks, and some large ones.
            let most = if round % 10 == 0 { 5 << 20 } else { 10_000 };
            let unit = if draw.below(2) == 0 { 512 } else { 1 };
            let length = (1 + draw.below(most)).next_multiple_of(unit);
            let offset = draw.below(size - length) / unit * unit;
            let [from, count] = [offset, length].map(|n| usize::try_from(n).expect("small"));
            let part = &mut held[from..from + count];
            match draw.below(4) {
                0 => {
                    disk.zero(offset, length, draw.below(2) == 0).expect("it can");
                    part.fill(0);
                }
                1 => {
                    part.iter_mut().for_each(|held| *held = byte(draw.bits()));
                    disk.write_at(offset, part, draw.below(2) == 0).expect("it can");
                }
                _ => {
                    let mut read = vec![0; count];
                    disk.read_at(offset, &mut read).expect("it can");
                    assert!(read == part, "{length} bytes at {offset} in round {round}");
                }
            }
        }
        disk.flush().expect("it can");
        // All of them give room back here, which reads as zeros.
        disk.discard(4096, 8192).expect("it can");
        let mut read = vec![1; 8192];
        disk.read_at(4096, &mut read).expect("it can");
        assert!(read.iter().all(|&byte| byte == 0));
        let beyond = disk.write_at(size - 1, &[1, 2], false);
        assert_eq!(beyond, Err(Failure::OutOfRange));
    }
    target.stop().expect("no shard has failed");
}

/// Threads that each write a block of their own over and over, and read it.
pub(crate) struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<u64>>,
}

impl Writers {
    /// Four of them, whose blocks are in different stripes and not aligned.
    pub(crate) fn start(disk: &Arc<Disk>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..4_u64).map(|number| {
            let (disk, stop) = (Arc::clone(disk), Arc::clone(&stop));
            std::thread::spawn(move || {
                let (mut count, offset) = (0, number * ((4 << 20) - 3000));
                while !stop.load(Ordering::Relaxed) {
                    count += 1;
                    let mut data = vec![byte(count); 5000];
                    data[..8].copy_from_slice(&(count << 8 | number).to_le_bytes());
                    disk.write_at(offset, &data, false).expect("it lasts");
                    let mut read = vec![0; 5000];
                    disk.read_at(offset, &mut read).expect("it lasts");
                    assert!(read == data, "what was answered is there: {count}");
                }
                count
            })
        });
        Self { threads: threads.collect(), stop }
    }

    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("nothing was wrong")).sum()
    }
}

#[test]
fn a_target_that_comes_back_is_found_and_nothing_is_lost() {
    let backend = memory();
    let mut target = serve(&backend, None, "test");
    let address = target.addresses()[0];
    let (disk, events) = attach(config(&[address])).expect("it is there");
    let disk = Arc::new(disk);
    let writers = Writers::start(&disk);
    for _ in 0..8 {
        events.wait_for("PathUp");
        std::thread::sleep(StdDuration::from_millis(50));
        target.stop().expect("no shard has failed");
        events.wait_for("PathDown");
        target = serve(&backend, Some(address), "test");
    }
    events.wait_for("PathUp");
    assert!(writers.stop() > 8);
    assert!(!disk.is_lost());
    target.stop().expect("no shard has failed");
}

#[test]
fn a_disk_whose_target_stays_away_fails_everything_from_then_on() {
    let backend = memory();
    let target = serve(&backend, None, "test");
    let address = target.addresses()[0];
    let loss_timeout = Duration::from_ms(700);
    let (disk, events) =
        attach(DiskConfig { loss_timeout, ..config(&[address]) }).expect("is there");
    disk.write_at(0, &[1; 512], false).expect("it is there");
    target.stop().expect("no shard has failed");
    events.wait_for("PathDown");
    // All of them wait, and none ends well.
    let mut read = [0; 512];
    assert_eq!(disk.write_at(0, &[2; 512], false), Err(Failure::Lost));
    assert_eq!(disk.read_at(0, &mut read), Err(Failure::Lost));
    assert_eq!(disk.flush(), Err(Failure::Lost));
    assert_eq!(disk.zero(0, 512, true), Err(Failure::Lost));
    events.wait_for("Lost");
    assert!(disk.is_lost());
    // Also when there is somebody again.
    let target = serve(&backend, Some(address), "test");
    assert_eq!(disk.read_at(0, &mut read), Err(Failure::Lost));
    drop(disk);
    target.stop().expect("no shard has failed");
}

// Nobody but the controller says that it has another size.
#[test]
fn a_disk_that_grows_is_larger_at_once() {
    let scratch = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    sys::disk::Disk::create(scratch.path(), 1 << 20).expect("it can be made");
    let backend: Arc<dyn Backend> = Arc::new(
        FileBackend::open(scratch.path(), None, Opening::default()).expect("it can be opened"),
    );
    let target = serve(&backend, None, "test");
    let (disk, events) = attach(config(target.addresses())).expect("it is there");
    let end = 1 << 20;
    assert_eq!(disk.write_at(end, &[1; 512], false), Err(Failure::OutOfRange));
    let file = std::fs::File::options().write(true).open(scratch.path()).expect("it is there");
    file.set_len(2 << 20).expect("it can grow");
    backend.refresh();
    target.changed(&target.subsystems()[0], &[1]);
    events.wait_for(&format!("Resized {{ bytes: {} }}", 2 << 20));
    assert_eq!(disk.geometry().bytes(), 2 << 20);
    assert_eq!(disk.write_at(end, &[1; 512], false), Ok(()));
    target.stop().expect("no shard has failed");
}

#[test]
fn nobody_there_is_an_error() {
    let nobody = "127.0.0.1:1".parse().expect("an address");
    assert!(matches!(attach(config(&[nobody])), Err(HostError::Network { .. })));
}

// Write commands that a target has done.
pub(crate) fn written(target: &Target) -> u64 {
    let namespace = &target.subsystems()[0].namespaces()[0];
    let counters = namespace.counters();
    counters.map(|(_, of)| of.of(Kind::Write).commands.load(Ordering::Relaxed)).sum()
}

// The first copy of a write that was sent again is done when the host has gone on to other things.
// It must not undo them.
#[test]
fn a_write_that_arrives_late_undoes_nothing() {
    // The target gives up a host that is silent, so one that is slow here shows nothing.
    assert!((0..5).any(|_| a_write_arrives_late()), "none did");
}

// Whether it did. This target ends no controller by way of another.
fn a_write_arrives_late() -> bool {
    let target = remote::serve(memory(), 2, Limits { resets: 0, ..Limits::default() });
    let proxy = Proxy::start(target.addresses()[0]);
    // The blocks stay taken for this and a second.
    let mut config = config_of(&[proxy.address()], &HostConfig { keep_alive_ms: 4000, ..host() });
    config.io_timeout = Duration::from_ms(300);
    let (disk, events) = attach(config).expect("it is there");
    disk.write_at(0, &[1; 512], false).expect("it is there");
    proxy.hold();
    // It does not arrive; it is sent again over a connection that is not held.
    disk.write_at(0, &[2; 512], false).expect("it is done in the end");
    events.wait_for("PathDown");
    // Others go on meanwhile.
    disk.write_at(4096, &[9; 512], false).expect("it is there");
    let (sender, told) = channel();
    let request = Request { operation: Operation::Write { forced: false }, offset: 0, length: 512 };
    disk.submit(request, &[3; 512], Box::new(move |result| _ = sender.send(result.is_ok())));
    let waited = told.recv_timeout(StdDuration::from_millis(500));
    assert!(waited.is_err(), "the first may still come");
    proxy.release();
    assert_eq!(told.recv_timeout(LONG), Ok(true));
    let mut read = [0; 512];
    disk.read_at(0, &mut read).expect("it is there");
    assert_eq!(read, [3; 512]);
    disk.write_at(0, &[4; 512], false).expect("it is free again");
    let written = written(&target);
    target.stop().expect("no shard has failed");
    // Five that were asked for, one of them sent again; and the first copy of that.
    assert!((5..=6).contains(&written), "{written}");
    written == 6
}

// A target that takes everything and answers nothing: requests wait, and the path is given up.
#[test]
fn a_target_that_falls_silent_is_given_up() {
    let target = serve(&memory(), None, "test");
    let proxy = Proxy::start(target.addresses()[0]);
    let (disk, events) = attach(config(&[proxy.address()])).expect("it is there");
    events.wait_for("PathUp");
    // Not even a request is needed for that: keep-alives are not answered.
    proxy.hold();
    events.wait_for("PathDown");
    events.wait_for("PathUp");
    disk.write_at(0, &[1; 512], false).expect("it is there again");
    target.stop().expect("no shard has failed");
}

#[test]
fn requests_of_many_threads_are_each_answered_once() {
    let backend = memory();
    let target = serve(&backend, None, "test");
    let (disk, _events) = attach(config(target.addresses())).expect("it is there");
    let answers = Arc::new(AtomicU64::new(0));
    let wrong = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (disk, answers, wrong) = (&disk, &answers, &wrong);
            scope.spawn(move || {
                for number in 0..2000_u64 {
                    let offset = (thread * 2000 + number) * 700;
                    let (answers, wrong) = (Arc::clone(answers), Arc::clone(wrong));
                    let (operation, length) = (Operation::Write { forced: false }, 700);
                    let done = move |result: Result<&[u8], Failure>| {
                        answers.fetch_add(1, Ordering::Relaxed);
                        if result.is_err() {
                            wrong.lock().expect("nobody panics").push(offset);
                        }
                    };
                    let data = [byte(offset); 700];
                    disk.submit(Request { operation, offset, length }, &data, Box::new(done));
                }
            });
        }
    });
    // One that changes the same blocks is done after them.
    disk.write_at(0, &vec![0; 8000 * 700], false).expect("it can");
    let began = std::time::Instant::now();
    while answers.load(Ordering::Relaxed) < 8000 {
        assert!(began.elapsed() < LONG);
        std::thread::yield_now();
    }
    assert_eq!(wrong.lock().expect("nobody panics").as_slice(), [0_u64; 0]);
    let mut read = vec![1; 8000 * 700];
    disk.read_at(0, &mut read).expect("it can");
    assert!(read.iter().all(|&byte| byte == 0), "it was the last");
    target.stop().expect("no shard has failed");
}
