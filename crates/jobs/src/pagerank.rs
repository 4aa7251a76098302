//! PageRank by one thread over compressed sparse rows, in the spirit of McSherry, Isard and Murray,
//! "Scalability! But at what COST?" (HotOS 2015).
//!
//! DESIGN NOTES
//!
//! A rank is a share of 2^62, a whole number, so that the sum of the shares given to a vertex is
//! the same in whatever order and groups they arrive, to the last bit; even with 2^31 vertices the
//! mean share has nine digits. As in COST's code a vertex without edges gives nothing: the ranks
//! then add up to less than 1.

use crate::checksum::chain;
use crate::graph::Graph;

/// The sum of all ranks if every vertex has edges.
pub(crate) const WHOLE: u64 = 1 << 62;
/// A vertex gives 17 twentieths of its rank to others: Brin and Page's damping of 0.85.
const KEPT: (u64, u64) = (3, 20);

/// The ranks of all vertices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranks {
    pub(crate) shares: Vec<u64>,
}

/// Why ranks cannot be those of a graph.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum RanksError {
    /// A vertex has less than the least rank.
    #[error("vertex {vertex} has rank {rank}, but every vertex has at least {least}")]
    Small {
        /// The vertex.
        vertex: usize,
        /// Its rank.
        rank: f64,
        /// The least rank that every vertex has.
        least: f64,
    },
    /// The ranks add up to more than 1.
    #[error("the ranks add up to {0}, but there is no more than 1")]
    Sum(f64),
}

/// The job: `iterations` times, every vertex divides 0.85 of its rank among the vertices that it
/// points to, and every vertex gets an equal part of 0.15.
#[must_use]
pub fn pagerank(graph: &Graph, iterations: u32) -> Ranks {
    let mut shares = vec![first(graph); count(graph)];
    let mut given = vec![0; count(graph)];
    for _ in 0..iterations {
        given.fill(0);
        give(graph, 0, &shares, &mut given);
        shares.iter_mut().zip(&given).for_each(|(share, &sum)| *share = next(graph, sum));
    }
    Ranks { shares }
}

/// Adds to `given` what the vertices from `begin` on, with ranks `shares`, give to others.
pub(crate) fn give(graph: &Graph, begin: u32, shares: &[u64], given: &mut [u64]) {
    for (vertex, &share) in (begin..).zip(shares) {
        let targets = graph.targets(vertex);
        if targets.is_empty() {
            continue;
        }
        let part = share / targets.len() as u64;
        for &target in targets {
            given[target as usize] += part;
        }
    }
}

/// The rank of every vertex before the first iteration.
pub(crate) fn first(graph: &Graph) -> u64 {
    WHOLE / graph.vertex_count().max(1)
}

/// The rank of a vertex to which others gave `sum`.
pub(crate) fn next(graph: &Graph, sum: u64) -> u64 {
    let (kept, of) = KEPT;
    first(graph) / of * kept + (sum - sum / of * kept)
}

/// How many vertices there are.
fn count(graph: &Graph) -> usize {
    usize::try_from(graph.vertex_count()).expect("it was the length of a vector")
}

impl Ranks {
    /// The rank of a vertex, from 0 to 1.
    #[must_use]
    pub fn of(&self, vertex: u32) -> f64 {
        rank(self.shares[vertex as usize])
    }

    /// The sum of all ranks.
    #[must_use]
    pub fn sum(&self) -> f64 {
        rank(self.shares.iter().sum())
    }

    /// The vertex with the highest rank, the first of them if there are several.
    #[must_use]
    pub fn top(&self) -> u32 {
        let highest = self.shares.iter().enumerate().rev().max_by_key(|(_, share)| **share);
        highest.map_or(0, |(vertex, _)| u32::try_from(vertex).unwrap_or(u32::MAX))
    }

