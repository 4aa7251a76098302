//! Why a command did not do what it was asked, and the exit status that says so.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use farmem::runtime::RunError;
use records::RecordError;

use crate::attach::AttachError;
use crate::bench::BenchError;
use crate::calibrate::CalibrationError;
use crate::closed_loop::LoopError;
use crate::ctl::CtlError;
use crate::discover::DiscoverError;
use crate::experiment::UsageError;
use crate::load::LoadUsage;
use crate::plan::PlanError;
use crate::predict::PredictError;
use crate::probe::ProbeError;
use crate::program::ProgramError;
use crate::report::ReportError;
use crate::reproduce::ReproduceError;
use crate::serve::ServeError;
use crate::sim::SimError;
use crate::sweep::SweepError;
use crate::top::TopError;
use crate::torture::TortureError;
use crate::trap::TrapError;
use crate::tuning::TuningError;
use crate::workload::WorkloadError;

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Tuning(#[from] TuningError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Trap(#[from] TrapError),
    #[error("calibrate: {0}")]
    Calibration(#[from] CalibrationError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    LoadUsage(#[from] LoadUsage),
    #[error(transparent)]
    Load(#[from] ::load::LoadError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Top(#[from] TopError),
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Bench(#[from] BenchError),
    #[error(transparent)]
    Torture(#[from] TortureError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Reproduce(#[from] ReproduceError),
    #[error(transparent)]
    Sim(#[from] SimError),
    #[error(transparent)]
    Loop(#[from] LoopError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Predict(#[from] PredictError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Ctl(#[from] CtlError),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Before anything was started.
    #[error("open {} for writing: {source}; check the path and its permissions", path.display())]
    Output { path: PathBuf, source: io::Error },
    /// After a run.
    #[error("write {}: {source}; check the space left on its disk", path.display())]
    Unwritten { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Record { path: PathBuf, source: RecordError },
    #[error("write to standard output: {0}; check where it leads")]
    Stdout(#[source] io::Error),
}

/// Bad usage.
pub(crate) const USAGE: u8 = 2;
/// This machine lacks something.
pub(crate) const ENVIRONMENT: u8 = 3;
/// Too little of a program's memory was managed for anything to be concluded.
pub(crate) const INVALID: u8 = 4;
pub(crate) const FAILED: u8 = 1;
/// As a shell says it of a program that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;
const OURS: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

impl Failure {
    /// A file that cannot be opened for writing.
    pub(crate) fn output(path: &Path, source: io::Error) -> Self {
        Self::Output { path: path.to_owned(), source }
    }

    /// The exit status, as shells and timeout(1) use it.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::LoadUsage(_) | Self::Tuning(_) | Self::Output { .. } => USAGE,
            Self::Plan(_) => USAGE,
            Self::Sweep(error) => {
                if error.is_usage() {
                    USAGE
                } else {
                    FAILED
                }
            }
            Self::Serve(error) if error.is_usage() => USAGE,
            Self::Attach(error) if error.is_usage() => USAGE,
            Self::Attach(error) if error.is_environment() => ENVIRONMENT,
            Self::Bench(error) if error.is_usage() => USAGE,
            Self::Torture(error) if error.is_usage() => USAGE,
            Self::Top(TopError::Interval(_)) => USAGE,
            Self::Discover(DiscoverError::Host(_) | DiscoverError::Initiator(_)) => USAGE,
            Self::Report(error) if error.is_usage() => USAGE,
            Self::Reproduce(error) if error.is_usage() => USAGE,
            Self::Sim(error) if error.is_usage() => USAGE,
            Self::Loop(error) if error.is_usage() => USAGE,
            Self::Predict(error) if error.is_usage() => USAGE,
            Self::Loop(error) if error.is_invalid() => INVALID,
            Self::Predict(PredictError::Invalid(_)) => INVALID,
            Self::Reproduce(ReproduceError::Loop(error)) if error.is_invalid() => INVALID,
            Self::Top(_) | Self::Discover(_) | Self::Torture(_) => FAILED,
            Self::Serve(_) | Self::Attach(_) | Self::Bench(_) | Self::Reproduce(_) => FAILED,
            Self::Sim(_) | Self::Loop(_) | Self::Predict(_) | Self::Report(_) => FAILED,
            Self::Trap(_) => ENVIRONMENT,
            Self::Workload(error) => match error {
                WorkloadError::Missing { .. } => ENVIRONMENT,
                WorkloadError::NotStarted { .. } | WorkloadError::Wrong { .. } => FAILED,
                _ => USAGE,
            },
            Self::Program(error) => match error {
                ProgramError::NotFound(_) => NOT_FOUND,
                ProgramError::NotExecutable { .. } => NOT_EXECUTABLE,
                _ => USAGE,
            },
            Self::Run(error) | Self::Calibration(CalibrationError::Run { source: error }) => {
                of_run(error)
            }
            Self::Calibration(CalibrationError::Unusable { .. }) => ENVIRONMENT,
            Self::Calibration(_) | Self::Unwritten { .. } | Self::Record { .. } => OURS,
            Self::Ctl(error) => match error {
                CtlError::Words(_) | CtlError::Setting(_) | CtlError::Refused { .. } => USAGE,
                CtlError::Uri(_) | CtlError::Host(_) | CtlError::Initiator(_) => USAGE,
                _ => FAILED,
            },
            Self::Probe(_) | Self::Load(_) | Self::Stdout(_) => FAILED,
        }
    }

    /// The same for `main`.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_status())
    }
}

fn of_run(error: &RunError) -> u8 {
    match error {
        RunError::NoProgram => USAGE,
        RunError::NotFound(_) => NOT_FOUND,
        RunError::NotExecutable(_) | RunError::NotStarted(..) => NOT_EXECUTABLE,
        RunError::Trap(_) | RunError::Swap(_) | RunError::NoUserfault => ENVIRONMENT,
        RunError::Killed(_, signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        _ => OURS,
    }
}
