//! One path to a namespace, kept open by a thread of its own.
//!
//! ```text
//! join: controller ─► is it the namespace? ─► queue for each lane ─► ANA state ─► up
//!   ▲                                                                             │
//!   └── pause ◄── down ◄── lost ◄── keep alive, check after events ◄──────────────┘
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use super::HostError;
use super::admin::are_one;
use super::backoff::Backoff;
use super::config::DiskEvent;
use super::fence::{Fenced, LostWay};
use super::mail::{Call, Mail};
use super::piece::Piece;
use super::reach::{Found, Heard, Keeper, Queue};
use super::shared::Shared;
use nvme::log::AnaState;

/// A connected path: its keeper, and a queue for each lane.
pub(super) struct Joined {
    keeper: Box<dyn Keeper>,
    queues: Vec<Box<dyn Queue<Piece>>>,
}

/// Why a controller's service ended.
enum Over {
    Lost(String),
    Stopped,
}

/// See the module's description.
pub(super) struct Path {
    number: usize,
    shared: Arc<Shared>,
    mail: Receiver<Call>,
    generation: u64,
    /// The reason last reported for the path being down.
    last_reason: String,
    /// When to check the ANA state again, and whether a request has contradicted it.
    look_ns: Option<u64>,
    is_doubted: bool,
    /// Whether lost paths may have to be fenced over this one.
    fences: bool,
}

/// The first pause between two attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// How long a path has to be up for the pauses to begin again with the first.
const STEADY_NS: u64 = 10_000_000_000;
/// Time between two checks of an unusable ANA state, and before the check of a contradicted one.
const LOOK_NS: u64 = 1_000_000_000;
const LOOK_SOON_NS: u64 = 100_000_000;

impl Path {
    pub(super) const fn new(number: usize, shared: Arc<Shared>, mail: Receiver<Call>) -> Self {
        Self {
            number,
            shared,
            mail,
            generation: 0,
            last_reason: String::new(),
            look_ns: None,
            is_doubted: false,
            fences: false,
        }
    }

    /// Checks that a connected path leads to this disk, and opens a queue for each lane.
    pub(super) fn join(
        number: usize,
        shared: &Shared,
        keeper: Box<dyn Keeper>,
    ) -> Result<Joined, HostError> {
        shared.recognize(number, keeper.found())?;
        let Found { opening, name, .. } = keeper.found();
        if shared.config.trusts_identity {
            shared.ways.open(number, *opening);
        } else {
            shared.ways.join(number, *opening, name)?;
        }
        shared.expect_quiet(keeper.found());
        let joined = Self::begin(number, shared, keeper);
        if joined.is_err() {
            shared.ways.close(number);
        }
        joined
    }

    // Opens a queue for each lane, and has the keeper begin.
    fn begin(
        number: usize,
        shared: &Shared,
        mut keeper: Box<dyn Keeper>,
    ) -> Result<Joined, HostError> {
        let token = shared.next_token();
        let depth = shared.config.depth;
        let queues = (1..).zip(&shared.lanes);
        let queues = queues.map(|(number, _)| keeper.queue(number, depth, token));
        let queues = queues.collect::<Result<_, _>>()?;
        keeper.begin(shared.paths[number].waker())?;
        Ok(Joined { keeper, queues })
    }

    fn now_ns(&self) -> u64 {
        self.shared.world.now_ns()
    }

    // Connects the path.
    fn find(&self) -> Result<Joined, HostError> {
        let lanes = u16::try_from(self.shared.lanes.len()).unwrap_or(u16::MAX);
        let keeper = self.shared.config.paths[self.number].connect(
            &self.shared.world,
            self.number,
            lanes,
        )?;
        Self::join(self.number, &self.shared, keeper)
    }

