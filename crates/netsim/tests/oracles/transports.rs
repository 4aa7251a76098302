//! What every transport must do, whatever its rules: take its ideal time alone, keep links busy,
//! and finish whatever is lost.

use measure::{Duration, Instant};
use netsim::{
    Exchange, Fabric, FastpassConfig, Flow, Ideal, LeafSpine, Node, Outcome, Protocol, Switching,
    TcpConfig, Topology, Transport, simulate,
};
use workload::Draw;

use crate::support::{flow, gbps, time};

/// A transport on the network of Gao et al. §4 at 40 Gb/s.
struct Case {
    name: &'static str,
    fabric: Fabric,
    protocol: Protocol,
    /// What a flow that is alone takes beyond its ideal time: so many headers on its host's link.
    alone: Alone,
    /// The least share of the line rate when every host sends to the one 37 further, and in
    /// random permutations. Headers of ACKs take 0.026. What is missing beyond that is the start:
    /// requests.
    shares: [f64; 2],
}

#[derive(Clone, Copy)]
enum Alone {
    Headers(u64),
    /// The way to the arbiter, the rest of an epoch, the lead, and a timeslot for each packet.
    Timeslots(FastpassConfig),
}

/// When a flow that is alone ends that has a timeslot for each packet.
fn timeslots(config: &FastpassConfig, fabric: &Fabric, flow: &Flow) -> Instant {
    let ideal = Ideal::new(fabric);
    let arbiter = fabric.topology.arbiter().expect("Fastpass has one");
    let up = |at: u64, step: Duration| at.div_ceil(step.as_ps());
    let asked = flow.start + ideal.control(flow.src, arbiter);
    let epoch = config.slot.saturating_mul(u64::from(config.epoch));
    let decided = up(asked.as_ps(), epoch) * epoch.as_ps();
    let first = up(decided + config.lead.as_ps(), config.slot);
    let packets = u64::from(fabric.frame.packets(flow.bytes));
    let comes = |number: u64| {
        let payload = u64::from(fabric.frame.payload);
        let bytes = (flow.bytes - number * payload).min(payload);
        let leaves = Instant::ZERO + config.slot.saturating_mul(first + number);
        leaves + ideal.received(&Flow { bytes, ..*flow })
    };
    // A short packet may overtake the one before.
    comes(packets - 1).max(comes(packets.saturating_sub(2)))
}

fn cases() -> Vec<Case> {
    let delays = [10, 400, 400, 210].map(Duration::from_ns);
    let shape = LeafSpine::paper(gbps(40), delays);
    let case = |&transport: &Transport| {
        let topology = Topology::leaf_spine(&shape).expect("the network of the paper");
        let fabric = transport.fabric(topology, Switching::CutThrough).expect("it can be had");
        let (alone, shares) = match transport {
            // Its request leaves first.
            Transport::Phost => (Alone::Headers(1), [0.95, 0.95]),
            Transport::Dctcp => (Alone::Headers(0), [0.95, 0.95]),
            // Full networks are not filled: a packet that finds no way waits.
            Transport::Fastpass => (Alone::Headers(0), [0.92, 0.89]),
            Transport::Tcp => (Alone::Headers(0), [0.8, 0.88]),
            Transport::Ndp => (Alone::Headers(0), [0.95, 0.95]),
            _ => (Alone::Headers(0), [0.97, 0.97]),
        };
        let protocol = transport.protocol(&fabric);
        let alone = match protocol {
            Protocol::Fastpass(config) => Alone::Timeslots(config),
            _ => alone,
        };
        Case { name: transport.describe().name, fabric, protocol, alone, shares }
    };
    Transport::ALL.iter().map(case).collect()
}

/// Goodput of hosts that all send 2000 packets to another, as a share of the line rate.
fn permutation(fabric: &Fabric, protocol: Protocol, flows: &[Flow]) -> f64 {
    let outcome = simulate(fabric, protocol, flows).expect("every flow finishes");
    let share = |(record, flow): (&netsim::FlowRecord, &Flow)| {
        let ideal = Ideal::new(fabric).received(flow).as_ps() as f64;
        let took = record.received.map_or(Duration::MAX, |at| at - flow.start);
        ideal / took.as_ps() as f64
    };
    outcome.records.iter().zip(flows).map(share).sum::<f64>() / flows.len() as f64
}

