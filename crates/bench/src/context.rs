//! What every benchmark needs: the afar under test, a private directory, the machine, a number of
//! rounds.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use measure::Host;

use crate::failure::Failure;
use crate::far::Place;
use crate::flags::CommonFlags;
use crate::process;
use crate::progress::Progress;
use crate::scratch::Scratch;

const ROUNDS: usize = 7;
const QUICK_ROUNDS: usize = 3;

/// Where and how benchmarks run.
#[derive(Debug)]
pub(crate) struct Context {
    /// The binary under test.
    pub(crate) afar: PathBuf,
    /// Small sizes.
    pub(crate) quick: bool,
    /// Rounds of alternating runs.
    pub(crate) rounds: usize,
    /// As afar describes it.
    pub(crate) host: Host,
    pub(crate) progress: Progress,
    scratch: Scratch,
    files: Cell<u32>,
}

impl Context {
    /// Finds afar and tries it.
    ///
    /// # Errors
    /// When there is no afar or it cannot run a program here.
    pub(crate) fn prepare(flags: &CommonFlags) -> Result<Self, Failure> {
        let own = std::env::current_exe().map_err(Failure::file("find", "bench"))?;
        let afar = own.with_file_name("afar");
        if !afar.is_file() {
            return Err(Failure::NoAfar { path: afar });
        }
        let default = if flags.quick { QUICK_ROUNDS } else { ROUNDS };
        let mut context = Self {
            afar,
            quick: flags.quick,
            rounds: flags.runs.map_or(default, usize::from),
            host: Host::default(),
            progress: Progress::new(),
            scratch: Scratch::create()?,
            files: Cell::new(0),
        };
        context.progress.show("trying afar");
        let trial = Place::far(&[]).execute(&context, &["true".into()], process::SHORT)?;
        if let Some(run) = trial.run {
            context.host = run.host;
        }
        Ok(context)
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
        mut run: impl FnMut(&V) -> Result<T, Failure>,
    ) -> Result<Vec<Vec<T>>, Failure> {
        let mut results: Vec<Vec<T>> = variants.iter().map(|_| Vec::new()).collect();
        for round in 0..self.rounds {
            for step in 0..variants.len() {
                let index = if round % 2 == 0 { step } else { variants.len() - 1 - step };
                let (now, all) = (step + 1, variants.len());
                self.progress.show(&format!(
                    "{title}: round {} of {}, run {now} of {all}",
                    round + 1,
                    self.rounds
                ));
                results[index].push(run(&variants[index])?);
            }
        }
        Ok(results)
    }
}
