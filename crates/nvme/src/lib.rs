//! NVMe over TCP, both ends, without I/O: no socket, no clock, no thread.
//!
//! Sections are those of the NVM Express TCP Transport Specification 1.1 ("TCP") and of the NVM
//! Express Base Specification 2.1 ("Base").
//!
//! ```text
//! pdu      headers of PDUs                                TCP 3.6
//! decoder  bytes into headers and pieces of data          TCP 3.3, 3.5
//! command, entry  submission queue entries, both ways   Base 4.1, 6; NVM Command Set 3
//! status   the status of a command                        Base 4.2.3
//! controller  properties and admin commands              Base 3.1, 5
//! dataset  ranges of Dataset Management                   NVM Command Set 3.2.3
//! host     a host's end of a connection                  TCP 3.1, 3.4
//! queue    a controller's end of a connection             TCP 3.1, 3.4
//! property the registers of a controller                  Base 3.1.4, 6.4, 6.6
//! identify Identify data                                  Base 5.1.13
//! instance instances of a controller                      TP8028
//! log      log pages                                      Base 5.1.12
//! found    decoding of both for a host                    Base 5.1.12, 5.1.13
//! connect  the data of Connect                            Base 6.3
//! reservation  reservations of a namespace               Base 8.1.22
//! layout   the places of all fields, for both ends
//! ```
//!
//! Invariants:
//! - No length on the wire causes an allocation: data is passed on in the pieces in which it came,
//!   and every length is checked before the first piece.
//! - The same code runs over a socket and over a simulated network.
//! - Input of a peer can end its connection, never the process: no input panics.

mod command;
mod connect;
mod controller;
mod dataset;
mod decoder;
mod entry;
mod found;
mod host;
mod identify;
mod instance;
mod layout;
pub mod log;
mod pdu;
mod property;
mod queue;
mod reservation;
mod slots;
mod status;

pub use command::{
    Admin, Command, Completion, Data, Direction, Fabrics, Fused, Io, Property, QueueKind, Range,
    Submission,
};
pub use connect::{CONNECT_DATA_BYTES, ConnectData, NQN_BYTES_MAX, Nqn};
pub use controller::{Controller, ControllerConfig, Notice, Reply, View, event_page};
pub use dataset::{DATASET_RANGE_BYTES, read_dataset_ranges, write_dataset_range};
pub use decoder::{Decoder, End, Event, Fatal, Limits};
pub use found::{
    ANA_GROUP_BYTES, ANA_HEADER_BYTES, AnaPage, FoundAna, FoundController, FoundNamespace,
    NamespaceIds, read_ana, read_namespace_list,
};
pub use host::{Answer, HostQueue, Transfer};
pub use identify::{
    ControllerData, ControllerKind, IDENTIFY_BYTES, NamespaceData, VERIFY_BYTES,
    write_namespace_list,
};
pub use instance::Instance;
pub use pdu::{
    DIGEST_BYTES, Digests, FatalStatus, HEADER_BYTES_MAX, Header, IcReq, IcResp, Kind, Layout,
    TermReq, data_digest,
};
pub use property::{Change, Properties};
pub use queue::{Arrival, ConnectRequest, Queue, QueueLimits, Slot};
pub use reservation::{
    Access, ReservationHolder, Reservations, access, read_reservation_holder,
    write_reservation_keys,
};
pub use status::Status;
pub use wire::Opening;
