//! A packet-level datacenter network: flows into packets, queues and completion times.
//!
//! ```text
//! Flow ─► Transport ─► Packet ─► port: queue ─► link ─► switch: route ─► … ─► host ─► FlowRecord
//!             ▲                    each adds events; none calls another        │
//!             └────────────── Events: (time, phase, sequence) ◄────────────────┘
//! ```
//!
//! A transport is the two ends of every flow (`ends::Ends`). It adds packets and timers, is called
//! when a host's link that it awaits is free, and knows nothing of ports. What switches do for it
//! is a [`Discipline`] of their queues.
//!
//! Invariants, mostly absences:
//! 1. No clock, no thread, no file, no global: the same fabric, protocol and flows give the same
//!    outcome on every machine.
//! 2. Time is a whole number of picoseconds, and the order of events is total.
//! 3. Bytes are conserved at every event.
//! 4. A run in which a flow never finishes has no result but an error.

mod error;
mod flow;
mod topology;
pub mod traffic;

mod asking;
pub mod demand;
mod ends;
mod event;
mod heap;
mod packet;
mod parameter;
mod queue;

mod fabric;
mod moment;
mod net;
mod port;
mod slots;
mod stale;

mod ideal;
mod published;
mod round_trip;
mod transport;

mod sim;
mod summary;
mod trace;

pub use error::SimError;
pub use fabric::{BUFFER, Balance, Fabric, PortConfig, PortStats, Requests, Switching};
pub use flow::{Exchange, Flow, FlowRecord, Frame};
pub use ideal::Ideal;
pub use net::{PortInterval, PortSeries, Samples};
pub use packet::Kind as PacketKind;
pub use parameter::{Parameter, Slot};
pub use published::Published;
pub use queue::Discipline;
pub use sim::{
    Observe, Observed, Outcome, Progress, Span, Watch, simulate, simulate_observed,
    simulate_sampled, simulate_stranded, simulate_watched,
};
pub use summary::{Bin, End, Slowdown, Summary};
pub use topology::{LeafSpine, Link, Node, Topology};
pub use trace::{Fate, Hop, Trace, TracedPacket};
pub use transport::{
    DCTCP_MARK_PACKETS, Description, FastpassConfig, HomaConfig, NDP_QUEUE_PACKETS, NdpConfig,
    PFabricConfig, PhostConfig, Protocol, TcpConfig, Transport,
};
