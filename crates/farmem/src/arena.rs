//! One managed process: its memory file, its helper, its regions, its resident pages.

use std::sync::atomic::Ordering;

use measure::Pages;
use paging::page::{PageIndex, Ranges};
use paging::regions::{PAGE, Regions, Traits};
use paging::residency::Residency;
use paging::segments::Segments;
use paging::word::{State, Word};
use sys::memory::MemoryFile;
use sys::pagemap::PageMap;
use sys::processors::Processors;
use sys::ptrace::Entry;
use sys::remote::Remote;
use sys::socket::Socket;
use sys::userfault::Userfault;

use super::cut::{Cut, Phase};
use super::last_words::Cleared;
use super::loader::Loader;
use super::pending::{Awaited, Pending};
use super::protocol::command;
use super::request::MapRequest;
use super::stock::Stock;
use sys::maps;
use tables::SEGMENT;
use tables::Tables;
use tables::{ADDRESS_MIN, ADDRESS_TOP};

/// One managed process.
#[derive(Debug)]
pub(crate) struct Arena {
    /// Index into the tables.
    pub(crate) slot: usize,
    /// Index of the budget it draws on.
    pub(crate) budget: usize,
    pub(crate) tgid: u32,
    /// The memory file: the offset is the address.
    pub(crate) memory: MemoryFile,
    pub(crate) fault: Option<Userfault>,
    pub(crate) helper: Helper,
    pub(crate) space: Space,
    pub(crate) image: ImageMarks,
    /// One per tier.
    pub(crate) tiers: Vec<Residency>,
    /// Pages fetched by faults.
    pub(crate) fetch_count: u64,
    /// Pages that hold something, as the log has it.
    pub(crate) populated: Vec<u64>,
    /// Pages that were emptied and that the log has not had: it does not, while all memory is
    /// local and first touches are only counted.
    emptied_unlogged: u64,
    /// While a child gets its memory.
    pub(crate) cut: Option<Cut>,
}

/// The thread inside the program that does what only the program can.
#[derive(Debug)]
pub(crate) struct Helper {
    /// The kernel's number of the thread; 0 until the helper has called.
    pub(crate) thread: u32,
    pub(crate) socket: Socket,
    /// The helper runs and takes commands.
    pub(crate) ready: bool,
    pub(crate) awaited: Awaited,
    /// How often in a row the helper was found stopped since it last dropped pages.
    pub(crate) stopped_looks: u32,
    /// Processors that the helper may use, and the one it is bound to.
    pub(crate) processors: Option<Processors>,
    pub(crate) kept_on: Option<usize>,
    /// Where the kernel says which pages were written to, if no fault does.
    pub(crate) writes: Option<PageMap>,
}

/// The address space of the process.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) regions: Regions,
    /// Maps addresses to page numbers and back.
    pub(crate) segments: Segments,
    /// Addresses of memory that is locked.
    pub(crate) pinned: Ranges<u64>,
    /// Where the program's heap ended when it was greeted; it never grows after that.
    pub(crate) program_break: u64,
    /// New memory is locked; `populate_all`: and populated at once.
    pub(crate) lock_all: bool,
    pub(crate) populate_all: bool,
    /// Ranges that a thread is about to unmap: thread, start, end.
    pub(crate) leaving: Vec<(u32, u64, u64)>,
    /// Memory that is mapped but not yet given to the program.
    pub(crate) stock: Stock,
}

/// What is known of the program that the process executes.
#[derive(Debug)]
pub(crate) struct ImageMarks {
    pub(crate) fork_entry: Entry,
    /// Words of the arena in which the kernel clears a thread number when the thread ends.
    pub(crate) cleared: Vec<Cleared>,
    /// The dynamic loader, if one has started the program.
    pub(crate) loader: Option<Loader>,
}

// After so many looks in a row that find a helper stopped and idle, it counts as stuck.
const STOPPED_LOOKS: u32 = 3;

// Error of a count of a process's pages: those that are unmapped or logged meanwhile.
const PAGES_UNCERTAIN: u64 = 256;

/// The parts of a new arena.
pub(crate) struct Birth {
    pub(crate) slot: usize,
    pub(crate) budget: usize,
    pub(crate) tgid: u32,
    pub(crate) memory: MemoryFile,
    pub(crate) socket: Socket,
    pub(crate) regions: Regions,
    pub(crate) segments: Segments,
    pub(crate) pinned: Ranges<u64>,
    pub(crate) tiers: Vec<Residency>,
    pub(crate) program_break: u64,
    pub(crate) fork_entry: Entry,
    pub(crate) helper: u32,
    pub(crate) loader: Option<Loader>,
}

