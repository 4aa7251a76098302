//! The local memory of a tier, in bytes.

use farmem::Tier;
use measure::{Bytes, LocalSize};

/// Local memory of `tier`; `None` if it has no limit or is a share of the memory in use.
pub(crate) fn budget(tier: &Tier, of: Option<Bytes>) -> Option<Bytes> {
    match (tier.local?, of) {
        (LocalSize::Bytes(bytes), _) => Some(bytes),
        (LocalSize::Fraction(share), Some(of)) => Some(share.of(of)),
        (LocalSize::Fraction(_), None) => None,
    }
}
