//! Errors of a figure.

use std::io;
use std::path::PathBuf;

use backend::{OpenError, UriError};
use console::{Class, Classed};
use diskload::LoadError;
use host::HostError;
use ladder::StartError;
use launch::LaunchError;
use measure::Duration;

use experiment::journal::JournalError;
use experiment::machine::Busy;
use fabric::LoopError;
use fabric::SimError;

/// Why a figure could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReproduceError {
    #[error("start {program}: {source}; check that afar may start processes")]
    Start { program: String, source: io::Error },
    #[error("keep runs in {}: {source}; check the path and its permissions", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Target(#[from] LaunchError),
    #[error("the target did not say what it had traced; try again")]
    Untraced,
    #[error("connect to the target: {0}; try again, or look at the firewall of the loopback")]
    Connect(#[source] HostError),
    #[error("make the emulated drive: {0}; free 256 MiB of memory")]
    Open(#[from] OpenError),
    #[error("--disk {0}")]
    Disk(#[from] UriError),
    #[error("--disk {uri}: {source}{}", source.remedy())]
    OpenDisk { uri: String, source: OpenError },
    #[error(
        "--disk means nothing for {0}: guz-fig6 alone is measured on a disk of yours; leave it out"
    )]
    NoDisk(&'static str),
    #[error("load the drive: {0}")]
    Load(#[source] LoadError),
    #[error("{what}: {count} requests failed: {first}; try again with a smaller --scale")]
    Failed { what: String, count: u64, first: String },
    #[error("make networks: only root may; run it with sudo")]
    NotRoot,
    #[error("mount file systems: only root may; run it with sudo")]
    NotRootMounts,
    #[error("{words}: {said}; it needs root in a machine that allows mounts, /dev/fuse and ext4")]
    Mounts { words: String, said: String },
    #[error("{program} is not on PATH; install Debian's package {package}")]
    Missing { program: &'static str, package: &'static str },
    #[error("make networks: {words}: {said}; it needs root in a machine that allows it, and veth")]
    Network { words: String, said: String },
    #[error("nothing ran with far memory: {0}; afar doctor says what this machine lacks")]
    NothingRan(String),
    #[error(transparent)]
    Ladder(#[from] StartError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(
        "{directory} has runs on machines of the class {class}, with which this one is not \
         compared; name another directory with --output"
    )]
    OtherMachine { directory: String, class: String },
    #[error("--busy-poll {0}: at most 1ms; longer is better slept")]
    BusyPoll(Duration),
    #[error(transparent)]
    Sim(#[from] SimError),
    #[error(transparent)]
    Loop(#[from] LoopError),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for ReproduceError {
    fn class(&self) -> Class {
        match self {
            Self::BusyPoll(_) | Self::Journal(_) | Self::OtherMachine { .. } => Class::Usage,
            Self::Disk(_) | Self::NoDisk(_) => Class::Usage,
            Self::Busy(_) => Class::Environment,
            Self::Loop(error) if error.class() == Class::Invalid => Class::Invalid,
            _ => Class::Failed,
        }
    }
}
