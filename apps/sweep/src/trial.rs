//! Runs the workload once and reads its figure.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use experiment::journal::Journal;
use experiment::noise::Reading;
use experiment::{least_disturbed, machine};
use measure::{Bytes, Run, RunResults};
use results::CellKind as Kind;
use sys::event::{Poll, SIGTERM, Signals};

use super::file::{Metric, Sweep};
use super::matrix::Cell;
use super::row::Row;
use super::trouble::{NotKept, Trouble};
use super::whole;
use results::validity;

const SIGKILL: i32 = 9;
const LOOK: Duration = Duration::from_millis(10);
/// How long a run that is being stopped may take to end before it is killed.
const LAST_GRACE: Duration = Duration::from_secs(1);
/// How long a server may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);
/// The prefix of names of private directories; process id and a number follow.
const SCRATCH: &str = "afar-sweep-";
const TAIL_CHARS: usize = 200;

/// The settings of all runs of a sweep.
pub struct Trials<'a> {
    /// The experiment.
    pub sweep: &'a Sweep,
    /// Whether runs with much unmanaged memory count.
    pub allow_unmanaged: bool,
    /// The path of this program.
    pub afar: PathBuf,
    /// Signals such as Ctrl-C.
    pub signals: &'a Signals,
}

/// A private directory of a run, removed on drop.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// A process and its process group, which are ended on drop.
struct Started {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Drop for Started {
    fn drop(&mut self) {
        let is_running = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        if is_running(&mut self.child) {
            // The whole group, so that afar can clean up.
            let _gone = sys::process::kill_group(self.child.id(), SIGTERM);
            let until = Instant::now() + LAST_GRACE;
            while is_running(&mut self.child) && Instant::now() < until {
                std::thread::sleep(LOOK);
            }
            // The program dies with afar.
            let _gone = self.child.kill();
        }
        let _gone = sys::process::kill_group(self.child.id(), SIGKILL);
        let _reaped = self.child.wait();
    }
}

impl Trials<'_> {
    /// Runs a cell in a block until a run is undisturbed or attempts run out, and adds the least
    /// disturbed one to the journal; does nothing if the journal has that run. The journal's rows
    /// say what shares are of. Returns why the new run has no figure; `None` if it has one.
    ///
    /// # Errors
    /// When the user has interrupted the sweep, or the journal cannot be written.
    pub fn keep(
        &self,
        cell: &Cell,
        block: u32,
        journal: &mut Journal<Row>,
    ) -> Result<Option<String>, NotKept> {
        if journal.has(block, &cell.name()) {
            return Ok(None);
        }
        let host_class = Some(machine::class(&console::machine::describe()));
        let (log, id) = (journal.log(), journal.header().id(block, &cell.name()));
        log.began(&id);
        let once = || self.once(cell, block, &journal.rows);
        let (row, repeated_count) = least_disturbed(self.sweep.attempts, once)?;
        let trouble = row.trouble().map(str::to_owned);
        journal.add(Row { repeated_count, host_class, ..row })?;
        log.ended(&id);
        Ok(trouble)
    }

    /// Runs a cell once.
    fn once(&self, cell: &Cell, block: u32, rows: &[Row]) -> Result<Row, NotKept> {
        let started_unix_ns = sys::clock::unix_ns();
        let before = Reading::now();
        let start = Instant::now();
        let mut row = Row { block, cell: cell.name(), started_unix_ns, ..Row::default() };
        let peak = whole::of_run(cell, rows);
        match peak.and_then(|peak| self.measure((cell, peak), &mut row)) {
            Ok(value) => row.value = Some(value),
            Err(Trouble::Failed(why)) => row.failure = Some(why),
            Err(Trouble::Invalid(why)) => row = row.invalidated(why),
            Err(Trouble::Interrupted) => return Err(NotKept::Interrupted),
        }
        row.elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        row.noise = before.until_now();
        row.disturbed = row.noise.disturbance(self.sweep.tolerance());
        Ok(row)
    }

