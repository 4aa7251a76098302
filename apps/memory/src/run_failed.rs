//! Errors of a program that could not be run, or whose run was aborted.

use console::{Class, Classed};
use farmem::RunError;

/// The engine's error, with the exit status that a shell would give it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct RunFailed(#[from] pub(crate) RunError);

impl Classed for RunFailed {
    fn class(&self) -> Class {
        class(&self.0)
    }
}

/// The class of the engine's error.
pub(crate) const fn class(error: &RunError) -> Class {
    match error {
        RunError::NoProgram => Class::Usage,
        RunError::NotFound(_) => Class::NotFound,
        RunError::NotExecutable(_) | RunError::NotStarted(..) => Class::NotExecutable,
        RunError::Trap(_) | RunError::Host(_) | RunError::NoUserfault => Class::Environment,
        RunError::Killed(_, signal) => Class::Signalled(*signal),
        _ => Class::Ours,
    }
}
