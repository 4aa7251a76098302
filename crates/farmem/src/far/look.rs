//! How the supervisor polls for faults that ask for pages on a blade, and for how long.
//!
//! DESIGN NOTES
//!
//! * While the supervisor looks, a fault spins in the trap and finds its page mapped: no thread
//!   sleeps and none is woken. That costs a processor, so the supervisor looks only as long as
//!   another fault is likely to come soon. How long that is follows from how long it slept before
//!   the last faults, as KVM does it for its guests (halt polling).
//! * Memory of a blade comes soonest where the supervisor, and a blade on the same machine, have
//!   one processor and the program another: what they send one another then waits for no
//!   interrupt. `RunConfig::processor` keeps the supervisor there.
//! * A fault on the supervisor's own processor finds nobody who looks. The supervisor moves to
//!   another one, now and then; where the program is on all of them it does not look.
//! * An answer of a blade, and a helper that drops pages, may need the processor of the supervisor.
//!   Where there are no more than two, it yields while one of them is expected. Where somebody else
//!   then computes for long, it sleeps, and what it waits for wakes it.
//! * The supervisor has no priority over others while it looks: a target or a program that needs
//!   its processor has it. Threads then spin for nobody; where many do, none spins for a second.
//! * A fault whose page comes no sooner than it may spin is let go at once, and sleeps. How long
//!   pages take is a moving median, of all that come.

use std::sync::atomic::Ordering;
use std::time::Duration;

use paging::regions::PAGE;
use paging::word::{State, Word};
use sys::event::Ready;

use crate::RunError;
use crate::far::Far;
use crate::supervisor::{Supervisor, is_fault};
use crate::userfault_trap::Touch;
use tables::{Ask, Asks};

/// Rounds of polling between two looks at all other events.
const TURNS: u32 = 256;
/// Faults come in bursts: without a fault for so long, there is time to evict pages.
const REST_NS: u64 = 10_000;
/// After a pause of this length, pages that gave their frames away leave the memory file.
const PAUSE_NS: u64 = 1_000;
/// A yield that takes longer went to a thread that computes: a target answers sooner.
const YIELD_NS: u64 = 50_000;
/// With more processors, polling takes none from others.
const PROCESSORS_FEW: u64 = 2;

