//! An NVMe/TCP connection: a queue of a controller.
//!
//! ```text
//! bytes ─► Queue ─► Connect ─► admin, io ─► out
//! ```

use std::sync::Arc;

use nvme::{Arrival, ConnectRequest, Queue, QueueLimits, Slot, Status};

use backend::Ended;
use backend::pool::Holder;

use super::admin::Admin;
use super::config::Limits;
use super::control::{Connected, Refusal};
use super::io::IoSession;
use super::next::Next;
use super::portal::Entrance;
use super::site::{Abort, Order, Owner, Site, Tag};
use super::witness::{Happening, Why, printable};

/// See the module's description.
pub(crate) struct NvmeEnd {
    queue: Queue,
    pub(crate) role: Role,
    entrance: Entrance,
    /// The shard of its I/O queue; `None` for other queues.
    home: Option<u16>,
    /// The host's NQN, once it has sent Connect.
    host: Option<Arc<str>>,
    /// A Connect that waits for a queue of the same host to end, and its deadline.
    waiting: Option<(Slot, ConnectRequest, u64)>,
}

/// How long a Connect waits for the host's old queues to end before it is refused.
const QUEUE_PATIENCE_NS: u64 = 2_000_000_000;

/// What a queue is for.
pub(crate) enum Role {
    /// No Connect has come.
    New,
    Admin(Admin),
    Io(IoSession),
}

impl NvmeEnd {
    /// The end of a new connection.
    pub(crate) fn new(entrance: Entrance, limits: &Limits) -> Self {
        let queue = Queue::new(QueueLimits {
            capsule_data_bytes: limits.capsule_bytes,
            maxh2cdata: limits.h2c_bytes,
            transfer_bytes: limits.transfer_bytes(),
            entries: limits.queue_entries,
        });
        Self { queue, role: Role::New, entrance, home: None, host: None, waiting: None }
    }

