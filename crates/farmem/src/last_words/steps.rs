//! How the supervisor notes the last words of threads, and writes them.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Cleared, Mortal, Whose, own_number};
use crate::arena::Arena;
use crate::supervisor::Supervisor;

// The most robust mutexes of one thread that are followed.
const HELD_MAX: usize = 256;
// A thread that lives so many ticks after a cut was not about to end then.
const TICKS_MAX: u32 = 3;
const NUMBER_MASK: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;

impl Supervisor<'_> {
    /// Notes the words that the kernel will write when threads of the process in `slot` end.
    pub(crate) fn note_mortals(&mut self, slot: usize) {
        let Some(arena) = &self.people.arenas[slot] else { return };
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", arena.tgid)) else { return };
        let memory = File::open(format!("/proc/{}/mem", arena.tgid));
        let tids = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok());
        let valued = |word: &Cleared| (*word, arena.word(word.address));
        let words: Vec<(Cleared, Option<u32>)> = arena.image.cleared.iter().map(valued).collect();
        let mortals: Vec<Mortal> =
            tids.filter_map(|tid| mortal(arena, memory.as_ref().ok(), &words, tid)).collect();
        // A thread that has ended since the last cut is not listed.
        let listed = |tid| mortals.iter().any(|mortal| mortal.tid == tid);
        self.forking.mortals.retain(|mortal| mortal.slot != slot || !listed(mortal.tid));
        self.forking.mortals.extend(mortals);
    }

    /// Writes the last words of threads that have ended. Called after a thaw and at every `tick`.
    pub(crate) fn write_last_words(&mut self, tick: bool) {
        let mut mortals = std::mem::take(&mut self.forking.mortals);
        mortals.retain_mut(|mortal| {
            let arena = self.people.arenas[mortal.slot].as_ref();
            let Some(arena) = arena.filter(|arena| arena.tgid == mortal.tgid) else {
                return false;
            };
            if arena.cut.is_some() {
                return true;
            }
            mortal.ticks += u32::from(tick);
            if sys::process::is_thread_of(mortal.tid, mortal.tgid) {
                return mortal.ticks <= TICKS_MAX;
            }
            mortal.write(arena);
            false
        });
        self.forking.mortals = mortals;
    }
}

impl Mortal {
    // Marks the thread's mutexes as abandoned, and clears its number.
    fn write(&self, arena: &Arena) {
        let died = |word: u32| word & WAITERS | OWNER_DIED;
        for &lock in &self.locks {
            replace(arena, lock, |word| (word & NUMBER_MASK == self.number).then(|| died(word)));
        }
        for &at in &self.numbers_at {
            replace(arena, at, |word| (word == self.number).then_some(0));
        }
    }
}

// Changes a word to what `with` returns, if anything, and wakes who waits for it in any case: the
// kernel may have changed the word and then not found its page when it wanted to wake.
fn replace(arena: &Arena, address: u64, with: impl Fn(u32) -> Option<u32>) {
    let mut bytes = [0; 4];
    if arena.memory.read_at(&mut bytes, address).is_err() {
        return;
    }
    if let Some(after) = with(u32::from_ne_bytes(bytes)) {
        // The file exists as long as the arena.
        let _full = arena.memory.write_at(&after.to_ne_bytes(), address);
    }
    // No thread may be waiting.
    let _nobody = arena.memory.wake(address);
}

// The last words of thread `tid`; `None` if it has none or is gone.
fn mortal(
    arena: &Arena,
    memory: Option<&File>,
    words: &[(Cleared, Option<u32>)],
    tid: u32,
) -> Option<Mortal> {
    let locks = locks(arena, memory, tid).unwrap_or_default();
    if locks.is_empty() && words.is_empty() {
        return None;
    }
    let number = own_number(tid)?;
    let may_be = |&(word, value): &(Cleared, Option<u32>)| {
        let is_its = word.whose == Whose::Unknown || word.is_of(value, tid, number);
        is_its.then_some(word.address)
    };
    let numbers_at: BTreeSet<u64> = words.iter().filter_map(may_be).collect();
    let any = !numbers_at.is_empty() || !locks.is_empty();
    let (slot, tgid) = (arena.slot, arena.tgid);
    any.then_some(Mortal { slot, tgid, tid, number, numbers_at, locks, ticks: 0 })
}

// The lock words of a thread's robust mutexes in managed memory; `None` if it has no list.
fn locks(arena: &Arena, memory: Option<&File>, tid: u32) -> Option<Vec<u64>> {
    let head = sys::process::robust_list(tid).ok().filter(|&head| head != 0)?;
    // The arena is never read through the process: that might fault, and wait for us.
    let read = |address: u64| {
        let mut bytes = [0_u8; 8];
        if arena.space.regions.manages(address) {
            arena.memory.read_at(&mut bytes, address).ok()?;
        } else {
            memory?.read_exact_at(&mut bytes, address).ok()?;
        }
        Some(u64::from_ne_bytes(bytes))
    };
    // struct robust_list_head: the first entry, the distance from an entry to its lock word.
    let mut entry = read(head)? & !1;
    let distance = read(head + 8)?;
    let mut locks = Vec::new();
    for _ in 0..HELD_MAX {
        if entry == head {
            break;
        }
        let lock = entry.wrapping_add(distance);
        locks.extend(Some(lock).filter(|&lock| arena.space.regions.manages(lock)));
        entry = read(entry).map_or(head, |next| next & !1);
    }
    Some(locks)
}
