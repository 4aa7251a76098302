//! Who asks something of a disk and is served by the threads that reach it: what comes in on a
//! descriptor is taken, asked for and answered by one thread.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use backend::{Geometry, Request};
use sys::ring::Ring;

use super::piece::Done;

/// Who asks, as one lane of the disk serves it.
pub trait Guest: Send {
    /// Becomes readable when there is something to take.
    fn descriptor(&self) -> &Arc<OwnedFd>;

    /// Takes what there is, or part of it, without waiting, and asks for it at the desk. Whether
    /// there may be more; if not, the guest is dropped.
    fn serve(&mut self, desk: &mut dyn Desk) -> bool;
}

/// Where a [`Guest`] asks for something: the lane that serves it.
pub trait Desk {
    /// How large the disk is now.
    fn geometry(&self) -> Geometry;

    /// As [`Disk::submit`](crate::Disk::submit). What only reads is done by this lane; what changes
    /// blocks, by the one whose they are.
    fn submit(&mut self, request: Request, data: &[u8], done: Done);
}

/// The token of the request that watches a guest.
pub(super) const GUEST: u64 = 1;

/// A guest of a lane, and whether there may be something to take.
#[derive(Default)]
pub(super) struct Visit {
    guest: Option<Box<dyn Guest>>,
    is_watched: bool,
    is_due: bool,
}

impl Visit {
    /// Somebody comes.
    pub(super) fn welcome(&mut self, guest: Box<dyn Guest>) {
        self.guest = Some(guest);
    }

    /// Has the ring tell when there is something to take.
    pub(super) fn watch(&mut self, ring: &mut Ring) {
        if let Some(guest) = self.guest.as_ref().filter(|_| !self.is_watched) {
            ring.watch(guest.descriptor(), GUEST);
            self.is_watched = true;
        }
    }

    /// There is, or the guest is to be dropped.
    pub(super) const fn told(&mut self) {
        (self.is_watched, self.is_due) = (false, true);
    }

    /// There may be, though nothing has told so.
    pub(super) const fn expect(&mut self) {
        self.is_due = true;
    }

    /// The guest, if it is to be served now.
    pub(super) fn take_due(&mut self) -> Option<Box<dyn Guest>> {
        if std::mem::take(&mut self.is_due) { self.guest.take() } else { None }
    }
}
