//! What commands that reach a target share: the initiator's configuration, and loads with a live
//! line.
//!
//! ```text
//! flags, files, environment ─► InitiatorConfig
//! loads ─► Session (live line, Ctrl-C) ─► tallies
//! ```

mod flags;
mod initiator;
mod session;

pub use flags::{AlgorithmFlag, InitiatorFlags};
pub use initiator::{HostNameError, InitiatorError, SCHEME, Unserved, host_name, initiator};
pub use session::{Session, Watch};
