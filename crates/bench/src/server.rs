//! A key-value server under test, with or without far memory.

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::{FarRun, Place, Placed};
use crate::process::{LONG, SHORT, find};
use crate::store::{Memcached, Redis, Store};

const POLL: Duration = Duration::from_millis(10);
// Redis' timers touch its memory: they run as seldom as possible, so that requests cause the
// faults.
const QUIET_REDIS: [&str; 6] = ["--hz", "1", "--dynamic-hz", "no", "--activerehashing", "no"];
// memcached without background threads, one of which would grow the hash table (2^18 buckets are
// enough), and with one worker, so that requests have one order.
const QUIET_MEMCACHED: [&str; 4] = [
    "-t",
    "1",
    "-o",
    "hashpower=18,no_hashexpand,no_lru_crawler,no_lru_maintainer,slab_automove=0",
];

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    /// Redis with its timers at their slowest.
    QuietRedis,
    /// memcached with one worker and no background work.
    QuietMemcached,
}

/// A running server.
pub(crate) struct Server {
    placed: Placed,
    socket: PathBuf,
    pub(crate) store: Box<dyn Store>,
}

/// How often a server that shuts down is connected to, as long as it accepts.
const KNOCKS: u32 = 500;
const BETWEEN_KNOCKS: Duration = Duration::from_millis(2);

impl Kind {
    /// The command line of the server.
    fn program(self, context: &Context, socket: &Path) -> Result<Vec<OsString>, Failure> {
        let socket = socket.as_os_str().to_owned();
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        if self == Self::QuietMemcached {
            let mut command = vec![find("memcached", "memcached")?, "-s".into(), socket];
            command.extend(words(&["-A", "-u", "root", "-m", "4096"]));
            command.extend(words(&QUIET_MEMCACHED));
            return Ok(command);
        }
        let mut command = vec![find("redis-server", "redis-server")?];
        command.extend(words(&["--port", "0", "--save", "", "--appendonly", "no"]));
        command.extend(["--unixsocket".into(), socket, "--dir".into()]);
        command.push(context.directory().into());
        if self == Self::QuietRedis {
            command.extend(words(&QUIET_REDIS));
        }
        Ok(command)
    }

    /// Connects to the server.
    fn connect(self, socket: &Path) -> Result<Box<dyn Store>, Failure> {
        Ok(match self {
            Self::Redis | Self::QuietRedis => Box::new(Redis::connect(socket)?),
            Self::QuietMemcached => Box::new(Memcached::connect(socket)?),
        })
    }
}

impl Server {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// When it is not installed, ends at once, or does not answer in time.
    pub(crate) fn start(context: &Context, kind: Kind, place: &Place) -> Result<Self, Failure> {
        let socket = context.fresh("sock");
        let mut placed = place.start(context, &kind.program(context, &socket)?)?;
        let deadline = Instant::now() + SHORT;
        loop {
            match kind.connect(&socket) {
                Ok(store) => {
                    return Ok(Self { placed, socket, store });
                }
                Err(_not_yet) if Instant::now() < deadline => placed.job.check()?,
                Err(_) => return Err(placed.job.too_slow("answer", SHORT)),
            }
            std::thread::sleep(POLL);
        }
    }

    /// The socket on which it listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// How many pages were fetched since its start; 0 without far memory.
    ///
    /// # Errors
    /// When afar does not answer.
    pub(crate) fn fetch_count(&self, context: &Context) -> Result<u64, Failure> {
        self.placed.fetch_count(context)
    }

    /// Shuts the server down. Returns afar's record; `None` without far memory.
    ///
    /// # Errors
    /// When the server fails or the run is invalid.
    pub(crate) fn stop(mut self) -> Result<Option<FarRun>, Failure> {
        self.store.shut_down()?;
        // memcached checks whether to stop at each new connection, otherwise once a second.
        for _knock in 0..KNOCKS {
            if UnixStream::connect(&self.socket).is_err() {
                break;
            }
            std::thread::sleep(BETWEEN_KNOCKS);
        }
        Ok(self.placed.finish(LONG)?.run)
    }
}
