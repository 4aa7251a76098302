//! How long a fork stops others: another thread of the program that forks, and another process
//! beside it.
//!
//! ```text
//! bench forks -> afar run -> bench forking: memory, a thread that touches some of it, forks
//!                                  └-> bench neighbour: touches memory of its own
//! ```
//!
//! Both who are looked at read the clock between two touches, so a stall is a gap in their time. A
//! child ends at once. What the machine stops by itself is seen in the pauses between two forks.

use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
/// Pages of the program that forks that its other thread touches, spread over all of them.
const HOT_PAGES: usize = 64;
/// Shorter gaps are no stalls.
const GAP_MIN_NS: u64 = 100_000;
/// Room for gaps, so that keeping one maps no memory.
const GAPS_MAX: usize = 1 << 16;
/// Touches for each fork without which nobody was there to be stopped.
const TOUCHES_MIN: u64 = 1000;
/// A stall so soon after a fork is that fork's.
const AFTER_FORK_NS: u64 = 20_000_000;
/// What the program's other thread may stall: so many times as long as without afar, and this.
const NATIVE_RATIO_MAX: f64 = 2.0;
const STALL_MAX_MS: f64 = 1.0;

/// A time between two touches: when it began, and how long it was.
type Gap = (u64, u64);

/// Milliseconds that others stalled, the longest in any fork and in any pause.
#[derive(Debug, Clone, Copy, Default)]
struct Stalls {
    thread: f64,
    thread_pause: f64,
    neighbour: f64,
    neighbour_pause: f64,
    /// The median of forks, from the call to the end of the child.
    fork: f64,
}

type Of = fn(&Stalls) -> f64;

