//! A thread that waits for a medium in place of a shard: a change of reservations that are kept is
//! answered when it is on the medium, and nobody else waits for that.

use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::thread::JoinHandle;

use nvme::Status;
use scsi::Step;

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
    pub(crate) fn start() -> sys::Result<(Self, JoinHandle<()>)> {
        let (sender, works): (_, Receiver<Work>) = channel();
        let thread = std::thread::Builder::new().name("afar-keeper".to_owned()).spawn(move || {
            while let Ok(work) = works.recv() {
                work();
            }
        });
        let thread = thread.map_err(|error| sys::Error::new("start a keeper", error))?;
        Ok((Self(sender), thread))
    }

    /// Makes a change there, and hands on what has come of it.
    pub(crate) fn make(&self, change: Change, then: impl FnOnce(Kept) + Send + 'static) {
        // A thread that has failed makes no change wait for ever.
        if let Err(SendError(work)) = self.0.send(Box::new(move || then(change()))) {
            work();
        }
    }
}
