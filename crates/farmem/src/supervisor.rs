//! The supervisor: one owner of all state, one loop.
//!
//! ```text
//! wait -> system call | helper's reply | doorbell | signal | timer | userfault
//!      -> match -> restore the budgets
//! ```
//!
//! DESIGN NOTES
//!
//! * Events of the trap are always taken before anything else is acted on, so that a system call
//!   that frees pages finds them accounted for.
//! * Work for a helper is a command whose reply is an event. The caller of `mmap` waits in the
//!   kernel meanwhile; the supervisor never waits for a single program.
//! * Nothing here prints. What the user should know goes to the [`Observer`] or into the
//!   [`Outcome`].

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blades::Blade;
use paging::FetchOrder;
use paging::members::Members;
use paging::reuse::Sampler;
use paging::write_back::{Sent, WriteBack};
use sys::bpf::ProcessorBell;
use sys::event::{Poll, Ready, Signals, Timer};
use sys::process::{Change, Life, Spawned};

use super::RunError;
use super::account::Account;
use super::chores::Chores;
use super::config::{RunConfig, TrapKind};
use super::ends::Ends;
use super::events::Scan;
use super::far::{Far, new_key};
use super::report::{Observer, Outcome, Snapshot, Totals};
use super::signal::{self, SIGCONT, SIGKILL};
use super::state::{Books, Faults, Forking, Kernel, People, Programs, Upkeep};
use super::streak::Streak;
use super::throttle::Throttle;
use super::trap::{self};
use tables::PROCS_MAX;

// Tokens of the poll set; those of arenas follow.
const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
const TIMER: u64 = 2;
const DOORBELL: u64 = 3;
const DEADLINE: u64 = 4;
const ENDED: u64 = 5;
pub(crate) const COPIED: u64 = 6;
const BLADE: u64 = 7;
const HELPERS: u64 = 16;
const FAULTS: u64 = 16 + PROCS_MAX as u64;

/// Environment variable of managed programs that names the supervisor, as [`Life`] writes it.
pub const VARIABLE: &str = "AFAR_SUPERVISOR";

const TICK: Duration = Duration::from_millis(100);

/// A program that runs with part of its memory far away.
pub struct Supervisor<'a> {
    pub(crate) config: RunConfig,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) kernel: Kernel,
    signals: Signals,
    timer: Timer,
    pub(crate) people: People,
    pub(crate) books: Books,
    pub(crate) upkeep: Upkeep,
    pub(crate) forking: Forking,
    pub(crate) faults: Faults,
    pub(crate) programs: Programs,
    pub(crate) child: u32,
    /// Processors of this machine.
    pub(crate) processors: u64,
    /// Why the run cannot go on.
    pub(crate) fatal: Option<RunError>,
    status: Option<Change>,
    /// No process runs under the filter any more.
    deserted: bool,
    /// Readable when the program has ended.
    ended: OwnedFd,
}

impl<'a> Supervisor<'a> {
    /// Starts the program of `config`.
    ///
    /// # Errors
    /// When the program cannot be run, or the machine lacks what the trap needs.
    pub fn start(config: RunConfig, observer: &'a mut dyn Observer) -> Result<Self, RunError> {
        Self::start_with(config, observer, None)
    }

