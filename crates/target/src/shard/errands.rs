//! Orders of connections to their shard, and messages between shards.

use std::collections::BTreeMap;
use std::sync::Arc;

use nvme::{Notice, Slot};

use backend::pool::Account;

use super::super::connection::{Connection, End};
use super::super::counters::subtract;
use super::super::iscsi::{IscsiEnd, IscsiSession, Left, Then, quell_others};
use super::super::mail::{Message, Peer};
use super::super::nvme_end::{NvmeEnd, Role};
use super::super::site::{Abort, Order};
use super::super::subsystem::Subsystem;
use super::super::tenants::ByHost;
use super::super::witness::{Happening, Why};
use super::Shard;

impl Shard {
    /// Acts on a message.
    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Adopt(connection) => {
                self.adopt(connection);
            }
            Message::EndController(controller) => self.end_queues(controller),
            Message::Abort(abort) => {
                let was = self.abort(abort);
                self.control().tell(Message::Aborted(abort, was));
            }
            Message::Aborted(abort, was) => self.aborted(abort, was),
            Message::QueueEnded { controller, queue, home } => {
                self.seed.loads.leave(home);
                if let Some(control) = &mut self.seed.control {
                    let waiting = control.end_queue(controller, queue);
                    self.orders.extend(waiting.into_iter().map(Order::Wake));
                }
            }
            Message::Changed(subsystem, notices) => {
                self.refresh();
                let control = self.seed.control.as_mut();
                let events = control.map(|control| control.notify(Some(&subsystem), &notices));
                self.tell(events.unwrap_or_default());
            }
            Message::Reached(portal) => {
                let control = self.seed.control.as_mut();
                let events = control.map(|control| control.reached(portal));
                self.tell(events.unwrap_or_default());
            }
            Message::Serve(subsystems) => self.serve(subsystems),
            Message::ConnectionEnded { tsih, cid } => {
                if let Some(gate) = &mut self.seed.gate {
                    gate.connection_ended(tsih, cid);
                }
            }
            Message::SessionEnded(tsih) => {
                if let Some(gate) = &mut self.seed.gate {
                    gate.session_ended(tsih, &mut self.seed.loads);
                }
            }
            Message::Quell { scope, shard, wait } => {
                let then = Then::Tell { shard, wait };
                self.on_site(|site| {
                    let own = site.sessions.wait(then, 0);
                    quell_others(&scope, own, site);
                    let then = site.sessions.ended(own);
                    site.wishes.orders.extend(then.map(Order::Follow));
                });
            }
            Message::Quelled(wait) => {
                let then = self.sessions.ended(wait);
                self.orders.extend(then.map(Order::Follow));
            }
            Message::Kept(tag, kept) => {
                self.with(tag.connection, |connection, site| {
                    connection.kept(tag.owner, kept, site);
                });
            }
            Message::Released => self.is_released = true,
            Message::GiveBack => self.give_back(),
            Message::Report(reply) => {
                let _gone = reply.send(self.report());
            }
            Message::Stop => self.stop(),
        }
    }

    // How much each host uses of this shard.
    fn report(&self) -> ByHost {
        let mut accounts: BTreeMap<Account, (Arc<str>, u64)> = BTreeMap::new();
        for connection in self.connections.iter().flatten() {
            if let Some(host) = connection.host()
                && connection.account != Account::NOBODY
            {
                let row = accounts.entry(connection.account);
                row.or_insert_with(|| (Arc::clone(host), 0)).1 += 1;
            }
        }
        let rows = accounts.into_iter().map(|(account, (host, connections))| {
            let (work, held) = self.pool.work(account);
            (host, connections, held, work)
        });
        self.tenants.report(rows)
    }

    // Saves what a host has used before the last connection of its account is removed.
    fn keep_usage(&mut self, connection: &Connection) {
        if let Some(host) = connection.host()
            && connection.account != Account::NOBODY
            && self.pool.has_one_user(connection.account)
        {
            self.tenants.leave(host, &self.pool.work(connection.account).0);
        }
    }

    // Has all connections and sessions look up their namespaces again.
    fn refresh(&mut self) {
        self.connections.iter_mut().flatten().for_each(|connection| connection.refresh());
        self.sessions.iter_mut().for_each(IscsiSession::refresh);
    }

    // Sends event completions on admin queues.
    fn tell(&mut self, events: Vec<(u32, (Slot, u64))>) {
        for (connection, (slot, result)) in events {
            self.with(connection, |connection, _| connection.event(slot, result));
        }
    }

    // Replaces the served subsystems (control thread only).
    fn serve(&mut self, subsystems: Vec<Arc<Subsystem>>) {
        if let Some(gate) = &mut self.seed.gate {
            gate.serve(subsystems.clone());
        }
        let Some(control) = self.seed.control.as_mut() else { return };
        let lost = control.serve(subsystems);
        let events = control.notify(None, &[Notice::Discovery]);
        for connection in lost {
            self.with(connection, |connection, _| connection.close());
        }
        self.tell(events);
    }

    // Begins to stop: accepts no more, and drains every connection.
    fn stop(&mut self) {
        self.stopping_ns = Some(self.now_ns);
        for listener in &self.seed.listeners {
            listener.shut();
        }
        for number in 0..self.connections.len() {
            let number = u32::try_from(number).expect("connections are bounded");
            self.with(number, Connection::retire);
        }
    }

    // Aborts a command of a queue of this shard. Returns whether it was ended.
    fn abort(&mut self, abort: Abort) -> bool {
        let mut was = false;
        for number in 0..self.connections.len() {
            let place = self.connections[number].as_ref();
            if place.and_then(|connection| connection.controller()) == Some(abort.controller) {
                let number = u32::try_from(number).expect("connections are bounded");
                self.with(number, |connection, site| was |= connection.abort(abort, site));
            }
        }
        was
    }

    // Hands a shard's report on an Abort to the admin queue.
    fn aborted(&mut self, abort: Abort, was: bool) {
        let control = self.seed.control.as_mut();
        let association = control.and_then(|all| all.get(abort.controller));
        if let Some(number) = association.map(|one| one.connection) {
            self.with(number, |connection, _| connection.aborted(abort, was));
        }
    }

    // Closes every connection here of a controller's I/O queues.
    fn end_queues(&mut self, controller: u16) {
        for number in 0..self.connections.len() {
            let place = self.connections[number].as_ref();
            if place.and_then(|connection| connection.controller()) == Some(controller) {
                let number = u32::try_from(number).expect("connections are bounded");
                self.with(number, |connection, _| connection.close());
            }
        }
    }

    // Closes the I/O queues of a controller on all shards.
    fn tell_all(&mut self, controller: u16) {
        for (index, peer) in self.seed.peers.iter().enumerate() {
            if index != usize::from(self.seed.index) {
                peer.tell(Message::EndController(controller));
            }
        }
        self.end_queues(controller);
    }

    /// Executes the orders of connections, and the orders that follow from those.
    pub(super) fn obey(&mut self) {
        while !self.orders.is_empty() {
            let orders = std::mem::take(&mut self.orders);
            orders.into_iter().for_each(|order| self.follow(order));
        }
    }

    // Executes an order.
    fn follow(&mut self, order: Order) {
        match order {
            Order::Place(number) => {
                let here = self.seed.index;
                let place = self.connections.get_mut(number as usize);
                if let Some(Some(connection)) = place
                    && connection.home(here) == here
                {
                    connection.settle();
                    self.with(number, Connection::enter);
                }
            }
            Order::EndQueues(controller) => self.tell_all(controller),
            Order::Abort(abort) => self.others().for_each(|peer| peer.tell(Message::Abort(abort))),
            Order::Wake(connection) => self.with(connection, Connection::wake),
            Order::Close(connection) => self.with(connection, |one, _| one.close()),
            Order::Evict(connection) => self.end_by(connection, Happening::Evicted),
            Order::Fence(connection) => self.end_by(connection, Happening::Fenced),
            Order::Follow(then) => self.come_to_pass(then),
            Order::Keep(tag, change) => {
                let own = self.seed.peers[usize::from(self.seed.index)].clone();
                self.seed.keeper.make(change, move |kept| own.tell(Message::Kept(tag, kept)));
            }
            Order::Quell(scope, wait) => {
                for peer in self.others() {
                    let scope = scope.clone();
                    peer.tell(Message::Quell { scope, shard: self.seed.index, wait });
                }
            }
            Order::Released => {
                self.is_released = true;
                self.others().for_each(|peer| peer.tell(Message::Released));
            }
        }
    }

    // Closes a connection, and notes why for the operator.
    fn end_by(&mut self, connection: u32, happening: Happening) {
        self.with(connection, |one, site| {
            site.wishes.notes.push((happening, Why::Plain));
            one.close();
        });
    }

    // The control thread.
    fn control(&self) -> &Peer {
        &self.seed.peers[usize::from(self.seed.config.shards)]
    }

    /// All shards but this one, the control thread included.
    pub(super) fn others(&self) -> impl Iterator<Item = &Peer> {
        let own = usize::from(self.seed.index);
        self.seed.peers.iter().enumerate().filter(move |(index, _)| *index != own).map(|one| one.1)
    }

    // Continues a session of this shard, or reports to another shard, after aborted commands ended.
    fn come_to_pass(&mut self, then: Then) {
        match then {
            Then::Answer { slot, serial, .. } | Then::Complete { slot, serial, .. } => {
                let session = self.sessions.get_mut(slot).filter(|one| one.serial() == serial);
                let connection = session.and_then(|session| session.follow(then));
                self.orders.extend(connection.map(Order::Wake));
            }
            Then::Tell { shard, wait } => {
                if let Some(peer) = self.seed.peers.get(usize::from(shard)) {
                    peer.tell(Message::Quelled(wait));
                }
            }
        }
    }

    // Takes a connection out and frees its place. A deadline left there would expire again and
    // again, and the shard would never sleep.
    fn vacate(&mut self, number: u32) -> Option<Box<Connection>> {
        let connection = self.connections.get_mut(number as usize).and_then(Option::take)?;
        self.free.push(number);
        self.due_ns[number as usize] = u64::MAX;
        subtract(&self.seed.counters.connections, 1);
        Some(connection)
    }

    /// Moves a connection to its home shard.
    pub(super) fn place(&mut self, number: u32) {
        let Some(mut connection) = self.vacate(number) else { return };
        connection.settle();
        self.keep_usage(&connection);
        connection.unburden(&mut self.pool);
        let home = connection.home(self.seed.index);
        self.seed.peers[usize::from(home)].tell(Message::Adopt(connection));
    }

    /// Frees a connection that has ended, and tells all whom its end concerns.
    pub(super) fn free_connection(&mut self, number: u32) {
        let Some(mut connection) = self.vacate(number) else { return };
        connection.release(self.seed.index, &mut self.pool);
        if connection.is_logged_in() {
            self.seed.witness.note(connection.note(Happening::Left, Why::Plain));
        }
        match &mut connection.end {
            End::Nvme(end) => self.end_nvme(number, end),
            End::Iscsi(end) => self.end_iscsi(number, end),
        }
        self.keep_usage(&connection);
        connection.unburden(&mut self.pool);
    }

    // Ends the controller of an admin queue, or reports the end of an I/O queue.
    fn end_nvme(&mut self, number: u32, end: &NvmeEnd) {
        match &end.role {
            Role::New => {}
            Role::Admin(admin) => {
                let controller = admin.controller;
                let Some(control) = self.seed.control.as_mut() else { return };
                if control.end(controller, number) {
                    let waiting = control.take_waiting();
                    self.orders.extend(waiting.into_iter().map(Order::Wake));
                    self.tell_all(controller);
                }
            }
            Role::Io(session) => {
                let (controller, queue) = (session.controller, session.queue);
                let home = end.given().unwrap_or(self.seed.index);
                self.control().tell(Message::QueueEnded { controller, queue, home });
            }
        }
    }

    // Ends an iSCSI connection's part of its session, and lets waiting connections enter theirs.
    fn end_iscsi(&mut self, number: u32, end: &mut IscsiEnd) {
        let (left, closed) = self.on_site(|site| end.leave(site));
        if let Some(left) = left {
            self.control().tell(match left {
                Left::Session { tsih } => Message::SessionEnded(tsih),
                Left::Connection { tsih, cid } => Message::ConnectionEnded { tsih, cid },
            });
        }
        self.orders.extend(closed.into_iter().map(Order::Close));
        // Connections that wait for this end may enter now.
        let entering = std::mem::take(&mut self.sessions.entering);
        for waiting in entering.into_iter().filter(|waiting| *waiting != number) {
            self.with(waiting, Connection::enter);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use sys::world::Machine;

    use crate::config::TargetConfig;
    use crate::counters::Counters;
    use crate::iscsi::Port;
    use crate::keeper::Keeper;
    use crate::loads::Loads;
    use crate::mailboxes;
    use crate::portals;
    use crate::seed::Seed;
    use crate::witness::Witness;

    use super::*;

    // A shard that is not the control thread, with no listener.
    fn shard() -> Shard {
        let (peers, mut mails) = mailboxes(1).expect("there are descriptors");
        let world = Machine::world();
        let (keeper, _thread) = Keeper::start(&world).expect("there are threads");
        let seed = Seed {
            index: 0,
            config: TargetConfig::default(),
            mail: mails.remove(0),
            peers,
            counters: Arc::new(Counters::default()),
            control: None,
            gate: None,
            loads: Loads::new(1),
            listeners: Vec::new(),
            portals: Arc::new([]),
            iscsi_portals: Arc::new([]),
            keeper,
            witness: Witness::new().expect("there are descriptors"),
            world,
        };
        Shard::new(seed).expect("the kernel has io_uring")
    }

    #[test]
    fn nothing_is_due_where_a_connection_was_that_lives_on_another_shard() {
        let mut shard = shard();
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
        let local = listener.local_addr().expect("it has one");
        let peer = TcpStream::connect(local).expect("it listens");
        let (socket, _) = listener.accept().expect("one has come");
        let port = Port::new(&portals(&[local]), 0).expect("it is there");
        let end = End::Iscsi(IscsiEnd::new(local, port));
        let connection = Connection::new(socket.into(), end, shard.now_ns);
        let number = shard.adopt(Box::new(connection));
        shard.settle();
        assert!(shard.first_deadline_ns().is_some(), "it has not said what it is for");
        shard.place(number);
        assert_eq!(shard.first_deadline_ns(), None);
        drop(peer);
    }
}
