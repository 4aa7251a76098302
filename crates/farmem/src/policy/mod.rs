//! Which local page to give up: one trait, five policies.
//!
//! | policy | order of eviction | references |
//! |---|---|---|
//! | [`Fifo`] | oldest arrival first (`DiME` §2.1) | ignored |
//! | [`Clock`] | oldest arrival first, but referenced pages later (Corbató 1968) | one bit |
//! | [`Lru`] | least recently referenced first | recency |
//! | [`Random`] | uniform, from a seed | ignored |
//! | [`S3Fifo`] | pages seen once leave early (Yang et al., SOSP'23 §4) | a count up to 3 |

mod clock;
mod fifo;
mod lru;
mod queue;
mod random;
mod s3fifo;

use std::fmt;
use std::str::FromStr;

use crate::page::PageIndex;

pub use clock::Clock;
pub use fifo::Fifo;
pub use lru::Lru;
pub(crate) use queue::{Places, Queue};
pub use random::Random;
pub use s3fifo::S3Fifo;

/// An order in which local pages are given up.
///
/// A policy holds the pages it was given by [`insert`](Self::insert) until it returns them from
/// [`victim`](Self::victim) or is told to [`remove`](Self::remove) them. It knows nothing of
/// budgets: the caller decides when a page has to go.
///
/// # The caller
///
/// - inserts a page when it becomes local and removes it when it stops being a candidate for any
///   reason other than `victim` (freed, pinned);
/// - reports references by `touch`, if [`wants_references`](Self::wants_references) says they
///   matter: every access in a trace, or what soft faults reveal in a running program. A fault
///   that makes a page local is its insertion, not a touch;
/// - calls [`restore`](Self::restore), not `insert`, when a victim turns out to be referenced
///   before its frame was given up.
///
/// # The implementer
///
/// - returns every page it holds from `victim` eventually, exactly once per insertion, and never
///   a page it does not hold;
/// - treats the insertion of a page it holds as a touch, and a touch, removal or renaming of a
///   page it does not hold as nothing;
/// - takes amortised constant time per call, with no hashing and no allocation beyond growing
///   its tables to the highest page seen;
/// - is deterministic: the same calls after the same seed give the same victims.
pub trait Policy: fmt::Debug + Send {
    /// The name users know it by, as in [`PolicyKind`].
    fn name(&self) -> &'static str;

    /// Whether [`touch`](Self::touch) changes anything. If so, the caller of a running program
    /// puts victims on probation first.
    fn wants_references(&self) -> bool;

    /// `page` became local: first touch, fetch, or found by a scan.
    fn insert(&mut self, page: PageIndex);

    /// `page` was referenced while local.
    fn touch(&mut self, page: PageIndex);

    /// `page` was returned by [`victim`](Self::victim), but was referenced before its frame was
    /// given up and stays local.
    fn restore(&mut self, page: PageIndex) {
        self.insert(page);
    }

    /// `page` is no longer a candidate, and whatever is remembered of it is to be forgotten.
    fn remove(&mut self, page: PageIndex);

    /// The content of `from` is now at `to`, which the policy does not hold; its age goes along.
    fn rename(&mut self, from: PageIndex, to: PageIndex);

    /// Removes and returns the next page to give up; `None` if no page is held.
    fn victim(&mut self) -> Option<PageIndex>;

    /// Pages held.
    fn len(&self) -> usize;

    /// Whether no page is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `page` is held.
    fn contains(&self, page: PageIndex) -> bool;

    /// The number of frames the caller now has for pages of this policy. Only bounds what is
    /// remembered of pages already given up; evicting down to `capacity` is the caller's work.
    fn resize(&mut self, _capacity: usize) {}

    /// A copy with the same pages in the same order.
    fn boxed_clone(&self) -> Box<dyn Policy>;
}

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
