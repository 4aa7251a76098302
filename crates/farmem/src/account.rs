//! The supervisor's account of one budget in one tier.

use paging::margin::Margin;

use paging::outgoing::Outgoing;

/// Local memory of one budget in one tier.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    /// Pages of the budget; `None` for no limit.
    pub(crate) limit: Option<u64>,
    /// How many resident pages there may be right now: more than the limit while it shrinks.
    pub(crate) ceiling: u64,
    /// Frames kept free because evictions have come late.
    pub(crate) margin: Margin,
    /// Pages on their way out.
    pub(crate) outgoing: Outgoing,
}
