//! DCTCP: TCP that cuts its window by the share of packets that switches marked.

use crate::error::SimError;
use crate::fabric::{Fabric, Switching};
use crate::queue::Discipline;
use crate::topology::Topology;
use crate::transport::definition::{Definition, Description};
use crate::transport::tcp::TcpConfig;

/// Packets in a queue from which DCTCP's switches mark: half of a port's buffer. RFC 8257 §4 wants
/// more than a seventh of the round trip, which is ten packets of a link of 400 Gb/s between
/// switches, and Alizadeh et al. 2010, §3.5 more than bursts: packets of sixteen senders that are
/// sprayed over four links come together eight at a time now and then, and are no congestion.
pub const DCTCP_MARK_PACKETS: u32 = 12;

/// DCTCP. Its ends are TCP's, with `has_marks`.
#[derive(Debug)]
pub(crate) struct Dctcp;

impl Definition for Dctcp {
    type Settings = TcpConfig;

    const DESCRIPTION: Description = Description {
        name: "dctcp",
        summary: "TCP that cuts its window by the share of packets that switches marked",
        paper: "Alizadeh et al., SIGCOMM 2010; RFC 8257",
        omits: "delayed acknowledgements, tail loss probes, closing",
    };

    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError> {
        Ok(Fabric::new(topology, switching, Discipline::Mark { packets: DCTCP_MARK_PACKETS }))
    }

    fn settings(fabric: &Fabric) -> TcpConfig {
        TcpConfig::for_fabric(fabric, true)
    }
}
