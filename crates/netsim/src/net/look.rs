//! Who looks on: what is kept of a run beside its outcome.
//!
//! Where nobody does, an event costs one branch for it, and a packet none: the sender's branch is
//! the one that `Order::Heap` needs anyway, and dropping is rare.

use super::sample::Sampler;
use super::series::Keeper;
use crate::trace::Tracer;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Looker {
    /// One queue at every sample.
    pub(crate) sampler: Option<Sampler>,
    /// All ports by interval.
    pub(crate) keeper: Option<Keeper>,
    /// Packets one by one.
    pub(crate) tracer: Option<Tracer>,
}
