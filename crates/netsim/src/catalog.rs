//! The transports by name: what each is, which paper it follows, what is left out of it here, and
//! the network and settings it asks for.

use crate::error::SimError;
use crate::fabric::{Fabric, Switching};
use crate::protocol::{DCTCP_MARK_PACKETS, NDP_QUEUE_PACKETS, Protocol};
use crate::queue::Discipline;
use crate::topology::Topology;
use crate::transport::{
    FastpassConfig, HomaConfig, NdpConfig, PFabricConfig, PhostConfig, TcpConfig,
};

/// A transport as its own paper has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// pFabric.
    PFabric,
    /// pHost.
    Phost,
    /// Fastpass.
    Fastpass,
    /// NDP.
    Ndp,
    /// Homa.
    Homa,
    /// DCTCP.
    Dctcp,
    /// TCP.
    Tcp,
}

/// What there is to say of a transport, in a line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// How it is called on a command line.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Who defined it, and where.
    pub paper: &'static str,
    /// What is left out here.
    pub omits: &'static str,
}

impl Transport {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::PFabric,
        Self::Phost,
        Self::Fastpass,
        Self::Ndp,
        Self::Homa,
        Self::Dctcp,
        Self::Tcp,
    ];

    /// What there is to say of it.
    #[must_use]
    pub const fn describe(self) -> Description {
        match self {
            Self::PFabric => Description {
                name: "pfabric",
                summary: "switches send and drop by what flows have left; hosts start at line rate",
                paper: "Alizadeh et al., SIGCOMM 2013",
                omits: "limits on windows, as there",
            },
            Self::Phost => Description {
                name: "phost",
                summary: "receivers hand out a token in the time of a packet; senders spend them",
                paper: "Gao et al., CoNEXT 2015",
                omits: "ways to choose other than the flow that lacks least",
            },
            Self::Fastpass => Description {
                name: "fastpass",
                summary: "an arbiter says when each packet leaves and which way it takes",
                paper: "Perry et al., SIGCOMM 2014",
                omits: "ways by edge colouring, a second arbiter, several flows in a request",
            },
            Self::Ndp => Description {
                name: "ndp",
                summary: "switches cut payloads off instead of dropping packets; receivers pull",
                paper: "Handley et al., SIGCOMM 2017",
                omits: "priorities among a receiver's flows, ways that are given up",
            },
            Self::Homa => Description {
                name: "homa",
                summary: "short messages at once, long ones as receivers grant; eight priorities",
                paper: "Montazeri et al., SIGCOMM 2018",
                omits: "replies, BUSY, marked incasts, an oldest message out of turn",
            },
            Self::Dctcp => Description {
                name: "dctcp",
                summary: "TCP that cuts its window by the share of packets that switches marked",
                paper: "Alizadeh et al., SIGCOMM 2010; RFC 8257",
                omits: "delayed acknowledgements, tail loss probes, closing",
            },
            Self::Tcp => Description {
                name: "tcp",
                summary: "handshake, slow start, congestion avoidance, losses found by time",
                paper: "RFC 5681, RFC 6298, RFC 8985",
                omits: "delayed acknowledgements, tail loss probes, pacing, closing",
            },
        }
    }

    /// The transport that is called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|transport| transport.describe().name == name)
    }

    /// `topology` with the queues that it asks for, and the packets and buffers of Gao et al. §4.
    ///
    /// # Errors
    /// If it cannot be had on that topology.
    pub fn fabric(self, topology: Topology, switching: Switching) -> Result<Fabric, SimError> {
        let discipline = match self {
            Self::PFabric => Discipline::Urgency,
            Self::Phost | Self::Fastpass | Self::Homa => Discipline::Levels,
            Self::Ndp => Discipline::Trim { packets: NDP_QUEUE_PACKETS },
            Self::Dctcp => Discipline::Mark { packets: DCTCP_MARK_PACKETS },
            Self::Tcp => Discipline::DropTail,
        };
        let topology = match self {
            Self::Fastpass if topology.arbiter().is_none() => topology.with_arbiter_as_host()?,
            _ => topology,
        };
        let fabric = Fabric::new(topology, switching, discipline);
        Ok(if self == Self::Homa { fabric.with_pools() } else { fabric })
    }

    /// Its settings for `fabric`.
    #[must_use]
    pub fn protocol(self, fabric: &Fabric) -> Protocol {
        match self {
            Self::PFabric => Protocol::PFabric(PFabricConfig::for_fabric(fabric)),
            Self::Phost => Protocol::Phost(PhostConfig::for_fabric(fabric)),
            Self::Fastpass => Protocol::Fastpass(FastpassConfig::for_fabric(fabric)),
            Self::Ndp => Protocol::Ndp(NdpConfig::for_fabric(fabric)),
            Self::Homa => Protocol::Homa(HomaConfig::for_fabric(fabric)),
            Self::Dctcp => Protocol::Tcp(TcpConfig::for_fabric(fabric, true)),
            Self::Tcp => Protocol::Tcp(TcpConfig::for_fabric(fabric, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_has_a_name_of_its_own() {
        for &transport in Transport::ALL {
            assert_eq!(Transport::named(transport.describe().name), Some(transport));
        }
        assert_eq!(Transport::named("swift"), None);
    }
}
