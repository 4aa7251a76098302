//! How much of local memory is on probation.

use measure::{Fraction, Pages};

use crate::policy::PolicyKind;

/// Fetches after which the share is adapted.
const ADAPT_FETCHES: u32 = 512;
/// By how much, in thousandths of the budget.
const ADAPT_STEP: u32 = 20;

/// How much of the budget a policy has on probation.
///
/// The larger the share, the closer the order is to the one that knows every reference, and the
/// more soft faults it costs. After every 512 fetches the share grows or shrinks by 2 % of the
/// budget, so that there are about `touches` soft faults to 100 fetches.
///
/// Fetches and soft faults for 100 fetches beside the policy that knows every reference, 64 MiB of
/// which 10, 25, 50 and 80 % are local, from a simulation of this rule:
///
/// | access | clock | lru |
/// |---|---|---|
/// | 80 % to a fifth | −0.2, −2.4, +1.3, −0.5 %; at most 86 | +0.2, +1.1, −0.1, −0.1 %; 297 |
/// | Zipf a = 1.0 | 0.0, +0.4, +1.3, +2.8 %; 115 | +0.4, +0.5, +0.4, +0.4 %; 303 |
/// | uniform | at most 0.2 % | at most 0.1 % |
/// | a quarter of the memory that moves | 10, 50, 80: 0.2; 25: +15 % | at most 1.4 % |
/// | 30 % in a loop, beside uniform | +0.0, −1.5, +11.5, +3.7 % | at most 1.1 % |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probation {
    /// At first, in thousandths of the budget.
    pub initial: u32,
    /// At least.
    pub least: u32,
    /// At most.
    pub most: u32,
    /// Soft faults to 100 fetches.
    pub touches: u32,
}

impl Probation {
    /// That of `policy`; `None` for a policy that ignores references.
    #[must_use]
    pub const fn of(policy: PolicyKind) -> Option<Self> {
        match policy {
            PolicyKind::Fifo | PolicyKind::Random => None,
            PolicyKind::S3Fifo => Some(Self { initial: 100, least: 100, most: 100, touches: 100 }),
            PolicyKind::Clock => Some(Self { initial: 210, least: 80, most: 210, touches: 95 }),
            PolicyKind::Lru => Some(Self { initial: 500, least: 40, most: 750, touches: 250 }),
        }
    }
}

/// The share of the budget on probation: fixed, or adapted to what it costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    // In thousandths.
    share: u32,
    adapts: Option<Probation>,
    // Since it was last adapted.
    fetched: u32,
    touched: u32,
}

impl Share {
    /// Nothing is on probation.
    pub(crate) const NONE: Self = Self { share: 0, adapts: None, fetched: 0, touched: 0 };

    /// That of `policy`, unless another is `given`; none for a policy that ignores references.
    pub(crate) fn of(policy: PolicyKind, given: Option<Fraction>) -> Self {
        let Some(own) = Probation::of(policy) else { return Self::NONE };
        let given = given.map(|share| share.of_pages(Pages::new(1000)).get());
        match given.and_then(|share| u32::try_from(share).ok()) {
            Some(share) => Self { share, ..Self::NONE },
            None => Self { share: own.initial, adapts: Some(own), ..Self::NONE },
        }
    }

    /// Whether anything is to be on probation.
    pub(crate) const fn is_any(self) -> bool {
        self.share > 0
    }

    /// Its part of so many pages.
    pub(crate) const fn of_pages(self, pages: u64) -> u64 {
        (self.share as u64).saturating_mul(pages) / 1000
    }

    /// A page on probation was touched.
    pub(crate) const fn touched(&mut self) {
        self.touched += 1;
    }

    /// A page was fetched. Returns whether the share is another now.
    pub(crate) fn fetched(&mut self) -> bool {
        self.fetched += 1;
        if self.fetched < ADAPT_FETCHES {
            return false;
        }
        let (fetched, touched) = (self.fetched, self.touched);
        (self.fetched, self.touched) = (0, 0);
        let Some(own) = self.adapts else { return false };
        let is_cheap = touched * 100 < fetched * own.touches;
        let share = if is_cheap { self.share + ADAPT_STEP } else { self.share - ADAPT_STEP };
        self.share = share.clamp(own.least, own.most);
        true
    }
}
