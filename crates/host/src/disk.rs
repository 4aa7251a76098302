//! A namespace as a disk: read and written by any thread, over one path or several, through losses
//! of connections and restarts of targets.
//!
//! ```text
//! Disk ─► pieces ─► Lane (thread, ring, a queue over each path)
//!                     ▲ queues, access states
//!                   Path (thread, admin queue): connect, keep alive, check, reconnect
//! ```
//!
//! Each block belongs to one lane, by its address. A request lasts until a controller has answered
//! it, through losses of connections; or until no path was usable for
//! [`DiskConfig::loss_timeout`], after which all requests fail. Flush puts completed writes on the
//! medium, unless a target has lost them: one that loses its memory loses its volatile write cache.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use backend::{Failure, Geometry, Operation, Request};
use sys::world::{self, Machine, Thread, World};

use super::HostError;
use super::admin::are_one;
use super::config::{DiskConfig, Observer};
use super::fence::LostWays;
use super::guest::Guest;
use super::lane::Lane;
use super::mail::{Call, Mail};
use super::path::{Joined, Path};
use super::piece::{Done, Memory, STRIPE_BYTES};
use super::post::Post;
use super::shared::Shared;
use super::ways::Ways;

/// See the module's description.
pub struct Disk {
    shared: Arc<Shared>,
    lanes: Vec<Thread>,
    paths: Vec<Thread>,
}

/// Bytes that one request zeroes: by commands without data, and by writing zeros.
const ZEROES_AT_ONCE: u64 = 256 * STRIPE_BYTES;
const WRITTEN_AT_ONCE: u64 = 4 * STRIPE_BYTES;

impl Disk {
    /// The number of paths of a disk, at most.
    pub const PATHS_MAX: usize = 8;

    /// Connects over all paths. Paths that cannot be reached, or are lost later, are tried again
    /// until the disk is dropped.
    ///
    /// # Errors
    /// When no path can be reached, or one leads to another namespace than the others.
    pub fn attach(config: DiskConfig, observer: Observer) -> Result<Self, HostError> {
        Self::attach_in(&Machine::world(), config, observer)
    }

    /// As [`Disk::attach`], in a world: the machine, or a simulation.
    ///
    /// # Errors
    /// As [`Disk::attach`].
    pub fn attach_in(
        world: &Arc<dyn World>,
        config: DiskConfig,
        observer: Observer,
    ) -> Result<Self, HostError> {
        let (mut disk, lane_mail, start) = Self::prepare(world, config, observer)?;
        for (lane, mail) in lane_mail.into_iter().enumerate() {
            let lane = disk.start_lane(lane, mail)?;
            disk.lanes.push(lane);
        }
        disk.start_paths(start)?;
        Ok(disk)
    }

    /// As [`Disk::attach`], with one lane, which the calling thread has to drive.
    pub(super) fn attach_driven(
        config: DiskConfig,
        observer: Observer,
    ) -> Result<(Self, Lane), HostError> {
        let config = DiskConfig { queues: 1, ..config };
        let (mut disk, lane_mail, start) = Self::prepare(&Machine::world(), config, observer)?;
        let mail = lane_mail.into_iter().next();
        let mail = mail.ok_or_else(|| no_path("it grants no queue".to_owned()))?;
        let waker = disk.shared.lanes[0].waker().clone();
        let lane = Lane::new(0, Arc::clone(&disk.shared), mail, waker).map_err(system)?;
        disk.start_paths(start)?;
        Ok((disk, lane))
    }

    // Connects all paths and checks that they lead to one namespace; starts no thread.
    fn prepare(
        world: &Arc<dyn World>,
        config: DiskConfig,
        observer: Observer,
    ) -> Result<Prepared, HostError> {
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
        let disk = Self { shared, lanes: Vec::new(), paths: Vec::new() };
        Ok((disk, lane_mail, path_mail.into_iter().zip(joined).collect()))
    }

    // Starts the threads of the paths.
    fn start_paths(&mut self, start: Vec<Start>) -> Result<(), HostError> {
        for (number, (mail, first)) in start.into_iter().enumerate() {
            let path = Path::new(number, Arc::clone(&self.shared), mail);
            let run = Box::new(move || path.run(first));
            let world = &self.shared.world;
            self.paths.push(world.start(format!("afar-path-{number}"), run).map_err(system)?);
        }
        Ok(())
    }

    // Starts the thread of a lane, and waits until it has its ring.
    fn start_lane(&self, lane: usize, mail: Receiver<Mail>) -> Result<Thread, HostError> {
        let (shared, waker) = (Arc::clone(&self.shared), self.shared.lanes[lane].waker().clone());
        let world = &self.shared.world;
        let (sender, started) = world::channel().map_err(system)?;
        let number = lane;
        let (name, work) = (format!("afar-lane-{lane}"), move || {
            let lane = Lane::new(number, Arc::clone(&shared), mail, waker);
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

    /// The current size and blocks.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.shared.geometry()
    }

    /// Whether both disks are one namespace, by identifiers.
    #[must_use]
    pub fn is_one_with(&self, other: &Self) -> bool {
        are_one(&self.shared.ids, &other.shared.ids)
    }

    /// Whether the disk is lost: there was no usable path for [`DiskConfig::loss_timeout`].
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.shared.is_lost.load(Ordering::Relaxed)
    }

    /// Begins a request for any bytes inside the disk, and returns; `data` is what is written, as
    /// long as the request. A thread of the disk calls `done` at the end, and waits for it.
    ///
    /// Concurrent requests are done in any order; but requests that change the same blocks are done
    /// one after another.
    pub fn submit(&self, request: Request, data: &[u8], done: Done) {
        let shared = &*self.shared;
        shared.cut(request, data, done, None, |lane, pieces| shared.give(lane, pieces));
    }

    /// The number of lanes: threads for different blocks.
    #[must_use]
    pub fn lane_count(&self) -> usize {
        self.shared.lanes.len()
    }

    /// Has a lane serve a guest, until the guest ends or the disk is dropped. A lane has one guest
    /// at a time.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn host(&self, lane: usize, guest: Box<dyn Guest>) {
        self.shared.lanes[lane].tell(Mail::Guest(guest));
    }

