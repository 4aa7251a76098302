//! Messages between shards.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use nvme::Notice;
use sys::event::Waker;

use super::connection::Connection;
use super::iscsi::Scope;
use super::keeper::Kept;
use super::site::{Abort, Tag};
use super::subsystem::Subsystem;
use super::tenants::ByHost;

/// A message to a shard.
pub(crate) enum Message {
    /// This connection belongs to the receiver from now on.
    Adopt(Box<Connection>),
    /// This controller is gone, and its queues with it.
    EndController(u16),
    /// Abort this command if it is here, and report to the control thread.
    Abort(Abort),
    /// For the control thread: the report of a shard, and whether it ended the command.
    Aborted(Abort, bool),
    /// For the control thread: this queue of this controller, which was on shard `home`, is gone.
    QueueEnded { controller: u16, queue: u16, home: u16 },
    /// Namespaces of a subsystem have changed; the control thread also tells hosts.
    Changed(Arc<Subsystem>, Vec<Notice>),
    /// For the control thread: the ANA state of this portal has changed.
    Reached(u16),
    /// For the control thread: the subsystems that are served now.
    Serve(Vec<Arc<Subsystem>>),
    /// For the control thread: this connection of an iSCSI session is gone.
    ConnectionEnded { tsih: u16, cid: u16 },
    /// For the control thread: this iSCSI session is over.
    SessionEnded(u16),
    /// Abort the commands in `scope`, for a wait of another shard.
    Quell { scope: Scope, shard: u16, wait: u64 },
    /// Another shard has aborted its commands, for this wait.
    Quelled(u64),
    /// A command's change of reservations is on the medium, or has failed.
    Kept(Tag, Kept),
    /// A range was released for which commands may wait.
    Released,
    /// Free unused memory.
    GiveBack,
    /// Send how much each host uses.
    Report(Sender<ByHost>),
    /// Finish commands under way and end.
    Stop,
}

/// A handle for sending messages to a shard.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(super) sender: Sender<Message>,
    pub(super) waker: Waker,
}

impl Peer {
    /// Sends a message to the shard and wakes it; does nothing if the shard has ended.
    pub(crate) fn tell(&self, message: Message) {
        if self.sender.send(message).is_ok() {
            self.waker.wake();
        }
    }
}
