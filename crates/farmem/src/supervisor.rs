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
//! * Work for the helper is asynchronous: the caller of `mmap` waits in the kernel while others are
//!   served.
//! * Nothing here prints. What the user should know goes to the [`Observer`] or into the
//!   [`Outcome`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use paging::members::Members;
use paging::reuse::Sampler;
use sys::bpf::{Doorbell, ProcessorBell};
use sys::event::{Poll, Ready, Signals, Timer};
use sys::process::{Change, Life, Spawned};
use sys::seccomp::{Listener, Notification};

use super::RunError;
use super::account::Account;
use super::arena::Arena;
use super::chores::Chores;
use super::config::{RunConfig, TrapKind};
use super::copy::Copies;
use super::detour::Detour;
use super::ends::Ends;
use super::events::Scan;
use super::fork::Fork;
use super::images::Images;
use super::inject::Injection;
use super::last_words::Mortal;
use super::layout::PROCS_MAX;
use super::object::Object;
use super::populate::Populate;
use super::report::{Observer, Outcome, Snapshot, Totals};
use super::shared::Tables;
use super::signal::{self, SIGCONT, SIGKILL};
use super::throttle::Throttle;
use super::trap::{self, Trap};

// Tokens of the poll set; those of arenas follow.
const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
const TIMER: u64 = 2;
const DOORBELL: u64 = 3;
const DEADLINE: u64 = 4;
const ENDED: u64 = 5;
pub(crate) const COPIED: u64 = 6;
const HELPERS: u64 = 16;
const FAULTS: u64 = 16 + PROCS_MAX as u64;

/// Names the supervisor to its programs, as [`Life`] writes it, for whoever cleans up after it.
pub const VARIABLE: &str = "AFAR_SUPERVISOR";

const TICK: Duration = Duration::from_millis(100);

/// A program that runs with part of its memory far away.
pub struct Supervisor<'a> {
    pub(crate) config: RunConfig,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) tables: Tables,
    pub(crate) doorbell: Option<Doorbell>,
    pub(crate) throttle: Option<Throttle>,
    pub(crate) trap: Option<Trap>,
    pub(crate) listener: Listener,
    pub(crate) poll: Poll,
    pub(crate) deadline: Timer,
    signals: Signals,
    timer: Timer,
    pub(crate) arenas: Vec<Option<Arena>>,
    pub(crate) slots: BTreeMap<u32, usize>,
    /// Process of each thread that has made a call.
    pub(crate) processes: BTreeMap<u32, u32>,
    /// The same: process, thread.
    pub(crate) threads: BTreeSet<(u32, u32)>,
    /// What processes have, by budget.
    pub(crate) members: Members,
    pub(crate) chores: Chores,
    pub(crate) ends: Ends,
    /// By budget and tier.
    pub(crate) accounts: Vec<Vec<Account>>,
    pub(crate) forks: Vec<Fork>,
    /// Detours of threads that fork in our object, by slot.
    pub(crate) detours: BTreeMap<usize, Detour>,
    /// Children born there that wait for their memory: call, and for how many ticks.
    pub(crate) born: BTreeMap<u32, (u64, u32)>,
    pub(crate) copies: Copies,
    pub(crate) mortals: Vec<Mortal>,
    pub(crate) populates: Vec<Populate>,
    /// Threads that make others: thread, slot, nanoseconds they had been on a processor.
    pub(crate) starting: Vec<(u32, usize, u64)>,
    /// Calls that wait for a fork of their process.
    pub(crate) postponed: Vec<Notification>,
    pub(crate) waiting: super::userfault_trap::Waiting,
    /// Pages fetched ahead whose words have a time of arrival: that time, slot, address.
    pub(crate) arrivals: VecDeque<(u64, usize, u64)>,
    /// Children stopped at birth whose parents have not reported them yet, and for how many ticks.
    pub(crate) newborns: Vec<(u32, u32)>,
    /// Pages held for threads that are ending: thread, slot, address.
    pub(crate) exiting: Vec<(u32, usize, u64)>,
    pub(crate) totals: Totals,
    pub(crate) child: u32,
    /// Images on their way to being managed, by process.
    pub(crate) injections: BTreeMap<u32, Injection>,
    pub(crate) images: Images,
    pub(crate) object: Object,
    /// For helpers that may not open it themselves.
    pub(crate) device: Option<File>,
    /// Processors of this machine.
    pub(crate) processors: u64,
    /// Why the run cannot go on.
    pub(crate) fatal: Option<RunError>,
    status: Option<Change>,
    /// Nobody runs under the filter any more.
    deserted: bool,
    /// Readable when the program has ended.
    ended: OwnedFd,
    /// The look for pages that came unseen.
    pub(crate) scan: Scan,
    /// Of a run whose pages are watched.
    pub(crate) sampler: Option<Sampler>,
}

