//! DCTCP's queue is the sawtooth that its paper computes.

use measure::{Duration, Instant};
use netsim::{
    Discipline, Fabric, Node, Protocol, Samples, Switching, TcpConfig, Topology, simulate_sampled,
};

use crate::support::{flow, gbps, time};

/// Packets from which the switch marks.
const MARK: u32 = 40;

/// Alizadeh et al. 2010, §3.3: with N synchronised flows, K the threshold and C RTT the packets
/// under way, the queue is K + N at most, and A = √(2 N (C RTT + K)) / 2 below that at least.
/// Here the highest is within a packet of that and the lowest within four.
#[test]
fn the_queue_is_a_sawtooth_at_the_threshold() {
    for senders in [2_u32, 10] {
        let one_way = Duration::from_us(25);
        let topology = Topology::single_switch(senders + 1, gbps(10), one_way).unwrap();
        let discipline = Discipline::Mark { packets: MARK };
        let mut fabric = Fabric::new(topology, Switching::StoreAndForward, discipline);
        fabric.switch_port.buffer = None;
        // Flows that start together stay together; timeouts are none of it, for nothing is lost.
        let config = TcpConfig {
            window: 2,
            window_max: 1_000,
            timeout_min: Duration::from_us(200),
            ..TcpConfig::for_fabric(&fabric, true)
        };
        let flows: Vec<_> =
            (1..=senders).map(|src| flow(0, src, 0, 60_000_000 / u64::from(senders))).collect();
        let links = fabric.topology.links();
        let link = links.iter().position(|link| link.to == Node::Host(0)).unwrap();
        let every = Duration::from_us(1);
        let samples = Samples { link: u32::try_from(link).unwrap(), every };
        let protocol = Protocol::Tcp(config);
        let (outcome, depths) = simulate_sampled(&fabric, protocol, &flows, samples).unwrap();
        // From when slow start is long over to when the first flow ends.
        let first_end = outcome.records.iter().map(|record| record.received.unwrap()).min();
        let end = first_end.unwrap().saturating_since(Instant::ZERO).as_ps() / every.as_ps();
        let depths = &depths[10_000..usize::try_from(end).unwrap() - 100];
        let packets = |bytes: u64| bytes as f64 / 1500.0;
        let most = packets(*depths.iter().max().unwrap());
        let least = packets(*depths.iter().min().unwrap());
        let round_trip = one_way.saturating_mul(4) + time(gbps(10), 2 * 1500 + 2 * 40);
        let under_way = round_trip.as_ps() as f64 / time(gbps(10), 1500).as_ps() as f64;
        let flows = f64::from(senders);
        let high = f64::from(MARK) + flows;
        let swing = (2.0 * flows * (under_way + f64::from(MARK))).sqrt() / 2.0;
        let low = high - swing;
        assert!((most - high).abs() <= 1.0, "{senders} senders: {most} at most for {high:.1}");
        assert!((least - low).abs() <= 4.0, "{senders} senders: {least} at least for {low:.1}");
    }
}
