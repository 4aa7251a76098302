//! What residencies under one budget have in common, and tell of themselves.

use measure::Fraction;

use crate::policy::{PolicyKind, Stamps};
use crate::probation::Share;

/// What the residencies under one budget have in common: the ages of pages, and how much is on
/// probation. Clones are of the same budget.
#[derive(Clone, Debug)]
pub struct Common {
    pub(crate) stamps: Stamps,
    pub(crate) share: Share,
}

impl Common {
    /// That of a new budget.
    #[must_use]
    pub fn of(policy: PolicyKind, probation: Option<Fraction>) -> Self {
        Self { stamps: Stamps::default(), share: Share::of(policy, probation) }
    }
}

/// What a residency has to give, and since when: for [`turns`](crate::turns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// The stamps of the first active page of each line of the policy, and of the page longest on
    /// probation.
    pub(crate) heads: [Option<u64>; 3],
    /// Active pages, by line.
    pub(crate) active: [u64; 2],
    /// On probation or leaving.
    pub(crate) waiting: u64,
}
