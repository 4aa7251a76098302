//! Flows of a network: what was requested, and what became of it.

use std::fmt;
use std::str::FromStr;

use crate::RecordError;

/// What starts a flow, and when it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowExchange {
    /// The sender sends bytes.
    OneWay,
    /// The receiver requests bytes, and is done when it has every one.
    Read,
    /// The sender sends bytes, and is done when it knows that the receiver has every one.
    Write,
}

impl FlowExchange {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::OneWay, Self::Read, Self::Write];

    /// The text in the column `exchange`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneWay => "one-way",
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for FlowExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FlowExchange {
    type Err = RecordError;

    fn from_str(text: &str) -> Result<Self, RecordError> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| RecordError::UnknownExchange(text.to_owned()))
    }
}

/// A flow as it is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowStart {
    /// Start of the flow, in picoseconds since the start of the run.
    pub start_ps: u64,
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// Payload of the flow.
    pub bytes: u64,
    /// Kind of exchange: `one-way`, `read` or `write`; `None` in lists that do not name it.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub exchange: Option<FlowExchange>,
}

/// A flow that has finished.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowRow {
    /// The flow as it was requested.
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub flow: FlowStart,
    /// Completion time: from start to end of the flow, in picoseconds.
    pub completion_ps: u64,
    /// Completion time of the same flow alone in the network, in picoseconds.
    pub ideal_ps: u64,
    /// Completion time over that of the same flow alone in the network.
    pub slowdown: f64,
    /// Data packets sent for the flow, repeated ones included.
    pub sent_packets: u32,
    /// Packets of the flow that were dropped, of data and of control.
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
    REQUIRED BYTE_ARRAY exchange (STRING);
}";
