//! Places tenants on servers of one kind: vector bin packing.
//!
//! ```text
//! Problem (tenants, pool) ─► units (tenants that stay together, times replicas) ─► dot product,
//!     local search, branch and bound if there are few ─► Placement ─► check
//! ```
//!
//! Invariants:
//! 1. A placement that is returned violates no rule: [`check`] does not know how it was found.
//! 2. The lower bound holds for every placement; the gap to it is what can still be gained.
//! 3. Ties go to the lower number, so that the same problem has the same placement everywhere.

mod bound;
mod check;
mod exact;
mod fleet;
mod migrate;
#[cfg(feature = "highs")]
mod milp;
mod pack;
mod problem;
mod solve;
mod unit;

pub use bound::lower_bound;
pub use check::{Violation, check};
pub use fleet::{fleet, fleet_server};
pub use migrate::{Migration, Move, migrate};
pub use pack::Placement;
pub use problem::{Guest, PlaceError, Pool, Problem};
#[cfg(feature = "highs")]
pub use solve::place_exactly;
pub use solve::{first_fit, place, place_watched};

#[cfg(test)]
mod tests;
