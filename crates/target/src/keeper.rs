//! A thread that writes changes of stored reservations: their commands are answered once the change
//! is on the medium, and no shard waits for it.

use std::sync::Arc;

use nvme::Status;
use scsi::Step;
use sys::world::{Sender, Thread, World, channel};

/// A change of reservations to make and store.
pub(crate) type Change = Box<dyn FnOnce() -> Kept + Send>;

/// The outcome of a change.
pub(crate) enum Kept {
    /// For an NVMe host.
    Nvme(Result<(), Status>),
    /// For an iSCSI initiator.
    Scsi(Step),
}

type Work = Box<dyn FnOnce() + Send>;

/// A handle of the thread, which ends with the last handle.
#[derive(Clone)]
pub(crate) struct Keeper(Sender<Work>);

impl Keeper {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub(crate) fn start(world: &Arc<dyn World>) -> sys::Result<(Self, Thread)> {
        let (sender, works) = channel::<Work>()?;
        let own = Arc::clone(world);
        let keep = move || {
            while let Ok(Some(work)) = works.receive(&*own) {
                work();
            }
        };
        let thread = world.start("afar-keeper".to_owned(), Box::new(keep))?;
        Ok((Self(sender), thread))
    }

    /// Makes a change on the thread, and calls `then` there with the outcome.
    pub(crate) fn make(&self, change: Change, then: impl FnOnce(Kept) + Send + 'static) {
        // If the thread has failed, the caller makes the change itself.
        if let Err(work) = self.0.send(Box::new(move || then(change()))) {
            work();
        }
    }
}