impl Arena {
    /// `word`, marked dirty if its page was written to since a read fetched it: with userfaultfd no
    /// fault reports that write, because the kernel lifts the write-protection itself.
    pub(crate) fn with_writes(&self, address: u64, word: Word) -> Word {
        let Some(writes) = &self.helper.writes else { return word };
        if word.dirty() || word.untracked() {
            return word;
        }
        word.with_dirty(!writes.is_protected(address).unwrap_or(false))
    }

    pub(crate) fn new(birth: Birth) -> Self {
        let populated = vec![0; birth.tiers.len()];
        Self {
            slot: birth.slot,
            budget: birth.budget,
            tgid: birth.tgid,
            memory: birth.memory,
            fault: None,
            helper: Helper {
                thread: birth.helper,
                socket: birth.socket,
                ready: false,
                awaited: Awaited::default(),
                stopped_looks: 0,
                processors: None,
                kept_on: None,
                writes: None,
            },
            space: Space {
                regions: birth.regions,
                segments: birth.segments,
                pinned: birth.pinned,
                program_break: birth.program_break,
                lock_all: false,
                populate_all: false,
                leaving: Vec::new(),
                stock: Stock::default(),
            },
            image: ImageMarks {
                fork_entry: birth.fork_entry,
                cleared: Vec::new(),
                loader: birth.loader,
            },
            tiers: birth.tiers,
            fetch_count: 0,
            populated,
            emptied_unlogged: 0,
            cut: None,
        }
    }

    /// Bytes of the arena that are mapped, except for pages on their way.
    pub(crate) fn mapped_bytes(&self, unlimited: bool) -> u64 {
        if unlimited {
            // Nothing is known of single pages while all memory is local.
            return self.memory.allocated_bytes().unwrap_or(0);
        }
        let resident = |tier: &Residency| tier.resident().get() - tier.on_probation().get();
        let pages = self.tiers.iter().map(resident).sum::<u64>() + self.helper.awaited.dropping();
        (pages + PAGES_UNCERTAIN) * PAGE
    }

    /// Whether the helper is stopped with pages to drop: until it goes on, no page is unmapped.
    pub(crate) const fn is_stuck(&self) -> bool {
        self.helper.stopped_looks >= STOPPED_LOOKS
    }

    /// Whether the helper is about to unmap the page at `address`.
    pub(crate) fn is_dropping(&self, address: u64) -> bool {
        let page = self.space.segments.find(address).filter(|_| self.helper.ready);
        page.is_some_and(|page| self.helper.awaited.drops(page))
    }

    /// The first byte of a range that has memory behind it.
    pub(crate) fn next_data(&self, start: u64, end: u64) -> Option<u64> {
        // A search in the supervisor's own memory file does not fail.
        self.memory.next_data(start, end).ok().flatten()
    }

    /// Ranges that are mapped and managed, in order.
    pub(crate) fn managed(&self) -> Vec<(u64, u64)> {
        let managed = self.space.regions.all().into_iter().filter(|piece| !piece.traits.foreign);
        managed.map(|piece| (piece.start, piece.end)).collect()
    }

    /// Frees addresses in `leaving` whose thread has unmapped them; `done` says so of a thread.
    pub(crate) fn recycle(&mut self, done: impl Fn(u32) -> bool) {
        let (regions, memory) = (&mut self.space.regions, &self.memory);
        self.space.leaving.retain(|&(tid, start, end)| {
            let unmapped = done(tid);
            if unmapped {
                // Another thread may have touched the range at the last moment.
                if matches!(memory.next_data(start, end), Ok(Some(_)))
                    && regions.pieces(start, end).is_empty()
                {
                    let _end_of_file = memory.punch(start, end - start);
                }
                regions.recycle(start, end);
            }
            !unmapped
        });
    }

    /// Whether anything in a range is locked into memory.
    pub(crate) fn pins_any(&self, start: u64, bytes: u64) -> bool {
        !self.space.pinned.within(start..start + bytes).is_empty()
    }

    /// Locks a range into memory: the pages in use and those that will be.
    pub(crate) fn pin(&mut self, start: u64, bytes: u64) {
        let (from, to) = (start / PAGE * PAGE, (start + bytes).next_multiple_of(PAGE));
        self.space.pinned.insert(from..to);
        for span in self.space.segments.spans(from, to) {
            self.tiers.iter_mut().for_each(|tier| tier.pin(span.first, Pages::new(span.count)));
        }
    }