    /// Marks the disk as lost.
    pub(super) fn lose(&self) {
        self.shared.lose();
    }

    // Submits a request and waits for its end.
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

    /// Reads the bytes at `offset`.
    ///
    /// # Errors
    /// The reason why the bytes could not be read.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Failure> {
        let length = into.len() as u64;
        self.ask(Request { operation: Operation::Read, offset, length }, &[], into)
    }

    /// Writes to `offset`; with `forced` the data is on the medium afterwards.
    ///
    /// # Errors
    /// The reason why the data could not be written; parts may have been.
    pub fn write_at(&self, offset: u64, data: &[u8], forced: bool) -> Result<(), Failure> {
        let operation = Operation::Write { forced };
        self.ask(Request { operation, offset, length: data.len() as u64 }, data, &mut [])
    }

    /// Puts completed writes on the medium.
    ///
    /// # Errors
    /// When the flush is not known to have succeeded.
    pub fn flush(&self) -> Result<(), Failure> {
        self.ask(Request { operation: Operation::Flush, offset: 0, length: 0 }, &[], &mut [])
    }

    /// Zeroes `length` bytes; with `deallocates` they may be deallocated.
    ///
    /// # Errors
    /// As [`Disk::write_at`].
    pub fn zero(&self, offset: u64, length: u64, deallocates: bool) -> Result<(), Failure> {
        let by_commands = self.shared.shape.has_write_zeroes;
        let at_once = if by_commands { ZEROES_AT_ONCE } else { WRITTEN_AT_ONCE };
        self.each(Operation::Zero { deallocates, forced: false }, [offset, length], at_once)
    }

    /// Deallocates `length` bytes; reading them then returns anything.
    ///
    /// # Errors
    /// As [`Disk::write_at`].
    pub fn discard(&self, offset: u64, length: u64) -> Result<(), Failure> {
        let mut requests = discards(self, offset, length)?;
        requests.try_for_each(|request| self.ask(request, &[], &mut []))
    }

    // Executes an operation on a range, `at_once` bytes per request.
    fn each(
        &self,
        operation: Operation,
        [offset, length]: [u64; 2],
        at_once: u64,
    ) -> Result<(), Failure> {
        let mut requests = parts(operation, [offset, length], at_once)?;
        requests.try_for_each(|request| self.ask(request, &[], &mut []))
    }
}

/// The requests that deallocate `length` bytes of a disk; none if the disk cannot deallocate.
pub(super) fn discards(
    disk: &Disk,
    offset: u64,
    length: u64,
) -> Result<impl Iterator<Item = Request> + use<>, Failure> {
    let length = if disk.shared.shape.has_dataset_management { length } else { 0 };
    parts(Operation::Discard, [offset, length], ZEROES_AT_ONCE)
}

// Cuts a range into requests of at most `at_once` bytes.
fn parts(
    operation: Operation,
    [offset, length]: [u64; 2],
    at_once: u64,
) -> Result<impl Iterator<Item = Request>, Failure> {
    let end = offset.checked_add(length).ok_or(Failure::OutOfRange)?;
    let first = |from: &u64| (*from < end).then_some(*from);
    let offsets = std::iter::successors(first(&offset), move |from| {
        let next = from + at_once.min(end - from);
        (next < end).then_some(next)
    });
    Ok(offsets.map(move |offset| {
        let length = at_once.min(end - offset);
        Request { operation, offset, length }
    }))
}

impl Drop for Disk {
    /// Ends requests under way as lost, and shuts connected controllers down.
    fn drop(&mut self) {
        self.shared.lanes.iter().for_each(|lane| lane.tell(Mail::Stop));
        for lane in self.lanes.drain(..) {
            let _ended = lane.join();
        }
        self.shared.paths.iter().for_each(|path| path.tell(Call::Stop));
        for (number, path) in self.paths.drain(..).enumerate() {
            // A path that is connecting has no controller to shut down, and may take long.
            let is_up = self.shared.admin(number).is_some();
            if is_up {
                let _ended = path.join();
            }
        }
    }
}

/// Arguments of a path's thread: its mail, and its first connection or why there is none.
type Start = (Receiver<Call>, Result<Joined, String>);

/// A disk without threads, the mail of its lanes, and the arguments of its paths' threads.
type Prepared = (Disk, Vec<Receiver<Mail>>, Vec<Start>);

type Ends<M> = (Vec<Post<M>>, Vec<Receiver<M>>);

// Makes `count` mailboxes.
fn posts<M>(count: usize) -> Result<Ends<M>, HostError> {
    let posts = (0..count).map(|_| Post::new()).collect::<sys::Result<Vec<_>>>();
    Ok(posts.map_err(system)?.into_iter().unzip())
}

// The error for a failed system call.
fn system(sys::Error { operation, source }: sys::Error) -> HostError {
    HostError::Network { operation, source }
}

// The error that no path was found.
fn no_path(reason: String) -> HostError {
    HostError::Protocol { operation: "look for a path", reason }
}
