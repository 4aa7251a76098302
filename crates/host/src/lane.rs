//! One thread of a disk: its ring, and its queue over each path.
//!
//! ```text
//! mail ─► hazards ─► ready ─► the best path's queue ─► ended ─┬─► done
//!            ▲                  ▲                             ├─► next step ──► ready
//!            │                  └── another path, or later ◄──┘
//!            └── blocks are free again
//! ```
//!
//! Invariants:
//! - The lane of a block makes all changes of it, one at a time. So a lost change can be sent
//!   again: it overwrites no later one.
//! - After a change was sent again, its first copy may still be executed, until its controller is
//!   at rest (`ghosts`). Until then no other change of its blocks begins; the copy itself does no
//!   harm, for it writes the same data. A controller is at rest when another one has reset it
//!   (`fence`), or when it has ended the association: after the keep-alive time and the time it
//!   reports for ending commands (CQT); over iSCSI, after the time for which a silent target counts
//!   as present. A second is added to either (`quiet_ms`).
//! - A request ends once, and succeeds only if a controller said so.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use nvme::Status;
use nvme::log::AnaState;
use sys::block::Block;
use sys::event::Waker;
use sys::ring::{Completed, Held, Ring};

use backend::{Ended, Failure, Geometry, Request};

use super::Queue;
use super::ghosts::{AtRest, Ghost};
use super::guest::{Desk, GUEST, Visit};
use super::hazards::Hazards;
use super::mail::{Call, Mail};
use super::piece::{Done, Piece, Step};
use super::shared::Shared;

/// A lane's queue over a path.
#[derive(Default)]
struct Slot {
    queue: Option<Box<dyn Queue<Piece>>>,
    generation: u64,
    /// The ANA state; `None` after a request has contradicted it.
    state: Option<AnaState>,
    /// Whether no request has succeeded since the state was contradicted.
    is_doubted: bool,
}

/// See the module's description.
pub(super) struct Lane {
    /// The lane's number.
    number: usize,
    shared: Arc<Shared>,
    mail: Receiver<Mail>,
    waker: Waker,
    ring: Ring,
    slots: Vec<Slot>,
    /// Lost queues with operations that the kernel has not finished.
    dying: Vec<Box<dyn Queue<Piece>>>,
    ready: VecDeque<Piece>,
    hazards: Hazards<Piece>,
    at_rest: AtRest,
    /// Pieces to try again, and when.
    later: Vec<(u64, Piece)>,
    visit: Visit,
    /// Since when there is no usable path.
    without_ns: Option<u64>,
    is_stopping: bool,
    now_ns: u64,
    /// When I/O time-outs are checked next.
    look_ns: u64,
}

const RING_ENTRIES: u32 = 256;
const MAIL: u64 = 0;
/// Time between two checks of I/O time-outs, at most.
const LOOK_NS: u64 = 1_000_000_000;
/// How often a command is repeated after a transient failure, and after which pause.
const TRIES: u8 = 5;
const TRY_NS: u64 = 100_000_000;

impl Lane {
    /// Makes a lane for the calling thread.
    pub(super) fn new(
        number: usize,
        shared: Arc<Shared>,
        mail: Receiver<Mail>,
        waker: Waker,
    ) -> sys::Result<Self> {
        let ring = shared.world.ring(RING_ENTRIES)?;
        let now_ns = ring.now_ns();
        let slots = shared.config.paths.iter().map(|_| Slot::default()).collect();
        let mut lane = Self {
            number,
            shared,
            mail,
            waker,
            ring,
            slots,
            dying: Vec::new(),
            ready: VecDeque::new(),
            hazards: Hazards::new(),
            at_rest: AtRest::default(),
            later: Vec::new(),
            visit: Visit::default(),
            without_ns: Some(now_ns),
            is_stopping: false,
            now_ns,
            look_ns: now_ns,
        };
        lane.listen(Block::new(1));
        Ok(lane)
    }

    /// The data that all threads of the disk share.
    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    // Has the ring report new mail.
    fn listen(&mut self, block: Block) {
        self.ring.hear(&self.waker, MAIL, block);
    }

    /// Runs until it is stopped.
    pub(super) fn run(mut self) -> sys::Result<()> {
        while !self.is_stopping {
            self.wait()?;
        }
        self.give_up();
        Ok(())
    }

