//! A thread that waits for a medium in place of a shard: a change of reservations that are kept is
//! answered when it is on the medium, and nobody else waits for that.

use std::sync::Arc;

use nvme::Status;
use scsi::Step;
use sys::world::{Sender, Thread, World, channel};

/// A change that is to be made.
pub(crate) type Change = Box<dyn FnOnce() -> Kept + Send>;

/// What has come of it.
pub(crate) enum Kept {
    /// For an NVMe host.
    Nvme(Result<(), Status>),
    /// For an iSCSI initiator.
    Scsi(Step),
}

type Work = Box<dyn FnOnce() + Send>;

/// A way to the thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Keeper(Sender<Work>);

impl Keeper {
    /// Starts it.
    ///
    /// # Errors
    /// When the system has no thread for it.
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

    /// Makes a change there, and hands on what has come of it.
    pub(crate) fn make(&self, change: Change, then: impl FnOnce(Kept) + Send + 'static) {
        // A thread that has failed makes no change wait for ever.
        if let Err(work) = self.0.send(Box::new(move || then(change()))) {
            work();
        }
    }
}
