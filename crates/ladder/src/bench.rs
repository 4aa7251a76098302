//! One run of a cell: what it took, and the proof that its pages were far.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use console::Class;
use experiment::noise::{Noise, Reading, Tolerance};
use experiment::{Measured, least_disturbed};
use launch::{Child, LaunchError, ServeSpec, Served, Waited};
use measure::{Run, RunResults};
use results::validity;
use serde::{Deserialize, Serialize};
use sys::echo::{self, End};
use sys::event::{Signals, Waker};
use sys::processors::Processors;

use super::step::{Cell, Direction, Means, PAGE, Size, Step};

const SUBSYSTEM: &str = "nqn.2026-11.local.afar:table5";
/// The device of the target: more memory than the program ever uses.
const BLADE: &str = "memory:1GiB";
const TOLERANCE: Tolerance = Tolerance { stolen_max: 0.10, others_max: 0.05 };
/// A run moves this share at least of what it has to, or it does not count.
const MOVED_MIN: f64 = 0.95;
/// How long a run may take,
const LIMIT: Duration = Duration::from_secs(60);
/// and how long it may take to end when it is asked to, so that it leaves no swap space.
const GRACE: Duration = Duration::from_secs(10);
/// Touches of the kernel's own minor faults.
const MINOR: &str = "probe --minor --pages 2048 --touches 8192";

/// Why nothing can be run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The directory of records cannot be made.
    #[error("keep records in {}: {source}; check the path and its permissions", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The target did not start.
    #[error(transparent)]
    Target(#[from] LaunchError),
    /// The target did not say where it serves.
    #[error("the target did not say at which address it serves; try again")]
    Nowhere,
}

/// One of the times of a run, in nanoseconds.
pub type TimeOf = fn(&Seen) -> u64;

/// What a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Times of touches, or of answers, in nanoseconds: the shortest,
    pub min_ns: u64,
    /// the mean, of one thread only,
    pub mean_ns: u64,
    /// the median,
    pub p50_ns: u64,
    /// the 90th percentile,
    pub p90_ns: u64,
    /// the 99th,
    pub p99_ns: u64,
    /// the 99.5th,
    pub p995_ns: u64,
    /// and the longest.
    pub max_ns: u64,
    /// What was moved; `None` of a cell without far memory.
    pub moved: Option<Moved>,
}

/// What a run with far memory has moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// How long the touches took, in nanoseconds.
    pub elapsed_ns: u64,
    /// Bytes that they needed,
    pub wanted_bytes: u64,
    /// and that the run moved in all, by its record.
    pub bytes: u64,
    /// Pages that a thread waited for.
    pub fetch_count: u64,
    /// Spins for a page that expired, and all of them; `None` where threads do not spin for pages
    /// of a blade.
    pub spins: Option<[u64; 2]>,
}

impl Moved {
    /// Gigabytes per second of what the touches needed.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.wanted_bytes as f64 / self.elapsed_ns.max(1) as f64
    }
}

/// A run, with what disturbed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What it took.
    pub seen: Seen,
    /// What other programs and guests did meanwhile.
    pub noise: Noise,
    /// What disturbed it; `None` if nothing did.
    pub disturbed: Option<String>,
}

/// Why a cell has no figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Lack {
    /// The user interrupted it.
    Interrupted,
    /// This machine cannot do it: the reason.
    Absent(String),
    /// The run failed or does not count: the reason.
    Failed(String),
}

/// An attempt of a cell.
struct Tried(Result<Seen, Lack>, Noise);

impl Tried {
    fn disturbance(&self) -> Option<String> {
        self.1.disturbance(TOLERANCE)
    }
}

impl Measured for Tried {
    fn noise(&self) -> &Noise {
        &self.1
    }

    fn is_disturbed(&self) -> bool {
        self.disturbance().is_some()
    }

    fn has_figure(&self) -> bool {
        self.0.is_ok()
    }
}

/// What the program prints of its touches.
#[derive(Debug, Deserialize)]
struct Touches {
    touch_count: u64,
    elapsed_ns: u64,
    min_ns: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p995_ns: u64,
    max_ns: u64,
}

