//! The host's handle of a controller: connects, keeps alive, reconnects and shuts down.

use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use sys::event::Waker;

use backend::Geometry;
use sys::world::Machine;

use super::admin::{AdminQueue, Heard};
use super::association::Association;
use super::fabrics::HostConfig;
use super::reach::{Queue, Reached};
use super::{HostError, NvmeUri};

/// See the module's description.
pub struct Controller {
    uri: NvmeUri,
    config: HostConfig,
    asked_queues: u16,
    first: Association,
    live: Mutex<Live>,
}

/// The thread that keeps a controller alive, and the waker that ends it.
type Keeper = (Waker, JoinHandle<()>);

/// The current controller; reconnecting makes another one.
struct Live {
    association: Association,
    /// Counts controllers, from 1.
    generation: u64,
    keeper: Option<Keeper>,
}

impl Controller {
    /// Connects to a new controller of a namespace's subsystem, for up to `io_queues` I/O queues.
    ///
    /// # Errors
    /// When the target cannot be reached, or there is no such subsystem or namespace.
    pub fn connect(uri: &NvmeUri, config: &HostConfig, io_queues: u16) -> Result<Self, HostError> {
        let (association, admin) = Association::begin(&Machine::world(), uri, config, io_queues)?;
        association.has_blocks()?;
        let (first, keeper) = (association.clone(), Some(keep_alive(admin)));
        let live = Mutex::new(Live { association, generation: 1, keeper });
        let (uri, config) = (uri.clone(), config.clone());
        Ok(Self { uri, config, asked_queues: io_queues, first, live })
    }

    /// Reconnects if `generation` is still the current one; otherwise another thread has already.
    ///
    /// # Errors
    /// As [`Controller::connect`]; the caller may try again.
    pub fn renew(&self, generation: u64) -> Result<(), HostError> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.generation != generation {
            return Ok(());
        }
        // The old connection is lost, so its controller is not shut down.
        if let Some((stop, _)) = live.keeper.take() {
            stop.wake();
        }
        let (association, admin) =
            Association::begin(&Machine::world(), &self.uri, &self.config, self.asked_queues)?;
        let keeper = Some(keep_alive(admin));
        *live = Live { association, generation: generation + 1, keeper };
        Ok(())
    }

    /// How many controllers there have been, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).generation
    }

    /// The namespace's size and blocks.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.first.namespace.geometry
    }

    /// Bytes that one command may transfer.
    #[must_use]
    pub const fn transfer_bytes(&self) -> u32 {
        self.first.transfer_bytes
    }

    /// I/O queues that the controller grants.
    #[must_use]
    pub const fn io_queues(&self) -> u16 {
        self.first.io_queues
    }

    /// Connects I/O queue `number`, from 1 on, for `depth` commands at a time.
    ///
    /// # Errors
    /// When the target cannot be reached or refuses, or the controller was lost meanwhile.
    pub fn queue<T: Send>(
        &self,
        number: u16,
        depth: u16,
        token: u64,
    ) -> Result<Reached<impl Queue<T> + use<T>>, HostError> {
        let (association, generation) = {
            let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            (live.association.clone(), live.generation)
        };
        let queue = association.queue(number, depth, token)?;
        if self.generation() != generation {
            // The queue may belong to another controller with the same number.
            let reason = "the controller was lost and found again meanwhile".to_owned();
            return Err(HostError::Protocol { operation: "connect an I/O queue", reason });
        }
        Ok(Reached { queue, generation, opening: association.namespace.opening })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let live = self.live.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((stop, keeper)) = live.keeper.take() {
            stop.wake();
            let _ended = keeper.join();
        }
    }
}

// Starts the thread that sends keep-alives, and shuts the controller down at the end.
fn keep_alive(mut admin: AdminQueue) -> Keeper {
    let stop = admin.waker().clone();
    let keeper = std::thread::spawn(move || {
        loop {
            match admin.wait(None) {
                Ok(Heard::Called) => return admin.shut_down(),
                Ok(Heard::Event { .. } | Heard::Time) => {}
                Err(_) => return,
            }
        }
    });
    (stop, keeper)
}
