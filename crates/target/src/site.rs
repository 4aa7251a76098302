//! The parts of a shard that a connection may use, and its orders to the shard.

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

/// The command of a job: a slot of an NVMe queue, or a task of an iSCSI session.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owner {
    Slot(Slot),
    Task(Task),
}

/// What holds for all connections of a shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// How long the answer to a failed authentication is delayed.
    pub(crate) wrong_secret_ns: u64,
    /// I/O queues and sessions that all shards together may have.
    pub(crate) most_connections: usize,
    /// The shard's number, and how many there are; the control thread's number follows the last.
    pub(crate) shard: u16,
    pub(crate) shards: u16,
}

/// The connection that is driven, and the account of its memory.
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

/// Orders and notes of a connection.
pub(crate) struct Wishes<'a> {
    /// Orders that the shard executes next.
    pub(crate) orders: &'a mut Vec<Order>,
    /// Events of this connection for the operator.
    pub(crate) notes: &'a mut Vec<(Happening, Why)>,
}

/// What a connection may use of its shard while it is driven.
pub(crate) struct Site<'a> {
    pub(crate) ring: &'a mut Ring,
    pub(crate) jobs: &'a mut Jobs<Tag>,
    pub(crate) pool: &'a mut Pool,
    /// Set on the control thread only.
    pub(crate) control: Option<&'a mut Control>,
    pub(crate) gate: Option<&'a mut Gate>,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) books: Books<'a>,
    /// The loads of all shards; valid on the control thread.
    pub(crate) loads: &'a mut Loads,
    pub(crate) rules: Rules,
    pub(crate) now_ns: u64,
    pub(crate) who: Who,
    pub(crate) wishes: Wishes<'a>,
}

impl Site<'_> {
    /// Records an answered command, and reports a device that has lost data.
    pub(crate) fn answered(&mut self, answered: Answered) {
        if answered.has_failed {
            self.tell_of_loss(&answered.namespace);
        }
        self.books.ledger.note(self.who.account, answered);
    }

    /// Notes for the operator, once, that a device has lost data.
    pub(crate) fn tell_of_loss(&mut self, namespace: &Namespace) {
        if namespace.is_newly_lost() {
            self.wishes.notes.push((Happening::Lost, Why::Namespace(namespace.id)));
        }
    }
}

/// A command of an I/O queue that its host aborts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abort {
    pub(crate) controller: u16,
    pub(crate) queue: u16,
    pub(crate) cid: u16,
    /// The number of the Abort at its admin queue.
    pub(crate) serial: u64,
}

impl Abort {
    /// The controller's CNTLID, and the number of its queue.
    pub(crate) const fn of(&self) -> (u16, u16) {
        (self.controller, self.queue)
    }
}

/// Something that a connection has its shard do.
pub(crate) enum Order {
    /// Abort this command on whatever shard it is.
    Abort(Abort),
    /// This connection is to be moved to its home shard.
    Place(u32),
    /// Close this controller's I/O queues on all shards.
    EndQueues(u16),
    /// This connection has an answer to send, or can read on.
    Wake(u32),
    /// Close this connection.
    Close(u32),
    /// Close this connection to make room for others.
    Evict(u32),
    /// Close this admin connection: its host has reset the controller over another one.
    Fence(u32),
    /// All aborted commands have ended: do what follows.
    Follow(Then),
    /// Have the keeper make and store this change, for this command.
    Keep(Tag, Change),
    /// Have other shards abort these commands too, for this wait.
    Quell(Scope, u64),
    /// A range was released for which commands may wait.
    Released,
}
