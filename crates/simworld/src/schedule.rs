//! Whose turn it is.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::ring::{Completed, Held};

use super::state::{State, Wait};

/// Where all threads of a world meet.
#[derive(Debug)]
pub(crate) struct Stage(Mutex<State>);

/// What a thread unwinds with that was killed.
pub(crate) struct Killed;

/// Turns without any time passing, from which on somebody is believed to look for something all the
/// time.
const TURNS_MOST: u32 = 100_000;
/// A world in which so much time has passed does not end.
const TIME_MOST_NS: u64 = 3_600_000_000_000;

impl Stage {
    pub(crate) const fn new(state: State) -> Self {
        Self(Mutex::new(state))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running thread waits for something, or until a time.
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

    // Lets the chosen thread run, and waits for its own turn.
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

    /// A thread waits for its first turn; whether it comes.
    pub(crate) fn enter(&self, own: usize) -> bool {
        let mut state = self.lock();
        let bell = Arc::clone(&state.threads[own].bell);
        while state.running != own && !state.is_over {
            state = bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_over && !state.threads[own].is_killed
    }

    /// A thread has ended; `failure` says how, if it was not to.
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

// Unless it does already.
fn die() {
    if !std::thread::panicking() {
        resume_unwind(Box::new(Killed));
    }
}

impl State {
    /// It is over for all threads.
    pub(crate) fn finish(&mut self) {
        self.is_over = true;
        for thread in &self.threads {
            thread.bell.notify_one();
        }
    }

    /// Draws one of those that can go on; until there is one, time passes.
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

    // Wakers of rings that somebody has used.
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

    // When something happens next.
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

fn describe(thread: &super::state::Thread) -> Option<String> {
    let wait = thread.wait.as_ref().filter(|_| !thread.has_ended)?;
    Some(format!("{} waits for {wait:?}", thread.name))
}
