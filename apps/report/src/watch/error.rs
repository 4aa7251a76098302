//! Why there is no live page.

use std::io;
use std::path::PathBuf;

use console::{Class, Classed};

/// Why there is no live page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    #[error(
        "{0} is no directory, no process id and no HOST:PORT; give the directory of an afar sweep, \
         the process id of an afar run (afar ctl list has it), or the address of the metrics of an \
         afar serve"
    )]
    Nothing(String),
    #[error(
        "{}: {why}; give the directory of an afar sweep, or one with records that a report is made \
         of (afar sim --output, afar loop, afar reproduce)",
        path.display()
    )]
    Directory { path: PathBuf, why: String },
    #[error("{0}")]
    Run(String),
    #[error("{0}")]
    Target(String),
    #[error(
        "listen on 127.0.0.1:{port}: {source}; give another --port, or none for any that is free"
    )]
    Port { port: u16, source: io::Error },
    #[error("start to answer: {0}; end other programs and try again")]
    Serve(io::Error),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for WatchError {
    fn class(&self) -> Class {
        match self {
            Self::Nothing(_) | Self::Directory { .. } | Self::Port { .. } => Class::Usage,
            Self::Run(_) | Self::Target(_) | Self::Serve(_) | Self::System(_) => Class::Failed,
        }
    }
}
