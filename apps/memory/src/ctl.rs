//! `afar ctl`: looks at running programs and changes their settings.

mod error;
pub(crate) mod flags;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use console::{Failure, Output};
use measure::{BitsPerSec, Bytes, Duration};
use results::live::RunState;

use crate::control::{Reply, Request};
use crate::ctl::flags::CtlFlags;
use crate::run_directory::sockets;
use crate::setting::Change;
use console::layout::count;

pub(crate) use error::CtlError;
use error::PATIENCE;

/// Columns of the CSV that come first: those of a run. Those of its tier follow.
const RUN_COLUMNS: [&str; 9] = [
    "pid",
    "program",
    "elapsed_ns",
    "process_count",
    "local_bytes",
    "far_bytes",
    "fetch_count",
    "fetch_p99_ns",
    "stall_count",
];

/// Longest reply that is read.
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// Performs `afar ctl`.
///
/// # Errors
/// When the words are not understood, or the run cannot be reached or refuses.
pub fn ctl(flags: &CtlFlags) -> Result<ExitCode, Failure> {
    let [json, csv] = [&flags.json, &flags.csv].map(|path| Output::wanted(path.as_deref()));
    let (json, csv) = (json?, csv?);
    let words: Vec<&str> = flags.words.iter().map(String::as_str).collect();
    let [table, record, rows] = match words.as_slice() {
        [] | ["list"] => list(),
        [pid, "show"] => show(&ask(number(pid)?, &Request::Show)?),
        [pid, "set", ..] => {
            let pid = number(pid)?;
            let change = Change::from_words(&flags.words[2..]).map_err(CtlError::Setting)?;
            show(&ask(pid, &Request::Set(change))?)
        }
        _ => return Err(CtlError::Words(words.join(" ")).into()),
    };
    console::answer(|| table, vec![(json, &|| record.clone()), (csv, &|| rows.clone())])?;
    Ok(ExitCode::SUCCESS)
}

// Parses a process id.
fn number(text: &str) -> Result<u32, CtlError> {
    text.parse().map_err(|_| CtlError::Words(text.to_owned()))
}

/// Sends one request to one run. Returns its state.
fn ask(pid: u32, request: &Request) -> Result<RunState, CtlError> {
    let stream = runs().remove(&pid).ok_or(CtlError::NoRun { pid })?;
    ask_over(stream.map_err(|error| failed(pid, error))?, pid, request)
}

// The error for a failed connection to a run.
fn failed(pid: u32, source: io::Error) -> CtlError {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => CtlError::NoRun { pid },
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => CtlError::Silent { pid },
        // Users who may not control the run cannot connect, or are disconnected.
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset => CtlError::NotOurs { pid },
        _ => CtlError::Connection { pid, source },
    }
}

// Sends a request over a connection. Returns the run's state.
fn ask_over(mut stream: UnixStream, pid: u32, request: &Request) -> Result<RunState, CtlError> {
    let failed = |source| failed(pid, source);
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut line = serde_json::to_vec(request).expect("texts have a JSON form");
    line.push(b'\n');
    stream.write_all(&line).map_err(failed)?;
    let mut reply = String::new();
    BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut reply).map_err(failed)?;
    if reply.is_empty() {
        return Err(CtlError::NotOurs { pid });
    }
    match serde_json::from_str(&reply) {
        Ok(Reply::Run(state)) => Ok(state),
        Ok(Reply::Refused(text)) => Err(CtlError::Refused { pid, text }),
        Err(error) => Err(CtlError::Connection { pid, source: error.into() }),
    }
}

/// Whether the run with this process id can be reached.
pub fn answers(pid: u32) -> bool {
    ask(pid, &Request::Show).is_ok()
}

/// The current state of a run.
///
/// # Errors
/// A sentence, when it cannot be reached.
pub fn state_of(pid: u32) -> Result<RunState, String> {
    ask(pid, &Request::Show).map_err(|error| error.to_string())
}