    /// As [`start`](Self::start), with remote pages on `blade`, which are fetched ahead by `order`
    /// if there is one. For the userfaultfd trap.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_far(
        config: RunConfig,
        observer: &'a mut dyn Observer,
        blade: Box<dyn Blade>,
        order: Option<FetchOrder>,
    ) -> Result<Self, RunError> {
        Self::start_with(config, observer, Some(Far::new(blade, order)))
    }

    fn start_with(
        config: RunConfig,
        observer: &'a mut dyn Observer,
        far: Option<Far>,
    ) -> Result<Self, RunError> {
        let trap = trap::open(&config)?;
        let spawned = spawn(&config)?;
        // After the spawn: the program inherits the processors that may be used.
        config.processor.map_or(Ok(()), sys::processors::pin)?;
        // After the spawn: the program inherits the signal mask.
        let signals = Signals::receive(&signal::TAKEN)?;
        let (poll, timer, deadline) = (Poll::new()?, Timer::new()?, Timer::new()?);
        poll.add(&spawned.listener, LISTENER)?;
        poll.add(&signals, SIGNALS)?;
        poll.add(&timer, TIMER)?;
        poll.add(&deadline, DEADLINE)?;
        // SIGCHLD is lost when another thread of this process ignores it.
        let ended = sys::process::watch(spawned.pid)?;
        poll.add(&ended, ENDED)?;
        timer.every(TICK)?;
        for bell in far.iter().flat_map(|far| far.blade.bells()) {
            poll.add_once_each(&bell, BLADE)?;
        }
        if let Some(doorbell) = &trap.doorbell {
            poll.add_raw(doorbell.raw_fd(), DOORBELL)?;
        }
        let tiers = config.tiers.len();
        let slots = (PROCS_MAX, tiers);
        let members = Members::new(slots, config.policy, config.probation, config.seed);
        let mut supervisor = Self {
            child: spawned.pid,
            kernel: Kernel {
                throttle: None,
                tables: trap.tables,
                doorbell: trap.doorbell,
                trap: trap.trap,
                listener: spawned.listener,
                poll,
                deadline,
                streak: Streak::default(),
            },
            people: People::none(),
            books: Books {
                accounts: vec![vec![Account::default(); tiers]; PROCS_MAX],
                totals: Totals::new(sys::clock::monotonic_ns()),
                members,
            },
            upkeep: Upkeep {
                chores: Chores::default(),
                ends: Ends::default(),
                scan: Scan::default(),
                sampler: config.watch.map(Sampler::new),
            },
            forking: Forking::default(),
            faults: Faults { far, asks: trap.asks, ..Faults::default() },
            programs: Programs::none(),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            fatal: None,
            status: None,
            deserted: false,
            ended,
            config,
            observer,
            signals,
            timer,
        };
        supervisor.programs.images.begin(spawned.pid);
        supervisor.prepare(trap.bells);
        Ok(supervisor)
    }

    // Sets limits, priorities, links and accounts before the loop.
    fn prepare(&mut self, bells: Vec<ProcessorBell>) {
        // A memory file, a socket, a userfaultfd and a few more for each process. The program has
        // begun with the limit that it was to have.
        sys::process::allow_descriptors(PROCS_MAX as u64 * 4 + 256);
        if let Err(error) = sys::process::wait_precisely() {
            self.books.totals.warn(&format!("answers of blades may come 50 us late: {error}"));
        }
        if self.config.trap == TrapKind::Bpf {
            self.kernel.throttle = Throttle::start(bells, &self.kernel.tables.lanes()).ok();
            if sys::priority::make_urgent(0).is_err() || self.kernel.throttle.is_none() {
                self.books.totals.warn(
                    "no priority over the program: evictions may come late; run as root or grant \
                     CAP_SYS_NICE",
                );
            }
        }
        self.write_links();
        let compares = self.faults.far.is_none() && self.config.write_back == WriteBack::Changed;
        self.faults.sent = compares.then(|| Sent::new(new_key()));
        self.books.totals.only_measures = self.faults.far.is_some();
        self.books.totals.open_accounts(&self.config.tiers);
        let page = self.config.tiers[0].link.bandwidth;
        let page_ns = page.map_or(0, |rate| rate.transfer_time(measure::Bytes::PAGE).as_ns());
        self.books.totals.set_costs(self.config.constant_ns, page_ns);
    }

    /// Runs until the program and all its descendants have ended.
    ///
    /// # Errors
    /// When the kernel refuses what it allowed at the start; the program is killed then.
    pub fn run(mut self) -> Result<Outcome, RunError> {
        let mut ready = Vec::new();
        loop {
            self.kernel.tables.rung().store(0, Ordering::Release);
            self.await_events(&mut ready)?;
            self.drain_events();
            self.catch_up();
            for event in ready.clone() {
                self.handle(event)?;
            }
            if let Some(error) = self.fatal.take() {
                let _gone = sys::process::kill(self.child, SIGKILL);
                return Err(error);
            }
            self.go_on_thawing();
            self.advance_copies();
            self.advance_populates()?;
            if self.upkeep.scan.is_urgent {
                self.scan_unseen(super::events::SCAN_STEPS);
            }
            self.let_late_leave()?;
            self.call_again()?;
            self.drain_events();
            self.faults.far.iter_mut().for_each(Far::look);
            // Fetches that threads wait for come before evictions.
            self.has_answers_at_once()?;
            self.restore_budgets();
            self.do_chore();
            self.watch_due();
            if self.faults.waiting.any() {
                // Frames may have come back without an eviction.
                self.serve_waiting();
                self.restore_budgets();
                self.resolve_due();
            }
            if let Some(status) = self.status
                && self.deserted
            {
                return Ok(self.finish(status));
            }
        }
    }

    // How long to wait for an event; `None` for no limit.
    pub(crate) fn patience(&self) -> Option<Duration> {
        if self.faults.far.as_ref().is_some_and(Far::has_held) {
            // A fault that waits for a frame can have one.
            return Some(Duration::ZERO);
        }
        if !self.forking.copies.thawing.is_empty() {
            return Some(super::copy::REST);
        }
        let waits = !self.forking.postponed.is_empty()
            || !self.people.leavers.is_empty()
            || self.upkeep.scan.is_urgent
            || self.upkeep.chores.any();
        let soon = waits.then_some(Duration::from_millis(1));
        soon.into_iter().chain(self.populates_due()).min()
    }

    // Retries forks and postponed calls.
    fn call_again(&mut self) -> Result<(), RunError> {
        self.prepare_children();
        std::mem::take(&mut self.forking.postponed).into_iter().try_for_each(|call| self.call(call))
    }

    // Restores the budgets at once if the supervisor was late.
    fn catch_up(&mut self) {
        if self.kernel.throttle.as_ref().is_some_and(Throttle::hurries_supervisor) {
            self.restore_budgets();
            self.kernel.throttle.as_ref().inspect(|throttle| throttle.supervisor_rests());
        }
    }

    fn handle(&mut self, event: Ready) -> Result<(), RunError> {
        match event.token {
            LISTENER => self.next_call(event.hung_up)?,
            SIGNALS => self.next_signals(),
            TIMER => self.tick(),
            DEADLINE => {
                self.kernel.deadline.acknowledge();
                self.resolve_due();
            }
            ENDED => {
                self.kernel.poll.remove(&self.ended);
                self.next_changes();
            }
            DOORBELL => {
                self.kernel.streak.end();
                self.hear_doorbell();
            }
            BLADE => self.hear_blade()?,
            COPIED => self.forking.copies.acknowledge(),
            token if token >= FAULTS => self.next_faults(index(token - FAULTS)),
            token => self.next_replies(index(token - HELPERS)),
        }
        Ok(())
    }

    // Receives and dispatches a system call, or notes that the filter has no process left.
    fn next_call(&mut self, hung_up: bool) -> Result<(), RunError> {
        if hung_up {
            // No process runs under the filter; only the program's status may be missing. The event
            // must not repeat: what is left of the program may need this processor to end.
            self.deserted = true;
            self.kernel.poll.remove(&self.kernel.listener);
            self.next_changes();
            return Ok(());
        }
        if let Some(call) = self.kernel.listener.receive()? {
            self.kernel.streak.called(call.tid, sys::clock::monotonic_ns());
            self.drain_events();
            self.call(call)?;
        }
        Ok(())
    }

    fn next_signals(&mut self) {
        if signal::pass_on(&self.signals, self.child) {
            self.next_changes();
        }
    }

    // Acts on the ends and stops of child processes.
    fn next_changes(&mut self) {
        while let Some((pid, change)) = sys::process::next_change() {
            match change {
                Change::Exited(_) | Change::Killed(_) if pid == self.child => {
                    self.status = Some(change);
                    self.traced_end(pid);
                }
                Change::Stopped { signal, event } if self.is_traced(pid) => {
                    self.traced_stop(pid, signal, event);
                }
                // Job control: stop and go on with the program.
                Change::Stopped { .. } if pid == self.child => {
                    sys::process::stop_self();
                    let _gone = sys::process::kill(self.child, SIGCONT);
                }
                Change::Stopped { event, .. } => self.unexpected_stop(pid, event),
                Change::Exited(_) | Change::Killed(_) => self.traced_end(pid),
            }
        }
    }

    fn tick(&mut self) {
        self.timer.acknowledge();
        self.kernel.streak.look(sys::clock::monotonic_ns());
        self.note_arrivals();
        self.end_orphans();
        self.look_for_dead_forks();
        self.end_stale_cuts();
        self.judge_spins();
        self.write_last_words(true);
        self.forget_exits();
        self.upkeep
            .chores
            .begin(self.books.members.live().len(), self.programs.images.live_count());
        let snapshot = self.snapshot();
        for change in self.observer.tick(&snapshot) {
            self.retune(&change);
        }
    }

    fn snapshot(&self) -> Snapshot {
        let (populated_pages, resident_pages) = self.books.members.pages();
        let processes = self.books.members.live().len() as u64;
        let mut snapshot =
            Snapshot { processes, populated_pages, resident_pages, ..Snapshot::default() };
        self.books.totals.fill(&mut snapshot);
        snapshot
    }

    fn finish(mut self, status: Change) -> Outcome {
        self.drain_events();
        for slot in 0..PROCS_MAX {
            self.retire(slot);
        }
        if let Some(far) = self.faults.far.as_mut() {
            far.blade.release(far.places.peak());
        }
        self.tell_ends(u64::MAX);
        for budget in 0..PROCS_MAX {
            for tier in 0..self.config.tiers.len() {
                self.books.totals.held(&self.kernel.tables.lane(budget, tier));
            }
        }
        let joined = self.kernel.tables.joined_count().load(Ordering::Relaxed);
        self.books.totals.joined_count += joined;
        self.books.totals.interrupts_off = self.kernel.tables.interrupts_off();
        if let Some(asks) = &self.faults.asks {
            self.books.totals.spun(asks.counts());
        }
        self.books.totals.images = std::mem::take(&mut self.programs.images).finish();
        let pace = self.kernel.tables.pace().load(Ordering::Relaxed);
        let touches = self.upkeep.sampler.map(Sampler::finish);
        let order = self.faults.far.and_then(|far| far.order).map(FetchOrder::finish);
        Outcome {
            touches,
            order,
            ..self.books.totals.finish(status, pace, self.config.share_min())
        }
    }

    /// Adds the helper's socket to the poll set.
    pub(crate) fn watch_helper(&self, slot: usize) -> Result<(), RunError> {
        if let Some(arena) = &self.people.arenas[slot] {
            self.kernel.poll.add(&arena.helper.socket, HELPERS + slot as u64)?;
        }
        Ok(())
    }

    /// Adds the userfaultfd of `slot` to the poll set.
    pub(crate) fn watch_faults(&self, slot: usize) {
        if let Some(fault) =
            self.people.arenas[slot].as_ref().and_then(|arena| arena.fault.as_ref())
        {
            let _twice = self.kernel.poll.add(fault, FAULTS + slot as u64);
        }
    }
}

/// Whether a token of the poll set is that of a userfaultfd.
pub(crate) const fn is_fault(token: u64) -> bool {
    token >= FAULTS
}

// The slot of a token.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0) % PROCS_MAX
}

// Starts the program under the filter.
fn spawn(config: &RunConfig) -> Result<Spawned, RunError> {
    let name = config.program.first().ok_or(RunError::NoProgram)?;
    let mut mark = [0; 4];
    sys::random::fill(&mut mark);
    let mark = u64::from(u32::from_ne_bytes(mark)) << 32;
    let filter = super::filter::filter(config.trap, mark);
    let own = Life::of(std::process::id()).ok_or(RunError::Lost("this process"))?.to_string();
    let variable = (OsStr::new(VARIABLE), OsStr::new(&own));
    sys::process::spawn(&config.program, variable, filter, mark)
        .map_err(|error| RunError::spawn(name, error))
}
