//! What a link and a tier ask for: delays of one page, and bytes of local memory.

use farmem::Tier;
use measure::{Bytes, Duration, LinkConfig, LocalSize};

/// What one page is to take over `link` when nothing else is on it; the median of a profile.
pub(crate) fn page_delay(link: &LinkConfig) -> Duration {
    match &link.profile {
        Some(profile) => profile.quantile(Bytes::PAGE, 0.5),
        None => {
            let transfer = link.bandwidth.map(|rate| rate.transfer_time(Bytes::PAGE));
            link.rtt.saturating_add(transfer.unwrap_or_default())
        }
    }
}

/// The longest that one page can be asked to take when nothing else is on `link`.
pub(crate) fn longest_delay(link: &LinkConfig) -> Duration {
    match &link.profile {
        Some(profile) => profile.quantile(Bytes::PAGE, 1.0),
        None => page_delay(link),
    }
}

/// Local memory of `tier`, when it does not depend on how much is in use.
pub(crate) fn budget(tier: &Tier, of: Option<Bytes>) -> Option<Bytes> {
    match (tier.local?, of) {
        (LocalSize::Bytes(bytes), _) => Some(bytes),
        (LocalSize::Fraction(share), Some(of)) => Some(share.of(of)),
        (LocalSize::Fraction(_), None) => None,
    }
}
