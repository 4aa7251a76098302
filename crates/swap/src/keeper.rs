//! The keeper: a separate process that changes the host for a run and restores it.
//!
//! ```text
//! run ── "bytes … page-cluster …" ─► keeper: journal, zram, swapon, control group
//!     ◄── "ready zram 3 … group …" ──
//!     ── (closes the pipe, or dies) ─► kill what is in the group, swapoff, remove, restore
//!     ◄── "left …" for what could not be put back ──
//! ```
//!
//! The keeper is in a session of its own and ignores signals of the terminal, so that what ends the
//! run does not end it: a run that is killed leaves nothing behind. If the keeper is killed too,
//! its journal stays.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use sys::group::{Group, Hierarchy};
use sys::swap::Zram;

use crate::journal::{Journal, PAGE_CLUSTER, Step, all};
use crate::{Obstacle, SwapError};
use farmem::signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

/// Fast to decompress; where it is missing, the device keeps its default.
const COMPRESSION: &str = "lz4";

/// The request of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Bytes of swap space.
    pub(crate) bytes: u64,
    /// The value of `vm.page-cluster`; `None` leaves it unchanged.
    pub(crate) page_cluster: Option<u64>,
}

/// What the keeper has set up for the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) device: Zram,
    pub(crate) group: PathBuf,
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {}", self.bytes)?;
        match self.page_cluster {
            Some(pages) => write!(f, " page-cluster {pages}"),
            None => Ok(()),
        }
    }
}

impl Wish {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        if words.next() != Some("bytes") {
            return None;
        }
        let bytes = words.next()?.parse().ok()?;
        let page_cluster = match words.next() {
            None => None,
            Some("page-cluster") => Some(words.next()?.parse().ok()?),
            Some(_) => return None,
        };
        Some(Self { bytes, page_cluster })
    }
}

impl Granted {
    fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("ready zram ")?;
        let (number, group) = rest.split_once(" group ")?;
        Some(Self { device: Zram(number.parse().ok()?), group: group.trim_end().into() })
    }
}

/// The keeper's side: grants one wish, waits for the end of `input`, and restores the host.
///
/// # Errors
/// When `input` or the journal fails, or `output` does at a malformed request.
pub fn keep(input: impl Read, mut output: impl Write) -> std::io::Result<()> {
    let _alone = sys::process::lead_session();
    let _deaf = sys::event::Signals::receive(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP]);
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input.read_line(&mut line)?;
    let Some(wish) = Wish::parse(&line) else {
        return writeln!(output, "refused the request was not understood");
    };
    let mut journal = Journal::open()?;
    let answer = match grant(wish, &mut journal) {
        Ok(granted) => {
            format!("ready zram {} group {}", granted.device.0, granted.group.display())
        }
        Err(error) => format!("refused {error}"),
    };
    let refused = answer.starts_with("refused");
    // A run that has ended does not need the answer; then the end of input comes at once.
    let _gone = writeln!(output, "{answer}").and_then(|()| output.flush());
    if !refused {
        std::io::copy(&mut input, &mut std::io::sink())?;
    }
    for left in journal.undo() {
        let _gone = writeln!(output, "left {left}");
    }
    Ok(())
}

// Sets up swap space and a control group; the journal has each step before it is done.
fn grant(wish: Wish, journal: &mut Journal) -> Result<Granted, SwapError> {
    let hierarchy = Hierarchy::find().ok_or(Obstacle::NoGroups)?;
    if let Some(pages) = wish.page_cluster {
        set_page_cluster(pages, journal)?;
    }
    if !hierarchy.is_enabled() {
        journal.add(Step::Controller { root: hierarchy.root.clone() })?;
        hierarchy.enable(true)?;
    }
    journal.add(Step::Adding { others: Zram::all()? })?;
    let device = Zram::add()?;
    journal.add(Step::Device { number: device.0 })?;
    let _another = device.compress_by(COMPRESSION);
    device.resize(wish.bytes)?;
    sys::swap::format(&device.path(), wish.bytes)?;
    sys::swap::on(&device.path())?;
    let path = hierarchy.root.join(format!("afar-{}", std::process::id()));
    journal.add(Step::Group { path: path.clone() })?;
    let group = Group::create(&path)?;
    if super::probe::zswap_is_on() && !group.bypass_zswap() {
        return Err(Obstacle::Zswap.into());
    }
    Ok(Granted { device, group: path })
}

// Sets `vm.page-cluster`, which is one setting for all runs: no live run may find it changed, nor
// restored by another.
fn set_page_cluster(pages: u64, journal: &mut Journal) -> Result<(), SwapError> {
    let mut living = all().into_iter().filter(Journal::is_answered_for);
    let sets = |step: &Step| matches!(step, Step::PageCluster { .. });
    if let Some(other) = living.find(|other| other.has(sets)) {
        return Err(SwapError::PageClusterTaken { keeper: other.owner() });
    }
    let was = sys::setting::read(PAGE_CLUSTER).ok_or(Obstacle::NoSwap)?;
    journal.add(Step::PageCluster { was, set: pages })?;
    sys::setting::write(PAGE_CLUSTER, pages)?;
    Ok(())
}

/// The run's side. Dropping it makes the keeper restore the host, and waits for that.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Keeper {
    /// Starts a keeper by `command` and has it grant `wish`.
    pub(crate) fn start(command: &mut Command, wish: Wish) -> Result<(Self, Granted), SwapError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(SwapError::Keeper)?;
        // Both pipes exist, because they were requested.
        let (Some(input), Some(output)) = (child.stdin.as_mut(), child.stdout.take()) else {
            return Err(SwapError::KeeperGone);
        };
        writeln!(input, "{wish}").map_err(SwapError::Keeper)?;
        let mut answers = BufReader::new(output);
        let mut line = String::new();
        answers.read_line(&mut line).map_err(SwapError::Keeper)?;
        if let Some(granted) = Granted::parse(&line) {
            return Ok((Self { child, answers }, granted));
        }
        let _status = child.wait();
        match line.trim_end().strip_prefix("refused ") {
            Some(why) => Err(SwapError::Refused(why.to_owned())),
            None => Err(SwapError::KeeperGone),
        }
    }

    /// The keeper's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Makes the keeper restore the host, and waits for that. Returns what it could not restore.
    pub(crate) fn dismiss(&mut self) -> Vec<String> {
        drop(self.child.stdin.take());
        let lines = self.answers.by_ref().lines().map_while(Result::ok);
        let left = lines.filter_map(|line| line.strip_prefix("left ").map(str::to_owned)).collect();
        let _reaped = self.child.wait();
        left
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _nobody_listens = self.dismiss();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_and_grants_come_back_from_their_lines() {
        for page_cluster in [None, Some(0)] {
            let wish = Wish { bytes: 1 << 30, page_cluster };
            assert_eq!(Wish::parse(&wish.to_string()), Some(wish));
        }
        let granted = Granted { device: Zram(3), group: "/sys/fs/cgroup/afar 7".into() };
        let line = "ready zram 3 group /sys/fs/cgroup/afar 7\n";
        assert_eq!(Granted::parse(line), Some(granted));
        for line in ["", "bytes", "bytes x", "bytes 1 page-cluster", "bytes 1 what 2"] {
            assert_eq!(Wish::parse(line), None, "{line}");
        }
    }
}
