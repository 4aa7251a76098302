//! A case: expected reactions of the target, and the reactions seen in each variant ("way").

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workload::Draw;

use super::site::Site;

/// A row of a table of cases.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// A description of what is sent.
    pub(super) what: &'static str,
    /// The right reactions of a target.
    pub(super) expected: &'static [Want],
    /// Whether the case may change the contents of the disk.
    pub(super) writes: bool,
    pub(super) run: Run,
}

type Run = fn(&mut Case<'_>) -> Result<(), Trouble>;

/// A row of a case that does not change the disk.
pub(super) const fn row(
    name: &'static str,
    run: Run,
    expected: &'static [Want],
    what: &'static str,
) -> Row {
    Row { name, what, expected, writes: false, run }
}

/// A row of a case that may change the disk.
pub(super) const fn may_write(
    name: &'static str,
    run: Run,
    expected: &'static [Want],
    what: &'static str,
) -> Row {
    Row { writes: true, ..row(name, run, expected, what) }
}

/// All rows of `groups`, sorted by their numbers.
pub(super) fn in_order(groups: &[&'static [Row]]) -> impl Iterator<Item = &'static Row> + use<> {
    let mut rows: Vec<&'static Row> = groups.iter().copied().flatten().collect();
    rows.sort_by_key(|row| row.name[1..].parse::<u16>().unwrap_or(u16::MAX));
    rows.into_iter()
}

/// A right reaction of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// It answers with success, and the connection lives.
    Served,
    /// It does not answer, and the connection lives.
    Ignored,
    /// It closes the connection.
    Close,
    /// C2HTermReq with this fatal error status, then it closes.
    Term(u16),
    AnyTerm,
    /// The command ends with this status, the connection lives.
    Status(u16),
    AnyStatus,
    /// Login Response with this status, then it closes.
    Login(u16),
    AnyLogin,
    /// Reject with this reason, the connection lives.
    Reject(u8),
    AnyReject,
    /// CHECK CONDITION, the connection lives.
    Check,
    /// As [`Want::Check`], with this additional sense code and qualifier.
    Sense(u16),
    /// Response to a task management function, the connection lives.
    Task(u8),
}

/// The reaction of a target that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Served,
    Ignored,
    Closed,
    Term(u16),
    Status(u16),
    Login(u16),
    Reject(u8),
    /// CHECK CONDITION with additional sense code and qualifier.
    Check(u16),
    /// Another SCSI status.
    Scsi(u8),
    Task(u8),
    /// Neither an answer nor the end of the connection in time.
    Stalled,
    /// A reaction that is always wrong, in words.
    Wrong(String),
}

/// Why a case was not tried to its end.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The target does not offer the feature that the case is about.
    NotOffered(String),
    /// The user has interrupted the program.
    Interrupted,
    /// The preparation of the case failed.
    Failed(String),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The results of a case.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// How often each reaction was seen.
    pub(super) seen: BTreeMap<String, u64>,
    /// How many variants were tried,
    pub(super) ways: u64,
    /// and how many of them had a wrong reaction.
    pub(super) wrong: u64,
    /// The first wrong reactions, with the expected ones, in words.
    pub(super) worst: Vec<String>,
}

/// How many wrong reactions are reported.
const TOLD: usize = 8;

/// A case while it runs.
pub(super) struct Case<'a> {
    pub(super) site: &'a Site,
    pub(super) draw: Draw,
    expected: &'static [Want],
    findings: Findings,
    stop: &'a AtomicBool,
}

impl<'a> Case<'a> {
    pub(super) fn new(site: &'a Site, row: &Row, stop: &'a AtomicBool) -> Self {
        let salt = row.name.bytes().fold(0, |sum: u64, byte| sum * 31 + u64::from(byte));
        let draw = Draw::new(site.seed ^ salt);
        Self { site, draw, expected: row.expected, findings: Findings::default(), stop }
    }

    /// The results of the case.
    pub(super) fn into_findings(self) -> Findings {
        self.findings
    }

    /// Counts the reaction to one variant of the case.
    pub(super) fn saw(&mut self, way: impl Into<String>, seen: &Seen) {
        self.saw_as(way, seen, self.expected);
    }

    /// As [`Case::saw`], with `wants` in place of the row's right reactions.
    pub(super) fn saw_as(&mut self, way: impl Into<String>, seen: &Seen, wants: &[Want]) {
        self.findings.ways += 1;
        *self.findings.seen.entry(seen.to_string()).or_default() += 1;
        if !wants.iter().any(|want| want.admits(seen)) {
            self.findings.wrong += 1;
            if self.findings.worst.len() < TOLD {
                let (way, wants) = (printable(&way.into()), told(wants));
                self.findings.worst.push(format!("{way}: {seen}, not {wants}"));
            }
        }
    }

