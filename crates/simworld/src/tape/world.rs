//! A world whose threads are recorded or replayed.

use std::fmt;
use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sys::event::Waker;
use sys::ring::Ring;
use sys::stream::{Listener, Stream};
use sys::world::{Machine, Thread, Work, World};

use super::ring::TapedRing;
use super::stream::TapedListener;
use super::turns::{Effect, Input, Record, Tape};

/// A tape, as a world for a target and for the thread that runs the scenario.
#[derive(Clone)]
pub struct Taped(Arc<Tape>);

impl Taped {
    /// A world that records what a target does on this machine.
    #[must_use]
    pub fn to_record() -> Self {
        Self(Tape::to_record())
    }

    /// A world that replays `record`.
    #[must_use]
    pub fn to_play(record: &Record) -> Self {
        Self(Tape::to_play(record))
    }

    /// The tape as a world.
    #[must_use]
    pub fn world(&self) -> Arc<dyn World> {
        Arc::new(self.clone())
    }

    /// Runs `work`, which is not on the tape, while the threads of the target have their turns.
    /// During replay `work` is not run, and this returns where it returned in the recording.
    pub fn outside(&self, work: impl FnOnce()) {
        let own = self.0.let_go();
        if !self.0.is_played() {
            work();
        }
        self.0.turn(own, |_| Input::Outside);
    }

    /// Returns the recording.
    ///
    /// # Panics
    /// If a replay has entries left.
    #[must_use]
    pub fn end(self) -> Record {
        self.0.end()
    }
}

/// Ends the turn of a thread when it is dropped.
struct Last(Arc<Tape>);

impl Drop for Last {
    fn drop(&mut self) {
        let _own = self.0.let_go();
    }
}

impl World for Taped {
    fn now_ns(&self) -> u64 {
        self.0.lock().now_ns
    }

    fn ring(&self, entries: u32) -> sys::Result<Ring> {
        self.0.ask(Effect::Ring);
        Ok(Ring::simulated(Box::new(TapedRing::new(&self.0, entries)?)))
    }

    fn start(&self, name: String, work: Work) -> sys::Result<Thread> {
        self.0.ask(Effect::Start(name.clone()));
        let (own, tape) = (self.0.thread(), Arc::clone(&self.0));
        let run = move || {
            tape.turn(own, |_| Input::Began);
            let _last = Last(tape);
            work();
        };
        let thread = std::thread::Builder::new().name(name).spawn(run);
        let thread = thread.map_err(|error| sys::Error::new("start a thread", error))?;
        let tape = Arc::clone(&self.0);
        Ok(Thread::new(Box::new(move || {
            let own = tape.let_go();
            if tape.is_played() {
                if tape.has_failed() {
                    // The thread that waits reports the difference.
                    let _panicked = thread.join();
                    return Ok(());
                }
                tape.turn(own, |_| Input::Joined);
                return thread.join();
            }
            let ended = thread.join();
            tape.turn(own, |_| Input::Joined);
            ended
        })))
    }

    fn dial(&self, _address: &str, _patience: Duration) -> Result<Stream> {
        Err(ErrorKind::Unsupported.into())
    }

    fn listen(&self, address: SocketAddr) -> Result<(Listener, SocketAddr)> {
        self.0.ask(Effect::Listen(address));
        let mut real = None;
        if !self.0.is_played() {
            real = Some(Machine.listen(address)?);
        }
        let given = real.as_ref().map_or(address, |(_, local)| *local);
        let local = self.0.address(|| given);
        let mut state = self.0.lock();
        state.places.push(real.map(|(listener, _)| listener));
        let place = state.places.len() - 1;
        drop(state);
        Ok((Listener::simulated(Arc::new(TapedListener::new(&self.0, place))), local))
    }

    fn wait(&self, waker: &Waker, until_ns: Option<u64>) -> sys::Result<bool> {
        let own = self.0.let_go();
        let is_used = if self.0.is_played() { false } else { Machine.wait(waker, until_ns)? };
        match self.0.turn(own, |_| Input::Waited(is_used)) {
            Input::Waited(is_used) => Ok(is_used),
            other => panic!("a thread that waits for a waker gets {other:?}"),
        }
    }
}

impl fmt::Debug for Taped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Taped")
    }
}
