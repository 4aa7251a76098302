//! Why there is no plan.

use console::{Class, Classed};
use document::DocumentError;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("{place}: {source}")]
    Cost { place: String, source: planner::cost::CostError },
    #[error("{place}: {source}")]
    Latency { place: String, source: planner::latency::LatencyError },
    #[error("{place}: {source}")]
    Place { place: String, source: planner::place::PlaceError },
    #[error("{place}: {source}")]
    Pool { place: String, source: planner::pool::PoolError },
    #[error("{place}: {source}; install sqlite3, which reads it, e.g. apt-get install sqlite3")]
    Sqlite { place: String, source: std::io::Error },
    #[error("there is nobody; give --synthetic NUMBER or a trace: --azure, --google or --alibaba")]
    Nobody,
    #[error("--lose-server {0}: nobody is on server {0}; give one of the file of --now")]
    NoServer(u32),
    #[cfg(not(feature = "highs"))]
    #[error(
        "--exact needs HiGHS, without which this afar was built; build it with --features highs, \
         or leave it out: up to 24 tenants are proven without"
    )]
    NoSolver,
}

impl Classed for PlanError {
    fn class(&self) -> Class {
        Class::Usage
    }
}
