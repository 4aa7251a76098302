//! Observers: what is recorded of a run beside its outcome.
//!
//! Without an observer an event costs one branch, and a packet none: the branch in `send` is the
//! one that `Order::Heap` needs anyway, and drops are rare.

use super::sample::Sampler;
use super::series::Keeper;
use crate::trace::Tracer;

/// The observers of a run; see the module.
#[derive(Debug, Default)]
pub(crate) struct Looker {
    /// Samples one queue.
    pub(crate) sampler: Option<Sampler>,
    /// Records all ports by interval.
    pub(crate) keeper: Option<Keeper>,
    /// Records packets one by one.
    pub(crate) tracer: Option<Tracer>,
}
