//! What the ends of a flow do: a module and a row for each transport.
//!
//! A module has its settings, its ends and its description (`definition`). A new transport is a
//! file and a row of `transports!`.

mod datagrams;
mod dctcp;
mod definition;
mod fastpass;
mod homa;
mod ndp;
mod pfabric;
mod phost;
mod tcp;

use datagrams::Datagrams;
pub use dctcp::DCTCP_MARK_PACKETS;
use definition::Definition;
pub use definition::Description;
use definition::Settings;
pub use fastpass::FastpassConfig;
pub use homa::HomaConfig;
pub use ndp::{NDP_QUEUE_PACKETS, NdpConfig};
pub use pfabric::PFabricConfig;
pub use phost::PhostConfig;
pub use tcp::TcpConfig;

use crate::ends::Run;
use crate::error::SimError;
use crate::fabric::{Fabric, Switching};
use crate::parameter::{Parameter, Slot};
use crate::published::Published;
use crate::topology::Topology;

/// Makes the types that enumerate transports, and the code that distinguishes them, of its rows.
macro_rules! transports {
    ($($(#[$doc:meta])+ $name:ident($settings:ty): $definition:ty;)+) => {
        /// A transport as its own paper has it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Transport {
            $($(#[$doc])+ $name,)+
        }

        /// What the ends of flows do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Protocol {
            /// All packets at once, none twice: the network without a transport.
            Datagrams,
            /// As the simulator behind Gao et al. §4 had it.
            AsPublished2016(Published),
            $($(#[$doc])+ $name($settings),)+
        }

        impl Transport {
            /// All transports.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Name, summary, paper and omissions.
            #[must_use]
            pub const fn describe(self) -> Description {
                match self {
                    $(Self::$name => <$definition as Definition>::DESCRIPTION,)+
                }
            }

            /// `topology` with the queues that the transport needs, and the packets and buffers of
            /// Gao et al. §4.
            ///
            /// # Errors
            /// If the transport cannot run on that topology.
            pub fn fabric(
                self,
                topology: Topology,
                switching: Switching,
            ) -> Result<Fabric, SimError> {
                match self {
                    $(Self::$name => <$definition>::fabric(topology, switching),)+
                }
            }

            /// The transport with its settings for `fabric`.
            #[must_use]
            pub fn protocol(self, fabric: &Fabric) -> Protocol {
                match self {
                    $(Self::$name => Protocol::$name(<$definition>::settings(fabric)),)+
                }
            }
        }

        impl Protocol {
            /// Every parameter, with its value to read or set; empty for datagrams and
            /// as-published-2016.
            pub fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
                match self {
                    Self::Datagrams | Self::AsPublished2016(_) => Vec::new(),
                    $(Self::$name(settings) => settings.slots(),)+
                }
            }

            /// Makes receivers acknowledge the end of each flow at once, where the transport would
            /// delay that: for [`crate::End::Acknowledged`].
            pub fn acknowledge_each(&mut self) {
                match self {
                    Self::Datagrams | Self::AsPublished2016(_) => {}
                    $(Self::$name(settings) => settings.acknowledge_each(),)+
                }
            }

            /// Calls `run` with the ends of `flows` flows in `fabric`.
            pub(crate) fn run<R: Run>(
                self,
                fabric: &Fabric,
                flows: usize,
                run: R,
            ) -> Result<R::Outcome, SimError> {
                match self {
                    Self::Datagrams => run.run(Datagrams::new(flows)),
                    Self::AsPublished2016(published) => published.run(fabric, flows, run),
                    $(Self::$name(settings) => run.run(settings.ends(fabric, flows)?),)+
                }
            }
        }
    };
}

transports! {
    /// pFabric.
    PFabric(PFabricConfig): pfabric::PFabric;
    /// pHost.
    Phost(PhostConfig): phost::Phost;
    /// Fastpass.
    Fastpass(FastpassConfig): fastpass::Fastpass;
    /// NDP.
    Ndp(NdpConfig): ndp::Ndp;
    /// Homa.
    Homa(HomaConfig): homa::Homa;
    /// DCTCP.
    Dctcp(TcpConfig): dctcp::Dctcp;
    /// TCP.
    Tcp(TcpConfig): tcp::Tcp;
}

impl Transport {
    /// The transport whose name is `name`; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|transport| transport.describe().name == name)
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
