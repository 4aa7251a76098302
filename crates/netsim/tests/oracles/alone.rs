//! A flow that is alone takes its closed form, to the picosecond.

use measure::Duration;
use netsim::{
    End, Exchange, Flow, Ideal, LeafSpine, Protocol, Published, Samples, SimError, Switching,
    Topology, Transport, simulate, simulate_sampled,
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

/// The delays of the figures of Gao et al. 2016, whose page of 4 KiB was three full packets.
fn paper(transport: Transport, gigabits: u64) -> netsim::Fabric {
    let delays = [10, 400, 400, 210].map(Duration::from_ns);
    let topology = Topology::leaf_spine(&LeafSpine::paper(gbps(gigabits), delays));
    let fabric = topology.and_then(|built| transport.fabric(built, Switching::CutThrough));
    let mut fabric = fabric.expect("the paper has it");
    fabric.frame.is_padded = true;
    fabric
}

/// What the paper's simulator calls ideal for a page, from the sender's first bit to its last
/// acknowledgement; a request and its answer cross the network the same number of times.
#[test]
fn a_page_that_is_read_takes_its_request_and_its_data() {
    let times = [(100, 1, 809_600), (100, 16, 2_412_800), (40, 1, 1_364_000), (40, 16, 2_972_000)];
    for (gigabits, src, expected_ps) in times {
        let fabric = paper(Transport::PFabric, gigabits);
        let page = Flow { exchange: Exchange::Read, ..flow(5_000, src, 0, 4096) };
        assert_eq!(Ideal::new(&fabric).received(&page).as_ps(), expected_ps);
        let protocol = Transport::PFabric.protocol(&fabric);
        let outcome = simulate(&fabric, protocol, &[page]).unwrap();
        let took = End::Received.took(&page, &outcome.records[0]).unwrap();
        assert_eq!(took.as_ps(), expected_ps, "{gigabits} Gb/s from host {src}");
        let backwards = outcome.ports[0].sent_bytes;
        assert_eq!(backwards, 40 + 3 * 40, "a request, and what acknowledges three packets");
    }
}

/// Whatever the transport: a request as long as is said, and its data; a write until its writer
/// knows.
#[test]
fn what_is_read_is_asked_for_first_whatever_the_transport() {
    for &transport in Transport::ALL {
        let mut fabric = paper(transport, 40);
        let mut protocol = transport.protocol(&fabric);
        protocol.acknowledge_each();
        let took = |fabric: &netsim::Fabric, exchange| {
            let one = Flow { exchange, ..flow(0, 20, 0, 4096) };
            let outcome = simulate(fabric, protocol, &[one]).unwrap();
            let record = outcome.records[0];
            [End::Received, End::Acknowledged].map(|end| end.took(&one, &record).unwrap())
        };
        let [received, acknowledged] = took(&fabric, Exchange::OneWay);
        assert_eq!(took(&fabric, Exchange::Write), [acknowledged; 2], "{transport:?}");
        for bytes in [40, 98, 1500] {
            fabric.requests.bytes = bytes;
            let ideal = Ideal::new(&fabric);
            let page = flow(0, 20, 0, 4096);
            let alone = ideal.received(&Flow { exchange: Exchange::Read, ..page });
            let headers = time(gbps(40), 40) + time(gbps(160), 80) + Duration::from_ns(1020);
            let request = headers + time(gbps(40), u64::from(bytes));
            assert_eq!(alone, request + ideal.received(&page));
            let read = took(&fabric, Exchange::Read)[0];
            // The timeslots of Fastpass begin when they do.
            let is_exact = transport != Transport::Fastpass;
            assert!(!is_exact || read == received + request, "{transport:?}, {bytes} B: {read}");
            assert!(read >= alone, "{transport:?}");
        }
    }
}

#[test]
fn nonsense_is_refused_in_one_sentence() {
    let topology = Topology::single_switch(2, gbps(10), Duration::ZERO).unwrap();
    let fabric = fabric(topology, Switching::CutThrough);
    let refused =
        |flows: &[Flow]| simulate(&fabric, Protocol::Datagrams, flows).unwrap_err().to_string();
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
