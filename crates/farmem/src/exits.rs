//! Threads that end under the userfaultfd trap.
//!
//! The kernel's writes at the end of a thread (`last_words`) do not wait for user space to bring a
//! page: the write is lost, and a thread that waits for it hangs. So those pages are brought, and
//! kept, before the thread goes on. The words of the C library lie together in its descriptor of
//! the thread; others are known from the calls that name them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use measure::Pages;
use paging::regions::PAGE;
use paging::residency::Admission;
use paging::word::{State, Word};
use sys::seccomp::Notification;

use super::RunError;
use super::last_words::{Cleared, Whose, own_number};
use super::supervisor::Supervisor;
use sys::nr;

// The most words of robust mutexes that are brought for one thread.
const HELD_MAX: usize = 256;

impl Supervisor<'_> {
    /// Acts on a `clone` that makes a thread: notes the word that the kernel clears at its end.
    pub(crate) fn thread(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        self.note_cleared(slot, Cleared::by_clone(&call.args));
        self.forking.starting.push((call.tid, slot, run_ns(call.tid)));
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    /// Acts on `set_tid_address`: notes the word that the kernel clears when the thread ends.
    pub(crate) fn names_word(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let whose = Whose::Thread(call.tid);
        if let Some(arena) = self.people.arenas[slot].as_mut() {
            arena.image.cleared.retain(|before| before.whose != whose);
        }
        self.note_cleared(slot, Cleared { address: call.args[0], whose });
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    // Adds a word that the kernel will clear.
    fn note_cleared(&mut self, slot: usize, word: Cleared) {
        const CLEARED_MAX: usize = 4096;
        let Some(arena) = self.people.arenas[slot].as_mut() else { return };
        arena.image.cleared.retain(|before| *before != word);
        arena.image.cleared.push(word);
        if arena.image.cleared.len() > CLEARED_MAX {
            arena.image.cleared.remove(0);
        }
    }

    /// Whether a thread of the process in `slot` is making another.
    pub(crate) fn any_starts(&mut self, slot: usize) -> bool {
        // More processor time than starting a thread takes.
        const START_MAX_NS: u64 = 1_000_000;
        self.forking.starting.retain(|&(tid, _, before)| {
            let call = std::fs::read_to_string(format!("/proc/{tid}/syscall")).unwrap_or_default();
            let inside = call.split(' ').next() == Some(&nr::CLONE.to_string());
            inside || call.starts_with("running") && run_ns(tid) < before + START_MAX_NS
        });
        self.forking.starting.iter().any(|&(_, owner, _)| owner == slot)
    }

    /// Acts on `exit`: keeps the pages of the thread's last words resident. The thread waits for
    /// those that are on their way, and for the helper to have unmapped those that it is about to:
    /// a page that is kept before would still go.
    pub(crate) fn exit(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let words = match self.last_words(slot, call.tid) {
            Ok(words) => words,
            Err(far) => {
                for word in far {
                    self.bring(slot, word, true);
                }
                self.forking.postponed.push(*call);
                return Ok(());
            }
        };
        let arena = self.people.arenas[slot].as_ref();
        let is_dropping = |address| arena.is_some_and(|arena| arena.is_dropping(address));
        if words.iter().any(|&word| self.is_fetching(slot, word) || is_dropping(word)) {
            self.forking.postponed.push(*call);
            return Ok(());
        }
        for address in words {
            self.hold(slot, call.tid, address);
        }
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    fn is_fetching(&self, slot: usize, address: u64) -> bool {
        let cell = self.kernel.tables.pages.word(slot, address);
        cell.is_some_and(|cell| Word(cell.load(Ordering::Acquire)).state() == State::Fetching)
    }

    // The addresses that the kernel will write to; or, as the error, pages to bring first.
    fn last_words(&self, slot: usize, tid: u32) -> Result<Vec<u64>, Vec<u64>> {
        let Some(arena) = &self.people.arenas[slot] else { return Ok(Vec::new()) };
        let Ok(head) = sys::process::robust_list(tid) else { return Ok(Vec::new()) };
        let mut words = vec![head.saturating_sub(PAGE), head, head + PAGE];
        let is_away = |address: &u64| self.is_away(slot, *address);
        let named = arena.image.cleared.iter().map(|word| word.address);
        let away: Vec<u64> = words.iter().copied().chain(named).filter(is_away).collect();
        if !away.is_empty() {
            return Err(away);
        }
        let other = File::open(format!("/proc/{tid}/mem"));
        // Managed memory is never read through the process: that might fault, and wait for us.
        let read = |address: u64| {
            let mut bytes = [0_u8; 8];
            if arena.space.regions.manages(address) {
                arena.memory.read_at(&mut bytes, address).ok()?;
            } else {
                other.as_ref().ok()?.read_exact_at(&mut bytes, address).ok()?;
            }
            Some(u64::from_ne_bytes(bytes))
        };
        let number = own_number(tid).unwrap_or(tid);
        let is_its = |word: &&Cleared| word.is_of(arena.word(word.address), tid, number);
        words.extend(arena.image.cleared.iter().filter(is_its).map(|word| word.address));
        // struct robust_list_head: the first entry, the distance from an entry to its lock word.
        let distance = read(head + 8).unwrap_or(0);
        let mut entry = read(head).unwrap_or(head) & !1;
        while entry != head && words.len() < HELD_MAX {
            words.push(entry);
            words.push(entry.wrapping_add(distance));
            let away: Vec<u64> = words.iter().copied().filter(is_away).collect();
            if !away.is_empty() {
                return Err(away);
            }
            entry = read(entry).map_or(head, |next| next & !1);
        }
        Ok(words)
    }

    // Whether a page is on a blade, or on its way from there, so that it cannot be read now.
    fn is_away(&self, slot: usize, address: u64) -> bool {
        let word = self.kernel.tables.pages.word(slot, address).filter(|_| self.is_far());
        let state = word.map(|word| Word(word.load(Ordering::Acquire)).state());
        matches!(state, Some(State::Remote | State::Fetching))
    }

    // Makes a page local and pins it until thread `tid` has ended.
    fn hold(&mut self, slot: usize, tid: u32, address: u64) {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return;
        };
        let Some(cell) = self.kernel.tables.pages.word(slot, address) else { return };
        let mut word = Word(cell.load(Ordering::Acquire));
        let has_come = |state| match state {
            // Static data are in the file before any touch.
            State::Absent => {
                let start = address / PAGE * PAGE;
                !matches!(arena.memory.next_data(start, start + PAGE), Ok(Some(_)))
            }
            State::Foreign => true,
            _ => false,
        };
        if has_come(word.state()) {
            return;
        }
        let tier = word.tier().min(arena.tiers.len() - 1);
        let Some(page) = arena.page(address) else { return };
        // A fault may take its frame at this moment.
        while let Err(now) = cell.compare_exchange(
            word.0,
            word.made_local(true).0,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            word = Word(now);
        }
        if matches!(word.state(), State::Absent | State::Remote) {
            arena.tiers[tier].left(page);
            arena.tiers[tier].admit(page, Admission::Found);
            self.kernel.tables.lane(arena.budget, tier).credit(-1);
        }
        self.books.members.touch(slot);
        let address = address / PAGE * PAGE;
        arena.tiers[tier].pin(page, Pages::new(1));
        self.faults.exiting.push((tid, slot, address));
        self.preserve(slot, address, address + PAGE);
        let Some(arena) = self.people.arenas[slot].as_ref() else { return };
        if let Some(fault) = &arena.fault {
            // Mapped already, or gone with its process.
            let _there = fault.map(address, PAGE);
        }
    }

    /// Whether a thread of `slot` is ending, so that the kernel may write its last words.
    pub(crate) fn any_ends(&self, slot: usize) -> bool {
        self.people.arenas[slot].as_ref().is_some_and(|arena| {
            let ends = |tid| sys::process::is_thread_of(tid, arena.tgid);
            self.faults.exiting.iter().any(|&(tid, owner, _)| owner == slot && ends(tid))
        })
    }

    /// Unpins pages that were held for threads that have ended.
    pub(crate) fn forget_exits(&mut self) {
        let arenas = &mut self.people.arenas;
        self.faults.exiting.retain(|&(tid, slot, address): &(u32, usize, u64)| {
            let Some(arena) = arenas[slot].as_mut() else { return false };
            let ended = !sys::process::is_thread_of(tid, arena.tgid);
            let is_locked = arena.space.pinned.contains(address);
            if let Some(page) = arena.space.segments.find(address).filter(|_| ended && !is_locked) {
                arena.tiers.iter_mut().for_each(|tier| tier.unpin(page, Pages::new(1)));
            }
            !ended
        });
    }
}

// The processor time of a thread, in nanoseconds.
fn run_ns(tid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0)
}
