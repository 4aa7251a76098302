//! The keeper of an iSCSI path: a session of its own, which checks that the logical unit still
//! exists and is the same.

use std::sync::Arc;
use std::time::Duration as StdDuration;

use sys::event::Waker;
use sys::stream::Stream;
use sys::world::World;

use crate::fence::{Fenced, Lost};
use crate::{Found, Heard, HostError, Keeper, Piece, Queue};

use super::IscsiUri;
use super::config::{InitiatorConfig, SessionNumber};
use super::look::{IdentifiedUnit, access_state, capacity, find, look};
use super::queue::SessionQueue;
use super::session::Session;

/// See the module's description.
struct IscsiKeeper {
    world: Arc<dyn World>,
    uri: IscsiUri,
    config: InitiatorConfig,
    /// The path's number among those of the disk.
    number: u16,
    session: Session,
    unit: IdentifiedUnit,
    found: Found,
    waker: Waker,
    /// When to ping the target next.
    due_ns: u64,
}

/// Sessions of a path at most: the keeper's and those of queues.
const SESSIONS: u16 = 256;
/// Added to the time after which a silent target counts as lost, in milliseconds.
const SLACK_MS: u64 = 1000;

/// Connects, for up to `queues` queues.
pub(crate) fn keep(
    world: &Arc<dyn World>,
    uri: &IscsiUri,
    config: &InitiatorConfig,
    number: usize,
    queues: u16,
) -> Result<Box<dyn Keeper>, HostError> {
    let number = u16::try_from(number).unwrap_or(u16::MAX) % SESSIONS;
    let one = IscsiUri { connections: 1, ..uri.clone() };
    let mut session = Session::begin(&**world, &one, config, SessionNumber(number * SESSIONS), 1)?;
    let lun = find(&mut session, uri)?;
    let unit = look(&mut session, lun)?;
    let state = access_state(&mut session, lun)?;
    session.be_patient(config.ping_timeout);
    let found = Found {
        owner: uri.target.clone(),
        name: format!("logical unit {}", lun.number()),
        geometry: unit.geometry(),
        ids: unit.namespace_ids(),
        opening: unit.opening,
        shape: unit.disk_shape(),
        queues,
        quiet_ms: config.silence().as_ns() / 1_000_000 + SLACK_MS,
        state,
    };
    let (world, waker) = (Arc::clone(world), Waker::new().map_err(system)?);
    let (uri, config) = (uri.clone(), config.clone());
    let mut keeper =
        IscsiKeeper { world, uri, config, number, session, unit, found, waker, due_ns: 0 };
    keeper.was_heard();
    Ok(Box::new(keeper))
}

// The error for a failed system call.
fn system(error: sys::Error) -> HostError {
    let sys::Error { operation, source } = error;
    HostError::Network { operation, source }
}

impl IscsiKeeper {
    // Sets when the next ping is due.
    fn was_heard(&mut self) {
        self.due_ns = self.world.now_ns().saturating_add(self.config.ping_after.as_ns());
    }
}

impl Keeper for IscsiKeeper {
    fn found(&self) -> &Found {
        &self.found
    }

    fn begin(&mut self, waker: &Waker) -> Result<(), HostError> {
        self.waker = waker.clone();
        Ok(())
    }

    fn queue(
        &self,
        number: u16,
        depth: u16,
        token: u64,
    ) -> Result<Box<dyn Queue<Piece>>, HostError> {
        let session = SessionNumber(self.number * SESSIONS + number % SESSIONS);
        let mut session = Session::begin(&*self.world, &self.uri, &self.config, session, depth)?;
        session.settle(self.unit.lun)?;
        Ok(Box::new(SessionQueue::new(session, self.unit.shape(), &self.config, token)?))
    }

    fn wait(&mut self, until_ns: Option<u64>) -> Result<Heard, HostError> {
        let mut is_readable = false;
        loop {
            self.session.listen(std::mem::take(&mut is_readable))?;
            let now_ns = self.world.now_ns();
            if now_ns >= self.due_ns {
                self.was_heard();
                // A ping by TEST UNIT READY, which also reports unit attentions.
                access_state(&mut self.session, self.unit.lun)?;
                if self.session.take_news() {
                    return Ok(Heard::News);
                }
                continue;
            }
            if until_ns.is_some_and(|at| at <= now_ns) {
                return Ok(Heard::Time);
            }
            let at_ns = until_ns.unwrap_or(u64::MAX).min(self.due_ns);
            let timeout = (at_ns < u64::MAX).then(|| StdDuration::from_nanos(at_ns - now_ns));
            let waited = self.session.stream().wait(&self.waker, timeout);
            let [is_told, is_called] = waited.map_err(system)?;
            if is_called {
                self.waker.acknowledge();
                return Ok(Heard::Called);
            }
            is_readable = is_told;
        }
    }

    fn look(&mut self) -> Result<(), HostError> {
        self.found.state = access_state(&mut self.session, self.unit.lun)?;
        self.unit.capacity = capacity(&mut self.session, self.unit.lun)?;
        self.found.geometry = self.unit.geometry();
        self.found.shape = self.unit.disk_shape();
        Ok(())
    }

    // Only afar's target is known to wait for tasks of a session that it reinstates (RFC 7143
    // 6.3.5); it reports the opening of the medium.
    fn lost(&self) -> Option<Lost> {
        self.found.opening.map(|_| Lost::Sessions(self.number))
    }

    // The sessions of this path have the ISIDs of those before, and so have reinstated them.
    fn fence(&mut self, lost: &Lost) -> Result<Fenced, HostError> {
        let is_ours = *lost == Lost::Sessions(self.number);
        Ok(if is_ours { Fenced::AtRest } else { Fenced::Never })
    }

    fn socket(&self) -> Option<&Stream> {
        Some(self.session.stream())
    }

    fn shut_down(self: Box<Self>) {
        self.session.log_out();
    }
}
