//! The benchmark `processes`: the cost of a process beside up to 3,999 other managed processes.
//!
//! ```text
//! bench processes -> afar run -> bench crowd: idle processes, then touches, then exits
//! ```
//!
//! The idle processes sleep while one touches pages, a quarter of which are local. Each process has
//! a budget of its own, so that the others' memory does not change the fetches; the cost can only
//! grow by tables and lists that grow with the number of processes.
//!
//! A thread that has just woken many others is scheduled differently for some seconds: Linux counts
//! changes of the woken thread (`wakee_flips` of kernel/sched/fair.c), halves the count once a
//! second, and runs woken threads on other processors meanwhile. The supervisor has woken the
//! helper of each process, and a fault takes a third longer until the count has decayed. So the
//! benchmark touches pages for that long before it measures.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::flags::CrowdFlags;
use crate::process::LONG;
use crate::progress;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Spread, float};

/// Managed processes, including the touching one and a short-lived one.
const PROCESSES: [u64; 4] = [1, 64, 1024, 4000];
// `--allow-unmanaged`: the stacks of thousands of sleeping processes are more than a tenth of all
// memory. `measure` checks that each process is managed and every touch a fetch.
const FLAGS: [&str; 7] =
    ["--local", "8MiB", "--budget", "process", "--trap", "bpf", "--allow-unmanaged"];
const PAGES: u64 = 8192;
const ROUNDS: u64 = 40;
const EXITS: u64 = 60;
/// Bound of each figure with most processes over that with one.
const RATIO_MAX: f64 = 1.10;
const NAMES: [&str; FIGURES] =
    ["a fault that fetches, ns", "afar's own time per fetch, ns", "exit, us", "end by SIGKILL, us"];
const FIGURES: usize = 4;
const EACH: [usize; FIGURES] = [0, 1, 2, 3];
/// How many of the figures have a bound. End by SIGKILL has none: afar sees no system call, and the
/// kernel searches all other processes for an owner of the memory.
const BOUNDED: usize = 3;

/// Runs the benchmark.
///
/// # Errors
/// When a run fails, or has too few managed processes or fetches.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let rounds = context.size(ROUNDS, ROUNDS / 4);
    let runs =
        context.alternate("processes", &PROCESSES, |&count| measure(context, count, rounds))?;
    let figures: Vec<[Vec<f64>; FIGURES]> = runs
        .iter()
        .map(|runs| EACH.map(|which| runs.iter().map(|run| run[which]).collect()))
        .collect();
    let (one, most) = (&figures[0], &figures[figures.len() - 1]);
    let ratios = EACH.map(|which| Spread::ratio(&most[which], &one[which]));
    let mut header = vec!["processes".to_owned()];
    header.extend(PROCESSES.map(|count| count.to_string()));
    header.push("ratio".to_owned());
    let mut table = Table::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for (which, name) in NAMES.iter().enumerate() {
        let mut row = vec![(*name).to_owned()];
        row.extend(figures.iter().map(|figures| Spread::of(figures[which].clone()).show(1)));
        row.push(ratios[which].show(3));
        table.row(row);
    }
    let spreads = |figures: &[Vec<f64>; FIGURES]| -> Vec<Value> {
        figures.iter().map(|values| Spread::of(values.clone()).json()).collect()
    };
    let verdict = |(name, ratio): (&str, Spread)| Verdict {
        what: format!("{name}: {} processes over 1", PROCESSES[PROCESSES.len() - 1]),
        value: ratio.median,
        bound: Bound::AtMost(RATIO_MAX),
        unit: "",
    };
    Ok(Report {
        name: "processes",
        settings: json!({
            "process_count": PROCESSES,
            "page_count": PAGES,
            "round_count": rounds,
            "exit_count": EXITS,
            "flags": FLAGS,
        }),
        results: json!({
            "figures": NAMES,
            "points": figures.iter().map(spreads).collect::<Vec<_>>(),
            "ratios": ratios.map(|ratio| ratio.json()),
        }),
        text: format!("{}flags: {}\n", table.text(), FLAGS.join(" ")),
        verdicts: NAMES.into_iter().zip(ratios).take(BOUNDED).map(verdict).collect(),
    })
}

