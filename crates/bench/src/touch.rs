//! The programs under test that are our own: they time touches of memory with the time-stamp
//! counter.
//!
//! DESIGN NOTES
//!
//! This is not the program that afar calibrates itself with: a mistake there must show here.

use std::ffi::OsString;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sys::baseline::{Dropped, minor_fault_samples};
use sys::clock::{cycles, monotonic_ns};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::{Outcome, Place};
use crate::flags::{BaselineFlags, TouchFlags};
use crate::process::LONG;
use crate::progress;
use crate::stats::{Quantile, quantile};
use crate::turns::{Baton, Turns};

const WORDS_PER_PAGE: usize = 512;
/// The counter's rate is known to 1 in 100,000 after this: the clock is read within 200 ns.
const RATE_TIME: Duration = Duration::from_millis(40);

/// Pages that afar keeps local in the same benchmark, and how many it drops at a time.
const LOCAL_PAGES: usize = 512;
const CHUNK: usize = 32;

/// Who drops the pages whose faults are timed without afar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drops {
    /// The touching thread itself, all of them before each round.
    Before,
    /// Another thread, behind the touching one, as afar does.
    Meanwhile,
}

/// Memory whose faults are timed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Memory {
    /// Of the same kind, without afar.
    Native(Drops),
    /// Under `afar run` with these flags.
    Far(&'static [&'static str]),
}

impl Memory {
    // Where the child runs, its command, and the flags that it has of its own.
    fn child(self) -> (Place, &'static str, &'static [&'static str]) {
        match self {
            Self::Far(flags) => (Place::far(flags), "touch", &[]),
            Self::Native(Drops::Before) => (Place::Native, "baseline", &[]),
            Self::Native(Drops::Meanwhile) => (Place::Native, "baseline", &["--meanwhile"]),
        }
    }
}

/// What is touched, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touches {
    /// Touched in turn, so that with less local memory than this every touch is a fetch.
    pub(crate) pages: u64,
    /// How often all of them are touched.
    pub(crate) rounds: u64,
    pub(crate) write: bool,
}

impl Touches {
    /// Times touches of ordinary memory, in nanoseconds, in the order of the touches.
    ///
    /// # Errors
    /// When the child fails, or with far memory if not every touch was a fetch.
    pub(crate) fn far(
        self,
        context: &Context,
        flags: &[&str],
    ) -> Result<(Vec<u64>, Outcome), Failure> {
        let place = Place::far(flags);
        let (samples, outcome) = self.sample(context, &place, "touch", &[])?;
        self.check_fetched(&outcome)?;
        Ok((samples, outcome))
    }

    /// Times faults of these kinds of memory, by programs that take turns of one round. The answer
    /// has the samples of all rounds for each of `memories`.
    ///
    /// # Errors
    /// When a child fails, or if not every touch of far memory was a fetch.
    pub(crate) fn by_turns(
        self,
        context: &Context,
        memories: &[Memory],
    ) -> Result<Vec<Vec<u64>>, Failure> {
        let programs: Vec<_> = memories
            .iter()
            .map(|memory| {
                let (place, command, more) = memory.child();
                (place, self.program(context, command, &[more, &["--turns"]].concat()))
            })
            .collect();
        let mut turns = Turns::start(context, &programs)?;
        for round in 0..self.rounds {
            turns.round(round % 2 == 1)?;
        }
        let outcomes = turns.finish()?;
        outcomes
            .into_iter()
            .zip(memories)
            .map(|(outcome, memory)| {
                if matches!(memory, Memory::Far(_)) {
                    self.check_fetched(&outcome)?;
                }
                self.samples_of(&outcome)
            })
            .collect()
    }

    fn check_fetched(self, outcome: &Outcome) -> Result<(), Failure> {
        let fetched = outcome.run.as_ref().map_or(0, |run| run.figures.faults.fetch_count);
        let touched = self.pages * self.rounds;
        // A page or two may come back by themselves: the kernel touches some on its own.
        if fetched < touched - touched / 1000 {
            return Err(Failure::NotFetched { touched, fetched });
        }
        Ok(())
    }