/// The target, and where everything runs.
pub struct Bench<'a> {
    served: Served,
    uri: String,
    places: Option<[usize; 2]>,
    spins: bool,
    size: Size,
    /// Where runs write their records.
    directory: PathBuf,
    signals: &'a Signals,
}

impl<'a> Bench<'a> {
    /// Starts the target; runs write their records to `directory`.
    ///
    /// # Errors
    /// When the target does not serve, or the directory cannot be made.
    pub fn start(size: Size, directory: PathBuf, signals: &'a Signals) -> Result<Self, StartError> {
        let made = fs::create_dir_all(&directory);
        made.map_err(|source| StartError::Directory { path: directory.clone(), source })?;
        let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let disks = vec![(SUBSYSTEM.to_owned(), BLADE.to_owned())];
        let target = ServeSpec { disks, nvme: vec![any], ..ServeSpec::default() };
        let places = places();
        let command = match places {
            None => launch::afar(),
            Some([_, other]) => on(other, launch::program()),
        };
        let served = target.start(command)?;
        let address = served.ready.nvme.first().copied().ok_or(StartError::Nowhere)?;
        let uri = format!("nvme+tcp://{address}/{SUBSYSTEM}");
        let spins = sys::feature::bpf_tracing().is_ok();
        Ok(Self { served, uri, places, spins, size, directory, signals })
    }

    /// Whether threads spin for single pages.
    #[must_use]
    pub const fn spins(&self) -> bool {
        self.spins
    }

    /// The processor of programs, and that of supervisors and the target.
    #[must_use]
    pub const fn places(&self) -> Option<[usize; 2]> {
        self.places
    }

    /// Runs a cell, up to `attempts` times until nothing disturbs it. Returns the least disturbed
    /// run.
    ///
    /// # Errors
    /// Why the cell has no figure.
    pub fn run(&self, cell: Cell, attempts: u32) -> Result<Turn, Lack> {
        let once = || -> Result<Tried, std::convert::Infallible> {
            let (before, target) = (Reading::now(), self.target_time());
            let seen = match cell {
                Cell::Far(step) => self.far(step),
                Cell::Echo => self.echo(),
                Cell::Minor => self.minor(),
            };
            let theirs = self.target_time().saturating_sub(target);
            Ok(Tried(seen, before.until_now_beside(theirs)))
        };
        let Ok((tried, _repeated)) = least_disturbed(attempts, once);
        let disturbed = tried.disturbance();
        Ok(Turn { seen: tried.0?, noise: tried.1, disturbed })
    }

    // The processor time of the target so far.
    fn target_time(&self) -> Duration {
        let usage = sys::usage::of_process(self.served.child.id());
        Duration::from_nanos(usage.map_or(0, |usage| usage.processor_ns()))
    }

    // Runs a program with far memory.
    fn far(&self, step: Step) -> Result<Seen, Lack> {
        let [record, touches] = ["run.json", "touches.json"].map(|name| self.directory.join(name));
        for path in [&record, &touches] {
            let _none = fs::remove_file(path);
        }
        let means =
            Means { uri: &self.uri, places: self.places, spins: self.spins, size: self.size };
        let ended = self.finish(step.command(&means, &record, &touches));
        let run = read(&record).and_then(|text| told(Run::<RunResults>::from_json(&text)));
        // The record of an invalid run has the reason.
        if let Ok(run) = &run {
            run.results.figures().map_err(|invalid| Lack::Failed(validity::told(&invalid)))?;
        }
        ended?;
        let touches: Touches = read(&touches).and_then(|text| told(serde_json::from_str(&text)))?;
        seen(&touches, step.direction, self.size, &run?.results)
    }

    // Times the echo, its ends where supervisor and target are.
    fn echo(&self) -> Result<Seen, Lack> {
        let end = End { processor: self.places.map(|[_, other]| other), spins: false };
        let times = echo::samples(end, end, self.size.echoes);
        let times = times.map_err(|error| Lack::Failed(error.to_string()))?;
        Seen::of(times).ok_or_else(|| Lack::Failed("no request was answered".to_owned()))
    }

