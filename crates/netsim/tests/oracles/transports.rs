//! What every transport must do, whatever its rules: take its ideal time alone, keep links busy,
//! and finish whatever is lost.

use measure::{Duration, Instant};
use netsim::{
    Fabric, FastpassConfig, Flow, Ideal, LeafSpine, Outcome, Protocol, Switching, Topology,
    Transport, simulate,
};
use workload::Draw;

use crate::support::{flow, gbps, time};

/// A transport on the network of Gao et al. §4 at 40 Gb/s.
struct Case {
    name: &'static str,
    fabric: Fabric,
    protocol: Protocol,
    /// What a flow that is alone takes beyond its ideal time: at most so many round trips, or
    /// exactly so many headers on its host's link.
    alone: Alone,
    /// The least share of the line rate in a permutation, where headers of ACKs take 0.026.
    ///
    /// With all links full, sprayed packets that meet by chance fill queues to the threshold of
    /// DCTCP again and again; its windows settle below the line rate.
    share: f64,
}

#[derive(Clone, Copy)]
enum Alone {
    Headers(u64),
    RoundTrips(u64),
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
        let (alone, share) = match transport {
            // Its request leaves first.
            Transport::Phost => (Alone::Headers(1), 0.95),
            // A handshake, and windows of 2, 4 and 8, which is a round trip here.
            Transport::Dctcp => (Alone::RoundTrips(4), 0.82),
            // Full networks are not filled: a packet that finds no way waits.
            Transport::Fastpass => (Alone::Headers(0), 0.7),
            Transport::Tcp => (Alone::RoundTrips(4), 0.8),
            _ => (Alone::Headers(0), 0.95),
        };
        let protocol = transport.protocol(&fabric);
        let alone = match protocol {
            Protocol::Fastpass(config) => Alone::Timeslots(config),
            _ => alone,
        };
        Case { name: transport.describe().name, fabric, protocol, alone, share }
    };
    Transport::ALL.iter().map(case).collect()
}

/// Goodput of hosts that all send 2000 packets to another, as a share of the line rate.
fn permutation(case: &Case) -> f64 {
    let flows: Vec<_> =
        (0..144).map(|src| flow(1_000, src, (src + 37) % 144, 2000 * 1460)).collect();
    let outcome = simulate(&case.fabric, case.protocol, &flows).expect("every flow finishes");
    let share = |(record, flow): (&netsim::FlowRecord, &Flow)| {
        let ideal = Ideal::new(&case.fabric).received(flow).as_ps() as f64;
        let took = record.received.map_or(Duration::MAX, |at| at - flow.start);
        ideal / took.as_ps() as f64
    };
    outcome.records.iter().zip(&flows).map(share).sum::<f64>() / 144.0
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
                    Alone::RoundTrips(count) => {
                        let round_trip = ideal.control(0, dst) + ideal.control(dst, 0);
                        let slack = round_trip + time(gbps(40), 1500);
                        let most = least + slack.saturating_mul(count);
                        assert!(
                            fct > least && fct <= most,
                            "{name}, {bytes} B to {dst}: {fct} for {least} to {most}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_permutation_keeps_links_busy() {
    for case in cases() {
        let share = permutation(&case);
        assert!(share >= case.share, "{}: {share}", case.name);
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
