//! A namespace as a disk: read and written by any thread, over one path or several, through losses
//! of connections and restarts of targets.
//!
//! ```text
//! Disk ─► pieces ─► Lane (thread, ring, a queue over each path)
//!                     ▲ queues, access states
//!                   Path (thread, admin queue): connect, keep alive, look, connect again
//! ```
//!
//! Blocks belong to one lane, by their address. A request lasts until a controller has answered it,
//! whatever happens to connections meanwhile; or until no path could be used for
//! [`DiskConfig::loss_timeout`], after which nothing of this disk is answered well any more. Flush
//! puts on the medium what was answered before, as far as controllers keep what they have answered:
//! a target that loses its memory has lost that, too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use backend::{Failure, Geometry, Operation, Request};
use sys::world::{self, Machine, Thread, World};

use super::HostError;
use super::admin::are_one;
use super::config::{DiskConfig, Observer};
use super::fence::LostWays;
use super::lane::Lane;
use super::mail::{Call, Mail};
use super::path::Path;
use super::piece::{Done, Memory, STRIPE_BYTES, pieces};
use super::post::Post;
use super::shared::Shared;
use super::ways::Ways;

/// See the module's description.
pub struct Disk {
    shared: Arc<Shared>,
    lanes: Vec<Thread>,
    paths: Vec<Thread>,
}

/// Bytes that are made zeros at once: by commands without data, and by writing them.
const ZEROES_AT_ONCE: u64 = 256 * STRIPE_BYTES;
const WRITTEN_AT_ONCE: u64 = 4 * STRIPE_BYTES;

impl Disk {
    /// Paths at most.
    pub const PATHS_MAX: usize = 8;

    /// Connects over every path that there is. Those that cannot be reached are looked for until
    /// the disk is dropped, as are those that are lost later.
    ///
    /// # Errors
    /// When there is no path, or one leads to something else than the others.
    pub fn attach(config: DiskConfig, observer: Observer) -> Result<Self, HostError> {
        Self::attach_in(&Machine::world(), config, observer)
    }

    /// As [`Disk::attach`], in a world.
    ///
    /// # Errors
    /// As [`Disk::attach`].
    pub fn attach_in(
        world: &Arc<dyn World>,
        config: DiskConfig,
        observer: Observer,
    ) -> Result<Self, HostError> {
        let paths = config.paths.iter().enumerate();
        let begun: Vec<_> =
            paths.map(|(number, path)| path.connect(world, number, config.queues)).collect();
        let there = || {
            begun
                .iter()
                .zip(&config.paths)
                .filter_map(|(one, path)| Some((one.as_ref().ok()?.found(), path)))
        };
        let Some((first, first_path)) = there().next() else {
            let failed = begun.into_iter().find_map(Result::err);
            return Err(failed.unwrap_or_else(|| no_path("none is named".to_owned())));
        };
        if first.geometry.block_count == 0 {
            let reason = format!("{} has no blocks", first.name);
            return Err(HostError::Protocol { operation: "look at a namespace", reason });
        }
        let granted = there().map(|(found, _)| found.queues).min();
        let shape = there().fold(first.shape, |shape, (found, _)| shape.and(&found.shape));
        let (first_path, owner) = (first_path.clone(), first.owner.clone());
        let (ids, block_count) = (first.ids, first.geometry.block_count);
        let (lane_posts, lane_mail) = posts(usize::from(granted.unwrap_or(1).max(1)))?;
        let (path_posts, path_mail) = posts(config.paths.len())?;
        let shared = Arc::new(Shared {
            world: Arc::clone(world),
            shape,
            first: first_path,
            owner,
            ids,
            lanes: lane_posts,
            paths: path_posts,
            memory: Memory::new(),
            is_lost: AtomicBool::new(false),
            quiesce_ns: AtomicU64::new(0),
            admin: config.paths.iter().map(|_| Mutex::new(None)).collect(),
            ways: Ways::new(config.paths.len()),
            lost_ways: LostWays::default(),
            block_count: AtomicU64::new(block_count),
            last_token: AtomicU64::new(0),
            observer,
            config,
        });
        let joined = begun.into_iter().enumerate().map(|(number, begun)| match begun {
            Ok(begun) => Path::join(number, &shared, begun).map(Ok),
            Err(error) => Ok(Err(error.to_string())),
        });
        let joined = joined.collect::<Result<Vec<_>, _>>()?;
        let mut disk = Self { shared, lanes: Vec::new(), paths: Vec::new() };
        for (lane, mail) in lane_mail.into_iter().enumerate() {
            let lane = disk.start_lane(lane, mail)?;
            disk.lanes.push(lane);
        }
        for ((number, mail), first) in path_mail.into_iter().enumerate().zip(joined) {
            let path = Path::new(number, Arc::clone(&disk.shared), mail);
            let run = Box::new(move || path.run(first));
            disk.paths.push(world.start(format!("afar-path-{number}"), run).map_err(system)?);
        }
        Ok(disk)
    }

    fn start_lane(&self, lane: usize, mail: Receiver<Mail>) -> Result<Thread, HostError> {
        let (shared, waker) = (Arc::clone(&self.shared), self.shared.lanes[lane].waker().clone());
        let world = &self.shared.world;
        let (sender, started) = world::channel().map_err(system)?;
        let (name, work) = (format!("afar-lane-{lane}"), move || {
            let lane = Lane::new(Arc::clone(&shared), mail, waker);
            let lane = lane.map_err(|error| _ = sender.send(Err(error)));
            let Ok(lane) = lane else { return };
            let _gone = sender.send(Ok(()));
            drop(sender);
            if lane.run().is_err() {
                shared.lose();
            }
        });
        let lane = world.start(name, Box::new(work)).map_err(system)?;
        started.receive(&**world).map_err(system)?.unwrap_or(Ok(())).map_err(system)?;
        Ok(lane)
    }

