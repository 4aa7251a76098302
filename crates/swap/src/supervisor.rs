//! The supervisor of a run under the swap engine: one owner, one loop.
//!
//! ```text
//! wait -> timer | signal | end of the program -> match -> restore the budget
//! ```

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use paging::page::PageIndex;
use sys::event::{Poll, Ready, Signals, Timer};
use sys::group::Group;
use sys::process::{Change, SpawnError};

use crate::budget::{self, Footprint};
use crate::keeper::{Granted, Keeper, Wish};
use crate::report::Totals;
use crate::tables::{Delay, SwapEvent};
use crate::{SwapConfig, SwapError};
use farmem::signal::{self, SIGCONT};
use farmem::{FaultEvent, FaultKind, Observer, Outcome, Retune, RunError};
use sys::told::memory_bytes;

const SIGNALS: u64 = 1;
const TIMER: u64 = 2;
const ENDED: u64 = 3;

/// How long the budget may lag behind what is in use while nothing is swapped.
const MEASURE_NS: u64 = 10_000_000;
/// Time from one call of the observer to the next.
const LOOK_NS: u64 = 100_000_000;

/// A program that runs with part of its memory in swap space behind a link.
pub struct SwapSupervisor<'a> {
    config: SwapConfig,
    observer: &'a mut dyn Observer,
    keeper: Option<Keeper>,
    group: Group,
    delay: Delay,
    poll: Poll,
    signals: Signals,
    timer: Timer,
    child: u32,
    ended: std::os::fd::OwnedFd,
    status: Option<Change>,
    limit: Option<u64>,
    /// How often the log is emptied and a group that swaps is measured.
    period: Duration,
    /// When the group was last measured, and its turnover by then, in bytes.
    measured_ns: u64,
    turned: u64,
    /// When the observer was last called.
    looked_ns: u64,
    totals: Totals,
}

impl<'a> SwapSupervisor<'a> {
    /// Sets the host up and starts the program of `config`.
    ///
    /// # Errors
    /// When the program cannot be run or the host lacks something; the host is then as before.
    pub fn start(config: SwapConfig, observer: &'a mut dyn Observer) -> Result<Self, RunError> {
        let (name, arguments) = config.program.split_first().ok_or(RunError::NoProgram)?;
        let (keeper, granted) = hire(&config)?;
        let Granted { device, group } = granted;
        let group = Group::at(&group);
        let delay = Delay::load(group.number()?, device.device()?)?;
        delay.set(&config.link, config.seed);
        let limit = budget::wanted(&config, Footprint::default());
        group.limit(limit)?;
        let mut command = Command::new(name);
        command.args(arguments);
        group.hold(&mut command)?;
        sys::process::die_with_caller(&mut command);
        let child = command
            .spawn()
            .map_err(|error| RunError::spawn(name, SpawnError::Program(error)))?
            .id();
        let totals = Totals::new();
        // After the spawn: the program inherits the signal mask.
        let signals = Signals::receive(&signal::TAKEN)?;
        let (poll, timer) = (Poll::new()?, Timer::new()?);
        let ended = sys::process::watch(child)?;
        poll.add(&signals, SIGNALS)?;
        poll.add(&timer, TIMER)?;
        poll.add(&ended, ENDED)?;
        let period = budget::period(limit);
        timer.every(period)?;
        Ok(Self {
            config,
            observer,
            keeper: Some(keeper),
            group,
            delay,
            poll,
            signals,
            timer,
            child,
            ended,
            status: None,
            limit,
            period,
            measured_ns: 0,
            turned: 0,
            looked_ns: 0,
            totals,
        })
    }

    /// Runs until the program and all its descendants have ended, and restores the host.
    ///
    /// # Errors
    /// When the kernel refuses what it allowed at the start.
    pub fn run(mut self) -> Result<Outcome, RunError> {
        let mut ready = Vec::new();
        loop {
            self.poll.wait(None, &mut ready)?;
            for event in ready.clone() {
                self.handle(event);
            }
            self.drain();
            if let Some(status) = self.status
                && self.group.processes().is_ok_and(|pids| pids.is_empty())
            {
                return Ok(self.finish(status));
            }
        }
    }

    fn handle(&mut self, event: Ready) {
        match event.token {
            SIGNALS => self.next_signals(),
            TIMER => self.tick(),
            _ => {
                self.poll.remove(&self.ended);
                self.next_changes();
            }
        }
    }

    fn next_signals(&mut self) {
        if signal::pass_on(&self.signals, self.child) {
            self.next_changes();
        }
    }

