//! Random networks, buffers, loads and transports: every flow finishes, none faster than alone.

use measure::{Bytes, Duration};
use netsim::{Balance, Exchange, Flow, Ideal, LeafSpine, Switching, Topology, Transport, simulate};
use workload::Draw;

use crate::support::{flow, gbps};

const SEEDS: u64 = 10_000;

fn topology(draw: &mut Draw) -> Topology {
    let delay = |draw: &mut Draw| Duration::from_ns(draw.below(1_000));
    let rate = gbps([1, 10, 25, 40, 100][usize::try_from(draw.below(5)).unwrap_or(0)]);
    let small = |draw: &mut Draw, most| 1 + u32::try_from(draw.below(most)).unwrap_or(0);
    let built = match draw.below(3) {
        0 => Topology::single_switch(1 + small(draw, 8), rate, delay(draw)),
        1 => Topology::fat_tree(4, rate, delay(draw)),
        _ => Topology::leaf_spine(&LeafSpine {
            racks: small(draw, 4),
            hosts_per_rack: 1 + small(draw, 5),
            spines: small(draw, 3),
            host_rate: rate,
            spine_rate: gbps(1 + draw.below(100)),
            delays: [(); 4].map(|()| delay(draw)),
        }),
    };
    built.expect("shapes like these can be built")
}

#[test]
fn whatever_the_network_every_flow_finishes() {
    for seed in 0..SEEDS {
        let mut draw = Draw::new(seed);
        let topology = topology(&mut draw);
        let hosts = topology.host_count();
        let kind = draw.below(Transport::ALL.len() as u64);
        let transport = Transport::ALL[usize::try_from(kind).unwrap_or(0)];
        let switching = [Switching::CutThrough, Switching::StoreAndForward];
        let switching = switching[usize::from(draw.below(2) == 1)];
        let mut fabric = transport.fabric(topology, switching).expect("it can be had anywhere");
        fabric.switch_port.buffer = Some(Bytes::new(1500 + draw.below(40_000)));
        fabric.balance = if draw.below(2) == 0 { Balance::Spray } else { Balance::Flow };
        let protocol = transport.protocol(&fabric);
        let span = 1 + draw.below(500_000_000);
        let host = |draw: &mut Draw, most| u32::try_from(draw.below(u64::from(most))).unwrap_or(0);
        let flows: Vec<_> = (0..1 + draw.below(60))
            .map(|_| {
                let src = host(&mut draw, hosts);
                let dst = (src + 1 + host(&mut draw, hosts - 1)) % hosts;
                let most = 1 << draw.below(19);
                let exchange = match draw.below(3) {
                    0 => Exchange::OneWay,
                    1 => Exchange::Read,
                    _ => Exchange::Write,
                };
                Flow { exchange, ..flow(draw.below(span), src, dst, 1 + draw.below(most)) }
            })
            .collect();
        let outcome = simulate(&fabric, protocol, &flows)
            .unwrap_or_else(|error| panic!("seed {seed}, {protocol:?}: {error}"));
        if matches!(transport, Transport::Ndp | Transport::Fastpass) {
            // Its senders spray whatever the network does.
            fabric.balance = Balance::Spray;
        }
        let ideal = Ideal::new(&fabric);
        for (record, flow) in outcome.records.iter().zip(&flows) {
            let took = record.received.expect("it finished") - flow.start;
            let mut least = ideal.received(flow);
            if record.sent > fabric.frame.packets(flow.bytes) {
                // A full packet came last in place of the short one. With cut-through its header
                // goes on from a slow link while the rest is still to come.
                let path = fabric.topology.path(flow.src, flow.dst);
                let full = Bytes::new(u64::from(fabric.frame.full()));
                let slowest = path.iter().map(|link| link.rate.transfer_time(full)).max();
                least = least.saturating_sub(slowest.unwrap_or_default());
            }
            assert!(took >= least, "seed {seed}, {transport:?}: {flow:?} took {took} of {least}");
        }
    }
}
