//! `afar serve`: from flags to a target at work, until it is told to end.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flash::backend::{Backend, BackendUri, Geometry, OpenError, UriError};
use flash::target::{Counters, Namespace, Subsystem, Target, TargetConfig};
use measure::Bytes;
use proto::nvme::Nqn;
use sys::clock::monotonic_ns;
use sys::event::{Poll, Signals};

use crate::failure::Failure;
use crate::flags::ServeFlags;
use crate::live::Line;
use crate::terminal;

/// What cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error("{0}: write NAME=URI, e.g. disk=file:/data/disk.img")]
    Disk(String),
    #[error("{name}: a name has letters, digits, '.', '_' and '-', or is an NQN of 223 bytes")]
    Name { name: String },
    #[error("{name}: two disks have this name")]
    Twice { name: String },
    #[error("{name}: {source}")]
    Uri { name: String, source: UriError },
    #[error("{name}: {source}; check the path and its permissions")]
    Open { name: String, source: OpenError },
    #[error("--allow {0}: an NQN has 1 to 223 bytes")]
    Host(String),
    #[error("--busy-poll {0}: at most 1ms; longer is better slept")]
    BusyPoll(measure::Duration),
    #[error("{source}; is another target at {addresses}?")]
    Listen { addresses: String, source: sys::Error },
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl ServeError {
    /// Whether it is about what was asked, not about this machine.
    pub(crate) const fn is_usage(&self) -> bool {
        !matches!(self, Self::Open { .. } | Self::Listen { .. } | Self::System(_))
    }
}

/// A disk that is to be served.
struct Disk {
    nqn: Nqn,
    uri: String,
    backend: Arc<dyn Backend>,
}

/// In front of a name that is no NQN. The domain is nobody's (RFC 6762).
const PREFIX: &str = "nqn.2026-11.local.afar:";
const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const PERIOD: Duration = Duration::from_millis(500);
const BUSY_POLL_MOST: measure::Duration = measure::Duration::from_ms(1);

