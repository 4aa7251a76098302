//! Queues: theory where there is chance, arithmetic where there is none.

use measure::{Bytes, Duration, Instant};
use netsim::{
    Discipline, Ideal, LeafSpine, PortConfig, Protocol, SimError, Switching, Topology, simulate,
};
use workload::{Arrivals, Spacing};

use crate::support::{fabric, flow, gbps, time};

/// One queue with Poisson arrivals of one size waits as M/D/1: W = ρS / 2(1 − ρ).
///
/// Packets come from many hosts over links of their own, so that none waits before that queue.
#[test]
fn one_queue_waits_as_m_d_1() {
    let hosts = 400;
    let topology = Topology::single_switch(hosts, gbps(40), Duration::from_ns(100)).unwrap();
    let fabric = fabric(topology, Switching::CutThrough);
    let service_ps = time(gbps(40), 1500).as_ps();
    for (percent, packets) in [
        (10, 40_000),
        (30, 40_000),
        (50, 80_000),
        (70, 160_000),
        (80, 200_000),
        (90, 400_000),
        (95, 800_000),
    ] {
        let mean = Duration::from_ps(service_ps * 100 / percent);
        let mut arrivals = Arrivals::new(Spacing::Poisson, mean, Instant::ZERO, 7);
        let flows: Vec<_> = (0..packets)
            .map(|number| {
                let src = 1 + number % (hosts - 1);
                flow(arrivals.advance().as_ps(), src, 0, 1460)
            })
            .collect();
        let outcome = simulate(&fabric, Protocol::Datagrams, &flows).unwrap();
        let alone = Ideal::new(&fabric).received(&flows[0]).as_ps() as f64;
        let waits: Vec<f64> = outcome
            .records
            .iter()
            .zip(&flows)
            .map(|(record, flow)| record.fct(flow).unwrap().as_ps() as f64 - alone)
            .collect();
        let (mean, half_width) = batch_means(&waits);
        let load = percent as f64 / 100.0;
        let expected = load * service_ps as f64 / (2.0 * (1.0 - load));
        assert!(
            (mean - expected).abs() <= half_width,
            "load {load}: waited {mean:.0} ± {half_width:.0} ps for {expected:.0}"
        );
        assert!(half_width < expected * 0.15, "load {load}: {half_width:.0} says little");
    }
}

/// Mean and the half width of its confidence interval of 99.9 %, by 32 batches (t = 3.63).
fn batch_means(values: &[f64]) -> (f64, f64) {
    let batches: Vec<f64> = values
        .chunks_exact(values.len() / 32)
        .take(32)
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, 3.63 * (variance / count).sqrt())
}

#[test]
fn an_incast_drains_at_line_rate() {
    let delays = [200; 4].map(Duration::from_ns);
    let topology = Topology::leaf_spine(&LeafSpine::paper(gbps(40), delays)).unwrap();
    let fabric = fabric(topology, Switching::CutThrough);
    // The senders of the receiver's rack come first, and from then on its link is never idle.
    let flows: Vec<_> = (1..100).map(|src| flow(0, src, 0, 10 * 1460)).collect();
    let outcome = simulate(&fabric, Protocol::Datagrams, &flows).unwrap();
    let first = time(gbps(40), 40) + Duration::from_ns(400);
    let drain = time(gbps(40), 99 * 10 * 1500);
    assert_eq!(outcome.end, Instant::ZERO + first + drain);
}

#[test]
fn a_permutation_with_spraying_runs_at_line_rate() {
    let delays = [200; 4].map(Duration::from_ns);
    let shape = LeafSpine::paper(gbps(40), delays);
    let tree = Topology::fat_tree(8, gbps(40), delays[0]).unwrap();
    for topology in [Topology::leaf_spine(&shape).unwrap(), tree] {
        let hosts = topology.host_count();
        let fabric = fabric(topology, Switching::CutThrough);
        let flows: Vec<_> =
            (0..hosts).map(|src| flow(0, src, (src + 37) % hosts, 1000 * 1460)).collect();
        let outcome = simulate(&fabric, Protocol::Datagrams, &flows).unwrap();
        for (record, flow) in outcome.records.iter().zip(&flows) {
            let ideal = Ideal::new(&fabric).received(flow).as_ps() as f64;
            let slowdown = record.fct(flow).unwrap().as_ps() as f64 / ideal;
            assert!(slowdown < 1.02, "{flow:?} of {hosts} hosts: {slowdown}");
        }
    }
}

#[test]
fn what_does_not_fit_is_dropped_and_the_run_has_no_result() {
    let topology = Topology::single_switch(3, gbps(10), Duration::ZERO).unwrap();
    let mut fabric = fabric(topology, Switching::StoreAndForward);
    let buffer = Some(Bytes::new(3000));
    fabric.switch_port = PortConfig { discipline: Discipline::DropTail, buffer };
    // 20 times two packets come, the port holds two, and then one goes: one is left at the end.
    let flows = [flow(0, 1, 0, 20 * 1460), flow(0, 2, 0, 20 * 1460)];
    let outcome = netsim::simulate_stranded(&fabric, Protocol::Datagrams, &flows).unwrap();
    let sent: u32 = outcome.records.iter().map(|record| record.sent).sum();
    let dropped: u32 = outcome.records.iter().map(|record| record.data_drops).sum();
    assert_eq!((sent, outcome.delivered_packets), (40, u64::from(40 - dropped)));
    assert_eq!(outcome.delivered_packets, 20 + 1);
    let error = simulate(&fabric, Protocol::Datagrams, &flows).unwrap_err();
    assert!(matches!(error, SimError::Unfinished { .. }), "{error}");
}
