//! The target: subsystems served over NVMe/TCP and iSCSI by one thread per core.
//!
//! ```text
//! socket ─► Connection ─┬► nvme::Queue ─► plan ──────────┬─► Jobs ─► Backend
//!    ▲                  └► scsi::iscsi::Session ─► work ─┘      │
//!    └── one send per wake-up ◄── out ◄── status ◄──────────────┘
//! shard (one thread, one ring) ◄── mail ──► other shards, control thread
//! ```
//!
//! Shards share nothing that they would have to wait for. A connection, its commands and their
//! memory belong to one shard, and shards tell one another by mail. New I/O queues and sessions go
//! to the shard that has the fewest. The control thread accepts connections and serves what is
//! rare: controllers with their admin queues, discovery (`control`), and logins (`iscsi::gate`).
//!
//! Each file:
//!
//! ```text
//! config       the configuration of a target
//! subsystem    what hosts connect to, and its namespaces
//! portal       where hosts connect
//! control      the controllers, on a thread of its own; guests: the bound on associations; loads:
//!              how many queues and sessions each shard has
//! seed, shard  a thread: ring, connections, jobs; mail between them
//! connection   one socket; dues: deadlines of its peer; solicited: how much data is requested at a
//!              time; room: receive memory; site: what it may use of its shard
//! nvme_end     an NVMe queue on a connection; admin, aborts, io: its commands; plan: what one
//! takes iscsi        a connection's part of an iSCSI session
//! execution    a command of either protocol, from its memory to its outcome; work: its requests to
//!              the device; waiting: what it waits for; immediate: reads of devices that answer at
//!              once
//! reserved     reservations of a namespace; stripes: ranges being written; keeper: the thread that
//!              stores reservations
//! views        which host has which disk of its own, in memory that is leased
//! meter        counters of a namespace; ledger: answered commands still to be counted
//! tenants      how much each host uses
//! witness      what hosts do that an operator wants to know
//! times, tide  when a shard checks deadlines, and when it frees memory
//! observer     what other threads may read meanwhile
//! ```
//!
//! # Memory for data
//!
//! Every association (an NVMe controller, an iSCSI session) has an account on each shard where it
//! has connections, with a share that is its own. The rest is common, and lent while nobody waits
//! (`backend::pool`). A write gets its memory before its data is requested, a read before its
//! request to the device. An answer is charged to its account until the socket has taken it; while
//! a connection has 1 MiB to send, nothing is read or begun for it. So a host can make itself wait,
//! and no other.
//!
//! What a peer owes has a deadline (`dues`): requested data, and reading what the target
//! sends. A shard has at most the common memory and a share for each association with commands
//! under way. Data in capsules comes on top; the depth of the queue bounds it. Over iSCSI the first
//! 8 KiB of a write are unsolicited. They lie in a small block, which is exchanged for a whole one
//! when the rest may be requested.
//!
//! # Connections
//!
//! Connections without a Connect or a finished login are bounded; the oldest of them makes room, so
//! a host that logs in at once gets in. A host has a bounded number of
//! controllers and of sessions. Those that only discover make room for others, and so do
//! controllers without keep-alive and I/O queues.
//!
//! All answers that are ready go out in one send. With zero copy the kernel sends from the buffer
//! itself: the ring owns the buffer until the peer has acknowledged it, and a connection is over
//! only then. A silent peer would hold the buffer, so its connection is reset.

mod aborts;
mod admin;
mod config;
mod connection;
mod control;
mod counters;
mod dues;
mod execution;
mod guests;
mod identity;
mod immediate;
mod io;
mod iscsi;
mod keeper;
mod ledger;
mod loads;
mod mail;
mod meter;
mod next;
mod nvme_end;
mod observer;
mod pairs;
mod plan;
mod portal;
mod remains;
mod reserved;
mod resets;
mod room;
mod roster;
mod seed;
mod shard;
mod site;
mod slab;
mod solicited;
mod stripes;
mod subsystem;
mod tenants;
mod tide;
mod times;
mod views;
mod waiting;
mod witness;
mod work;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use nvme::Notice;
use nvme::log::AnaState;
use sys::event::Waker;
use sys::stream::Listener;
use sys::world::{self, Farewell, Machine, Thread, World};

