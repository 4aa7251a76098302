//! Directed graphs in memory, as the list of vertices that each vertex points to.
//!
//! Generated ones are R-MAT's: Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph
//! mining" (SDM 2004). Every edge falls into one of four quadrants of the adjacency matrix, with
//! the probabilities a, b, c, d, and again within the quadrant, until one cell is left.
//!
//! DESIGN NOTES
//!
//! Drawing edges one by one and sorting them afterwards would scatter writes over the whole graph.
//! The same distribution is drawn row by row: first how many edges each vertex has, by splitting
//! the number of all edges in halves (a binomial draw at every split), then where each edge leads,
//! bit by bit, given the bits of its source. Splits of more than 64 edges use the normal
//! approximation of the binomial distribution. Probabilities are whole multiples of 2^-16, so that
//! a draw of 64 bits decides four levels.
//!
//! As in Graph 500, edges may occur twice, may be loops, and vertices are renamed, since neighbours
//! in R-MAT's order are alike.

use workload::Draw;

/// a, b, c and d of 2^16: 0.57, 0.19, 0.19 and 0.05, as Graph 500 has them.
const QUADRANTS: [u32; 4] = [37_355, 12_452, 12_452, 3_277];
/// Bytes per vertex: where its edges begin, its rank, and the sum of the shares given to it.
const VERTEX_BYTES: u64 = 24;
/// Bytes per edge: the vertex that it points to.
const EDGE_BYTES: u64 = 4;
/// Edges per vertex at least, as in Graph 500; up to somewhat more than twice as many, since the
/// number of vertices is a power of two.
const EDGE_FACTOR: u64 = 16;
const SCALE_MAX: u32 = 31;
/// An odd factor, and its inverse modulo 2^64.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = 0xf1de_83e1_9937_733d;

/// A directed graph, as compressed sparse rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Index of each vertex' first edge, and the number of edges.
    starts: Vec<u64>,
    targets: Vec<u32>,
}

impl Graph {
    /// An R-MAT graph that takes, with the ranks of its vertices, about `size_bytes` bytes.
    #[must_use]
    pub fn generate(size_bytes: u64, seed: u64) -> Self {
        let vertices = size_bytes / (VERTEX_BYTES + EDGE_FACTOR * EDGE_BYTES);
        let scale = vertices.max(2).ilog2().min(SCALE_MAX);
        let edges = size_bytes.saturating_sub(VERTEX_BYTES << scale) / EDGE_BYTES;
        Self::rmat(scale, edges, seed)
    }

    /// An R-MAT graph of 2^`scale` vertices and `edge_count` edges.
    ///
    /// # Panics
    /// If `scale` is not from 1 to 31.
    #[must_use]
    pub fn rmat(scale: u32, edge_count: u64, seed: u64) -> Self {
        assert!((1..=SCALE_MAX).contains(&scale), "a vertex is a number of 32 bits");
        let mut draw = Draw::new(seed);
        let mut degrees = vec![0; 1 << scale];
        split(&mut degrees, edge_count, &mut draw);
        let edges = usize::try_from(edge_count).expect("an address space holds the edges");
        let mut graph = Self {
            starts: Vec::with_capacity(degrees.len() + 1),
            targets: Vec::with_capacity(edges),
        };
        graph.starts.push(0);
        for name in 0..1_u32 << scale {
            let source = renamed(name, scale);
            for _ in 0..degrees[source as usize] {
                graph.targets.push(renamed(target(source, scale, &mut draw), scale));
            }
            graph.starts.push(graph.targets.len() as u64);
        }
        graph
    }

