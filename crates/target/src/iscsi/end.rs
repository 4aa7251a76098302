//! An iSCSI connection: its login, and then its part of a session.
//!
//! ```text
//! Login ─► (to the session's shard) ─► Entering ─► (what it replaces ends) ─► Member
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use scsi::Step;
use scsi::iscsi::{
    Arrival, Fatal, Identity, Login, LoginEvent, LoginStatus, Parameters, Placement, Task, Wishes,
};

use backend::Ended;
use backend::pool::Holder;

use super::super::counters::add;
use super::super::next::Next;
use super::super::site::{Order, Owner, Site, Tag};
use super::super::subsystem::Subsystem;
use super::super::witness::{Happening, Why, printable};
use super::ending::Left;
use super::gate::Gate;
use super::port::Port;
use super::session::{Begun, IscsiSession};

/// FirstBurstLength: unsolicited data of a command. That of all commands of a session fits into the
/// session's share of memory, so none is ever refused for lack of memory.
pub(super) const FIRST_BURST_BYTES: u32 = 8192;
/// Connections of a session at most.
const CONNECTIONS_MAX: u16 = 16;

/// See the module's description.
pub(crate) struct IscsiEnd {
    /// The local address of the connection.
    local: SocketAddr,
    port: Port,
    pub(crate) state: Phase,
    /// Whether a command of its session waits for memory or for a range.
    is_starving: bool,
    /// How many bytes of data have come to its session; `None` if no data is owed.
    owed: Option<u64>,
    /// Whether the initiator was pinged and has sent nothing since.
    is_pinged: bool,
    /// The initiator's name, once it has sent one.
    initiator: Option<Arc<str>>,
}

/// The phase of a connection.
pub(crate) enum Phase {
    /// Logging in; `subsystem` once the initiator has named a target.
    Login { login: Box<Login>, subsystem: Option<Arc<Subsystem>> },
    /// Logged in, and on its way to its session.
    Entering(Box<Entering>),
    /// A connection of the session in `slot` of the shard; `number` is its place in the session.
    Member { slot: u32, number: u16, cid: u16, tsih: u16 },
    /// The connection has ended.
    Over,
}

pub(crate) struct Entering {
    login: Login,
    identity: Identity,
    subsystem: Option<Arc<Subsystem>>,
    placement: Placement,
    pub(crate) home: u16,
}

impl IscsiEnd {
    /// A new connection to this local address, through this port.
    pub(crate) fn new(local: SocketAddr, port: Port) -> Self {
        let wishes = Wishes {
            max_connections: CONNECTIONS_MAX,
            max_outstanding_r2t: 8,
            first_burst_bytes: FIRST_BURST_BYTES,
            ..Wishes::default()
        };
        let login = Box::new(Login::new(wishes, Gate::nonce()));
        let state = Phase::Login { login, subsystem: None };
        Self {
            local,
            port,
            state,
            is_starving: false,
            owed: None,
            is_pinged: false,
            initiator: None,
        }
    }

