//! Why there is no loop.

use console::{Class, Classed};

use crate::sim::SimError;

/// Why there is no loop.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The network has no result.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The program failed, and how.
    #[error("run the program: {0}")]
    Program(String),
    /// Nothing may be concluded from a run, and why.
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

/// Nothing more is wanted, or something went wrong.
#[derive(Debug)]
pub enum Stopped {
    /// The user pressed Ctrl-C.
    Interrupted,
    /// It failed.
    Error(LoopError),
}

impl<E: Into<LoopError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}
