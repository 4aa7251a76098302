//! What every benchmark needs: the afar under test, a private directory, the machine, a number of
//! rounds.

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
/// A run that lost more of its processor time to other guests of the machine is repeated.
pub(crate) const STOLEN_MAX: f64 = 0.03;
/// A run is taken as it is after so many, the least disturbed of them.
const ATTEMPTS: usize = 4;

/// Runs that were repeated, and what those that were kept lost nevertheless.
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
    /// This program, whose hidden commands are what is measured.
    own: PathBuf,
    /// Small sizes.
    pub(crate) quick: bool,
    /// Rounds of alternating runs.
    pub(crate) rounds: usize,
    /// As afar describes it.
    pub(crate) host: Host,
    pub(crate) progress: Progress,
    stolen: Cell<Stolen>,
    scratch: Scratch,
    files: Cell<u32>,
}

impl Context {
    /// Finds afar.
    ///
    /// # Errors
    /// When there is none, or no place for files.
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

    /// One of this program's hidden commands.
    pub(crate) fn hidden(&self, command: &str) -> Vec<OsString> {
        vec![self.own.clone().into(), command.into()]
    }

    /// `full`, or `quick` with `--quick`.
    pub(crate) fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A path in the private directory that nobody has used yet.
    pub(crate) fn fresh(&self, extension: &str) -> PathBuf {
        let number = self.files.get();
        self.files.set(number + 1);
        self.scratch.path().join(format!("{number}.{extension}"))
    }

    /// Where nobody else can write.
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

    /// The same for another number of rounds.
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

    /// What other guests of the machine did to the runs.
    pub(crate) const fn stolen(&self) -> Stolen {
        self.stolen.get()
    }

    /// The first run that the machine was left alone for, or the best of those tried.
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
