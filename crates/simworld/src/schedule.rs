//! The scheduler: which thread runs next.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::ring::{Completed, Held};

use super::state::{State, Wait};

/// The state of a world, shared by all of its threads.
#[derive(Debug)]
pub(crate) struct Stage(Mutex<State>);

/// The panic by which a killed thread unwinds.
pub(crate) struct Killed;

/// So many turns without a passage of time mean that a thread polls.
const TURNS_MOST: u32 = 100_000;
/// A world in which so much time has passed is taken for one that never ends.
const TIME_MOST_NS: u64 = 3_600_000_000_000;

impl Stage {
    pub(crate) const fn new(state: State) -> Self {
        Self(Mutex::new(state))
    }

    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the running thread until `wait` is over or `until_ns` has come, while others run.
    pub(crate) fn block(&self, wait: Wait, until_ns: Option<u64>) {
        let mut state = self.lock();
        let own = state.running;
        if state.is_over || state.threads[own].is_killed {
            drop(state);
            die();
            return;
        }
        state.threads[own].wait = Some((wait, until_ns));
        state.choose();
        self.hand_over(state, own);
    }

    // Lets the chosen thread run, and waits for the turn of thread `own`.
    fn hand_over(&self, mut state: MutexGuard<'_, State>, own: usize) {
        let next = state.running;
        if next != own {
            state.threads[next].bell.notify_one();
        }
        let bell = Arc::clone(&state.threads[own].bell);
        while state.running != own && !state.is_over {
            state = bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let must_die = state.is_over || state.threads[own].is_killed;
        drop(state);
        if must_die {
            die();
        }
    }

    /// Waits for the first turn of thread `own`. Returns whether it may run: not if it was killed
    /// or the world has ended.
    pub(crate) fn enter(&self, own: usize) -> bool {
        let mut state = self.lock();
        let bell = Arc::clone(&state.threads[own].bell);
        while state.running != own && !state.is_over {
            state = bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_over && !state.threads[own].is_killed
    }

    /// Ends thread `own`; with `has_failed` ends the whole world.
    pub(crate) fn leave(&self, own: usize, has_failed: bool) {
        let mut state = self.lock();
        state.threads[own].has_ended = true;
        if has_failed {
            state.finish();
        }
        if !state.is_over {
            state.choose();
            let next = state.running;
            state.threads[next].bell.notify_one();
        }
    }
}

// Unwinds the calling thread, unless it unwinds already.
fn die() {
    if !std::thread::panicking() {
        resume_unwind(Box::new(Killed));
    }
}

impl State {
    /// Ends the world for all threads.
    pub(crate) fn finish(&mut self) {
        self.is_over = true;
        for thread in &self.threads {
            thread.bell.notify_one();
        }
    }

    /// Chooses the next thread at random among those that can run; lets time pass until there is
    /// one.
    pub(crate) fn choose(&mut self) {
        loop {
            self.happen();
            self.hear();
            let able: Vec<usize> =
                (0..self.threads.len()).filter(|&thread| self.can_go_on(thread)).collect();
            if let Some(&first) = able.first() {
                let drawn = usize::try_from(self.draw.below(able.len() as u64)).unwrap_or(0);
                let next = able.get(drawn).copied().unwrap_or(first);
                self.note(next);
                if self.count_turn() > TURNS_MOST {
                    self.finish();
                    panic!("{} never lets time pass", self.threads[next].name);
                }
                self.threads[next].wait = None;
                self.running = next;
                return;
            }
            let Some(at_ns) = self.next_ns().filter(|&at| at <= TIME_MOST_NS) else {
                self.finish();
                let waits: Vec<String> = self.threads.iter().filter_map(describe).collect();
                let now_ms = self.now_ns / 1_000_000;
                panic!("after {now_ms} ms nobody can go on:\n{}", waits.join("\n"));
            };
            self.pass_to(at_ns);
        }
    }

    // Completes the requests of rings whose wakers were used.
    fn hear(&mut self) {
        for ring in &mut self.rings {
            let mut number = 0;
            while let Some((_, waker, _)) = ring.hears.get(number) {
                if !waker.is_used() {
                    number += 1;
                    continue;
                }
                waker.acknowledge();
                let (token, _, block) = ring.hears.remove(number);
                ring.in_flight -= 1;
                let completed = Completed {
                    token,
                    result: Ok(8),
                    held: Held::Block(block),
                    accepted: None,
                    has_more: false,
                    is_notice: false,
                };
                ring.ended.push_back((completed, None));
            }
        }
    }

    /// Whether a thread can run: its wait is over, or it was killed.
    fn can_go_on(&self, number: usize) -> bool {
        let thread = &self.threads[number];
        let Some((wait, until_ns)) = &thread.wait else { return false };
        if thread.has_ended {
            return false;
        }
        if thread.is_killed {
            return true;
        }
        if thread.stalled_until_ns > self.now_ns {
            return false;
        }
        let is_there = match wait {
            Wait::Ring(ring) => !self.rings[*ring].ended.is_empty(),
            Wait::Stream(end, waker) => {
                self.ends[*end].is_readable()
                    || waker.as_ref().is_some_and(sys::event::Waker::is_used)
            }
            Wait::Waker(waker) => waker.is_used(),
            Wait::Dial(end) => self.ends[*end].state.is_connected,
            Wait::Thread(other) => self.threads[*other].has_ended,
            Wait::Turn => true,
        };
        is_there || until_ns.is_some_and(|until| until <= self.now_ns)
    }

    // When the next event, deadline or end of a stall is; `None` if there is none.
    fn next_ns(&self) -> Option<u64> {
        let event = self.events.first_key_value().map(|(&(at, _), _)| at);
        let there = self.threads.iter().filter(|thread| !thread.has_ended);
        let times = there.filter_map(|thread| {
            let stalled = thread.stalled_until_ns;
            let until = thread.wait.as_ref()?.1.map(|until| until.max(stalled));
            until.into_iter().chain((stalled > self.now_ns).then_some(stalled)).min()
        });
        times.chain(event).min().map(|at| at.max(self.now_ns + 1))
    }
}

/// What a thread waits for, as text; `None` if it has ended or runs.
fn describe(thread: &super::state::Thread) -> Option<String> {
    let wait = thread.wait.as_ref().filter(|_| !thread.has_ended)?;
    Some(format!("{} waits for {wait:?}", thread.name))
}
