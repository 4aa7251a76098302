//! What SCSI initiators ask of a disk, and what it answers, without I/O.
//!
//! Sections are those of SPC-4 (INCITS 513), SBC-3 (INCITS 514) and SAM-5 (INCITS 515).
//!
//! ```text
//! CDB ─► Command ─► LogicalUnit::begin ─┬─► Answer ────────────────────────────────► Outcome
//!                                       ├─► Parameters ─► (data) ─► parameters ─────►   ▲
//!                                       └─► Plan ─► (data, a device) ─► Outcome ────────┘
//!
//! sense        how a command ended                              SAM-5 5.3; SPC-4 4.5
//! lun          which logical unit is meant                      SAM-5 4.7; SPC-4 6.33
//! opcodes      the commands there are, and their fields         SPC-4 6.35
//! cdb          command descriptor blocks read once              SPC-4 6; SBC-3 5
//! inquiry      what a logical unit says of itself               SPC-4 6.6, 7.8; SBC-3 6.6
//! ports        through which ports it is reached, and how well    SPC-4 5.15.2, 6.37
//! mode         what can be set                                  SPC-4 6.11, 7.5; SBC-3 6.5
//! log          what it has done, and how well it is              SPC-4 6.8, 7.3
//! reservation
//!              which initiators may read and write              SPC-4 5.13, 6.15, 6.16
//! demands      what a command needs of reservations and ports
//! attention    what an initiator is told before anything else   SAM-5 5.14
//! plan         what a command takes of a device                 SBC-3 5
//! outcome      how a command ends, and what is done before that
//! unit         all of these for one logical unit
//! ask, found   an initiator's end: commands as it writes them, answers as it reads them
//! layout       where the fields of all of these are, for both ends
//! iscsi        SCSI over TCP                                    RFC 7143
//! ```
//!
//! Invariants:
//! - Nothing is allocated for what the wire says: data is handed on in the pieces it came in, and
//!   every length is checked before the first of them.
//! - The same code runs over a socket and over a simulated network.
//! - What a peer sends can end its connection, never the process: no input panics.

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
