//! What is kept of a run beside its outcome: it changes nothing, and adds up to it.

use measure::{Bytes, Duration, Instant};
use netsim::{
    Fate, Flow, Node, Observe, Observed, PacketKind, SimError, Switching, Topology, Transport,
    simulate, simulate_observed, traffic,
};

use crate::support::gbps;

const PACKET_NS: u64 = 300;

/// Senders to host 0 of one switch, at 40 Gb/s with 200 ns of delay.
fn incast(transport: Transport, senders: u32, bytes: u64, observe: Observe) -> Observed {
    let topology =
        Topology::single_switch(senders + 1, gbps(40), Duration::from_ns(200)).expect("it can be");
    let fabric = transport.fabric(topology, Switching::CutThrough).expect("it can be");
    let flows = traffic::incast(senders + 1, 0, senders, bytes).expect("it can be");
    let protocol = transport.protocol(&fabric);
    let observed =
        simulate_observed(&fabric, protocol, &flows, observe, &mut |_| true).expect("it can be");
    assert_eq!(observed.outcome, simulate(&fabric, protocol, &flows).expect("it can be"));
    observed
}

/// For every transport, whether intervals are many or so many that two have become one.
#[test]
fn intervals_add_up_to_the_outcome() {
    for &transport in Transport::ALL {
        for every in [Duration::from_us(2), Duration::from_ps(700)] {
            let observe = Observe { every: Some(every), ..Observe::default() };
            let Observed { outcome, ports, .. } = incast(transport, 12, 60_000, observe);
            let series = ports.unwrap();
            assert_eq!(series.port_count(), outcome.ports.len());
            assert!(series.interval_count() <= 2048);
            assert_eq!(series.every > every, every == Duration::from_ps(700));
            let length = series.every.saturating_mul(series.interval_count() as u64);
            assert!(series.from + length >= outcome.end, "{}", series.interval_count());
            for (port, stats) in outcome.ports.iter().enumerate() {
                let all = || (0..series.interval_count()).map(|at| series.at(at, port));
                let dropped: u64 = all().map(|one| u64::from(one.dropped_packets)).sum();
                let trimmed: u64 = all().map(|one| u64::from(one.trimmed_packets)).sum();
                assert_eq!(all().map(|one| one.sent_bytes).sum::<u64>(), stats.sent_bytes);
                assert_eq!([dropped, trimmed], [stats.dropped_packets, stats.trimmed_packets]);
                let deepest = all().map(|one| u64::from(one.deepest_bytes)).max();
                assert_eq!(deepest, Some(stats.queued_bytes_max));
                assert!(all().all(|one| one.queued_bytes <= one.deepest_bytes));
            }
        }
    }
}

/// Two flows of 20 packets come in at twice the rate at which they go out: when the k-th pair of
/// packets has come k - 1 have gone.
#[test]
fn a_queue_grows_by_a_packet_for_each_that_is_sent() {
    let fabric = {
        let topology = Topology::single_switch(3, gbps(40), Duration::from_ns(200)).unwrap();
        let mut fabric = Transport::PFabric.fabric(topology, Switching::StoreAndForward).unwrap();
        fabric.switch_port.buffer = None::<Bytes>;
        fabric
    };
    let flow = |src| Flow { src, bytes: 20 * 1460, ..Flow::default() };
    let every = Some(Duration::from_ns(PACKET_NS));
    let observe = Observe { every, ..Observe::default() };
    let flows = [flow(1), flow(2)];
    let protocol = netsim::Protocol::Datagrams;
    let observed = simulate_observed(&fabric, protocol, &flows, observe, &mut |_| true).unwrap();
    let links = fabric.topology.links();
    let out = links.iter().position(|link| link.to == Node::Host(0)).unwrap();
    let series = observed.ports.unwrap();
    let depths: Vec<u32> =
        (0..series.interval_count()).map(|at| series.at(at, out).queued_bytes / 1500).collect();
    // Whole packets come 500 ns after they were sent, in the second interval.
    let expected: Vec<u32> = [0].into_iter().chain(1..=20).chain((0..20).rev()).collect();
    assert_eq!(depths[..expected.len()], expected);
}