    // Times the kernel's own minor faults.
    fn minor(&self) -> Result<Seen, Lack> {
        let touches = self.directory.join("minor.json");
        let _none = fs::remove_file(&touches);
        let mut command = launch::afar();
        command.args(MINOR.split(' ')).arg("--output").arg(&touches);
        self.finish(command)?;
        let touches: Touches = read(&touches).and_then(|text| told(serde_json::from_str(&text)))?;
        Ok(touches.seen(None))
    }

    // Runs a command to its end.
    fn finish(&self, mut command: Command) -> Result<(), Lack> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = told(Child::start(command))?;
        let until = Some(Instant::now() + LIMIT);
        let status = match told(child.wait(self.signals.as_fd(), until))? {
            Waited::Ended(status) => status,
            early => {
                child.terminate();
                // Not by the signals: one of them is here already.
                let nothing = told(Waker::new())?;
                let never = nothing.descriptor().as_fd();
                let _late = child.wait(never, Some(Instant::now() + GRACE));
                return Err(match early {
                    Waited::Woken => Lack::Interrupted,
                    _ => Lack::Failed(format!("it took longer than {} s", LIMIT.as_secs())),
                });
            }
        };
        match status.success() {
            true => Ok(()),
            false => Err(lack(status, &child.errors())),
        }
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.directory);
    }
}

/// The processor of a program, and that of target and supervisor, whose messages then need no
/// interrupt between processors. `None` if there is only one.
#[must_use]
pub fn places() -> Option<[usize; 2]> {
    const PROCESSORS_MAX: usize = 1024;
    let allowed = Processors::of(0).ok()?;
    let mut numbers = (0..PROCESSORS_MAX).filter(|&number| allowed.only(number).is_some());
    let first = numbers.next()?;
    numbers.next_back().map(|last| [first, last])
}

/// A command that runs `program` on one processor.
#[must_use]
pub fn on(processor: usize, program: PathBuf) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &processor.to_string()]).arg(program);
    command
}

// What a command lacked that ended with `status` and said `text`.
fn lack(status: ExitStatus, text: &str) -> Lack {
    let last = text.lines().last().unwrap_or("it printed nothing");
    match status.code() == Some(Class::Environment.status().into()) {
        true => Lack::Absent(last.to_owned()),
        false => Lack::Failed(format!("{status}: {last}")),
    }
}

// Turns an error into the reason of a failure.
fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, Lack> {
    result.map_err(|error| Lack::Failed(error.to_string()))
}

fn read(path: &Path) -> Result<String, Lack> {
    let failed = |error| Lack::Failed(format!("read {}: {error}", path.display()));
    fs::read_to_string(path).map_err(failed)
}

/// What a run has shown; an error if not all of the pages were far.
fn seen(
    touches: &Touches,
    direction: Direction,
    size: Size,
    results: &RunResults,
) -> Result<Seen, Lack> {
    let figures = results.figures().map_err(|why| Lack::Failed(validity::told(&why)))?;
    let (bytes, how) = match direction {
        Direction::In => (figures.fetched_bytes, "fetched"),
        Direction::Out => (figures.written_back_bytes, "written back"),
    };
    let wanted_bytes = size.wanted(direction);
    if (bytes as f64) < MOVED_MIN * wanted_bytes as f64 {
        return Err(Lack::Failed(format!(
            "invalid: {} of {} pages were {how}, so not every touch was of a page that was far; \
             run it on a machine that does less",
            bytes / PAGE,
            wanted_bytes / PAGE
        )));
    }
    let spins = figures.mechanism.spins;
    let spins = spins.map(|all| [all.expired_count, all.expired_count + all.answered_count]);
    let fetch_count = figures.faults.fetch_count;
    let elapsed_ns = touches.elapsed_ns;
    Ok(touches.seen(Some(Moved { elapsed_ns, wanted_bytes, bytes, fetch_count, spins })))
}

impl Touches {
    fn seen(&self, moved: Option<Moved>) -> Seen {
        Seen {
            min_ns: self.min_ns,
            mean_ns: self.elapsed_ns / self.touch_count.max(1),
            p50_ns: self.p50_ns,
            p90_ns: self.p90_ns,
            p99_ns: self.p99_ns,
            p995_ns: self.p995_ns,
            max_ns: self.max_ns,
            moved,
        }
    }
}

