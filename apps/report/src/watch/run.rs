//! Runs with far memory: one, and its successors; or all on this machine.

use std::collections::BTreeMap;
use std::time::Instant;

use console::layout::count;
use measure::{BitsPerSec, Bytes, Duration};
use results::live::{RunState, TierState};

use super::history::History;
use super::picture::{Told, rounded};
use super::shown::{Shown, Watched};
use super::sources::Sources;
use crate::section::{Picture, Section, Table};

const MIB: f64 = 1_048_576.0;
const GAPS: &str =
    "Nothing is asked while nobody watches; the next point is the mean of that time.";
const RUN_TIME: &str = "time of the run, s";
const PAGE_TIME: &str = "time of this page, s";

/// A run; when it has ended, the next of the same program.
pub(super) struct Run {
    pid: u32,
    sources: Sources,
    last: RunState,
    /// When the run was last seen.
    alive: Instant,
    memory: History,
    fetches: History,
    stalls: History,
    p99: History,
}

/// All runs that may be looked at.
pub(super) struct Runs {
    runs: fn() -> Vec<RunState>,
    begun: Instant,
    last: BTreeMap<u32, RunState>,
    at: f64,
    fetches: History,
    far: History,
}

/// Rates per second between two moments of one run.
struct Rates {
    span: f64,
    fetches: f64,
    stalls: f64,
}

impl Rates {
    /// The rates from `last` to `now`.
    fn between(last: &RunState, now: &RunState) -> Self {
        let span = now.elapsed_ns.saturating_sub(last.elapsed_ns).max(1) as f64 / 1e9;
        let rate = |last: u64, now: u64| now.saturating_sub(last) as f64 / span;
        Self {
            span,
            fetches: rate(last.fetch_count, now.fetch_count),
            stalls: rate(last.stall_count, now.stall_count),
        }
    }
}

impl Run {
    /// # Errors
    /// A sentence, if there is no such run.
    pub(super) fn new(pid: u32, sources: Sources) -> Result<Self, String> {
        let last = (sources.run)(pid)?;
        Ok(Self {
            pid,
            sources,
            last,
            alive: Instant::now(),
            memory: History::default(),
            fetches: History::default(),
            stalls: History::default(),
            p99: History::default(),
        })
    }

    /// Adds the state of a moment to the histories.
    fn add(&mut self, now: RunState) {
        let rates = Rates::between(&self.last, &now);
        let at = (now.elapsed_ns as f64 / 1e9, rates.span);
        let mib = |bytes: u64| bytes as f64 / MIB;
        let named = |name: &str, value| [(name.to_owned(), value)];
        let memory = [("local", now.local_bytes), ("far", now.far_bytes)];
        self.memory.add(at, memory.map(|(name, bytes)| (name.to_owned(), mib(bytes))));
        self.fetches.add(at, named("fetches", rates.fetches));
        self.stalls.add(at, named("stalls", rates.stalls));
        self.p99.add(at, named("p99", now.fetch_p99_ns as f64 / 1e3));
        self.last = now;
    }

    // A run of the same program that began after this one was last seen.
    fn successor(&self) -> Option<RunState> {
        let since = self.alive.elapsed().as_nanos();
        let is_next = |run: &RunState| {
            run.pid != self.pid
                && run.program == self.last.program
                && u128::from(run.elapsed_ns) <= since
        };
        (self.sources.runs)().into_iter().filter(is_next).min_by_key(|run| run.elapsed_ns)
    }

    /// Goes on with the next run, and empty histories.
    fn follow(&mut self, next: RunState) {
        self.pid = next.pid;
        (self.memory, self.fetches) = <(History, History)>::default();
        (self.stalls, self.p99) = <(History, History)>::default();
        self.last = next;
        self.alive = Instant::now();
    }