    /// Parses input up to the end of the next arrival, and acts on it. Returns how many jobs have
    /// begun, and how the connection goes on.
    pub(crate) fn receive(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> (u32, Next) {
        self.is_pinged = false;
        match self.state {
            Phase::Login { .. } => (0, self.log_in(input, out, site)),
            Phase::Member { slot, number, .. } => self.with(slot, site, |session, site| {
                let (mut jobs, next) = arrived(session, number, input, out, site);
                jobs += session.ask_on(number, out, site);
                let settled = session.settle(number, out, site);
                if let Some(ready) = session.session.ready().filter(|ready| *ready != number) {
                    let link = session.ways.links.get(usize::from(ready)).copied().flatten();
                    site.wishes.orders.extend(link.map(|(connection, _)| Order::Wake(connection)));
                }
                (jobs, settled.unwrap_or(next))
            }),
            Phase::Entering(_) | Phase::Over => (0, Next::Wait),
        }
    }

    // Runs `act` on its session, which is taken out of the shard meanwhile.
    fn with(
        &mut self,
        slot: u32,
        site: &mut Site<'_>,
        act: impl FnOnce(&mut IscsiSession, &mut Site<'_>) -> (u32, Next),
    ) -> (u32, Next) {
        let Some(mut session) = site.sessions.take(slot) else { return (0, Next::Close) };
        let done = act(&mut session, site);
        self.is_starving = session.is_starving();
        self.owed = session.owed();
        site.sessions.put(slot, session);
        done
    }

    fn log_in(&mut self, input: &mut &[u8], out: &mut Vec<u8>, site: &mut Site<'_>) -> Next {
        let Phase::Login { login, subsystem } = &mut self.state else { return Next::Wait };
        let Some(gate) = site.gate.as_deref_mut() else { return Next::Close };
        let mut event = login.receive(input, out);
        loop {
            match event {
                Ok(None) => return Next::Wait,
                Err(fatal) => return ended(fatal, site),
                Ok(Some(LoginEvent::Identified(identity))) => {
                    self.initiator = Some(printable(&identity.initiator));
                    match gate.admit(&identity, &self.port) {
                        Ok((admission, named)) => {
                            *subsystem = named;
                            event = login.admit(admission, out);
                        }
                        Err(status) => {
                            login.refuse(status, out);
                            site.wishes.notes.push((Happening::Refused, Why::Login(status)));
                            return Next::Drain;
                        }
                    }
                }
                Ok(Some(LoginEvent::Agreed(identity, parameters))) => {
                    return self.place(identity, &parameters, out, site);
                }
            }
        }
    }

    // Adds the logged-in connection to a session, or creates one, if there is room.
    fn place(
        &mut self,
        identity: Identity,
        parameters: &Parameters,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> Next {
        let state = std::mem::replace(&mut self.state, Phase::Over);
        let Phase::Login { mut login, subsystem } = state else { return Next::Close };
        let has_room = site.loads.total() < site.rules.most_connections;
        let place = match site.gate.as_deref_mut() {
            Some(gate) if has_room => {
                let most = parameters.max_connections;
                let place = gate.place(&identity, &self.port, most, site.loads);
                for tsih in gate.take_evicted() {
                    evict(tsih, site);
                }
                place
            }
            Some(_) => Err(LoginStatus::OutOfResources),
            None => Err(LoginStatus::TargetError),
        };
        match place {
            Ok(place) => {
                let (placement, home) = (place.placement, place.home);
                let entering = Entering { login: *login, identity, subsystem, placement, home };
                self.state = Phase::Entering(Box::new(entering));
                Next::Place
            }
            Err(status) => {
                login.refuse(status, out);
                site.wishes.notes.push((Happening::Refused, Why::Login(status)));
                Next::Drain
            }
        }
    }

    /// The initiator's name; `None` before it has sent one.
    pub(crate) const fn initiator(&self) -> Option<&Arc<str>> {
        self.initiator.as_ref()
    }

    /// The shard to which the connection belongs; `here` unless it is on its way to its session.
    pub(crate) const fn home(&self, here: u16) -> u16 {
        match &self.state {
            Phase::Entering(entering) => entering.home,
            _ => here,
        }
    }

    /// Whose memory the connection uses.
    pub(crate) const fn holder(&self) -> Holder {
        match self.state {
            Phase::Member { tsih, .. } => Holder::Session(tsih),
            _ => Holder::Nobody,
        }
    }

    /// How many bytes of data have come to its session; `None` if no data is owed.
    pub(crate) const fn owed(&self) -> Option<u64> {
        self.owed
    }

    /// Updates what is owed to its session: data may have come on its other connections.
    pub(crate) fn look_at_owed(&mut self, site: &mut Site<'_>) {
        let Phase::Member { slot, .. } = self.state else { return };
        self.owed = site.sessions.get_mut(slot).and_then(|session| session.owed());
    }

    /// Whether the login has not ended.
    pub(crate) const fn is_new(&self) -> bool {
        matches!(self.state, Phase::Login { .. })
    }

    /// Whether the connection is part of a session.
    pub(crate) const fn is_member(&self) -> bool {
        matches!(self.state, Phase::Member { .. })
    }

    /// Enters its session, on that session's shard, once nothing that it replaces is left; until
    /// then the shard calls again whenever a session or connection has ended.
    pub(crate) fn enter(&mut self, out: &mut Vec<u8>, site: &mut Site<'_>) -> Next {
        let Phase::Entering(entering) = &self.state else { return Next::More };
        if self.must_wait(&entering.identity, entering.placement, site) {
            site.sessions.entering.push(site.who.connection);
            return Next::More;
        }
        let state = std::mem::replace(&mut self.state, Phase::Over);
        let Phase::Entering(entering) = state else { return Next::More };
        let Entering { mut login, identity, subsystem, placement, .. } = *entering;
        let (connection, local, cid) = (site.who.connection, self.local, identity.cid);
        site.wishes.notes.push((Happening::LoggedIn, Why::Plain));
        match placement {
            Placement::New { tsih, .. } => {
                let link = login.establish(tsih, None, out);
                let port = self.port.clone();
                let begun = Begun { identity, tsih, subsystem, link, connection, local, port };
                let serial = site.sessions.serial();
                let session = IscsiSession::new(begun, serial, site.rules.shard);
                let slot = site.sessions.add(Box::new(session));
                if let Some(session) = site.sessions.get_mut(slot) {
                    session.slot = slot;
                }
                self.state = Phase::Member { slot, number: 0, cid, tsih };
            }
            Placement::Joins { tsih, .. } => {
                let slot = site.sessions.find(tsih);
                let session = slot.and_then(|slot| Some((slot, site.sessions.get_mut(slot)?)));
                let Some((slot, session)) = session else {
                    login.refuse(LoginStatus::SessionDoesNotExist, out);
                    return Next::Drain;
                };
                let link = login.establish(tsih, Some(session.session.window()), out);
                let number = session.join(link, connection, local);
                self.state = Phase::Member { slot, number, cid, tsih };
            }
        }
        Next::More
    }

    // Closes what it replaces (RFC 7143 6.3.5, 6.3.6). Returns whether any of that is left.
    fn must_wait(&self, identity: &Identity, placement: Placement, site: &mut Site<'_>) -> bool {
        match placement {
            Placement::New { .. } => self.has_before(identity, site),
            Placement::Joins { tsih, replaces: true } => {
                let Some(slot) = site.sessions.find(tsih) else { return false };
                let Some(session) = site.sessions.get_mut(slot) else { return false };
                let closed = session.replace(identity.cid);
                site.wishes.orders.extend(closed.iter().copied().map(Order::Close));
                !closed.is_empty()
            }
            Placement::Joins { .. } => false,
        }
    }

    // Closes all sessions of the same initiator port with the same port, also such as were to
    // replace one another. Returns whether there were any.
    fn has_before(&self, identity: &Identity, site: &mut Site<'_>) -> bool {
        let (mut is_any, port) = (false, self.port.number());
        for session in site.sessions.iter_mut().filter(|one| one.is_of(identity, port)) {
            is_any = true;
            site.wishes.orders.extend(session.links().map(Order::Close));
        }
        is_any
    }

    /// Takes an ended job. Returns how many jobs have begun, and how the connection goes on.
    pub(crate) fn ended(
        &mut self,
        ended: Ended<Tag>,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> (u32, Next) {
        let (Phase::Member { slot, number, .. }, Owner::Task(task)) =
            (&self.state, ended.tag.owner)
        else {
            return (0, Next::More);
        };
        let (slot, number) = (*slot, *number);
        self.with(slot, site, |session, site| {
            let mut jobs = session.ended(task, ended, out, site);
            jobs += session.ask_on(number, out, site);
            let next = session.settle(number, out, site);
            (jobs, next.unwrap_or(Next::More))
        })
    }

    /// Continues a command whose change was stored or has failed. Returns as [`Self::ended`].
    pub(crate) fn kept(
        &mut self,
        task: Task,
        step: Step,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> (u32, Next) {
        let Phase::Member { slot, number, .. } = self.state else { return (0, Next::More) };
        self.with(slot, site, |session, site| {
            let jobs = session.go_on(task, step, out, site);
            let next = session.settle(number, out, site);
            (jobs, next.unwrap_or(Next::More))
        })
    }

    /// Tries again commands that wait for memory or others. Returns as [`Self::ended`].
    pub(crate) fn wake(&mut self, out: &mut Vec<u8>, site: &mut Site<'_>) -> (u32, Next) {
        let Phase::Member { slot, number, .. } = self.state else { return (0, Next::More) };
        self.with(slot, site, |session, site| {
            let mut jobs = session.feed(number, out, site);
            jobs += session.ask_on(number, out, site);
            let next = session.settle(number, out, site);
            (jobs, next.unwrap_or(Next::More))
        })
    }

    /// Whether a command of its session waits for memory or for a range.
    pub(crate) const fn is_starving(&self) -> bool {
        self.is_starving
    }

    /// Pings a silent initiator; closes the connection if the last ping was not answered.
    pub(crate) fn ask(&mut self, out: &mut Vec<u8>, site: &mut Site<'_>) -> Next {
        let Phase::Member { slot, number, .. } = self.state else { return Next::Close };
        if std::mem::replace(&mut self.is_pinged, true) {
            return Next::Close;
        }
        if let Some(session) = site.sessions.get_mut(slot) {
            session.session.ping(number, out);
        }
        Next::More
    }

    /// Announces to an initiator that the target stops (RFC 7143 11.9.1), so that it retries soon.
    pub(crate) fn announce_end(&mut self, out: &mut Vec<u8>, site: &mut Site<'_>) {
        let Phase::Member { slot, number, .. } = self.state else { return };
        if let Some(session) = site.sessions.get_mut(slot) {
            // Event 3: all connections are dropped; times 0: it may come back at once, nothing is
            // retained.
            session.session.announce(number, 3, [0; 3], out);
        }
    }

    /// Leaves the session. Returns what the control thread has to know, and connections to close.
    pub(crate) fn leave(&mut self, site: &mut Site<'_>) -> (Option<Left>, Vec<u32>) {
        let state = std::mem::replace(&mut self.state, Phase::Over);
        let (slot, number, cid, tsih) = match state {
            Phase::Member { slot, number, cid, tsih } => (slot, number, cid, tsih),
            Phase::Entering(entering) => {
                let (Placement::New { tsih, .. } | Placement::Joins { tsih, .. }) =
                    entering.placement;
                let cid = entering.identity.cid;
                if remove_empty(tsih, site) {
                    return (Some(Left::Session { tsih }), Vec::new());
                }
                return (Some(Left::Connection { tsih, cid }), Vec::new());
            }
            _ => return (None, Vec::new()),
        };
        let Some(mut session) = site.sessions.take(slot) else { return (None, Vec::new()) };
        session.cut(number, site);
        let was_asked_to = session.ways.leaving.remove(&number);
        let rest: Vec<u32> =
            session.ways.links.iter().flatten().map(|(connection, _)| *connection).collect();
        if session.ways.replaced.remove(&number) {
            // Its successor has its identifier already.
            site.sessions.put(slot, session);
            return (None, Vec::new());
        }
        if rest.is_empty() {
            session.detach();
            site.sessions.remove(slot);
            return (Some(Left::Session { tsih }), Vec::new());
        }
        site.sessions.put(slot, session);
        // With error recovery level 0 a session ends with any of its connections that was not
        // logged out (7.1.4.4).
        let closed = if was_asked_to { Vec::new() } else { rest };
        (Some(Left::Connection { tsih, cid }), closed)
    }
}

// Removes a session without connections: its only one was to be replaced, and the new one has not
// come. Returns whether it was removed.
fn remove_empty(tsih: u16, site: &mut Site<'_>) -> bool {
    let Some(slot) = site.sessions.find(tsih) else { return false };
    let is_empty = |session: &mut IscsiSession| session.ways.links.iter().all(Option::is_none);
    if !site.sessions.get_mut(slot).is_some_and(is_empty) {
        return false;
    }
    if let Some(session) = site.sessions.take(slot) {
        session.detach();
        site.sessions.remove(slot);
    }
    true
}

// Ends a failed login after its answer; the answer to a wrong secret is delayed.
fn ended(fatal: Fatal, site: &mut Site<'_>) -> Next {
    let is = |status: LoginStatus| fatal == Fatal::Login(status as u16);
    if is(LoginStatus::AuthenticationFailure) {
        site.wishes.notes.push((Happening::WrongSecret, Why::Plain));
        return Next::Delay;
    }
    if let Fatal::Login(_) = fatal {
        site.wishes.notes.push((Happening::Refused, Why::Iscsi(fatal)));
    } else {
        site.wishes.notes.push((Happening::Violation, Why::Iscsi(fatal)));
        add(&site.books.counters.violations, 1);
    }
    Next::Drain
}

// Closes the connections of a session of this thread to make room for another session.
fn evict(tsih: u16, site: &mut Site<'_>) {
    let slot = site.sessions.find(tsih);
    let Some(session) = slot.and_then(|slot| site.sessions.get_mut(slot)) else { return };
    let links = session.ways.links.iter().flatten();
    site.wishes.orders.extend(links.map(|(connection, _)| Order::Evict(*connection)));
}

// Receives the next arrival for a session and acts on it.
fn arrived(
    session: &mut IscsiSession,
    number: u16,
    input: &mut &[u8],
    out: &mut Vec<u8>,
    site: &mut Site<'_>,
) -> (u32, Next) {
    let arrival = match session.session.receive(number, input, out) {
        Ok(Some(arrival)) => arrival,
        Ok(None) => return (0, Next::Wait),
        Err(fatal) => {
            site.wishes.notes.push((Happening::Violation, Why::Iscsi(fatal)));
            return (0, Next::Violated);
        }
    };
    let jobs = match arrival {
        Arrival::Command(task, command) => session.command(task, &command, out, site),
        Arrival::Data(task, offset, bytes) => {
            session.data(task, offset, bytes);
            0
        }
        Arrival::AllData(task, result) => session.all_data(task, result, out, site),
        Arrival::Manage(management, request) => {
            session.manage(management, &request, site);
            0
        }
        Arrival::SendTargets(asked) => {
            let records = session.records(number, &asked, site.gate.as_deref());
            session.session.answer_text(number, &records, out);
            0
        }
        Arrival::Logout(logout) => {
            session.begin_logout(number, logout, site);
            0
        }
        Arrival::Pong => 0,
    };
    (jobs, Next::More)
}
