//! Why a command failed, and its exit status.
//!
//! Each error names its class beside its own definition, so this module knows no command.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

/// The kind of a command's end; shells and timeout(1) use the same exit statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The command ran, and its result is a failure.
    Failed,
    /// An error of the command line or of a file, which the user can correct.
    Usage,
    /// This machine lacks something.
    Environment,
    /// Too little of a program's memory was managed for a conclusion.
    Invalid,
    /// A measured figure is certainly above the bound that the user gave.
    Above,
    /// The measured figures do not decide on which side of that bound they are.
    Undecided,
    /// afar failed, whatever the program did.
    Ours,
    /// The program to run is no executable.
    NotExecutable,
    /// The program to run does not exist.
    NotFound,
    /// The user interrupted the command.
    Interrupted,
    /// A signal ended the program.
    Signalled(i32),
}

/// An error that has a class.
pub trait Classed: Error {
    /// The class of this error.
    fn class(&self) -> Class;
}

/// A command that failed.
#[derive(Debug)]
pub struct Failure {
    class: Class,
    error: Box<dyn Error + Send + Sync>,
}

impl Class {
    /// The exit status.
    #[must_use]
    pub fn status(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Environment => 3,
            Self::Invalid => 4,
            Self::Above => 5,
            Self::Undecided => 6,
            Self::Ours => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Interrupted => 130,
            Self::Signalled(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

/// For ends without a sentence; a failure has one ([`Failure::shown`]).
impl From<Class> for ExitCode {
    fn from(class: Class) -> Self {
        Self::from(class.status())
    }
}

impl Failure {
    /// A failure for an error of another crate, which has no class of its own.
    pub fn new(class: Class, error: impl Error + Send + Sync + 'static) -> Self {
        Self { class, error: Box::new(error) }
    }

    /// A failure of which an answer shows all details: `sentence` says what failed.
    #[must_use]
    pub fn shown(class: Class, sentence: String) -> Self {
        Self { class, error: sentence.into() }
    }

    /// The class, which decides the exit status.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }
}

impl<E: Classed + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.class(), error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no such program")]
    struct Missing;

    impl Classed for Missing {
        fn class(&self) -> Class {
            Class::NotFound
        }
    }

    #[test]
    fn failure_keeps_class_and_message() {
        let failure = Failure::from(Missing);
        assert_eq!((failure.class(), failure.to_string()), (Class::NotFound, Missing.to_string()));
    }

    #[test]
    fn statuses_are_those_of_shells() {
        let classes = [Class::Failed, Class::Usage, Class::Environment, Class::Invalid];
        assert_eq!(classes.map(Class::status), [1, 2, 3, 4]);
        assert_eq!([Class::Above, Class::Undecided].map(Class::status), [5, 6]);
        let classes = [Class::Ours, Class::NotExecutable, Class::NotFound, Class::Interrupted];
        assert_eq!(classes.map(Class::status), [125, 126, 127, 130]);
        assert_eq!(Class::Signalled(9).status(), 137);
        assert_eq!(Class::Signalled(1000).status(), 255);
    }
}
