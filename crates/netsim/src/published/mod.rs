//! The variant `as-published-2016`: the transports of the simulator behind Gao et al. §4, rule by
//! rule, so that their figures can be reproduced and compared with the default transports.
//!
//! Several rules are not those of the transports' own papers. Each module lists the differences;
//! the defaults are in `transport`.

mod fastpass;
mod phost;
mod sort;
mod window;

use measure::{BitsPerSec, Bytes, Duration};

use crate::ends::Run;
use crate::error::SimError;
use crate::fabric::{Balance, Fabric, PortConfig, Requests, Switching};
use crate::flow::Frame;
use crate::queue::Discipline;
use crate::topology::{LeafSpine, Topology};

use fastpass::Fastpass;
use phost::PHost;
pub(crate) use sort::sort;
use window::{Window, WindowKind};

/// The transports of Gao et al. §4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// pFabric: window 12 to 15, timeout 45 µs.
    PFabric,
    /// pHost: 8 free tokens, 8 tokens out.
    PHost,
    /// Fastpass: epochs of 8 packets, an arbiter at the first rack.
    Fastpass,
    /// TCP: window 1 to 15, timeout 45 µs.
    Tcp,
    /// DCTCP: window 2, marks from 8 packets, timeout 45 µs.
    Dctcp,
}

/// Buffer of every port, hosts' included: 24 full packets and a little.
const BUFFER: Bytes = Bytes::new(36_864);
/// Queue length from which DCTCP's ports mark, in packets.
const MARK_PACKETS: u32 = 8;

impl Published {
    /// The network of §4 for this transport; `delays` and `switching` differ between the figures.
    ///
    /// `spray_phase` is where the round robin of each host begins; it was random.
    ///
    /// # Errors
    /// Never for the network of §4.
    pub fn fabric(
        self,
        host_rate: BitsPerSec,
        delays: [Duration; 4],
        switching: Switching,
        spray_phase: Vec<u32>,
    ) -> Result<Fabric, SimError> {
        let discipline = match self {
            Self::PFabric | Self::PHost | Self::Fastpass => Discipline::Urgency,
            Self::Tcp => Discipline::DropTail,
            Self::Dctcp => Discipline::Mark { packets: MARK_PACKETS },
        };
        let port = PortConfig { discipline, buffer: Some(BUFFER) };
        let mut topology = Topology::leaf_spine(&LeafSpine::paper(host_rate, delays))?;
        if self == Self::Fastpass {
            topology = topology.with_arbiter(0, host_rate, [delays[0], delays[3]])?;
        }
        Ok(Fabric {
            topology,
            switching,
            balance: Balance::Spray,
            frame: Frame::default(),
            requests: Requests::default(),
            host_port: port,
            switch_port: port,
            spray_phase,
            has_stale_marks: self == Self::Dctcp,
        })
    }

    /// Calls `run` with the ends of `flows` flows in `fabric`.
    pub(crate) fn run<R: Run>(
        self,
        fabric: &Fabric,
        flows: usize,
        run: R,
    ) -> Result<R::Outcome, SimError> {
        let window = |kind| Window::new(kind, flows);
        match self {
            Self::PFabric => run.run(window(WindowKind::PFabric)),
            Self::Fastpass => {
                let arbiter = fabric.topology.arbiter().ok_or(SimError::NoArbiter)?;
                run.run(Fastpass::new(flows, arbiter))
            }
            Self::PHost => run.run(PHost::new(flows, fabric.topology.host_count())),
            Self::Tcp => run.run(window(WindowKind::Tcp)),
            Self::Dctcp => run.run(window(WindowKind::Dctcp)),
        }
    }
}
