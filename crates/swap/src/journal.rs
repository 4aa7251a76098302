//! The journal of a run's changes to the host, written before each, so that it can be undone.
//!
//! One line a change, in a file named after the process that is responsible for it. Whoever finds
//! the file but not the process undoes the changes: [`leftovers`](super::leftovers). Lines are only
//! ever appended, each by one write, so there is never half a journal; and undoing a change twice
//! does nothing, so none is removed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use sys::event::Poll;
use sys::group::{Group, Hierarchy};
use sys::swap::Zram;

/// The directory of journals.
pub(crate) const DIRECTORY: &str = "/run/afar";
const PREFIX: &str = "swap-";
/// The setting by which the kernel reads ahead when it swaps: 2 to this power pages.
pub(crate) const PAGE_CLUSTER: &str = "vm/page-cluster";

/// How long the processes of a group may take to end when they are killed.
const ENDING: Duration = Duration::from_secs(10);

/// A change to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// `vm.page-cluster` was changed from `was` to `set`.
    PageCluster { was: u64, set: u64 },
    /// Memory limits were enabled for groups below this root.
    Controller { root: PathBuf },
    /// A zram device is about to be added to these devices.
    Adding { others: Vec<u32> },
    /// This zram device was added, and may be swapped to.
    Device { number: u32 },
    /// This control group was created.
    Group { path: PathBuf },
}

impl Step {
    // The line of the journal.
    fn line(&self) -> String {
        match self {
            Self::PageCluster { was, set } => format!("page-cluster {was} {set}"),
            Self::Controller { root } => format!("controller {}", root.display()),
            Self::Adding { others } => {
                let numbers: Vec<String> = others.iter().map(u32::to_string).collect();
                format!("adding {}", numbers.join(" "))
            }
            Self::Device { number } => format!("device {number}"),
            Self::Group { path } => format!("group {}", path.display()),
        }
    }

    // Parses a line of the journal; `None` if it is malformed.
    fn parse(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ')?;
        let numbers = || rest.split_whitespace().map(u64::from_str);
        Some(match kind {
            "page-cluster" => {
                let mut numbers = numbers();
                let (was, set) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
                Self::PageCluster { was, set }
            }
            "controller" => Self::Controller { root: rest.into() },
            "adding" => {
                let others: Result<Vec<u32>, _> = rest.split_whitespace().map(str::parse).collect();
                Self::Adding { others: others.ok()? }
            }
            "device" => Self::Device { number: rest.trim().parse().ok()? },
            "group" => Self::Group { path: rest.into() },
            _ => return None,
        })
    }

    /// Undoes the change. A change that is undone already is no error.
    fn undo(&self) -> Result<(), sys::Error> {
        match self {
            Self::PageCluster { was, set } => {
                // A value that another process has set is left alone.
                if sys::setting::read(PAGE_CLUSTER) == Some(*set) {
                    sys::setting::write(PAGE_CLUSTER, *was)?;
                }
                Ok(())
            }
            Self::Controller { root } => {
                let hierarchy = Hierarchy { version: sys::group::Version::Two, root: root.clone() };
                // The kernel refuses if another process uses it meanwhile.
                let _in_use = hierarchy.enable(false);
                Ok(())
            }
            Self::Adding { others } => {
                for number in Zram::all()? {
                    let device = Zram(number);
                    if !others.contains(&number) && device.size() == 0 {
                        // Another run may have added the device, and be about to use it.
                        if !is_claimed(number) {
                            device.remove()?;
                        }
                    }
                }
                Ok(())
            }
            Self::Device { number } => remove_device(Zram(*number)),
            Self::Group { path } => remove_group(path),
        }
    }
}

// Turns swapping to a device off, and removes it.
fn remove_device(device: Zram) -> Result<(), sys::Error> {
    if !device.exists() {
        return Ok(());
    }
    let path = device.path();
    if sys::swap::is_on(&path) {
        sys::swap::off(&path)?;
    }
    patiently(|| device.reset())?;
    patiently(|| device.remove())
}

// Kills the processes of a group, and removes it.
fn remove_group(path: &Path) -> Result<(), sys::Error> {
    if !path.exists() {
        return Ok(());
    }
    let group = Group::at(path);
    let start = Instant::now();
    while group.processes().is_ok_and(|pids| !pids.is_empty()) && start.elapsed() < ENDING {
        group.kill();
        pause(Duration::from_millis(2));
    }
    patiently(|| group.remove())
}

