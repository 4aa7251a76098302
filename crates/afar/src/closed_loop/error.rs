//! Why there is no loop.

use console::{Class, Classed};

use crate::sim::SimError;

/// Why there is no loop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoopError {
    #[error(transparent)]
    Sim(#[from] SimError),
    #[error("run the program: {0}")]
    Program(String),
    #[error("run the program: {0}")]
    Invalid(String),
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
pub(crate) enum Stopped {
    Interrupted,
    Error(LoopError),
}

impl<E: Into<LoopError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}
