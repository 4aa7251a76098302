//! Why there is no comparison.

use super::dimension::Dimension;

/// Why there is no bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// An amount is beyond what can be counted.
    #[error("the {0} of all tenants and periods goes beyond 18446744073709551615; give less")]
    Amount(Dimension),
    /// A price is beyond what can be counted.
    #[error("the bill goes beyond 18446744073709; give lower prices or less demand")]
    Money,
    /// Somebody wants what no server is said to have.
    #[error("there is demand for {0}, but [server] does not say how much of it a server has")]
    Unsaid(Dimension),
    /// A server has nothing of it.
    #[error("a server has no {0}; give it more than zero")]
    Nothing(Dimension),
    /// Nobody wants anything.
    #[error("nobody wants anything; give the demand a capacity and a qps")]
    NoDemand,
    /// Nothing costs anything.
    #[error("flash and compute are both free, so there is nothing to save; give them prices")]
    Free,
}