    /// A checksum of all ranks in the order of vertices.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        chain(self.shares.iter().copied())
    }

    /// Checks that ranks can be those of `graph`: none is below the least rank, and their sum is at
    /// most 1.
    ///
    /// # Errors
    /// If a rank is too low, or the sum too high.
    pub fn verify(&self, graph: &Graph) -> Result<(), RanksError> {
        let least = next(graph, 0);
        if let Some(vertex) = self.shares.iter().position(|&share| share < least) {
            let found = rank(self.shares[vertex]);
            return Err(RanksError::Small { vertex, rank: found, least: rank(least) });
        }
        let sum: u128 = self.shares.iter().map(|&share| u128::from(share)).sum();
        if sum > u128::from(WHOLE) {
            return Err(RanksError::Sum(sum as f64 / WHOLE as f64));
        }
        Ok(())
    }
}

/// A share of 2^62 as a number from 0 to 1.
fn rank(share: u64) -> f64 {
    share as f64 / WHOLE as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITERATIONS: u32 = 200;

    #[track_caller]
    fn near(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 1e-9, "{found}, not {wanted}");
    }

    fn star(leaves: u32, there: bool, back: bool) -> Graph {
        let to = (1..=leaves).map(|leaf| (leaf, 0)).filter(|_| there);
        let from = (1..=leaves).map(|leaf| (0, leaf)).filter(|_| back);
        Graph::from_edges(leaves + 1, &to.chain(from).collect::<Vec<_>>())
    }

    #[test]
    fn cycle_gives_everybody_the_same() {
        let edges: Vec<_> = (0..7).map(|vertex| (vertex, (vertex + 1) % 7)).collect();
        let ranks = pagerank(&Graph::from_edges(7, &edges), ITERATIONS);
        (0..7).for_each(|vertex| near(ranks.of(vertex), 1.0 / 7.0));
        near(ranks.sum(), 1.0);
    }

    #[test]
    fn star_has_what_it_should() {
        let (leaves, each) = (9_u32, 0.15 / 10.0);
        // To the hub only: leaves have their part, and the hub 0.85 of all of them as well.
        let ranks = pagerank(&star(leaves, true, false), ITERATIONS);
        near(ranks.of(1), each);
        near(ranks.of(0), each + 0.85 * 9.0 * each);
        assert_eq!(ranks.top(), 0);
        // To and fro: h = e + 0.85 n l and l = e + 0.85 h / n.
        let ranks = pagerank(&star(leaves, true, true), ITERATIONS);
        let hub = each * (1.0 + 0.85 * 9.0) / (1.0 - 0.85 * 0.85);
        near(ranks.of(0), hub);
        near(ranks.of(9), each + 0.85 * hub / 9.0);
        near(ranks.sum(), 1.0);
        // From the hub only.
        let ranks = pagerank(&star(leaves, false, true), ITERATIONS);
        near(ranks.of(0), each);
        near(ranks.of(4), each + 0.85 * each / 9.0);
    }

    #[test]
    fn edges_count_as_often_as_they_are_there() {
        let ranks = pagerank(&Graph::from_edges(3, &[(0, 1), (0, 1), (0, 2)]), 1);
        near(ranks.of(1) - 0.05, 2.0 * (ranks.of(2) - 0.05));
    }

    #[test]
    fn ranks_are_those_of_floating_point_arithmetic() {
        let graph = Graph::rmat(10, 16 << 10, 3);
        let ranks = pagerank(&graph, 20);
        let count = 1024_u32;
        let mut wanted = vec![1.0 / f64::from(count); 1024];
        for _ in 0..20 {
            let mut next = vec![0.15 / f64::from(count); 1024];
            for vertex in 0..count {
                let targets = graph.targets(vertex);
                let part = 0.85 * wanted[vertex as usize] / targets.len() as f64;
                targets.iter().for_each(|&target| next[target as usize] += part);
            }
            wanted = next;
        }
        (0..count).for_each(|vertex| near(ranks.of(vertex), wanted[vertex as usize]));
        assert_eq!(ranks.verify(&graph), Ok(()));
    }

    #[test]
    fn verify_finds_too_little_and_too_much() {
        let graph = star(3, true, true);
        let mut ranks = pagerank(&graph, 5);
        ranks.shares[2] = 1;
        assert!(matches!(ranks.verify(&graph), Err(RanksError::Small { vertex: 2, .. })));
        ranks.shares[2] = WHOLE;
        assert!(matches!(ranks.verify(&graph), Err(RanksError::Sum(_))));
    }
}