/// Runs `afar serve`.
///
/// # Errors
/// When a disk or an address cannot be used.
pub(crate) fn serve(flags: &ServeFlags) -> Result<ExitCode, Failure> {
    // Before any thread is started, so that none of them is interrupted.
    let signals = Signals::receive(&[SIGHUP, SIGINT, SIGTERM]).map_err(ServeError::from)?;
    let disks = disks(&flags.disks)?;
    let hosts = hosts(&flags.allow)?;
    if flags.busy_poll > BUSY_POLL_MOST {
        return Err(ServeError::BusyPoll(flags.busy_poll).into());
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let shards = flags.shards.unwrap_or_else(|| u16::try_from(processors.min(64)).unwrap_or(1));
    let config = TargetConfig {
        nvme: flags.nvme.clone(),
        shards,
        busy_poll: flags.busy_poll,
        limits: flash::target::Limits::default(),
    };
    let subsystems = disks.iter().map(|disk| subsystem(disk, hosts.clone())).collect();
    let target = Target::start(&config, subsystems).map_err(|source| ServeError::Listen {
        addresses: flags.nvme.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        source,
    })?;
    if !flags.quiet {
        terminal::answer(&welcome(&disks, target.addresses())).map_err(Failure::Stdout)?;
    }
    let mut line = if flags.quiet { None } else { Line::on_terminal() };
    watch(&target, &disks, &signals, &mut line)?;
    drop(line);
    let counters = target.counters().to_vec();
    target.stop().map_err(ServeError::from)?;
    if !flags.quiet {
        terminal::say(&summary(&counters));
    }
    Ok(ExitCode::SUCCESS)
}

fn disks(words: &[String]) -> Result<Vec<Disk>, ServeError> {
    let mut disks: Vec<Disk> = Vec::new();
    for word in words {
        // An NQN has no '=', and a URI may.
        let (name, uri) = word.split_once('=').ok_or_else(|| ServeError::Disk(word.clone()))?;
        let nqn = nqn(name).ok_or_else(|| ServeError::Name { name: name.to_owned() })?;
        if disks.iter().any(|other| other.nqn == nqn) {
            return Err(ServeError::Twice { name: name.to_owned() });
        }
        let parsed: BackendUri =
            uri.parse().map_err(|source| ServeError::Uri { name: name.to_owned(), source })?;
        let opened = parsed.open();
        let backend =
            opened.map_err(|source| ServeError::Open { name: name.to_owned(), source })?;
        disks.push(Disk { nqn, uri: uri.to_owned(), backend });
    }
    Ok(disks)
}

fn nqn(name: &str) -> Option<Nqn> {
    if name.starts_with("nqn.") {
        return Nqn::new(name);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = (1..=64).contains(&name.len()) && name.chars().all(is_plain);
    fits.then(|| Nqn::new(&format!("{PREFIX}{name}"))).flatten()
}

fn hosts(names: &[String]) -> Result<Option<BTreeSet<Nqn>>, ServeError> {
    let nqn = |name: &String| Nqn::new(name).ok_or_else(|| ServeError::Host(name.clone()));
    let hosts = names.iter().map(nqn).collect::<Result<BTreeSet<_>, _>>()?;
    Ok((!hosts.is_empty()).then_some(hosts))
}

fn subsystem(disk: &Disk, hosts: Option<BTreeSet<Nqn>>) -> Subsystem {
    let identity = format!("{}/1", disk.nqn.as_str());
    let namespace = Namespace::new(1, Arc::clone(&disk.backend), identity);
    Subsystem::new(disk.nqn.clone(), hosts, vec![namespace])
}

fn welcome(disks: &[Disk], addresses: &[SocketAddr]) -> String {
    let mut text = String::new();
    for disk in disks {
        let Geometry { block_count, block_shift, .. } = disk.backend.geometry();
        let bytes = Bytes::new(block_count << block_shift);
        let (nqn, uri) = (disk.nqn.as_str(), &disk.uri);
        text += &format!("afar: {nqn} is {uri}: {bytes} in blocks of {}\n", 1_u32 << block_shift);
    }
    for address in addresses {
        let (ip, port) = (address.ip(), address.port());
        let ip = if ip.is_unspecified() { "THIS-MACHINE".to_owned() } else { ip.to_string() };
        text += &format!("afar: serving at {address} until Ctrl-C; a Linux host mounts it with\n");
        text += &format!(
            "      nvme connect -t tcp -a {ip} -s {port} -n {}\n",
            disks.first().map_or("", |disk| disk.nqn.as_str())
        );
    }
    text
}

// Until a signal says that it is over.
fn watch(
    target: &Target,
    disks: &[Disk],
    signals: &Signals,
    line: &mut Option<Line>,
) -> Result<(), ServeError> {
    let mut poll = Poll::new()?;
    poll.add(signals, 0)?;
    poll.add(target.ended().descriptor(), 1)?;
    let mut ready = Vec::new();
    let mut last = Look::at(target.counters());
    loop {
        poll.wait(line.is_some().then_some(PERIOD), &mut ready)?;
        // A shard that has failed says why when the target is stopped.
        if ready.iter().any(|one| one.token == 1) {
            return Ok(());
        }
        while let Some(signal) = signals.next() {
            if signal != SIGHUP {
                return Ok(());
            }
            look_again(target, disks);
        }
        if let Some(line) = line {
            let look = Look::at(target.counters());
            line.draw(&look.since(&last));
            last = look;
        }
    }
}

// Files may have grown.
fn look_again(target: &Target, disks: &[Disk]) {
    let mut has_changed = false;
    for disk in disks {
        let before = disk.backend.geometry();
        disk.backend.refresh();
        let after = disk.backend.geometry();
        if before != after {
            has_changed = true;
            let (nqn, bytes) = (disk.nqn.as_str(), Bytes::new(after.bytes()));
            terminal::say(&format!("afar: {nqn} now has {bytes}\n"));
        }
    }
    if has_changed {
        target.changed(&[1]);
    }
}

/// What had been done at some time.
struct Look {
    at_ns: u64,
    requests: u64,
    bytes: u64,
    connections: u64,
}

fn sum(counters: &[Arc<Counters>], of: impl Fn(&Counters) -> &AtomicU64) -> u64 {
    counters.iter().map(|shard| of(shard).load(Ordering::Relaxed)).sum()
}

impl Look {
    fn at(counters: &[Arc<Counters>]) -> Self {
        Self {
            at_ns: monotonic_ns(),
            requests: sum(counters, |c| &c.reads) + sum(counters, |c| &c.writes),
            bytes: sum(counters, |c| &c.read_bytes) + sum(counters, |c| &c.write_bytes),
            connections: sum(counters, |c| &c.connections),
        }
    }

    fn since(&self, last: &Self) -> String {
        let period = u128::from((self.at_ns - last.at_ns).max(1));
        let rate = |count: u64| u128::from(count) * 1_000_000_000 / period;
        let mb = rate(self.bytes - last.bytes) / 1_000_000;
        let iops = rate(self.requests - last.requests);
        format!("afar  {} connections  {iops} IOPS  {mb} MB/s", self.connections)
    }
}

fn summary(counters: &[Arc<Counters>]) -> String {
    let [reads, writes] = [sum(counters, |c| &c.reads), sum(counters, |c| &c.writes)];
    let [read, written] = [
        Bytes::new(sum(counters, |c| &c.read_bytes)),
        Bytes::new(sum(counters, |c| &c.write_bytes)),
    ];
    let failures = sum(counters, |c| &c.failures);
    let violations = sum(counters, |c| &c.violations);
    format!(
        "afar: served {reads} reads ({read}) and {writes} writes ({written}); {failures} commands \
         failed, {violations} connections broke the protocol\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_nqns() {
        let text = |name: &str| nqn(name).map(|nqn| nqn.as_str().to_owned());
        assert_eq!(text("disk").as_deref(), Some("nqn.2026-11.local.afar:disk"));
        assert_eq!(text("nqn.2014-08.org:x").as_deref(), Some("nqn.2014-08.org:x"));
        for wrong in ["", "a b", "a/b", "ä"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn disks_are_named_once() {
        let words = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            disks(&words).map(|disks| disks.len()).map_err(|error| error.to_string())
        };
        assert_eq!(words(&["a=null:", "b=memory:1MiB"]), Ok(2));
        for (wrong, reason) in [
            (&["null:"][..], "write NAME=URI"),
            (&["a=null:", "a=null:"], "two disks have this name"),
            (&["a=disk:"], "no device is called"),
            (&["a=file:/nowhere"], "check the path"),
        ] {
            let error = words(wrong).expect_err("it cannot be");
            assert!(error.contains(reason), "{error}");
        }
    }
}
