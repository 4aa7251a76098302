//! The benchmark `verdicts`: whether sweeps conclude correctly about a program that far memory
//! slows down by a tenth, on a quiet machine and beside a load of 40 % of its processors.
//!
//! ```text
//! native time ─► pilot sweeps ─► round trip that costs a tenth ─► sweeps, half beside load
//!                           "slower": found; "disturbed", "undecided": honest ◄┘
//! ```
//!
//! Mappings and first touches cost time, too: pilot sweeps measure how much, and round trips make
//! up the rest of the tenth. Another verdict is whether the total is a tenth.
//!
//! The program writes its memory, computes, and reads the first half again. With half of the memory
//! local the first half is far by then, so exactly its pages are fetched, each once.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use results::{CellKind, Findings, Verdict as Conclusion};
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::flags::TenthFlags;
use crate::process::{Job, LONG};
use crate::progress;
use crate::random::SplitMix64;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Spread, float};

/// Default number of sweeps of each kind.
pub(crate) const ROUNDS: u16 = 50;
/// Pages of the program, half of which are fetched: few, so that fetches cost little but round
/// trips.
const PAGES: u64 = 1024;
const WORDS_PER_PAGE: usize = 512;
/// Approximate run time of the program.
const SECONDS: f64 = 0.25;
/// The slowdown that far memory causes, as a share of the run time.
const SLOWDOWN: f64 = 0.1;
const PILOTS: usize = 5;
/// The share of the slowdown that round trips of pilot sweeps cause.
const PILOT_SHARE: f64 = 0.5;
/// The share of every processor that the load takes.
const LOAD: f64 = 0.4;
const LOAD_PERIOD: Duration = Duration::from_millis(10);
const HONEST_MIN: f64 = 0.95;
const FOUND_MIN: f64 = 0.9;
const OFF_MAX: f64 = 0.02;

/// The conclusions of several sweeps.
#[derive(Debug, Default)]
struct Conclusions {
    verdicts: Vec<Conclusion>,
    slowdowns: Vec<f64>,
}

/// Runs the benchmark.
///
/// # Errors
/// When a sweep fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let work = fitting_work(context)?;
    let alone = native_s(context, work)?;
    let rtt_ns = fitting_rtt_ns(context, work, alone)?;
    let (mut quiet, mut loaded) = (Conclusions::default(), Conclusions::default());
    for round in 0..context.rounds {
        let title = |of| format!("sweep {} of {}, {of}", round + 1, context.rounds);
        context.progress.show(&title("left alone"));
        quiet.add(&sweep(context, work, rtt_ns)?)?;
        context.progress.show(&title("beside a load"));
        loaded.add(&beside_load(|| sweep(context, work, rtt_ns))?)?;
    }
    let off = (Spread::of(quiet.slowdowns.iter().copied()).median - 1.0 - SLOWDOWN).abs();
    let found = quiet.share(&[Conclusion::Beyond]);
    let honest = loaded.share(&[Conclusion::Disturbed, Conclusion::Undecided]);
    let mut table =
        Table::new(&["machine", "slower", "undecided", "disturbed", "other", "slowdown"]);
    for (name, of) in [("left alone", &quiet), ("40 % busy", &loaded)] {
        table.row(of.cells(name));
    }
    let verdict =
        |what: &str, value, bound| Verdict { what: what.to_owned(), value, bound, unit: "" };
    Ok(Report {
        name: "verdicts",
        settings: json!({
            "page_count": PAGES, "work": work, "native_s": alone, "rtt_ns": rtt_ns,
            "slowdown": 1.0 + SLOWDOWN, "load_share": LOAD,
        }),
        results: json!({ "left_alone": quiet.json(), "beside_load": loaded.json() }),
        text: table.text(),
        verdicts: vec![
            verdict("slowdown of 10 %: what sweeps see is off by", off, Bound::AtMost(OFF_MAX)),
            verdict("sweeps that find it", found, Bound::AtLeast(FOUND_MIN)),
            verdict("sweeps beside a load without a verdict", honest, Bound::AtLeast(HONEST_MIN)),
        ],
    })
}

impl Conclusions {
    /// Adds the verdict and the slowdown of the sweep's cell with far memory.
    fn add(&mut self, findings: &Findings) -> Result<(), Failure> {
        let far = findings.cells.iter().find(|cell| cell.kind == CellKind::Far);
        let far = far.ok_or_else(|| unreadable("a cell with far memory", String::new()))?;
        self.verdicts.push(far.verdict);
        self.slowdowns.extend(far.slowdown.map(|slowdown| slowdown.median));
        Ok(())
    }

    /// How many sweeps concluded one of `verdicts`.
    fn count(&self, verdicts: &[Conclusion]) -> usize {
        self.verdicts.iter().filter(|verdict| verdicts.contains(verdict)).count()
    }

    /// The share of sweeps that concluded one of `verdicts`.
    fn share(&self, verdicts: &[Conclusion]) -> f64 {
        self.count(verdicts) as f64 / self.verdicts.len().max(1) as f64
    }

