//! A logical unit as a benchmark uses it: identified once, and a session for each thread.

use crate::HostError;
use crate::reach::{Queue, Reached};
use backend::Geometry;
use sys::world::Machine;

use super::IscsiUri;
use super::config::{InitiatorConfig, SessionNumber};
use super::look::{IdentifiedUnit, ask_opening, find, look};
use super::queue::SessionQueue;
use super::session::Session;

/// See the module's description.
pub struct LogicalUnit {
    uri: IscsiUri,
    config: InitiatorConfig,
    found: IdentifiedUnit,
}

impl LogicalUnit {
    /// Finds the logical unit that a URI names.
    ///
    /// # Errors
    /// When it cannot be reached, does not exist, or is no disk.
    pub fn connect(uri: &IscsiUri, config: &InitiatorConfig) -> Result<Self, HostError> {
        let mut session = Session::begin(&Machine, uri, config, SessionNumber(0), 1)?;
        let lun = find(&mut session, uri)?;
        let found = look(&mut session, lun)?;
        session.log_out();
        Ok(Self { uri: uri.clone(), config: config.clone(), found })
    }

    /// The unit's size and blocks.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.found.geometry()
    }

    /// Bytes that one command may transfer.
    #[must_use]
    pub fn transfer_bytes(&self) -> u32 {
        self.found.transfer_bytes()
    }

    /// Logs in for `depth` commands at a time. This ends an earlier session with the same number,
    /// and all its tasks (RFC 7143 6.3.5).
    pub fn queue<T: Send>(
        &self,
        number: u16,
        depth: u16,
        token: u64,
    ) -> Result<Reached<impl Queue<T> + use<T>>, HostError> {
        let mut session =
            Session::begin(&Machine, &self.uri, &self.config, SessionNumber(number), depth)?;
        session.settle(self.found.lun)?;
        // A target that did not report it before does not now.
        let opening = match self.found.opening {
            Some(_) => ask_opening(&mut session, self.found.lun)?,
            None => None,
        };
        let queue = self.open(session, token)?;
        Ok(Reached { queue, generation: 0, opening })
    }

    // Makes a session a queue.
    fn open<T: Send>(&self, session: Session, token: u64) -> Result<SessionQueue<T>, HostError> {
        SessionQueue::new(session, self.found.shape(), &self.config, token)
    }
}
