//! Processes begin and end: greeting, readiness, replies of the helper, retirement.

use std::sync::atomic::Ordering;

use measure::Pages;
use paging::common::Common;
use paging::page::Ranges;
use paging::prefetch::Prefetch;
use paging::regions::{Regions, WINDOWS};
use paging::residency::{Residency, ResidencyConfig};
use paging::segments::Segments;
use sys::memory::MemoryFile;
use sys::pagemap::PageMap;
use sys::ptrace::Entry;
use sys::seccomp::Notification;
use sys::socket::{Received, Socket};
use sys::userfault::{Userfault, Watch};

use super::RunError;
use super::arena::{Arena, Birth};
use super::config::{BudgetScope, TrapKind};
use super::images::Reason;
use super::pending::Pending;
use super::protocol::{VERSION, WORDS_MAX, reply};
use super::supervisor::Supervisor;
use tables::enrol_address;
use tables::{ADDRESS_MIN, ADDRESS_TOP, PROCS_MAX};

const EPERM: i64 = 1;
const EBUSY: i64 = 16;
const EPROTO: i64 = 71;

// The map of writes under userfaultfd; `None` for the BPF trap, whose faults show them.
fn writes_of(arena: &Arena, trap: TrapKind) -> Option<PageMap> {
    let tracks = arena.fault.as_ref().is_some_and(Userfault::tracks_writes);
    let wanted = trap == TrapKind::Userfault && tracks;
    PageMap::open(arena.helper.thread).ok().filter(|_| wanted)
}