/// Every host sends to the one 37 further.
fn shift(hosts: u32) -> Vec<Flow> {
    (0..hosts).map(|src| flow(1_000, src, (src + 37) % hosts, 2000 * 1460)).collect()
}

#[test]
fn alone_a_flow_takes_its_ideal_time() {
    for Case { name, fabric, protocol, alone, .. } in cases() {
        let ideal = Ideal::new(&fabric);
        for bytes in [1, 1460, 4096, 65_536, 3_000_001] {
            for dst in [1, 143] {
                let flow = flow(5, 0, dst, bytes);
                let outcome = simulate(&fabric, protocol, &[flow]).unwrap();
                let fct = outcome.records[0].received.unwrap() - flow.start;
                let least = ideal.received(&flow);
                match alone {
                    Alone::Headers(count) => {
                        let expected = least + time(gbps(40), 40 * count);
                        assert_eq!(fct, expected, "{name}, {bytes} B to {dst}");
                    }
                    Alone::Timeslots(config) => {
                        let end = timeslots(&config, &fabric, &flow);
                        assert_eq!(flow.start + fct, end, "{name}, {bytes} B to {dst}");
                    }
                }
            }
        }
    }
}

/// TCP takes a round trip of headers more with a handshake; and one of a packet and its answer for
/// each window that does not cover the round trip: those of 2 and 4 packets here.
#[test]
fn handshakes_and_small_windows_take_round_trips() {
    let tcp = |case: &Case| matches!(case.protocol, Protocol::Tcp(_));
    for Case { name, fabric, protocol, .. } in cases().into_iter().filter(tcp) {
        let Protocol::Tcp(config) = protocol else { unreachable!("others are left out") };
        let ideal = Ideal::new(&fabric);
        let one = flow(5, 0, 143, 30 * 1460);
        let took = |config: TcpConfig| {
            let outcome = simulate(&fabric, Protocol::Tcp(config), &[one]).unwrap();
            outcome.records[0].received.unwrap() - one.start
        };
        assert_eq!((config.window, config.has_handshake), (10, false), "{name}");
        assert_eq!(took(config), ideal.received(&one), "{name}");
        let opened = took(TcpConfig { has_handshake: true, ..config });
        let headers = ideal.control(0, 143) + ideal.control(143, 0);
        assert_eq!(opened, ideal.received(&one) + headers, "{name}");
        let round_trip = ideal.acknowledged(&Flow { bytes: 1460, ..one });
        let idle = |window: u64| round_trip - time(gbps(40), 1500 * window);
        let slow = took(TcpConfig { window: 2, ..config });
        let waits: Duration = [2, 4].map(idle).into_iter().sum();
        assert_eq!(slow, ideal.received(&one) + waits, "{name}");
    }
}

#[test]
fn a_permutation_keeps_links_busy() {
    for case in cases() {
        let [shifted, random] = case.shares;
        let share = permutation(&case.fabric, case.protocol, &shift(144));
        assert!(share >= shifted, "{}: {share} for {shifted}", case.name);
        for seed in 1..5 {
            let flows = netsim::traffic::permutation(144, 2000 * 1460, seed).unwrap();
            let share = permutation(&case.fabric, case.protocol, &flows);
            assert!(share >= random, "{}, seed {seed}: {share} for {random}", case.name);
        }
    }
}

/// The same where full bisection is by as many links as there are hosts, and in a fat tree. Random:
/// what leads down to a rack meets by chance, for the time of a packet of a host's link.
#[test]
fn a_permutation_keeps_links_busy_on_other_networks() {
    let delays = [10, 400, 400, 210].map(Duration::from_ns);
    let shape =
        LeafSpine { spines: 16, spine_rate: gbps(40), ..LeafSpine::paper(gbps(40), delays) };
    let equal = Topology::leaf_spine(&shape).unwrap();
    let tree = Topology::fat_tree(8, gbps(40), Duration::from_ns(200)).unwrap();
    for &transport in Transport::ALL {
        // Shifted and random, then the tree.
        let least = match transport {
            Transport::Homa => [0.97, 0.97, 0.97],
            // A round trip under way, as idle, does not cover what waits in a tree.
            Transport::PFabric => [0.97, 0.97, 0.92],
            Transport::Phost => [0.95, 0.95, 0.91],
            // An ACK and a pull for each packet, if each comes with a pull still due: 1500 of
            // 1580 bytes are data.
            Transport::Ndp => [0.94, 0.95, 0.91],
            Transport::Dctcp => [0.95, 0.95, 0.95],
            // Full networks are not filled: a packet that finds no way waits.
            Transport::Fastpass => [0.92, 0.9, 0.83],
            _ => [0.9, 0.8, 0.8],
        };
        let random = |hosts| netsim::traffic::permutation(hosts, 2000 * 1460, 1).unwrap();
        let runs = [(&equal, shift(144)), (&equal, random(144)), (&tree, random(128))];
        for (least, (topology, flows)) in least.into_iter().zip(runs) {
            let fabric = transport.fabric(topology.clone(), Switching::CutThrough).unwrap();
            let share = permutation(&fabric, transport.protocol(&fabric), &flows);
            let hosts = flows.len();
            assert!(share >= least, "{transport:?}, {hosts} hosts: {share} for {least}");
        }
    }
}

