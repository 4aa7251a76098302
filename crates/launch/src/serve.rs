//! `afar serve` as a child.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use measure::{Bytes, Duration};

use crate::{Child, Ready};

/// What a target serves, and how.
#[derive(Debug, Clone, Default)]
pub struct ServeSpec {
    /// Disks: the name of the subsystem, and the backend.
    pub disks: Vec<(String, String)>,
    /// Where NVMe/TCP hosts connect.
    pub nvme: Vec<SocketAddr>,
    /// Where iSCSI initiators connect.
    pub iscsi: Vec<SocketAddr>,
    /// Threads, as many as there are processors if `None`.
    pub shards: Option<usize>,
    /// How long a shard polls for the next request before it sleeps.
    pub busy_poll: Duration,
    /// Sends from this size on are not copied.
    pub zero_copy: Option<Bytes>,
    /// Whether the target reports at its end where the time of commands was spent.
    pub traces: bool,
}

/// A running target. Dropping it kills it.
#[derive(Debug)]
pub struct Served {
    /// The process. Its standard output is a pipe.
    pub child: Child,
    /// The addresses at which it serves.
    pub ready: Ready,
}

/// Why there is no target.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The process could not be started.
    #[error("start afar: {0}; check that afar may start processes")]
    Start(#[from] io::Error),
    /// The target ended before it served.
    #[error("start afar serve: it ended before it served: {0}")]
    Ended(String),
    /// The key-value server ended before it served.
    #[error("start afar kv serve: it ended before it served: {0}")]
    KvEnded(String),
}

impl ServeSpec {
    /// Starts a target and waits until it serves. `command` executes afar: [`crate::afar`], or a
    /// program that does so elsewhere.
    ///
    /// # Errors
    /// When the process cannot be started, or ends before it serves.
    pub fn start(&self, mut command: Command) -> Result<Served, LaunchError> {
        let (reader, writer) = io::pipe()?;
        let writer = OwnedFd::from(writer);
        command.args(self.words());
        let number = sys::process::inherit(&mut command, &writer);
        command.args(["--ready-fd", &number.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::start(command)?;
        // The child has the only other copy, so the pipe ends with the child.
        drop(writer);
        match Ready::read(reader) {
            Some(ready) => Ok(Served { child, ready }),
            None => Err(LaunchError::Ended(child.errors())),
        }
    }

    /// The arguments of the command.
    fn words(&self) -> Vec<String> {
        let mut words = vec!["serve".to_owned(), "--quiet".to_owned()];
        words.extend(self.disks.iter().map(|(name, uri)| format!("{name}={uri}")));
        let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
        self.nvme.iter().for_each(|address| flag("--nvme", address.to_string()));
        self.iscsi.iter().for_each(|address| flag("--iscsi", address.to_string()));
        self.shards.into_iter().for_each(|count| flag("--shards", count.to_string()));
        flag("--busy-poll", format!("{}ns", self.busy_poll.as_ns()));
        self.zero_copy.into_iter().for_each(|size| flag("--zero-copy", size.get().to_string()));
        words.extend(self.traces.then(|| "--trace".to_owned()));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_flags() {
        let spec = ServeSpec {
            disks: vec![("disk".to_owned(), "null:1MiB".to_owned())],
            nvme: vec!["127.0.0.1:0".parse().expect("an address")],
            shards: Some(2),
            busy_poll: Duration::from_us(1),
            zero_copy: Some(Bytes::new(4096)),
            traces: true,
            ..ServeSpec::default()
        };
        let text = "serve --quiet disk=null:1MiB --nvme 127.0.0.1:0 --shards 2 --busy-poll 1000ns \
                    --zero-copy 4096 --trace";
        assert_eq!(spec.words().join(" "), text);
    }

    #[test]
    fn start_of_a_program_that_ends_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no disk >&2"]);
        let error = ServeSpec::default().start(command).expect_err("it serves nothing");
        assert_eq!(error.to_string(), "start afar serve: it ended before it served: no disk");
    }
}
