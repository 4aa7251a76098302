//! The benchmark `forks`: how long a fork stalls another thread of the same program, and other
//! processes.
//!
//! ```text
//! bench forks -> afar run -> bench forking: memory, a thread that touches some of it, forks
//!                                  ├-> bench neighbour: touches memory of its own
//!                                  └-> bench neighbour --ordinary: the same
//! ```
//!
//! Every watched thread reads the clock between two touches, so a stall is a gap between two
//! readings. Threads rest after a few touches, and a rest that ends late is a gap, too.
//!
//! Two of them have real-time priority, so only what they wait for stalls them. The ordinary one
//! waits for the scheduler, too: on a machine with few processors, with afar and without, until the
//! clock ticks (4 ms), if the kernel copies or frees memory there. A child exits at once. When the
//! host takes a processor away, a thread on each processor that waits for nothing sees a gap, which
//! is subtracted.

use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use sys::baseline::fork_and_wait;
use sys::clock::monotonic_ns;

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::flags::{ForkingFlags, NeighbourFlags};
use crate::process::LONG;
use crate::progress;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Spread, float};

const FLAGS: [&str; 4] = ["--local", "25%", "--trap", "bpf"];
const BYTES: u64 = 384 << 20;
const NEIGHBOUR_BYTES: u64 = 16 << 20;
const FORKS: u64 = 20;
const PAUSE: Duration = Duration::from_millis(100);
const WORDS_PER_PAGE: usize = 512;
/// Pages that the other thread of the forking program touches, spread over its memory.
const HOT_PAGES: usize = 64;
/// Shorter gaps do not count as stalls.
const GAP_MIN_NS: u64 = 100_000;
/// Capacity for gaps, allocated in advance so that no page fault disturbs the measurement.
const GAPS_MAX: usize = 1 << 16;
/// Touches between two rests.
const TURN: usize = 16;
const REST_NS: u64 = 200_000;
/// Fewest touches per fork; with fewer a thread did not run enough to be stalled.
const TOUCHES_MIN: u64 = 1000;
/// A stall within this time after a fork counts for neither the fork nor the pause after it.
const AFTER_FORK_NS: u64 = 20_000_000;
/// The bound of the other thread's stall: this many times that without afar,
const NATIVE_RATIO_MAX: f64 = 2.0;
/// and this. It is also the bound of the other process' stall.
const STALL_MAX_MS: f64 = 1.0;

/// A gap between two readings of the clock: its begin and its length, in nanoseconds.
type Gap = (u64, u64);

/// The watched threads, in this order everywhere: name, and key in the record of a run.
const WATCHED: [(&str, &str); 3] = [
    ("another thread", "thread"),
    ("another process", "neighbour"),
    ("an ordinary process", "ordinary"),
];

/// The longest stalls of each watched thread, in milliseconds, in forks and in pauses.
#[derive(Debug, Clone, Copy, Default)]
struct Stalls {
    in_forks: [f64; 3],
    in_pauses: [f64; 3],
    /// The longest gap in a fork of the threads that wait for nothing.
    machine: f64,
    /// The median duration of a fork, from the call to the end of the child.
    fork: f64,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let (bytes, forks) = (context.size(BYTES, BYTES / 4), context.size(FORKS, 5));
    let places = [Place::Native, Place::far(&FLAGS)];
    let runs =
        context.alternate("forks", &places, |place| measure(context, place, bytes, forks))?;
    let mut table = Table::new(&["longest stall of all forks, ms", "native", "afar"]);
    let mut results = serde_json::Map::new();
    let mut row = |name: String, of: &dyn Fn(&Stalls) -> f64| {
        let [native, far] = [0, 1].map(|which| Spread::of(runs[which].iter().map(of)));
        table.row(vec![name.clone(), native.show(2), far.show(2)]);
        results.insert(name, json!({"native_ms": native.json(), "afar_ms": far.json()}));
        (native.median, far.median)
    };
    let mut medians = Vec::new();
    for (which, (name, _)) in WATCHED.iter().enumerate() {
        medians.push(row(format!("{name}, in a fork"), &|stalls| stalls.in_forks[which]));
        row(format!("{name}, in a pause"), &|stalls| stalls.in_pauses[which]);
    }
    row("the machine by itself, not counted above".to_owned(), &|stalls| stalls.machine);
    row("the fork and its child's end, median".to_owned(), &|stalls| stalls.fork);
    let [(native, thread), (_, process), _] = medians[..] else {
        unreachable!("three are watched")
    };
    let verdict = |what: &str, value: f64, bound: f64| Verdict {
        what: what.to_owned(),
        value,
        bound: Bound::AtMost(bound),
        unit: "ms",
    };
    let bound = NATIVE_RATIO_MAX.mul_add(native, STALL_MAX_MS);
    let verdicts = vec![
        verdict("a fork stops another process for", process, STALL_MAX_MS),
        verdict("a fork stops another thread of the program for", thread, bound),
    ];
    let mib = bytes >> 20;
    Ok(Report {
        name: "forks",
        settings: json!({"bytes": bytes, "fork_count": forks, "flags": FLAGS}),
        results: Value::Object(results),
        text: format!("{}{forks} forks of {mib} MiB, flags: {}\n", table.text(), FLAGS.join(" ")),
        verdicts,
    })
}