/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let (bytes, forks) = (context.size(BYTES, BYTES / 4), context.size(FORKS, 5));
    let places = [Place::Native, Place::far(&FLAGS)];
    let runs =
        context.alternate("forks", &places, |place| measure(context, place, bytes, forks))?;
    let spread = |which: usize, of: Of| Spread::of(runs[which].iter().map(of));
    let rows: [(&str, Of); 5] = [
        ("another thread, in a fork", |stalls| stalls.thread),
        ("another thread, in a pause", |stalls| stalls.thread_pause),
        ("another process, in a fork", |stalls| stalls.neighbour),
        ("another process, in a pause", |stalls| stalls.neighbour_pause),
        ("the fork and its child's end, median", |stalls| stalls.fork),
    ];
    let mut table = Table::new(&["longest stall of all forks, ms", "native", "afar"]);
    let mut results = serde_json::Map::new();
    for (name, of) in rows {
        let [native, far] = [0, 1].map(|which| spread(which, of));
        table.row(vec![name.to_owned(), native.show(2), far.show(2)]);
        results.insert(name.to_owned(), json!({"native_ms": native.json(), "afar_ms": far.json()}));
    }
    let native = spread(0, |stalls| stalls.thread).median;
    let verdict = |what: &str, value: f64, bound: f64| Verdict {
        what: what.to_owned(),
        value,
        bound: Bound::AtMost(bound),
        unit: "ms",
    };
    let verdicts = vec![
        verdict(
            "a fork stops another process for",
            spread(1, |stalls| stalls.neighbour).median,
            STALL_MAX_MS,
        ),
        verdict(
            "a fork stops another thread of the program for",
            spread(1, |stalls| stalls.thread).median,
            NATIVE_RATIO_MAX.mul_add(native, STALL_MAX_MS),
        ),
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

fn measure(context: &Context, place: &Place, bytes: u64, forks: u64) -> Result<Stalls, Failure> {
    let mut program = context.hidden("forking");
    for (flag, value) in [("--bytes", bytes), ("--forks", forks)] {
        program.extend([flag.into(), value.to_string().into()]);
    }
    let said = place.execute(context, &program, LONG)?.stdout;
    let stalls = serde_json::from_str(&said).ok().and_then(|record: Value| {
        let gaps = |name: &str| {
            let touches = record[name][1].as_u64()?;
            pairs(&record[name][0]).filter(|_| touches >= forks * TOUCHES_MIN)
        };
        stalls(&pairs(&record["forks"])?, &gaps("thread")?, &gaps("neighbour")?)
    });
    stalls.ok_or(Failure::Unreadable {
        program: "bench",
        wanted: "forks, gaps and enough touches",
        said,
    })
}

fn pairs(value: &Value) -> Option<Vec<(u64, u64)>> {
    let pair = |pair: &Value| Some((pair[0].as_u64()?, pair[1].as_u64()?));
    value.as_array()?.iter().map(pair).collect()
}

// Of forks by their begins and ends; none if there were none, or more gaps than there was room for.
fn stalls(forks: &[(u64, u64)], thread: &[Gap], neighbour: &[Gap]) -> Option<Stalls> {
    let pause = |two: &[(u64, u64)]| (two[0].1 + AFTER_FORK_NS, two[1].0);
    let pauses: Vec<(u64, u64)> = forks.windows(2).map(pause).collect();
    let longest = |gaps: &[Gap], during: &[(u64, u64)]| {
        let is_in =
            |gap: &&Gap| during.iter().any(|&(begin, end)| gap.0 < end && gap.0 + gap.1 > begin);
        float(gaps.iter().filter(is_in).map(|gap| gap.1).max().unwrap_or(0)) / 1e6
    };
    let is_whole = thread.len().max(neighbour.len()) < GAPS_MAX;
    (is_whole && !forks.is_empty()).then(|| Stalls {
        thread: longest(thread, forks),
        thread_pause: longest(thread, &pauses),
        neighbour: longest(neighbour, forks),
        neighbour_pause: longest(neighbour, &pauses),
        fork: Spread::of(forks.iter().map(|&(begin, end)| float(end - begin) / 1e6)).median,
    })
}

// Touches these words in turn until it is over; answers the gaps, and the number of touches.
fn watch(words: &[AtomicU64], stride: usize, is_over: &AtomicBool) -> (Vec<Gap>, u64) {
    let mut gaps = Vec::with_capacity(GAPS_MAX);
    // So that all of it is there.
    gaps.resize(GAPS_MAX, (0, 0));
    gaps.clear();
    let mut touches = 0;
    let mut before = monotonic_ns();
    while !is_over.load(Ordering::Relaxed) {
        for word in words.iter().step_by(stride) {
            word.store(black_box(word.load(Ordering::Relaxed)) + 1, Ordering::Relaxed);
            let now = monotonic_ns();
            if now - before > GAP_MIN_NS && gaps.len() < GAPS_MAX {
                gaps.push((before, now - before));
            }
            before = now;
            touches += 1;
        }
    }
    (gaps, touches)
}

fn memory(bytes: u64) -> Vec<AtomicU64> {
    let words = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
    (1..=words as u64).map(AtomicU64::new).collect()
}

/// The child of the benchmark: prints when it forked and which gaps were seen.
///
/// # Errors
/// When a process cannot be started or ends early.
pub(crate) fn forking(flags: &ForkingFlags) -> Result<(), Failure> {
    let memory = memory(flags.bytes);
    let failed = Failure::file("start", "bench neighbour");
    // The benchmark starts its programs by their paths.
    let mut neighbour = Command::new(std::env::args_os().next().unwrap_or_default());
    neighbour.args(["neighbour", "--bytes", &NEIGHBOUR_BYTES.to_string()]);
    let mut neighbour =
        neighbour.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut output = BufReader::new(neighbour.stdout.take().expect("it is a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).map_err(Failure::file("read from", "bench neighbour"))?;
    let is_over = AtomicBool::new(false);
    let pages = memory.len() / WORDS_PER_PAGE;
    let stride = (pages / HOT_PAGES).max(1) * WORDS_PER_PAGE;
    let (thread, forks) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&memory, stride, &is_over));
        let fork = || {
            std::thread::sleep(PAUSE);
            let begin = monotonic_ns();
            fork_and_wait()?;
            Ok((begin, monotonic_ns()))
        };
        let forks: Result<Vec<_>, sys::Error> = (0..flags.forks).map(|_| fork()).collect();
        is_over.store(true, Ordering::Relaxed);
        (watching.join().unwrap_or_default(), forks)
    });
    drop(neighbour.stdin.take());
    let mut said = String::new();
    output.read_to_string(&mut said).map_err(Failure::file("read from", "bench neighbour"))?;
    let _status = neighbour.wait();
    let seen = serde_json::from_str::<Value>(&said).unwrap_or(Value::Null);
    let record = json!({"forks": forks?, "thread": thread, "neighbour": seen});
    progress::answer(&format!("{record}\n"));
    Ok(())
}

/// The process beside it: prints a line when it begins, and the gaps when its input ends.
pub(crate) fn neighbour(flags: &NeighbourFlags) {
    let memory = memory(flags.bytes);
    let is_over = AtomicBool::new(false);
    let gaps = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&memory, WORDS_PER_PAGE, &is_over));
        progress::answer("ready\n");
        let _flushed = std::io::stdout().flush();
        let _ended = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap_or_default()
    });
    progress::answer(&format!("{}\n", json!(gaps)));
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
        let stalls = stalls(&forks, &gaps, &[]).expect("there were forks");
        assert_eq!([stalls.thread, stalls.thread_pause, stalls.fork], [6.0, 2.0, 20.0]);
        assert_eq!([stalls.neighbour, stalls.neighbour_pause], [0.0, 0.0]);
        assert!(super::stalls(&forks, &[(0, MS); GAPS_MAX], &[]).is_none(), "some may be missing");
    }
}
