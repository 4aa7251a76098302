//! The supervisor's state, in groups that change together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};

use paging::members::Members;
use paging::reuse::Sampler;
use paging::write_back::Sent;
use sys::bpf::Doorbell;
use sys::event::{Poll, Timer};
use sys::seccomp::{Listener, Notification};

use super::account::Account;
use super::arena::Arena;
use super::chores::Chores;
use super::copy::Copies;
use super::detour::Detour;
use super::ends::Ends;
use super::events::Scan;
use super::far::Far;
use super::fork::Fork;
use super::images::Images;
use super::inject::Injection;
use super::last_words::Mortal;
use super::leave::Leaver;
use super::object::Object;
use super::populate::Populate;
use super::report::Totals;
use super::streak::Streak;
use super::throttle::Throttle;
use super::trap::Trap;
use super::userfault_trap::Waiting;
use tables::Asks;
use tables::PROCS_MAX;
use tables::Tables;

/// Kernel objects, and the tables shared with the trap.
pub(crate) struct Kernel {
    pub(crate) tables: Tables,
    pub(crate) doorbell: Option<Doorbell>,
    pub(crate) throttle: Option<Throttle>,
    pub(crate) trap: Option<Trap>,
    pub(crate) listener: Listener,
    pub(crate) poll: Poll,
    pub(crate) deadline: Timer,
    pub(crate) streak: Streak,
}

/// Managed processes and their threads.
pub(crate) struct People {
    pub(crate) arenas: Vec<Option<Arena>>,
    pub(crate) slots: BTreeMap<u32, usize>,
    /// Process of each thread that has made a call.
    pub(crate) processes: BTreeMap<u32, u32>,
    /// The same pairs, by process: process, thread.
    pub(crate) threads: BTreeSet<(u32, u32)>,
    /// Processes that end once their helpers have.
    pub(crate) leavers: Vec<Leaver>,
}

impl People {
    pub(crate) fn none() -> Self {
        Self {
            arenas: (0..PROCS_MAX).map(|_| None).collect(),
            slots: BTreeMap::new(),
            processes: BTreeMap::new(),
            threads: BTreeSet::new(),
            leavers: Vec::new(),
        }
    }
}

/// Where pages and time are counted.
pub(crate) struct Books {
    pub(crate) totals: Totals,
    /// What processes have, by budget.
    pub(crate) members: Members,
    /// By budget and tier.
    pub(crate) accounts: Vec<Vec<Account>>,
}

/// What is done from time to time.
pub(crate) struct Upkeep {
    pub(crate) chores: Chores,
    pub(crate) ends: Ends,
    /// The look for pages that came unseen.
    pub(crate) scan: Scan,
    /// Of a run whose pages are watched.
    pub(crate) sampler: Option<Sampler>,
}

/// Processes and threads that are being born, and what waits for them.
#[derive(Default)]
pub(crate) struct Forking {
    pub(crate) forks: Vec<Fork>,
    /// Detours of threads that fork in our object, by slot.
    pub(crate) detours: BTreeMap<usize, Detour>,
    /// Children born there that wait for their memory: call, and for how many ticks.
    pub(crate) born: BTreeMap<u32, (u64, u32)>,
    /// Children stopped at birth whose parents have not reported them yet, and for how many ticks.
    pub(crate) newborns: Vec<(u32, u32)>,
    pub(crate) copies: Copies,
    pub(crate) mortals: Vec<Mortal>,
    /// Calls that wait for a fork of their process.
    pub(crate) postponed: Vec<Notification>,
    /// Threads that make others: thread, slot, nanoseconds they had been on a processor.
    pub(crate) starting: Vec<(u32, usize, u64)>,
}

/// Pages that somebody waits for.
#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) waiting: Waiting,
    /// If pages are far for real.
    pub(crate) far: Option<Far>,
    /// If pages that have not changed are not written back, in a run that emulates.
    pub(crate) sent: Option<Sent>,
    /// If faults spin while they wait for such a page.
    pub(crate) asks: Option<Asks>,
    /// Pages fetched ahead whose words have a time of arrival: that time, slot, address.
    pub(crate) arrivals: VecDeque<(u64, usize, u64)>,
    pub(crate) populates: Vec<Populate>,
    /// Pages held for threads that are ending: thread, slot, address.
    pub(crate) exiting: Vec<(u32, usize, u64)>,
}

/// Images of programs, and what makes them managed.
pub(crate) struct Programs {
    /// Images on their way to being managed, by process.
    pub(crate) injections: BTreeMap<u32, Injection>,
    pub(crate) images: Images,
    pub(crate) object: Object,
    /// For helpers that may not open it themselves.
    pub(crate) device: Option<File>,
}

impl Programs {
    pub(crate) fn none() -> Self {
        Self {
            injections: BTreeMap::new(),
            images: Images::default(),
            object: Object::new(),
            device: OpenOptions::new().read(true).write(true).open("/dev/userfaultfd").ok(),
        }
    }
}