impl Seen {
    /// The quantiles of times in nanoseconds; `None` without one.
    fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let count = times.len();
        // As the program's: the smallest time that a share of them does not exceed.
        let quantile = |per_mille: usize| times.get((count * per_mille).div_ceil(1000).max(1) - 1);
        Some(Self {
            min_ns: *times.first()?,
            mean_ns: times.iter().sum::<u64>() / count as u64,
            p50_ns: *quantile(500)?,
            p90_ns: *quantile(900)?,
            p99_ns: *quantile(990)?,
            p995_ns: *quantile(995)?,
            max_ns: *times.last()?,
            moved: None,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use measure::Figures;

    use super::*;

    const SIZE: Size = Size { pages: 400, touches: 1000, fresh: 1100, echoes: 1 };

    /// A run with a rate in gigabytes per second and a median time.
    pub(crate) fn turn(rate: f64, p50_us: f64) -> Turn {
        let whole = |value: f64| Duration::from_secs_f64(value).as_secs();
        let p50_ns = whole(p50_us * 1e3);
        let elapsed_ns = 1_000_000_000;
        let wanted_bytes = whole(rate * elapsed_ns as f64);
        let bytes = wanted_bytes;
        let moved = Moved { elapsed_ns, wanted_bytes, bytes, fetch_count: 1, spins: Some([1, 4]) };
        let seen = Seen {
            min_ns: p50_ns / 2,
            mean_ns: p50_ns,
            p50_ns,
            p90_ns: 2 * p50_ns,
            p99_ns: 3 * p50_ns,
            p995_ns: 4 * p50_ns,
            max_ns: 9 * p50_ns,
            moved: Some(moved),
        };
        Turn { seen, noise: Noise::default(), disturbed: None }
    }

    fn touches() -> Touches {
        let (touch_count, elapsed_ns) = (1000, 4_096_000);
        let (min_ns, p50_ns, p90_ns, p99_ns, p995_ns, max_ns) = (1, 5, 9, 10, 11, 12);
        Touches { touch_count, elapsed_ns, min_ns, p50_ns, p90_ns, p99_ns, p995_ns, max_ns }
    }

    fn of(direction: Direction, pages: u64) -> Result<Seen, Lack> {
        let (mut fetched_bytes, mut written_back_bytes) = (pages * PAGE, 0);
        if direction == Direction::Out {
            std::mem::swap(&mut fetched_bytes, &mut written_back_bytes);
        }
        let figures = Figures { fetched_bytes, written_back_bytes, ..Figures::default() };
        let results = RunResults::judged(figures, Vec::new(), &[], None).allowing_unmanaged();
        seen(&touches(), direction, SIZE, &results)
    }

    #[test]
    fn a_rate_is_of_pages_that_were_far_and_of_nothing_else() {
        for direction in Direction::ALL {
            let moved = of(direction, 1000).expect("all were far").moved.expect("it moved");
            assert_eq!(moved.rate(), 1.0, "a gigabyte per second");
            // Pages that came ahead of use and were not used are in no rate.
            let more = of(direction, 2000).expect("all were far").moved.expect("it moved");
            assert_eq!((more.rate(), more.bytes), (1.0, 2000 * PAGE));
            let Err(Lack::Failed(why)) = of(direction, 940) else { panic!("some were not far") };
            assert!(why.starts_with("invalid: 940 of 1000 pages were "), "{why}");
        }
    }

    #[test]
    fn a_machine_that_lacks_something_is_told_from_a_run_that_fails() {
        let ended = |code: i32| lack(ExitStatus::from_raw(code << 8), "x\nno zram");
        assert_eq!(ended(3), Lack::Absent("no zram".to_owned()));
        assert_eq!(ended(1), Lack::Failed("exit status: 1: no zram".to_owned()));
    }

    #[test]
    fn quantiles_are_samples() {
        let seen = Seen::of((1..=1000).rev().collect()).expect("there are some");
        assert_eq!((seen.min_ns, seen.mean_ns, seen.max_ns), (1, 500, 1000));
        assert_eq!([seen.p50_ns, seen.p90_ns, seen.p99_ns, seen.p995_ns], [500, 900, 990, 995]);
        assert_eq!(Seen::of(Vec::new()), None);
    }
}