    /// Parses input up to the end of the next arrival, and acts on it. Returns how many jobs have
    /// begun, and how the connection goes on.
    pub(crate) fn receive(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> (u32, Next) {
        let (jobs, next) = match self.queue.receive(input, out) {
            Ok(Some(arrival)) => self.arrived(arrival, out, site),
            Ok(None) => (0, Next::Wait),
            Err(fatal) => {
                self.queue.terminate(fatal, out);
                site.wishes.notes.push((Happening::Violation, Why::Nvme(fatal)));
                (0, Next::Violated)
            }
        };
        (jobs, if self.queue.has_ended() { Next::Close } else { next })
    }

    // Acts on an arrival.
    fn arrived(
        &mut self,
        arrival: Arrival<'_>,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> (u32, Next) {
        let Self { queue, role, .. } = self;
        let jobs = match (arrival, role) {
            (Arrival::Connect(slot, request), Role::New) => {
                let until_ns = site.now_ns + QUEUE_PATIENCE_NS;
                return (0, self.connect(slot, request, until_ns, out, site));
            }
            (Arrival::Command(slot, submission), Role::Admin(admin)) => {
                admin.command(slot, &submission, queue, out, site)
            }
            (Arrival::Command(slot, submission), Role::Io(session)) => {
                let jobs = session.command(slot, &submission, queue, out, site);
                if session.has_left() {
                    return (jobs, Next::Drain);
                }
                jobs
            }
            (Arrival::Data(slot, offset, bytes), Role::Io(session)) => {
                session.data(slot, offset, bytes);
                0
            }
            (Arrival::AllData(slot, is_intact), Role::Io(session)) => {
                session.all_data(slot, is_intact, queue, out, site)
            }
            // No supported admin command uses data from the host.
            (Arrival::Data(..) | Arrival::AllData(..), _) => 0,
            (Arrival::Command(slot, _) | Arrival::Connect(slot, _), _) => {
                queue.complete(slot, Status::SEQUENCE_ERROR.do_not_retry(), 0, out);
                0
            }
        };
        (jobs, Next::More)
    }

    // Executes Connect, or lets it wait until `until_ns` for old queues of the host.
    fn connect(
        &mut self,
        slot: Slot,
        request: ConnectRequest,
        until_ns: u64,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> Next {
        let Some(control) = site.control.as_deref_mut() else {
            self.queue.complete(slot, Status::INTERNAL_ERROR, 0, out);
            return Next::More;
        };
        if self.host.is_none() {
            self.host = Some(printable(request.data.host.as_str()));
        }
        let now_ms = site.now_ns / 1_000_000;
        let has_room = request.queue == 0 || site.loads.total() < site.rules.most_connections;
        let connected = match has_room {
            true => control.connect(&request, site.who.connection, &self.entrance, now_ms),
            false => Err(Refusal::BUSY),
        };
        site.wishes.orders.extend(control.take_evicted().into_iter().map(Order::Evict));
        match connected {
            Ok(Connected::Admin(controller)) => {
                site.wishes.notes.push((Happening::LoggedIn, Why::Plain));
                self.role = Role::Admin(Admin::new(controller));
                self.queue.accept(slot, &request, controller, out);
                Next::More
            }
            Ok(Connected::Io { controller, subsystem }) => {
                let portal = Arc::clone(&self.entrance.portal);
                let session = IoSession::new(controller, &request, subsystem, portal);
                self.role = Role::Io(session);
                self.queue.accept(slot, &request, controller, out);
                self.home = Some(site.loads.place());
                Next::Place
            }
            // The host's previous queues may still be ending.
            Err(Refusal { passes: true, .. }) if site.now_ns < until_ns => {
                control.wait_for_queue(site.who.connection);
                self.waiting = Some((slot, request, until_ns));
                Next::Wait
            }
            Err(Refusal { status, field, .. }) => {
                site.wishes.notes.push((Happening::Refused, Why::Status(status)));
                self.queue.complete(slot, status, u64::from(field), out);
                Next::More
            }
        }
    }

    /// The host's NQN; `None` before its Connect.
    pub(crate) const fn host(&self) -> Option<&Arc<str>> {
        self.host.as_ref()
    }

    /// The shard that its I/O queue was placed on; `None` for other queues.
    pub(crate) const fn given(&self) -> Option<u16> {
        self.home
    }

    /// The shard to which the connection belongs; `here` unless it has an I/O queue.
    pub(crate) const fn home(&self, here: u16) -> u16 {
        match self.home {
            Some(home) => home,
            None => here,
        }
    }

    /// Whose memory the connection uses.
    pub(crate) const fn holder(&self) -> Holder {
        match &self.role {
            Role::Io(session) => Holder::Controller(session.controller),
            Role::New | Role::Admin(_) => Holder::Nobody,
        }
    }

    /// How many bytes of data have come since the connection began; `None` if no data is owed.
    pub(crate) const fn owed(&self) -> Option<u64> {
        match &self.role {
            Role::Io(session) => session.owed(),
            Role::New | Role::Admin(_) => None,
        }
    }

    /// Takes an ended job. Returns how many jobs have begun.
    pub(crate) fn ended(
        &mut self,
        ended: Ended<Tag>,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let Owner::Slot(slot) = ended.tag.owner else { return 0 };
        match &mut self.role {
            Role::Io(session) => session.ended(slot, ended, &mut self.queue, out, site),
            Role::Admin(admin) => admin.ended(slot, ended.result, &mut self.queue, out, site),
            Role::New => 0,
        }
    }

    /// Continues a command whose change was stored or has failed.
    pub(crate) fn kept(
        &mut self,
        slot: Slot,
        result: Result<(), Status>,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) {
        if let Role::Io(session) = &mut self.role {
            session.kept(slot, result, &mut self.queue, out, site);
        }
    }

    /// Completes an Asynchronous Event Request of the admin queue.
    pub(crate) fn event(&mut self, slot: Slot, result: u64, out: &mut Vec<u8>) {
        self.queue.complete(slot, Status::SUCCESS, result, out);
    }

    /// Ends the command if this is its queue and it still waits. Returns whether it was ended.
    pub(crate) fn abort(&mut self, abort: Abort, out: &mut Vec<u8>, site: &mut Site<'_>) -> bool {
        match &mut self.role {
            Role::Io(session) if (session.controller, session.queue) == abort.of() => {
                session.abort(abort.cid, &mut self.queue, out, site)
            }
            _ => false,
        }
    }

    /// Completes an Abort of this admin queue, if every shard has reported (Base 5.1.1: bit 0 says
    /// that the command was not aborted).
    pub(crate) fn answer_abort(&mut self, ended: Option<(Slot, bool)>, out: &mut Vec<u8>) {
        if let Some((slot, was)) = ended {
            self.queue.complete(slot, Status::SUCCESS, u64::from(!was), out);
        }
    }

    /// When a wait for queues or controllers to end is over; `None` if there is none.
    pub(crate) fn waits_until_ns(&self) -> Option<u64> {
        match (&self.waiting, &self.role) {
            (Some((_, _, until_ns)), _) => Some(*until_ns),
            (None, Role::Admin(admin)) => admin.waits_until_ns(),
            (None, _) => None,
        }
    }

    /// Tries again commands that wait for memory, for others, or for a queue to end. Returns how
    /// many jobs have begun, and how the connection goes on.
    pub(crate) fn feed(&mut self, out: &mut Vec<u8>, site: &mut Site<'_>) -> (u32, Next) {
        if let Some((slot, request, until_ns)) = self.waiting.take() {
            return (0, self.connect(slot, request, until_ns, out, site));
        }
        match &mut self.role {
            Role::Io(session) => (session.feed(&mut self.queue, out, site), Next::More),
            Role::Admin(admin) => {
                admin.feed(&mut self.queue, out, site);
                (0, Next::More)
            }
            Role::New => (0, Next::More),
        }
    }

    /// Whether a command waits for memory or for others.
    pub(crate) fn is_starving(&self) -> bool {
        matches!(&self.role, Role::Io(session) if session.is_starving())
    }
}