    /// Sends requests, waits for completions or a deadline, and handles them.
    pub(super) fn wait(&mut self) -> sys::Result<()> {
        self.send();
        let mut queues = self.slots.iter().filter_map(|slot| slot.queue.as_ref());
        if queues.any(|queue| queue.has_ended()) {
            self.ring.poll()?;
        } else {
            self.ring.wait_until(self.deadline_ns())?;
        }
        self.hear();
        Ok(())
    }

    /// Sends requests and handles completions, without waiting.
    pub(super) fn turn(&mut self) -> sys::Result<()> {
        self.now_ns = self.ring.now_ns();
        self.send();
        self.ring.poll()?;
        if self.ring.has_ended() || self.deadline_ns().is_some_and(|at| at <= self.now_ns) {
            self.hear();
            // Ended requests may have made others ready.
            self.send();
            self.ring.poll()?;
        }
        Ok(())
    }

    /// The ring, whose bell rings when [`Lane::turn`] is due.
    pub(super) const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The ring, mutable, for setting its bell.
    pub(super) const fn ring_mut(&mut self) -> &mut Ring {
        &mut self.ring
    }

    // Submits ready pieces, and has the ring send them.
    fn send(&mut self) {
        self.pump();
        for slot in &mut self.slots {
            if let Some(queue) = &mut slot.queue {
                queue.flush(&mut self.ring);
            }
        }
        self.visit.watch(&mut self.ring);
    }

    // Serves the guest if it may have requests.
    fn serve(&mut self) {
        let Some(mut guest) = self.visit.take_due() else { return };
        if guest.serve(self) {
            self.visit.welcome(guest);
        }
    }

    // Handles completions, deadlines, lost queues and the guest.
    fn hear(&mut self) {
        self.now_ns = self.ring.now_ns();
        let mut ended = Vec::new();
        while let Some(completed) = self.ring.take_ended() {
            self.complete(completed, &mut ended);
        }
        if !ended.is_empty() {
            // An answered guest submits again: its new requests are sent together with others.
            self.visit.expect();
        }
        for (path, one) in ended {
            self.take(path, one);
        }
        self.look_at_times();
        self.bury();
        self.serve();
    }

    // Dispatches a completion; requests that ended with it are added to `all`.
    fn complete(&mut self, completed: Completed, all: &mut Vec<(usize, Ended<Piece>)>) {
        if completed.token == MAIL {
            let Held::Block(block) = completed.held else { return };
            self.listen(block);
            while let Ok(mail) = self.mail.try_recv() {
                self.read(mail);
            }
            return;
        }
        if completed.token == GUEST {
            return self.visit.told();
        }
        let token = completed.token;
        let queues = self.slots.iter_mut().map(|slot| slot.queue.as_mut()).enumerate();
        let mut queues = queues.filter_map(|(path, queue)| Some((path, queue?)));
        let mut ended = Vec::new();
        if let Some((path, queue)) = queues.find(|(_, queue)| queue.has(token)) {
            queue.complete(completed, self.now_ns, &mut ended);
            all.extend(ended.into_iter().map(|one| (path, one)));
        } else if let Some(queue) = self.dying.iter_mut().find(|queue| queue.has(token)) {
            // Requests of a lost queue have ended before.
            queue.complete(completed, self.now_ns, &mut ended);
        }
    }

    // Acts on a mail.
    fn read(&mut self, mail: Mail) {
        match mail {
            Mail::Pieces(pieces) => self.begin_all(pieces),
            Mail::Up { path, generation, queue, state } => {
                self.drop_queue(path);
                let (queue, state) = (Some(queue), Some(state));
                self.slots[path] = Slot { queue, generation, state, is_doubted: false };
            }
            Mail::State { path, generation, state } => {
                let slot = &mut self.slots[path];
                if slot.generation == generation {
                    slot.state = Some(state);
                }
            }
            Mail::Down { path, generation } => {
                if self.slots[path].generation == generation {
                    self.drop_queue(path);
                }
            }
            Mail::AtRest(of) => {
                let until_ns = self.now_ns + self.shared.quiesce_ns.load(Ordering::Relaxed);
                self.at_rest.add(of, until_ns, self.now_ns);
                self.hazards.rest(of);
            }
            Mail::Guest(guest) => self.visit.welcome(guest),
            Mail::Lost => self.give_up(),
            Mail::Stop => self.is_stopping = true,
        }
    }

