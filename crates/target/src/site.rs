//! What a connection may use of its shard, and what it asks of it.

use nvme::Slot;
use scsi::iscsi::Task;
use sys::ring::Ring;

use backend::Jobs;
use backend::pool::{Account, Pool};

use super::control::Control;
use super::counters::Counters;
use super::iscsi::{Gate, Scope, Sessions, Then};
use super::keeper::Change;
use super::ledger::{Answered, Ledger};
use super::loads::Loads;
use super::subsystem::Namespace;
use super::witness::{Happening, Why};

/// What a job is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag {
    pub(crate) connection: u32,
    pub(crate) owner: Owner,
}

/// The command that a job is of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owner {
    Slot(Slot),
    Task(Task),
}

/// What holds for all connections of a shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// How long who has not proved who it is waits for the answer.
    pub(crate) wrong_secret_ns: u64,
    /// I/O queues and sessions that all shards together may have.
    pub(crate) most_connections: usize,
    /// Which shard it is, of how many; the control thread comes after them.
    pub(crate) shard: u16,
    pub(crate) shards: u16,
}

/// The connection that is driven, and whose memory it uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub(crate) connection: u32,
    pub(crate) account: Account,
}

/// Where a shard writes what it has done.
pub(crate) struct Books<'a> {
    pub(crate) counters: &'a Counters,
    pub(crate) ledger: &'a mut Ledger,
}

/// What a connection wants of others.
pub(crate) struct Wishes<'a> {
    /// What the shard is to do next.
    pub(crate) orders: &'a mut Vec<Order>,
    /// What of this connection an operator is to know.
    pub(crate) notes: &'a mut Vec<(Happening, Why)>,
}

/// What a connection may use of its shard while it is driven.
pub(crate) struct Site<'a> {
    pub(crate) ring: &'a mut Ring,
    pub(crate) jobs: &'a mut Jobs<Tag>,
    pub(crate) pool: &'a mut Pool,
    /// On the control thread.
    pub(crate) control: Option<&'a mut Control>,
    pub(crate) gate: Option<&'a mut Gate>,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) books: Books<'a>,
    /// How much the shards have, as the control thread knows.
    pub(crate) loads: &'a mut Loads,
    pub(crate) rules: Rules,
    pub(crate) now_ns: u64,
    pub(crate) who: Who,
    pub(crate) wishes: Wishes<'a>,
}

impl Site<'_> {
    /// A command of this connection has been answered.
    pub(crate) fn answered(&mut self, answered: Answered) {
        if answered.has_failed {
            self.tell_of_loss(&answered.namespace);
        }
        self.books.ledger.note(self.who.account, answered);
    }

    /// An operator is to know, once, that a device has lost what it took.
    pub(crate) fn tell_of_loss(&mut self, namespace: &Namespace) {
        if namespace.is_newly_lost() {
            self.wishes.notes.push((Happening::Lost, Why::Namespace(namespace.id)));
        }
    }
}

/// A command of an I/O queue that its host gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abort {
    pub(crate) controller: u16,
    pub(crate) queue: u16,
    pub(crate) cid: u16,
    /// Which Abort of the admin queue.
    pub(crate) serial: u64,
}

impl Abort {
    /// The controller, and its queue.
    pub(crate) const fn of(&self) -> (u16, u16) {
        (self.controller, self.queue)
    }
}

/// Something a connection wants of its shard.
pub(crate) enum Order {
    /// This command is to be ended, wherever it is.
    Abort(Abort),
    /// This connection waits to live on its home shard.
    Place(u32),
    /// This controller's I/O queues are gone.
    EndQueues(u16),
    /// This connection has something to say, or can read on.
    Wake(u32),
    /// This connection is to be closed.
    Close(u32),
    /// This connection makes room for others.
    Evict(u32),
    /// The host of this admin connection has given it up.
    Fence(u32),
    /// What was waited for has come to pass.
    Follow(Then),
    /// This change is made and kept, for this command.
    Keep(Tag, Change),
    /// Other shards end these commands too, for this wait.
    Quell(Scope, u64),
    /// What others wait for was given back.
    Released,
}