    /// The graph of `edges` among `vertex_count` vertices.
    ///
    /// # Panics
    /// If a vertex is not below `vertex_count`.
    #[must_use]
    pub fn from_edges(vertex_count: u32, edges: &[(u32, u32)]) -> Self {
        assert!(edges.iter().all(|edge| edge.1 < vertex_count), "edges lead to vertices");
        let mut starts = vec![0; vertex_count as usize + 1];
        edges.iter().for_each(|edge| starts[edge.0 as usize + 1] += 1);
        for vertex in 1..starts.len() {
            starts[vertex] += starts[vertex - 1];
        }
        let mut sorted = edges.to_vec();
        sorted.sort_by_key(|edge| edge.0);
        Self { starts, targets: sorted.iter().map(|edge| edge.1).collect() }
    }

    /// How many vertices there are.
    #[must_use]
    pub fn vertex_count(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    /// How many edges there are.
    #[must_use]
    pub fn edge_count(&self) -> u64 {
        self.targets.len() as u64
    }

    /// The vertices that `vertex` points to.
    #[must_use]
    pub fn targets(&self, vertex: u32) -> &[u32] {
        let at = |index: usize| {
            usize::try_from(self.starts[index]).expect("it was the length of a vector")
        };
        &self.targets[at(vertex as usize)..at(vertex as usize + 1)]
    }
}

/// Divides `edges` among the vertices of `degrees`, half by half.
fn split(degrees: &mut [u32], edges: u64, draw: &mut Draw) {
    match degrees {
        _ if edges == 0 => {}
        [] => {}
        [degree] => *degree = u32::try_from(edges).expect("a vertex has some thousand edges"),
        _ => {
            let upper = binomial(edges, QUADRANTS[0] + QUADRANTS[1], draw);
            let (first, second) = degrees.split_at_mut(degrees.len() / 2);
            split(first, upper, draw);
            split(second, edges - upper, draw);
        }
    }
}

/// A binomial draw: how many of `count` events with a probability of `chance` / 2^16 happen.
fn binomial(count: u64, chance: u32, draw: &mut Draw) -> u64 {
    const EXACT: u64 = 64;
    if count <= EXACT {
        let mut chances = Chances::new(draw);
        return (0..count).map(|_| u64::from(chances.below(chance))).sum();
    }
    let chance = f64::from(chance) / 65536.0;
    let mean = count as f64 * chance;
    // The sum of twelve uniform numbers has variance 1; logarithms differ from machine to machine.
    let normal = (0..12).map(|_| draw.unit()).sum::<f64>() - 6.0;
    let drawn = (mean + normal * (mean * (1.0 - chance)).sqrt()).round().max(0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let drawn = drawn as u64;
    drawn.min(count)
}

/// Draws the target of an edge from `source`, bit by bit: the probabilities of each bit depend on
/// the source's bit.
fn target(source: u32, scale: u32, draw: &mut Draw) -> u32 {
    let [a, b, c, d] = QUADRANTS;
    // P(left half | upper half) and P(left half | lower half).
    let left = [(a << 16) / (a + b), (c << 16) / (c + d)];
    let mut chances = Chances::new(draw);
    (0..scale).rev().fold(0, |target, bit| {
        let half = (source >> bit & 1) as usize;
        target << 1 | u32::from(!chances.below(left[half]))
    })
}

/// Draws of 16 bits each, four from one of 64.
struct Chances<'a> {
    draw: &'a mut Draw,
    bits: u64,
    left: u32,
}

impl<'a> Chances<'a> {
    fn new(draw: &'a mut Draw) -> Self {
        Self { draw, bits: 0, left: 0 }
    }