    /// Runs the workload, and its load if it has one. Returns the figure; stores afar's facts in
    /// `row`.
    fn measure(&self, (cell, peak): (&Cell, Option<Bytes>), row: &mut Row) -> Result<f64, Trouble> {
        let scratch = scratch().map_err(failed("make a directory"))?;
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.map_err(failed("find a free port"))?.port();
        let words = |words: &[String]| -> Vec<String> {
            let directory = scratch.0.display().to_string();
            let fill = |word: &String| {
                let word = word.replace("{dir}", &directory).replace("{port}", &port.to_string());
                word.replace("{afar}", &self.afar.display().to_string())
            };
            words.iter().map(fill).collect()
        };
        // `afar` is this program, whatever is on PATH.
        let command = |text: &[String]| {
            let mut command = words(text);
            if command[0] == "afar" {
                command[0] = self.afar.display().to_string();
            }
            command
        };
        let record = scratch.0.join("run.json");
        let placed = self.placed((cell, peak), command(&self.sweep.workload.command), &record);
        let deadline = Instant::now() + self.sweep.timeout();
        let begin = Instant::now();
        let mut program = start(&placed, &scratch.0, ("program", cell.kind == Kind::Small))?;
        let Some(load) = &self.sweep.workload.load else {
            let (status, elapsed) = self.finish(&mut program, begin, deadline)?;
            let said = facts(&record, row)?;
            good(status, &program)?;
            // The record's time leaves out afar's own start.
            let elapsed = judged(cell, said)?.unwrap_or(elapsed);
            row.further = further(&self.sweep.metric, &program);
            return figure(&self.sweep.metric, &program, elapsed);
        };
        let ready = [
            &self.sweep.workload.ready_text,
            &self.sweep.workload.ready_path,
            &self.sweep.workload.ready_tcp,
        ]
        .map(|ready| ready.as_ref().map(|ready| words(std::slice::from_ref(ready)).remove(0)));
        self.wait_until_ready(&mut program, ready, deadline)?;
        let begin = Instant::now();
        let mut loader = start(&command(load), &scratch.0, ("load", false))?;
        let (status, elapsed) = self.finish(&mut loader, begin, deadline)?;
        good(status, &loader)?;
        row.further = further(&self.sweep.metric, &loader);
        let figure = figure(&self.sweep.metric, &loader, elapsed)?;
        let _gone = sys::process::kill(program.child.id(), SIGTERM);
        // A server that does not end is killed.
        if let Err(Trouble::Interrupted) = self.finish(&mut program, begin, Instant::now() + GRACE)
        {
            return Err(Trouble::Interrupted);
        }
        judged(cell, facts(&record, row)?)?;
        Ok(figure)
    }

    /// The command line of the program in a cell: `command`, or `afar run` with it.
    fn placed(
        &self,
        (cell, peak): (&Cell, Option<Bytes>),
        command: Vec<String>,
        record: &Path,
    ) -> Vec<String> {
        if !cell.is_under_afar() {
            return command;
        }
        let afar = [self.afar.display().to_string(), "run".to_owned(), "--quiet".to_owned()];
        let seed = ["--seed".to_owned(), self.sweep.seed.to_string()];
        let json = ["--json".to_owned(), record.display().to_string()];
        let floor = self.sweep.allow_below_floor.then(|| "--allow-below-floor".to_owned());
        let allow = self.allow_unmanaged.then(|| "--allow-unmanaged".to_owned());
        let flags = afar
            .into_iter()
            .chain(seed)
            .chain(json)
            .chain(floor)
            .chain(allow)
            .chain(cell.flags(peak));
        flags.chain(["--".to_owned()]).chain(command).collect()
    }

    /// Waits until the server is ready, by its output, a file or a port.
    fn wait_until_ready(
        &self,
        program: &mut Started,
        [text, path, tcp]: [Option<String>; 3],
        deadline: Instant,
    ) -> Result<(), Trouble> {
        loop {
            let printed = || read(&program.out) + &read(&program.err);
            let is_ready = text.as_ref().is_some_and(|text| printed().contains(text))
                || path.as_ref().is_some_and(|path| Path::new(path).exists())
                || tcp.as_ref().is_some_and(|name| TcpStream::connect(name).is_ok());
            if is_ready {
                return Ok(());
            }
            if let Ok(Some(status)) = program.child.try_wait() {
                return Err(ended(status, program));
            }
            if Instant::now() > deadline {
                return Err(Trouble::Failed(format!("not ready in time: {}", said(program))));
            }
            if self.signals.next().is_some() {
                return Err(Trouble::Interrupted);
            }
            std::thread::sleep(LOOK);
        }
    }

    // Waits for the end of a process. Returns its status and how long it took since `begin`.
    fn finish(
        &self,
        started: &mut Started,
        begin: Instant,
        deadline: Instant,
    ) -> Result<(ExitStatus, Duration), Trouble> {
        let system = |error: sys::Error| Trouble::Failed(error.to_string());
        let ended = sys::process::watch(started.child.id()).map_err(system)?;
        let mut poll = Poll::new().map_err(system)?;
        poll.add(&ended, 0).map_err(system)?;
        poll.add(&self.signals, 1).map_err(system)?;
        let mut ready = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let limit = self.sweep.timeout().as_secs_f64();
                return Err(Trouble::Failed(format!("it took longer than {limit} s")));
            }
            poll.wait(Some(left), &mut ready).map_err(system)?;
            let elapsed = begin.elapsed();
            if ready.iter().any(|event| event.token == 0) {
                let status = started.child.wait().map_err(failed("wait for it"))?;
                return Ok((status, elapsed));
            }
            if self.signals.next().is_some() {
                return Err(Trouble::Interrupted);
            }
        }
    }
}

