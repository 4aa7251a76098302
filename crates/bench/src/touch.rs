//! Programs under test of this crate: they time touches of memory by the time-stamp counter.
//!
//! DESIGN NOTES
//!
//! These are not the program that afar calibrates itself with, so that a mistake there shows here.

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
/// Time over which the counter's rate is measured: to 1 in 100,000, as a clock read takes 200 ns.
const RATE_TIME: Duration = Duration::from_millis(40);

/// Pages that are local under afar in the same benchmark,
const LOCAL_PAGES: usize = 512;
/// and how many pages afar drops at a time.
const CHUNK: usize = 32;

/// Which thread drops the pages whose faults are timed without afar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drops {
    /// The touching thread, all pages before each round.
    Before,
    /// Another thread, behind the touching one, as afar does.
    Meanwhile,
}

/// A kind of memory whose faults are timed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Memory {
    /// A shared memory file without afar.
    Native(Drops),
    /// Under `afar run` with these flags.
    Far(&'static [&'static str]),
}

impl Memory {
    // How the child is run, its hidden command, and its additional flags.
    fn child(self) -> (Place, &'static str, &'static [&'static str]) {
        match self {
            Self::Far(flags) => (Place::far(flags), "touch", &[]),
            Self::Native(Drops::Before) => (Place::Native, "baseline", &[]),
            Self::Native(Drops::Meanwhile) => (Place::Native, "baseline", &["--meanwhile"]),
        }
    }
}

/// A number of touches: pages, rounds, and reads or writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touches {
    /// Pages, touched in order, so that with fewer local pages every touch is a fetch.
    pub(crate) pages: u64,
    /// How often each page is touched.
    pub(crate) rounds: u64,
    pub(crate) write: bool,
}

impl Touches {
    /// Times touches of memory under `afar run` with `flags`. Returns nanoseconds of each touch, in
    /// order.
    ///
    /// # Errors
    /// When the child fails, or if not every touch was a fetch.
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

    /// Times faults of several kinds of memory, by programs that take turns of one round. Returns
    /// the samples of all rounds for each of `memories`.
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

    /// Checks that every touch was a fetch.
    fn check_fetched(self, outcome: &Outcome) -> Result<(), Failure> {
        let fetched = outcome.run.as_ref().map_or(0, |run| run.figures.faults.fetch_count);
        let touched = self.pages * self.rounds;
        // The kernel itself touches a few pages, which are local then.
        if fetched < touched - touched / 1000 {
            return Err(Failure::NotFetched { touched, fetched });
        }
        Ok(())
    }

    /// Runs a hidden command with these touches. Returns the time of each touch in nanoseconds.
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

    /// The command line of a hidden command with these touches and the flags `more`.
    fn program(self, context: &Context, command: &str, more: &[&str]) -> Vec<OsString> {
        let mut program = context.hidden(command);
        for (flag, value) in [("--pages", self.pages), ("--rounds", self.rounds)] {
            program.extend([flag.into(), value.to_string().into()]);
        }
        program.extend(self.write.then(|| "--write".into()));
        program.extend(more.iter().map(OsString::from));
        program
    }

    /// The times that a hidden command has printed.
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

/// The hidden command `touch`, for far memory: prints the time of each touch.
///
/// # Errors
/// When it cannot take turns.
pub(crate) fn touch(flags: &TouchFlags) -> Result<(), Failure> {
    let mut baton = Baton::new(flags.turns)?;
    let words = flags.pages * WORDS_PER_PAGE;
    // The first touch of each page, which fetches nothing. Pages differ and none is full of one
    // value, because swap need not store such pages.
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

/// The hidden command `baseline`, without afar: prints the time of each minor fault.
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

/// Prints times, given in ticks, in nanoseconds, less the time of reading the counter.
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

/// The median number of ticks between two consecutive readings of the counter.
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

/// The rate of the counter: a number of ticks, and the nanoseconds that they took.
pub(crate) fn rate() -> (u64, u64) {
    let (first_ticks, first_ns) = (cycles(), monotonic_ns());
    std::thread::sleep(RATE_TIME);
    let (ticks, ns) = (cycles(), monotonic_ns());
    (ticks - first_ticks, ns - first_ns)
}
