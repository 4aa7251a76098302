//! Policies by name.

use std::fmt;
use std::str::FromStr;

use super::{Clock, Fifo, Lru, Policy, Random, S3Fifo};

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// [`Fifo`].
    Fifo,
    /// [`Clock`].
    Clock,
    /// [`Lru`].
    Lru,
    /// [`Random`].
    Random,
    /// [`S3Fifo`].
    S3Fifo,
}

impl PolicyKind {
    /// Every policy, in the order they are listed to users.
    pub const ALL: [Self; 5] = [Self::Fifo, Self::Clock, Self::Lru, Self::Random, Self::S3Fifo];

    /// The name that [`FromStr`] accepts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Clock => "clock",
            Self::Lru => "lru",
            Self::Random => "random",
            Self::S3Fifo => "s3fifo",
        }
    }

    /// The line that the next victim is in, when all policies of this kind together have so many
    /// pages in each; `begun` is the one in which the search for that victim has begun.
    #[must_use]
    pub(crate) fn line(self, sizes: [u64; 2], begun: Option<usize>) -> Option<usize> {
        let sizes = sizes.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        match self {
            Self::S3Fifo => S3Fifo::line(sizes, begun),
            _ => (sizes[0] > 0).then_some(0),
        }
    }

    /// An empty policy of this kind for `capacity` frames. Only [`Random`] draws from `seed`.
    #[must_use]
    pub fn build(self, capacity: usize, seed: u64) -> Box<dyn Policy> {
        match self {
            Self::Fifo => Box::new(Fifo::new()),
            Self::Clock => Box::new(Clock::new()),
            Self::Lru => Box::new(Lru::new()),
            Self::Random => Box::new(Random::new(seed)),
            Self::S3Fifo => Box::new(S3Fifo::new(capacity)),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PolicyKind {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, ParsePolicyError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| ParsePolicyError { given: text.to_owned() })
    }
}

/// A name that is no policy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy `{given}`: use fifo, clock, lru, random or s3fifo")]
pub struct ParsePolicyError {
    /// The text that was given.
    pub given: String,
}