// Retries `act` for a second: another process may have the file open for a moment.
fn patiently(mut act: impl FnMut() -> Result<(), sys::Error>) -> Result<(), sys::Error> {
    const TRIES: u32 = 100;
    for _ in 1..TRIES {
        match act() {
            Ok(()) => return Ok(()),
            Err(_) => pause(Duration::from_millis(10)),
        }
    }
    act()
}

// Sleeps. Nothing interrupts this: the keeper goes on until the host is restored.
fn pause(time: Duration) {
    if let Ok(mut nothing) = Poll::new() {
        let _never_ready = nothing.wait(Some(time), &mut Vec::new());
    }
}

/// The changes of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Journal {
    path: PathBuf,
    owner: Owner,
    pub(crate) steps: Vec<Step>,
}

/// A process, distinguished from a later one with its number by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    pid: u32,
    started: u64,
}

impl Owner {
    fn file_name(self) -> String {
        format!("{PREFIX}{}-{}", self.pid, self.started)
    }

    fn parse(file_name: &str) -> Option<Self> {
        let (pid, started) = file_name.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, started: started.parse().ok()? })
    }

    // Whether the process still runs.
    fn lives(self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

// The start time of a process, in ticks since the start of the machine; `None` for one that is
// ending or has ended, and changes nothing any more.
fn started(pid: u32) -> Option<u64> {
    start_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

// The start time in a stat file; `None` if the process is ending. Fields (proc_pid_stat(5)): state
// 3, flags 9, starttime 22.
fn start_of(stat: &str) -> Option<u64> {
    const EXITING: u64 = 4;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let flags: u64 = fields.get(6)?.parse().ok()?;
    let has_ended = matches!(*fields.first()?, "Z" | "X") || flags & EXITING != 0;
    if has_ended { None } else { fields.get(19)?.parse().ok() }
}

impl Journal {
    /// Creates the journal of this process, without entries.
    pub(crate) fn open() -> io::Result<Self> {
        let pid = std::process::id();
        let started = started(pid).ok_or_else(|| io::Error::other("this process is not in /proc"));
        let owner = Owner { pid, started: started? };
        let path = Path::new(DIRECTORY).join(owner.file_name());
        fs::create_dir_all(DIRECTORY)?;
        fs::File::create(&path)?;
        Ok(Self { path, owner, steps: Vec::new() })
    }

    /// Records a change that is about to be made.
    pub(crate) fn add(&mut self, step: Step) -> io::Result<()> {
        let mut file = fs::File::options().append(true).open(&self.path)?;
        file.write_all(format!("{}\n", step.line()).as_bytes())?;
        self.steps.push(step);
        Ok(())
    }

    /// Undoes all changes, the last one first. Returns a message for each that could not be undone.
    /// Removes the journal if none is left.
    pub(crate) fn undo(&self) -> Vec<String> {
        let failed = |step: &Step| {
            let error = step.undo().err()?;
            Some(format!("{}: {error}", step.line()))
        };
        let left: Vec<String> = self.pending().rev().filter_map(failed).collect();
        if left.is_empty() {
            let _gone = fs::remove_file(&self.path);
            // The kernel refuses while another run has a journal there.
            let _in_use = fs::remove_dir(DIRECTORY);
        }
        left
    }

    // All changes, without the search for a device that is known by now.
    fn pending(&self) -> impl DoubleEndedIterator<Item = &Step> {
        let known = self.steps.iter().any(|step| matches!(step, Step::Device { .. }));
        self.steps.iter().filter(move |step| !(known && matches!(step, Step::Adding { .. })))
    }

    /// Whether `kind` holds for one of the changes.
    pub(crate) fn has(&self, kind: impl FnMut(&Step) -> bool) -> bool {
        self.pending().any(kind)
    }

    /// Whether the responsible process still runs.
    pub(crate) fn is_answered_for(&self) -> bool {
        self.owner.lives()
    }

    /// The responsible process, which may have ended.
    pub(crate) fn owner(&self) -> u32 {
        self.owner.pid
    }

    /// The changes in words.
    pub(crate) fn describe(&self) -> String {
        let device = |number: &u32| format!("swap space {}", Zram(*number).path().display());
        let words = self.pending().map(|step| match step {
            Step::PageCluster { was, .. } => format!("vm.page-cluster, which was {was}"),
            Step::Controller { root } => format!("memory limits enabled below {}", root.display()),
            Step::Adding { .. } => "perhaps a zram device".to_owned(),
            Step::Device { number } => device(number),
            Step::Group { path } => format!("control group {}", path.display()),
        });
        let words: Vec<String> = words.collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }

    fn parse(path: &Path, text: &str) -> Option<Self> {
        let owner = Owner::parse(path.file_name()?.to_str()?)?;
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let steps: Option<Vec<Step>> = lines.map(Step::parse).collect();
        Some(Self { path: path.to_owned(), owner, steps: steps? })
    }
}

/// All journals on this host.
pub(crate) fn all() -> Vec<Journal> {
    let entries = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let path = entry.path();
        Journal::parse(&path, &fs::read_to_string(&path).ok()?)
    };
    let mut journals: Vec<Journal> = entries.filter_map(read).collect();
    journals.sort_by_key(Journal::owner);
    journals
}

// Whether a live run has, or may have, the zram device.
fn is_claimed(number: u32) -> bool {
    let claims = |step: &Step| match step {
        Step::Device { number: other } => *other == number,
        Step::Adding { others } => !others.contains(&number),
        _ => false,
    };
    let mut living = all().into_iter().filter(Journal::is_answered_for);
    living.any(|journal| journal.has(claims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_back_from_their_lines() {
        let steps = [
            Step::PageCluster { was: 3, set: 0 },
            Step::Controller { root: "/sys/fs/cgroup".into() },
            Step::Adding { others: vec![0, 7] },
            Step::Adding { others: vec![] },
            Step::Device { number: 4 },
            Step::Group { path: "/sys/fs/cgroup/memory/afar 1".into() },
        ];
        for step in steps {
            assert_eq!(Step::parse(&step.line()), Some(step));
        }
        for line in ["", "device", "device x", "page-cluster 3", "adding a", "flag 1"] {
            assert_eq!(Step::parse(line), None, "{line}");
        }
    }

    #[test]
    fn half_a_line_is_not_there_yet() {
        let path = Path::new("/run/afar/swap-77-1234");
        let steps = |text| Journal::parse(path, text).map(|journal| journal.steps);
        let device = Step::Device { number: 4 };
        assert_eq!(steps(""), Some(vec![]));
        assert_eq!(steps("device 4\n"), Some(vec![device.clone()]));
        assert_eq!(steps("device 4\ngroup /a"), Some(vec![device]));
        assert_eq!(steps("device 4\nflag 1\n"), None, "of a later version");
        let journal = Journal::parse(path, "").unwrap();
        assert_eq!((journal.owner(), journal.describe().as_str()), (77, "nothing"));
        assert_eq!(Journal::parse(Path::new("/run/afar/swap-77"), ""), None);
    }

    #[test]
    fn a_device_that_is_known_is_not_searched_for() {
        let text = "adding 0 1\ndevice 2\n";
        let journal = Journal::parse(Path::new("/run/afar/swap-77-1234"), text).unwrap();
        assert_eq!(journal.describe(), "swap space /dev/zram2");
        assert!(!journal.has(|step| matches!(step, Step::Adding { .. })));
    }

    #[test]
    fn an_owner_is_told_from_a_later_process_with_its_number() {
        let pid = std::process::id();
        let now = started(pid).unwrap();
        assert!(Owner { pid, started: now }.lives());
        assert!(!Owner { pid, started: now + 1 }.lives());
        assert!(!Owner { pid: u32::MAX, started: now }.lives());
    }

    #[test]
    fn who_is_ending_answers_for_nothing() {
        let stat = |state: &str, flags: u32| {
            start_of(&format!("7 (a) b) {state} 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 999 0"))
        };
        assert_eq!(stat("R", 0x0040_0000), Some(999));
        assert_eq!(stat("R", 0x0040_0004), None);
        assert_eq!(stat("Z", 0x0040_0000), None);
    }

    #[test]
    fn what_is_gone_already_is_undone() {
        let gone = [
            Step::Device { number: u32::MAX },
            Step::Group { path: "/sys/fs/cgroup/no-such-group-of-afar".into() },
            Step::PageCluster { was: 3, set: u64::MAX },
        ];
        for step in gone {
            step.undo().unwrap();
        }
    }
}