    /// The row of the table for `machine`.
    fn cells(&self, machine: &str) -> Vec<String> {
        let columns = [Conclusion::Beyond, Conclusion::Undecided, Conclusion::Disturbed];
        let mut cells = vec![machine.to_owned()];
        cells.extend(columns.map(|verdict| self.count(&[verdict]).to_string()));
        cells.push((self.verdicts.len() - self.count(&columns)).to_string());
        cells.push(Spread::of(self.slowdowns.iter().copied()).show(3));
        cells
    }

    /// The conclusions for the record.
    fn json(&self) -> serde_json::Value {
        json!({ "verdicts": self.verdicts, "slowdowns": self.slowdowns })
    }
}

/// The failure that a sweep's output lacks what is `wanted`.
fn unreadable(wanted: &'static str, said: String) -> Failure {
    Failure::Unreadable { program: "afar sweep", wanted, said }
}

/// The hidden command `tenth`: the program under test; prints a sum.
pub(crate) fn tenth(flags: &TenthFlags) {
    let words = usize::try_from(flags.pages).unwrap_or(usize::MAX) * WORDS_PER_PAGE;
    let mut memory: Vec<u64> = vec![0; words];
    for (page, word) in memory.iter_mut().step_by(WORDS_PER_PAGE).enumerate() {
        *word = page as u64;
    }
    let mut random = SplitMix64::new(flags.work);
    let mut sum = (0..flags.work).fold(0_u64, |sum, _| sum ^ random.next());
    for word in memory[..words / 2].iter().step_by(WORDS_PER_PAGE) {
        sum = sum.wrapping_add(*std::hint::black_box(word));
    }
    progress::answer(&format!("{sum}\n"));
}

/// The command line of the program under test.
fn program(context: &Context, work: u64) -> Vec<OsString> {
    let mut program = context.hidden("tenth");
    program.extend(["--pages".into(), PAGES.to_string().into()]);
    program.extend(["--work".into(), work.to_string().into()]);
    program
}

/// The median run time of the program without far memory, in seconds.
fn native_s(context: &Context, work: u64) -> Result<f64, Failure> {
    let run = |_: &()| {
        let begin = Instant::now();
        Place::Native.execute(context, &program(context, work), LONG)?;
        Ok(begin.elapsed().as_secs_f64())
    };
    let runs = context.alternate_for(5, "without far memory", &[()], run)?;
    Ok(Spread::of(runs.into_iter().flatten()).median)
}

/// The amount of work with which the program computes for about [`SECONDS`].
fn fitting_work(context: &Context) -> Result<u64, Failure> {
    const TRIED: u64 = 200_000_000;
    let took = native_s(context, TRIED)? - native_s(context, 0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of loops, and a positive one"
    )]
    let work = (float(TRIED) * SECONDS / took.max(1e-3)) as u64;
    Ok(work)
}

/// The round-trip time, in nanoseconds, with which the program has the slowdown [`SLOWDOWN`].
fn fitting_rtt_ns(context: &Context, work: u64, native_s: f64) -> Result<f64, Failure> {
    let round_trip_ns = |share: f64| (native_s * share * 1e9 / float(PAGES / 2)).round();
    let mut pilots = Conclusions::default();
    for at in 1..=PILOTS {
        context.progress.show(&format!("pilot sweep {at} of {PILOTS}"));
        pilots.add(&sweep(context, work, round_trip_ns(SLOWDOWN * PILOT_SHARE))?)?;
    }
    let seen = Spread::of(pilots.slowdowns).median - 1.0;
    let without = seen - SLOWDOWN * PILOT_SHARE;
    let left = SLOWDOWN - without;
    if left > 0.0 { Ok(round_trip_ns(left)) } else { Err(Failure::NothingLeft { without }) }
}

/// Runs one sweep of the program, with half of its memory local.
fn sweep(context: &Context, work: u64, rtt_ns: f64) -> Result<Findings, Failure> {
    let words = program(context, work);
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let text = format!(
        "repetitions = 5\n[workload]\ncommand = {words:?}\n[matrix]\nlocal = [\"50%\"]\n\
         rtt = [\"{rtt_ns}ns\"]\n"
    );
    let file = context.fresh("toml");
    std::fs::write(&file, text).map_err(Failure::file("write", &file))?;
    let mut command: Vec<OsString> = vec![context.afar.clone().into(), "sweep".into()];
    command.extend([file.clone().into(), "--quiet".into(), "--json".into(), "-".into()]);
    let said = Job::start(context, &command)?.finish(LONG)?;
    let kept = file.with_extension("sweep");
    std::fs::remove_dir_all(&kept).map_err(Failure::file("remove", &kept))?;
    results::read(&said).map_err(|error| unreadable("findings", error.to_string()))
}

/// Does `work` while a load takes the share [`LOAD`] of every processor.
fn beside_load<T>(work: impl FnOnce() -> T) -> T {
    let ends = AtomicBool::new(false);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| burn(&ends));
        }
        let done = work();
        ends.store(true, Ordering::Relaxed);
        done
    })
}

/// Keeps a processor busy for [`LOAD`] of the time until `ends`.
fn burn(ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        let begin = Instant::now();
        while begin.elapsed() < LOAD_PERIOD.mul_f64(LOAD) {
            std::hint::spin_loop();
        }
        // No thread unparks this one.
        std::thread::park_timeout(LOAD_PERIOD.mul_f64(1.0 - LOAD));
    }
}
