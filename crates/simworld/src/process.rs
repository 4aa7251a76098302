//! Simulated processes, and what a scenario can do to them.

use std::any::Any;
use std::fmt;
use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use sys::event::Waker;
use sys::ring::Ring;
use sys::stream::{Listener, Stream};
use sys::world::{Thread, Work};

use super::net::Link;
use super::ring::SimRing;
use super::schedule::{Killed, Stage};
use super::state::{Place, State, Thread as Participant, Wait};
use super::stream::{SimListener, SimStream};

/// A simulated world, for the scenario that runs in it.
#[derive(Debug, Clone)]
pub struct World {
    stage: Arc<Stage>,
}

/// A process of a simulated world.
#[derive(Clone)]
pub struct Process {
    stage: Arc<Stage>,
    number: usize,
}

/// Name of the scenario's thread.
const FIRST: &str = "scenario";

impl World {
    /// Runs `scenario` in a new world with `seed`, on the calling thread. Returns what it returns.
    ///
    /// # Panics
    /// If the scenario or any thread of the world panics, no thread can run, or threads are left.
    pub fn run<T>(seed: u64, scenario: impl FnOnce(&Self) -> T) -> T {
        let stage = Arc::new(Stage::new(State::new(seed)));
        let world = Self { stage };
        world.stage.lock().add(FIRST.to_owned(), usize::MAX);
        world.stage.lock().threads[0].wait = None;
        let done = catch_unwind(AssertUnwindSafe(|| scenario(&world)));
        let mut state = world.stage.lock();
        state.finish();
        let is_left = |thread: &&Participant| !thread.has_ended && thread.name != FIRST;
        let left: Vec<String> =
            state.threads.iter().filter(is_left).map(|thread| thread.name.clone()).collect();
        drop(state);
        match done {
            Ok(done) => {
                assert!(left.is_empty(), "threads are left: {left:?}");
                done
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Creates a process.
    #[must_use]
    pub fn process(&self) -> Process {
        let mut state = self.stage.lock();
        state.processes += 1;
        Process { stage: Arc::clone(&self.stage), number: state.processes }
    }

    /// The simulated time, in nanoseconds; a world begins at one second.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.stage.lock().now_ns
    }

    /// A hash of all events so far: equal for equal runs.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.stage.lock().digest()
    }

    /// A random number below `bound`.
    #[must_use]
    pub fn draw(&self, bound: u64) -> u64 {
        self.stage.lock().draw.below(bound)
    }

    /// Lets `ns` nanoseconds of simulated time pass.
    pub fn pass(&self, ns: u64) {
        let until_ns = self.now_ns().saturating_add(ns);
        let never = Waker::new().expect("there are descriptors");
        self.stage.block(Wait::Waker(never), Some(until_ns));
    }

    /// Waits until the waker is used, or `ns` nanoseconds have passed. Returns whether it was used.
    #[must_use]
    pub fn wait(&self, waker: &Waker, ns: u64) -> bool {
        let until_ns = self.now_ns().saturating_add(ns);
        self.stage.block(Wait::Waker(waker.clone()), Some(until_ns));
        let is_used = waker.is_used();
        if is_used {
            waker.acknowledge();
        }
        is_used
    }

    /// Adds a link, over which connections to the addresses of `to` lead from now on. Returns its
    /// number.
    #[must_use]
    pub fn lay(&self, to: &[SocketAddr], link: Link) -> usize {
        let mut state = self.stage.lock();
        state.links.push(link);
        let number = state.links.len() - 1;
        state.ways.extend(to.iter().map(|address| (*address, number)));
        number
    }

    /// Changes the settings of a link.
    pub fn change(&self, link: usize, change: impl FnOnce(&mut Link)) {
        change(&mut self.stage.lock().links[link]);
    }

    /// Resets every connection over a link; both ends learn of it. Returns how many there were.
    #[must_use]
    pub fn reset(&self, link: usize) -> usize {
        self.each_of(link, |state, end| {
            state.reset(end);
            state.reset(end + 1);
        })
    }

    /// Resets every connection over a link for the end that dialled. What that end has sent stays
    /// under way for `ns` nanoseconds, and only then does the other end learn of the reset. Returns
    /// how many there were.
    #[must_use]
    pub fn strand(&self, link: usize, ns: u64) -> usize {
        self.each_of(link, |state, end| state.strand(end, state.now_ns + ns))
    }

    // Calls `act` for each open connection over a link, with the number of the end that dialled.
    // Returns how many there were.
    fn each_of(&self, link: usize, act: impl Fn(&mut State, usize)) -> usize {
        let mut state = self.stage.lock();
        let mut count = 0;
        for end in (0..state.ends.len()).step_by(2) {
            let of = &state.ends[end];
            if of.link == link && of.state.is_connected && !of.state.is_closed && !of.state.is_reset
            {
                act(&mut state, end);
                count += 1;
            }
        }
        count
    }
}

impl Process {
    /// The process as a world for a target or a disk.
    #[must_use]
    pub fn world(&self) -> Arc<dyn sys::world::World> {
        Arc::new(self.clone())
    }

