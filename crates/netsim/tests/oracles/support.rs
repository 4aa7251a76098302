//! Networks and flows of these tests.

use measure::{BitsPerSec, Bytes, Duration, Instant};
use netsim::{
    Balance, Discipline, Fabric, Flow, Frame, LeafSpine, PortConfig, Requests, Switching, Topology,
};

/// A network whose ports hold whatever comes.
pub(crate) fn fabric(topology: Topology, switching: Switching) -> Fabric {
    let port = PortConfig { discipline: Discipline::DropTail, buffer: None };
    Fabric {
        topology,
        switching,
        balance: Balance::Spray,
        frame: Frame::default(),
        requests: Requests::default(),
        host_port: port,
        switch_port: port,
        spray_phase: Vec::new(),
        has_stale_marks: false,
    }
}

pub(crate) fn gbps(gigabits: u64) -> BitsPerSec {
    BitsPerSec::from_gbps(gigabits)
}

/// One of each kind, with rates that do not divide a byte evenly, too.
pub(crate) fn topologies() -> Vec<Topology> {
    let delays = [10, 400, 390, 210].map(Duration::from_ns);
    let uneven = LeafSpine {
        racks: 3,
        hosts_per_rack: 4,
        spines: 2,
        host_rate: gbps(25),
        spine_rate: gbps(30),
        delays,
    };
    let all = [
        Topology::single_switch(3, gbps(10), Duration::from_ns(500)),
        Topology::leaf_spine(&LeafSpine::paper(gbps(100), delays)),
        Topology::leaf_spine(&uneven),
        Topology::fat_tree(4, gbps(40), Duration::from_ns(200)),
    ];
    all.map(|topology| topology.expect("these can be built")).into()
}

pub(crate) fn flow(start_ps: u64, src: u32, dst: u32, bytes: u64) -> Flow {
    Flow { start: Instant::from_ps(start_ps), src, dst, bytes, ..Flow::default() }
}

/// How long `bytes` take at `rate`.
pub(crate) fn time(rate: BitsPerSec, bytes: u64) -> Duration {
    rate.transfer_time(Bytes::new(bytes))
}
