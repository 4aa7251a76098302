//! iSCSI: SCSI over TCP.
//!
//! Sections are those of RFC 7143, unless another document is named.
//!
//! ```text
//! pdu, header, layout  headers of PDUs and their fields      11
//! decoder      bytes into headers and pieces of data         11.2
//! text, keys   keys and values, and their negotiation        6.1, 6.2, 13
//! chap, proof  authentication of initiators                  9.2, 12.1
//! login        a target's end of a login                     6.3, 11.12
//! registry     sessions, and which one a connection joins    6.3.1, 6.3.5
//! session, task, data, manage, discovery
//!              a target's end in full feature phase          4.2, 11
//! entry        an initiator's end of a login                 6.3
//! initiator, hearing  an initiator's end in full feature phase   4.2, 11
//! ```
//!
//! Error recovery level 0: an error of a connection ends its session, and nothing is retransmitted
//! (7.1.4.4).

mod admission;
mod chap;
mod data;
mod decoder;
mod discovery;
mod entry;
mod header;
mod hearing;
mod initiator;
mod keys;
mod layout;
mod login;
mod manage;
mod pdu;
mod proof;
mod registry;
mod session;
mod task;
mod text;
mod text_state;

pub use admission::{Admission, LoginStatus};
pub use chap::{Algorithm, Chap, Credentials, Nonce, Secret};
pub use data::Expectation;
pub use decoder::{DEFAULT_DATA_BYTES, Decoder, Event, Fatal};
pub use discovery::TargetRecord;
pub use entry::{Entered, Entry, EntryConfig};
pub use initiator::{Answer, Ended, Initiator, Request, Tag, Transfer};
pub use keys::{DigestWish, Parameters, Wishes};
pub use login::{Identity, Link, Login, LoginEvent, NAME_BYTES_MAX};
pub use pdu::{
    AsyncMessage, BHS_BYTES, DIGEST_BYTES, DataIn, DataOut, Digests, Header, LoginRequest,
    LoginResponse, LoginStage, NO_TAG, Numbers, R2t, ScsiCommand, ScsiResponse, TaskRequest,
    TextRequest, TextResponse, Window, trailer,
};
pub use registry::{Placement, Registry};
pub use session::{Arrival, Logout, Management, Session, SessionLimits};
pub use task::Task;
