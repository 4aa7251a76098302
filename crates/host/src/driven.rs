//! A disk whose owner drives its lane: requests pass no other thread.
//!
//! ```text
//! submit ─► turn ─► (wait until the bell rings, or deadline_ns has come) ─► turn ─► done
//! ```
//!
//! For an event loop that waits for other events, too. Paths have their own threads, which connect,
//! keep alive and check, and hand their queues over. I/O happens in [`DrivenDisk::turn`] only.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};

use backend::{Failure, Request};

use super::HostError;
use super::config::{DiskConfig, Observer};
use super::disk::{Disk, discards};
use super::lane::Lane;
use super::piece::Done;

/// See the module's description.
pub struct DrivenDisk {
    // Dropped before the disk and its threads.
    lane: Lane,
    disk: Arc<Disk>,
}

impl DrivenDisk {
    /// As [`Disk::attach`], with one queue over each path. Only the calling thread may use the
    /// disk.
    ///
    /// # Errors
    /// As [`Disk::attach`].
    pub fn attach(config: DiskConfig, observer: Observer) -> Result<Self, HostError> {
        let (disk, mut lane) = Disk::attach_driven(config, observer)?;
        let bell = lane.ring_mut().set_bell();
        bell.map_err(|sys::Error { operation, source }| HostError::Network { operation, source })?;
        Ok(Self { lane, disk: Arc::new(disk) })
    }

    /// The disk, for its properties; requests submitted to it directly wait for
    /// [`DrivenDisk::turn`].
    #[must_use]
    pub const fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    /// As [`Disk::submit`]; a turn calls `done`.
    pub fn submit(&mut self, request: Request, data: &[u8], done: Done) {
        let lane = &mut self.lane;
        let shared = Arc::clone(lane.shared());
        shared.cut(request, data, done, None, |_lane, pieces| lane.begin_all(pieces));
    }

    /// Sends submitted requests and ends answered ones, without waiting.
    pub fn turn(&mut self) {
        if self.lane.turn().is_err() {
            self.disk.lose();
        }
    }

    /// When the next turn is due even if the bell does not ring, by the monotonic clock; `None` if
    /// never.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.lane.deadline_ns()
    }

    /// A descriptor that becomes readable, again each time, when a turn is due.
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.lane.ring().bell()
    }

    /// Makes the bell unreadable until it rings again; call a turn afterwards.
    pub fn acknowledge(&self) {
        self.lane.ring().acknowledge();
    }

    /// As [`Disk::discard`], and waits for it.
    ///
    /// # Errors
    /// As [`Disk::discard`].
    pub fn discard(&mut self, offset: u64, length: u64) -> Result<(), Failure> {
        for request in discards(&self.disk, offset, length)? {
            let (sender, told) = channel();
            let done = move |result: Result<&[u8], Failure>| _ = sender.send(result.map(|_| ()));
            self.submit(request, &[], Box::new(done));
            loop {
                match told.try_recv() {
                    Ok(result) => break result?,
                    Err(TryRecvError::Disconnected) => return Err(Failure::Lost),
                    Err(TryRecvError::Empty) if self.lane.wait().is_err() => {
                        self.disk.lose();
                        return Err(Failure::Lost);
                    }
                    Err(TryRecvError::Empty) => {}
                }
            }
        }
        Ok(())
    }
}

impl Drop for DrivenDisk {
    fn drop(&mut self) {
        self.lane.give_up();
    }
}
