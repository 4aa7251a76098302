//! Policies by name.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use super::{Policy, Probation};

/// One of the policies of [`PolicyKind::ALL`].
#[derive(Clone, Copy)]
pub struct PolicyKind(&'static Row);

/// The properties of a policy, stated once, beside the policy.
#[derive(Debug)]
pub(super) struct Row {
    /// The name that users write.
    pub name: &'static str,
    /// Builds an empty policy from a number of frames and a seed.
    pub build: fn(usize, u64) -> Box<dyn Policy>,
    /// See [`PolicyKind::line`].
    pub line: fn([usize; 2], Option<usize>) -> Option<usize>,
    /// See [`PolicyKind::draws`].
    pub draws: bool,
    /// See [`PolicyKind::probation`].
    pub probation: Option<Probation>,
    /// See [`PolicyKind::away`].
    pub away: Option<fn(f64) -> f64>,
}

/// [`Row::line`] of a policy whose pages all wait in one line.
pub(super) fn only_line(sizes: [usize; 2], _begun: Option<usize>) -> Option<usize> {
    (sizes[0] > 0).then_some(0)
}

impl PolicyKind {
    /// The policy that `row` states.
    pub(super) const fn new(row: &'static Row) -> Self {
        Self(row)
    }

    /// The name that [`FromStr`] accepts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// An empty policy of this kind for `capacity` frames. Only a policy that
    /// [draws](Self::draws) takes anything from `seed`.
    #[must_use]
    pub fn build(self, capacity: usize, seed: u64) -> Box<dyn Policy> {
        (self.0.build)(capacity, seed)
    }

    /// Whether the policy draws its victims, so that no page is next and pages have no age.
    #[must_use]
    pub const fn draws(self) -> bool {
        self.0.draws
    }

    /// How much of a budget the policy has on probation; `None` if it ignores references.
    #[must_use]
    pub const fn probation(self) -> Option<Probation> {
        self.0.probation
    }

    /// The formula for the share of time that a page is not local, given how often it is accessed
    /// on average in the time that pages stay local ([`crate::reuse`] has the sources); `None` for
    /// a policy without a formula.
    #[must_use]
    pub const fn away(self) -> Option<fn(f64) -> f64> {
        self.0.away
    }

    /// The line of the next victim, when all policies of this kind together have `sizes` pages by
    /// line; `begun` is the line in which the search for that victim began. `None` without pages.
    #[must_use]
    pub(crate) fn line(self, sizes: [u64; 2], begun: Option<usize>) -> Option<usize> {
        (self.0.line)(sizes.map(|size| usize::try_from(size).unwrap_or(usize::MAX)), begun)
    }
}

impl PartialEq for PolicyKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for PolicyKind {}

impl Hash for PolicyKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
        let named = Self::ALL.iter().find(|kind| kind.name() == text);
        named.copied().ok_or_else(|| ParsePolicyError { given: text.to_owned() })
    }
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy `{given}`: use {}", names())]
pub struct ParsePolicyError {
    /// The text that was given.
    pub given: String,
}

// The names of all policies, as a list in a sentence.
fn names() -> String {
    let names = PolicyKind::ALL.map(PolicyKind::name);
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_name_of_its_own() {
        for (place, kind) in PolicyKind::ALL.into_iter().enumerate() {
            let named = PolicyKind::ALL.iter().position(|other| other.name() == kind.name());
            assert_eq!(named, Some(place), "{kind} is there twice");
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.build(4, 1).name(), kind.name());
        }
        let error = "plru".parse::<PolicyKind>().unwrap_err().to_string();
        assert!(error.starts_with("there is no policy `plru`: use fifo, clock, "), "{error}");
        assert!(PolicyKind::ALL.iter().all(|kind| error.contains(kind.name())), "{error}");
    }
}