    // Acts on the ends and stops of child processes.
    fn next_changes(&mut self) {
        while let Some((pid, change)) = sys::process::next_change() {
            let keeper = self.keeper.as_ref().map(Keeper::pid);
            match change {
                Change::Exited(_) | Change::Killed(_) if pid == self.child => {
                    self.status = Some(change);
                }
                Change::Exited(_) | Change::Killed(_) if Some(pid) == keeper => {
                    self.totals.warnings.push(
                        "the process that keeps swap space ended before the run; afar doctor \
                         --repair puts this host back"
                            .to_owned(),
                    );
                }
                // Job control: stop and go on with the program.
                Change::Stopped { .. } if pid == self.child => {
                    sys::process::stop_self();
                    let _gone = sys::process::kill(self.child, SIGCONT);
                }
                _ => {}
            }
        }
    }

    // Measures the group if that is due, and calls the observer every 100 ms.
    fn tick(&mut self) {
        self.timer.acknowledge();
        let elapsed_ns = self.totals.elapsed_ns();
        let counts = self.delay.counts();
        let is_idle = counts.turnover() == self.turned;
        if is_idle && elapsed_ns < self.measured_ns + MEASURE_NS {
            return;
        }
        (self.turned, self.measured_ns) = (counts.turnover(), elapsed_ns);
        let footprint = self.restore_budget();
        if elapsed_ns < self.looked_ns + LOOK_NS {
            return;
        }
        self.looked_ns = elapsed_ns;
        self.totals.processes(&self.group);
        let snapshot = self.totals.snapshot(&self.group, counts, footprint);
        for change in self.observer.tick(&snapshot) {
            self.retune(&change);
        }
    }

    // Sets the group's limit for the memory in use now. Returns that memory.
    fn restore_budget(&mut self) -> Footprint {
        let mut footprint = self.footprint();
        let wanted = budget::wanted(&self.config, footprint);
        if budget::differs(self.limit, wanted) && self.group.limit(wanted).is_ok() {
            self.limit = wanted;
            // A smaller limit makes the kernel give up pages.
            footprint = self.footprint();
        }
        let period = budget::period(self.limit);
        if period != self.period && self.timer.every(period).is_ok() {
            self.period = period;
        }
        self.totals.footprint(footprint, self.limit);
        footprint
    }

    // The group's memory now.
    fn footprint(&self) -> Footprint {
        let (resident, swapped) = (self.group.resident_bytes(), self.group.swapped_bytes());
        Footprint { resident, swapped }
    }

    // Applies a change of the link or the budget.
    fn retune(&mut self, change: &Retune) {
        if let Some(rtt) = change.rtt {
            self.config.link.rtt = rtt;
        }
        if let Some(bandwidth) = change.bandwidth {
            self.config.link.bandwidth = bandwidth;
        }
        if let Some(local) = change.local {
            self.config.local = Some(local);
        }
        self.delay.set(&self.config.link, self.config.seed);
        self.restore_budget();
    }

    // Reads the log of faults.
    fn drain(&mut self) {
        let mut recorded = Vec::new();
        while let Some(event) = self.delay.next_event() {
            self.totals.note(&event);
            if self.config.record {
                recorded.extend(fault(&event));
            }
        }
        if !recorded.is_empty() {
            self.observer.faults(&recorded);
        }
        self.totals.lost(self.delay.take_lost());
    }

    // Sums up the run, and has the host restored.
    fn finish(mut self, status: Change) -> Outcome {
        self.drain();
        let counts = self.delay.counts();
        let name = self.config.program.first().map(|name| name.to_string_lossy());
        let name = name.as_deref().and_then(|path| path.rsplit('/').next());
        self.totals.program(self.child, name.unwrap_or_default());
        let mut outcome = self.totals.finish(status, &self.group, &self.config, counts);
        // Before the host is restored: pages that return to memory then are not faults.
        drop(self.delay);
        if let Some(keeper) = &mut self.keeper {
            let left = keeper.dismiss().into_iter();
            let warnings = &mut outcome.results.warnings;
            warnings.extend(left.map(|left| format!("not put back on this host: {left}")));
        }
        outcome
    }
}

// Starts the keeper, which sets up swap space.
fn hire(config: &SwapConfig) -> Result<(Keeper, Granted), SwapError> {
    let (name, arguments) = config.keeper.split_first().ok_or(SwapError::KeeperGone)?;
    // Swap space for all available memory: while empty it takes only a table of one part in 256.
    let bytes = memory_bytes("MemAvailable:");
    let wish = Wish { bytes, page_cluster: config.page_cluster };
    // Listings of processes show it under this name.
    Keeper::start(Command::new(name).arg0("afar").args(arguments), wish)
}

// The event for the observer; `None` if the page has no number.
fn fault(event: &SwapEvent) -> Option<FaultEvent> {
    Some(FaultEvent {
        time_ns: event.time_ns,
        address: u64::from(event.slot) * measure::PAGE_BYTES,
        page: PageIndex::try_from(u64::from(event.slot)).ok()?,
        slot: 0,
        tid: event.tid,
        kind: FaultKind::Fetch,
        write: false,
        wait_ns: event.wait_ns,
        requested_ns: event.requested_ns,
        measured_ns: event.total_ns.max(event.delayed_ns),
    })
}