pub use config::{CONTROLLER_ID_MAX, Limits, SHARDS_MAX, TargetConfig};
pub use counters::Counters;
pub use identity::{Identity, IdentityError, Known};
pub use iscsi::IscsiAccess;
pub use meter::{Kind, KindCounters, Latencies, NamespaceCounters};
pub use observer::Observer;
pub use reserved::{Reserved, ReservedError};
pub use roster::OTHERS;
pub use subsystem::{NAMESPACES_MAX, Namespace, Subsystem};
pub use tenants::Usage;
pub use views::{ViewSeen, ViewsSeen};
pub use witness::{Counts as EventCounts, Event, Happening, Why, Witness};

use control::Control;
use guests::Guests;
use iscsi::Gate;
use keeper::Keeper;
use loads::Loads;
use mail::{Message, Peer};
use portal::Portal;
use seed::Seed;
use shard::Shard;

/// A target at work.
pub struct Target {
    peers: Arc<[Peer]>,
    threads: Vec<Thread>,
    /// Errors of threads that have failed.
    failures: (Sender<sys::Error>, Receiver<sys::Error>),
    /// Kernel thread IDs of the shards.
    shards: Vec<u32>,
    keeper: Option<Thread>,
    addresses: Vec<SocketAddr>,
    iscsi_addresses: Vec<SocketAddr>,
    portals: Arc<[Arc<Portal>]>,
    iscsi_portals: Arc<[Arc<Portal>]>,
    observer: Observer,
    /// Readable when a shard has ended.
    ended: Waker,
}

impl Target {
    /// Listens and begins to serve.
    ///
    /// # Errors
    /// When an address is in use or not ours, the kernel has no io_uring for this user, or the
    /// number of shards is not 1 to [`SHARDS_MAX`].
    pub fn start(config: &TargetConfig, subsystems: Vec<Subsystem>) -> sys::Result<Self> {
        Self::start_on(config, subsystems, Vec::new())
    }

    /// As [`Target::start`], in a world: the machine, or a simulation.
    ///
    /// # Errors
    /// As [`Target::start`].
    pub fn start_in(
        world: &Arc<dyn World>,
        config: &TargetConfig,
        subsystems: Vec<Subsystem>,
    ) -> sys::Result<Self> {
        Self::begin(world, config, subsystems, Vec::new())
    }

    /// As [`Target::start`], with sockets that listen already: those at addresses of `config` are
    /// used, the others closed.
    ///
    /// # Errors
    /// As [`Target::start`].
    pub fn start_on(
        config: &TargetConfig,
        subsystems: Vec<Subsystem>,
        listening: Vec<TcpListener>,
    ) -> sys::Result<Self> {
        Self::begin(&Machine::world(), config, subsystems, listening)
    }