/// The states of all runs that answer this user, in order of their process ids.
#[must_use]
pub fn states() -> Vec<RunState> {
    asked().into_iter().filter_map(|(_, state)| state.ok()).collect()
}

/// All runs on this machine by process id, each with a connection or why there is none.
///
/// The id is the kernel's for the process that listens: names can be chosen, and are those of
/// another process in another namespace. Only of a run that may not be connected to is nothing but
/// the name known.
fn runs() -> BTreeMap<u32, io::Result<UnixStream>> {
    let mut runs = BTreeMap::new();
    for found in sockets() {
        match UnixStream::connect(&found.path) {
            Ok(stream) => {
                if let Some(pid) = listener_of(&stream) {
                    runs.insert(pid, Ok(stream));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                runs.entry(found.pid).or_insert(Err(error));
            }
            // The run has ended.
            Err(_) => {}
        }
    }
    runs
}

// The process that listens on the other end of a connection.
fn listener_of(stream: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

// The state of each run, or why it does not answer.
fn asked() -> Vec<(u32, Result<RunState, CtlError>)> {
    let ask = |(pid, stream): (u32, io::Result<UnixStream>)| {
        let stream = stream.map_err(|error| failed(pid, error));
        (pid, stream.and_then(|stream| ask_over(stream, pid, &Request::Show)))
    };
    runs().into_iter().map(ask).collect()
}

// All runs as a table, as JSON and as CSV.
fn list() -> [String; 3] {
    let mut states = Vec::new();
    let mut text = format!(
        "{:>8} {:>10} {:>12} {:>12} {:>12} {:>10}  PROGRAM\n",
        "PID", "TIME", "LOCAL", "FAR", "FETCHES", "RTT"
    );
    for (pid, state) in asked() {
        let _infallible = match &state {
            Ok(state) => writeln!(
                text,
                "{pid:>8} {:>10} {:>12} {:>12} {:>12} {:>10}  {}",
                Duration::from_ns(state.elapsed_ns),
                Bytes::new(state.local_bytes),
                Bytes::new(state.far_bytes),
                count(state.fetch_count),
                Duration::from_ns(state.tiers.first().map_or(0, |tier| tier.rtt_ns)),
                state.program,
            ),
            Err(error) => writeln!(text, "{pid:>8} ({error})"),
        };
        states.extend(state);
    }
    [text, to_json(&states), to_csv(&states)]
}

// One run as text, as JSON and as CSV.
fn show(state: &RunState) -> [String; 3] {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        let _infallible = writeln!(text, "{name:<12}{value}");
    };
    row("program", state.program.clone());
    row("processes", state.process_count.to_string());
    row("time", Duration::from_ns(state.elapsed_ns).to_string());
    row("local", Bytes::new(state.local_bytes).to_string());
    row("far", Bytes::new(state.far_bytes).to_string());
    row("fetches", count(state.fetch_count));
    row("fetch p99", Duration::from_ns(state.fetch_p99_ns).to_string());
    row("stalls", count(state.stall_count));
    for tier in &state.tiers {
        let delay = if tier.profile {
            "times from a profile".to_owned()
        } else {
            format!("rtt {}", Duration::from_ns(tier.rtt_ns))
        };
        let rate = tier.bandwidth_bps.filter(|&rate| rate > 0);
        let rate =
            rate.map_or_else(|| "no limit".to_owned(), |rate| BitsPerSec::new(rate).to_string());
        row(
            &format!("tier {}", tier.name),
            format!("local {}, {delay}, bandwidth {rate}, {}", tier.local, tier.link),
        );
    }
    [text, to_json(state), to_csv(std::slice::from_ref(state))]
}

// A row for each tier: RUN_COLUMNS are of its run, the rest of the tier.
fn to_csv(states: &[RunState]) -> String {
    console::csv_of(&serde_json::json!(states), &RUN_COLUMNS)
}

fn to_json<T: serde::Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data has a JSON form");
    text.push('\n');
    text
}
