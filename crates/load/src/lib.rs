//! Load for key-value stores over RESP (Redis) and the memcached text protocol.
//!
//! ```text
//! workload::Requests ─► Source ─► Worker: pick a connection ─► protocol ─► socket
//!                                   ▲                                        │
//!                     Tally ◄─ time, verdict ◄─ protocol ◄───────────────────┘
//! ```
//!
//! One worker is one thread with connections, requests and a tally of its own. Running workers
//! share only a counter of answers and a flag to stop, and lengths of values that grow.
//!
//! Invariants:
//! 1. `protocol` turns commands into bytes and bytes into replies: no sockets, no clock.
//! 2. The time of a request begins when it was meant to be sent. In an open loop that is its
//!    arrival, however late a connection was free for it, so a server that pauses is seen by every
//!    request that arrived meanwhile (no coordinated omission).
//! 3. A request completes once: answered, refused, or lost with its connection.

mod config;
mod connection;
mod growth;
mod keys;
mod protocol;
mod run;
mod source;
mod tally;
mod worker;

pub use config::{Address, Growth, LoadConfig, Pacing, Target};
pub use growth::Values;
pub use protocol::{Protocol, ProtocolError};
pub use run::{LoadError, Progress, Stop, fill, run, run_on};
pub use tally::{OperationTally, Tally};