    /// How large it is now.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let block_bytes = 1 << self.shared.shape.block_shift;
        Geometry {
            block_shift: self.shared.shape.block_shift,
            block_count: self.shared.block_count.load(Ordering::Relaxed),
            optimal_bytes: block_bytes,
            atomic_bytes: block_bytes,
            is_read_only: false,
        }
    }

    /// Whether both are certainly one medium, by the identifiers of their namespaces.
    #[must_use]
    pub fn is_one_with(&self, other: &Self) -> bool {
        are_one(&self.shared.ids, &other.shared.ids)
    }

    /// Whether there was no path for too long.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.shared.is_lost.load(Ordering::Relaxed)
    }

    /// Begins what is asked, of any bytes inside the disk, and returns; `data` is what is written,
    /// as long as the request. `done` is told, by a thread of the disk, which waits for it.
    ///
    /// Requests that are under way at the same time are done in any order; but of those that change
    /// the same blocks one is done after another.
    pub fn submit(&self, request: Request, data: &[u8], done: Done) {
        let bytes = self.geometry().bytes();
        let end = request.offset.checked_add(request.length);
        if end.is_none_or(|end| end > bytes) {
            return done(Err(Failure::OutOfRange));
        }
        let Shared { shape, memory, lanes, .. } = &*self.shared;
        let mut shares: Vec<Vec<_>> = lanes.iter().map(|_| Vec::new()).collect();
        for piece in pieces(&request, data, done, shape, memory) {
            let stripe = piece.span[0] / STRIPE_BYTES;
            let lane = usize::try_from(stripe % lanes.len() as u64).unwrap_or(0);
            shares[lane].push(piece);
        }
        for (lane, share) in lanes.iter().zip(shares) {
            if !share.is_empty() {
                lane.tell(Mail::Pieces(share));
            }
        }
    }

    fn ask(&self, request: Request, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        let (sender, told) = channel();
        let done = move |result: Result<&[u8], Failure>| {
            let _gone = sender.send(result.map(<[u8]>::to_vec));
        };
        self.submit(request, data, Box::new(done));
        let read = told.recv().unwrap_or(Err(Failure::Lost))?;
        into.copy_from_slice(&read);
        Ok(())
    }

    /// Reads what is at `offset`.
    ///
    /// # Errors
    /// Why it could not be read.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Failure> {
        let length = into.len() as u64;
        self.ask(Request { operation: Operation::Read, offset, length }, &[], into)
    }

    /// Writes to `offset`; it is on the medium then if it is `forced`.
    ///
    /// # Errors
    /// Why it could not be written. Parts of it may have been.
    pub fn write_at(&self, offset: u64, data: &[u8], forced: bool) -> Result<(), Failure> {
        let operation = Operation::Write { forced };
        self.ask(Request { operation, offset, length: data.len() as u64 }, data, &mut [])
    }

    /// Puts what was written on the medium.
    ///
    /// # Errors
    /// When that is not known to have been done.
    pub fn flush(&self) -> Result<(), Failure> {
        self.ask(Request { operation: Operation::Flush, offset: 0, length: 0 }, &[], &mut [])
    }

    /// Makes `length` bytes zeros, which need take no room if it `deallocates`.
    ///
    /// # Errors
    /// As [`Disk::write_at`].
    pub fn zero(&self, offset: u64, length: u64, deallocates: bool) -> Result<(), Failure> {
        let by_commands = self.shared.shape.has_write_zeroes;
        let at_once = if by_commands { ZEROES_AT_ONCE } else { WRITTEN_AT_ONCE };
        self.each(Operation::Zero { deallocates, forced: false }, [offset, length], at_once)
    }

    /// Says that `length` bytes are not needed any more; what is read there then is anything.
    ///
    /// # Errors
    /// As [`Disk::write_at`].
    pub fn discard(&self, offset: u64, length: u64) -> Result<(), Failure> {
        if !self.shared.shape.has_dataset_management {
            return Ok(());
        }
        self.each(Operation::Discard, [offset, length], ZEROES_AT_ONCE)
    }

    fn each(
        &self,
        operation: Operation,
        [offset, length]: [u64; 2],
        at_once: u64,
    ) -> Result<(), Failure> {
        let end = offset.checked_add(length).ok_or(Failure::OutOfRange)?;
        let mut offset = offset;
        while offset < end {
            let length = at_once.min(end - offset);
            self.ask(Request { operation, offset, length }, &[], &mut [])?;
            offset += length;
        }
        Ok(())
    }
}

impl Drop for Disk {
    /// Ends what is under way as lost, and says good-bye to the controllers that are there.
    fn drop(&mut self) {
        self.shared.lanes.iter().for_each(|lane| lane.tell(Mail::Stop));
        for lane in self.lanes.drain(..) {
            let _ended = lane.join();
        }
        self.shared.paths.iter().for_each(|path| path.tell(Call::Stop));
        for (number, path) in self.paths.drain(..).enumerate() {
            // One that is connecting has nothing to say, and may take long.
            let is_up = self.shared.admin(number).is_some();
            if is_up {
                let _ended = path.join();
            }
        }
    }
}

type Ends<M> = (Vec<Post<M>>, Vec<Receiver<M>>);

fn posts<M>(count: usize) -> Result<Ends<M>, HostError> {
    let posts = (0..count).map(|_| Post::new()).collect::<sys::Result<Vec<_>>>();
    Ok(posts.map_err(system)?.into_iter().unzip())
}

fn system(sys::Error { operation, source }: sys::Error) -> HostError {
    HostError::Network { operation, source }
}

fn no_path(reason: String) -> HostError {
    HostError::Protocol { operation: "look for a path", reason }
}