    // Starts the keeper, the shards and the control thread.
    fn begin(
        world: &Arc<dyn World>,
        config: &TargetConfig,
        subsystems: Vec<Subsystem>,
        listening: Vec<TcpListener>,
    ) -> sys::Result<Self> {
        if !(1..=SHARDS_MAX).contains(&usize::from(config.shards)) {
            let reason = format!("{} shards: 1 to {SHARDS_MAX}", config.shards);
            return Err(sys::Error::new("start a target", std::io::Error::other(reason)));
        }
        let subsystems: Vec<_> = subsystems.into_iter().map(Arc::new).collect();
        let (listeners, mut addresses) = listen_at_all(&**world, config, listening)?;
        let iscsi_addresses = addresses.split_off(config.nvme.len());
        let (peers, mails) = mailboxes(config.shards)?;
        let counters = mails.iter().map(|_| Arc::new(Counters::default())).collect();
        let [portals, iscsi_portals] = [&addresses, &iscsi_addresses].map(|all| portals(all));
        let witness = Witness::new()?;
        let control = Control::new(config.limits, subsystems.clone(), Arc::clone(&portals));
        let mut target = Self {
            threads: Vec::new(),
            failures: channel(),
            shards: Vec::new(),
            keeper: None,
            addresses,
            iscsi_addresses,
            portals,
            iscsi_portals,
            observer: Observer::new(counters, subsystems, witness.clone(), Arc::clone(&peers)),
            ended: Waker::new()?,
            peers,
        };
        let gate = Gate::new(
            target.subsystems().to_vec(),
            Arc::clone(&target.iscsi_portals),
            config.discovery_chap.clone(),
            Guests {
                most: usize::from(config.limits.controllers),
                most_of_one: usize::from(config.limits.host_controllers),
            },
            config.shards,
        );
        let (keeper, thread) = Keeper::start(world)?;
        target.keeper = Some(thread);
        let mut only = Some((control, gate, listeners));
        for (index, mail) in (0..=config.shards).zip(mails) {
            let own = if index == config.shards { only.take() } else { None };
            let (control, gate, listeners) = match own {
                Some((control, gate, listeners)) => (Some(control), Some(gate), listeners),
                None => (None, None, Vec::new()),
            };
            target.spawn(Seed {
                index,
                config: config.clone(),
                mail,
                peers: Arc::clone(&target.peers),
                counters: Arc::clone(&target.counters()[usize::from(index)]),
                control,
                gate,
                loads: Loads::new(config.shards),
                listeners,
                portals: Arc::clone(&target.portals),
                iscsi_portals: Arc::clone(&target.iscsi_portals),
                keeper: keeper.clone(),
                witness: witness.clone(),
                world: Arc::clone(world),
            })?;
        }
        Ok(target)
    }

    // Starts the thread of a shard. The thread makes its ring itself, and reports whether it could.
    fn spawn(&mut self, seed: Seed) -> sys::Result<()> {
        let (sender, began) = world::channel()?;
        let world = Arc::clone(&seed.world);
        let name = match &seed.control {
            Some(_) => "afar-control".to_owned(),
            None => format!("afar-shard-{}", seed.index),
        };
        let is_shard = seed.control.is_none();
        let (farewell, failed) = (Farewell(self.ended.clone()), self.failures.0.clone());
        let thread = world.start(
            name,
            Box::new(move || {
                let _farewell = farewell;
                let shard = match Shard::new(seed) {
                    Ok(shard) => shard,
                    Err(error) => {
                        let _gone = sender.send(Err(error));
                        return;
                    }
                };
                let _gone = sender.send(Ok(sys::process::thread()));
                drop(sender);
                if let Err(error) = shard.run() {
                    let _gone = failed.send(error);
                }
            }),
        )?;
        self.threads.push(thread);
        // A thread that reports nothing has failed; `end` returns its error.
        if let Some(number) = began.receive(&*world)? {
            self.shards.extend(Some(number?).filter(|_| is_shard));
        }
        Ok(())
    }

    /// Readable when a shard has ended, which none does before [`Target::stop`] unless it fails.
    #[must_use]
    pub const fn ended(&self) -> &Waker {
        &self.ended
    }

    /// Kernel thread IDs of the shards.
    #[must_use]
    pub fn shards(&self) -> &[u32] {
        &self.shards
    }

    /// The addresses where the target listens for NVMe/TCP hosts.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The addresses where the target listens for iSCSI initiators.
    #[must_use]
    pub fn iscsi_addresses(&self) -> &[SocketAddr] {
        &self.iscsi_addresses
    }

    /// The counters of each shard, and last of the control thread, which has every connection until
    /// its Connect or login, and the admin queues.
    #[must_use]
    pub fn counters(&self) -> &[Arc<Counters>] {
        self.observer.counters()
    }

    /// The subsystems that the target serves now.
    #[must_use]
    pub fn subsystems(&self) -> Arc<[Arc<Subsystem>]> {
        self.observer.subsystems()
    }

    /// A handle for reading counters and events while the target works.
    #[must_use]
    pub const fn observer(&self) -> &Observer {
        &self.observer
    }

    // The control thread.
    fn control(&self) -> &Peer {
        &self.peers[self.peers.len() - 1]
    }

    /// Replaces the served subsystems by these, whose names differ. Controllers of removed ones
    /// end; discovery hosts get an event that the discovery log has changed.
    pub fn serve(&self, subsystems: Vec<Arc<Subsystem>>) {
        self.observer.serve(subsystems.clone());
        self.control().tell(Message::Serve(subsystems));
    }