    fn sample(
        self,
        context: &Context,
        place: &Place,
        command: &str,
        more: &[&str],
    ) -> Result<(Vec<u64>, Outcome), Failure> {
        let outcome = place.execute(context, &self.program(context, command, more), LONG)?;
        Ok((self.samples_of(&outcome)?, outcome))
    }

    fn program(self, context: &Context, command: &str, more: &[&str]) -> Vec<OsString> {
        let mut program = context.hidden(command);
        for (flag, value) in [("--pages", self.pages), ("--rounds", self.rounds)] {
            program.extend([flag.into(), value.to_string().into()]);
        }
        program.extend(self.write.then(|| "--write".into()));
        program.extend(more.iter().map(OsString::from));
        program
    }

    fn samples_of(self, outcome: &Outcome) -> Result<Vec<u64>, Failure> {
        let samples: Result<Vec<u64>, _> =
            outcome.stdout.split_ascii_whitespace().map(str::parse).collect();
        match samples {
            Ok(samples) if samples.len() as u64 == self.pages * self.rounds => Ok(samples),
            _ => Err(Failure::Unreadable {
                program: "bench",
                wanted: "times",
                said: outcome.stdout.clone(),
            }),
        }
    }
}

/// The child that touches far memory: prints the time of each touch.
///
/// # Errors
/// When it cannot take turns.
pub(crate) fn touch(flags: &TouchFlags) -> Result<(), Failure> {
    let mut baton = Baton::new(flags.turns)?;
    let words = flags.pages * WORDS_PER_PAGE;
    // Every page is used once here, which fetches nothing. No two are alike, and none is full of
    // one value: swap space would not have to hold those.
    let memory: Vec<AtomicU64> = (1..=words as u64).map(AtomicU64::new).collect();
    let mut samples = Vec::with_capacity(flags.pages * flags.rounds);
    for _ in 0..flags.rounds {
        baton.next();
        for word in memory.iter().step_by(WORDS_PER_PAGE) {
            let before = cycles();
            if flags.write {
                word.store(2, Ordering::Relaxed);
            } else {
                std::hint::black_box(word.load(Ordering::Relaxed));
            }
            samples.push(cycles() - before);
        }
    }
    drop(baton);
    print(&samples);
    Ok(())
}

/// The child that touches memory without afar.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn baseline(flags: &BaselineFlags) -> Result<(), Failure> {
    let BaselineFlags { touches: flags, meanwhile } = flags;
    let dropped = match meanwhile {
        true => Dropped::Meanwhile { local: LOCAL_PAGES, chunk: CHUNK },
        false => Dropped::Before,
    };
    let mut baton = Baton::new(flags.turns)?;
    let TouchFlags { pages, rounds, write, .. } = *flags;
    let samples = minor_fault_samples(pages, rounds, write, dropped, &mut || baton.next())?;
    drop(baton);
    print(&samples);
    Ok(())
}

/// Prints samples in nanoseconds, less what reading the counter takes.
pub(crate) fn print(ticks: &[u64]) {
    let empty = empty();
    let (counted, took_ns) = rate();
    let mut out = String::with_capacity(ticks.len() * 6);
    for &ticks in ticks {
        let touch = ticks.saturating_sub(empty);
        let ns = u128::from(touch) * u128::from(took_ns) / u128::from(counted);
        let _ = writeln!(out, "{ns}");
    }
    progress::answer(&out);
}

/// Median of ticks between two readings of the counter with nothing in between.
fn empty() -> u64 {
    let mut pairs: Vec<u64> = (0..1001)
        .map(|_| {
            let before = cycles();
            cycles() - before
        })
        .collect();
    pairs.sort_unstable();
    quantile(&pairs, Quantile::P50)
}

/// Ticks of the counter, and the nanoseconds that they took.
pub(crate) fn rate() -> (u64, u64) {
    let (first_ticks, first_ns) = (cycles(), monotonic_ns());
    std::thread::sleep(RATE_TIME);
    let (ticks, ns) = (cycles(), monotonic_ns());
    (ticks - first_ticks, ns - first_ns)
}
