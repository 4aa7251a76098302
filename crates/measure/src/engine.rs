//! Engines: what stores far memory.

use std::fmt;
use std::str::FromStr;

/// The engine that stores the far memory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// A memory file inside the program.
    Arena,
    /// The kernel's swap space, for the whole tree of processes.
    Swap,
}

impl EngineKind {
    /// Every engine, in the order they are listed to users.
    pub const ALL: [Self; 2] = [Self::Arena, Self::Swap];

    /// The name that [`FromStr`] accepts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arena => "arena",
            Self::Swap => "swap",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = ParseEngineError;

    fn from_str(text: &str) -> Result<Self, ParseEngineError> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == text);
        kind.ok_or_else(|| ParseEngineError { given: text.to_owned() })
    }
}

/// Why a text is not the name of an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no engine \"{given}\"; use arena or swap")]
pub struct ParseEngineError {
    /// The text that was given.
    pub given: String,
}