    /// Keeps the path open until it is stopped, or the disk is lost.
    pub(super) fn run(mut self, first: Result<Joined, String>) {
        let seed = self.now_ns().wrapping_add(self.number as u64);
        let most = Duration::from_nanos(self.shared.config.reconnect_delay.as_ns());
        let mut backoff = Backoff::new(FIRST_PAUSE, most, seed);
        let mut found = first;
        loop {
            let began_ns = self.now_ns();
            let reason = match found {
                Ok(joined) => {
                    let over = self.serve(joined);
                    self.shared.ways.close(self.number);
                    match over {
                        Over::Stopped => return,
                        Over::Lost(reason) => reason,
                    }
                }
                Err(reason) => reason,
            };
            if self.now_ns() - began_ns >= STEADY_NS {
                backoff.reset();
            }
            self.tell_why(reason);
            if self.shared.is_lost.load(Ordering::Relaxed) || !self.rests(backoff.pause()) {
                return;
            }
            found = self.find().map_err(|error| error.to_string());
        }
    }

    // Reports why the path is down, unless the reason is the last one reported.
    fn tell_why(&mut self, reason: String) {
        if reason != self.last_reason {
            self.shared.tell(DiskEvent::PathDown { path: self.number, reason: &reason });
            self.last_reason = reason;
        }
    }

    // Pauses. Returns whether to try again afterwards.
    fn rests(&self, pause: Duration) -> bool {
        let waker = self.shared.paths[self.number].waker();
        let until_ns = self.now_ns().saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(0));
        loop {
            match self.mail.try_recv() {
                Ok(Call::Stop) | Err(TryRecvError::Disconnected) => return false,
                // These are about a controller that is lost already.
                Ok(Call::Lost { .. } | Call::Look { .. } | Call::Fence) => continue,
                Err(TryRecvError::Empty) => {}
            }
            if self.now_ns() >= until_ns {
                return true;
            }
            match self.shared.world.wait(waker, Some(until_ns)) {
                Ok(true) => waker.acknowledge(),
                Ok(false) => {}
                Err(_) => return false,
            }
        }
    }

    // Gives the lanes their queues, and keeps the path until it is lost or stopped.
    fn serve(&mut self, joined: Joined) -> Over {
        let Joined { mut keeper, queues } = joined;
        let mut state = keeper.found().state;
        self.generation += 1;
        let (path, generation) = (self.number, self.generation);
        self.shared.set_up(path, Some((generation, keeper.socket().cloned())));
        for (lane, queue) in self.shared.lanes.iter().zip(queues) {
            lane.tell(Mail::Up { path, generation, queue, state });
        }
        self.last_reason.clear();
        self.is_doubted = false;
        self.fences = true;
        self.look_again(state);
        self.shared.resize(keeper.found().geometry.block_count);
        self.shared.tell(DiskEvent::PathUp { path, state });
        let over = loop {
            let watched =
                self.fence(&mut *keeper).and_then(|()| self.watch(&mut *keeper, &mut state));
            match watched {
                Ok(None) => {}
                Ok(Some(over)) => break over,
                Err(error) => break Over::Lost(error.to_string()),
            }
        };
        match &over {
            Over::Stopped => keeper.shut_down(),
            Over::Lost(_) => {
                // Nothing unsent may arrive after this, not even a keep-alive.
                if let Some(socket) = keeper.socket() {
                    socket.forget_unsent();
                    socket.shut();
                }
                self.shared.set_up(path, None);
                let (lost, opening) = (keeper.lost(), keeper.found().opening);
                drop(keeper);
                for lane in &self.shared.lanes {
                    lane.tell(Mail::Down { path, generation });
                }
                if let Some(what) = lost {
                    let until_ns = self.now_ns() + self.shared.quiesce_ns.load(Ordering::Relaxed);
                    let way = LostWay { of: (path, generation), what, opening, until_ns };
                    self.shared.lost_ways.add(way);
                    self.shared.paths.iter().for_each(|other| other.tell(Call::Fence));
                }
            }
        }
        over
    }

    // Has the target end the commands of lost paths to the same opening.
    fn fence(&mut self, keeper: &mut dyn Keeper) -> Result<(), HostError> {
        if !std::mem::take(&mut self.fences) {
            return Ok(());
        }
        for way in self.shared.lost_ways.of(keeper.found().opening, self.now_ns()) {
            match keeper.fence(&way.what)? {
                Fenced::AtRest if self.shared.lost_ways.forget(way.of) => {
                    for lane in &self.shared.lanes {
                        lane.tell(Mail::AtRest(way.of));
                    }
                    self.shared.tell(DiskEvent::Fenced { path: way.of.0 });
                }
                Fenced::AtRest | Fenced::Never => {}
                Fenced::NotYet => {
                    self.fences = true;
                    self.look_soon();
                }
            }
        }
        Ok(())
    }

    // Has the ANA state checked soon.
    fn look_soon(&mut self) {
        let soon_ns = self.now_ns() + LOOK_SOON_NS;
        self.look_ns = Some(self.look_ns.map_or(soon_ns, |at| at.min(soon_ns)));
    }

    // Waits for an event or a call, and acts on it. Returns why the path is over, if it is.
    fn watch(
        &mut self,
        keeper: &mut dyn Keeper,
        state: &mut AnaState,
    ) -> Result<Option<Over>, HostError> {
        match keeper.wait(self.look_ns)? {
            Heard::Time | Heard::News => {}
            Heard::Called => return Ok(self.hear_calls()),
        }
        keeper.look()?;
        self.shared.recognize(self.number, keeper.found())?;
        self.shared.ways.open(self.number, keeper.found().opening);
        self.shared.resize(keeper.found().geometry.block_count);
        let now = keeper.found().state;
        let is_new = std::mem::replace(state, now) != now;
        let (path, generation, state) = (self.number, self.generation, now);
        if is_new {
            self.shared.tell(DiskEvent::PathState { path, state });
        }
        if is_new || std::mem::take(&mut self.is_doubted) {
            for lane in &self.shared.lanes {
                lane.tell(Mail::State { path, generation, state });
            }
        }
        self.look_again(state);
        Ok(None)
    }

    // Has an unusable ANA state checked regularly: its change may not be reported.
    fn look_again(&mut self, state: AnaState) {
        let is_usable = matches!(state, AnaState::Optimized | AnaState::NonOptimized);
        self.look_ns = (!is_usable).then(|| self.now_ns() + LOOK_NS);
    }

    // Acts on calls of other threads. Returns why the path is over, if it is.
    fn hear_calls(&mut self) -> Option<Over> {
        while let Ok(call) = self.mail.try_recv() {
            match call {
                Call::Stop => return Some(Over::Stopped),
                Call::Lost { generation, reason } if generation == self.generation => {
                    return Some(Over::Lost(reason.to_owned()));
                }
                // A pause bounds the checks of a controller that contradicts itself.
                Call::Look { generation } if generation == self.generation => {
                    self.is_doubted = true;
                    self.look_soon();
                }
                Call::Fence => self.fences = true,
                Call::Lost { .. } | Call::Look { .. } => {}
            }
        }
        None
    }
}

