//! What shards tell one another.

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

/// Something for a shard to know or do.
pub(crate) enum Message {
    /// This connection is yours now.
    Adopt(Box<Connection>),
    /// This controller is gone, and its queues with it.
    EndController(u16),
    /// End this command if it is here, and tell the control thread.
    Abort(Abort),
    /// For the control thread: a shard has looked for it, and ended it or not.
    Aborted(Abort, bool),
    /// For the control thread: this queue of this controller is gone, which lived on this shard.
    QueueEnded { controller: u16, queue: u16, home: u16 },
    /// Namespaces of a subsystem have changed; the control thread also tells hosts.
    Changed(Arc<Subsystem>, Vec<Notice>),
    /// For the control thread: namespaces are reached otherwise from this portal.
    Reached(u16),
    /// For the control thread: these are served now.
    Serve(Vec<Arc<Subsystem>>),
    /// For the control thread: this connection of an iSCSI session is gone.
    ConnectionEnded { tsih: u16, cid: u16 },
    /// For the control thread: this iSCSI session is over.
    SessionEnded(u16),
    /// End these commands, for a wait of another shard.
    Quell { scope: Scope, shard: u16, wait: u64 },
    /// Another shard has, for this wait.
    Quelled(u64),
    /// A change that a command has asked for is on the medium, or has failed.
    Kept(Tag, Kept),
    /// What others wait for was given back.
    Released,
    /// Give back memory that nobody needs any more.
    GiveBack,
    /// Say how much each host uses.
    Report(Sender<ByHost>),
    /// End what is under way and go.
    Stop,
}

/// A way to a shard.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(super) sender: Sender<Message>,
    pub(super) waker: Waker,
}

impl Peer {
    /// Hands it a message and wakes it; a shard that has gone needs none.
    pub(crate) fn tell(&self, message: Message) {
        if self.sender.send(message).is_ok() {
            self.waker.wake();
        }
    }
}
