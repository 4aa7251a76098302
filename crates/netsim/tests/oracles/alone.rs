//! A flow that is alone takes its closed form, to the picosecond.

use measure::Duration;
use netsim::{
    Ideal, LeafSpine, Protocol, Published, Samples, SimError, Switching, Topology, simulate,
    simulate_sampled,
};

use crate::support::{fabric, flow, gbps, time, topologies};

#[test]
fn datagrams_take_the_closed_form_on_every_topology() {
    for topology in topologies() {
        let last = topology.host_count() - 1;
        for switching in [Switching::CutThrough, Switching::StoreAndForward] {
            let fabric = fabric(topology.clone(), switching);
            let ideal = Ideal::new(&fabric);
            for bytes in [1, 40, 1459, 1460, 1461, 2920, 4096, 65_536, 1_000_003] {
                for dst in [1, last] {
                    let flow = flow(12_345, 0, dst, bytes);
                    let outcome = simulate(&fabric, Protocol::Datagrams, &[flow]).unwrap();
                    let fct = outcome.records[0].fct(&flow).unwrap();
                    assert_eq!(fct, ideal.received(&flow), "{bytes} B to {dst}, {switching:?}");
                }
            }
        }
    }
}

#[test]
fn the_closed_form_is_what_arithmetic_says() {
    // Cut through: the header's time at each hop but the last, delays, and the packets.
    let delays = [10, 400, 390, 210].map(Duration::from_ns);
    let topology = Topology::leaf_spine(&LeafSpine::paper(gbps(100), delays)).unwrap();
    let fabric = fabric(topology, Switching::CutThrough);
    let flow = flow(0, 0, 143, 3 * 1460);
    let headers = time(gbps(100), 40) + time(gbps(400), 80);
    let expected = time(gbps(100), 4500) + headers + Duration::from_ns(1010);
    assert_eq!(Ideal::new(&fabric).received(&flow), expected);
    let ack = time(gbps(100), 80) + time(gbps(400), 80) + Duration::from_ns(1010);
    assert_eq!(Ideal::new(&fabric).acknowledged(&flow), expected + ack);
}

#[test]
fn pfabric_of_2016_takes_the_closed_form_and_the_ack() {
    let shipped = [200; 4].map(Duration::from_ns);
    for (gbps_each, switching) in [(10, Switching::StoreAndForward), (40, Switching::CutThrough)] {
        let fabric =
            Published::PFabric.fabric(gbps(gbps_each), shipped, switching, Vec::new()).unwrap();
        let ideal = Ideal::new(&fabric);
        for packets in [1, 2, 3, 12, 13, 100, 2048] {
            for dst in [1, 16, 143] {
                let flow = flow(7, 0, dst, packets * 1460);
                let protocol = Protocol::AsPublished2016(Published::PFabric);
                let outcome = simulate(&fabric, protocol, &[flow]).unwrap();
                assert_eq!(outcome.records[0].fct(&flow), Some(ideal.acknowledged(&flow)));
            }
        }
    }
}

#[test]
fn nonsense_is_refused_in_one_sentence() {
    let topology = Topology::single_switch(2, gbps(10), Duration::ZERO).unwrap();
    let fabric = fabric(topology, Switching::CutThrough);
    let refused = |flows: &[netsim::Flow]| {
        simulate(&fabric, Protocol::Datagrams, flows).unwrap_err().to_string()
    };
    assert_eq!(refused(&[]), "there are no flows to simulate; give at least one");
    assert_eq!(refused(&[flow(0, 0, 1, 0)]), "flow 0 has no bytes; give it at least 1");
    assert_eq!(
        refused(&[flow(0, 0, 1, 1), flow(0, 0, 2, 1)]),
        "flow 1 names host 2 of a network with 2; hosts are 0 to 1"
    );
    assert_eq!(
        refused(&[flow(0, 1, 1, 1)]),
        "flow 0 goes from host 1 to itself; give it another destination"
    );
    let sampled = |link, every| {
        let samples = Samples { link, every };
        let flows = [flow(0, 0, 1, 1)];
        simulate_sampled(&fabric, Protocol::Datagrams, &flows, samples).unwrap_err().to_string()
    };
    assert_eq!(
        sampled(4, Duration::from_ns(1)),
        "there is no link 4 in a network with 4; name one below that"
    );
    assert_eq!(sampled(0, Duration::ZERO), "samples every 0 ps never end; give it at least 1 ps");
    assert_eq!(Topology::fat_tree(3, gbps(10), Duration::ZERO), Err(SimError::Arity { arity: 3 }));
}
