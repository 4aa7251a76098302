//! Errors of `afar workload`.

use console::{Class, Classed};
use measure::Bytes;

/// Why a workload does not run, or its result does not count.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkloadError {
    #[error("--size {size}: less than {least} would stay in the processor's caches; give more")]
    Small { size: Bytes, least: Bytes },
    #[error("--size {size}: this machine has {memory} of memory; give less")]
    Large { size: Bytes, memory: Bytes },
    #[error("--threads {0}: --variant single is one thread; leave it out or use --variant timely")]
    Threads(u32),
    #[error("{name}: the result is wrong: {source}; this machine or afar is at fault")]
    Wrong { name: &'static str, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{name}: there is no such program; {remedy}")]
    Missing { name: String, remedy: &'static str },
    #[error("start {name}: {source}; check that it may be executed")]
    NotStarted { name: String, source: std::io::Error },
}

impl Classed for WorkloadError {
    fn class(&self) -> Class {
        match self {
            Self::Missing { .. } => Class::Environment,
            Self::NotStarted { .. } | Self::Wrong { .. } => Class::Failed,
            _ => Class::Usage,
        }
    }
}