impl<'a> Supervisor<'a> {
    /// Starts the program of `config`.
    ///
    /// # Errors
    /// When the program cannot be run, or the machine lacks what the trap needs.
    pub fn start(config: RunConfig, observer: &'a mut dyn Observer) -> Result<Self, RunError> {
        let trap = trap::open(&config)?;
        let spawned = spawn(&config)?;
        // Not before: the program inherits the signal mask.
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
        if let Some(doorbell) = &trap.doorbell {
            poll.add_raw(doorbell.raw_fd(), DOORBELL)?;
        }
        let tiers = config.tiers.len();
        let slots = (PROCS_MAX, tiers);
        let members = Members::new(slots, config.policy, config.probation, config.seed);
        let mut supervisor = Self {
            accounts: vec![vec![Account::default(); tiers]; PROCS_MAX],
            totals: Totals::new(sys::clock::monotonic_ns()),
            child: spawned.pid,
            throttle: None,
            tables: trap.tables,
            doorbell: trap.doorbell,
            trap: trap.trap,
            listener: spawned.listener,
            arenas: (0..PROCS_MAX).map(|_| None).collect(),
            slots: BTreeMap::new(),
            processes: BTreeMap::new(),
            threads: BTreeSet::new(),
            members,
            chores: Chores::default(),
            ends: Ends::default(),
            forks: Vec::new(),
            detours: BTreeMap::new(),
            born: BTreeMap::new(),
            copies: Copies::default(),
            mortals: Vec::new(),
            populates: Vec::new(),
            starting: Vec::new(),
            postponed: Vec::new(),
            arrivals: VecDeque::new(),
            newborns: Vec::new(),
            exiting: Vec::new(),
            waiting: super::userfault_trap::Waiting::default(),
            injections: BTreeMap::new(),
            images: Images::default(),
            object: Object::new(),
            device: userfaultfd_device(),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            fatal: None,
            status: None,
            deserted: false,
            ended,
            scan: Scan::default(),
            sampler: config.watch.map(Sampler::new),
            config,
            observer,
            poll,
            deadline,
            signals,
            timer,
        };
        supervisor.images.begin(spawned.pid);
        supervisor.prepare(trap.bells);
        Ok(supervisor)
    }

    fn prepare(&mut self, bells: Vec<ProcessorBell>) {
        // A memory file, a socket, a userfaultfd and a few more for each process. The program has
        // begun with the limit that it was to have.
        sys::process::allow_descriptors(PROCS_MAX as u64 * 4 + 256);
        if self.config.trap == TrapKind::Bpf {
            self.throttle = Throttle::start(bells, &self.tables.lanes()).ok();
            if sys::process::make_urgent(0).is_err() || self.throttle.is_none() {
                self.totals.warn(
                    "no priority over the program: evictions may come late; run as root or grant \
                     CAP_SYS_NICE",
                );
            }
        }
        self.write_links();
        self.totals.open_accounts(&self.config.tiers);
        let page = self.config.tiers[0].link.bandwidth;
        let page_ns = page.map_or(0, |rate| rate.transfer_time(measure::Bytes::PAGE).as_ns());
        self.totals.set_costs(self.config.constant_ns, page_ns);
    }

