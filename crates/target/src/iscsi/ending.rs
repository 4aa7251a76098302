//! What ends in a session, and what follows.

use std::sync::Arc;

use scsi::Nexus;
use scsi::iscsi::{Management, Task};

use super::super::subsystem::{Namespace, Subsystem};

/// Whose commands are ended at somebody's wish.
#[derive(Clone)]
pub(crate) enum Scope {
    /// All of a logical unit.
    Unit(Arc<Namespace>),
    /// All of a target.
    Target(Arc<Subsystem>),
    /// Those that these have sent to a logical unit.
    Of(Arc<Namespace>, Vec<Nexus>),
}

/// What is done when the commands have ended that somebody has asked to be aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The request is answered in this session, which is still the same if it has this number.
    Answer { slot: u32, serial: u64, management: Management },
    /// The command that has asked is answered.
    Complete { slot: u32, serial: u64, task: Task },
    /// Another shard is told under which of its numbers it waits.
    Tell { shard: u16, wait: u64 },
}

/// What is over with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Its session as well.
    Session { tsih: u16 },
    /// Only this one of its session.
    Connection { tsih: u16, cid: u16 },
}
