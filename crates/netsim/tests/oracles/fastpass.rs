//! Fastpass keeps queues empty.

use measure::{Duration, Instant};
use netsim::traffic::{Poisson, all_to_all, incast, permutation};
use netsim::{Flow, LeafSpine, Node, Switching, Topology, Transport, simulate};
use workload::{Sizes, SizesName};

use crate::support::gbps;

/// The most packets that ever waited at a switch's port to a host and to a switch, rounded down:
/// headers, which need no timeslot, wait there, too.
///
/// The port to the arbiter is left out, where only requests wait, or find no room.
fn queued_packets(topology: &Topology, switching: Switching, flows: &[Flow]) -> [u64; 2] {
    let fabric = Transport::Fastpass.fabric(topology.clone(), switching).expect("it can be had");
    let protocol = Transport::Fastpass.protocol(&fabric);
    let outcome = simulate(&fabric, protocol, flows).expect("every flow finishes");
    let arbiter = Node::Host(fabric.topology.arbiter().expect("Fastpass has one"));
    let mut most = [0, 0];
    for (link, port) in fabric.topology.links().iter().zip(&outcome.ports) {
        if matches!(link.from, Node::Switch(_)) && link.to != arbiter {
            assert_eq!(port.dropped_packets, 0);
            let place = usize::from(matches!(link.to, Node::Switch(_)));
            most[place] = most[place].max(port.queued_bytes_max / 1500);
        }
    }
    most
}

/// Patterns that fill queues under other transports.
fn patterns(hosts: u32) -> Vec<Vec<Flow>> {
    let sizes = Sizes::named(SizesName::Imc10);
    let rate = gbps(40);
    let poisson = Poisson { hosts, rate, load_percent: 60, sizes: &sizes, count: 300, seed: 2 };
    // Not all requests at once: they and schedules have no timeslots and would be what waits.
    let mut spread = all_to_all(hosts, 4 * 1460).expect("there are hosts");
    for (number, flow) in (0..).zip(&mut spread) {
        flow.start = Instant::from_ns(60 * number);
    }
    vec![
        poisson.flows(netsim::Frame::default()).expect("there are hosts"),
        permutation(hosts, 300 * 1460, 3).expect("there are hosts"),
        incast(hosts, 5, hosts - 1, 20_000).expect("there are hosts"),
        spread,
    ]
}

#[test]
fn at_most_one_packet_waits_where_links_are_alike() {
    let delays = [10, 400, 400, 210].map(Duration::from_ns);
    let shape = LeafSpine {
        spines: 16,
        spine_rate: gbps(40),
        racks: 4,
        ..LeafSpine::paper(gbps(40), delays)
    };
    let leaf_spine = Topology::leaf_spine(&shape).unwrap();
    let tree = Topology::fat_tree(4, gbps(40), Duration::from_ns(200)).unwrap();
    for topology in [leaf_spine, tree] {
        for flows in patterns(topology.host_count()) {
            for switching in [Switching::CutThrough, Switching::StoreAndForward] {
                let [to_hosts, to_switches] = queued_packets(&topology, switching, &flows);
                assert!(to_hosts <= 1 && to_switches <= 1, "{to_hosts}, {to_switches}");
            }
        }
    }
}

/// An arbiter whose 128 schedules share four links with the hosts at its switch. Not all to all, as
/// below.
#[test]
fn schedules_have_room_beside_the_hosts_of_their_switch() {
    let tree = Topology::fat_tree(8, gbps(40), Duration::from_ns(200)).unwrap();
    for flows in patterns(tree.host_count()).into_iter().take(3) {
        for switching in [Switching::CutThrough, Switching::StoreAndForward] {
            let [to_hosts, to_switches] = queued_packets(&tree, switching, &flows);
            assert!(to_hosts <= 1 && to_switches <= 1, "{to_hosts}, {to_switches}");
        }
    }
}

/// A link of four times the rate has four packets in a timeslot, which leave their hosts one after
/// another. Not all to all: with a request and a schedule for every few packets headers would take
/// more of the arbiter's rack than is theirs.
#[test]
fn at_most_one_packet_waits_on_fast_links() {
    let delays = [10, 400, 400, 210].map(Duration::from_ns);
    let paper = LeafSpine::paper(gbps(40), delays);
    let uneven = LeafSpine { racks: 4, spine_rate: gbps(100), ..paper };
    for shape in [paper, uneven] {
        let topology = Topology::leaf_spine(&shape).unwrap();
        for flows in patterns(topology.host_count()).into_iter().take(3) {
            let [to_hosts, to_switches] = queued_packets(&topology, Switching::CutThrough, &flows);
            assert!(to_hosts <= 1 && to_switches <= 1, "{to_hosts}, {to_switches}");
        }
    }
}
