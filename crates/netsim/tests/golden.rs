//! What runs give, to the last picosecond, for every transport: a change of this table is a change
//! of results, and says so in its commit.

use std::fmt::Write as _;

use measure::{BitsPerSec, Duration};
use netsim::traffic::Poisson;
use netsim::{
    End, LeafSpine, Protocol, Published, Summary, Switching, Topology, Transport, simulate,
};
use workload::{Sizes, SizesName};

const TABLE: &str = "\
pfabric: end 1076333581 ps, sum 18879336178 ps, \
 506455 events, 52100 packets, 809 drops, slowdown 1.0741
phost: end 1097472127 ps, sum 19319312394 ps, \
 561999 events, 52052 packets, 0 drops, slowdown 1.0979
fastpass: end 1135210675 ps, sum 21617598100 ps, \
 300732 events, 52052 packets, 0 drops, slowdown 2.9087
ndp: end 1066876265 ps, sum 20440950530 ps, \
 574344 events, 52052 packets, 0 drops, slowdown 1.2229
homa: end 1070731236 ps, sum 18538259854 ps, \
 495990 events, 52052 packets, 0 drops, slowdown 1.0666
dctcp: end 1067230994 ps, sum 20660973274 ps, \
 494190 events, 52052 packets, 127 drops, slowdown 1.3104
tcp: end 1144293518 ps, sum 20747506161 ps, \
 497023 events, 52052 packets, 625 drops, slowdown 1.3390
homa, together: end 1069683236 ps, sum 18136935135 ps, \
 493507 events, 52052 packets, 0 drops, slowdown 1.0603
2016 pfabric: end 1079380518 ps, sum 18604964494 ps, \
 1186077 events, 52126 packets, 23 drops, slowdown 1.0880
2016 phost: end 1459766775 ps, sum 31848631807 ps, \
 1352966 events, 52065 packets, 0 drops, slowdown 1.2577
2016 fastpass: end 1133062000 ps, sum 20901571591 ps, \
 1350505 events, 52059 packets, 0 drops, slowdown 2.3763
2016 dctcp: end 2457100374 ps, sum 56379892358 ps, \
 1272160 events, 52052 packets, 0 drops, slowdown 1.6483
";

#[test]
fn results_are_the_same_everywhere() {
    let rate = BitsPerSec::from_gbps(40);
    let delays = [10, 400, 400, 210].map(Duration::from_ns);
    let topology = Topology::leaf_spine(&LeafSpine::paper(rate, delays)).unwrap();
    let mut cases = Vec::new();
    for transport in Transport::ALL {
        let fabric = transport.fabric(topology.clone(), Switching::CutThrough).unwrap();
        let mut protocol = transport.protocol(&fabric);
        protocol.acknowledge_each();
        cases.push((transport.describe().name, protocol, fabric));
    }
    let homa = Transport::Homa.fabric(topology.clone(), Switching::CutThrough).unwrap();
    cases.push(("homa, together", Transport::Homa.protocol(&homa), homa));
    for (name, published) in [
        ("2016 pfabric", Published::PFabric),
        ("2016 phost", Published::PHost),
        ("2016 fastpass", Published::Fastpass),
        ("2016 dctcp", Published::Dctcp),
    ] {
        let fabric = published.fabric(rate, delays, Switching::CutThrough, Vec::new()).unwrap();
        cases.push((name, Protocol::AsPublished2016(published), fabric));
    }
    let sizes = Sizes::named(SizesName::Imc10);
    let poisson =
        Poisson { hosts: 144, rate, load_percent: 60, sizes: &sizes, count: 400, seed: 7 };
    let flows = poisson.flows(cases[0].2.frame).unwrap();
    let mut table = String::new();
    for (name, protocol, fabric) in cases {
        let outcome = simulate(&fabric, protocol, &flows).unwrap();
        let end = match name {
            "homa, together" => End::Received,
            _ => End::Acknowledged,
        };
        let summary = Summary::new(&fabric, &flows, &outcome, end);
        let both = flows.iter().zip(&outcome.records);
        let total: u64 = both.map(|(flow, record)| end.took(flow, record).unwrap().as_ps()).sum();
        writeln!(
            table,
            "{name}: end {} ps, sum {total} ps, {} events, {} packets, {} drops, slowdown {:.4}",
            outcome.end.as_ps(),
            outcome.event_count,
            outcome.delivered_packets,
            summary.dropped_packets,
            summary.slowdown.mean,
        )
        .unwrap();
    }
    assert_eq!(table, TABLE, "\n{table}");
}