impl Supervisor<'_> {
    /// Answers the helper of a newly executed program, which asks for its arena.
    pub(crate) fn greet(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        // Only the helper of a process that was injected just now may ask.
        if call.tid == tgid || self.people.slots.contains_key(&tgid) {
            return Ok(self.kernel.listener.answer(call.id, -EPERM)?);
        }
        let slot = self.free_slot();
        let Some(injection) = self.programs.injections.get_mut(&tgid) else {
            return Ok(self.kernel.listener.answer(call.id, -EPERM)?);
        };
        let Some(slot) = slot else {
            let why = format!("there were {PROCS_MAX} managed processes already");
            injection.fail(Reason::new(&why));
            return Ok(self.kernel.listener.answer(call.id, -EBUSY)?);
        };
        let loader = injection.loader();
        if call.args[2] != VERSION {
            return Ok(self.kernel.listener.answer(call.id, -EPROTO)?);
        }
        self.kernel.tables.pages.clear(slot);
        let memory = MemoryFile::new("afar", ADDRESS_TOP)?;
        let (near, far) = Socket::pair()?;
        let arena = Arena::new(Birth {
            slot,
            budget: self.budget_for(slot),
            tgid,
            memory,
            socket: near,
            regions: Regions::new(ADDRESS_MIN, ADDRESS_TOP, WINDOWS),
            segments: Segments::default(),
            pinned: Ranges::default(),
            tiers: self.residencies(),
            program_break: call.args[3],
            fork_entry: Entry { routine: call.args[4], stack_top: call.args[5], argument: 0 },
            helper: call.tid,
            loader,
        });
        self.adopt(arena)?;
        self.introduce(slot, call, far)?;
        self.take_static_data(slot, tgid);
        Ok(())
    }

    /// Gives the program its descriptors, and says how to enrol with the trap.
    pub(crate) fn introduce(
        &mut self,
        slot: usize,
        call: &Notification,
        far: std::os::fd::OwnedFd,
    ) -> Result<(), RunError> {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        arena.helper.thread = call.tid;
        let given = self.kernel.listener.add_fd(call.id, &far).and_then(|socket| {
            self.kernel.listener.add_fd(call.id, &arena.memory).map(|memory| memory << 32 | socket)
        });
        let Ok(answer) = given else {
            // The process died meanwhile, or has no descriptor left.
            self.retire(slot);
            return Ok(self.kernel.listener.answer(call.id, -EBUSY)?);
        };
        let words = [0, 1, self.kernel.tables.proc(slot).enrol_address().load(Ordering::Acquire)];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if arena.helper.socket.send(&bytes).is_err() {
            // The process died meanwhile.
            self.retire(slot);
        }
        Ok(self.kernel.listener.answer(call.id, answer)?)
    }

    /// Enters an arena into the tables.
    pub(crate) fn adopt(&mut self, arena: Arena) -> Result<(), RunError> {
        let (slot, tgid, budget) = (arena.slot, arena.tgid, arena.budget);
        if !self.programs.images.is_fresh(tgid) {
            self.programs.images.begin(tgid);
        }
        self.people.slots.insert(tgid, slot);
        self.people.arenas[slot] = Some(arena);
        if let Some(order) = self.faults.far.as_mut().and_then(|far| far.order.as_mut()) {
            order.begins(slot);
        }
        self.tally(slot);
        self.books.members.touch(slot);
        let proc = self.kernel.tables.proc(slot);
        proc.clear();
        proc.budget().store(u32::try_from(budget).unwrap_or(0), Ordering::Relaxed);
        let (count, stride) = match self.config.prefetch {
            Prefetch::None => (0, 0),
            Prefetch::NextN(count) => (count, 0),
            Prefetch::Stride(count) => (count, 1),
        };
        proc.prefetch_count().store(u32::from(count), Ordering::Relaxed);
        proc.prefetch_stride().store(stride, Ordering::Relaxed);
        if budget == slot {
            // A budget of its own starts empty.
            self.books.accounts[budget].iter_mut().for_each(|account| account.limit = None);
        }
        self.update_budget(budget);
        let unlimited = u32::from(*self.books.members.unlimited(budget));
        self.kernel.tables.proc(slot).unlimited().store(unlimited, Ordering::Release);
        let address = enrol_address(slot, sys::random::number());
        self.kernel.tables.proc(slot).enrol_address().store(address, Ordering::Release);
        self.watch_helper(slot)
    }

    /// Frees the arena in `slot`: its process has ended or executes another program.
    pub(crate) fn retire(&mut self, slot: usize) {
        // Events of the process that are still in the log count.
        self.drain_events();
        self.depart_given();
        self.note_peak(slot);
        self.unwatch(slot, 0, ADDRESS_TOP);
        if let Some(budget) = self.people.arenas[slot].as_ref().map(|arena| arena.budget) {
            self.withdraw(slot, budget);
        }
        let Some(arena) = self.people.arenas[slot].take() else {
            return;
        };
        self.outlive(slot);
        self.retire_far(&arena);
        self.kernel.poll.remove(&arena.helper.socket);
        self.kernel.throttle.as_ref().inspect(|throttle| throttle.helper_rests(slot));
        if self.people.slots.get(&arena.tgid) == Some(&slot) {
            self.people.slots.remove(&arena.tgid);
        }
        let direct = self.unlogged(slot);
        let proc = self.kernel.tables.proc(slot);
        self.kernel.tables.forget(proc.tgid().load(Ordering::Acquire));
        self.books.totals.first_touch_count += direct;
        self.programs.images.fetched(arena.tgid, arena.fetch_count);
        proc.clear();
        // Its frames return to the budget, which other processes may share.
        for (tier, residency) in arena.tiers.iter().enumerate() {
            let frames = residency.resident().get();
            self.kernel.tables.lane(arena.budget, tier).credit(frames.cast_signed());
        }
        self.faults.waiting.forget(slot);
        self.faults.populates.retain(|one| one.slot != slot);
        self.kernel.tables.pages.clear(slot);
        let threads: Vec<(u32, u32)> =
            self.people.threads.range((arena.tgid, 0)..=(arena.tgid, u32::MAX)).copied().collect();
        for one in threads {
            self.people.threads.remove(&one);
            self.people.processes.remove(&one.1);
        }
        let budget = arena.budget;
        super::copier::free(arena.memory);
        self.tally(slot);
        self.update_budget(budget);
    }

    /// Acts on all messages of the helper of `slot`.
    pub(crate) fn next_replies(&mut self, slot: usize) {
        let mut bytes = [0_u8; WORDS_MAX * 8];
        loop {
            let Some(arena) = &self.people.arenas[slot] else {
                return;
            };
            match arena.helper.socket.receive(&mut bytes) {
                Ok(Received::Message(length, passenger)) => {
                    let words: Vec<u64> = bytes[..length]
                        .chunks_exact(8)
                        .map(|chunk| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| chunk[i])))
                        .collect();
                    match words.as_slice() {
                        [reply::READY, features] => {
                            let fault = passenger.map(|fd| Userfault::new(fd, *features));
                            self.ready(slot, *features, fault);
                        }
                        [reply::RESULT, number, result] => {
                            self.drain_events();
                            self.replied(slot, *number, result.cast_signed());
                        }
                        _ => {}
                    }
                }
                Ok(Received::Nothing) => return,
                Ok(Received::Closed) | Err(_) => {
                    if let Err(error) = self.let_leave(slot) {
                        self.fatal = Some(error);
                    }
                    self.retire(slot);
                    return;
                }
            }
        }
    }

    // Begins to manage a process whose helper has reported that it is ready.
    fn ready(&mut self, slot: usize, features: u64, fault: Option<Userfault>) {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return;
        };
        let (pid, helper) = (arena.tgid, arena.helper.thread);
        if arena.helper.ready || !sys::process::is_thread_of(helper, pid) {
            return;
        }
        arena.fault = fault;
        arena.helper.writes = writes_of(arena, self.config.trap);
        arena.helper.processors = sys::processors::Processors::of(arena.helper.thread).ok();
        arena.helper.ready = true;
        self.books.members.touch(slot);
        if features == 0 {
            if pid == self.child {
                self.fatal = Some(RunError::NoUserfault);
                return;
            }
            if self.config.trap == TrapKind::Userfault {
                self.programs.images.unmanaged(pid, Reason::new("it may not use userfaultfd"));
                return;
            }
            self.books.totals.warn_once(
                "no userfaultfd: neighbouring pages come along with a fault, and every page counts \
                 as dirty",
            );
        } else if arena.fault.as_ref().is_some_and(|fault| !fault.tracks_writes()) {
            self.books.totals.warn_once(
                "every page counts as dirty: this kernel does not tell which pages are written to; \
                 Linux 6.7 and later do",
            );
        }
        if self.config.trap == TrapKind::Bpf
            && self.kernel.tables.proc(slot).tgid().load(Ordering::Acquire) == 0
        {
            arena.helper.ready = false;
            self.programs
                .images
                .unmanaged(pid, Reason::new("the trap does not see its page faults"));
            return;
        }
        self.programs.images.managed(pid);
        self.notice_image(pid);
        // A program that is killed soon is not sampled again.
        self.sample(pid);
        let Some(arena) = &self.people.arenas[slot] else {
            return;
        };
        if self.config.trap == TrapKind::Bpf {
            // Refused without the privilege; warned of once, at the start.
            let _ordinary = sys::priority::make_urgent(helper);
        }
        let pieces = arena.space.regions.all();
        for piece in pieces.iter().filter(|piece| !piece.traits.foreign) {
            self.watch(slot, piece.start, piece.bytes());
        }
        if self.config.trap == TrapKind::Userfault {
            self.watch_faults(slot);
        }
    }

    /// Registers a new range with the process's userfaultfd.
    pub(crate) fn watch(&self, slot: usize, start: u64, bytes: u64) {
        let Some(fault) = self.people.arenas[slot].as_ref().and_then(|arena| arena.fault.as_ref())
        else {
            return;
        };
        let watch = match self.config.trap {
            TrapKind::Bpf => Watch::Writes,
            TrapKind::Userfault => Watch::Faults,
        };
        // A range that is gone already needs no watching.
        let _unmapped = fault.register(start, bytes, watch);
    }

    // Acts on the helper's `result` of command `number`.
    fn replied(&mut self, slot: usize, number: u64, result: i64) {
        let Some(mut arena) = self.people.arenas[slot].take() else {
            return;
        };
        self.books.members.touch(slot);
        match arena.helper.awaited.answered(number) {
            Some(pending @ Pending::Drop { .. }) => {
                arena.helper.stopped_looks = 0;
                if arena.helper.awaited.dropping() == 0
                    && let Some(throttle) = &self.kernel.throttle
                {
                    throttle.helper_rests(slot);
                }
                self.gone(&mut arena, pending);
                self.people.arenas[slot] = Some(arena);
                self.serve_waiting();
            }
            other => {
                self.people.arenas[slot] = Some(arena);
                if let Some(pending) = other {
                    self.mapped(slot, pending, result);
                }
            }
        }
    }

    /// The residencies of a new process.
    pub(crate) fn residencies(&self) -> Vec<Residency> {
        let config = ResidencyConfig {
            policy: self.config.policy,
            budget: Pages::new(u64::from(u32::MAX)),
            headroom: Pages::new(0),
            ready: Pages::ZERO,
            probation: self.config.probation,
            seed: self.config.seed,
        };
        let build = |common: &Common| match self.config.scope {
            BudgetScope::Process => Residency::new(config),
            BudgetScope::Tree => Residency::under(config, common.clone()),
        };
        self.books.members.common().iter().map(build).collect()
    }

    /// The residency with which a child of fork begins.
    pub(crate) fn inherited(&self, parent: &Residency) -> Residency {
        match self.config.scope {
            BudgetScope::Process => parent.clone_for_fork(),
            BudgetScope::Tree => parent.clone_beside(),
        }
    }

    /// A free slot; `None` if all are used.
    pub(crate) fn free_slot(&self) -> Option<usize> {
        self.books.members.free_slot()
    }
}