#[test]
fn packets_are_followed_from_port_to_port() {
    for &transport in Transport::ALL {
        let observe = Observe { packets: Some(u32::MAX), ..Observe::default() };
        let Observed { outcome, trace, .. } = incast(transport, 12, 60_000, observe);
        let trace = trace.unwrap();
        let name = transport.describe().name;
        assert_eq!(trace.omitted_count, 0);
        let data = trace.packets.iter().filter(|packet| packet.kind == PacketKind::Data).count();
        let sent: u32 = outcome.records.iter().map(|record| record.sent).sum();
        assert_eq!(data as u64, u64::from(sent), "{name}");
        let mut at: Vec<Instant> = trace.packets.iter().map(|packet| packet.sent).collect();
        let mut drops = vec![0; outcome.ports.len()];
        for hop in &trace.hops {
            let here = &mut at[hop.packet as usize];
            assert_eq!(hop.came, *here, "{name}: a packet is where it came to");
            match hop.fate {
                Fate::Crossed { left, arrived } => {
                    assert!(hop.came <= left && left < arrived, "{name}: {hop:?}");
                    *here = arrived;
                }
                Fate::Dropped { at } => {
                    assert!(hop.came <= at);
                    drops[hop.link as usize] += 1;
                }
            }
        }
        let counted: Vec<u64> = outcome.ports.iter().map(|port| port.dropped_packets).collect();
        assert_eq!(drops, counted, "{name}");
    }
}

#[test]
fn the_first_packets_are_followed_and_the_others_counted() {
    let followed = |packets| {
        let observe = Observe { packets: Some(packets), ..Observe::default() };
        incast(Transport::Dctcp, 4, 60_000, observe).trace.unwrap()
    };
    let (some, all) = (followed(30), followed(u32::MAX));
    assert_eq!(some.packets, all.packets[..30]);
    assert_eq!(some.omitted_count, all.packets.len() as u64 - 30);
    let of_those: Vec<_> = all.hops.iter().filter(|hop| hop.packet < 30).copied().collect();
    assert_eq!(some.hops, of_those);
}

#[test]
fn intervals_take_time() {
    let topology = Topology::single_switch(2, gbps(40), Duration::from_ns(200)).unwrap();
    let fabric = Transport::Tcp.fabric(topology, Switching::CutThrough).unwrap();
    let flows = traffic::incast(2, 0, 1, 1).unwrap();
    let observe = Observe { every: Some(Duration::ZERO), ..Observe::default() };
    let protocol = Transport::Tcp.protocol(&fabric);
    let refused = simulate_observed(&fabric, protocol, &flows, observe, &mut |_| true);
    assert!(refused.unwrap_err().to_string().contains("give it at least 1 ps"));
}

/// Flows from host 1 to host 0, each when the one before is not done: all share the link.
#[test]
fn a_run_is_over_with_the_flows_it_waits_for() {
    let topology = Topology::single_switch(2, gbps(40), Duration::from_ns(200)).expect("it can be");
    let fabric = Transport::Ndp.fabric(topology, Switching::CutThrough).expect("it can be");
    let protocol = Transport::Ndp.protocol(&fabric);
    let start = |number: u64| Instant::ZERO + Duration::from_ns(1500 * number);
    let flow =
        |number| Flow { start: start(number), src: 1, dst: 0, bytes: 10_000, ..Flow::default() };
    let flows: Vec<Flow> = (0..60).map(flow).collect();
    let run = |from: u64, to: u64| {
        let span = Some([start(from), start(to)]);
        let observe = Observe { span, until_span_ended: true, ..Observe::default() };
        simulate_observed(&fabric, protocol, &flows, observe, &mut |_| true)
    };
    let outcome = run(3, 8).expect("flows finish").outcome;
    let finished = |number: usize| outcome.records[number].finished;
    assert_eq!((3..8).filter_map(finished).max(), Some(outcome.end), "the last of them ends it");
    assert_eq!(finished(59), None);
    let whole = simulate(&fabric, protocol, &flows).expect("flows finish");
    assert_eq!(outcome.records[3..8], whole.records[3..8], "nothing else is different");
    let [all, some] = [(0, 60), (3, 8)].map(|(from, to)| [start(from), start(to)]);
    assert!(outcome.clone().complete_within(&flows, all).is_err());
    assert!(outcome.clone().complete_within(&flows, some).is_ok());
    let emptied = run(55, 60).map(|observed| observed.outcome.end);
    assert_eq!(emptied, Err(SimError::Emptied { at: start(59), left: 5 }));
}