    /// Whether an event with a probability of `chance` / 2^16 happens.
    fn below(&mut self, chance: u32) -> bool {
        if self.left == 0 {
            (self.bits, self.left) = (self.draw.bits(), 4);
        }
        let drawn = self.bits & 0xffff;
        self.bits >>= 16;
        self.left -= 1;
        drawn < u64::from(chance)
    }
}

/// A permutation of vertices of `scale` bits that is its own inverse.
fn renamed(vertex: u32, scale: u32) -> u32 {
    let mask = (1_u64 << scale) - 1;
    let spread = u64::from(vertex).wrapping_mul(FACTOR) & mask;
    // The upper half of the bits onto the lower: doing it twice undoes it.
    let folded = spread ^ spread >> scale.div_ceil(2);
    u32::try_from(folded.wrapping_mul(INVERSE) & mask).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadrants_are_those_of_graph_500() {
        assert_eq!(QUADRANTS.iter().sum::<u32>(), 1 << 16);
        for (share, wanted) in QUADRANTS.iter().zip([0.57, 0.19, 0.19, 0.05]) {
            assert!((f64::from(*share) / 65536.0 - wanted).abs() < 1e-5);
        }
    }

    #[test]
    fn renamed_is_its_own_inverse_and_separates_neighbours() {
        assert_eq!(FACTOR.wrapping_mul(INVERSE), 1);
        for scale in [1, 2, 5, 16, 17] {
            let all = 0..1_u32 << scale;
            assert!(all.clone().all(|vertex| renamed(renamed(vertex, scale), scale) == vertex));
            assert!(all.clone().all(|vertex| renamed(vertex, scale) < 1 << scale));
        }
        let distance = |vertex: u32| renamed(vertex, 20).abs_diff(renamed(vertex + 1, 20));
        assert!((1..1000).filter(|&vertex| distance(vertex) < 1000).count() < 100);
    }

    #[test]
    fn binomial_has_its_mean_and_variance() {
        let mut draw = Draw::new(1);
        for count in [1, 10, 64, 65, 1000] {
            let drawn: Vec<f64> =
                (0..10_000).map(|_| binomial(count, 1 << 14, &mut draw) as f64).collect();
            let mean = drawn.iter().sum::<f64>() / 1e4;
            let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e4;
            let expected = count as f64 * 0.1875;
            assert!((mean - count as f64 / 4.0).abs() < 0.05 * expected.sqrt(), "{count}: {mean}");
            assert!((variance / expected - 1.0).abs() < 0.06, "{count}: {variance}");
        }
    }

    #[test]
    fn rmat_puts_edges_into_quadrants_at_every_level() {
        let (scale, edges) = (12, 1 << 18);
        let graph = Graph::rmat(scale, edges, 7);
        assert_eq!((graph.vertex_count(), graph.edge_count()), (1 << scale, edges));
        for bit in 0..scale {
            let mut counts = [0_u32; 4];
            for name in 0..1 << scale {
                let row = renamed(name, scale) >> bit & 1;
                for &target in graph.targets(name) {
                    let column = renamed(target, scale) >> bit & 1;
                    counts[(row * 2 + column) as usize] += 1;
                }
            }
            for (count, wanted) in counts.iter().zip([0.57, 0.19, 0.19, 0.05]) {
                let share = f64::from(*count) / edges as f64;
                assert!((share - wanted).abs() < 0.005, "bit {bit}: {counts:?}");
            }
        }
    }

    #[test]
    fn generate_is_what_was_asked_for_and_follows_from_the_seed() {
        for size in [1 << 20, 3_000_000, 5 << 20] {
            let graph = Graph::generate(size, 1);
            let (vertices, edges) = (graph.vertex_count(), graph.edge_count());
            assert!((vertices * VERTEX_BYTES + edges * EDGE_BYTES).abs_diff(size) < 8);
            assert!((16..40).contains(&(edges / vertices)), "{edges} of {vertices}");
        }
        assert_eq!(Graph::generate(1 << 20, 1), Graph::generate(1 << 20, 1));
        assert_ne!(Graph::generate(1 << 20, 1), Graph::generate(1 << 20, 2));
    }

    #[test]
    fn from_edges_sorts_them() {
        let graph = Graph::from_edges(3, &[(2, 0), (0, 1), (2, 1)]);
        assert_eq!(
            [graph.targets(0), graph.targets(1), graph.targets(2)],
            [&[1][..], &[], &[0, 1]]
        );
    }
}
