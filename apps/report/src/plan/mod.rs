//! What `afar plan` has computed.

pub(super) mod admit;
pub(super) mod cost;
pub(super) mod fleet;
pub(super) mod latency;
pub(super) mod place;
pub(super) mod pool;
