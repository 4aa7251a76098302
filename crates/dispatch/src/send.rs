//! Runs the driver of an engine: a Python process that lives no longer than this one.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use console::{Class, Classed, Progress};
use experiment::journal;
use launch::{Child, Waited};
use sys::event::Signals;

use crate::Place;

/// The environment variable with the path of the Python to use.
const VARIABLE: &str = "AFAR_PYTHON";
const PYTHON: &str = "python3";
const MODULE: &str = "afar._engines";
/// How often runs in the directory are counted.
const LOOK: Duration = Duration::from_millis(500);
/// How long a driver may take to stop what it has started.
const GRACE: Duration = Duration::from_secs(20);
/// Begins the driver's own messages.
const SAID: &str = "afar: ";

/// The points of a sweep to be run by an engine.
#[derive(Debug)]
pub struct Points<'a> {
    /// The engine.
    pub place: &'a Place,
    /// The directory of the sweep, with its plan.
    pub directory: &'a Path,
    /// Number of points, with those that have run.
    pub count: usize,
    /// Points at once, for an engine that the driver starts.
    pub jobs: Option<u32>,
    /// Whether points are measured: one at a time on a machine, blocks unsplit.
    pub are_measured: bool,
}

/// Why points have not run.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// Python cannot be started.
    #[error(
        "start {}: {source}; --on needs Python 3.9 with pip install afar, named with {VARIABLE}",
        program.display()
    )]
    NoPython {
        /// The path of Python.
        program: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Python lacks the package afar.
    #[error(
        "{} has no package afar, which drives engines: pip install afar, or name another Python \
         with {VARIABLE}",
        program.display()
    )]
    NoPackage {
        /// The Python.
        program: PathBuf,
    },
    /// The driver ended with an error.
    #[error("{text}")]
    Engine {
        /// The exit status of the driver.
        status: Option<i32>,
        /// The driver's last message.
        text: String,
    },
    /// The log of the driver cannot be written.
    #[error("{}: {source}; check the path and the space left on its disk", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused.
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for NotSent {
    fn class(&self) -> Class {
        match self {
            Self::NoPython { .. } | Self::NoPackage { .. } => Class::Environment,
            Self::Engine { status: Some(2), .. } | Self::Log { .. } => Class::Usage,
            Self::Engine { status: Some(3), .. } => Class::Environment,
            Self::Engine { .. } | Self::System(_) => Class::Failed,
        }
    }
}

/// Has an engine run every point of the sweep that has not run. Returns whether all ran; false if
/// the user or somebody else interrupted it.
///
/// # Errors
/// When the engine fails, or gives a point up.
///
/// # Panics
/// If the place is `Place::Local`.
pub fn send(
    points: &Points<'_>,
    signals: &Signals,
    mut progress: Progress,
) -> Result<bool, NotSent> {
    let program = python();
    let log = points.directory.join("log");
    let path = log.join("driver.txt");
    let file = fs::create_dir_all(&log).and_then(|()| File::create(&path));
    let file = file.map_err(|source| NotSent::Log { path: path.clone(), source })?;
    let mut command = command(&program, points);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let start = Child::start(command);
    let mut child =
        start.map_err(|source| NotSent::NoPython { program: program.clone(), source })?;
    loop {
        match child.wait(signals.as_fd(), Some(Instant::now() + LOOK))? {
            Waited::Ended(status) => return ended(program, status, &path),
            Waited::Woken if signals.next().is_some() => {
                child.terminate();
                // A second Ctrl-C is for those without patience.
                child.wait(signals.as_fd(), Some(Instant::now() + GRACE))?;
                return Ok(false);
            }
            Waited::Woken | Waited::Late => {}
        }
        let (done, place) = (journal::count(points.directory), format!("on {}", points.place));
        while progress.ended() < done {
            progress.end(&place);
        }
        progress.show(&place);
    }
}

// The command line of the driver.
fn command(program: &Path, points: &Points<'_>) -> Command {
    let (engine, at) = points.place.engine().expect("another place than this process");
    let mut command = Command::new(program);
    command.args(["-m", MODULE, engine]).arg("--directory").arg(points.directory);
    command.arg("--afar").arg(launch::program());
    if let Some(at) = at {
        command.args(["--at", at]);
    }
    if let Some(jobs) = points.jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    if points.are_measured {
        command.arg("--measured");
    }
    command
}

// What an ended driver amounts to: whether all points ran, or an error from its log at `path`.
fn ended(program: PathBuf, status: ExitStatus, path: &Path) -> Result<bool, NotSent> {
    const INTERRUPTED: i32 = 130;
    match status.code() {
        Some(0) => return Ok(true),
        Some(INTERRUPTED) => return Ok(false),
        _ => {}
    }
    let said = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    if said.contains("No module named") && said.contains(program.to_string_lossy().as_ref()) {
        return Err(NotSent::NoPackage { program });
    }
    let own = said.lines().rev().find_map(|line| line.strip_prefix(SAID));
    let text = own.map_or_else(
        || format!("the driver of the engine ended with {status}; {} has more", path.display()),
        str::to_owned,
    );
    Err(NotSent::Engine { status: status.code(), text })
}

/// The Python named by the variable, else that beside this program, else that of PATH.
fn python() -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return PathBuf::from(named);
    }
    let beside = launch::program().with_file_name(PYTHON);
    if beside.is_file() { beside } else { PathBuf::from(PYTHON) }
}
