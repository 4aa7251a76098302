//! Errors that end a benchmark.

use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

/// An error that ends a benchmark, described in one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(
        "find afar: no {}; build it with: cargo build --release --locked -p afar",
        path.display()
    )]
    NoAfar { path: PathBuf },
    #[error("find {program}: it is not installed; install it with: apt-get install {package}")]
    Missing { program: &'static str, package: &'static str },
    #[error("{operation} {}: {source}", path.display())]
    File { operation: &'static str, path: PathBuf, source: io::Error },
    #[error("start {program}: {source}")]
    NotStarted { program: String, source: io::Error },
    #[error("{program} ended with {status}; it said: {said}")]
    Ended { program: String, status: ExitStatus, said: String },
    #[error("{program} did not {what} within {limit_s} s and was killed; it said: {said}")]
    TooSlow { program: String, what: &'static str, limit_s: u64, said: String },
    #[error("talk to {server}: {source}")]
    Talk { server: &'static str, source: io::Error },
    #[error("{server} gave a wrong answer for key {key}: {answer}; memory was corrupted")]
    WrongAnswer { server: &'static str, key: u64, answer: String },
    #[error("{server} answered {answer:?} to {request}")]
    Refused { server: &'static str, request: &'static str, answer: String },
    #[error("{program} computed {one} in one run but {other} in another; memory was corrupted")]
    Differs { program: &'static str, one: String, other: String },
    #[error("read what {program} printed: no {wanted} in: {said}")]
    Unreadable { program: &'static str, wanted: &'static str, said: String },
    #[error(
        "time remote faults: {touched} pages were touched but only {fetched} fetched; \
         the local memory was larger than asked for"
    )]
    NotFetched { touched: u64, fetched: u64 },
    #[error("run {wanted} processes under management: only {managed} were managed")]
    NotManaged { wanted: u64, managed: u64 },
    #[error(
        "slow a program down by a tenth: without round trips it takes {:.1} % longer already; \
         other programs may keep this machine busy",
        without * 100.0
    )]
    NothingLeft { without: f64 },
    #[error("read the record of a run: {0}")]
    Record(#[from] measure::RunError),
    #[error(transparent)]
    Invalid(#[from] measure::InvalidRun),
    #[error("simulate the network: {0}")]
    Simulation(#[from] netsim::SimError),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Failure {
    /// The exit code that `--help` documents.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(3)
    }

    /// Wraps an error on the file at `path`.
    pub(crate) fn file(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { operation, path, source }
    }
}