impl Shared {
    /// Checks that a path leads to this disk's namespace, and supports the disk's requests.
    ///
    /// # Errors
    /// What differs.
    pub(super) fn recognize(&self, path: usize, found: &Found) -> Result<(), HostError> {
        let paths = &self.config.paths;
        let is_unknown = self.ids.is_unknown() && found.ids.is_unknown();
        let is_one = are_one(&self.ids, &found.ids) || paths.len() == 1 && is_unknown;
        let Found { owner, name, queues, shape, .. } = found;
        let (moved, most) = (shape.transfer_bytes, self.shape.transfer_bytes);
        let reason = match () {
            () if paths[path].is_like(&self.first) && *owner != self.owner => {
                format!("its subsystem is another than {}", self.owner)
            }
            () if !is_one => format!("{name} there is another than this disk"),
            () if shape.block_shift != self.shape.block_shift => {
                format!("{name} has other blocks there")
            }
            () if moved < most => format!("it moves {moved} bytes, not {most}"),
            () if !shape.has_all_of(&self.shape) => format!("{name} can do less there"),
            () if usize::from(*queues) < self.lanes.len() => {
                format!("it takes {queues} queues, not {}", self.lanes.len())
            }
            () => return Ok(()),
        };
        Err(HostError::Protocol { operation: "look at a namespace", reason })
    }
}
