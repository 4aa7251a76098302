//! The socket by which `afar ctl` looks at a run and changes it.
//!
//! One line of JSON in, one line out, over a socket in the directory of runs
//! ([`crate::run_directory`]). Polled ten times a second.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use farmem::{Retune, Snapshot, Tier};
use measure::PAGE_BYTES;
use results::live::{RunState, TierState};
use serde::{Deserialize, Serialize};

use crate::run_directory::Listener;
use crate::setting::Change;
use crate::tuning::Tuning;

/// Longest request; a peer that sends more without an end of line is disconnected.
const REQUEST_BYTES_MAX: usize = 4096;
/// Most connections at once; others wait to be accepted.
const PEERS_MAX: usize = 8;

/// A request to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Show,
    Set(Change),
}

/// The reply of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Run(RunState),
    Refused(String),
}

/// The run's end of the socket.
#[derive(Debug)]
pub(crate) struct Control {
    listener: Listener,
    peers: Vec<Peer>,
    program: String,
    tuning: Tuning,
}

#[derive(Debug)]
struct Peer {
    stream: UnixStream,
    request: Vec<u8>,
}

impl Control {
    /// Binds the socket.
    ///
    /// # Errors
    /// When the directory of runs cannot be created, or is another user's.
    pub(crate) fn listen(program: String, tuning: Tuning) -> io::Result<Self> {
        let listener = Listener::bind()?;
        listener.socket.set_nonblocking(true)?;
        Ok(Self { listener, peers: Vec::new(), program, tuning })
    }

    /// All changes of settings, in words, for the record of the run.
    pub(crate) fn into_changes(self) -> Vec<String> {
        self.tuning.into_changes()
    }

    /// Answers all complete requests. Returns the changes to apply.
    pub(crate) fn poll(&mut self, snapshot: &Snapshot) -> Vec<Retune> {
        self.accept();
        let mut retunes = Vec::new();
        for mut peer in std::mem::take(&mut self.peers) {
            match peer.receive() {
                Received::Request(line) => {
                    let reply = self.answer(&line, snapshot, &mut retunes);
                    // A connection has one request: closing it ends the reply.
                    peer.send(&reply);
                }
                Received::Nothing => self.peers.push(peer),
                Received::Closed => {}
            }
        }
        retunes
    }

    // Accepts new connections of users who may control the run.
    fn accept(&mut self) {
        while self.peers.len() < PEERS_MAX {
            let Ok((stream, _)) = self.listener.socket.accept() else {
                return;
            };
            if may_control(&stream) && stream.set_nonblocking(true).is_ok() {
                self.peers.push(Peer { stream, request: Vec::new() });
            }
        }
    }

    // Parses a request and returns the reply to it; a change is added to `retunes`.
    fn answer(&mut self, line: &[u8], snapshot: &Snapshot, retunes: &mut Vec<Retune>) -> Reply {
        match serde_json::from_slice(line) {
            Ok(Request::Show) => Reply::Run(self.state(snapshot)),
            Ok(Request::Set(change)) => match self.tuning.apply(&change, snapshot.elapsed_ns) {
                Ok(retune) => {
                    retunes.push(retune);
                    Reply::Run(self.state(snapshot))
                }
                Err(error) => Reply::Refused(error.to_string()),
            },
            Err(error) => Reply::Refused(format!(
                "the request was not understood ({error}); use the afar that started the run"
            )),
        }
    }

    // The state of the run, as a reply.
    fn state(&self, snapshot: &Snapshot) -> RunState {
        let far = snapshot.populated_pages.saturating_sub(snapshot.resident_pages);
        RunState {
            pid: std::process::id(),
            program: self.program.clone(),
            elapsed_ns: snapshot.elapsed_ns,
            process_count: snapshot.processes,
            local_bytes: snapshot.resident_pages * PAGE_BYTES,
            far_bytes: far * PAGE_BYTES,
            fetch_count: snapshot.fetch_count,
            fetch_p99_ns: snapshot.fetch_p99_ns,
            stall_count: snapshot.stall_count,
            tiers: self.tuning.tiers().iter().map(tier_state).collect(),
        }
    }
}

enum Received {
    Request(Vec<u8>),
    Nothing,
    Closed,
}

impl Peer {
    // Reads what the peer has sent, without waiting.
    fn receive(&mut self) -> Received {
        let mut buffer = [0_u8; 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Received::Closed,
                Ok(count) => self.request.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Received::Nothing;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Received::Closed,
            }
            if let Some(end) = self.request.iter().position(|&byte| byte == b'\n') {
                self.request.truncate(end);
                return Received::Request(std::mem::take(&mut self.request));
            }
            if self.request.len() > REQUEST_BYTES_MAX {
                return Received::Closed;
            }
        }
    }

    fn send(&mut self, reply: &Reply) {
        let mut line = serde_json::to_vec(reply).expect("texts and numbers have a JSON form");
        line.push(b'\n');
        // Smaller than a socket's buffer; a peer that has gone does not need it.
        let _gone = self.stream.write_all(&line);
    }
}

/// Whether the peer is root or the user of this run; the socket's permissions say the same.
fn may_control(stream: &UnixStream) -> bool {
    let Ok(peer) = rustix::net::sockopt::socket_peercred(stream) else {
        return false;
    };
    peer.uid.is_root() || peer.uid == rustix::process::geteuid()
}

fn tier_state(tier: &Tier) -> TierState {
    TierState {
        name: tier.name.clone(),
        local: tier.local.map_or_else(|| "none".to_owned(), |local| local.to_string()),
        rtt_ns: tier.link.rtt.as_ns(),
        bandwidth_bps: tier.link.bandwidth.map(measure::BitsPerSec::get),
        link: tier.link.mode.to_string(),
        profile: tier.link.profile.is_some(),
    }
}