    /// The section on the run.
    fn section(&self, rates: &Rates) -> Section {
        let run = &self.last;
        let (local, far) = (Bytes::new(run.local_bytes), Bytes::new(run.far_bytes));
        let mut answer = vec![
            format!(
                "{} has {local} of local and {far} of far memory, and fetches {} pages a second.",
                run.program,
                rounded(rates.fetches)
            ),
            format!("It has fetched {} pages in {}.", count(run.fetch_count), elapsed(run)),
        ];
        if run.fetch_p99_ns > 0 {
            let p99 = Duration::from_ns(run.fetch_p99_ns);
            answer.push(format!("99 of 100 fetches since the start took {p99} at most."));
        }
        answer.push(format!(
            "{} faults found no free frame of local memory (stalls).",
            count(run.stall_count)
        ));
        if run.process_count > 1 {
            answer.push(format!("It is {} processes.", count(run.process_count)));
        }
        Section {
            title: format!("{} (process id {})", run.program, run.pid),
            answer,
            verdicts: Some(tiers(&run.tiers)),
            pictures: self.pictures(),
            ..Section::default()
        }
    }

    /// The pictures of the histories.
    fn pictures(&self) -> Vec<Picture> {
        let told = |name, title: &str, y, caption| Told {
            name,
            title: title.to_owned(),
            y,
            caption,
            x: RUN_TIME,
            omits_zero: false,
        };
        let pictures = [
            told("memory", "Memory", "MiB", "Pages in use, by where they are.").of(&self.memory),
            told("fetches", "Pages fetched", "pages a second", GAPS).of(&self.fetches),
            Told {
                omits_zero: true,
                ..told(
                    "p99",
                    "Time of a fetch, p99",
                    "µs",
                    "Of all fetches since the start of the run, not of a moment.",
                )
            }
            .of(&self.p99),
            told(
                "stalls",
                "Stalls",
                "stalls a second",
                "Faults that found no free frame of local memory.",
            )
            .of(&self.stalls),
        ];
        pictures.into_iter().flatten().collect()
    }
}

impl Watched for Run {
    fn name(&self) -> String {
        // The next run has another process id.
        format!("runs of {}", self.last.program)
    }

    fn look(&mut self) -> Shown {
        match (self.sources.run)(self.pid) {
            Ok(now) => {
                let rates = Rates::between(&self.last, &now);
                self.alive = Instant::now();
                self.add(now);
                let state = format!("It has run for {}.", elapsed(&self.last));
                let sections = vec![("afar run".to_owned(), self.section(&rates))];
                Shown { state, is_there: true, sections: Some(sections) }
            }
            Err(why) => match self.successor() {
                Some(next) => {
                    self.follow(next);
                    let (program, pid) = (&self.last.program, self.pid);
                    let state = format!("A new run of {program} has begun (process id {pid}).");
                    let rates = Rates { span: 1.0, fetches: 0.0, stalls: 0.0 };
                    let sections = vec![("afar run".to_owned(), self.section(&rates))];
                    Shown { state, is_there: true, sections: Some(sections) }
                }
                None => Shown::gone(format!(
                    "{why}. This page shows the last that was seen, and the next run of {} when it \
                     begins.",
                    self.last.program
                )),
            },
        }
    }
}

impl Runs {
    pub(super) fn new(runs: fn() -> Vec<RunState>) -> Self {
        Self {
            runs,
            begun: Instant::now(),
            last: BTreeMap::new(),
            at: 0.0,
            fetches: History::default(),
            far: History::default(),
        }
    }
}

impl Watched for Runs {
    fn name(&self) -> String {
        "runs on this machine".to_owned()
    }

    fn look(&mut self) -> Shown {
        let now = (self.runs)();
        let at = self.begun.elapsed().as_secs_f64();
        let (mut fetches, mut far) = (Vec::new(), Vec::new());
        let mut table =
            Table::new(["program", "process id", "time", "local", "far", "fetches/s", "stalls"]);
        for run in &now {
            let name = format!("{} ({})", run.program, run.pid);
            let rates = self.last.get(&run.pid).map(|last| Rates::between(last, run));
            let rate = rates.map_or(0.0, |rates| rates.fetches);
            fetches.push((name.clone(), rate));
            far.push((name, run.far_bytes as f64 / MIB));
            table.push([
                run.program.clone(),
                run.pid.to_string(),
                elapsed(run),
                Bytes::new(run.local_bytes).to_string(),
                Bytes::new(run.far_bytes).to_string(),
                rounded(rate),
                count(run.stall_count),
            ]);
        }
        let span = at - self.at;
        self.at = at;
        self.fetches.add((at, span), fetches);
        self.far.add((at, span), far);
        let state = match now.len() {
            0 => "No run goes on; one that begins will be shown.".to_owned(),
            1 => "1 run goes on.".to_owned(),
            number => format!("{number} runs go on."),
        };
        self.last = now.into_iter().map(|run| (run.pid, run)).collect();
        let told = |name, title: &str, y, caption| Told {
            name,
            title: title.to_owned(),
            y,
            caption,
            x: PAGE_TIME,
            omits_zero: false,
        };
        let pictures = [
            told("fetches", "Pages fetched by run", "pages a second", GAPS).of(&self.fetches),
            told("far", "Far memory by run", "MiB", "Pages in use that are far.").of(&self.far),
        ];
        let section = Section {
            title: "Runs".to_owned(),
            answer: vec![state.clone()],
            verdicts: (!self.last.is_empty()).then_some(table),
            pictures: pictures.into_iter().flatten().collect(),
            ..Section::default()
        };
        let sections = Some(vec![("afar run".to_owned(), section)]);
        Shown { state, is_there: true, sections }
    }
}