/// Throughput as it is commonly meant: of long flows, from a fifth of the run to four.
#[test]
fn a_permutation_runs_at_the_line_rate_in_the_long_run() {
    for Case { name, fabric, protocol, .. } in cases() {
        let least = match protocol {
            Protocol::Fastpass(_) => 0.9,
            Protocol::Tcp(config) if !config.has_marks => 0.9,
            _ => 0.96,
        };
        let flows = netsim::traffic::permutation(144, 5000 * 1460, 2).unwrap();
        let mut seen = Vec::new();
        let mut note = |progress: &netsim::Progress| {
            seen.push((progress.now, progress.received_packets));
            true
        };
        let outcome = netsim::simulate_watched(&fabric, protocol, &flows, &mut note).unwrap();
        let part = |fifths| Instant::from_ps(outcome.end.as_ps() / 5 * fifths);
        seen.retain(|(now, _)| (part(1)..part(4)).contains(now));
        let (&(first, had), &(last, has)) = (seen.first().unwrap(), seen.last().unwrap());
        let packets = (last - first).as_ps() as f64 / time(gbps(40), 1500).as_ps() as f64;
        let share = (has - had) as f64 / packets / 144.0;
        assert!(share >= least && share < 0.98, "{name}: {share} for {least}");
    }
}

/// Ten thousand flows at one sender. What waits there is not lost, however long: no packet is sent
/// twice, the link is never idle, and events are those of packets and answers.
#[test]
fn what_waits_at_its_sender_does_not_time_out() {
    let cases = cases().into_iter().filter(|case| matches!(case.protocol, Protocol::PFabric(_)));
    for Case { fabric, protocol, .. } in cases {
        let flows: Vec<_> = (0..10_000).map(|number| flow(0, 0, 1 + number % 143, 2920)).collect();
        let outcome = simulate(&fabric, protocol, &flows).unwrap();
        assert!(outcome.records.iter().all(|record| record.sent == 2));
        let last = Ideal::new(&fabric).received(&flow(0, 0, 143, 1460));
        let line = time(gbps(40), 20_000 * 1500);
        let took = outcome.records.iter().filter_map(|record| record.received).max().unwrap();
        let took = took.saturating_since(Instant::ZERO);
        assert!(took >= line && took <= line + last, "{took} for {line}");
        assert!(outcome.event_count < 12 * 20_000, "{} events", outcome.event_count);
    }
}

/// A hundred senders, 3000 packets: in how many times of the receiver's link they are there.
#[test]
fn an_incast_drains() {
    for Case { name, fabric, protocol, .. } in cases() {
        let flows = netsim::traffic::incast(144, 0, 100, 30 * 1460).unwrap();
        let outcome = simulate(&fabric, protocol, &flows).unwrap();
        let line = time(gbps(40), 100 * 30 * 1500);
        let took = outcome.records.iter().filter_map(|record| record.received).max().unwrap();
        let times = took.as_ps() as f64 / line.as_ps() as f64;
        let most = match protocol {
            Protocol::PFabric(_) => 1.05,
            Protocol::Phost(_) | Protocol::Ndp(_) => 1.02,
            // Timeslots are 1.0625 packet times, after the requests.
            Protocol::Fastpass(_) => 1.12,
            // What overflows the pool waits for two timeouts of 2 ms.
            Protocol::Homa(_) => 5.5,
            // Two packets of each overflow the port: timeouts, again and again.
            _ => 40.0,
        };
        assert!(times > 1.0 && times < most, "{name}: {times}");
    }
}

