//! The context of every benchmark: the afar under test, a private directory, the machine, and the
//! number of rounds.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use measure::Host;
use sys::processors::ProcessorTime;

use crate::failure::Failure;
use crate::flags::CommonFlags;
use crate::progress::Progress;
use crate::scratch::Scratch;

const ROUNDS: usize = 7;
const QUICK_ROUNDS: usize = 3;
/// A run that lost a larger share of its processor time to other guests of the host is repeated.
pub(crate) const STOLEN_MAX: f64 = 0.03;
/// How often a run is tried; if all are disturbed, the least disturbed one counts.
const ATTEMPTS: usize = 4;

/// Processor time that other guests took: repeated runs, and the largest share that a kept run
/// lost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stolen {
    pub(crate) repeated_count: u64,
    pub(crate) kept_max: f64,
}

/// Where and how benchmarks run.
#[derive(Debug)]
pub(crate) struct Context {
    /// The binary under test.
    pub(crate) afar: PathBuf,
    /// This program; its hidden commands are programs under test.
    own: PathBuf,
    /// Whether sizes are small (`--quick`).
    pub(crate) quick: bool,
    /// Rounds of alternating runs.
    pub(crate) rounds: usize,
    /// The machine, as afar describes it.
    pub(crate) host: Host,
    pub(crate) progress: Progress,
    stolen: Cell<Stolen>,
    scratch: Scratch,
    files: Cell<u32>,
}

impl Context {
    /// Finds afar beside this program and creates the private directory.
    ///
    /// # Errors
    /// When there is no afar, or the directory cannot be created.
    pub(crate) fn prepare(flags: &CommonFlags) -> Result<Self, Failure> {
        let own = std::env::current_exe().map_err(Failure::file("find", "bench"))?;
        let afar = own.with_file_name("afar");
        if !afar.is_file() {
            return Err(Failure::NoAfar { path: afar });
        }
        let default = if flags.quick { QUICK_ROUNDS } else { ROUNDS };
        Ok(Self {
            afar,
            own,
            quick: flags.quick,
            rounds: flags.runs.map_or(default, usize::from),
            host: Host::default(),
            progress: Progress::new(),
            stolen: Cell::default(),
            scratch: Scratch::create()?,
            files: Cell::new(0),
        })
    }

    /// The beginning of a command line that runs a hidden command of this program.
    pub(crate) fn hidden(&self, command: &str) -> Vec<OsString> {
        vec![self.own.clone().into(), command.into()]
    }

    /// `full`, or `quick` with `--quick`.
    pub(crate) fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A new path in the private directory.
    pub(crate) fn fresh(&self, extension: &str) -> PathBuf {
        let number = self.files.get();
        self.files.set(number + 1);
        self.scratch.path().join(format!("{number}.{extension}"))
    }

    /// The private directory.
    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs each of `variants` once a round; even rounds start with the first, odd ones with the
    /// last. The results of a variant are in the order of the rounds.
    ///
    /// # Errors
    /// The first failure of a run.
    pub(crate) fn alternate<V, T>(
        &self,
        title: &str,
        variants: &[V],
        run: impl FnMut(&V) -> Result<T, Failure>,
    ) -> Result<Vec<Vec<T>>, Failure> {
        self.alternate_for(self.rounds, title, variants, run)
    }

    /// As [`Context::alternate`], for another number of rounds.
    ///
    /// # Errors
    /// The first failure of a run.
    pub(crate) fn alternate_for<V, T>(
        &self,
        rounds: usize,
        title: &str,
        variants: &[V],
        mut run: impl FnMut(&V) -> Result<T, Failure>,
    ) -> Result<Vec<Vec<T>>, Failure> {
        let mut results: Vec<Vec<T>> = variants.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            for step in 0..variants.len() {
                let index = if round % 2 == 0 { step } else { variants.len() - 1 - step };
                let (now, all) = (step + 1, variants.len());
                self.progress.show(&format!(
                    "{title}: round {} of {}, run {now} of {all}",
                    round + 1,
                    rounds
                ));
                results[index].push(self.undisturbed(|| run(&variants[index]))?);
            }
        }
        Ok(results)
    }

    /// The processor time that other guests took from the runs so far.
    pub(crate) const fn stolen(&self) -> Stolen {
        self.stolen.get()
    }

    /// Repeats `run` until other guests do not disturb it. Returns the least disturbed result.
    ///
    /// # Errors
    /// The first failure of a run.
    pub(crate) fn undisturbed<T>(
        &self,
        mut run: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut best: Option<(f64, T)> = None;
        let mut said = self.stolen.get();
        for attempt in 0..ATTEMPTS {
            said.repeated_count += u64::from(attempt > 0);
            let before = ProcessorTime::now();
            let result = run()?;
            let stolen = ProcessorTime::now().stolen_since(before);
            if best.as_ref().is_none_or(|(least, _)| stolen < *least) {
                best = Some((stolen, result));
            }
            if stolen <= STOLEN_MAX {
                break;
            }
        }
        let (stolen, result) = best.expect("it ran at least once");
        said.kept_max = said.kept_max.max(stolen);
        self.stolen.set(said);
        Ok(result)
    }
}
