//! What all threads of a disk know.

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

/// Two for each connection of a queue.
const TOKENS: u64 = 2 * IscsiUri::CONNECTIONS_MAX as u64;

/// What all threads of a disk know.
pub(super) struct Shared {
    pub(super) world: Arc<dyn World>,
    pub(super) config: DiskConfig,
    pub(super) shape: Shape,
    /// The path by which it was recognized first, and what has it there.
    pub(super) first: DiskPath,
    pub(super) owner: String,
    pub(super) ids: NamespaceIds,
    pub(super) lanes: Vec<Post<Mail>>,
    pub(super) paths: Vec<Post<Call>>,
    pub(super) memory: Memory,
    pub(super) is_lost: AtomicBool,
    /// How long a controller may go on with what a host has asked that it has lost.
    pub(super) quiesce_ns: AtomicU64,
    /// Connections of the admin queues that are there, with the generations of their controllers.
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
    /// How large the disk is now.
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

    /// Cuts what is asked into pieces, and gives each lane its own. What changes no blocks may be
    /// done by any lane, so the one that asks, if one does, has that itself.
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

    /// Hands pieces over to the lane that is to do them.
    pub(super) fn give(&self, lane: usize, pieces: Vec<Piece>) {
        self.lanes[lane].tell(Mail::Pieces(pieces));
    }

    pub(super) fn tell(&self, event: DiskEvent<'_>) {
        (self.observer)(event);
    }

    pub(super) fn admin(&self, path: usize) -> MutexGuard<'_, Option<Admin>> {
        self.admin[path].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path has a controller, which can be cut off; or has none.
    pub(super) fn set_up(&self, path: usize, admin: Option<Admin>) {
        *self.admin(path) = admin;
    }

    /// A lane has lost a controller. Its keeper is not to go on waiting for it, or say that this
    /// host is alive.
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

    /// The namespace has so many blocks now, or does not say.
    pub(super) fn resize(&self, block_count: u64) {
        if block_count > 0 && self.block_count.swap(block_count, Ordering::Relaxed) != block_count {
            self.tell(DiskEvent::Resized { bytes: block_count << self.shape.block_shift });
        }
    }

    /// There was no path for too long.
    pub(super) fn lose(&self) {
        if !self.is_lost.swap(true, Ordering::Relaxed) {
            self.tell(DiskEvent::Lost);
            self.lanes.iter().for_each(|lane| lane.tell(Mail::Lost));
        }
    }

    pub(super) fn expect_quiet(&self, found: &Found) {
        self.quiesce_ns.fetch_max(found.quiet_ms * 1_000_000, Ordering::Relaxed);
    }
}