    /// Stops the threads of the process whose names begin with `name` for `ns` nanoseconds.
    pub fn stall(&self, name: &str, ns: u64) {
        let mut state = self.stage.lock();
        let until_ns = state.now_ns.saturating_add(ns);
        for thread in &mut state.threads {
            if thread.process == self.number && thread.name.starts_with(name) {
                thread.stalled_until_ns = until_ns;
            }
        }
    }

    /// Kills the process as SIGKILL does: its threads do nothing more, its connections close, and
    /// unsent bytes are dropped.
    pub fn kill(&self) {
        let mut state = self.stage.lock();
        let own = |process: usize| process == self.number;
        for place in 0..state.places.len() {
            if own(state.places[place].process) {
                state.shut_place(place);
            }
        }
        for end in 0..state.ends.len() {
            if own(state.ends[end].process) {
                state.close(end);
            }
        }
        let threads: Vec<usize> =
            (0..state.threads.len()).filter(|&one| own(state.threads[one].process)).collect();
        for &thread in &threads {
            state.threads[thread].is_killed = true;
        }
        drop(state);
        for thread in threads {
            self.stage.block(Wait::Thread(thread), None);
        }
    }
}

impl State {
    /// Adds a thread, which waits for its first turn. Returns its number.
    pub(crate) fn add(&mut self, name: String, process: usize) -> usize {
        self.threads.push(Participant {
            name,
            process,
            bell: Arc::new(Condvar::new()),
            wait: Some((Wait::Turn, None)),
            stalled_until_ns: 0,
            is_killed: false,
            has_ended: false,
        });
        self.threads.len() - 1
    }
}

type Panic = Box<dyn Any + Send>;

impl sys::world::World for Process {
    fn now_ns(&self) -> u64 {
        self.stage.lock().now_ns
    }

    fn ring(&self, _entries: u32) -> sys::Result<Ring> {
        Ok(Ring::simulated(Box::new(SimRing::new(&self.stage))))
    }

    fn start(&self, name: String, work: Work) -> sys::Result<Thread> {
        let number = self.stage.lock().add(name.clone(), self.number);
        let stage = Arc::clone(&self.stage);
        let panicked: Arc<Mutex<Option<Panic>>> = Arc::default();
        let slot = Arc::clone(&panicked);
        let run = move || {
            let is_in = stage.enter(number);
            let done = catch_unwind(AssertUnwindSafe(move || {
                // The work's captures are dropped during a turn of the thread.
                if is_in { work() } else { drop(work) }
            }));
            let panic = done.err();
            let has_failed = panic.as_ref().is_some_and(|panic| !panic.is::<Killed>());
            if let (Some(panic), Ok(mut slot)) = (panic, slot.lock()) {
                *slot = Some(panic);
            }
            stage.leave(number, has_failed);
        };
        let thread = std::thread::Builder::new().name(name).spawn(run);
        let thread = thread.map_err(|error| sys::Error::new("start a thread", error))?;
        let stage = Arc::clone(&self.stage);
        Ok(Thread::new(Box::new(move || {
            stage.block(Wait::Thread(number), None);
            let _joined = thread.join();
            let panic = panicked.lock().ok().and_then(|mut panic| panic.take());
            // A killed thread was meant to end.
            panic.filter(|panic| !panic.is::<Killed>()).map_or(Ok(()), Err)
        })))
    }

    fn dial(&self, address: &str, patience: Duration) -> Result<Stream> {
        let to: SocketAddr = address.parse().map_err(|_| ErrorKind::InvalidInput)?;
        let mut state = self.stage.lock();
        let end = state.dial(to, self.number);
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = state.now_ns.saturating_add(patience_ns);
        state.ends[end].patience_ns = Some(patience_ns);
        drop(state);
        let stream = SimStream::new(&self.stage, end);
        self.stage.block(Wait::Dial(end), Some(until_ns));
        let now = self.stage.lock().ends[end].state;
        match now {
            _ if now.is_reset => Err(ErrorKind::ConnectionRefused.into()),
            _ if !now.is_connected => Err(ErrorKind::TimedOut.into()),
            _ => Ok(Stream::simulated(Arc::new(stream))),
        }
    }

    fn listen(&self, address: SocketAddr) -> Result<(Listener, SocketAddr)> {
        let mut state = self.stage.lock();
        if state.places.iter().any(|place| place.is_open && place.address == address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        state.places.push(Place {
            address,
            process: self.number,
            is_open: true,
            accepts: None,
            backlog: std::collections::VecDeque::new(),
        });
        let place = state.places.len() - 1;
        drop(state);
        Ok((Listener::simulated(Arc::new(SimListener::new(&self.stage, place))), address))
    }

    fn wait(&self, waker: &Waker, until_ns: Option<u64>) -> sys::Result<bool> {
        self.stage.block(Wait::Waker(waker.clone()), until_ns);
        Ok(waker.is_used())
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Process").field(&self.number).finish()
    }
}