    /// Begins pieces.
    pub(super) fn begin_all(&mut self, pieces: Vec<Piece>) {
        pieces.into_iter().for_each(|piece| self.begin(piece));
    }

    // Makes a piece ready; a change waits for earlier changes of its blocks.
    fn begin(&mut self, piece: Piece) {
        if self.shared.is_lost.load(Ordering::Relaxed) {
            piece.end(Err(Failure::Lost), &self.shared.memory);
        } else if piece.is_change() {
            let change = self.hazards.take(piece.blocks, piece, self.now_ns);
            self.ready.extend(change);
        } else {
            self.ready.push_back(piece);
        }
    }

    // The first path with the best ANA state; `None` if none is usable.
    fn best(&self) -> Option<usize> {
        let in_state = |wanted: AnaState| {
            self.slots.iter().position(|slot| {
                let is_there = slot.queue.as_ref().is_some_and(|queue| !queue.is_lost());
                is_there && slot.state == Some(wanted)
            })
        };
        in_state(AnaState::Optimized).or_else(|| in_state(AnaState::NonOptimized))
    }

    // Submits ready pieces over the best path, up to its depth.
    fn pump(&mut self) {
        loop {
            let Some(path) = self.best() else {
                self.without_ns.get_or_insert(self.now_ns);
                return;
            };
            let depth = usize::from(self.shared.config.depth);
            let Slot { queue: Some(queue), is_doubted, .. } = &mut self.slots[path] else { return };
            // A path over which no request succeeds does not count as usable.
            if *is_doubted && !(self.ready.is_empty() && queue.outstanding() == 0) {
                self.without_ns.get_or_insert(self.now_ns);
            } else {
                self.without_ns = None;
            }
            if queue.outstanding() >= depth {
                return;
            }
            let Some(mut piece) = self.ready.pop_front() else { return };
            piece.sent_ns = self.now_ns;
            let (request, block) = (piece.request(&self.shared.shape), piece.block.take());
            if let Some(ended) = queue.submit(request, block, piece) {
                self.take(path, ended);
            }
        }
    }

    // Takes a piece that has ended over a path: continues, repeats or ends it.
    fn take(&mut self, path: usize, ended: Ended<Piece>) {
        let Ended { result, block, tag: mut piece, .. } = ended;
        piece.block = block;
        let is_of_path = match result {
            Err(Failure::Lost) => true,
            Err(Failure::Refused(bits)) => Status::from_bits(bits).is_of_path(),
            _ => false,
        };
        self.slots[path].is_doubted &= is_of_path;
        match result {
            Ok(()) if piece.advance() => self.ready.push_front(piece),
            Err(Failure::Lost) => {
                if piece.is_change() && piece.step != Step::Fetch {
                    let until_ns = self.now_ns + self.shared.quiesce_ns.load(Ordering::Relaxed);
                    let of = (path, self.slots[path].generation);
                    piece.ghosts.push(Ghost { of, until_ns });
                }
                self.ready.push_front(piece);
            }
            Err(Failure::Refused(bits)) => self.refused(path, piece, Status::from_bits(bits)),
            Ok(()) | Err(_) => self.end(piece, result),
        }
    }

    // Handles a refused piece: another path, a later try, or a failure.
    fn refused(&mut self, path: usize, mut piece: Piece, status: Status) {
        if status.is_of_path() {
            let slot = &mut self.slots[path];
            (slot.state, slot.is_doubted) = (None, true);
            self.shared.paths[path].tell(Call::Look { generation: slot.generation });
            self.ready.push_front(piece);
        } else if status.is_final() || piece.failure_count >= TRIES {
            self.end(piece, Err(Failure::Refused(status.bits())));
        } else {
            piece.failure_count += 1;
            self.later.push((self.now_ns + TRY_NS, piece));
        }
    }

    // Ends a piece, and makes changes ready that waited for its blocks.
    fn end(&mut self, mut piece: Piece, result: Result<(), Failure>) {
        if piece.is_change() {
            let mut ghosts = std::mem::take(&mut piece.ghosts);
            ghosts.retain(|ghost| self.at_rest.haunts(ghost, self.now_ns));
            self.hazards.release(piece.blocks, ghosts);
            while let Some(next) = self.hazards.next(self.now_ns) {
                self.ready.push_back(next);
            }
        }
        piece.end(result, &self.shared.memory);
    }