    /// Notifies hosts and initiators of a subsystem that these namespaces were replaced or resized.
    pub fn changed(&self, subsystem: &Arc<Subsystem>, namespaces: &[u32]) {
        subsystem.tell_initiators(namespaces);
        let notices: Vec<_> = namespaces.iter().map(|id| Notice::Namespace(*id)).collect();
        for peer in &*self.peers {
            peer.tell(Message::Changed(Arc::clone(subsystem), notices.clone()));
        }
    }

    /// Sets the ANA state of the `index`-th NVMe/TCP address, and notifies its hosts. Returns
    /// whether the state has changed. With one address there is no ANA: commands are refused
    /// according to the state, but hosts are not told of it.
    pub fn reach(&self, index: usize, state: AnaState) -> bool {
        let portal = self.portals.get(index);
        let is_other = portal.is_some_and(|portal| portal.set(state));
        if let Some(portal) = portal.filter(|_| is_other) {
            self.control().tell(Message::Reached(portal.number));
        }
        is_other
    }

    /// As [`Target::reach`], for the `index`-th iSCSI address; initiators learn of it by a unit
    /// attention with their next command.
    pub fn reach_iscsi(&self, index: usize, state: AnaState) -> bool {
        let is_other = self.iscsi_portals.get(index).is_some_and(|portal| portal.set(state));
        if is_other {
            self.subsystems().iter().for_each(|subsystem| subsystem.tell_of_ports());
        }
        is_other
    }

    /// Answers commands under way, closes every connection and ends the shards.
    ///
    /// # Errors
    /// When a shard has failed.
    pub fn stop(mut self) -> sys::Result<()> {
        self.end()
    }

    // Stops all threads and waits for them. Returns the error of one that has failed.
    fn end(&mut self) -> sys::Result<()> {
        for peer in &*self.peers {
            peer.tell(Message::Stop);
        }
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        // The shards' handles of the keeper are gone, so it ends.
        if let Some(Err(panic)) = self.keeper.take().map(Thread::join) {
            std::panic::resume_unwind(panic);
        }
        self.failures.1.try_recv().map_or(Ok(()), Err)
    }
}

// Portals in the order of their addresses, numbered from 1.
fn portals(addresses: &[SocketAddr]) -> Arc<[Arc<Portal>]> {
    let portals = (1..).zip(addresses);
    portals.map(|(number, address)| Arc::new(Portal::new(number, *address))).collect()
}

type Mails = Vec<Receiver<Message>>;

// A mailbox for each shard, and the last for the control thread.
fn mailboxes(shards: u16) -> sys::Result<(Arc<[Peer]>, Mails)> {
    let mut peers = Vec::new();
    let mut mails = Vec::new();
    for _ in 0..=shards {
        let (sender, mail) = channel();
        peers.push(Peer { sender, waker: Waker::new()? });
        mails.push(mail);
    }
    Ok((peers.into(), mails))
}

// Listens at the addresses for NVMe/TCP, and then at those for iSCSI.
fn listen_at_all(
    world: &dyn World,
    config: &TargetConfig,
    mut listening: Vec<TcpListener>,
) -> sys::Result<(Vec<Listener>, Vec<SocketAddr>)> {
    let nvme = config.nvme.iter().map(|address| (address, "listen for NVMe/TCP hosts"));
    let iscsi = config.iscsi.iter().map(|address| (address, "listen for iSCSI initiators"));
    let mut listeners = Vec::new();
    let mut addresses = Vec::new();
    for (address, purpose) in nvme.chain(iscsi) {
        let is_it = |one: &TcpListener| one.local_addr().is_ok_and(|own| own == *address);
        let listener = match listening.iter().position(is_it) {
            Some(place) => Ok((listening.swap_remove(place).into(), *address)),
            None => world.listen(*address),
        };
        let listener = listener.map_err(|error| sys::Error::new(purpose, error))?;
        addresses.push(listener.1);
        listeners.push(listener.0);
    }
    Ok((listeners, addresses))
}

impl Drop for Target {
    fn drop(&mut self) {
        let _reported = self.end();
    }
}
