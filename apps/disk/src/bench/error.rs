//! Why `afar bench` runs no load.

use std::path::PathBuf;

use backend::{OpenError, UriError};
use console::{Class, Classed};
use diskload::LoadError;
use experiment::machine::Busy;
use host::{HostError, NvmeUriError};
use measure::{Bytes, Duration};

use super::letters::LETTERS;
use client::{HostNameError, InitiatorError, Unserved};

/// Invalid settings of a load, or a disk that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error(transparent)]
    Nvme(#[from] NvmeUriError),
    #[error(transparent)]
    Initiator(#[from] InitiatorError),
    #[error(transparent)]
    Backend(#[from] UriError),
    #[error(
        "{0}: it begins neither with nvme+tcp:// nor with iscsi://, and other networks are not \
         supported; write one of these, or a disk of this machine, e.g. file:/PATH"
    )]
    Scheme(String),
    #[error("--rate-iops {0}: give requests per second, above 0: 5000, 5k or 1.5M")]
    Rate(String),
    #[error("--sweep={0}: give rates in requests per second, above 0: --sweep=10k,20k,40k")]
    Sweep(String),
    #[error("--duration 0: no request would be timed; give a time, e.g. 10s")]
    Runtime,
    #[error("--rate 0 B: no request could be made; give bytes per second, e.g. 100MB")]
    RateBytes,
    #[error(transparent)]
    Host(#[from] HostNameError),
    #[error("--busy-poll {0}: at most 1ms; longer is better slept")]
    BusyPoll(Duration),
    #[error("--layout would overwrite {0}; add --overwrite if nothing there is needed any more")]
    LayoutOver(String),
    #[error("--layout writes, and {0} is opened to be read only; leave ?readonly out")]
    LayoutReadOnly(String),
    #[error(
        "--rw {rw} would overwrite {name}; add --overwrite if nothing there is needed any more"
    )]
    Overwrite { rw: String, name: String },
    #[error("--verify with requests that only read: nothing is written to check; use --rw randrw")]
    NothingToVerify,
    #[error("--verify with requests that trim: what is read then is not said; use --rw randrw")]
    TrimToVerify,
    #[error("--bs {bytes}: this disk takes multiples of {block}, {most} at most; write --bs 4k")]
    Request { bytes: Bytes, block: Bytes, most: Bytes },
    #[error(
        "{what} {bytes}: this disk has {disk}, and all jobs together need room for {needed} \
         within it"
    )]
    Region { what: &'static str, bytes: Bytes, disk: Bytes, needed: Bytes },
    #[error("{name}: {source}{}", source.remedy())]
    Open { name: String, source: OpenError },
    #[error("{name}: {source}{}", source.remedy())]
    Connect { name: String, source: HostError },
    #[error(transparent)]
    Unserved(#[from] Unserved),
    #[error("{name}: it takes {queues} queues, not --threads {jobs}")]
    Queues { name: String, jobs: u16, queues: u16 },
    #[error(
        "no disk is named; write filename=FILE or a URI, or name one: afar bench URI --job FILE"
    )]
    NoDisk,
    #[error("it verifies what [{other}] writes at the same time; give each its own --offset")]
    Overlap { other: String },
    #[error("{path}: {source}; check the path and its permissions", path = path.display())]
    Unread { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}: {reason}", path = path.display())]
    Job { path: PathBuf, line: usize, reason: String },
    /// An error in a section of a job file, whose options have no dashes.
    #[error(
        "{path}:{line}: [{name}]: {text}",
        path = path.display(),
        text = source.to_string().trim_start_matches("--")
    )]
    Section { path: PathBuf, line: usize, name: String, source: Box<Self> },
    #[error("--layout {name}: {done} of {wanted} writes were done: {first}")]
    Layout { name: String, done: u64, wanted: u64, first: String },
    #[error("{flag} is for a load without a job file; write it into {path}", path = path.display())]
    WithJob { flag: String, path: PathBuf },
    #[error("{flag} is for one disk, and {count} are named; leave it out, or name one disk")]
    OneDisk { flag: String, count: usize },
    #[error(
        "{}: jobs of a file are for one disk, and {count} are named; name one disk, or write the \
         load as flags: --rw, --bs, --depth",
        path.display()
    )]
    JobOfDisks { path: PathBuf, count: usize },
    #[error("{0} disks: at most {most} are compared; leave some out", most = LETTERS.len())]
    Disks(usize),
    #[error("{flag} needs {what}; add that, or leave {flag} out")]
    Needs { flag: &'static str, what: &'static str },
    #[error("{letter} ({uri}): {why}")]
    Run { letter: &'static str, uri: String, why: String },
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Load(LoadError),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for BenchError {
    fn class(&self) -> Class {
        match self {
            Self::Section { source, .. } => source.class(),
            Self::Busy(_) => Class::Environment,
            Self::Open { .. }
            | Self::Connect { .. }
            | Self::Unserved(_)
            | Self::Layout { .. }
            | Self::Run { .. }
            | Self::Load(_)
            | Self::System(_) => Class::Failed,
            _ => Class::Usage,
        }
    }
}
