//! The hidden command `accesses`: a sequence of accesses in one thread.

use sys::clock::monotonic_ns;

use super::sequence::Sequence;
use crate::flags::AccessesFlags;
use crate::progress;

const WORDS_PER_PAGE: usize = 512;

/// Touches every page once, in order, then performs the accesses and prints how many nanoseconds
/// they took.
pub(crate) fn accesses(flags: &AccessesFlags) {
    let pages = usize::try_from(flags.pages).unwrap_or(usize::MAX);
    // Not touched yet: the kernel provides zero pages on demand.
    let mut memory = vec![0_u64; pages * WORDS_PER_PAGE];
    for (word, page) in memory.iter_mut().step_by(WORDS_PER_PAGE).zip(1..) {
        *word = page;
    }
    let sequence = Sequence::new(flags.pattern, flags.pages, flags.count, flags.seed);
    let before = monotonic_ns();
    for page in sequence {
        let word = usize::try_from(page).unwrap_or(usize::MAX) * WORDS_PER_PAGE;
        if flags.write {
            memory[word] += 1;
            std::hint::black_box(&mut memory);
        } else {
            std::hint::black_box(memory[word]);
        }
    }
    let took_ns = monotonic_ns() - before;
    progress::answer(&format!("{took_ns}\n"));
}