/// Creates a private directory.
fn scratch() -> std::io::Result<Scratch> {
    let number = sys::clock::monotonic_ns();
    let path = std::env::temp_dir().join(format!("{SCRATCH}{}-{number}", std::process::id()));
    fs::create_dir(&path)?;
    Ok(Scratch(path))
}

/// Removes private directories of sweeps that were killed, whose processes do not exist any more.
pub fn clear_scratch() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let owner = name.strip_prefix(SCRATCH).and_then(|rest| rest.split_once('-'));
        let owner = owner.and_then(|(pid, _)| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Fails for directories of other users.
            let _refused = fs::remove_dir_all(entry.path());
        }
    }
}

/// Turns an I/O error during `what` into a failure of the run.
fn failed(what: &'static str) -> impl Fn(std::io::Error) -> Trouble {
    move |error| Trouble::Failed(format!("{what}: {error}"))
}

/// Starts a command with its output in files `name`.out and `name`.err.
fn start(
    command: &[String],
    directory: &Path,
    (name, has_small_pages): (&str, bool),
) -> Result<Started, Trouble> {
    let (out, err) = (directory.join(format!("{name}.out")), directory.join(format!("{name}.err")));
    let create = |path: &Path| File::create(path).map_err(failed("write its output"));
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).stdin(Stdio::null());
    process.stdout(create(&out)?).stderr(create(&err)?).process_group(0);
    sys::process::die_with_caller(&mut process);
    if has_small_pages {
        sys::huge::do_without(&mut process);
    }
    let child = process
        .spawn()
        .map_err(|error| Trouble::Failed(format!("start {}: {error}", command[0])))?;
    Ok(Started { child, out, err })
}

/// Checks that a process has succeeded.
fn good(status: ExitStatus, started: &Started) -> Result<(), Trouble> {
    if status.success() { Ok(()) } else { Err(ended(status, started)) }
}

/// The failure of a process that has ended with `status`.
fn ended(status: ExitStatus, started: &Started) -> Trouble {
    Trouble::Failed(format!("{status}: {}", said(started)))
}

// The end of a process' output, on one line.
fn said(started: &Started) -> String {
    let all = read(&started.out) + " " + &read(&started.err);
    let text = all.split_whitespace().collect::<Vec<_>>().join(" ");
    let skipped = text.chars().count().saturating_sub(TAIL_CHARS);
    let end: String = text.chars().skip(skipped).collect();
    if end.is_empty() { "it printed nothing".to_owned() } else { end }
}

/// The text of a file; empty if it cannot be read.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// The figure of a run by its metric: from its output, or the wall time.
fn figure(metric: &Metric, started: &Started, elapsed: Duration) -> Result<f64, Trouble> {
    let found = if let Some(pattern) = &metric.pattern {
        let regex = regex::Regex::new(pattern).expect("it was checked when it was read");
        let search = |text: &str| -> Option<f64> {
            regex.captures_iter(text).last()?.get(1)?.as_str().replace(',', "").parse().ok()
        };
        search(&read(&started.out)).or_else(|| search(&read(&started.err)))
    } else if let Some(pointer) = &metric.json {
        pointed(&read(&started.out), &[pointer])[0]
    } else {
        Some(elapsed.as_secs_f64())
    };
    let found = found.filter(|figure| figure.is_finite() && *figure > 0.0);
    found.ok_or_else(|| Trouble::Failed(no_figure(metric, &said(started))))
}

/// The message that the output has no figure.
fn no_figure(metric: &Metric, said: &str) -> String {
    let how = match (&metric.pattern, &metric.json) {
        (Some(pattern), _) => format!(" that metric.pattern {pattern:?} finds"),
        (None, Some(pointer)) => format!(" at metric.json {pointer:?}"),
        (None, None) => String::new(),
    };
    format!("it printed no figure above 0{how}: {said}")
}

/// The further numbers of a metric.
fn further(metric: &Metric, started: &Started) -> Vec<Option<f64>> {
    pointed(&read(&started.out), &metric.further)
}

// The numbers at pointers into JSON; `None` where there is no number.
fn pointed(text: &str, pointers: &[impl AsRef<str>]) -> Vec<Option<f64>> {
    let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let number = |pointer: &str| value.as_ref()?.pointer(pointer)?.as_f64();
    pointers.iter().map(|pointer| number(pointer.as_ref())).collect()
}

