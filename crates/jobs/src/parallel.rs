//! PageRank as a timely dataflow: McSherry et al., "Naiad: a timely dataflow system" (SOSP 2013),
//! by the library that followed from it.
//! Gao Table 2 has it over the social network of Friendster. A worker owns a range of vertices. In
//! every iteration it sums up what its vertices give to each other vertex and sends one message per
//! vertex, around a loop, to the owner; when the loop's frontier shows that no more will arrive,
//! the iteration is over. Workers share the graph, which in a cluster they would not.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use timely::dataflow::ProbeHandle;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::{ConnectLoop as _, Feedback as _, Operator as _, Probe as _};
use timely::worker::Worker;
use timely::{CommunicationConfig, Config, WorkerConfig};

use crate::graph::Graph;
use crate::pagerank::{Ranks, first, give, next};

/// A vertex, and what one worker's vertices give to it.
type Gift = (u32, u64);

/// The job of [`pagerank`](crate::pagerank()) with `workers` workers: the same ranks to the last
/// bit. One worker runs on the caller's thread, more on threads of their own.
///
/// # Panics
/// If `workers` is 0 or a worker cannot be started.
#[must_use]
pub fn pagerank_timely(graph: &Arc<Graph>, iterations: u32, workers: usize) -> Ranks {
    assert!(workers > 0, "somebody must work");
    let graph = Arc::clone(graph);
    if workers == 1 {
        let shares = timely::execute_directly(move |worker| work(worker, &graph, iterations));
        return Ranks { shares };
    }
    let communication = CommunicationConfig::Process(workers);
    let config = Config { communication, worker: WorkerConfig::default() };
    let guards = timely::execute(config, move |worker| work(worker, &graph, iterations))
        .expect("threads can be started");
    let parts = guards.join().into_iter().map(|part| part.expect("a worker returns its ranks"));
    Ranks { shares: parts.flatten().collect() }
}

/// One worker's vertices.
struct Part {
    graph: Arc<Graph>,
    begin: u32,
    shares: Vec<u64>,
    /// What others gave to the vertices in this iteration and, if workers are ahead, in the next.
    given: [Vec<u64>; 2],
    /// What the vertices give to each vertex of the graph.
    giving: Vec<u64>,
}

/// How many vertices a worker owns; the last workers may own fewer or none.
fn chunk(graph: &Graph, peers: usize) -> u64 {
    graph.vertex_count().div_ceil(peers as u64).max(1)
}

/// Runs the dataflow to its end. Returns the ranks of this worker's vertices.
fn work(worker: &mut Worker, graph: &Arc<Graph>, iterations: u32) -> Vec<u64> {
    let chunk = chunk(graph, worker.peers());
    let part = Rc::new(RefCell::new(Part::new(graph, chunk, worker.index() as u64)));
    let inside = Rc::clone(&part);
    let iterations = u64::from(iterations);
    let probe = ProbeHandle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let (handle, gifts) = scope.feedback::<Vec<Gift>>(1);
        let owner = move |gift: &Gift| u64::from(gift.0) / chunk;
        let given = gifts.unary_frontier(Exchange::new(owner), "PageRank", |capability, _info| {
            // Held until the last iteration is over, so that the loop does not end before.
            let mut capability = Some(capability);
            move |(input, frontier), output| {
                let mut part = inside.borrow_mut();
                input.for_each(|from, gifts| {
                    let time = from.least().copied().expect("gifts have a time");
                    part.receive(time, gifts);
                });
                let Some(held) = capability.take() else {
                    return;
                };
                let time = *held.time();
                if frontier.less_equal(&time) {
                    capability = Some(held);
                    return;
                }
                if time > 0 {
                    part.close(time);
                }
                if time < iterations {
                    let mut session = output.session(&held);
                    part.give(|gift| session.give(gift));
                    drop(session);
                    capability = Some(held.delayed(&(time + 1)));
                }
            }
        });
        given.container::<Vec<Gift>>().probe_with(&probe).connect_loop(handle);
    });
    while !probe.done() {
        worker.step_or_park(None);
    }
    std::mem::take(&mut part.borrow_mut().shares)
}

impl Part {
    fn new(graph: &Arc<Graph>, chunk: u64, index: u64) -> Self {
        let count = graph.vertex_count();
        let (begin, end) = ((index * chunk).min(count), ((index + 1) * chunk).min(count));
        let vector = |count: u64, value| {
            vec![value; usize::try_from(count).expect("it was the length of a vector")]
        };
        Self {
            graph: Arc::clone(graph),
            begin: u32::try_from(begin).expect("a vertex is a number of 32 bits"),
            shares: vector(end - begin, first(graph)),
            given: [vector(end - begin, 0), vector(end - begin, 0)],
            giving: vector(count, 0),
        }
    }

    /// Adds `gifts` for the iteration that ends at `time`.
    fn receive(&mut self, time: u64, gifts: &mut Vec<Gift>) {
        let given = &mut self.given[usize::from(time % 2 == 1)];
        for (vertex, gift) in gifts.drain(..) {
            given[(vertex - self.begin) as usize] += gift;
        }
    }

    /// Ends the iteration at `time`, whose gifts have all been received: computes the new ranks.
    fn close(&mut self, time: u64) {
        let given = &mut self.given[usize::from(time % 2 == 1)];
        for (share, sum) in self.shares.iter_mut().zip(given) {
            *share = next(&self.graph, *sum);
            *sum = 0;
        }
    }

    /// Sends what the vertices give: one gift for each vertex that gets any.
    fn give(&mut self, mut send: impl FnMut(Gift)) {
        give(&self.graph, self.begin, &self.shares, &mut self.giving);
        for (vertex, gift) in (0_u32..).zip(&mut self.giving) {
            if *gift > 0 {
                send((vertex, std::mem::take(gift)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pagerank::pagerank;

    #[test]
    fn any_number_of_workers_comes_to_the_ranks_of_one_thread() {
        for (scale, edges) in [(1, 3), (3, 0), (4, 20), (10, 20_000), (14, 300_000)] {
            let graph = Arc::new(Graph::rmat(scale, edges, 2));
            for iterations in [0, 1, 2, 9] {
                let expected = pagerank(&graph, iterations);
                for workers in [1, 2, 3, 5] {
                    let found = pagerank_timely(&graph, iterations, workers);
                    assert!(found == expected, "2^{scale}: {workers} workers, {iterations}");
                }
            }
        }
    }

    #[test]
    fn more_workers_than_vertices() {
        let graph = Arc::new(Graph::from_edges(2, &[(0, 1), (1, 0)]));
        let ranks = pagerank_timely(&graph, 5, 4);
        assert!((ranks.of(0) - 0.5).abs() < 1e-9 && (ranks.of(1) - 0.5).abs() < 1e-9);
    }
}
