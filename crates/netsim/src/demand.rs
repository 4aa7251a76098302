//! The load of each link when every host sends to every other.

use std::collections::VecDeque;

use crate::topology::{Node, Topology};

/// The load of each link when all hosts send at one rate, evenly to every other host and over all
/// shortest ways. By link, in multiples of a host's rate.
///
/// # Panics
/// If the topology has fewer than two hosts.
#[must_use]
pub fn all_to_all(topology: &Topology) -> Vec<f64> {
    let hosts = topology.host_count();
    assert!(hosts > 1, "there is nobody to send to");
    let links = topology.links();
    let mut carried = vec![0.0; links.len()];
    let (mut at, mut some) = (vec![0_u32; topology.switch_count() as usize], Vec::new());
    for (host, link) in (0..hosts).zip(links) {
        let Node::Switch(switch) = link.to else { continue };
        if at[switch as usize] == 0 {
            some.push((switch, host));
        }
        at[switch as usize] += 1;
    }
    for (link, carried) in links.iter().zip(&mut carried) {
        if matches!((link.from, link.to), (Node::Host(_), _) | (_, Node::Host(_))) {
            *carried = 1.0;
        }
    }
    let from_each = 1.0 / f64::from(hosts - 1);
    for &(to, host) in &some {
        let mut amounts: Vec<f64> = at.iter().map(|&count| f64::from(count) * from_each).collect();
        amounts[to as usize] = 0.0;
        for switch in farthest_first(topology, to) {
            let group = topology.ways(switch, host);
            let amount = std::mem::take(&mut amounts[switch as usize]);
            let each = amount / f64::from(group.count);
            for choice in 0..group.count {
                let link = topology.port(group, choice) as usize;
                carried[link] += each * f64::from(at[to as usize]);
                if let Node::Switch(next) = links[link].to {
                    amounts[next as usize] += each;
                }
            }
        }
    }
    carried
}

/// The switches that have a way to switch `to`, the farthest first; `to` itself is left out.
fn farthest_first(topology: &Topology, to: u32) -> Vec<u32> {
    let mut before = vec![Vec::new(); topology.switch_count() as usize];
    for link in topology.links() {
        if let (Node::Switch(from), Node::Switch(next)) = (link.from, link.to) {
            before[next as usize].push(from);
        }
    }
    let mut is_known = vec![false; before.len()];
    is_known[to as usize] = true;
    let (mut order, mut left) = (Vec::new(), VecDeque::from([to]));
    while let Some(switch) = left.pop_front() {
        for &from in &before[switch as usize] {
            if !std::mem::replace(&mut is_known[from as usize], true) {
                order.push(from);
                left.push_back(from);
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use measure::{BitsPerSec, Duration};

    use super::*;
    use crate::topology::LeafSpine;

    /// Of 144 hosts 128 are in other racks: 16 of a rack share 4 links there, and 4 back.
    #[test]
    fn racks_send_most_of_it_away() {
        let rate = BitsPerSec::from_gbps(40);
        let delays = [Duration::ZERO; 4];
        let paper = Topology::leaf_spine(&LeafSpine::paper(rate, delays)).expect("it is one");
        let away = 16.0 * 128.0 / 143.0 / 4.0;
        for (link, carried) in paper.links().iter().zip(all_to_all(&paper)) {
            let is_between = matches!((link.from, link.to), (Node::Switch(_), Node::Switch(_)));
            let expected = if is_between { away } else { 1.0 };
            assert!((carried - expected).abs() < 1e-9, "{link:?}: {carried}");
        }
        let tree = Topology::fat_tree(4, rate, Duration::ZERO).expect("it is one");
        let carried = all_to_all(&tree);
        assert!(
            carried.iter().all(|&carried| (0.0..=1.0 + 1e-9).contains(&carried)),
            "{carried:?}"
        );
    }
}
