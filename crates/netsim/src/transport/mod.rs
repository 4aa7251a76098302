//! What the ends of a flow do.

mod datagrams;
mod ends;
mod fastpass;
mod homa;
mod ndp;
mod pfabric;
mod phost;
mod tcp;

pub(crate) use datagrams::Datagrams;
pub(crate) use ends::Ends;
use ends::acknowledge;
pub use fastpass::FastpassConfig;
pub(crate) use fastpass::{Fastpass, SCHEDULE_BYTES};
pub(crate) use homa::Homa;
pub use homa::HomaConfig;
pub(crate) use ndp::Ndp;
pub use ndp::NdpConfig;
pub(crate) use pfabric::PFabric;
pub use pfabric::PFabricConfig;
pub(crate) use phost::Phost;
pub use phost::PhostConfig;
pub(crate) use tcp::Tcp;
pub use tcp::TcpConfig;
