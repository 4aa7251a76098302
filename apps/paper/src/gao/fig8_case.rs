//! The networks of Figure 8, and the results of programs in each.

use fabric::{Fed, FedRound, Slower};

/// Rates and scales, with the lowest and highest mean degradation in the paper (§4.4); at 40 Gb/s
/// the paper has one number.
pub(super) const NETWORKS: [Network; 4] = [
    Network { rate: "40Gbps", scale: "datacenter", paper: (0.14, 0.14) },
    Network { rate: "40Gbps", scale: "rack", paper: (0.11, 0.11) },
    Network { rate: "100Gbps", scale: "datacenter", paper: (0.01, 0.085) },
    Network { rate: "100Gbps", scale: "rack", paper: (0.004, 0.035) },
];

/// A network, and the paper's range of mean degradations in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network {
    pub(super) rate: &'static str,
    pub(super) scale: &'static str,
    pub(super) paper: (f64, f64),
}

/// The results of a workload in every network; `None` for one that was not run.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) workload: &'static str,
    pub(super) fed: Vec<Option<Fed>>,
}

/// The degradations of a workload: with an idle network, with its traffic fed back once, and with
/// the loop closed.
pub(super) fn degradations(fed: &Fed) -> Option<[Slower; 3]> {
    Some(rounds(fed)?.map(|round| round.slower))
}

/// The rounds of those three degradations.
pub(super) fn rounds(fed: &Fed) -> Option<[&FedRound; 3]> {
    Some([&fed.idle, fed.rounds.first()?, fed.rounds.last()?])
}