/// One run: starts the forking program and evaluates its record.
fn measure(context: &Context, place: &Place, bytes: u64, forks: u64) -> Result<Stalls, Failure> {
    let mut program = context.hidden("forking");
    for (flag, value) in [("--bytes", bytes), ("--forks", forks)] {
        program.extend([flag.into(), value.to_string().into()]);
    }
    let (ended, machine) = beside_machine(|| place.execute(context, &program, LONG))?;
    let said = ended?.stdout;
    let stalls = serde_json::from_str(&said).ok().and_then(|record: Value| {
        let gaps = |(_, name): (&str, &str)| {
            let touches = record[name][1].as_u64()?;
            pairs(&record[name][0]).filter(|_| touches >= forks * TOUCHES_MIN)
        };
        let [thread, neighbour, ordinary] = WATCHED.map(gaps);
        stalls(&pairs(&record["forks"])?, [&thread?, &neighbour?, &ordinary?], &machine)
    });
    stalls.ok_or(Failure::Unreadable {
        program: "bench",
        wanted: "forks, gaps and enough touches",
        said,
    })
}

// Does `work` and watches all processors meanwhile, by a thread on each that waits for nothing and
// has a higher priority than all others. Returns its gaps: the processor was not available.
fn beside_machine<T>(work: impl FnOnce() -> T) -> Result<(T, Vec<Gap>), Failure> {
    let is_over = AtomicBool::new(false);
    let watch = |processor: usize| {
        sys::processors::pin(processor)?;
        sys::priority::make_realtime(0, 3)?;
        Ok(watch(&[], 1, &is_over).0)
    };
    std::thread::scope(|scope| {
        let processors = 0..std::thread::available_parallelism().map_or(1, usize::from);
        let watching: Vec<_> = processors.map(|one| scope.spawn(move || watch(one))).collect();
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        let join = |thread: ScopedJoinHandle<'_, Result<Vec<Gap>, sys::Error>>| {
            thread.join().unwrap_or_else(|_panicked| Ok(Vec::new()))
        };
        let gaps: Result<Vec<_>, sys::Error> = watching.into_iter().map(join).collect();
        Ok((done, gaps?.concat()))
    })
}

// A JSON array of pairs; `None` if it is none.
fn pairs(value: &Value) -> Option<Vec<(u64, u64)>> {
    let pair = |pair: &Value| Some((pair[0].as_u64()?, pair[1].as_u64()?));
    value.as_array()?.iter().map(pair).collect()
}

// The longest stalls, from forks (begin, end), gaps of the watched threads, and gaps of the
// machine, which are subtracted. `None` without forks, or if there were too many gaps.
fn stalls(forks: &[(u64, u64)], gaps: [&[Gap]; 3], machine: &[Gap]) -> Option<Stalls> {
    let pause = |two: &[(u64, u64)]| (two[0].1 + AFTER_FORK_NS, two[1].0);
    let pauses: Vec<(u64, u64)> = forks.windows(2).map(pause).collect();
    let both = |a: Gap, b: Gap| (a.0 + a.1).min(b.0 + b.1).saturating_sub(a.0.max(b.0));
    let stall = |gap: &Gap, away: &[Gap]| {
        gap.1 - away.iter().map(|&away| both(*gap, away)).max().unwrap_or(0)
    };
    let longest = |gaps: &[Gap], during: &[(u64, u64)], away: &[Gap]| {
        let is_in =
            |gap: &&Gap| during.iter().any(|&(begin, end)| gap.0 < end && gap.0 + gap.1 > begin);
        float(gaps.iter().filter(is_in).map(|gap| stall(gap, away)).max().unwrap_or(0)) / 1e6
    };
    let is_whole = gaps.iter().chain(&[machine]).all(|gaps| gaps.len() < GAPS_MAX);
    (is_whole && !forks.is_empty()).then(|| Stalls {
        in_forks: gaps.map(|gaps| longest(gaps, forks, machine)),
        in_pauses: gaps.map(|gaps| longest(gaps, &pauses, machine)),
        machine: longest(machine, forks, &[]),
        fork: Spread::of(forks.iter().map(|&(begin, end)| float(end - begin) / 1e6)).median,
    })
}

// Touches every `stride`th of `words` in turn until `is_over`. Returns gaps and number of touches.
fn watch(words: &[AtomicU64], stride: usize, is_over: &AtomicBool) -> (Vec<Gap>, u64) {
    let mut gaps = Vec::with_capacity(GAPS_MAX);
    // Touches all of the memory once, so that no page fault comes later.
    gaps.resize(GAPS_MAX, (0, 0));
    gaps.clear();
    let mut touches = 0;
    let mut note = |before: u64| {
        let now = monotonic_ns();
        if now > before + GAP_MIN_NS && gaps.len() < GAPS_MAX {
            gaps.push((before, now - before));
        }
        now
    };
    let mut before = monotonic_ns();
    let mut turn = words.iter().step_by(stride).cycle();
    while !is_over.load(Ordering::Relaxed) {
        for word in turn.by_ref().take(TURN) {
            word.store(black_box(word.load(Ordering::Relaxed)) + 1, Ordering::Relaxed);
            before = note(before);
            touches += 1;
        }
        std::thread::sleep(Duration::from_nanos(REST_NS));
        before = note(before + REST_NS);
    }
    (gaps, touches)
}