    /// Undoes [`pin`](Self::pin).
    pub(crate) fn unpin(&mut self, start: u64, bytes: u64) {
        let (from, to) = (start / PAGE * PAGE, (start + bytes).next_multiple_of(PAGE));
        self.space.pinned.remove(from..to);
        for span in self.space.segments.spans(from, to) {
            self.tiers.iter_mut().for_each(|tier| tier.unpin(span.first, Pages::new(span.count)));
        }
    }

    /// The number of the page at `address`, which has a state word. `None` if numbers run out.
    pub(crate) fn page(&mut self, address: u64) -> Option<PageIndex> {
        let (page, is_new) = self.space.segments.number(address)?;
        if is_new && !self.space.pinned.is_empty() {
            let start = address / SEGMENT * SEGMENT;
            for pinned in self.space.pinned.within(start..start + SEGMENT) {
                self.pin(pinned.start, pinned.end - pinned.start);
            }
        }
        Some(page)
    }

    /// Address of `page`, which has a number.
    pub(crate) fn address(&self, page: PageIndex) -> u64 {
        self.space.segments.address(page)
    }

    /// Creates a page with `contents`, and maps it. Returns false where one step cannot do that:
    /// faults are held for a fork, or the range is gone.
    pub(crate) fn maps(&self, contents: &[u8; 4096], address: u64) -> bool {
        let fault = self.fault.as_ref().filter(|_| !self.is_held());
        fault.is_some_and(|fault| fault.create(address, contents).is_ok())
    }

    /// As [`maps`](Self::maps), neighbours from `address` on. Returns how many it has mapped: those
    /// before the first that it could not.
    pub(crate) fn maps_run(&self, contents: &[[u8; 4096]], address: u64) -> usize {
        let fault = self.fault.as_ref().filter(|_| !self.is_held());
        fault.map_or(0, |fault| fault.create_run(address, contents))
    }

