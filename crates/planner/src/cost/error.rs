//! Errors of a comparison of costs.

use super::dimension::Dimension;

/// Why costs cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// An amount exceeds 64 bits.
    #[error("the {0} of all tenants and periods goes beyond 18446744073709551615; give less")]
    Amount(Dimension),
    /// A price or cost exceeds the largest amount of money.
    #[error("the bill goes beyond 18446744073709; give lower prices or less demand")]
    Money,
    /// A dimension has demand, but the model does not say how much of it a server has.
    #[error("there is demand for {0}, but [server] does not say how much of it a server has")]
    Unsaid(Dimension),
    /// The model says that a server has 0 of a dimension.
    #[error("a server has no {0}; give it more than zero")]
    Nothing(Dimension),
    /// No tenant has any demand.
    #[error("nobody wants anything; give the demand a capacity and a qps")]
    NoDemand,
    /// Flash and compute both cost nothing.
    #[error("flash and compute are both free, so there is nothing to save; give them prices")]
    Free,
}