    // Drops a path's queue; its requests become ready again.
    fn drop_queue(&mut self, path: usize) {
        let Some(mut queue) = self.slots[path].queue.take() else { return };
        let mut ended = Vec::new();
        queue.lose(&mut ended);
        self.dying.push(queue);
        for one in ended.into_iter().rev() {
            self.take(path, one);
        }
    }

    // Drops queues that were lost, and frees those that the kernel has finished with.
    fn bury(&mut self) {
        for path in 0..self.slots.len() {
            let slot = &self.slots[path];
            if slot.queue.as_ref().is_some_and(|queue| queue.is_lost()) {
                let generation = slot.generation;
                self.shared.cut_off(path, generation, CLOSED);
                self.drop_queue(path);
            }
        }
        self.dying.retain(|queue| !queue.is_idle());
    }

    /// When the lane has to act without a completion; `None` if never.
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        let is_busy =
            self.slots.iter().flat_map(|slot| &slot.queue).any(|queue| queue.outstanding() > 0);
        let queues = self.slots.iter().flat_map(|slot| &slot.queue);
        let times = [
            queues.filter_map(|queue| queue.deadline_ns()).min(),
            self.hazards.deadline_ns(),
            self.later.iter().map(|(at, _)| *at).min(),
            self.lost_at_ns(),
            (is_busy || !self.dying.is_empty()).then_some(self.look_ns),
        ];
        times.into_iter().flatten().min()
    }

    // When the disk is lost unless a path becomes usable; `None` while one is.
    fn lost_at_ns(&self) -> Option<u64> {
        let is_lost = self.shared.is_lost.load(Ordering::Relaxed);
        let since_ns = self.without_ns.filter(|_| !is_lost)?;
        Some(since_ns.saturating_add(self.shared.config.loss_timeout.as_ns()))
    }

    // Acts on deadlines that have passed.
    fn look_at_times(&mut self) {
        let now_ns = self.now_ns;
        for path in 0..self.slots.len() {
            let mut ended = Vec::new();
            if let Some(queue) = &mut self.slots[path].queue {
                queue.look(now_ns, &mut ended);
            }
            for one in ended {
                self.take(path, one);
            }
        }
        while let Some(change) = self.hazards.next(now_ns) {
            self.ready.push_back(change);
        }
        for (_, piece) in self.later.extract_if(.., |(at, _)| *at <= now_ns) {
            self.ready.push_back(piece);
        }
        if now_ns >= self.look_ns {
            self.look_ns = now_ns + LOOK_NS.min(self.shared.config.io_timeout.as_ns() / 4);
            self.look_for_silence();
        }
        if self.lost_at_ns().is_some_and(|at| at <= now_ns) {
            self.shared.lose();
            self.give_up();
        }
    }

    // Drops paths with requests older than the I/O time-out.
    fn look_for_silence(&mut self) {
        let most_ns = self.shared.config.io_timeout.as_ns();
        for path in 0..self.slots.len() {
            let slot = &self.slots[path];
            let Some(queue) = &slot.queue else { continue };
            if queue.any(&|piece| self.now_ns - piece.sent_ns >= most_ns) {
                let generation = slot.generation;
                self.shared.cut_off(path, generation, SILENT);
                self.drop_queue(path);
            }
        }
    }

    /// Ends all requests as lost.
    pub(super) fn give_up(&mut self) {
        for path in 0..self.slots.len() {
            self.drop_queue(path);
        }
        let waiting = self.hazards.give_up();
        let later = self.later.drain(..).map(|(_, piece)| piece);
        for piece in self.ready.drain(..).chain(waiting).chain(later) {
            piece.end(Err(Failure::Lost), &self.shared.memory);
        }
    }
}

impl Desk for Lane {
    fn geometry(&self) -> Geometry {
        self.shared.geometry()
    }

    fn submit(&mut self, request: Request, data: &[u8], done: Done) {
        let (shared, number) = (Arc::clone(&self.shared), self.number);
        shared.cut(request, data, done, Some(number), |owner, pieces| {
            if owner == number {
                self.begin_all(pieces);
            } else {
                shared.give(owner, pieces);
            }
        });
    }
}

const CLOSED: &str = "the connection was lost";
const SILENT: &str = "a request was not answered in time";
