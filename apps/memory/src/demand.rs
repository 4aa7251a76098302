//! What a tier asks for in bytes of local memory.

use farmem::Tier;
use measure::{Bytes, LocalSize};

/// Local memory of `tier`, when it does not depend on how much is in use.
pub(crate) fn budget(tier: &Tier, of: Option<Bytes>) -> Option<Bytes> {
    match (tier.local?, of) {
        (LocalSize::Bytes(bytes), _) => Some(bytes),
        (LocalSize::Fraction(share), Some(of)) => Some(share.of(of)),
        (LocalSize::Fraction(_), None) => None,
    }
}
