//! One page fault as a row, and the columns of many.

use std::fmt;
use std::str::FromStr;

use crate::RecordError;

/// How a fault was handled, or another event of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// First touch of a new page: no transfer.
    FirstTouch,
    /// A page of far memory was fetched.
    Fetch,
    /// A local page was touched that had been unmapped to see whether it is used: no transfer.
    Soft,
    /// A page was fetched ahead of use.
    Prefetch,
    /// First touch of a page fetched ahead of use.
    Arrived,
    /// A page that had been written to was evicted to far memory: no fault.
    WriteBack,
    /// The program freed the page: no fault, and only in records of how pages are used.
    Freed,
}

/// One page fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fault {
    /// Time of the fault, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of the managed process, from zero; numbers are reused when a process has ended.
    pub process_slot: u32,
    /// Page of 4096 bytes: address in its process, or place in the swap space, divided by 4096; in
    /// records of how pages are used, a number of its own.
    pub page: u64,
    /// What happened: `first_touch`, `fetch`, `soft`, `prefetch`, `arrived`, `write_back` or
    /// `freed`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: FaultKind,
    /// Whether the access was a write.
    pub write: bool,
    /// Thread that touched the page, as the kernel numbers it; 0 if not recorded.
    pub thread: u32,
    /// Wait for a local frame and for the link, in nanoseconds.
    pub wait_ns: u32,
    /// Requested time of the fault, in nanoseconds.
    pub requested_ns: u32,
    /// Measured time of the fault, in nanoseconds; 0 if not measured, 2^32 - 1 if 4.3 s or more.
    pub measured_ns: u32,
}

/// Key of the note that says why nothing may be concluded from the faults.
pub(crate) const INVALID: &str = "invalid";

/// Value of the note `schema` in a file of faults.
pub const FAULTS_SCHEMA: &str = "afar.faults/1";

/// The schema, one column for each field of [`Fault`] in the same order.
pub(crate) const SCHEMA: &str = "message fault {
    REQUIRED INT64 time_ns (INTEGER(64,false));
    REQUIRED INT32 process_slot (INTEGER(32,false));
    REQUIRED INT64 page (INTEGER(64,false));
    REQUIRED BYTE_ARRAY kind (STRING);
    REQUIRED BOOLEAN write;
    REQUIRED INT32 thread (INTEGER(32,false));
    REQUIRED INT32 wait_ns (INTEGER(32,false));
    REQUIRED INT32 requested_ns (INTEGER(32,false));
    REQUIRED INT32 measured_ns (INTEGER(32,false));
}";

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::FirstTouch,
        Self::Fetch,
        Self::Soft,
        Self::Prefetch,
        Self::Arrived,
        Self::WriteBack,
        Self::Freed,
    ];

    /// The text in the column `kind`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstTouch => "first_touch",
            Self::Fetch => "fetch",
            Self::Soft => "soft",
            Self::Prefetch => "prefetch",
            Self::Arrived => "arrived",
            Self::WriteBack => "write_back",
            Self::Freed => "freed",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FaultKind {
    type Err = RecordError;

    fn from_str(text: &str) -> Result<Self, RecordError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| RecordError::UnknownKind(text.to_owned()))
    }
}
