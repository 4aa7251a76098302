//! A disk whose owner does the work of its lane: no other thread stands between the two.
//!
//! ```text
//! submit ─► turn ─► (wait until the bell rings, or deadline_ns has come) ─► turn ─► done
//! ```
//!
//! For a loop that waits for other things, too. Paths keep their threads: they connect, keep alive
//! and look, and hand their queues over. Nothing moves but in [`DrivenDisk::turn`].

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
    // Before the disk, whose threads it needs no more.
    lane: Lane,
    disk: Arc<Disk>,
}

impl DrivenDisk {
    /// As [`Disk::attach`], with one queue over each path. The calling thread is the one that uses
    /// it.
    ///
    /// # Errors
    /// As [`Disk::attach`].
    pub fn attach(config: DiskConfig, observer: Observer) -> Result<Self, HostError> {
        let (disk, mut lane) = Disk::attach_driven(config, observer)?;
        let bell = lane.ring_mut().set_bell();
        bell.map_err(|sys::Error { operation, source }| HostError::Network { operation, source })?;
        Ok(Self { lane, disk: Arc::new(disk) })
    }

    /// The disk, to be asked what it is; its own requests would wait for [`DrivenDisk::turn`].
    #[must_use]
    pub const fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    /// As [`Disk::submit`]; `done` is told in a turn.
    pub fn submit(&mut self, request: Request, data: &[u8], done: Done) {
        let lane = &mut self.lane;
        let shared = Arc::clone(lane.shared());
        shared.cut(request, data, done, None, |_lane, pieces| lane.begin_all(pieces));
    }

    /// Sends what was asked, and takes what has ended, without waiting.
    pub fn turn(&mut self) {
        if self.lane.turn().is_err() {
            self.disk.lose();
        }
    }

    /// When the next turn is due though nothing has ended, by the monotonic clock.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.lane.deadline_ns()
    }

    /// Becomes readable, or readable anew, when a turn has something to take.
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.lane.ring().bell()
    }

    /// Makes the bell unreadable until it rings anew; a turn comes after that.
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
