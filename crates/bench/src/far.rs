//! Runs programs with and without far memory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use measure::{Calibration, Figures, Host, Run};
use serde_json::Value;

use crate::context::Context;
use crate::failure::Failure;
use crate::process::{Job, SHORT};

/// Wait before counters are read: afar updates them every 100 ms.
const SETTLE: Duration = Duration::from_millis(300);

/// How a program is run.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// Without afar.
    Native,
    /// Under `afar run` with these flags.
    Far(Vec<String>),
    /// Under `afar predict --record`, which writes a profile to this file.
    Watched(PathBuf),
}

/// The results of a program that has succeeded.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Its standard output.
    pub(crate) stdout: String,
    /// afar's record of the run; `None` without far memory.
    pub(crate) run: Option<FarRun>,
}

/// The record of a valid run with far memory.
#[derive(Debug, Clone)]
pub(crate) struct FarRun {
    /// The machine.
    pub(crate) host: Host,
    pub(crate) figures: Figures,
    pub(crate) calibration: Option<Calibration>,
    /// How many process images had managed memory.
    pub(crate) managed_count: u64,
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) job: Job,
    record: Option<PathBuf>,
}

impl Place {
    /// Under `afar run` with `flags`.
    pub(crate) fn far(flags: &[&str]) -> Self {
        Self::Far(flags.iter().map(|&flag| flag.to_owned()).collect())
    }

    /// Starts `program` in this way.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(&self, context: &Context, program: &[OsString]) -> Result<Placed, Failure> {
        self.start_from(context, program, Stdio::null())
    }

    /// As [`Place::start`], with `stdin` as the program's standard input.
    ///
    /// # Errors
    /// As [`Place::start`].
    pub(crate) fn start_from(
        &self,
        context: &Context,
        program: &[OsString],
        stdin: Stdio,
    ) -> Result<Placed, Failure> {
        let flags = match self {
            Self::Far(flags) => flags,
            Self::Native => {
                let job = Job::start_from(context, program, stdin)?;
                return Ok(Placed { job, record: None });
            }
            Self::Watched(path) => {
                let words = ["predict", "--quiet", "--record"].map(OsString::from);
                let afar = [context.afar.clone().into()];
                let mut command: Vec<OsString> = afar.into_iter().chain(words).collect();
                command.extend([path.into(), "--".into()]);
                command.extend_from_slice(program);
                let job = Job::start_from(context, &command, stdin)?;
                return Ok(Placed { job, record: None });
            }
        };
        let record = context.fresh("json");
        let mut command: Vec<OsString> = vec![context.afar.clone().into()];
        command.extend(["run", "--quiet", "--json"].map(OsString::from));
        command.push(record.clone().into());
        command.extend(flags.iter().map(OsString::from));
        command.push("--".into());
        command.extend_from_slice(program);
        let job = Job::start_from(context, &command, stdin)?;
        Ok(Placed { job, record: Some(record) })
    }

    /// Runs `program` in this way to its end.
    ///
    /// # Errors
    /// When it cannot be started, fails, or takes longer than `limit`.
    pub(crate) fn execute(
        &self,
        context: &Context,
        program: &[OsString],
        limit: Duration,
    ) -> Result<Outcome, Failure> {
        self.start(context, program)?.finish(limit)
    }
}

/// Runs afar once, to check that it works. Returns its description of the machine.
///
/// # Errors
/// When it cannot run a program here.
pub(crate) fn trial(context: &Context) -> Result<Host, Failure> {
    context.progress.show("trying afar");
    // The program is too small to be managed, but the record has the machine.
    let far = Place::far(&["--allow-unmanaged"]);
    let run = far.execute(context, &["true".into()], SHORT)?.run;
    Ok(run.map_or_else(Host::default, |run| run.host))
}

impl Placed {
    /// How many pages were fetched so far, by `afar ctl`; 0 without far memory.
    ///
    /// # Errors
    /// When afar does not answer.
    pub(crate) fn fetch_count(&self, context: &Context) -> Result<u64, Failure> {
        if self.record.is_none() {
            return Ok(0);
        }
        std::thread::sleep(SETTLE);
        let pid = self.job.pid().to_string();
        let words = ["ctl", "--json", "-", &pid, "show"].map(OsString::from);
        let command: Vec<OsString> =
            [context.afar.clone().into()].into_iter().chain(words).collect();
        let said = Job::start(context, &command)?.finish(SHORT)?;
        let shown: Option<Value> = serde_json::from_str(&said).ok();
        let count = shown.as_ref().and_then(|shown| shown.get("fetch_count")?.as_u64());
        count.ok_or(Failure::Unreadable { program: "afar ctl", wanted: "fetch_count", said })
    }

    /// Waits for the end of the program.
    ///
    /// # Errors
    /// When the program fails or takes longer than `limit`, or the run is invalid.
    pub(crate) fn finish(self, limit: Duration) -> Result<Outcome, Failure> {
        let stdout = self.job.finish(limit)?;
        let run = self.record.as_deref().map(read).transpose()?;
        Ok(Outcome { stdout, run })
    }
}

/// Reads the record of a valid run.
fn read(path: &Path) -> Result<FarRun, Failure> {
    let text = std::fs::read_to_string(path).map_err(Failure::file("read", path))?;
    let run: Run = Run::from_json(&text)?;
    let figures = run.results.figures()?.clone();
    let managed_count = run.results.images.iter().filter(|image| image.managed).count() as u64;
    let calibration = run.results.calibration;
    Ok(FarRun { host: run.host, figures, calibration, managed_count })
}
