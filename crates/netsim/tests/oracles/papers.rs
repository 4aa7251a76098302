//! What papers say of transports beside each other.

use measure::Duration;
use netsim::traffic::Poisson;
use netsim::{End, LeafSpine, Summary, Switching, Topology, Transport, simulate};
use workload::{Sizes, SizesName};

use crate::support::gbps;

/// The simulator of Gao et al. 2016 with the mistakes of its rules mended has mean slowdowns of
/// 2.143 (DCTCP) and 3.193 (TCP from two packets on, without a handshake) until the sender knows,
/// of 3,000 other flows of the same sizes at the same load of the same network. Within 10 % with
/// nothing set; the tests of `reference` have those very flows, and all 10,000.
#[test]
fn tcp_and_dctcp_are_what_they_are_in_a_mended_simulator_of_2016() {
    let rate = gbps(40);
    let shape = LeafSpine::paper(rate, [200; 4].map(Duration::from_ns));
    let sizes = Sizes::named(SizesName::Imc10);
    let poisson =
        Poisson { hosts: 144, rate, load_percent: 60, sizes: &sizes, count: 3_000, seed: 2 };
    for (transport, theirs) in [(Transport::Dctcp, 2.143), (Transport::Tcp, 3.193)] {
        let topology = Topology::leaf_spine(&shape).expect("the network of the paper");
        let fabric = transport.fabric(topology, Switching::CutThrough).expect("it can be had");
        let flows = poisson.flows(fabric.frame).expect("a load that can be carried");
        let outcome = simulate(&fabric, transport.protocol(&fabric), &flows).expect("all finish");
        let ours = Summary::new(&fabric, &flows, &outcome, End::Acknowledged).slowdown.mean;
        assert!((ours / theirs - 1.0).abs() < 0.1, "{transport:?}: {ours} for {theirs}");
    }
}

/// Montazeri et al. 2018: in simulations at 10 Gb/s Homa is roughly equal to pFabric and
/// significantly better than pHost and NDP for almost all sizes. Their figures are of slowdowns
/// by size at 80 % load. Roughly is here a tenth, of the mean and of the 99th percentile.
#[test]
fn homa_is_as_pfabric_and_better_than_phost_and_ndp() {
    let rate = gbps(10);
    let shape = LeafSpine::paper(rate, [250; 4].map(Duration::from_ns));
    let sizes = Sizes::named(SizesName::Imc10);
    let poisson =
        Poisson { hosts: 144, rate, load_percent: 80, sizes: &sizes, count: 3_000, seed: 5 };
    let bins = |transport: Transport| {
        let topology = Topology::leaf_spine(&shape).expect("the network of the paper");
        let fabric = transport.fabric(topology, Switching::StoreAndForward).expect("it can be had");
        let flows = poisson.flows(fabric.frame).expect("a load that can be carried");
        let outcome = simulate(&fabric, transport.protocol(&fabric), &flows).expect("all finish");
        let bins = Summary::new(&fabric, &flows, &outcome, End::Received).bins;
        bins.into_iter().filter(|bin| bin.slowdown.count > 100).collect::<Vec<_>>()
    };
    let homa = bins(Transport::Homa);
    assert!(homa.len() >= 4, "most sizes have many messages");
    for (homa, pfabric) in homa.iter().zip(&bins(Transport::PFabric)) {
        let (homa, pfabric) = (homa.slowdown, pfabric.slowdown);
        assert!((homa.mean / pfabric.mean - 1.0).abs() < 0.1, "{homa:?}, {pfabric:?}");
        assert!(homa.p99 <= 1.1 * pfabric.p99, "{homa:?}, {pfabric:?}");
    }
    for worse in [Transport::Phost, Transport::Ndp] {
        for (homa, other) in homa.iter().zip(&bins(worse)) {
            let (homa, other) = (homa.slowdown, other.slowdown);
            let is_better = homa.mean < other.mean && homa.p99 < other.p99;
            assert!(is_better, "{homa:?}, {worse:?} {other:?}");
        }
    }
}
