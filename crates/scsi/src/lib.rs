//! SCSI commands of initiators to a disk, and its answers, without I/O.
//!
//! Sections are those of SPC-4 (INCITS 513), SBC-3 (INCITS 514) and SAM-5 (INCITS 515).
//!
//! ```text
//! CDB ─► Command ─► LogicalUnit::begin ─┬─► Answer ────────────────────────────────► Outcome
//!                                       ├─► Parameters ─► (data) ─► parameters ─────►   ▲
//!                                       └─► Plan ─► (data, a device) ─► Outcome ────────┘
//!
//! sense        how a command ended                              SAM-5 5.3; SPC-4 4.5
//! lun          addresses of logical units                       SAM-5 4.7; SPC-4 6.33
//! opcodes      supported commands and their fields              SPC-4 6.35
//! cdb          decoding of command descriptor blocks            SPC-4 6; SBC-3 5
//! inquiry      the description of a logical unit                SPC-4 6.6, 7.8; SBC-3 6.6
//! ports        target ports and their access states             SPC-4 5.15.2, 6.37
//! mode         mode pages: settings of a logical unit           SPC-4 6.11, 7.5; SBC-3 6.5
//! log          log pages: statistics and health                 SPC-4 6.8, 7.3
//! reservation
//!              which initiators may read and write              SPC-4 5.13, 6.15, 6.16
//! demands      whether reservations and ports allow a command
//! attention    unit attentions                                  SAM-5 5.14
//! plan         the work of a device for a command               SBC-3 5
//! outcome      the steps and the outcome of a command
//! unit         all of these for one logical unit
//! ask, found   an initiator's end: encoding of commands, decoding of answers
//! layout       the places of all fields, for both ends
//! iscsi        SCSI over TCP                                    RFC 7143
//! ```
//!
//! Invariants:
//! - No length on the wire causes an allocation: data is passed on in the pieces in which it came,
//!   and every length is checked before the first piece.
//! - The same code runs over a socket and over a simulated network.
//! - Input of a peer can end its connection, never the process: no input panics.

pub mod ask;
mod attention;
mod cdb;
mod demands;
pub mod found;
mod inquiry;
pub mod iscsi;
mod layout;
mod log;
mod lun;
mod mode;
mod opcodes;
mod outcome;
mod plan;
mod ports;
mod reservation;
mod sense;
mod unit;

pub use attention::{Attention, Attentions};
pub use cdb::{Check, Command, Extent, PageControl};
pub use inquiry::{BlockLimits, UnitData, UnitPort};
pub use log::{LogAsked, LogFigures};
pub use lun::{LUNS_MAX, Lun, report_luns};
pub use mode::ModeState;
pub use opcodes::ReportedCodes;
pub use outcome::{Nexus, Outcome, Step, absent};
pub use plan::{
    Operation, Plan, Residual, Transfer, UnmapRange, compare, is_zero, or_into, read_write,
    unmap_ranges,
};
pub use ports::PortState;
pub use reservation::{
    Elsewhere, PersistentReservations, TRANSPORT_ID_BYTES_MAX, TransportId, Way,
};
pub use sense::{Field, Sense, SenseKey, Status};
pub use unit::{LogicalUnit, ResetKind};
