//! Which commands of sessions are aborted, and what follows their end.

use std::sync::Arc;

use scsi::Nexus;
use scsi::iscsi::{Management, Task};

use super::super::subsystem::{Namespace, Subsystem};

/// Which commands are aborted.
#[derive(Clone)]
pub(crate) enum Scope {
    /// All of a logical unit.
    Unit(Arc<Namespace>),
    /// All of a target.
    Target(Arc<Subsystem>),
    /// All that these nexuses have sent to a logical unit.
    Of(Arc<Namespace>, Vec<Nexus>),
}

/// What follows when all commands of a scope have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The task management request is answered in the session of this slot, if its serial is this.
    Answer { slot: u32, serial: u64, management: Management },
    /// The command that requested the abort (PREEMPT AND ABORT) is answered.
    Complete { slot: u32, serial: u64, task: Task },
    /// The shard that asked is told the number of its wait.
    Tell { shard: u16, wait: u64 },
}

/// What has ended with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Its whole session.
    Session { tsih: u16 },
    /// Only this connection of its session.
    Connection { tsih: u16, cid: u16 },
}