/// One run: the figures in the order of [`NAMES`].
fn measure(context: &Context, processes: u64, rounds: u64) -> Result<[f64; FIGURES], Failure> {
    let mut program = context.hidden("crowd");
    let sizes = [("--processes", processes), ("--pages", PAGES), ("--rounds", rounds)];
    for (flag, value) in sizes.into_iter().chain([("--exits", EXITS)]) {
        program.extend([flag.into(), value.to_string().into()]);
    }
    let outcome = Place::far(&FLAGS).execute(context, &program, LONG)?;
    let managed = outcome.run.as_ref().map_or(0, |run| run.managed_count);
    if managed < processes {
        return Err(Failure::NotManaged { wanted: processes, managed });
    }
    let words: Vec<&str> = outcome.stdout.split_ascii_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
    let touched = words.get(FIGURES).and_then(|word| word.parse::<u64>().ok());
    let ([Some(fault_ns), Some(supervisor_ns), Some(exit_us), Some(kill_us)], Some(touched)) =
        (EACH.map(number), touched)
    else {
        let (program, wanted) = ("bench", "five figures");
        return Err(Failure::Unreadable { program, wanted, said: outcome.stdout });
    };
    let fetched = outcome.run.as_ref().map_or(0, |run| run.figures.faults.fetch_count);
    if fetched < touched - touched / 1000 {
        return Err(Failure::NotFetched { touched, fetched });
    }
    Ok([fault_ns, supervisor_ns, exit_us, kill_us])
}

/// The hidden command `crowd`: prints nanoseconds per touch, nanoseconds of the supervisor's
/// processor time per touch, median microseconds of an exit and of an end by SIGKILL, and the
/// number of touches.
///
/// # Errors
/// When a process cannot be started.
pub(crate) fn crowd(flags: &CrowdFlags) -> Result<(), Failure> {
    // The others are this process and the short-lived one.
    let idle = flags.processes.saturating_sub(2);
    sys::process::allow_descriptors(idle * 2 + 64);
    let crowd: Vec<Echo> = (0..idle).map(|_| Echo::start()).collect::<Result<_, _>>()?;
    let words = usize::try_from(flags.pages).unwrap_or(usize::MAX) * 512;
    let mut memory: Vec<u64> = (1..=words as u64).collect();
    let supervisor = std::os::unix::process::parent_id();
    // Warm-up, until the share of local pages is steady and the scheduler's count has decayed.
    let (warming, forgotten) = (Instant::now(), forgotten_after(flags.processes));
    let mut warmed = 0;
    while warming.elapsed() < forgotten {
        touch(&mut memory);
        warmed += flags.pages;
    }
    let (begin, busy) = (Instant::now(), processor_ns(supervisor));
    for _ in 0..flags.rounds {
        touch(&mut memory);
    }
    let took = begin.elapsed().as_secs_f64() * 1e9;
    let busy = processor_ns(supervisor).saturating_sub(busy);
    let (mut exits, mut kills) = (Vec::new(), Vec::new());
    for _ in 0..flags.exits {
        exits.push(Echo::start()?.exit().as_secs_f64() * 1e6);
        kills.push(Echo::start()?.kill().as_secs_f64() * 1e6);
    }
    let touches = float(flags.pages * flags.rounds);
    let [exit, kill] = [exits, kills].map(|times| Spread::of(times).median);
    // Touches of the warm-up count, too, except for the first touches of all pages.
    let all = warmed.saturating_sub(flags.pages) + flags.pages * flags.rounds;
    progress::answer(&format!(
        "{} {} {exit} {kill} {all}\n",
        took / touches,
        float(busy) / touches
    ));
    drop(crowd);
    Ok(())
}

// How long the scheduler's count of one wake-up per process takes to decay, halved once a second,
// plus two seconds.
fn forgotten_after(processes: u64) -> Duration {
    Duration::from_secs(u64::from(processes.max(1).ilog2()) + 2)
}

// Touches every page once, in order.
fn touch(memory: &mut [u64]) {
    for word in memory.iter_mut().step_by(512) {
        std::hint::black_box(*word);
    }
}

/// The processor time of all threads of a process, in nanoseconds.
fn processor_ns(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let time = |task: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    tasks.filter_map(time).sum()
}

/// A process that echoes its input (`cat`).
struct Echo(Child);

impl Echo {
    /// Starts a process and waits until it has answered, and so is managed.
    fn start() -> Result<Self, Failure> {
        let failed = |source| Failure::NotStarted { program: "cat".to_owned(), source };
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut echo = Self(cat.spawn().map_err(failed)?);
        let (stdin, stdout) = (echo.0.stdin.as_mut(), echo.0.stdout.as_mut());
        if let (Some(stdin), Some(stdout)) = (stdin, stdout) {
            stdin.write_all(b"\n").map_err(failed)?;
            stdout.read_exact(&mut [0]).map_err(failed)?;
        }
        Ok(echo)
    }

    /// Closes its input, so that it exits. Returns how long that took.
    fn exit(mut self) -> Duration {
        let begin = Instant::now();
        drop(self.0.stdin.take());
        let _reaped = self.0.wait();
        begin.elapsed()
    }

    /// Kills the process. Returns how long that took.
    fn kill(mut self) -> Duration {
        let begin = Instant::now();
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
        begin.elapsed()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}
