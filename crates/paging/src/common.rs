//! What residencies under one budget share, and what they report.

use measure::Fraction;

use crate::policy::{PolicyKind, Stamps};
use crate::probation::Share;

/// What the residencies under one budget share: the ages of pages, and how much is on probation.
/// Clones belong to the same budget.
#[derive(Clone, Debug)]
pub struct Common {
    pub(crate) stamps: Stamps,
    pub(crate) share: Share,
}

impl Common {
    /// For a new budget.
    #[must_use]
    pub fn of(policy: PolicyKind, probation: Option<Fraction>) -> Self {
        Self { stamps: Stamps::default(), share: Share::of(policy, probation) }
    }
}

/// The pages that a residency can give up, and their ages: for [`turns`](crate::turns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// The stamps of the first active page of each line of the policy, and of the page longest on
    /// probation.
    pub(crate) heads: [Option<u64>; 3],
    /// How many pages are active, by line.
    pub(crate) active: [u64; 2],
    /// How many pages are on probation or leaving.
    pub(crate) waiting: u64,
}