    /// Whether faults are held, for a fork or for a move of memory.
    pub(crate) fn is_held(&self) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.phase != Phase::Copying)
    }

    /// Creates a zero page in the memory file, while faults are held: it may have to leave before a
    /// fault maps it. Returns whether the page exists.
    pub(crate) fn creates(&self, address: u64) -> bool {
        let page = address / PAGE * PAGE;
        match self.memory.next_data(page, page + PAGE) {
            Ok(None) => self.memory.write_at(&[0; 4096], page).is_ok(),
            found => found.is_ok(),
        }
    }

    /// Reads memory of thread `tid` at `address`. Managed memory is read from the file, never
    /// through the process: that might fault, and wait for the supervisor.
    ///
    /// # Errors
    /// When some of the memory is not mapped.
    pub(crate) fn read(&self, buffer: &mut [u8], address: u64, tid: u32) -> Result<(), sys::Error> {
        let mut at = 0;
        while at < buffer.len() {
            let from = address.wrapping_add(at as u64);
            let in_page = usize::try_from(PAGE - from % PAGE).unwrap_or(1);
            let end = buffer.len().min(at + in_page);
            let piece = &mut buffer[at..end];
            if self.space.regions.manages(from) {
                self.memory.read_at(piece, from)?;
            } else {
                Remote::open(tid)?.read(piece, from)?;
            }
            at = end;
        }
        Ok(())
    }

    /// Creates state words for a range. Returns how many of its pages got none (table full).
    pub(crate) fn open(&self, tables: &Tables, start: u64, bytes: u64) -> u64 {
        tables.pages.open(self.slot, start, start + bytes)
    }

    /// Ends the management of a range, which is empty.
    pub(crate) fn close(&mut self, tables: &Tables, start: u64, end: u64) {
        // The unused memory around the range is closed with it, so that leaves and nodes are freed.
        let (before, after) = self.space.regions.gap(start, end);
        let from = before.unwrap_or(0).min(start);
        let to = after.unwrap_or(ADDRESS_TOP).max(end);
        let segments = &mut self.space.segments;
        // Where nodes for a partial close are lacking, touches of the range would still be counted:
        // those of a program that uses memory which it has unmapped.
        let _stays = tables.pages.close(self.slot, from, to, &mut |start| segments.remove(start));
    }

    /// Cancels a mapping that was to be made in a range.
    pub(crate) fn call_off(&mut self, tables: &Tables, start: u64, bytes: u64) {
        self.space.regions.unmap(start, start + bytes);
        self.close(tables, start, start + bytes);
    }

    /// Sends the helper a command whose reply will be matched with `pending`.
    pub(crate) fn command(
        &mut self,
        operation: u64,
        operands: &[u64],
        pending: Pending,
    ) -> Result<(), sys::Error> {
        self.send(operation, self.helper.awaited.next(), operands)?;
        self.helper.awaited.sent(pending);
        Ok(())
    }

    /// Sends a command that has no reply.
    pub(crate) fn send(
        &self,
        operation: u64,
        number: u64,
        operands: &[u64],
    ) -> Result<(), sys::Error> {
        let mut bytes = Vec::with_capacity(16 + operands.len() * 8);
        for word in [operation, number].iter().chain(operands) {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        self.helper.socket.send(&bytes)
    }

    /// Commands the helper to map memory at `start`.
    pub(crate) fn map(
        &mut self,
        start: u64,
        bytes: u64,
        request: MapRequest,
        pending: Pending,
    ) -> Result<(), sys::Error> {
        const MAP_SHARED: u64 = 1;
        const MAP_FIXED: u64 = 0x10;
        const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
        let flags = MAP_SHARED | if request.fixed { MAP_FIXED } else { MAP_FIXED_NOREPLACE };
        self.command(command::MAP, &[start, bytes, request.protection, flags], pending)
    }

    /// Makes foreign what the program itself has mapped in a range that was thought to be free.
    pub(crate) fn avoid_obstacles(&mut self, tables: &Tables, start: u64, bytes: u64) {
        let obstacles = maps::read(self.helper.thread, start, start + bytes);
        for one in obstacles.iter().filter(|one| !one.ours) {
            if let Some((start, end)) = manageable(one.start, one.end) {
                self.make_foreign(tables, start, end - start);
            }
        }
    }

    /// Marks a range as unmanaged memory of the program (`foreign`).
    pub(crate) fn make_foreign(&mut self, tables: &Tables, start: u64, bytes: u64) {
        let traits = Traits { foreign: true, ..Traits::default() };
        self.space.regions.map(start, start + bytes, traits);
        self.close(tables, start, start + bytes);
    }

    /// Discards the contents of a range, as if untouched. Returns the frames it frees, per tier.
    pub(crate) fn empty(&mut self, tables: &Tables, start: u64, bytes: u64) -> Vec<i64> {
        let mut frames = vec![0_i64; self.tiers.len()];
        let mut gone = vec![0_u64; self.tiers.len()];
        tables.pages.each_word(self.slot, start, start + bytes, |_address, cell| {
            let empty = |word: u32| {
                let is_empty = matches!(Word(word).state(), State::Absent | State::Foreign);
                (!is_empty).then(|| Word(word).emptied().0)
            };
            let Ok(before) = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, empty) else {
                return;
            };
            let word = Word(before);
            let tier = word.tier().min(frames.len() - 1);
            gone[tier] += 1;
            if word.resident() {
                frames[tier] += 1;
            }
        });
        self.space.pinned.remove(start..start + bytes);
        let spans = self.space.segments.spans(start, start + bytes);
        for (tier, residency) in self.tiers.iter_mut().enumerate() {
            let logged = gone[tier].min(self.populated[tier]);
            self.populated[tier] -= logged;
            self.emptied_unlogged += gone[tier] - logged;
            for span in &spans {
                residency.discard(span.first, Pages::new(span.count));
            }
        }
        // Always, because pages can be populated without a fault that the trap sees (direct I/O).
        let _end_of_file = self.memory.punch(start, bytes);
        frames
    }

    /// How many pages have contents; `unlogged` of them were counted but not logged.
    pub(crate) fn pages(&self, unlogged: u64) -> u64 {
        (self.populated.iter().sum::<u64>() + unlogged).saturating_sub(self.emptied_unlogged)
    }

    /// How many of these pages the log does not have.
    pub(crate) const fn unlogged_pages(&self, unlogged: u64) -> u64 {
        unlogged.saturating_sub(self.emptied_unlogged)
    }

    /// The 32-bit word at a managed address; `None` if `address` is not managed.
    pub(crate) fn word(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        let managed = self.space.regions.manages(address);
        let read = managed && self.memory.read_at(&mut bytes, address).is_ok();
        read.then_some(u32::from_ne_bytes(bytes))
    }

    /// Replaces the counts of populated pages by those that the state words give.
    pub(crate) fn counted(&mut self, populated: Vec<u64>) {
        self.populated = populated;
        self.emptied_unlogged = 0;
    }
}

/// The part of a range in which memory can be managed. `None` if it is empty.
pub(crate) fn manageable(start: u64, end: u64) -> Option<(u64, u64)> {
    let (start, end) = (start.max(ADDRESS_MIN), end.min(ADDRESS_TOP));
    (start < end).then_some((start, end))
}
