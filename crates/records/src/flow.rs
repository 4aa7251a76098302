//! Flows of a network: what was asked, and what came of it.

/// What is asked of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowStart {
    /// Picoseconds since the start of the run.
    pub start_ps: u64,
    /// The sending host.
    pub src: u32,
    /// The receiving host.
    pub dst: u32,
    /// Payload.
    pub bytes: u64,
}

/// A flow that has finished.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowRow {
    /// What was asked.
    pub flow: FlowStart,
    /// From its start to its end, in picoseconds.
    pub completion_ps: u64,
    /// The same alone in the network.
    pub ideal_ps: u64,
    /// One by the other.
    pub slowdown: f64,
    /// Data packets sent, repeated ones included.
    pub sent_packets: u32,
    /// Packets dropped, of any kind.
    pub dropped_packets: u32,
}

/// The schema, one column for each field in the same order.
pub(crate) const SCHEMA: &str = "message flow {
    REQUIRED INT64 start_ps (INTEGER(64,false));
    REQUIRED INT32 src (INTEGER(32,false));
    REQUIRED INT32 dst (INTEGER(32,false));
    REQUIRED INT64 bytes (INTEGER(64,false));
    REQUIRED INT64 completion_ps (INTEGER(64,false));
    REQUIRED INT64 ideal_ps (INTEGER(64,false));
    REQUIRED DOUBLE slowdown;
    REQUIRED INT32 sent_packets (INTEGER(32,false));
    REQUIRED INT32 dropped_packets (INTEGER(32,false));
}";