    /// Runs until the program and all its descendants have ended.
    ///
    /// # Errors
    /// When the kernel refuses something that it allowed at the start; the program is killed then.
    pub fn run(mut self) -> Result<Outcome, RunError> {
        let mut ready = Vec::new();
        loop {
            self.tables.rung().store(0, Ordering::Release);
            self.poll.wait(self.patience(), &mut ready)?;
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
            if self.scan.is_urgent {
                self.scan_unseen(super::events::SCAN_STEPS);
            }
            self.call_again()?;
            self.drain_events();
            self.restore_budgets();
            self.do_chore();
            self.watch_due();
            if self.waiting.any() {
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

    // How long to wait when nothing happens.
    fn patience(&self) -> Option<Duration> {
        if !self.copies.thawing.is_empty() {
            return Some(Duration::ZERO);
        }
        let waits = !self.postponed.is_empty() || self.scan.is_urgent || self.chores.any();
        let soon = waits.then_some(Duration::from_millis(1));
        soon.into_iter().chain(self.populates_due()).min()
    }

    // Calls and forks that had to wait.
    fn call_again(&mut self) -> Result<(), RunError> {
        self.prepare_children();
        std::mem::take(&mut self.postponed).into_iter().try_for_each(|call| self.call(call))
    }

    // What could not wait, when it has waited too long.
    fn catch_up(&mut self) {
        if self.throttle.as_ref().is_some_and(Throttle::hurries_supervisor) {
            self.restore_budgets();
            self.throttle.as_ref().inspect(|throttle| throttle.supervisor_rests());
        }
    }

    fn handle(&mut self, event: Ready) -> Result<(), RunError> {
        match event.token {
            LISTENER => self.next_call(event.hung_up)?,
            SIGNALS => self.next_signals(),
            TIMER => self.tick(),
            DEADLINE => self.resolve_due(),
            ENDED => {
                self.poll.remove(&self.ended);
                self.next_changes();
            }
            DOORBELL => self.hear_doorbell(),
            COPIED => self.copies.acknowledge(),
            token if token >= FAULTS => self.next_faults(index(token - FAULTS)),
            token => self.next_replies(index(token - HELPERS)),
        }
        Ok(())
    }

    fn next_call(&mut self, hung_up: bool) -> Result<(), RunError> {
        if hung_up {
            // Nobody runs under the filter any more; the status of the program is all that may be
            // missing. Not to be told again and again: what is left of the program may need this
            // processor to end.
            self.deserted = true;
            self.poll.remove(&self.listener);
            self.next_changes();
            return Ok(());
        }
        if let Some(call) = self.listener.receive()? {
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
        self.note_arrivals();
        self.end_orphans();
        self.look_for_dead_forks();
        self.end_stale_cuts();
        self.write_last_words(true);
        self.forget_exits();
        self.chores.begin(self.members.live().len(), self.images.live_count());
        let snapshot = self.snapshot();
        for change in self.observer.tick(&snapshot) {
            self.retune(&change);
        }
    }

    fn snapshot(&self) -> Snapshot {
        let (populated_pages, resident_pages) = self.members.pages();
        let processes = self.members.live().len() as u64;
        let mut snapshot =
            Snapshot { processes, populated_pages, resident_pages, ..Snapshot::default() };
        self.totals.fill(&mut snapshot);
        snapshot
    }

    fn finish(mut self, status: Change) -> Outcome {
        self.drain_events();
        for slot in 0..PROCS_MAX {
            self.retire(slot);
        }
        self.tell_ends(u64::MAX);
        for budget in 0..PROCS_MAX {
            for tier in 0..self.config.tiers.len() {
                self.totals.held(&self.tables.lane(budget, tier));
            }
        }
        let joined = self.tables.joined_count().load(Ordering::Relaxed);
        self.totals.joined_count += joined;
        self.totals.interrupts_off = self.tables.interrupts_off();
        self.totals.images = std::mem::take(&mut self.images).finish();
        let pace = self.tables.pace().load(Ordering::Relaxed);
        let touches = self.sampler.map(Sampler::finish);
        Outcome { touches, ..self.totals.finish(status, pace, self.config.share_min()) }
    }

    /// Waits for what the helper of the arena in `slot` has to say.
    pub(crate) fn watch_helper(&self, slot: usize) -> Result<(), RunError> {
        if let Some(arena) = &self.arenas[slot] {
            self.poll.add(&arena.socket, HELPERS + slot as u64)?;
        }
        Ok(())
    }

    /// Waits for the faults of the arena in `slot`.
    pub(crate) fn watch_faults(&self, slot: usize) {
        if let Some(fault) = self.arenas[slot].as_ref().and_then(|arena| arena.fault.as_ref()) {
            let _twice = self.poll.add(fault, FAULTS + slot as u64);
        }
    }
}

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

fn userfaultfd_device() -> Option<File> {
    OpenOptions::new().read(true).write(true).open("/dev/userfaultfd").ok()
}
