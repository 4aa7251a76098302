//! `afar kv serve` and `afar load kv` as children.

use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use measure::{Bytes, Duration};

use crate::{Child, KvReady, LaunchError};

/// A key-value server at a free port of the loopback interface.
#[derive(Debug, Clone)]
pub struct KvSpec<'a> {
    /// The directory of the store.
    pub directory: &'a Path,
    /// Size of the block cache.
    pub block_cache: Bytes,
    /// Size of the write buffer.
    pub write_buffer: Bytes,
    /// Whether tables are read and written without the page cache.
    pub direct: bool,
    /// Processor time that a thread uses before each command.
    pub work: Duration,
    /// The file of its record, which it writes at its end.
    pub json: &'a Path,
}

/// A running key-value server. Dropping it kills it.
#[derive(Debug)]
pub struct KvServed {
    /// The process.
    pub child: Child,
    /// Where clients connect.
    pub address: SocketAddr,
}

impl KvSpec<'_> {
    /// Starts a server and waits until it serves. `command` executes afar: [`crate::afar`], or a
    /// program that does so elsewhere.
    ///
    /// # Errors
    /// When the process cannot be started, or ends before it serves.
    pub fn start(&self, mut command: Command) -> Result<KvServed, LaunchError> {
        let (reader, writer) = io::pipe()?;
        let writer = OwnedFd::from(writer);
        command.args(self.words());
        let number = sys::process::inherit(&mut command, &writer);
        command.args(["--ready-fd", &number.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = Child::start(command)?;
        // The child has the only other copy, so the pipe ends with the child.
        drop(writer);
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line)?;
        match KvReady::parse(&line) {
            Some(ready) => Ok(KvServed { child, address: ready.address }),
            None => Err(LaunchError::KvEnded(child.errors())),
        }
    }

    /// The arguments of the command.
    fn words(&self) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let mut words =
            ["kv", "serve", "--quiet", "--listen", "127.0.0.1:0"].map(str::to_owned).into();
        let mut add = |more: &[String]| Vec::extend_from_slice(&mut words, more);
        add(&[path(self.directory)]);
        add(&["--block-cache".to_owned(), self.block_cache.get().to_string()]);
        add(&["--write-buffer".to_owned(), self.write_buffer.get().to_string()]);
        add(&["--work".to_owned(), format!("{}ns", self.work.as_ns())]);
        add(&["--json".to_owned(), path(self.json)]);
        if self.direct {
            add(&["--direct".to_owned()]);
        }
        words
    }
}

/// A load on a key-value server, whose record is written to standard output.
#[derive(Debug, Clone)]
pub struct LoadSpec {
    /// Address of the server.
    pub address: SocketAddr,
    /// Records of the store.
    pub keys: u64,
    /// Bytes of a key, and of a value when it is set.
    pub sizes: [u64; 2],
    /// Bytes that an update appends, and the longest value; an update replaces the value if `None`.
    pub append: Option<[u64; 2]>,
    /// Share of reads, the rest being updates, in percent.
    pub read_percent: u8,
    /// Arrivals of requests.
    pub pace: LoadPace,
    /// For how long, after the warm-up.
    pub duration: Duration,
    /// Time before requests are counted.
    pub warm_up: Duration,
    /// Seed of every draw.
    pub seed: u64,
}

/// Arrivals of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadPace {
    /// Stores every record once, and sends nothing else.
    Fill,
    /// A closed loop: so many connections, each with one request at a time.
    Closed(u32),
    /// An open loop: so many requests per second.
    Open(f64),
}

/// Enough for the requests that arrive while a server pauses.
const OPEN_CONNECTIONS: u32 = 256;
const FILL_CONNECTIONS: u32 = 16;

impl LoadSpec {
    /// The command, which prints only the record.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = crate::afar();
        command.args(self.words());
        command
    }

    /// The arguments of the command.
    fn words(&self) -> Vec<String> {
        let [key, value] = self.sizes;
        let mut words: Vec<String> = ["load", "kv"].map(str::to_owned).into();
        words.push(format!("redis://{}", self.address));
        let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        flag("keys", self.keys.to_string());
        flag("key-size", key.to_string());
        flag("value-size", value.to_string());
        flag("distribution", "uniform".to_owned());
        flag("reads", format!("{}%", self.read_percent));
        if let Some([bytes, limit]) = self.append {
            flag("append", bytes.to_string());
            flag("append-limit", limit.to_string());
        }
        flag("seed", self.seed.to_string());
        flag("json", "-".to_owned());
        let connections = match self.pace {
            LoadPace::Fill => {
                flag("requests", "1".to_owned());
                FILL_CONNECTIONS
            }
            LoadPace::Closed(connections) => connections,
            LoadPace::Open(rate) => {
                flag("rate", rate.to_string());
                OPEN_CONNECTIONS
            }
        };
        if self.pace != LoadPace::Fill {
            flag("duration", format!("{}ns", self.duration.as_ns()));
            flag("warm-up", format!("{}ns", self.warm_up.as_ns()));
        }
        flag("connections", connections.to_string());
        // No polling: the load shares its machine with the server that it measures.
        flag("busy-poll", "0us".to_owned());
        words.extend((self.pace == LoadPace::Fill).then(|| "--fill".to_owned()));
        words.push("--quiet".to_owned());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_flags() {
        let spec = KvSpec {
            directory: Path::new("/d"),
            block_cache: Bytes::new(4096),
            write_buffer: Bytes::new(1 << 20),
            direct: true,
            work: Duration::from_us(1),
            json: Path::new("/j"),
        };
        let text = "kv serve --quiet --listen 127.0.0.1:0 /d --block-cache 4096 --write-buffer \
                    1048576 --work 1000ns --json /j --direct";
        assert_eq!(spec.words().join(" "), text);
        let spec = LoadSpec {
            address: "127.0.0.1:7".parse().expect("an address"),
            keys: 10,
            sizes: [16, 100],
            append: Some([10, 200]),
            read_percent: 80,
            pace: LoadPace::Open(2.5),
            duration: Duration::from_us(2),
            warm_up: Duration::from_us(1),
            seed: 3,
        };
        let beginning = "load kv redis://127.0.0.1:7 --keys 10 --key-size 16 --value-size 100 \
                         --distribution uniform --reads 80% --append 10 --append-limit 200 \
                         --seed 3 --json -";
        let text = spec.words().join(" ");
        let rest = "--rate 2.5 --duration 2000ns --warm-up 1000ns --connections 256 \
                    --busy-poll 0us --quiet";
        assert_eq!(text, format!("{beginning} {rest}"));
        let fill = LoadSpec { pace: LoadPace::Fill, append: None, ..spec };
        assert!(
            fill.words()
                .join(" ")
                .ends_with("--json - --requests 1 --connections 16 --busy-poll 0us --fill --quiet")
        );
    }

    #[test]
    fn start_of_a_program_that_ends_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no store >&2"]);
        let spec = KvSpec {
            directory: Path::new("/d"),
            block_cache: Bytes::new(0),
            write_buffer: Bytes::new(0),
            direct: false,
            work: Duration::ZERO,
            json: Path::new("/j"),
        };
        let error = spec.start(command).expect_err("it serves nothing");
        let text = "start afar kv serve: it ended before it served: no store";
        assert_eq!(error.to_string(), text);
    }
}
