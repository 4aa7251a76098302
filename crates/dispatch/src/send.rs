//! The driver of an engine: a Python process that lives as long as we do.

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

/// The variable that names the Python that has the engines.
const VARIABLE: &str = "AFAR_PYTHON";
const PYTHON: &str = "python3";
const MODULE: &str = "afar._engines";
/// How often the directory is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long a driver may take to end what it has started.
const GRACE: Duration = Duration::from_secs(20);
/// What the driver says of itself begins so.
const SAID: &str = "afar: ";

/// Points that are to run somewhere else.
#[derive(Debug)]
pub struct Points<'a> {
    /// The engine.
    pub place: &'a Place,
    /// The directory of the sweep, with its plan.
    pub directory: &'a Path,
    /// How many there are, those that have run among them.
    pub count: usize,
    /// Points at once, where the engine is our own.
    pub jobs: Option<u32>,
    /// Whether they are measured: one at a time on a machine, blocks in one piece.
    pub are_measured: bool,
}

/// Why points have not run.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// There is no Python to drive the engine.
    #[error(
        "start {}: {source}; --on needs Python 3.9 with pip install afar, named with {VARIABLE}",
        program.display()
    )]
    NoPython {
        /// What was to be started.
        program: PathBuf,
        /// Why it was not.
        source: io::Error,
    },
    /// Python does not know the package.
    #[error(
        "{} has no package afar, which drives engines: pip install afar, or name another Python \
         with {VARIABLE}",
        program.display()
    )]
    NoPackage {
        /// The Python.
        program: PathBuf,
    },
    /// The engine said why.
    #[error("{text}")]
    Engine {
        /// The exit status of the driver.
        status: Option<i32>,
        /// What it said.
        text: String,
    },
    /// What the driver says cannot be kept.
    #[error("{}: {source}; check the path and the space left on its disk", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why not.
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

/// Has an engine run every point that is not there yet; whether all ran, and not the user or
/// somebody else ended it.
///
/// # Errors
/// When the engine cannot, or gives a point up.
///
/// # Panics
/// If the place is this process.
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

/// That of the variable, that of the installation to which this program belongs, or that of PATH.
fn python() -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return PathBuf::from(named);
    }
    let beside = launch::program().with_file_name(PYTHON);
    if beside.is_file() { beside } else { PathBuf::from(PYTHON) }
}
