//! The state that all threads of a disk share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use backend::{Failure, Geometry, Request};
use nvme::NamespaceIds;
use sys::stream::Stream;
use sys::world::World;

use super::config::{DiskConfig, DiskEvent, Observer};
use super::disk_path::DiskPath;
use super::fence::LostWays;
use super::initiator::IscsiUri;
use super::mail::{Call, Mail};
use super::piece::{Done, Memory, Piece, STRIPE_BYTES, Shape, pieces};
use super::post::Post;
use super::reach::Found;
use super::ways::Ways;

/// Ring tokens of a queue: two for each connection.
const TOKENS: u64 = 2 * IscsiUri::CONNECTIONS_MAX as u64;

/// See the module's description.
pub(super) struct Shared {
    pub(super) world: Arc<dyn World>,
    pub(super) config: DiskConfig,
    pub(super) shape: Shape,
    /// The path over which the disk was first found, and its subsystem or target there.
    pub(super) first: DiskPath,
    pub(super) owner: String,
    pub(super) ids: NamespaceIds,
    pub(super) lanes: Vec<Post<Mail>>,
    pub(super) paths: Vec<Post<Call>>,
    pub(super) memory: Memory,
    pub(super) is_lost: AtomicBool,
    /// How long a controller may go on with the commands of a lost path, in nanoseconds.
    pub(super) quiesce_ns: AtomicU64,
    /// Connections of the admin queues of paths that are up, and generations of their controllers.
    pub(super) admin: Vec<Mutex<Option<Admin>>>,
    pub(super) ways: Ways,
    pub(super) lost_ways: LostWays,
    pub(super) block_count: AtomicU64,
    pub(super) last_token: AtomicU64,
    pub(super) observer: Observer,
}

/// The generation of a controller, and the connection of its admin queue, if it has one.
type Admin = (u64, Option<Stream>);

impl Shared {
    /// The current size and blocks of the disk.
    pub(super) fn geometry(&self) -> Geometry {
        let block_bytes = 1 << self.shape.block_shift;
        Geometry {
            block_shift: self.shape.block_shift,
            block_count: self.block_count.load(Ordering::Relaxed),
            optimal_bytes: block_bytes,
            atomic_bytes: block_bytes,
            is_read_only: false,
        }
    }

    /// Cuts a request into pieces, and calls `give` for each lane with its own. Any lane may
    /// execute pieces that change no blocks, so `asker`, if there is one, gets these.
    pub(super) fn cut(
        &self,
        request: Request,
        data: &[u8],
        done: Done,
        asker: Option<usize>,
        mut give: impl FnMut(usize, Vec<Piece>),
    ) {
        let end = request.offset.checked_add(request.length);
        if end.is_none_or(|end| end > self.geometry().bytes()) {
            return done(Err(Failure::OutOfRange));
        }
        let lane_of = |piece: &Piece| match asker {
            Some(asker) if !piece.is_change() => asker,
            _ => {
                let stripe = piece.span[0] / STRIPE_BYTES;
                usize::try_from(stripe % self.lanes.len() as u64).unwrap_or(0)
            }
        };
        let all = pieces(&request, data, done, &self.shape, &self.memory);
        let Some(first) = all.first().map(lane_of) else { return };
        if all.iter().all(|piece| lane_of(piece) == first) {
            return give(first, all);
        }
        let mut shares: Vec<Vec<_>> = self.lanes.iter().map(|_| Vec::new()).collect();
        all.into_iter().for_each(|piece| shares[lane_of(&piece)].push(piece));
        for (lane, share) in shares.into_iter().enumerate().filter(|(_, share)| !share.is_empty()) {
            give(lane, share);
        }
    }

    /// Sends pieces to a lane.
    pub(super) fn give(&self, lane: usize, pieces: Vec<Piece>) {
        self.lanes[lane].tell(Mail::Pieces(pieces));
    }

    /// Calls the observer with an event.
    pub(super) fn tell(&self, event: DiskEvent<'_>) {
        (self.observer)(event);
    }

    /// The admin connection of a path; `None` while the path is down.
    pub(super) fn admin(&self, path: usize) -> MutexGuard<'_, Option<Admin>> {
        self.admin[path].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the admin connection of a path, for [`Self::cut_off`]; `None` when the path is down.
    pub(super) fn set_up(&self, path: usize, admin: Option<Admin>) {
        *self.admin(path) = admin;
    }

    /// Closes the admin connection of a controller that a lane has lost: its keeper must not wait
    /// for it, or send keep-alives.
    pub(super) fn cut_off(&self, path: usize, generation: u64, reason: &'static str) {
        if let Some((of, Some(admin))) = &*self.admin(path)
            && *of == generation
        {
            admin.forget_unsent();
            admin.shut();
        }
        self.paths[path].tell(Call::Lost { generation, reason });
    }

    /// Tokens of a queue's requests to a ring: this number and the [`TOKENS`] less one after it.
    pub(super) fn next_token(&self) -> u64 {
        self.last_token.fetch_add(TOKENS, Ordering::Relaxed) + TOKENS
    }

    /// Sets the number of blocks, and reports a change; 0 means unknown.
    pub(super) fn resize(&self, block_count: u64) {
        if block_count > 0 && self.block_count.swap(block_count, Ordering::Relaxed) != block_count {
            self.tell(DiskEvent::Resized { bytes: block_count << self.shape.block_shift });
        }
    }

    /// Marks the disk as lost, and tells its lanes and the observer.
    pub(super) fn lose(&self) {
        if !self.is_lost.swap(true, Ordering::Relaxed) {
            self.tell(DiskEvent::Lost);
            self.lanes.iter().for_each(|lane| lane.tell(Mail::Lost));
        }
    }

    /// Takes over the time after which a lost path of this kind is at rest, if it is longer.
    pub(super) fn expect_quiet(&self, found: &Found) {
        self.quiesce_ns.fetch_max(found.quiet_ms * 1_000_000, Ordering::Relaxed);
    }
}