/// A row for each tier of memory.
fn tiers(tiers: &[TierState]) -> Table {
    let mut table = Table::new(["tier", "local", "round trip", "bandwidth", "link"]);
    for tier in tiers {
        let delay = match tier.profile {
            true => "from a profile".to_owned(),
            false => Duration::from_ns(tier.rtt_ns).to_string(),
        };
        let rate = tier.bandwidth_bps.filter(|rate| *rate > 0);
        let rate =
            rate.map_or_else(|| "no limit".to_owned(), |rate| BitsPerSec::new(rate).to_string());
        table.push([tier.name.clone(), tier.local.clone(), delay, rate, tier.link.clone()]);
    }
    table
}

// The time of a run in whole seconds.
fn elapsed(run: &RunState) -> String {
    Duration::from_ms(run.elapsed_ns / 1_000_000_000 * 1000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pid: u32, program: &str, elapsed_ns: u64, fetch_count: u64) -> RunState {
        RunState {
            pid,
            program: program.to_owned(),
            elapsed_ns,
            process_count: 1,
            local_bytes: 1 << 20,
            far_bytes: 3 << 20,
            fetch_count,
            fetch_p99_ns: 5_800,
            stall_count: 0,
            tiers: Vec::new(),
        }
    }

    fn sources(run: fn(u32) -> Result<RunState, String>, runs: fn() -> Vec<RunState>) -> Sources {
        Sources {
            sweep: |_| Err(String::new()),
            simulations: |_| Err(String::new()),
            run,
            runs,
            target: |_| Err(String::new()),
        }
    }

    #[test]
    fn rates_are_of_the_time_in_between() {
        let rates =
            Rates::between(&run(7, "a", 1_000_000_000, 10), &run(7, "a", 3_000_000_000, 50));
        assert_eq!((rates.span, rates.fetches), (2.0, 20.0));
    }

    #[test]
    fn a_run_that_ended_is_followed_by_the_next_of_its_program() {
        let is_there = |pid| match pid {
            7 => Ok(run(7, "sort", 60_000_000_000, 10)),
            _ => Err(format!("process {pid} is no run of afar; afar ctl list shows them")),
        };
        // Another program; one that ran beside it; the next.
        let runs =
            || vec![run(8, "grep", 0, 0), run(9, "sort", 61_000_000_000, 0), run(10, "sort", 0, 0)];
        let mut watched = Run::new(7, sources(is_there, runs)).expect("it is there");
        assert!(watched.look().is_there);
        watched.sources.run = |pid| Err(format!("process {pid} is no run"));
        let shown = watched.look();
        assert_eq!(shown.state, "A new run of sort has begun (process id 10).");
        assert!(watched.pid == 10 && !watched.memory.is_drawable(), "its history is its own");
        watched.sources.runs = Vec::new;
        let shown = watched.look();
        assert!(!shown.is_there && shown.sections.is_none(), "what was shown stays");
        assert!(shown.state.starts_with("process 10 is no run. This page"), "{}", shown.state);
    }

    #[test]
    fn runs_come_and_go() {
        let mut watched = Runs::new(|| vec![run(7, "a", 0, 0), run(8, "b", 0, 0)]);
        assert_eq!(watched.look().state, "2 runs go on.");
        watched.runs = Vec::new;
        let shown = watched.look();
        assert_eq!(shown.state, "No run goes on; one that begins will be shown.");
        assert!(shown.sections.expect("there is one")[0].1.verdicts.is_none());
    }
}