#[test]
fn whatever_is_lost_every_flow_finishes() {
    for Case { name, fabric, protocol, .. } in cases() {
        // An incast that overflows the buffer many times over, again and again.
        let flows: Vec<_> = (0..600_u32)
            .map(|number| {
                let bytes = 1 + 7919 * u64::from(number % 40);
                flow(u64::from(number / 100) * 30_000_000, 1 + number % 143, 0, bytes)
            })
            .collect();
        let outcome = simulate(&fabric, protocol, &flows).unwrap();
        let dropped: u32 = outcome.records.iter().map(|record| record.data_drops).sum();
        if matches!(protocol, Protocol::Fastpass(_)) {
            assert_eq!(dropped, 0, "what has a timeslot is not dropped");
        } else {
            assert!(dropped > 100, "{name}: only {dropped} drops, the test shows little");
        }
        let total: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let line = gbps(40).transfer_time(measure::Bytes::new(total)).as_ps();
        assert!(outcome.end.as_ps() > line, "{name}: faster than the receiver's link");
    }
}

#[test]
fn the_same_flows_give_the_same_outcome() {
    for Case { name, fabric, protocol, .. } in cases() {
        let mut draw = Draw::new(11);
        let flows: Vec<_> = (0..500)
            .map(|_| {
                let src = u32::try_from(draw.below(144)).unwrap();
                let dst = (src + 1 + u32::try_from(draw.below(143)).unwrap()) % 144;
                flow(draw.below(100_000_000), src, dst, 1 + draw.below(200_000))
            })
            .collect();
        let run = || -> Outcome { simulate(&fabric, protocol, &flows).unwrap() };
        assert_eq!(run(), run(), "{name}");
    }
}

/// Packets and bytes that the first two of four hosts send by Homa until `until_ns`; of how many
/// flows the sender is told at a time of its own.
fn sent_by_homa(flows: &[Flow], until_ns: u64) -> ([(u64, u64); 2], usize) {
    let topology = Topology::single_switch(4, gbps(10), Duration::from_ns(200)).expect("it is");
    let fabric = Transport::Homa.fabric(topology, Switching::CutThrough).expect("it can be had");
    let last =
        Flow { start: Instant::from_ns(until_ns), src: 2, dst: 3, bytes: 1, ..Flow::default() };
    let flows: Vec<Flow> = flows.iter().copied().chain([last]).collect();
    let outcome = simulate(&fabric, Transport::Homa.protocol(&fabric), &flows).expect("they end");
    let of = |host| {
        let links = fabric.topology.links().iter().zip(&outcome.ports);
        let mut ports = links.filter(|(link, _)| link.from == Node::Host(host));
        let (_, port) = ports.next().expect("each host has a link");
        (port.sent_packets, port.sent_bytes)
    };
    let (_, records) = outcome.records.split_last().expect("the last one");
    assert!(records.iter().all(|record| record.received.is_some() && record.has_ended()));
    ([of(0), of(1)], records.iter().filter(|record| record.finished.is_some()).count())
}

/// Six messages, ten bytes for each but one; or in the header of data that goes there anyway.
#[test]
fn homa_tells_a_sender_of_several_ends_together() {
    let flow = |number: u64, src, exchange| Flow {
        start: Instant::from_ns(number * 2_000),
        src,
        dst: 1 - src,
        bytes: 960,
        exchange,
    };
    let messages = |src, from: u64, count: u64| {
        (from..from + count).map(move |number| flow(number, src, Exchange::OneWay))
    };
    let five: Vec<Flow> = messages(0, 0, 5).collect();
    assert_eq!(sent_by_homa(&five, 1_000_000), ([(5, 5_000), (0, 0)], 0));
    let six: Vec<Flow> = messages(0, 0, 6).collect();
    assert_eq!(sent_by_homa(&six, 1_000_000), ([(6, 6_000), (1, 40 + 5 * 10)], 0));
    // Host 0 is told of its five in the five of host 1 and asks for none; host 1 asks for the
    // first of its own, and hears of all.
    let both: Vec<Flow> = messages(0, 0, 5).chain(messages(1, 5, 5)).collect();
    assert_eq!(sent_by_homa(&both, 1_000_000), ([(5, 5_000), (5, 5_000)], 0));
    assert_eq!(sent_by_homa(&both, 3_000_000), ([(6, 5_040 + 40), (6, 5_040)], 0));
    // Who writes waits, and is told at once.
    let write = [flow(0, 0, Exchange::Write)];
    assert_eq!(sent_by_homa(&write, 1_000_000), ([(1, 1_000), (1, 40)], 1));
}