// Checks that a run under afar has a record; without one it is invalid.
fn judged(cell: &Cell, said: Option<Duration>) -> Result<Option<Duration>, Trouble> {
    if said.is_none() && cell.is_under_afar() {
        let why = "afar has not judged the run: the program did not end when it was asked to, or \
                   ended afar; let it end at SIGTERM";
        return Err(Trouble::Invalid(format!("invalid: {why}")));
    }
    Ok(said)
}

// Stores the facts of afar's record in `row`. Returns how long the program ran; `None` without a
// record.
fn facts(record: &Path, row: &mut Row) -> Result<Option<Duration>, Trouble> {
    let Ok(run) = Run::<RunResults>::from_json(&read(record)) else { return Ok(None) };
    let coverage = &run.results.coverage;
    row.unmanaged_bytes = Some(coverage.unmanaged_anon_bytes + coverage.unmanaged_shared_bytes);
    row.of_bytes = run.params.of_bytes;
    row.local_bytes = run.params.local_bytes;
    let figures = run.results.figures();
    let figures = figures.map_err(|invalid| Trouble::Invalid(validity::told(&invalid)))?;
    row.allowed = !run.results.allowed.is_empty();
    row.fetch_count = Some(figures.faults.fetch_count);
    row.fetch_p50_ns = Some(figures.fault_latency.achieved.p50_ns);
    row.managed_peak_bytes = Some(figures.managed_peak_bytes);
    row.budget_held = Some(figures.budget.held);
    row.floor_ns = run.results.calibration.as_ref().map(|calibration| calibration.floor_ns);
    Ok(Some(Duration::from_nanos(figures.elapsed_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_where_pointers_say() {
        let text = r#"{"a": {"b": 2.5}, "c": "3"}"#;
        assert_eq!(pointed(text, &["/a/b", "/c", "/d"]), [Some(2.5), None, None]);
        assert_eq!(pointed("a: 1", &["/a"]), [None]);
    }

    #[test]
    fn a_run_that_nobody_judged_has_no_figure() {
        let far = Cell::far(Vec::new());
        let said = Some(Duration::from_secs(1));
        assert!(matches!(judged(&far, None), Err(Trouble::Invalid(_))));
        assert!(matches!(judged(&Cell::zero(None), None), Err(Trouble::Invalid(_))));
        assert_eq!(judged(&far, said).expect("it was judged"), said);
        assert_eq!(judged(&Cell::NATIVE, None).expect("nothing to judge"), None);
    }

    #[test]
    fn an_invalid_run_leaves_its_reason_and_no_number() {
        let golden = include_str!("../../../crates/measure/tests/golden/run.json");
        let path = std::env::temp_dir().join(format!("afar-trial-{}.json", std::process::id()));
        let fresh = || Row { further: vec![Some(1.0)], ..Row::default() };
        let said = |text: &str| {
            fs::write(&path, text).expect("there is room");
            let mut row = fresh();
            let said = facts(&path, &mut row);
            (said, row)
        };
        let (said_invalid, mut row) = said(golden);
        let Err(Trouble::Invalid(why)) = said_invalid else { panic!("{said_invalid:?}") };
        assert!(why.starts_with("invalid: redis-server (pid 77) was not managed"), "{why}");
        row = row.invalidated(why.clone());
        assert_eq!(
            row,
            Row { invalid: Some(why), unmanaged_bytes: Some(20_480), ..Row::default() }
        );
        let run: Run = Run::from_json(golden).expect("it is a run");
        let allowed = Run { results: run.results.clone().allowing_unmanaged(), ..run };
        let (said_allowed, row) = said(&allowed.to_json());
        assert_eq!(said_allowed.expect("it counts"), Some(Duration::from_millis(1500)));
        assert!(row.allowed && row.fetch_count == Some(2), "{row:?}");
        fs::remove_file(&path).expect("it is ours");
    }

    #[test]
    fn a_run_beside_another_program_is_disturbed() {
        let text = "others_max = '1%'\nattempts = 1\n[workload]\ncommand = ['sleep', '0.5']";
        let sweep: Sweep = toml::from_str(text).expect("it is one");
        let signals = Signals::receive(&[]).expect("there are descriptors");
        let trials = Trials {
            sweep: &sweep,
            allow_unmanaged: false,
            afar: PathBuf::new(),
            signals: &signals,
        };
        let directory = scratch().expect("there is room");
        let spin = ["sh", "-c", "while :; do :; done"].map(str::to_owned);
        let other = start(&spin, &directory.0, ("other", false)).expect("there is a shell");
        let row = trials.once(&Cell::NATIVE, 0, &[]).expect("nobody interrupts");
        drop(other);
        assert!(row.value.is_some(), "{row:?}");
        assert!(row.disturbed.is_some_and(|why| why.contains("other programs")), "{:?}", row.noise);
    }
}
