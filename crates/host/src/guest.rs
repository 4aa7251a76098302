//! Guests of a disk: sources of requests on a descriptor, which a lane's thread reads, executes and
//! answers itself.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use backend::{Geometry, Request};
use sys::ring::Ring;

use super::piece::Done;

/// A source of requests that one lane of the disk serves.
pub trait Guest: Send {
    /// A descriptor that becomes readable when there are requests.
    fn descriptor(&self) -> &Arc<OwnedFd>;

    /// Takes some or all waiting requests, without waiting, and submits them to the desk. Returns
    /// whether the guest goes on; if not, it is dropped.
    fn serve(&mut self, desk: &mut dyn Desk) -> bool;
}

/// The lane that serves a [`Guest`], as the guest sees it.
pub trait Desk {
    /// The disk's current size and blocks.
    fn geometry(&self) -> Geometry;

    /// As [`Disk::submit`](crate::Disk::submit). This lane executes reads; the lane of the blocks
    /// executes changes.
    fn submit(&mut self, request: Request, data: &[u8], done: Done);
}

/// The ring token for watching a guest's descriptor.
pub(super) const GUEST: u64 = 1;

/// The guest of a lane, and whether it may have requests.
#[derive(Default)]
pub(super) struct Visit {
    guest: Option<Box<dyn Guest>>,
    is_watched: bool,
    is_due: bool,
}

impl Visit {
    /// Sets the guest.
    pub(super) fn welcome(&mut self, guest: Box<dyn Guest>) {
        self.guest = Some(guest);
    }

    /// Has the ring report when the guest's descriptor is readable.
    pub(super) fn watch(&mut self, ring: &mut Ring) {
        if let Some(guest) = self.guest.as_ref().filter(|_| !self.is_watched) {
            ring.watch(guest.descriptor(), GUEST);
            self.is_watched = true;
        }
    }

    /// The ring has reported: serve the guest.
    pub(super) const fn told(&mut self) {
        (self.is_watched, self.is_due) = (false, true);
    }

    /// The guest may have requests without a report: serve it.
    pub(super) const fn expect(&mut self) {
        self.is_due = true;
    }

    /// Takes the guest out if it is to be served now.
    pub(super) fn take_due(&mut self) -> Option<Box<dyn Guest>> {
        if std::mem::take(&mut self.is_due) { self.guest.take() } else { None }
    }
}