// Memory of `bytes`, all of it written.
fn memory(bytes: u64) -> Vec<AtomicU64> {
    let words = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
    (1..=words as u64).map(AtomicU64::new).collect()
}

/// The hidden command `forking`: forks, and prints a record of forks and gaps.
///
/// # Errors
/// When a process cannot be started or ends early.
pub(crate) fn forking(flags: &ForkingFlags) -> Result<(), Failure> {
    let memory = memory(flags.bytes);
    let neighbours = [Neighbour::start(&[])?, Neighbour::start(&["--ordinary"])?];
    let is_over = AtomicBool::new(false);
    let pages = memory.len() / WORDS_PER_PAGE;
    let stride = (pages / HOT_PAGES).max(1) * WORDS_PER_PAGE;
    let (thread, forks) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            sys::priority::make_realtime(0, 1)?;
            Ok(watch(&memory, stride, &is_over))
        });
        let fork = || {
            std::thread::sleep(PAUSE);
            let begin = monotonic_ns();
            fork_and_wait()?;
            Ok((begin, monotonic_ns()))
        };
        let forks: Result<Vec<_>, sys::Error> = (0..flags.forks).map(|_| fork()).collect();
        is_over.store(true, Ordering::Relaxed);
        (watching.join().unwrap_or_else(|_panicked| Ok((Vec::new(), 0))), forks)
    });
    let (thread, forks): (Result<_, sys::Error>, _) = (thread, forks?);
    let [neighbour, ordinary] = neighbours.map(Neighbour::end);
    let record =
        json!({"forks": forks, "thread": thread?, "neighbour": neighbour?, "ordinary": ordinary?});
    progress::answer(&format!("{record}\n"));
    Ok(())
}

/// A process that runs the hidden command `neighbour`.
struct Neighbour {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Neighbour {
    // Starts the process and waits until it touches its memory.
    fn start(flags: &[&str]) -> Result<Self, Failure> {
        // The benchmark starts its programs by their paths.
        let mut command = Command::new(std::env::args_os().next().unwrap_or_default());
        command.args(["neighbour", "--bytes", &NEIGHBOUR_BYTES.to_string()]).args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Failure::file("start", "bench neighbour"))?;
        let mut output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).map_err(Failure::file("read from", "bench neighbour"))?;
        Ok(Self { child, output })
    }

    // Ends the process. Returns its record of gaps and touches.
    fn end(mut self) -> Result<Value, Failure> {
        drop(self.child.stdin.take());
        let mut said = String::new();
        let read = self.output.read_to_string(&mut said);
        read.map_err(Failure::file("read from", "bench neighbour"))?;
        let _status = self.child.wait();
        Ok(serde_json::from_str(&said).unwrap_or(Value::Null))
    }
}

/// The hidden command `neighbour`: prints a line when it begins, and gaps when its input ends.
///
/// # Errors
/// Without the right to real-time priority.
pub(crate) fn neighbour(flags: &NeighbourFlags) -> Result<(), Failure> {
    let memory = memory(flags.bytes);
    let is_over = AtomicBool::new(false);
    let gaps = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            if !flags.ordinary {
                sys::priority::make_realtime(0, 1)?;
            }
            Ok(watch(&memory, WORDS_PER_PAGE, &is_over))
        });
        progress::answer("ready\n");
        let _flushed = std::io::stdout().flush();
        let _ended = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap_or_else(|_panicked| Ok((Vec::new(), 0)))
    });
    let gaps: Result<_, sys::Error> = gaps;
    progress::answer(&format!("{}\n", json!(gaps?)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_of_the_fork_that_it_overlaps() {
        const MS: u64 = 1_000_000;
        let forks = [(100 * MS, 110 * MS), (300 * MS, 330 * MS)];
        // Before the first fork; into it; in the pause; in the second.
        let gaps = [(10 * MS, 9 * MS), (95 * MS, 6 * MS), (200 * MS, 2 * MS), (310 * MS, 4 * MS)];
        let gone = [(202 * MS, MS), (312 * MS, 5 * MS), (90 * MS, 7 * MS)];
        let stalls = stalls(&forks, [&gaps, &[], &gaps], &gone).expect("there were forks");
        assert_eq!(stalls.in_forks, [4.0, 0.0, 4.0]);
        assert_eq!(stalls.in_pauses, [2.0, 0.0, 2.0]);
        assert_eq!((stalls.machine, stalls.fork), (5.0, 20.0));
        let many = [(0, MS); GAPS_MAX];
        for (watched, machine) in [([&[][..], &many, &[]], &[][..]), ([&[][..]; 3], &many)] {
            assert!(super::stalls(&forks, watched, machine).is_none(), "some may be missing");
        }
    }
}
