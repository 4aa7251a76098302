//! Taking a namespace for one host alone, by a reservation with exclusive access (Base 8.1.22).
//!
//! A reservation belongs to a HOSTID, not to a connection: so it is acquired over connections of
//! its own, holds for all paths of the host, and stays until the host releases it or another
//! preempts it. The standard has no means to learn whether its holder is still alive.

use nvme::{
    Command, Data, FoundController, FoundNamespace, Io, ReservationHolder, Status, Submission,
    Transfer, read_reservation_holder, write_reservation_keys,
};
use sys::world::{Machine, World};

use super::admin::AdminQueue;
use super::fabrics::{HostConfig, connect_queue, submission};
use super::wire::Wire;
use super::{HostError, NvmeUri};

/// An exclusive reservation of a namespace, released when this is dropped.
pub struct Reservation {
    uri: NvmeUri,
    config: HostConfig,
    key: u64,
}

/// The outcome of [`Reservation::take`].
pub enum Taken {
    /// This host holds the reservation.
    Alone(Reservation),
    /// No other host sees this namespace (NMIC), so it needs no reservation.
    Private,
    /// The controller or the namespace does not support it.
    NotOffered,
    /// Another host holds a reservation.
    Held(ReservationHolder),
}

/// Exclusive Access: its RTYPE, and its bit of RESCAP.
const EXCLUSIVE: u8 = 2;
const HAS_EXCLUSIVE: u8 = 1 << 2;
/// RESCAP: reservations can persist through power loss; CPTPL: they do.
const CAN_PERSIST: u8 = 1;
const PERSISTS: u8 = 3;
/// Actions of Reservation Register (RREGA) and Acquire (RACQA).
const REGISTER: u8 = 0;
const UNREGISTER: u8 = 1;
const ACQUIRE: u8 = 0;
const PREEMPT_AND_ABORT: u8 = 2;
/// Bytes of a report with 256 registrants, as many as a namespace of afar can have.
const REPORT_BYTES: u32 = 64 + 64 * 256;
/// Entries of the I/O queue.
const ENTRIES: u16 = 32;

impl Reservation {
    /// Reserves the namespace for this host, with a key that is not 0. With `preempts` it preempts
    /// the holder, whose reads and writes then fail with a conflict, and waits for those under way.
    ///
    /// # Errors
    /// When the namespace cannot be reached, or another command than the reservation is refused.
    pub fn take(
        uri: &NvmeUri,
        config: &HostConfig,
        key: u64,
        preempts: bool,
    ) -> Result<Taken, HostError> {
        let mut both = Both::connect(&Machine, uri, config)?;
        let taken = both.take(config, key, preempts);
        both.admin.shut_down();
        Ok(match taken? {
            Ok(()) => Taken::Alone(Self { uri: uri.clone(), config: config.clone(), key }),
            Err(other) => other,
        })
    }

    // Releases the reservation by unregistering the key; fails if the host was preempted.
    fn give_up(&self) -> Result<(), HostError> {
        let mut both = Both::connect(&Machine, &self.uri, &self.config)?;
        both.register(UNREGISTER, 0, [self.key, 0])?;
        both.admin.shut_down();
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // A reservation that cannot be released stays, like that of a killed host.
        let _stays = self.give_up();
    }
}

/// The admin queue and an I/O queue of a controller, for one command at a time.
struct Both {
    admin: AdminQueue,
    io: Wire,
    nsid: u32,
    controller: FoundController,
    namespace: FoundNamespace,
}

impl Both {
    // Connects both queues, and identifies the namespace.
    fn connect(world: &dyn World, uri: &NvmeUri, config: &HostConfig) -> Result<Self, HostError> {
        let (id, mut admin) = AdminQueue::connect(world, uri, config)?;
        let controller = admin.controller()?;
        admin.ask_for_queues(1)?;
        let nsid = match uri.namespace {
            Some(nsid) => nsid,
            None => admin.first_namespace()?,
        };
        let namespace = admin.found_namespace(nsid)?;
        let mut io = Wire::connect(world, &uri.address, ENTRIES - 1, config.digests)?;
        connect_queue(&mut io, uri, config, id, [1, ENTRIES])?;
        Ok(Self { admin, io, nsid, controller, namespace })
    }

    // Reserves the namespace. Returns the outcome if it was not reserved.
    fn take(
        &mut self,
        config: &HostConfig,
        key: u64,
        preempts: bool,
    ) -> Result<Result<(), Taken>, HostError> {
        let kinds = self.namespace.reservation_kinds;
        if !self.namespace.is_shared {
            return Ok(Err(Taken::Private));
        }
        if !self.controller.has_reservations() || kinds & HAS_EXCLUSIVE == 0 {
            return Ok(Err(Taken::NotOffered));
        }
        let persistence = if kinds & CAN_PERSIST != 0 { PERSISTS } else { 0 };
        self.register(REGISTER, persistence, [0, key])?;
        let mut holder = self.holder()?;
        if holder.is_none() || preempts {
            let own = holder.is_some_and(|one| one.host_id == config.host_id);
            let acquired = match holder.filter(|_| !own) {
                Some(one) => self.acquire(PREEMPT_AND_ABORT, [key, one.key]),
                None => self.acquire(ACQUIRE, [key, 0]),
            };
            match acquired {
                Err(HostError::Refused { status, .. })
                    if status.is(Status::RESERVATION_CONFLICT) => {}
                other => return other.map(Ok),
            }
            // Another host was faster.
            holder = self.holder()?;
        }
        self.register(UNREGISTER, 0, [key, 0])?;
        let nobody = || HostError::Protocol {
            operation: "reserve a namespace",
            reason: "it is refused, and nobody holds it".to_owned(),
        };
        Ok(Err(Taken::Held(holder.ok_or_else(nobody)?)))
    }

    // Executes Reservation Register.
    fn register(&mut self, action: u8, persistence: u8, keys: [u64; 2]) -> Result<(), HostError> {
        let io = Io::ReservationRegister { action, ignores_key: false, persistence };
        self.tell("register with a namespace", io, keys)
    }

    // Executes Reservation Acquire.
    fn acquire(&mut self, action: u8, keys: [u64; 2]) -> Result<(), HostError> {
        let io = Io::ReservationAcquire { action, ignores_key: false, kind: EXCLUSIVE };
        self.tell("reserve a namespace", io, keys)
    }

    // Executes a reservation command with keys as data.
    fn tell(&mut self, operation: &'static str, io: Io, keys: [u64; 2]) -> Result<(), HostError> {
        let data = write_reservation_keys(keys);
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let told = self.command(io, Data::InCapsule { offset: 0, length });
        self.io.ask(operation, &told, &data, Transfer::None).map(|_| ())
    }

    // Executes Reservation Report. Returns the holder; `None` if there is none.
    fn holder(&mut self) -> Result<Option<ReservationHolder>, HostError> {
        let io = Io::ReservationReport { length: u64::from(REPORT_BYTES), is_extended: true };
        let asked = self.command(io, Data::Transport { length: REPORT_BYTES });
        let operation = "ask who has reserved a namespace";
        let (_, report) = self.io.ask(operation, &asked, &[], Transfer::Receive(REPORT_BYTES))?;
        Ok(read_reservation_holder(&report))
    }

    // A command for the namespace.
    fn command(&self, io: Io, data: Data) -> Submission {
        submission(Command::Io(io), self.nsid, data)
    }
}
