//! Why `afar attach` attaches nothing.

use std::io;

use backend::{Failure as DiskFailure, OpenError, UriError};
use console::{Class, Classed};
use host::{Disk, HostError, NvmeUriError};
use measure::Duration;

use client::{HostNameError, InitiatorError, Unserved};

/// Why a disk cannot be attached or detached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    #[error(transparent)]
    Uri(#[from] NvmeUriError),
    #[error(transparent)]
    Initiator(#[from] InitiatorError),
    #[error(transparent)]
    Host(#[from] HostNameError),
    #[error("--path: {0} ways are more than {most}; leave some out", most = Disk::PATHS_MAX)]
    Paths(usize),
    #[error(transparent)]
    Device(#[from] UriError),
    #[error("{name}: a lease is for the hosts of a target; give memory:SIZE, or serve it")]
    Leased { name: String },
    #[error("{name}: {source}{}", source.remedy())]
    Open { name: String, source: OpenError },
    #[error(
        "--path: {name} is a device of this machine, to which there is no other way; leave it out"
    )]
    OneWay { name: String },
    #[error("--{flag} {time}: {reason}")]
    Time { flag: &'static str, time: Duration, reason: &'static str },
    #[error("{directory}: {source}; make it with mkdir, or give another directory")]
    Directory { directory: String, source: io::Error },
    #[error("{directory}: it is no directory; give one")]
    NoDirectory { directory: String },
    #[error("{directory}: a disk is attached there; umount it, or give another directory")]
    Attached { directory: String },
    #[error("{directory}: a killed afar attach has left it; afar doctor --repair unmounts it")]
    Abandoned { directory: String },
    #[error("{source}; this may give access to it: {remedy}")]
    Fuse { source: sys::Error, remedy: &'static str },
    #[error(
        "mount on {directory}: {source}; run it as root, or as unshare -Urm afar attach ... for \
         what is started there"
    )]
    Mount { directory: String, source: io::Error },
    #[error(transparent)]
    Unserved(#[from] Unserved),
    #[error("{uri}: {source}{}", source.remedy())]
    Connect { uri: String, source: HostError },
    #[error("it was unmounted before the kernel had asked for anything")]
    Unmounted,
    #[error(
        "the kernel serves files by FUSE {major}.{minor}, and this needs 7.23 or later: use Linux \
         6.1 or later"
    )]
    Version { major: u32, minor: u32 },
    #[error("what was written last may not be on the medium: {0}")]
    Flush(DiskFailure),
    #[error("told to end while the target is away: what was written last may not be on the medium")]
    GivenUp,
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for AttachError {
    fn class(&self) -> Class {
        match self {
            Self::Uri(_)
            | Self::Initiator(_)
            | Self::Host(_)
            | Self::Paths(_)
            | Self::Device(_)
            | Self::Leased { .. }
            | Self::OneWay { .. }
            | Self::Time { .. }
            | Self::Directory { .. }
            | Self::NoDirectory { .. }
            | Self::Attached { .. } => Class::Usage,
            Self::Fuse { .. } | Self::Mount { .. } | Self::Version { .. } => Class::Environment,
            _ => Class::Failed,
        }
    }
}