    /// The number of repetitions: `often`, or a hundredth with `--quick`.
    pub(super) fn times(&self, often: u32) -> u32 {
        if self.site.quick { (often / 100).max(1) } else { often }
    }

    /// How long the target may take for slow reactions.
    pub(super) const fn patience(&self) -> Duration {
        self.site.patience
    }

    /// Checks for an interruption.
    ///
    /// # Errors
    /// When the program was interrupted.
    pub(super) fn go_on(&self) -> Result<(), Trouble> {
        if self.stop.load(Ordering::Relaxed) { Err(Trouble::Interrupted) } else { Ok(()) }
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// When the program was interrupted.
    pub(super) fn pause(&self, time: Duration) -> Result<(), Trouble> {
        let end = std::time::Instant::now() + time;
        loop {
            self.go_on()?;
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    /// `count` random bytes.
    pub(super) fn noise(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.draw.bits().to_le_bytes()[0]).collect()
    }
}

// `text` with control characters escaped, so that it cannot control a terminal.
fn printable(text: &str) -> String {
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

impl Want {
    /// Whether `seen` is this reaction.
    fn admits(self, seen: &Seen) -> bool {
        match (self, seen) {
            (Self::Served, Seen::Served)
            | (Self::Ignored, Seen::Ignored)
            | (Self::Close, Seen::Closed)
            | (Self::AnyTerm, Seen::Term(_))
            | (Self::AnyStatus, Seen::Status(_))
            | (Self::AnyLogin, Seen::Login(_))
            | (Self::AnyReject, Seen::Reject(_))
            | (Self::Check, Seen::Check(_)) => true,
            (Self::Term(want), Seen::Term(seen))
            | (Self::Status(want), Seen::Status(seen))
            | (Self::Sense(want), Seen::Check(seen))
            | (Self::Login(want), Seen::Login(seen)) => want == *seen,
            (Self::Reject(want), Seen::Reject(seen)) | (Self::Task(want), Seen::Task(seen)) => {
                want == *seen
            }
            _ => false,
        }
    }
}

/// Reactions as tables and messages write them, joined by "or".
pub(super) fn told(wants: &[Want]) -> String {
    let words: Vec<String> = wants.iter().map(ToString::to_string).collect();
    words.join(" or ")
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served => f.write_str("served"),
            Self::Ignored => f.write_str("ignored"),
            Self::Close => f.write_str("C"),
            Self::Term(status) => write!(f, "T{status}"),
            Self::AnyTerm => f.write_str("T"),
            Self::Status(status) => write!(f, "S {status:03x}h"),
            Self::AnyStatus => f.write_str("S"),
            Self::Login(status) => write!(f, "L {status:04x}h"),
            Self::AnyLogin => f.write_str("L"),
            Self::Reject(reason) => write!(f, "R {reason:02x}h"),
            Self::AnyReject => f.write_str("R"),
            Self::Check => f.write_str("CHECK"),
            Self::Sense(code) => write!(f, "CHECK {code:04x}h"),
            Self::Task(response) => write!(f, "TM {response}"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served => f.write_str("served"),
            Self::Ignored => f.write_str("ignored"),
            Self::Closed => f.write_str("C"),
            Self::Term(status) => write!(f, "T{status}"),
            Self::Status(status) => write!(f, "S {status:03x}h"),
            Self::Login(status) => write!(f, "L {status:04x}h"),
            Self::Reject(reason) => write!(f, "R {reason:02x}h"),
            Self::Check(code) => write!(f, "CHECK {code:04x}h"),
            Self::Scsi(status) => write!(f, "SCSI status {status:02x}h"),
            Self::Task(response) => write!(f, "TM {response}"),
            Self::Stalled => f.write_str("nothing in time"),
            Self::Wrong(what) => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reactions_are_as_stated_or_not() {
        assert!(Want::AnyTerm.admits(&Seen::Term(9)) && Want::Term(1).admits(&Seen::Term(1)));
        assert!(!Want::Term(1).admits(&Seen::Term(2)) && !Want::Served.admits(&Seen::Stalled));
        assert!(!Want::AnyStatus.admits(&Seen::Served), "success is no failure");
        assert!(Want::Sense(0x2100).admits(&Seen::Check(0x2100)));
        assert!(!Want::Ignored.admits(&Seen::Wrong("ignored".to_owned())));
        assert_eq!(told(&[Want::Term(1), Want::Close, Want::Status(0x80)]), "T1 or C or S 080h");
        assert_eq!(Seen::Login(0x20b).to_string(), Want::Login(0x20b).to_string());
    }
}
