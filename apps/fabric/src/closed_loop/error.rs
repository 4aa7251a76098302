//! Why `afar loop` has no result.

use console::{Class, Classed};

use crate::sim::SimError;

/// Why `afar loop` has no result.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The network has no result.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The program failed; the text says how.
    #[error("run the program: {0}")]
    Program(String),
    /// A run is invalid; the text says why.
    #[error("run the program: {0}")]
    Invalid(String),
    /// The kernel refused.
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for LoopError {
    fn class(&self) -> Class {
        match self {
            Self::Sim(error) => error.class(),
            Self::Program(_) | Self::System(_) => Class::Failed,
            Self::Invalid(_) => Class::Invalid,
        }
    }
}

/// Why a loop stopped before its end.
#[derive(Debug)]
pub enum Stopped {
    /// The user pressed Ctrl-C.
    Interrupted,
    /// A run or a simulation failed.
    Error(LoopError),
}

impl<E: Into<LoopError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}