impl Supervisor<'_> {
    /// Waits for the next events, and polls for asks meanwhile.
    pub(crate) fn await_events(&mut self, ready: &mut Vec<Ready>) -> Result<(), RunError> {
        ready.clear();
        if self.has_answers_at_once()? {
            return Ok(());
        }
        let patience = self.patience();
        if self.faults.asks.is_none() {
            let patience = patience.into_iter().chain(self.blade_due()).min();
            self.kernel.poll.wait(patience, ready)?;
            return self.ask_late_blade();
        }
        if patience.is_none() && self.is_aside() && self.look(ready)? {
            return Ok(());
        }
        // No fault spins for a supervisor that sleeps.
        self.faults.asks.iter().for_each(Asks::rest);
        if self.serve()? {
            return Ok(());
        }
        let patience = patience.into_iter().chain(self.blade_due()).min();
        let slept = sys::clock::monotonic_ns();
        self.kernel.poll.wait(patience, ready)?;
        self.can_be_asked();
        self.ask_late_blade()?;
        if ready.iter().any(|event| is_fault(event.token)) {
            let slept_ns = sys::clock::monotonic_ns().saturating_sub(slept);
            self.faults.far.iter_mut().for_each(|far| far.patience.woken(slept_ns));
        }
        Ok(())
    }

    /// How long until the blade is to be polled though it has not rung; `None` without a deadline.
    pub(crate) fn blade_due(&self) -> Option<Duration> {
        Far::due(self.faults.far.as_ref()?.blade.deadline_ns())
    }

    /// Flushes requests to the blade. Returns whether an answer or an ask was served at once.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub(crate) fn has_answers_at_once(&mut self) -> Result<bool, RunError> {
        if self.faults.far.is_none() {
            return Ok(false);
        }
        self.faults.far.iter_mut().for_each(|far| far.blade.flush());
        let any = self.serve()?;
        if any {
            self.serve_waiting();
        }
        Ok(any)
    }

    // Polls the blade if its deadline has passed without a ring.
    fn ask_late_blade(&mut self) -> Result<(), RunError> {
        match self.blade_due() {
            Some(Duration::ZERO) => self.hear_blade(),
            _ => Ok(()),
        }
    }

    // Whether the supervisor runs beside the program: moves to another processor if it does not.
    fn is_aside(&mut self) -> bool {
        let here = sys::processors::current();
        let near = self.faults.asks.as_ref().and_then(Asks::near);
        if near != Some(here) {
            return true;
        }
        let now = sys::clock::monotonic_ns();
        let far = self.faults.far.as_mut().filter(|_| self.config.processor.is_none());
        let Some(far) = far else { return false };
        far.patience.may_move(now) && sys::processors::leave(here).is_ok()
    }

    // Polls for asks and answers of the blade. Returns whether other events are ready.
    fn look(&mut self, ready: &mut Vec<Ready>) -> Result<bool, RunError> {
        self.can_be_asked();
        let mut served = sys::clock::monotonic_ns();
        let mut until = served + self.look_ns();
        let (mut turns, mut is_owed) = (0_u32, false);
        loop {
            if self.serve()? {
                served = sys::clock::monotonic_ns();
                until = served + self.look_ns();
                is_owed = true;
            }
            if is_owed {
                let rest = sys::clock::monotonic_ns().saturating_sub(served);
                if rest > REST_NS || !self.has_plenty() {
                    self.restore_budgets();
                    is_owed = false;
                } else if rest > PAUSE_NS && self.has_pauses() {
                    self.depart_between_asks();
                }
            }
            if self.fatal.is_some() || self.is_needed_elsewhere() && !has_yielded() {
                break;
            }
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(TURNS) {
                self.kernel.poll.wait(Some(Duration::ZERO), ready)?;
            }
            if !ready.is_empty() || sys::clock::monotonic_ns() >= until {
                break;
            }
            std::hint::spin_loop();
        }
        if is_owed {
            self.restore_budgets();
        }
        Ok(!ready.is_empty())
    }

    // Whether a helper unmaps pages.
    fn is_dropping(&self) -> bool {
        // Reads no slot without a process: a look at all 4,096 took 3 us, and faults wait for half.
        self.people.slots.values().any(|&slot| {
            let arena = self.people.arenas[slot].as_ref();
            arena.is_some_and(|arena| arena.helper.awaited.dropping() > 0)
        })
    }

    // Whether faults leave time between them for pages to leave.
    fn has_pauses(&self) -> bool {
        self.faults.far.as_ref().is_some_and(|far| far.patience.has_pauses())
    }

    // Whether enough frames can be had for the next faults.
    fn has_plenty(&self) -> bool {
        self.faults.far.as_ref().is_some_and(|far| far.leavers.is_plenty())
    }

    // Lets faults spin from here on: the supervisor is awake, and polls soon.
    fn can_be_asked(&self) {
        if let Some(asks) = self.faults.asks.as_ref().filter(|_| self.look_ns() > 0) {
            asks.look(sys::processors::current());
        }
    }

    /// Judges whether spins are answered. Called at every tick.
    pub(crate) fn judge_spins(&mut self) {
        let spins = self.faults.asks.as_ref().map(Asks::counts);
        if let (Some(spins), Some(far)) = (spins, self.faults.far.as_mut()) {
            far.patience.judge(spins);
        }
    }

    // How long to poll after a fault, in nanoseconds.
    fn look_ns(&self) -> u64 {
        self.faults.far.as_ref().map_or(0, |far| far.patience.look_ns())
    }

    // Whether another thread may need this processor for what the supervisor waits for.
    fn is_needed_elsewhere(&self) -> bool {
        let Some(far) = &self.faults.far else { return false };
        let expects = !far.coming.is_empty() || far.leavers.is_any_sent();
        self.processors <= PROCESSORS_FEW && (expects || self.is_dropping())
    }

    /// Serves asks and the answers of the blade. Returns whether there were any.
    ///
    /// # Errors
    /// When the blade has failed, or lost a page.
    pub(super) fn serve(&mut self) -> Result<bool, RunError> {
        let mut any = false;
        loop {
            let mut more = self.serve_asks();
            // One answer at a time, so that one for which no thread waits delays no ask.
            more |= self.take_answer()?;
            if !more {
                return Ok(any);
            }
            any = true;
        }
    }

    /// Serves new asks in the middle of long work.
    pub(super) fn serve_between(&mut self) {
        if self.faults.asks.as_ref().is_some_and(Asks::is_asked)
            && let Err(error) = self.serve()
        {
            self.fatal.get_or_insert(error);
        }
    }

    fn serve_asks(&mut self) -> bool {
        let mut any = false;
        while let Some(ask) = self.faults.asks.as_mut().and_then(Asks::take) {
            any = true;
            self.serve_ask(&ask);
        }
        any
    }

    // Fetches the page of an ask if a frame is free. Ends its spin if the page will not come soon.
    fn serve_ask(&mut self, ask: &Ask) {
        let address = ask.address / PAGE * PAGE;
        let Some(arena) = self.people.arenas.get(ask.slot).and_then(Option::as_ref) else {
            return self.send_to_sleep(ask);
        };
        let cell = self.kernel.tables.pages.word(ask.slot, address);
        let state = cell.map_or(State::Foreign, |cell| Word(cell.load(Ordering::Acquire)).state());
        if arena.fault.is_none() || matches!(state, State::Local | State::Foreign) {
            return self.send_to_sleep(ask);
        }
        let is_new = matches!(state, State::Absent | State::Remote);
        let budget = arena.budget;
        if is_new && !self.has_frame(budget, 0) {
            // Its fault must not wait for a frame twice.
            self.books.members.short(budget);
            return self.send_to_sleep(ask);
        }
        let epoch = self.kernel.tables.epoch_ns().load(Ordering::Relaxed);
        let since_ns = ask.at_ns.saturating_sub(epoch);
        self.faults.far.iter_mut().for_each(|far| far.patience.asked(since_ns));
        self.touch(Touch {
            slot: ask.slot,
            budget,
            tier: 0,
            address,
            write: ask.is_write,
            // A page without contents is created.
            minor: state != State::Absent,
            tid: ask.tid,
            since_ns,
        });
        let far = self.faults.far.as_mut();
        let is_soon = far.is_some_and(|far| {
            let longest = self.config.spin_max.map_or(0, measure::Duration::as_ns);
            far.asked(ask.slot, address) && far.patience.is_within(longest)
        });
        if !is_soon && self.faults.asks.as_ref().is_some_and(|asks| asks.is_open(ask)) {
            self.send_to_sleep(ask);
        }
    }

    // Ends the spin of an ask: its thread faults by userfaultfd, and sleeps.
    fn send_to_sleep(&mut self, ask: &Ask) {
        self.faults.asks.iter_mut().for_each(|asks| asks.let_go(ask));
    }
}

// Lets others have this processor. Returns whether it came back soon, so that no other thread
// computes here.
fn has_yielded() -> bool {
    let before = sys::clock::monotonic_ns();
    std::thread::yield_now();
    sys::clock::monotonic_ns() - before < YIELD_NS
}
